#include "shared_shadow.h"

namespace simt {

void SharedShadow::use_bytes() {
  std::vector<Cell> bytes(cells_.size() * 4);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = cells_[i / 4];
  cells_.swap(bytes);
  log_unit_ = 0;
}

void SharedShadow::access(uint16_t thread, uint16_t warp_epoch, uint32_t site, uint64_t address, int log_size,
                          Operation operation) {
  if (log_size < log_unit_) use_bytes();
  const uint64_t first = address >> log_unit_, end = first + (uint64_t{1} << (log_size - log_unit_));
  if (end > cells_.size()) cells_.resize(end + 1024);
  const bool is_atomic = operation == Operation::kAtomic;
  const Visit visit = {epoch_, site, thread, warp_epoch, is_atomic};
  for (uint64_t i = first; i < end; ++i) {
    Cell& cell = cells_[i];
    if (operation != Operation::kStore && cell.writer.epoch < first_epoch_)
      findings_.add(Fault::kUninitialised, block_, thread, site, address, uint64_t{1} << log_size, 0);
    if (is_unordered(cell.writer, thread, warp_epoch) && !(is_atomic && cell.writer.is_atomic))
      findings_.add(Fault::kRace, block_, thread, site, cell.writer.site, cell.writer.thread, address);
    if (operation == Operation::kLoad) {
      if (cell.reader.epoch != epoch_ || cell.reader.thread == thread)
        cell.reader = visit;
      else
        cell.other = visit;
      continue;
    }
    for (const Visit* reader : {&cell.reader, &cell.other})
      if (is_unordered(*reader, thread, warp_epoch))
        findings_.add(Fault::kRace, block_, thread, site, reader->site, reader->thread, address);
    cell.writer = visit;
  }
}

}  // namespace simt
