// Who last wrote and read each place of shared memory: finds races, and reads of what no thread has written.
#pragma once

#include <cstdint>
#include <vector>

#include "totals.h"
#include "visit.h"

namespace simt {

// The visits of one kind to a place in one epoch: of all lanes of one warp, and one of another warp. These are enough
// to tell of any race with a later visit of another kind. Lanes that are at one step are kept together; of lanes at
// more than four steps that nothing has ordered since, the earliest are forgotten.
class Visits {
 public:
  uint32_t epoch() const { return epoch_; }
  void add(const Visit& visit, const uint32_t* seen);
  // Calls `meet` with one visit that nothing orders before what `thread` does in `epoch`, if there is one.
  template <class Meet>
  void find(uint32_t epoch, uint32_t thread, const uint32_t* seen, const Meet& meet) const;

 private:
  struct Part {
    uint32_t lanes = 0, step = 0, site = 0;
  };
  static constexpr int kParts = 4;
  void make_room(const uint32_t* seen);

  uint32_t epoch_ = 0, warp_ = 0;
  Part part_[kParts];
  Visit other_;
};

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
  struct Cell {
    Visit writer;
    Visits readers, atomics;
  };
  void use_bytes();

  Findings& findings_;
  std::vector<Cell> cells_;
  int log_unit_ = 2;  // a cell is a word until something smaller is accessed, then a byte
  uint32_t epoch_ = 0, first_epoch_ = 0;
  uint64_t block_ = 0;
};

}  // namespace simt
