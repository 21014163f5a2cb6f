#include "shared_shadow.h"

namespace simt {

void Visits::add(const Visit& visit, const uint32_t* seen) {
  if (epoch_ != visit.epoch) {
    *this = {};
    epoch_ = visit.epoch;
    warp_ = visit.thread / kWarp;
  }
  if (warp_ != visit.thread / kWarp) {
    if (other_.epoch == 0) other_ = visit;
    return;
  }
  const uint32_t own = uint32_t{1} << visit.thread % kWarp;
  Part *same = nullptr, *free = nullptr;
  const auto look = [&] {
    for (Part& part : part_) {
      part.lanes &= ~own;
      if (!part.lanes)
        free = &part;
      else if (part.step == visit.step && part.site == visit.site)
        same = &part;
    }
  };
  look();
  if (!same && !free) {
    make_room(seen);
    look();
  }
  if (!same) {
    same = free;
    same->step = visit.step;
    same->site = visit.site;
  }
  same->lanes |= own;
}

// Forgets what comes before the present visit: what comes after this one comes after that too. Is there nothing, the
// parts of one step become one; are there none, the earliest steps are forgotten.
void Visits::make_room(const uint32_t* seen) {
  for (Part& part : part_)
    for (int lane = 0; lane < kWarp; ++lane)
      if (part.step <= seen[lane]) part.lanes &= ~(uint32_t{1} << lane);
  Part* least = part_;
  for (Part& part : part_) {
    if (!part.lanes) return;
    if (part.step < least->step) least = &part;
  }
  for (Part& part : part_)
    for (Part* other = part_; other != &part; ++other)
      if (other->step == part.step) {
        other->lanes |= part.lanes;
        part.lanes = 0;
        return;
      }
  least->lanes = 0;
}

template <class Meet>
void Visits::find(uint32_t epoch, uint32_t thread, const uint32_t* seen, const Meet& meet) const {
  if (epoch_ != epoch) return;
  if (other_.epoch && other_.thread / kWarp != thread / kWarp) return meet(other_.site, other_.thread);
  for (const Part& part : part_)
    for (uint32_t lanes = part.lanes; lanes; lanes &= lanes - 1) {
      const uint32_t by = warp_ * kWarp + static_cast<uint32_t>(__builtin_ctz(lanes));
      if (is_unordered({epoch, part.step, part.site, by}, thread, seen)) return meet(part.site, by);
    }
}

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
  const Visit visit(epoch_, seen[thread % kWarp], site, thread);
  const auto meet = [&](uint32_t other_site, uint32_t other) {
    findings_.add(Fault::kRace, block_, thread, site, other_site, other, address);
  };
  for (uint64_t i = first; i < end; ++i) {
    Cell& cell = cells_[i];
    const bool is_new = cell.writer.epoch < first_epoch_ && cell.atomics.epoch() < first_epoch_;
    if (operation != Operation::kStore && is_new)
      findings_.add(Fault::kUninitialised, block_, thread, site, address, uint64_t{1} << log_size, 0);
    if (cell.writer.epoch == epoch_ && is_unordered(cell.writer, thread, seen))
      meet(cell.writer.site, cell.writer.thread);
    if (operation == Operation::kStore) {
      cell.atomics.find(epoch_, thread, seen, meet);
      cell.readers.find(epoch_, thread, seen, meet);
      cell.writer = visit;
      continue;
    }
    const auto suspect = [&](uint32_t other_site, uint32_t other) {
      const Place place(Space::kShared, i << log_unit_, log_unit_);
      findings_.suspect(operation == Operation::kLoad ? site : other_site, place, Fault::kRace, block_, thread, site,
                        other_site, other, address);
    };
    if (operation == Operation::kLoad) {
      cell.atomics.find(epoch_, thread, seen, suspect);
      cell.readers.add(visit, seen);
    } else {
      cell.readers.find(epoch_, thread, seen, suspect);
      cell.atomics.add(visit, seen);
    }
  }
}

}  // namespace simt
