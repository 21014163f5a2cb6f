// Rows of a (rows, D) matrix, held in registers while a group of threads works on them, so that each is read only once.
// A group is 1 to 32 neighbouring lanes (several rows per block) or a whole block (one row). A thread holds up to eight
// vectors of 16 bytes, or 32 elements, a group's width apart, and all its loads are in flight before the first is used.
// Rows are read and written once, so they are the first to be evicted from the caches.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/dispatch.h"
#include "kernels/common/alignment.h"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {

// How rows are assigned to threads; a block is (group, rows_per_block) threads.
struct RowPlan {
  int vectors;  // per thread
  int group;    // threads per row
  int rows_per_block;
  bool block_per_row;  // the group may be wider than a warp
  int64_t blocks;
};

// Threads of a block with several rows. An H200 starts a block in 1.3 ns, in which memory moves 5 KB, so a block has to
// move more than that.
constexpr int shared_block_threads(int vectors) { return vectors == 1 ? 256 : 128; }
template <class T>
constexpr int kBlockVectors = 32 / kVectorWidth<T>;

// One block for every `per_block` items, up to the largest grid: kernels stride over the rest.
inline int64_t grid_for(int64_t items, int64_t per_block = 1) {
  return std::min<int64_t>((items + per_block - 1) / per_block, INT32_MAX);
}

// Threads for a block that walks over a row of D element by element.
inline int64_t row_threads(int64_t d) { return std::clamp<int64_t>((d + 255) / 256 * kWarp, kWarp, 512); }

// Threads for rows of any width: a block for a row, or where rows are narrow, up to 32 lanes for each of the block's.
struct RowTeam {
  int64_t lanes, rows;  // of a block
};
inline RowTeam row_team(int64_t d) {
  constexpr int64_t kElementsOfLane = 4, kThreadsOfTeams = 256;
  const int64_t lanes =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>((d + kElementsOfLane - 1) / kElementsOfLane)));
  return lanes > kWarp ? RowTeam{row_threads(d), 1} : RowTeam{lanes, kThreadsOfTeams / lanes};
}

// A thread holds up to `wanted_vectors` vectors, or more where a warp can then still hold the row. A row gets eight
// lanes or more where possible (a line of 128 bytes).
template <class T>
RowPlan plan_rows(int64_t rows, int64_t d, int wanted_vectors = 3) {
  const int row_vectors = static_cast<int>(d / kVectorWidth<T>);
  RowPlan plan{};
  if (row_vectors <= 5 * kWarp) {
    plan.group = 1;
    while (plan.group < std::min(row_vectors, 8) || (plan.group < kWarp && plan.group * wanted_vectors < row_vectors))
      plan.group *= 2;
    plan.vectors = (row_vectors + plan.group - 1) / plan.group;
    plan.rows_per_block = shared_block_threads(plan.vectors) / plan.group;
  } else {
    plan.vectors = kBlockVectors<T>;
    plan.group = (row_vectors + plan.vectors * kWarp - 1) / (plan.vectors * kWarp) * kWarp;
    plan.rows_per_block = 1;
    plan.block_per_row = true;
  }
  plan.blocks = grid_for(rows, plan.rows_per_block);
  return plan;
}

// Calls launch.operator()<kVectors, kBlockPerRow>() as the plan says.
template <class T, class Launch>
void dispatch_row_plan(const RowPlan& plan, Launch&& launch) {
  if (plan.block_per_row) return launch.template operator()<kBlockVectors<T>, true>();
  switch (plan.vectors) {
    case 1: return launch.template operator()<1, false>();
    case 2: return launch.template operator()<2, false>();
    case 3: return launch.template operator()<3, false>();
    case 4: return launch.template operator()<4, false>();
    default: return launch.template operator()<5, false>();
  }
}

// Who works on a row that does not consist of aligned vectors: a few lanes of a warp, a warp, or a block.
enum class RowOwner { kLanes, kWarp, kBlock };

constexpr int kElementRowThreads = kMaxRowThreads / 2;  // the most of a block with one such row
static_assert(kMaxElementRow == 16 * kElementRowThreads);
constexpr int kLaneRow = 128, kWarpRow = 1024;  // elements of the longest row of a few lanes, and of a warp
constexpr int64_t kFewRows = 1536;              // fewer rows get more threads each: they would not fill an H200

// Threads of a block at most, and how many blocks the registers of an SM hold at least.
constexpr int element_row_threads(RowOwner owner) { return owner == RowOwner::kBlock ? kElementRowThreads : 128; }
constexpr int element_row_blocks(RowOwner owner, int elements) {
  if (owner == RowOwner::kBlock) return 2;
  return elements < 12 ? 8 : elements < 24 ? 7 : elements < 32 ? 5 : 4;
}

