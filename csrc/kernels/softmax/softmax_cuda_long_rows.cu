// The CUDA rungs of softmax for rows that registers do not hold: see softmax.h for what they compute.
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/row_split.h"
#include "kernels/common/row_tile.cuh"
#include "kernels/common/row_vectors.cuh"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels {
namespace {

constexpr int kRowThreads = 512;  // of a block with one row

// What becomes of an element of a row whose maximum and sum are known.
template <class A>
struct RowEnd {
  bool logarithm;
  A shift, last;

  __device__ __forceinline__ RowEnd(MaxSum<A> row, bool logarithm)
      : logarithm(logarithm), shift(finite_shift(row.maximum)), last(logarithm ? log(row.sum) : A{1} / row.sum) {}

  template <class T>
  __device__ __forceinline__ T result(A x) const {
    return round_to<T>(logarithm ? x - shift - last : exp_as<T>(x - shift) * last);
  }
};

// Some vectors of a row, and the elements outside of its vectors that are taken with them. The block keeps the first
// `held_count` vectors in shared memory; each thread reads there what it wrote itself.
template <class T, int kWidth>
struct RowPiece {
  using A = accumulator_t<T>;
  static constexpr int kLoads = kWidth > 1 ? 4 : 8;  // in flight

  RowVectors<T, kWidth> vectors;
  int64_t begin, end;
  int outside;
  Vector<T, kWidth>* held = nullptr;
  int64_t held_count = 0;

  __device__ __forceinline__ RowPiece(const T* row, int64_t d, int64_t piece = 0, int64_t pieces = 1)
      : vectors(row, d),
        begin(vectors.count * piece / pieces),
        end(vectors.count * (piece + 1) / pieces),
        outside(piece == 0 ? vectors.outside : 0) {}

  __device__ __forceinline__ static Vector<A, kWidth> accumulated(const Vector<T, kWidth>& vector) {
    if constexpr (std::is_same_v<A, T>)
      return vector;
    else
      return to_float(vector);
  }

  // What the thread finds in its share of the piece.
  __device__ __forceinline__ MaxSum<A> max_sum(const T* row) const {
    LongMaxSum<A> own;
    for (int64_t i = begin + threadIdx.x; i < end; i += kLoads * blockDim.x) {
      Vector<T, kWidth> loaded[kLoads];
#pragma unroll
      for (int u = 0; u < kLoads; ++u)
        if (i + u * blockDim.x < end) loaded[u] = load_vector<kWidth>(row + vectors.begin(i + u * blockDim.x));
      A values[kLoads * kWidth];
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        const int64_t place = i + u * blockDim.x - begin;
        if (place < min(end - begin, held_count)) held[place] = loaded[u];
        const auto vector = accumulated(loaded[u]);
#pragma unroll
        for (int e = 0; e < kWidth; ++e)
          values[u * kWidth + e] = place < end - begin ? vector[e] : -static_cast<A>(INFINITY);
      }
      own.template add<T>(values);
    }
    if (threadIdx.x < outside) {
      const A values[] = {static_cast<A>(to_float(row[vectors.outside_at(threadIdx.x)]))};
      own.template add<T>(values);
    }
    return own.value();
  }

  // Writes the results of the thread's share.
  __device__ __forceinline__ void finish(const T* row, T* out, const RowEnd<A>& result) const {
    for (int64_t i = begin + threadIdx.x; i < end; i += kLoads * blockDim.x) {
      Vector<T, kWidth> loaded[kLoads];
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        const int64_t place = i + u * blockDim.x;
        if (place - begin < held_count)
          loaded[u] = held[min(place, end - 1) - begin];
        else if (place < end)
          loaded[u] = load_vector<kWidth, CachePolicy::kStreaming>(row + vectors.begin(place));
      }
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        const auto values = accumulated(loaded[u]);
        Vector<T, kWidth> results;
#pragma unroll
        for (int e = 0; e < kWidth; ++e) results[e] = result.template result<T>(values[e]);
        if (i + u * blockDim.x < end)
          store_vector<CachePolicy::kStreaming>(out + vectors.begin(i + u * blockDim.x), results);
      }
    }
    if (threadIdx.x < outside) {
      const int64_t at = vectors.outside_at(threadIdx.x);
      out[at] = result.template result<T>(static_cast<A>(to_float(row[at])));
    }
  }
};

