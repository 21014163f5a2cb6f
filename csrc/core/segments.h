// How memory is divided into blocks: only bookkeeping, which never touches the memory nor asks the system for any.
//
// Memory comes in segments. A segment belongs to one arena and serves requests of one size class, so that small tensors
// cannot fragment the memory that a large one needs again:
//
//   requests          are rounded up to   segments have
//   below 4 KiB       256 B               2 MiB
//   below 1 MiB       4 KiB               2 MiB
//   below 8 MiB       4 KiB               16 MiB
//   8 MiB and above   4 KiB               the request, rounded up to an eighth of a power of two
//
// The smallest free block that fits is taken, among equals the one freed last. Its excess is split off if a request of
// the same class could use it. A block that is returned merges with its free neighbours.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "core/device.h"

namespace rooflab {

struct Segment;

// A piece of a segment, free or in use.
struct Block {
  char* data;
  int64_t bytes;
  Segment* segment;
  Block* below = nullptr;  // neighbours in the segment
  Block* above = nullptr;
  bool is_free = false;
  Block* previous = nullptr;  // neighbours in its list of FreeBlocks
  Block* next = nullptr;
};

// Free blocks by size. Adding or removing one allocates nothing.
class FreeBlocks {
 public:
  void add(Block* block);
  void remove(Block* block);
  Block* best_fit(int64_t bytes) const;  // null when none is large enough

 private:
  static constexpr int kBins = 448;
  static int bin_of(int64_t bytes);
  Block* first_[kBins] = {};
  uint64_t filled_[kBins / 64] = {};  // one bit per bin, set if it has a block
};

namespace memory {
class Pool;
}

// Blocks that may replace each other: those of one stream, whose order keeps a new user behind the last one, and of one
// pool (null for the general cache).
struct Arena {
  const memory::Pool* pool;
  Stream stream;
  FreeBlocks free[4];  // by size class
};

struct Segment {
  Arena* arena;
  int kind;
  int64_t bytes;
  Block* lowest;
};

// The segments of one device. Not thread-safe.
class Segments {
 public:
  static constexpr int64_t kLargestRequest = int64_t{1} << 62;

  Arena& arena(const memory::Pool* pool, Stream stream);  // made if there is none yet
  Block* take(Arena& arena, int64_t bytes);               // null if a new segment is needed
  void give_back(Block* block) noexcept;

  // How large the new segment should be, and how small it may be.
  static int64_t segment_bytes(int64_t bytes);
  static int64_t least_segment_bytes(int64_t bytes);
  // Adds a segment at `data` for requests of the size class of `bytes`.
  void add(Arena& arena, int64_t bytes, void* data, int64_t segment_bytes);

  // What a destroyed stream or pool has left goes to the default stream, or to the general cache.
  void adopt(Stream gone) noexcept;
  void adopt(const memory::Pool* gone) noexcept;

  // Forgets the oldest segment of the general cache that is wholly free. Its memory then belongs to the caller.
  struct Memory {
    void* data = nullptr;  // null: there is no such segment
    int64_t bytes = 0;
  };
  Memory drop_free() noexcept;

 private:
  Arena* find(const memory::Pool* pool, Stream stream) const noexcept;
  void hand_over(size_t place, const memory::Pool* pool, Stream stream) noexcept;

  std::vector<std::unique_ptr<Arena>> arenas_;
  std::list<Segment> segments_;
};

}  // namespace rooflab
