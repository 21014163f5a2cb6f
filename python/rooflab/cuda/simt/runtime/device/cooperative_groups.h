// Of cooperative groups: the block, and tiles of at most 32 threads. This is no copy of CUDA's header.
#pragma once

#include "threads.h"
#include "vectors.h"

namespace cooperative_groups {

struct thread_block {
  RL_INLINE void sync(RL_LINE) const { __syncthreads(line); }
  RL_INLINE unsigned thread_rank() const {
    const rl_index at = rl_thread(), of = rl_block_size();
    return (at.z * of.y + at.y) * of.x + at.x;
  }
  RL_INLINE unsigned size() const {
    const rl_index of = rl_block_size();
    return of.x * of.y * of.z;
  }
  RL_INLINE unsigned num_threads() const { return size(); }
  RL_INLINE dim3 group_index() const { return rl_block(); }
  RL_INLINE dim3 thread_index() const { return rl_thread(); }
  RL_INLINE dim3 group_dim() const { return rl_block_size(); }
};
RL_INLINE thread_block this_thread_block() { return {}; }

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
template <class Group, class T, class Operation>
RL_INLINE T reduce(const Group& group, T value, Operation operation, RL_LINE) {
#pragma GCC unroll 5
  for (int change = Group::size() / 2; change > 0; change /= 2)
    value = operation(value, group.shfl_xor(value, change, line));
  return value;
}

}  // namespace cooperative_groups
