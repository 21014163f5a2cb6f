// Who last wrote and read each place of shared memory: finds races, and reads of what no thread has written.
#pragma once

#include <cstdint>
#include <vector>

#include "totals.h"

namespace simt {

class SharedShadow {
 public:
  explicit SharedShadow(Findings& findings) : findings_(findings) {}

  void begin_block(uint64_t block) {
    block_ = block;
    first_epoch_ = ++epoch_;
  }
  void barrier() { ++epoch_; }
  // `seen`: for each lane of the thread's warp, the last of that lane's steps which comes before this access.
  void access(uint16_t thread, const uint32_t* seen, uint32_t site, uint64_t address, int log_size,
              Operation operation);

 private:
  struct Visit {
    uint32_t epoch = 0, site = 0;
    uint32_t step = 0;
    uint16_t thread = 0;
  };
  // Of those that may meet each other without a race, the visits of two different threads are enough to tell of any.
  struct Visits {
    Visit one, other;
  };
  struct Cell {
    Visit writer;
    Visits readers, atomics;
  };
  // Whether nothing orders the visit before the access of `thread`.
  bool is_unordered(const Visit& visit, uint16_t thread, const uint32_t* seen) const {
    return visit.epoch == epoch_ && visit.thread != thread &&
           (visit.thread / kWarp != thread / kWarp || visit.step > seen[visit.thread % kWarp]);
  }
  void keep(Visits& visits, const Visit& visit) const {
    (visits.one.epoch != epoch_ || visits.one.thread == visit.thread ? visits.one : visits.other) = visit;
  }
  void use_bytes();

  Findings& findings_;
  std::vector<Cell> cells_;
  int log_unit_ = 2;  // a cell is a word until something smaller is accessed, then a byte
  uint32_t epoch_ = 0, first_epoch_ = 0;
  uint64_t block_ = 0;
};

}  // namespace simt
