// Cooperative groups within a block, and the grid's numbers. This is no copy of CUDA's header.
#pragma once

#include "integers.h"
#include "threads.h"
#include "vectors.h"

namespace cooperative_groups {

struct thread_block {
  RL_INLINE static void sync(RL_LINE) { __syncthreads(line); }
  RL_INLINE static unsigned thread_rank() {
    const rl_index at = rl_thread(), of = rl_block_size();
    return (at.z * of.y + at.y) * of.x + at.x;
  }
  RL_INLINE static unsigned size() {
    const rl_index of = rl_block_size();
    return of.x * of.y * of.z;
  }
  RL_INLINE static unsigned num_threads() { return size(); }
  RL_INLINE static dim3 group_index() { return rl_block(); }
  RL_INLINE static dim3 thread_index() { return rl_thread(); }
  RL_INLINE static dim3 group_dim() { return rl_block_size(); }
  RL_INLINE static dim3 dim_threads() { return rl_block_size(); }
};
RL_INLINE thread_block this_thread_block() { return {}; }

// All blocks. To wait for all of them a GPU needs a launch of its own kind.
struct grid_group {
  template <class T = void>
  RL_INLINE static void sync() {
    static_assert(!__is_same(T, void), "the sync of a grid is not supported: end the kernel, and launch a second one");
  }
  RL_INLINE static unsigned long long block_rank() {
    const rl_index at = rl_block(), of = rl_grid_size();
    return ((unsigned long long)at.z * of.y + at.y) * of.x + at.x;
  }
  RL_INLINE static unsigned long long num_blocks() {
    const rl_index of = rl_grid_size();
    return (unsigned long long)of.x * of.y * of.z;
  }
  RL_INLINE static unsigned long long thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  RL_INLINE static unsigned long long size() { return num_blocks() * thread_block::size(); }
  RL_INLINE static unsigned long long num_threads() { return size(); }
  RL_INLINE static dim3 block_index() { return rl_block(); }
  RL_INLINE static dim3 dim_blocks() { return rl_grid_size(); }
};
RL_INLINE grid_group this_grid() { return {}; }

// Some lanes of a warp, by their mask. Its ranks are those lanes in their order.
struct coalesced_group {
  unsigned lanes;
  RL_INLINE unsigned thread_rank() const { return __popc(lanes & ((1u << rl_lane()) - 1)); }
  RL_INLINE unsigned size() const { return __popc(lanes); }
  RL_INLINE unsigned num_threads() const { return size(); }
  RL_INLINE void sync(RL_LINE) const { __syncwarp(lanes, line); }
  template <class T>
  RL_INLINE T shfl(T value, unsigned from, RL_LINE) const {
    return __shfl_sync(lanes, value, rl_lane_of_rank(lanes, from % size()), 32, line);
  }
  template <class T>
  RL_INLINE T shfl_up(T value, unsigned distance, RL_LINE) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank < distance ? rank : rank - distance, line);
  }
  template <class T>
  RL_INLINE T shfl_down(T value, unsigned distance, RL_LINE) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank + distance < size() ? rank + distance : rank, line);
  }
  RL_INLINE int any(int predicate, RL_LINE) const { return __any_sync(lanes, predicate, line); }
  RL_INLINE int all(int predicate, RL_LINE) const { return __all_sync(lanes, predicate, line); }
  RL_INLINE unsigned ballot(int predicate, RL_LINE) const {
    return rl_by_rank(lanes, __ballot_sync(lanes, predicate, line));
  }
  template <class T>
  RL_INLINE unsigned match_any(T value, RL_LINE) const {
    return rl_by_rank(lanes, __match_any_sync(lanes, value, line));
  }
  template <class T>
  RL_INLINE unsigned match_all(T value, int& all, RL_LINE) const {
    return rl_by_rank(lanes, __match_all_sync(lanes, value, &all, line));
  }
};
RL_INLINE coalesced_group coalesced_threads(RL_LINE) { return {__activemask(line)}; }