template <class T>
__global__ void __launch_bounds__(kRowThreads, 2)
    softmax_cuda_v2b_long_rows_kernel(const T* x, T* y, int64_t n, int64_t d, int64_t x_row_stride, int64_t held_count,
                                      bool logarithm) {
  constexpr int kWidth = kVectorWidth<T>;
  extern __shared__ __align__(16) unsigned char held[];
  __shared__ typename BlockReduction<MaxSum<float>>::Scratch scratch;
  BlockReduction<MaxSum<float>> block(scratch);
  overlap_launches();
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x) {
    const T* in = x + row * x_row_stride;
    RowPiece<T, kWidth> whole(in, d);
    whole.held = reinterpret_cast<Vector<T, kWidth>*>(held);
    whole.held_count = held_count;
    const MaxSum<float> all = block.reduce(whole.max_sum(in), nothing<float>(), MergeMaxSum{});
    whole.finish(in, y + row * d, RowEnd<float>(all, logarithm));
  }
}

// partial[row, split] = maximum and sum of the split.
template <class T, int kWidth, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kThreads)
    softmax_cuda_v3_parts_kernel(const T* x, MaxSum<A>* partial, int64_t d, int64_t x_row_stride) {
  __shared__ typename BlockReduction<MaxSum<A>>::Scratch scratch;
  const T* in = x + blockIdx.x * x_row_stride;
  const RowPiece<T, kWidth> piece(in, d, blockIdx.y, gridDim.y);
  const MaxSum<A> all = BlockReduction<MaxSum<A>>(scratch).reduce(piece.max_sum(in), nothing<A>(), MergeMaxSum{});
  if (threadIdx.x == 0) partial[blockIdx.x * int64_t{gridDim.y} + blockIdx.y] = all;
}

template <class T, int kWidth, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kThreads)
    softmax_cuda_v3_split_rows_kernel(const T* x, T* y, const MaxSum<A>* partial, int64_t d, int64_t x_row_stride,
                                      bool logarithm) {
  __shared__ typename BlockReduction<MaxSum<A>>::Scratch scratch;
  wait_for_previous_kernel();
  MaxSum<A> all = nothing<A>();
  for (int split = threadIdx.x; split < gridDim.y; split += kThreads)
    all = MergeMaxSum{}(all, partial[blockIdx.x * int64_t{gridDim.y} + split]);
  all = BlockReduction<MaxSum<A>>(scratch).reduce(all, nothing<A>(), MergeMaxSum{});
  const T* in = x + blockIdx.x * x_row_stride;
  const RowPiece<T, kWidth> piece(in, d, blockIdx.y, gridDim.y);
  piece.finish(in, y + blockIdx.x * d, RowEnd<A>(all, logarithm));
}

template <class T, int kWidth>
void launch_split_rows(const SoftmaxArgs& args, Queue& queue) {
  using A = accumulator_t<T>;
  const int64_t splits = row_splits(args.n, args.d);
  const auto x = static_cast<const T*>(args.x);
  auto* partial = queue.scratch<MaxSum<A>>(args.n * splits);
  LaunchShape shape{{args.n, splits}, kThreads};
  queue.launch(softmax_cuda_v3_parts_kernel<T, kWidth>, shape, x, partial, args.d, args.x_row_stride);
  shape.early = can_launch_early(queue);
  queue.launch(softmax_cuda_v3_split_rows_kernel<T, kWidth>, shape, x, static_cast<T*>(args.y), partial, args.d,
               args.x_row_stride, args.logarithm);
}

}  // namespace

void softmax_cuda_v2b_long_rows(const SoftmaxArgs& args, Queue& queue) {
  const int64_t held_bytes = softmax_held_bytes(args, queue.target());
  dispatch_float(args.dtype, "softmax", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    queue.launch(softmax_cuda_v2b_long_rows_kernel<T>, early({grid_for(args.n), kRowThreads, held_bytes}, queue),
                 static_cast<const T*>(args.x), static_cast<T*>(args.y), args.n, args.d, args.x_row_stride,
                 held_bytes / 16, args.logarithm);
  });
}

void softmax_cuda_v3_split_rows(const SoftmaxArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "softmax", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    if (softmax_rows_lie_alike(args)) return launch_split_rows<T, kVectorWidth<T>>(args, queue);
    launch_split_rows<T, 1>(args, queue);
  });
}

}  // namespace rooflab::kernels
