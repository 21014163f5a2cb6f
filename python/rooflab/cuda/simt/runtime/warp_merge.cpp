#include "warp_merge.h"

#include <algorithm>

namespace simt {
namespace {

// Records that differ in their address alone are one request, or in the lanes that they name.
uint64_t without_address(uint64_t word) {
  if (is_access(word)) return word >> 34;
  return kind_of(word) == Kind::kWarpSync ? record(Kind::kWarpSync, site_of(word)) : word;
}
uint32_t ordered_lanes(uint64_t word) { return static_cast<uint32_t>(value_of(word) >> kSiteBits); }

}  // namespace

void WarpMerge::begin_block(int first_thread, int lanes) {
  first_ = first_thread;
  lanes_ = open_ = lanes;
  for (Queue& queue : queues_) {
    queue.words.clear();
    queue.next = 0;
    queue.is_closed = queue.has_ended = queue.has_swap = false;
  }
  for (int i = 0; i < kWarp; ++i)
    for (int j = 0; j < kWarp; ++j) seen_[i][j] = i == j;
}

void WarpMerge::close(int lane) {
  if (queues_[lane].is_closed) return;
  queues_[lane].is_closed = true;
  --open_;
}

void WarpMerge::reopen() {
  for (int i = 0; i < lanes_; ++i) {
    if (queues_[i].has_ended || !queues_[i].is_closed) continue;
    queues_[i].is_closed = false;
    ++open_;
  }
}

void WarpMerge::merge() {
  for (int i = 0; i < kWarp; ++i) {
    const Queue& queue = queues_[i];
    head_[i] = i < lanes_ && queue.next < queue.words.size() ? site_of(queue.words[queue.next]) : kNone;
    if (i < lanes_ && head_[i] == kNone && !queue.is_closed) return;
  }
  for (Queue& queue : queues_) {
    if (queue.has_swap) guesses_.find(queue.words);
    queue.has_swap = false;
  }
  while (true) {
    uint32_t lowest = kNone;
    for (int i = 0; i < kWarp; ++i) lowest = std::min(lowest, head_[i]);
    if (lowest == kNone) break;
    int leader = 0;
    while (head_[leader] != lowest) ++leader;
    take(queues_[leader].words[queues_[leader].next]);
    bool is_certain = true;
    for (int i = 0; i < lanes_; ++i) is_certain &= head_[i] != kNone || queues_[i].is_closed;
    if (!is_certain) break;
  }
  for (int i = 0; i < lanes_; ++i) {
    Queue& queue = queues_[i];
    queue.words.erase(queue.words.begin(), queue.words.begin() + queue.next);
    queue.next = 0;
  }
}

// What any of the lanes has done comes before what all of them do from now on.
void WarpMerge::order(uint32_t lanes) {
  uint32_t all[kWarp] = {};
  for (int i = 0; i < lanes_; ++i)
    for (int j = 0; (lanes >> i & 1) && j < kWarp; ++j) all[j] = std::max(all[j], seen_[i][j]);
  for (int i = 0; i < lanes_; ++i) {
    if (!(lanes >> i & 1)) continue;
    std::copy(all, all + kWarp, seen_[i]);
    ++seen_[i][i];
  }
}

void WarpMerge::take(uint64_t like) {
  const uint32_t site = site_of(like);
  const uint64_t wanted = without_address(like);
  Request request;
  uint32_t ordered[kWarp];  // with which lanes, for each lane of the request
  request.lanes = 0;
  for (int i = 0; i < lanes_; ++i) {
    if (head_[i] != site) continue;
    Queue& queue = queues_[i];
    const uint64_t word = queue.words[queue.next];
    if (without_address(word) != wanted) continue;
    ordered[request.lanes] = is_access(word) ? 0 : ordered_lanes(word);
    request.lane[request.lanes] = static_cast<uint8_t>(i);
    request.address[request.lanes++] = address_of(word);
    ++queue.next;
    head_[i] = queue.next < queue.words.size() ? site_of(queue.words[queue.next]) : kNone;
  }
  Site& total = totals_[site];
  if (!is_access(like)) {
    const Kind kind = kind_of(like);
    if (kind == Kind::kBasicBlock) {
      total.block_steps += 1;
      total.block_lanes += request.lanes;
    } else if (kind == Kind::kBarrier) {
      total.barriers += 1;
      total.barrier_lanes += request.lanes;
    } else {
      total.warp_steps += 1;
      total.warp_lanes += request.lanes;
      uint32_t done = 0;
      for (int i = 0; i < request.lanes; ++i) {
        if (ordered[i] & ~done & (uint32_t{1} << request.lane[i])) order(ordered[i]);
        done |= ordered[i];
      }
    }
    return;
  }
  const Operation operation = operation_of(like);
  const int log_size = log_size_of(like);
  const bool is_shared = space_of(like) == Space::kShared;
  const bool may_order = operation == Operation::kAtomic || is_volatile(like);
  for (int i = 0; i < request.lanes; ++i) {
    const auto thread = static_cast<uint16_t>(first_ + request.lane[i]);
    const uint32_t* const seen = seen_[request.lane[i]];
    if (is_shared)
      shared_.access(thread, seen, site, request.address[i], log_size, operation);
    else if (!is_volatile(like))
      global_.access(thread, seen, site, request.address[i], log_size, operation);
  }
  if (!is_shared && operation != Operation::kLoad) ++totals_.global_writes;
  if (may_order) global_.order(first_ / kWarp);
  if (!is_counting_) return;
  Access& access = total.access[is_shared][static_cast<int>(operation)];
  const uint64_t before = access.sectors + access.wavefronts;
  (is_shared ? add_shared : add_global)(access, request, log_size, operation == Operation::kAtomic);
  const uint64_t cost = access.sectors + access.wavefronts - before;
  keep(total.example[is_shared][static_cast<int>(operation)], request, log_size, cost);
}

}  // namespace simt