template <unsigned Size>
struct rl_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
  RL_INLINE unsigned thread_rank() const { return rl_lane() % Size; }
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  RL_INLINE void sync(RL_LINE) const { __syncwarp(mask(), line); }
  template <class T>
  RL_INLINE T shfl(T value, int from, RL_LINE) const {
    return __shfl_sync(mask(), value, from, Size, line);
  }
  template <class T>
  RL_INLINE T shfl_up(T value, unsigned distance, RL_LINE) const {
    return __shfl_up_sync(mask(), value, distance, Size, line);
  }
  template <class T>
  RL_INLINE T shfl_down(T value, unsigned distance, RL_LINE) const {
    return __shfl_down_sync(mask(), value, distance, Size, line);
  }
  template <class T>
  RL_INLINE T shfl_xor(T value, int change, RL_LINE) const {
    return __shfl_xor_sync(mask(), value, change, Size, line);
  }
  RL_INLINE int any(int predicate, RL_LINE) const { return __any_sync(mask(), predicate, line); }
  RL_INLINE int all(int predicate, RL_LINE) const { return __all_sync(mask(), predicate, line); }
  RL_INLINE unsigned ballot(int predicate, RL_LINE) const { return __ballot_sync(mask(), predicate, line) >> first(); }
  template <class T>
  RL_INLINE unsigned match_any(T value, RL_LINE) const {
    return __match_any_sync(mask(), value, line) >> first();
  }
  template <class T>
  RL_INLINE unsigned match_all(T value, int& all, RL_LINE) const {
    return __match_all_sync(mask(), value, &all, line) >> first();
  }
  RL_INLINE operator coalesced_group() const { return {mask()}; }

 private:
  RL_INLINE unsigned first() const { return rl_lane() / Size * Size; }
  RL_INLINE unsigned mask() const { return (unsigned)(((1ul << Size) - 1) << first()); }
};
// Which of the tiles of its parent, a block or a larger tile, it is.
template <unsigned Size, class Parent = void>
struct thread_block_tile : rl_tile<Size> {
  RL_INLINE unsigned meta_group_rank() const { return Parent().thread_rank() / Size; }
  RL_INLINE unsigned meta_group_size() const { return (Parent().size() + Size - 1) / Size; }
};
template <unsigned Size>
struct thread_block_tile<Size, void> : rl_tile<Size> {  // of any parent, as a function's parameter is
  thread_block_tile() = default;
  template <class Parent>
  RL_INLINE thread_block_tile(const thread_block_tile<Size, Parent>& from)
      : rank(from.meta_group_rank()), count(from.meta_group_size()) {}
  RL_INLINE unsigned meta_group_rank() const { return rank; }
  RL_INLINE unsigned meta_group_size() const { return count; }

 private:
  unsigned rank, count;
};
template <unsigned Size, class Parent>
RL_INLINE thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

// The lanes of a group that say the same.
RL_INLINE coalesced_group labeled_partition(const coalesced_group& group, int label, RL_LINE) {
  return {__match_any_sync(group.lanes, label, line)};
}
RL_INLINE coalesced_group binary_partition(const coalesced_group& group, bool label, RL_LINE) {
  return labeled_partition(group, label, line);
}

// Any of the above, by its lanes; the block has none.
struct thread_group {
  RL_INLINE thread_group(thread_block) : lanes(0) {}
  RL_INLINE thread_group(coalesced_group from) : lanes(from.lanes) {}
  template <unsigned Size>
  RL_INLINE thread_group(const rl_tile<Size>& from) : thread_group((coalesced_group)from) {}
  RL_INLINE unsigned thread_rank() const {
    return lanes ? coalesced_group{lanes}.thread_rank() : thread_block::thread_rank();
  }
  RL_INLINE unsigned size() const { return lanes ? __popc(lanes) : thread_block::size(); }
  RL_INLINE unsigned num_threads() const { return size(); }
  RL_INLINE void sync(RL_LINE) const {
    if (lanes)
      __syncwarp(lanes, line);
    else
      __syncthreads(line);
  }

 private:
  unsigned lanes;
};
// Tiles of a block or of a tile, of 1, 2, 4, 8, 16 or 32 threads.
RL_INLINE thread_group tiled_partition(const thread_group&, unsigned size) {
  return coalesced_group{(unsigned)(((1ul << size) - 1) << rl_lane() / size * size)};
}

template <class Group>
RL_INLINE void sync(const Group& group, RL_LINE) {
  group.sync(line);
}

template <class T>
struct plus {
  RL_INLINE T operator()(T x, T y) const { return x + y; }
};
template <class T>
struct less {
  RL_INLINE T operator()(T x, T y) const { return y < x ? y : x; }
};
template <class T>
struct greater {
  RL_INLINE T operator()(T x, T y) const { return x < y ? y : x; }
};
#define RL_OF_BITS(NAME, SIGN)                                  \
  template <class T>                                            \
  struct NAME {                                                 \
    RL_INLINE T operator()(T x, T y) const { return x SIGN y; } \
  };
RL_OF_BITS(bit_and, &)
RL_OF_BITS(bit_or, |)
RL_OF_BITS(bit_xor, ^)
template <class T, class Operation>
RL_INLINE T reduce(const coalesced_group& group, T value, Operation operation, RL_LINE) {
  T made = group.shfl(value, 0, line);
  for (unsigned rank = 1; rank < group.size(); ++rank) made = operation(made, group.shfl(value, rank, line));
  return made;
}
template <class Group, class T, class Operation>
RL_INLINE T reduce(const Group& group, T value, Operation operation, RL_LINE) {
#pragma GCC unroll 5
  for (int change = Group::size() / 2; change > 0; change /= 2)
    value = operation(value, group.shfl_xor(value, change, line));
  return value;
}

}  // namespace cooperative_groups
