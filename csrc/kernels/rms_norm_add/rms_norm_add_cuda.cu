// The CUDA rungs of rms_norm_add: see rms_norm_add.h for what they compute.
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/rms_norm/rms_norm_tile.cuh"
#include "kernels/rms_norm_add/rms_norm_add.h"

namespace rooflab::kernels {
namespace {

template <class T>
__device__ double inverse_rms_of(const T* x, int64_t d, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < d; ++i) squares += static_cast<double>(to_float(x[i])) * to_float(x[i]);
  return 1 / sqrt(squares / d + eps);
}

template <class T>
__global__ void rms_norm_add_cuda_v0_reference_kernel(const __grid_constant__ RmsNormAddArgs args) {
  const T *weight = static_cast<const T*>(args.weight), *next = static_cast<const T*>(args.next_weight);
  const double offset = args.zero_centered;
  const int64_t d = args.d;
  for (int64_t row = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; row < args.n;
       row += int64_t{gridDim.x} * blockDim.x) {
    const T* x = static_cast<const T*>(args.x) + row * args.x_row_stride;
    const T* residual = static_cast<const T*>(args.residual) + row * args.residual_row_stride;
    T* h = static_cast<T*>(args.h) + row * d;
    const double scale = inverse_rms_of(x, d, args.eps);
    for (int64_t i = 0; i < d; ++i) {
      const double gain = static_cast<double>(to_float(weight[i])) + offset;
      h[i] = round_to<T>(static_cast<double>(to_float(residual[i])) + to_float(x[i]) * scale * gain);
    }
    if (!next) continue;
    T* y = static_cast<T*>(args.y) + row * d;
    const double next_scale = inverse_rms_of(h, d, args.eps);
    for (int64_t i = 0; i < d; ++i) {
      const double gain = static_cast<double>(to_float(next[i])) + offset;
      y[i] = round_to<T>(static_cast<double>(to_float(h[i])) * next_scale * gain);
    }
  }
}

// The same by a block's threads, which walk along the row side by side: each meets its own elements again in later
// passes. A block works on blockDim.y rows, and on one where it has more than a warp for each.
template <class T>
__global__ void __launch_bounds__(512)
    rms_norm_add_cuda_v0a_block_per_row_kernel(const __grid_constant__ RmsNormAddArgs args) {
  __shared__ typename BlockReduction<double>::Scratch scratch;
  BlockReduction<double> block(scratch);
  const T *weight = static_cast<const T*>(args.weight), *next = static_cast<const T*>(args.next_weight);
  const double offset = args.zero_centered;
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < args.n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y, d = row < args.n ? args.d : 0;
    const T* x = static_cast<const T*>(args.x) + row * args.x_row_stride;
    const T* residual = static_cast<const T*>(args.residual) + row * args.residual_row_stride;
    T *h = static_cast<T*>(args.h) + row * args.d, *y = static_cast<T*>(args.y) + row * args.d;
    const auto inverse_rms_of_row = [&](const T* values) {
      double squares = 0;
      for (int64_t i = threadIdx.x; i < d; i += blockDim.x)
        squares += static_cast<double>(to_float(values[i])) * to_float(values[i]);
      squares = blockDim.x > kWarp ? block.reduce(squares, 0.0, Add{}) : warp_reduce(squares, Add{}, blockDim.x);
      return 1 / sqrt(squares / args.d + args.eps);
    };
    const double scale = inverse_rms_of_row(x);
    for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
      const double gain = static_cast<double>(to_float(weight[i])) + offset;
      h[i] = round_to<T>(static_cast<double>(to_float(residual[i])) + to_float(x[i]) * scale * gain);
    }
    if (!next) continue;
    const double next_scale = inverse_rms_of_row(h);
    for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
      const double gain = static_cast<double>(to_float(next[i])) + offset;
      y[i] = round_to<T>(static_cast<double>(to_float(h[i])) * next_scale * gain);
    }
  }
}

