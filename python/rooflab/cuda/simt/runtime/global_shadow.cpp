#include "global_shadow.h"

#include <algorithm>

namespace simt {
namespace {

constexpr uint64_t kVariables = 1 << 20;  // bytes behind the arena: __device__ variables

}  // namespace

GlobalShadow::GlobalShadow(const Launch& launch, Findings& findings)
    : findings_(findings), end_(launch.arena_bytes + kVariables), chunks_(end_ / kGranule / kChunk + 1) {
  for (uint32_t i = 0; i < launch.buffers && i < kMaxBuffers; ++i) {
    const Buffer& buffer = launch.buffer[i];
    if (buffer.is_written || buffer.bytes == 0) continue;
    const uint64_t begin = buffer.begin / kGranule * kGranule, end = std::min(buffer.begin + buffer.bytes, end_);
    for (uint64_t address = begin; address < end; address += kGranule) page_of(address).is_constant = true;
  }
  begin_block(0);
}

void GlobalShadow::begin_block(uint64_t block) {
  blocks_.push_back({block, ++epoch_, false});
  warps_ = 0;
}

void GlobalShadow::use_unit(Page& page, int log_unit) {
  for (auto& known : page.visits) {
    if (!known) continue;
    auto visits = std::make_unique<Visit[]>(kGranule >> log_unit);
    for (uint64_t i = 0; i < kGranule >> log_unit; ++i) visits[i] = known[i >> (page.log_unit - log_unit)];
    known = std::move(visits);
  }
  page.log_unit = log_unit;
}

Visit& GlobalShadow::slot(Page& page, Role role, uint64_t cell) {
  if (!page.visits[role]) page.visits[role] = std::make_unique<Visit[]>(kGranule >> page.log_unit);
  return page.visits[role][cell];
}

const GlobalShadow::Block& GlobalShadow::block_of(const Visit& visit) const {
  const auto behind = std::upper_bound(blocks_.begin(), blocks_.end(), visit.epoch,
                                       [](uint32_t epoch, const Block& block) { return epoch < block.first_epoch; });
  return *(behind - 1);
}

bool GlobalShadow::races(const Visit& visit, uint32_t thread, const uint32_t* seen) const {
  if (visit.epoch == 0) return false;
  if (visit.epoch < blocks_.back().first_epoch) return !(blocks_.back().has_ordered && block_of(visit).has_ordered);
  if (visit.epoch != epoch_ || !is_unordered(visit, thread, seen)) return false;
  return !(warps_ >> thread / kWarp & 1 && warps_ >> visit.thread / kWarp & 1);
}

// The first one while it comes before the new visit: what comes after that one comes after both.
GlobalShadow::Role GlobalShadow::reader_role(const Page& page, uint64_t cell, uint32_t thread,
                                             const uint32_t* seen) const {
  if (!page.visits[kReader]) return kReader;
  const Visit& known = page.visits[kReader][cell];
  const bool is_of_block = known.epoch >= blocks_.back().first_epoch;
  const bool is_before = is_of_block && (known.epoch != epoch_ || !is_unordered(known, thread, seen));
  return known.epoch == 0 || is_before ? kReader : kOtherReader;
}

void GlobalShadow::access(uint32_t thread, const uint32_t* seen, uint32_t site, uint64_t address, int log_size,
                          Operation operation) {
  if (address >= end_) return;  // only a broken runner says so
  Page& page = page_of(address);
  if (page.is_constant) return;
  if (log_size < page.log_unit) use_unit(page, log_size);
  const Visit visit(epoch_, seen[thread % kWarp], site, thread);
  const auto meet = [&](Role role, uint64_t cell) {
    if (!page.visits[role]) return;
    const Visit& before = page.visits[role][cell];
    // Threads that write one place by one statement mostly write the same.
    if (role == kWriter && operation == Operation::kStore && before.site == site) return;
    if (!races(before, thread, seen)) return;
    const uint64_t block = blocks_.back().number, other = uint64_t{before.thread} | block_of(before).number << 10;
    if (role == kWriter || operation == Operation::kStore)
      return findings_.add(Fault::kGlobalRace, block, thread, site, before.site, other, address);
    const Place place(Space::kGlobal, address / kGranule * kGranule + (cell << page.log_unit), page.log_unit);
    findings_.suspect(role == kAtomic ? site : before.site, place, Fault::kGlobalRace, block, thread, site, before.site,
                      other, address);
  };
  const uint64_t first = address % kGranule >> page.log_unit;
  for (uint64_t i = first; i < first + (uint64_t{1} << (log_size - page.log_unit)); ++i) {
    meet(kWriter, i);
    if (operation != Operation::kAtomic) meet(kAtomic, i);
    if (operation != Operation::kLoad) {
      meet(kReader, i);
      meet(kOtherReader, i);
    }
    const Role role = operation == Operation::kStore    ? kWriter
                      : operation == Operation::kAtomic ? kAtomic
                                                        : reader_role(page, i, thread, seen);
    slot(page, role, i) = visit;
  }
}

}  // namespace simt
