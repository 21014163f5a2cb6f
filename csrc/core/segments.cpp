#include "core/segments.h"

#include <algorithm>
#include <bit>

namespace rooflab {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

struct Kind {
  int64_t smallest;  // request
  int64_t step;
  int64_t segment;  // 0: as large as the request
};
constexpr Kind kKinds[] = {
    {0, 256, 2 * kMiB}, {4 * kKiB, 4 * kKiB, 2 * kMiB}, {kMiB, 4 * kKiB, 16 * kMiB}, {8 * kMiB, 4 * kKiB, 0}};

int kind_of(int64_t bytes) {
  int kind = 0;
  while (kind < 3 && bytes >= kKinds[kind + 1].smallest) ++kind;
  return kind;
}

int64_t round_up(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }

int64_t block_bytes(int64_t bytes) { return round_up(bytes, kKinds[kind_of(bytes)].step); }

}  // namespace

// Eight bins per power of two, from 256 on: where there are few sizes, each has a bin of its own.
int FreeBlocks::bin_of(int64_t bytes) {
  const int power = std::bit_width(static_cast<uint64_t>(bytes)) - 1;
  return (power - 8) * 8 + static_cast<int>(bytes >> (power - 3) & 7);
}

void FreeBlocks::add(Block* block) {
  const int bin = bin_of(block->bytes);
  block->is_free = true;
  block->previous = nullptr;
  block->next = first_[bin];
  if (block->next) block->next->previous = block;
  first_[bin] = block;
  filled_[bin / 64] |= uint64_t{1} << bin % 64;
}

void FreeBlocks::remove(Block* block) {
  const int bin = bin_of(block->bytes);
  (block->previous ? block->previous->next : first_[bin]) = block->next;
  if (block->next) block->next->previous = block->previous;
  if (!first_[bin]) filled_[bin / 64] &= ~(uint64_t{1} << bin % 64);
  block->is_free = false;
}

Block* FreeBlocks::best_fit(int64_t bytes) const {
  for (int bin = bin_of(bytes); bin < kBins; ++bin) {
    const uint64_t left = filled_[bin / 64] >> bin % 64;
    if (!left) {
      bin |= 63;
      continue;
    }
    bin += std::countr_zero(left);
    Block* best = nullptr;
    for (Block* block = first_[bin]; block; block = block->next) {
      if (block->bytes >= bytes && (!best || block->bytes < best->bytes)) best = block;
      if (best && best->bytes == bytes) break;
    }
    if (best) return best;
  }
  return nullptr;
}

Arena* Segments::find(const memory::Pool* pool, Stream stream) const noexcept {
  for (const auto& arena : arenas_)
    if (arena->pool == pool && arena->stream == stream) return arena.get();
  return nullptr;
}

Arena& Segments::arena(const memory::Pool* pool, Stream stream) {
  if (Arena* known = find(pool, stream)) return *known;
  return *arenas_.emplace_back(new Arena{pool, stream, {}});
}

Block* Segments::take(Arena& arena, int64_t request) {
  const int kind = kind_of(request);
  const int64_t bytes = block_bytes(request);
  Block* block = arena.free[kind].best_fit(bytes);
  if (!block) return nullptr;
  const int64_t rest = block->bytes - bytes;
  Block* above = rest && rest >= kKinds[kind].smallest ? new Block{block->data + bytes, rest, block->segment} : nullptr;
  arena.free[kind].remove(block);
  if (above) {
    block->bytes = bytes;
    above->below = block;
    above->above = block->above;
    if (above->above) above->above->below = above;
    block->above = above;
    arena.free[kind].add(above);
  }
  return block;
}

void Segments::give_back(Block* block) noexcept {
  FreeBlocks& free = block->segment->arena->free[block->segment->kind];
  // Merges two adjacent blocks.
  const auto merge = [&](Block* lower, Block* upper) {
    lower->bytes += upper->bytes;
    lower->above = upper->above;
    if (lower->above) lower->above->below = lower;
    delete upper;
    return lower;
  };
  if (Block* above = block->above; above && above->is_free) {
    free.remove(above);
    merge(block, above);
  }
  if (Block* below = block->below; below && below->is_free) {
    free.remove(below);
    block = merge(below, block);
  }
  free.add(block);
}

int64_t Segments::least_segment_bytes(int64_t bytes) {
  const Kind& kind = kKinds[kind_of(bytes)];
  return std::min(round_up(block_bytes(bytes), 2 * kMiB), kind.segment ? kind.segment : INT64_MAX);
}

int64_t Segments::segment_bytes(int64_t bytes) {
  const Kind& kind = kKinds[kind_of(bytes)];
  if (kind.segment) return kind.segment;
  const int64_t eighth = std::bit_floor(static_cast<uint64_t>(bytes - 1)) / 8;
  return round_up(bytes, std::max(eighth, 2 * kMiB));
}

void Segments::add(Arena& arena, int64_t bytes, void* data, int64_t segment_bytes) {
  auto block = std::make_unique<Block>(Block{static_cast<char*>(data), segment_bytes, nullptr});
  Segment& segment = segments_.emplace_back(Segment{&arena, kind_of(bytes), segment_bytes, block.get()});
  block->segment = &segment;
  arena.free[segment.kind].add(block.release());
}

void Segments::hand_over(size_t place, const memory::Pool* pool, Stream stream) noexcept {
  Arena& from = *arenas_[place];
  Arena* to = find(pool, stream);
  if (!to) {
    from.pool = pool;
    from.stream = stream;
    return;
  }
  for (Segment& segment : segments_) {
    if (segment.arena != &from) continue;
    segment.arena = to;
    for (Block* block = segment.lowest; block; block = block->above) {
      if (!block->is_free) continue;
      from.free[segment.kind].remove(block);
      to->free[segment.kind].add(block);
    }
  }
  arenas_.erase(arenas_.begin() + static_cast<std::ptrdiff_t>(place));
}

void Segments::adopt(Stream gone) noexcept {
  for (size_t place = arenas_.size(); place-- > 0;)
    if (arenas_[place]->stream == gone) hand_over(place, arenas_[place]->pool, Stream{});
}

void Segments::adopt(const memory::Pool* gone) noexcept {
  for (size_t place = arenas_.size(); place-- > 0;)
    if (arenas_[place]->pool == gone) hand_over(place, nullptr, arenas_[place]->stream);
}

Segments::Memory Segments::drop_free() noexcept {
  for (auto segment = segments_.begin(); segment != segments_.end(); ++segment) {
    Block* block = segment->lowest;
    if (segment->arena->pool || !block->is_free || block->bytes != segment->bytes) continue;
    segment->arena->free[segment->kind].remove(block);
    const Memory memory{block->data, block->bytes};
    delete block;
    segments_.erase(segment);
    return memory;
  }
  return {};
}

}  // namespace rooflab
