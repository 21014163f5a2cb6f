// Who last wrote and read each place of global memory that a kernel may write: finds races within a block and between
// blocks. What only atomic operations and volatile accesses can order is no race where both sides made one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "totals.h"
#include "visit.h"

namespace simt {

class GlobalShadow {
 public:
  GlobalShadow(const Launch& launch, Findings& findings);

  void begin_block(uint64_t block);
  void barrier() { ++epoch_; }
  void access(uint32_t thread, const uint32_t* seen, uint32_t site, uint64_t address, int log_size,
              Operation operation);
  // The warp made an atomic operation or a volatile access.
  void order(uint32_t warp) {
    warps_ |= uint32_t{1} << warp;
    blocks_.back().has_ordered = true;
  }

 private:
  enum Role { kWriter, kAtomic, kReader, kOtherReader, kRoles };
  // The last visits of each role, once there is one: of each word, until something smaller is accessed.
  struct Page {
    std::unique_ptr<Visit[]> visits[kRoles];
    int log_unit = 2;
    bool is_constant = false;
  };
  struct Block {
    uint64_t number;
    uint32_t first_epoch;
    bool has_ordered;
  };
  static constexpr uint64_t kChunk = 1 << 12;
  // Of an address, which has to be below `end_`.
  Page& page_of(uint64_t address) {
    auto& chunk = chunks_[address / kGranule / kChunk];
    if (!chunk) chunk = std::make_unique<Page[]>(kChunk);
    return chunk[address / kGranule % kChunk];
  }
  static void use_unit(Page& page, int log_unit);
  static Visit& slot(Page& page, Role role, uint64_t cell);
  const Block& block_of(const Visit& visit) const;
  bool races(const Visit& visit, uint32_t thread, const uint32_t* seen) const;
  Role reader_role(const Page& page, uint64_t cell, uint32_t thread, const uint32_t* seen) const;

  Findings& findings_;
  const uint64_t end_;
  std::vector<std::unique_ptr<Page[]>> chunks_;  // those that something is in: wide gaps lie between arrays
  std::vector<Block> blocks_;
  uint32_t epoch_ = 0, warps_ = 0;
};

}  // namespace simt
