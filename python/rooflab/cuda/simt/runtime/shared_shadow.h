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
  // `warp_epoch`: how many operations that order the warp's memory this thread has taken part in.
  void access(uint16_t thread, uint16_t warp_epoch, uint32_t site, uint64_t address, int log_size, Operation operation);

 private:
  struct Visit {
    uint32_t epoch = 0, site = 0;
    uint16_t thread = 0, warp_epoch = 0;
    bool is_atomic = false;
  };
  struct Cell {
    Visit writer, reader, other;  // two readers that are different threads are enough to tell of any race
  };
  // Whether nothing orders the visit before the access of `thread`.
  bool is_unordered(const Visit& visit, uint16_t thread, uint16_t warp_epoch) const {
    return visit.epoch == epoch_ && visit.thread != thread &&
           (visit.thread / kWarp != thread / kWarp || visit.warp_epoch == warp_epoch);
  }
  void use_bytes();

  Findings& findings_;
  std::vector<Cell> cells_;
  int log_unit_ = 2;  // a cell is a word until something smaller is accessed, then a byte
  uint32_t epoch_ = 0, first_epoch_ = 0;
  uint64_t block_ = 0;
};

}  // namespace simt
