#include "shared_shadow.h"

namespace simt {

void SharedShadow::use_bytes() {
  std::vector<Cell> bytes(cells_.size() * 4);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = cells_[i / 4];
  cells_.swap(bytes);
  log_unit_ = 0;
}

void SharedShadow::access(uint16_t thread, const uint32_t* seen, uint32_t site, uint64_t address, int log_size,
                          Operation operation) {
  if (log_size < log_unit_) use_bytes();
  const uint64_t first = address >> log_unit_, end = first + (uint64_t{1} << (log_size - log_unit_));
  if (end > cells_.size()) cells_.resize(end + 1024);
  const Visit visit = {epoch_, site, seen[thread % kWarp], thread};
  const auto meet = [&](const Visit& before) {
    if (is_unordered(before, thread, seen))
      findings_.add(Fault::kRace, block_, thread, site, before.site, before.thread, address);
  };
  for (uint64_t i = first; i < end; ++i) {
    Cell& cell = cells_[i];
    const bool is_new = cell.writer.epoch < first_epoch_ && cell.atomics.one.epoch < first_epoch_;
    if (operation != Operation::kStore && is_new)
      findings_.add(Fault::kUninitialised, block_, thread, site, address, uint64_t{1} << log_size, 0);
    meet(cell.writer);
    if (operation != Operation::kAtomic) {
      meet(cell.atomics.one);
      meet(cell.atomics.other);
    }
    if (operation != Operation::kLoad) {
      meet(cell.readers.one);
      meet(cell.readers.other);
    }
    if (operation == Operation::kLoad)
      keep(cell.readers, visit);
    else if (operation == Operation::kAtomic)
      keep(cell.atomics, visit);
    else
      cell.writer = visit;
  }
}

}  // namespace simt