template <class T, int kVectors, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kMaxRowThreads : shared_block_threads(kVectors),
                                  kBlockPerRow ? 1 : 512 / shared_block_threads(kVectors))
    rms_norm_add_cuda_v1_one_pass_kernel(const __grid_constant__ RmsNormAddArgs args, int row_vectors) {
  using Tile = RowTile<T, kVectors>;
  constexpr int kWidth = Tile::kWidth;
  __shared__ typename BlockReduction<float>::Scratch scratch;
  BlockReduction<float> block(scratch);
  const T *weight = static_cast<const T*>(args.weight), *next = static_cast<const T*>(args.next_weight);
  const float per_element = 1.0f / (row_vectors * kWidth), eps = static_cast<float>(args.eps);
  const float offset = args.zero_centered;
  overlap_launches();
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < args.n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y;
    const int vectors = row < args.n ? row_vectors : 0;
    Tile x, h;  // h holds the residual at first
    x.load(static_cast<const T*>(args.x) + row * args.x_row_stride, vectors, from_float<T>(0.0f));
    h.load(static_cast<const T*>(args.residual) + row * args.residual_row_stride, vectors, from_float<T>(0.0f));
    const float scale = inverse_rms<kBlockPerRow>(x, block, per_element, eps);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int at = (threadIdx.x + v * blockDim.x) * kWidth;
      if (at >= vectors * kWidth) continue;
      const Vector<float, kWidth> gain = load_parameter<kWidth>(weight, at);
      Vector<float, kWidth> sum = to_float(h.vectors[v]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[i] += to_float(x.vectors[v][i]) * scale * (gain[i] + offset);
      h.vectors[v] = from_float<T>(sum);
    }
    h.store(static_cast<T*>(args.h) + row * args.d, vectors, [&](int v, int) { return to_float(h.vectors[v]); });
    if (!next) continue;
    const float next_scale = inverse_rms<kBlockPerRow>(h, block, per_element, eps);
    h.store(static_cast<T*>(args.y) + row * args.d, vectors, [&](int v, int at) {
      const Vector<float, kWidth> gain = load_parameter<kWidth>(next, at);
      Vector<float, kWidth> values = to_float(h.vectors[v]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) values[i] *= next_scale * (gain[i] + offset);
      return values;
    });
  }
}

// A block has a row, and each of its threads one vector. Weights are requested together with the row: few rows do not
// hide a second wait for memory.
template <class T>
__global__ void __launch_bounds__(kMaxRowThreads)
    rms_norm_add_cuda_v2_few_rows_kernel(const __grid_constant__ RmsNormAddArgs args) {
  using Tile = RowTile<T, 1>;
  constexpr int kWidth = Tile::kWidth;
  __shared__ typename BlockReduction<float>::Scratch scratch;
  BlockReduction<float> block(scratch);
  const int64_t row = blockIdx.x;
  const int vectors = static_cast<int>(args.d) / kWidth, at = static_cast<int>(threadIdx.x) * kWidth;
  const bool inside = at < args.d;
  const float per_element = 1.0f / args.d, eps = static_cast<float>(args.eps), offset = args.zero_centered;
  const auto gain_of = [&](const void* weight) {
    return inside && weight ? load_parameter<kWidth>(static_cast<const T*>(weight), at) : Vector<float, kWidth>{};
  };
  overlap_launches();
  Tile x, h;  // h holds the residual at first
  x.load(static_cast<const T*>(args.x) + row * args.x_row_stride, vectors, from_float<T>(0.0f));
  h.load(static_cast<const T*>(args.residual) + row * args.residual_row_stride, vectors, from_float<T>(0.0f));
  const Vector<float, kWidth> gain = gain_of(args.weight), next_gain = gain_of(args.next_weight);
  const float scale = inverse_rms<true>(x, block, per_element, eps);
  Vector<float, kWidth> sum = to_float(h.vectors[0]);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sum[i] += to_float(x.vectors[0][i]) * scale * (gain[i] + offset);
  h.vectors[0] = from_float<T>(sum);
  h.store(static_cast<T*>(args.h) + row * args.d, vectors, [&](int, int) { return to_float(h.vectors[0]); });
  if (!args.next_weight) return;
  const float next_scale = inverse_rms<true>(h, block, per_element, eps);
  h.store(static_cast<T*>(args.y) + row * args.d, vectors, [&](int, int) {
    Vector<float, kWidth> values = to_float(h.vectors[0]);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] *= next_scale * (next_gain[i] + offset);
    return values;
  });
}

}  // namespace

void rms_norm_add_cuda_v0_reference(const RmsNormAddArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "rms_norm_add", [&]<class Element>() {
    queue.launch(rms_norm_add_cuda_v0_reference_kernel<cuda_type_t<Element>>, {grid_for(args.n, 128), 128}, args);
  });
}

void rms_norm_add_cuda_v0a_block_per_row(const RmsNormAddArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "rms_norm_add", [&]<class Element>() {
    const RowTeam team = row_team(args.d);
    queue.launch(rms_norm_add_cuda_v0a_block_per_row_kernel<cuda_type_t<Element>>,
                 {grid_for(args.n, team.rows), {team.lanes, team.rows}}, args);
  });
}

void rms_norm_add_cuda_v1_one_pass(const RmsNormAddArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    const RowPlan plan = plan_rows<T>(args.n, args.d);
    dispatch_row_plan<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
      queue.launch(rms_norm_add_cuda_v1_one_pass_kernel<T, kVectors, kBlockPerRow>,
                   early({plan.blocks, {plan.group, plan.rows_per_block}}, queue), args,
                   static_cast<int>(args.d / kVectorWidth<T>));
    });
  });
}

void rms_norm_add_cuda_v2_few_rows(const RmsNormAddArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    const int64_t warps = (args.d / kVectorWidth<T> + kWarp - 1) / kWarp;
    queue.launch(rms_norm_add_cuda_v2_few_rows_kernel<T>, early({args.n, warps * kWarp}, queue), args);
  });
}

}  // namespace rooflab::kernels