// Such rows are accessed element by element, neighbouring threads on neighbouring elements: a vector of the plan is one
// element. A warp needs no other warp to reduce its row, and its lanes' elements lie at distances that are known when
// the code is compiled.
inline RowPlan plan_element_rows(int64_t rows, int64_t d) {
  const bool is_few = rows < kFewRows;
  RowPlan plan{};
  if (d <= kLaneRow) {
    plan.vectors = 8;
    plan.group = static_cast<int>(std::bit_ceil(static_cast<unsigned>((d + 7) / 8)));
  } else if (d <= (is_few ? kWarpRow / 2 : kWarpRow)) {
    plan.group = kWarp;
    for (plan.vectors = 8; plan.vectors * kWarp < d;) plan.vectors += plan.vectors < 16 ? 4 : 8;
  } else {
    plan.vectors = is_few && d <= 8 * kElementRowThreads ? 8 : 16;
    plan.block_per_row = true;
    plan.group = static_cast<int>((d + plan.vectors * kWarp - 1) / (plan.vectors * kWarp)) * kWarp;
  }
  plan.rows_per_block = plan.block_per_row ? 1 : element_row_threads(RowOwner::kWarp) / plan.group;
  plan.blocks = grid_for(rows, plan.rows_per_block);
  return plan;
}

// Calls launch.operator()<kElements, kOwner>() as the plan says.
template <class Launch>
void dispatch_element_rows(const RowPlan& plan, Launch&& launch) {
  if (plan.block_per_row && plan.vectors == 8) return launch.template operator()<8, RowOwner::kBlock>();
  if (plan.block_per_row) return launch.template operator()<16, RowOwner::kBlock>();
  if (plan.group < kWarp) return launch.template operator()<8, RowOwner::kLanes>();
  switch (plan.vectors) {
    case 8: return launch.template operator()<8, RowOwner::kWarp>();
    case 12: return launch.template operator()<12, RowOwner::kWarp>();
    case 16: return launch.template operator()<16, RowOwner::kWarp>();
    case 24: return launch.template operator()<24, RowOwner::kWarp>();
    default: return launch.template operator()<32, RowOwner::kWarp>();
  }
}

// Calls launch.operator()<T>() for the element types that tiles hold.
template <class Launch>
void dispatch_tile_type(DType dtype, Launch&& launch) {
  dispatch_float(dtype, "row tile", [&]<class T>() { launch.template operator()<cuda_type_t<T>>(); });
}

// What one thread holds of a row: vectors of kVectorElements, kGroup apart (0: as many as threads work on the row).
// kByWarp: those of a warp are neighbours instead, so that they lie at constant distances in each of its threads.
template <class T, int kVectors, int kVectorElements = kVectorWidth<T>, int kGroup = 0, bool kByWarp = false>
struct RowTile {
  static constexpr int kWidth = kVectorElements;
  // Rows that are accessed element by element begin anywhere: their accesses share sectors, which the caches keep.
  static constexpr CachePolicy kPolicy = kWidth == 1 ? CachePolicy::kCached : CachePolicy::kStreaming;
  Vector<T, kWidth> vectors[kVectors];

  // Vector v is vector number place(v) of the row.
  __device__ __forceinline__ static int place(int v) {
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (kByWarp)
      return thread / kWarp * (kWarp * kVectors) + thread % kWarp + v * kWarp;
    else
      return thread + v * (kGroup > 0 ? kGroup : static_cast<int>(blockDim.x));
  }

  // Elements past the row's end become `fill`, which should be neutral in the computation.
  __device__ __forceinline__ void load(const T* row, int row_vectors, T fill) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (place(v) < row_vectors)
        vectors[v] = load_vector<kWidth, kPolicy>(row + place(v) * kWidth);
      else
        fill_vector(vectors[v], fill);
    }
  }

  // Writes result(v, at), kWidth floats, at the place of vector v, whose first element is number `at` of the row.
  template <class Result>
  __device__ __forceinline__ static void store(T* row, int row_vectors, Result&& result) {
    if constexpr (kWidth == 1 && kByWarp) {
      // All results are made before the first is written, with `at` = 0 where there is no element v: neither a branch
      // nor a write keeps the elements of a weight that they read from being under way together. Vectors need no such
      // help, and would need more registers.
      T out[kVectors];
#pragma unroll
      for (int v = 0; v < kVectors; ++v) out[v] = from_float<T>(result(v, place(v) < row_vectors ? place(v) : 0)[0]);
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
        if (place(v) < row_vectors) row[place(v)] = out[v];
    } else {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (place(v) >= row_vectors) continue;
        const Vector<float, kWidth> out = result(v, place(v) * kWidth);
        store_vector<kPolicy>(row + place(v) * kWidth, from_float<T>(out));
      }
    }
  }
};

// The elements of a weight or bias that belong to a vector. L1 keeps them between rows, because registers are scarce.
template <int kWidth, class T>
__device__ __forceinline__ Vector<float, kWidth> load_parameter(const T* parameter, int at) {
  return to_float(load_vector<kWidth>(parameter + at));
}

}  // namespace rooflab::kernels
