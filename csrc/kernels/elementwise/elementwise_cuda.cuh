// The kernels behind v1_strided, v2_vectorised and v2a_gathered, and their launch. Instantiated in
// elementwise_*_cuda.cu.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/queue.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/vector_load.cuh"
#include "kernels/elementwise/functors.h"

namespace rooflab::kernels {

// Threads of a block. An H200 starts a block of these kernels in about 1.3 ns, so a block has to move more than memory
// does in that time. A fill reads nothing, and so takes twice as many threads for it.
constexpr int kElementwiseThreads = 256, kFillThreads = 512;
constexpr int kElementwiseBlocks = 4;  // of kFillThreads on a multiprocessor: a thread of v2 has 32 registers
constexpr int kElementwiseUnroll = 4;  // elements of a thread of v1, a block's width apart: all loads come first

// Elements per thread of v2_vectorised: the wider of input and output moves 16 bytes.
template <class In, class Out>
constexpr int kElementwiseWidth = kVectorWidth<std::conditional_t<(sizeof(In) > sizeof(Out)), In, Out>>;

// Of v2a_gathered, which has more to do for each vector.
template <class In, class Out>
constexpr int kGatheredWidth = elementwise_gathered_width(std::max(sizeof(In), sizeof(Out)));

// Division by a size that is known before the launch, for n < 2^31, by a product and a shift (Granlund and Montgomery,
// 1994).
struct Divider {
  uint32_t multiplier, shift;

  static Divider of(int64_t size) {
    uint32_t shift = 0;
    while ((int64_t{1} << shift) < size) ++shift;
    return {static_cast<uint32_t>((((int64_t{1} << shift) - size) << 32) / size + 1), shift};
  }
  __device__ __forceinline__ uint32_t quotient(uint32_t n) const { return (__umulhi(n, multiplier) + n) >> shift; }
};

// ElementwiseArgs, and what each thread would otherwise compute for itself. What every thread reads lies together at
// the front.
struct ElementwiseLaunch {
  bool is_flat;        // v2: element i of each array lies i elements from its first
  bool is_small;       // every index and offset is below 2^31
  bool repeats[3];     // v2: the operand is a number, or the same element along the last dimension
  bool lies_alike[3];  // v2a: the operand's elements lie as those of out do
  unsigned outcomes;
  int64_t count;        // elements of out
  void* out;            // and the rest, as in args
  const void* data[3];  // of the inputs
  int64_t numbers[3];   // scalars, in the type that is computed in; the first is that of nan_to_num
  ElementwiseArgs args;
  Divider dividers[kMaxDims];
};

enum class ElementwiseRung { kStrided, kVectorised, kGathered };

// The type in which T is computed on the GPU.
template <class T>
using compute_t = std::conditional_t<std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, float, T>;

template <class T>
__device__ __forceinline__ compute_t<T> widen(T value) {
  if constexpr (std::is_same_v<compute_t<T>, T>)
    return value;
  else
    return to_float(value);
}

template <class T, class Compute>
__device__ __forceinline__ T narrow(Compute value) {
  if constexpr (std::is_same_v<compute_t<T>, T>)
    return convert<T>(value);
  else if constexpr (std::is_same_v<Compute, float> || std::is_same_v<Compute, bool>)
    return from_float<T>(value);
  else
    return from_float<T>(round_to_odd(std::conditional_t<std::is_integral_v<Compute>, int64_t, double>(value)));
}

// kWidth elements of an operand as they lie in memory. A number in place of them is converted to T only if T is
// computed in as it is.
template <class T, int kWidth>
struct Loaded {
  static constexpr bool kKeepsNumber = !std::is_same_v<compute_t<T>, T>;
  Packed<T, kWidth> elements;
  compute_t<T> number;
  bool is_number;

  __device__ __forceinline__ compute_t<T> operator[](int i) const {
    return kKeepsNumber && is_number ? number : widen(elements[i]);
  }
};

// The first `valid` elements that begin at `offset`; or the one that lies there, if it repeats; or the scalar.
template <int kWidth, class T, bool kMayBeNumber>
__device__ __forceinline__ Loaded<T, kWidth> load_operand(const ElementwiseLaunch& launch, int k, int64_t offset,
                                                          bool repeats, int valid) {
  const T* from = static_cast<const T*>(launch.data[k]) + offset;
  Loaded<T, kWidth> out;
  out.is_number = kMayBeNumber && launch.data[k] == nullptr;
  if (out.is_number) {
    out.number = reinterpret_cast<const compute_t<T>&>(launch.numbers[k]);
    if constexpr (!Loaded<T, kWidth>::kKeepsNumber)
      out.elements = Packed<T, kWidth>::of([&](int) { return out.number; });
  } else if (repeats) {
    const T same = *from;
    out.elements = Packed<T, kWidth>::of([&](int) { return same; });
  } else {
    out.elements = load_first<kWidth>(from, valid);
  }
  return out;
}

// Whether operand k of an op may be a number: one of two, a bound of clamp, a value of where, or what a fill writes.
constexpr bool may_be_number(ElementwiseOp op, int k) { return arity(op) == 2 || k > 0 || op == ElementwiseOp::kCopy; }

// offsets[u][k] = the offset of element indices[u] in array k. Index is wide enough for all of them.
template <class Index, int kCount, int kArrays>
__device__ __forceinline__ void locate_as(const ElementwiseLaunch& launch, const int64_t (&indices)[kCount],
                                          const int64_t* const (&strides)[kArrays],
                                          int64_t (&offsets)[kCount][kArrays]) {
  Index rest[kCount], found[kCount][kArrays] = {};
#pragma unroll
  for (int u = 0; u < kCount; ++u) rest[u] = static_cast<Index>(indices[u]);
#pragma unroll 1
  for (int d = launch.args.ndim - 1; d >= 0; --d) {
    const Index size = static_cast<Index>(launch.args.sizes[d]);
    const Divider divider = launch.dividers[d];
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      Index index = rest[u];
      if (d > 0) {
        if constexpr (sizeof(Index) == 4)
          rest[u] = static_cast<Index>(divider.quotient(static_cast<uint32_t>(index)));
        else
          rest[u] = index / size;
        index -= rest[u] * size;
      }
#pragma unroll
      for (int k = 0; k < kArrays; ++k) found[u][k] += index * static_cast<Index>(strides[k][d]);
    }
  }
#pragma unroll
  for (int u = 0; u < kCount; ++u)
#pragma unroll
    for (int k = 0; k < kArrays; ++k) offsets[u][k] = found[u][k];
}
template <int kCount, int kArrays>
__device__ __forceinline__ void locate(const ElementwiseLaunch& launch, const int64_t (&indices)[kCount],
                                       const int64_t* const (&strides)[kArrays], int64_t (&offsets)[kCount][kArrays]) {
  if (launch.is_small)
    locate_as<int32_t>(launch, indices, strides, offsets);
  else
    locate_as<int64_t>(launch, indices, strides, offsets);
}

// The result for one element.
template <ElementwiseOp kOp, class Out, class A, class B>
__device__ __forceinline__ Out result(const ElementwiseLaunch& launch, A a, B b, B c) {
  if constexpr (kOp == ElementwiseOp::kWhere)
    return a ? b : c;
  else if constexpr (info(kOp).is_comparison())
    return holds(launch.outcomes, a, b);
  else if constexpr (kOp == ElementwiseOp::kCopy || kOp == ElementwiseOp::kCast)
    return narrow<Out>(a);
  else
    return narrow<Out>(evaluate<kOp>(a, info(kOp).arity > 1 ? b : a, c, reinterpret_cast<const A&>(launch.numbers[0])));
}

// One thread computes kWidth neighbouring elements of out.
template <ElementwiseOp kOp, class First, class In, class Out, int kWidth>
__device__ __forceinline__ void evaluate_vector(const ElementwiseLaunch& launch) {
  let_next_kernel_come();
  constexpr int kArity = info(kOp).arity;
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kWidth;
  if (begin >= launch.count) return;
  const int valid = static_cast<int>(min(launch.count - begin, int64_t{kWidth}));

  int64_t offsets[1][kArity + 1];
  if (launch.is_flat) {
#pragma unroll
    for (int k = 0; k <= kArity; ++k) offsets[0][k] = begin;
  } else {
    const int64_t* strides[kArity + 1] = {launch.args.out_strides};
#pragma unroll
    for (int k = 0; k < kArity; ++k) strides[k + 1] = launch.args.inputs[k].strides;
    locate(launch, {begin}, strides, offsets);
  }
  wait_for_previous_kernel();

  const auto a = load_operand<kWidth, First, may_be_number(kOp, 0)>(launch, 0, offsets[0][1], launch.repeats[0], valid);
  Loaded<In, kWidth> b{}, c{};
  if constexpr (kArity > 1) b = load_operand<kWidth, In, true>(launch, 1, offsets[0][2], launch.repeats[1], valid);
  if constexpr (kArity > 2) c = load_operand<kWidth, In, true>(launch, 2, offsets[0][3], launch.repeats[2], valid);

  Vector<Out, kWidth> out;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) out[i] = result<kOp, Out>(launch, a[i], b[i], c[i]);

  store_first(static_cast<Out*>(launch.out) + offsets[0][0], out, valid);
}

// kWidth elements of operand k: from memory at once if they lie as those of out do, and otherwise one by one.
template <int kWidth, class T>
__device__ __forceinline__ Loaded<T, kWidth> gather_operand(const ElementwiseLaunch& launch, int k, int64_t begin,
                                                            int valid) {
  if (launch.data[k] == nullptr || launch.lies_alike[k])
    return load_operand<kWidth, T, true>(launch, k, begin, false, valid);
  int64_t indices[kWidth], offsets[kWidth][1];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) indices[i] = begin + min(i, valid - 1);
  const int64_t* const strides[1] = {launch.args.inputs[k].strides};
  locate(launch, indices, strides, offsets);
  const T* from = static_cast<const T*>(launch.data[k]);
  return {Packed<T, kWidth>::of([&](int i) { return from[offsets[i][0]]; }), {}, false};
}

// One thread computes kWidth neighbouring elements of out, which has no gaps. Rows may end within them.
template <ElementwiseOp kOp, class First, class In, class Out, int kWidth>
__device__ __forceinline__ void evaluate_gathered(const ElementwiseLaunch& launch) {
  overlap_launches();
  constexpr int kArity = info(kOp).arity;
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kWidth;
  if (begin >= launch.count) return;
  const int valid = static_cast<int>(min(launch.count - begin, int64_t{kWidth}));
  const auto a = gather_operand<kWidth, First>(launch, 0, begin, valid);
  Loaded<In, kWidth> b{}, c{};
  if constexpr (kArity > 1) b = gather_operand<kWidth, In>(launch, 1, begin, valid);
  if constexpr (kArity > 2) c = gather_operand<kWidth, In>(launch, 2, begin, valid);
  Vector<Out, kWidth> out;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) out[i] = result<kOp, Out>(launch, a[i], b[i], c[i]);
  store_first(static_cast<Out*>(launch.out) + begin, out, valid);
}

// Elements of operand k at these offsets, or its scalar.
template <class T, int kCount, int kArrays>
__device__ __forceinline__ void load_elements(const ElementwiseLaunch& launch,
                                              const int64_t (&offsets)[kCount][kArrays], int k,
                                              compute_t<T> (&elements)[kCount]) {
  if (launch.data[k]) {
    T raw[kCount];
#pragma unroll
    for (int u = 0; u < kCount; ++u) raw[u] = static_cast<const T*>(launch.data[k])[offsets[u][k + 1]];
#pragma unroll
    for (int u = 0; u < kCount; ++u) elements[u] = widen(raw[u]);
  } else {
#pragma unroll
    for (int u = 0; u < kCount; ++u) elements[u] = reinterpret_cast<const compute_t<T>&>(launch.numbers[k]);
  }
}

// One thread computes kElementwiseUnroll elements of out, a block's width apart. All arrays may have any strides.
template <ElementwiseOp kOp, class First, class In, class Out>
__device__ __forceinline__ void evaluate_strided(const ElementwiseLaunch& launch) {
  let_next_kernel_come();
  const ElementwiseArgs& args = launch.args;
  constexpr int kArity = info(kOp).arity, kCount = kElementwiseUnroll;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kElementwiseThreads * kCount + threadIdx.x;
  int64_t indices[kCount], offsets[kCount][kArity + 1];
#pragma unroll
  for (int u = 0; u < kCount; ++u) indices[u] = min(begin + u * kElementwiseThreads, args.count - 1);
  const int64_t* strides[kArity + 1] = {args.out_strides};
#pragma unroll
  for (int k = 0; k < kArity; ++k) strides[k + 1] = args.inputs[k].strides;
  locate(launch, indices, strides, offsets);
  wait_for_previous_kernel();

  compute_t<First> a[kCount];
  compute_t<In> b[kCount] = {}, c[kCount] = {};
  load_elements<First>(launch, offsets, 0, a);
  if constexpr (kArity > 1) load_elements<In>(launch, offsets, 1, b);
  if constexpr (kArity > 2) load_elements<In>(launch, offsets, 2, c);
#pragma unroll
  for (int u = 0; u < kCount; ++u)
    if (begin + u * kElementwiseThreads < args.count)
      static_cast<Out*>(args.out)[offsets[u][0]] = result<kOp, Out>(launch, a[u], b[u], c[u]);
}

template <ElementwiseOp kOp, class First, class In, class Out>
__global__ void __launch_bounds__(kElementwiseThreads)
    elementwise_cuda_v1_strided_kernel(const __grid_constant__ ElementwiseLaunch launch) {
  evaluate_strided<kOp, First, In, Out>(launch);
}

template <ElementwiseOp kOp, class First, class In, class Out>
__global__ void __launch_bounds__(kFillThreads, kElementwiseBlocks)
    elementwise_cuda_v2_vectorised_kernel(const __grid_constant__ ElementwiseLaunch launch) {
  evaluate_vector<kOp, First, In, Out, kElementwiseWidth<In, Out>>(launch);
}

template <ElementwiseOp kOp, class First, class In, class Out>
__global__ void __launch_bounds__(kElementwiseThreads)
    elementwise_cuda_v2a_gathered_kernel(const __grid_constant__ ElementwiseLaunch launch) {
  evaluate_gathered<kOp, First, In, Out, kGatheredWidth<In, Out>>(launch);
}

// Whether the number of elements and every offset fit in 32 bits.
inline bool fits_int32(const ElementwiseArgs& args) {
  const auto reaches = [&](const int64_t* strides) {
    int64_t most = 0;
    for (int d = 0; d < args.ndim; ++d) most += (args.sizes[d] - 1) * (strides[d] < 0 ? -strides[d] : strides[d]);
    return most <= INT32_MAX;
  };
  bool fits = args.count <= INT32_MAX && reaches(args.out_strides);
  for (int k = 0; k < info(args.op).arity; ++k) fits &= !args.inputs[k].data || reaches(args.inputs[k].strides);
  return fits;
}

inline ElementwiseLaunch prepared(const ElementwiseArgs& args) {
  const int inner = args.ndim - 1;
  ElementwiseLaunch launch{.is_flat = inner == 0 && args.out_strides[0] == 1,
                           .is_small = fits_int32(args),
                           .repeats = {},
                           .lies_alike = {},
                           .outcomes = outcomes(args.op),
                           .count = args.count,
                           .out = args.out,
                           .data = {},
                           .numbers = {},
                           .args = args,
                           .dividers = {}};
  for (int k = 0; k < arity(args.op); ++k) {
    const ElementwiseOperand& input = args.inputs[k];
    launch.data[k] = input.data;
    launch.is_flat &= input.data == nullptr || input.strides[0] == 1;
    launch.repeats[k] = input.data == nullptr || input.strides[inner] == 0;
    launch.lies_alike[k] = elementwise_lies_alike(args, k);
  }
  for (int d = 1; d < args.ndim; ++d) launch.dividers[d] = Divider::of(launch.is_small ? args.sizes[d] : 1);
  return launch;
}

template <ElementwiseOp kOp, class First, class In, class Out>
void launch_elementwise(const ElementwiseArgs& args, Queue& queue, ElementwiseRung rung) {
  ElementwiseLaunch launch = prepared(args);
  const auto set_number = [&](int k, const ElementwiseScalar& scalar) {
    const compute_t<In> number = scalar_as<compute_t<In>>(scalar);
    std::memcpy(&launch.numbers[k], &number, sizeof(number));
  };
  for (int k = 0; k < info(kOp).arity; ++k)
    if (args.inputs[k].data == nullptr) set_number(k, args.inputs[k].scalar);
  if (kOp == ElementwiseOp::kNanToNum) set_number(0, args.number);
  const auto start = [&](auto kernel, int threads, int64_t each) {
    const int64_t per_block = threads * each;
    queue.launch(kernel, early({(args.count + per_block - 1) / per_block, threads}, queue), launch);
  };
  if (rung == ElementwiseRung::kStrided)
    return start(elementwise_cuda_v1_strided_kernel<kOp, First, In, Out>, kElementwiseThreads, kElementwiseUnroll);
  if constexpr (info(kOp).arity > 1)
    if (rung == ElementwiseRung::kGathered)
      return start(elementwise_cuda_v2a_gathered_kernel<kOp, First, In, Out>, kElementwiseThreads,
                   kGatheredWidth<In, Out>);
  const bool fills = kOp == ElementwiseOp::kCopy && args.inputs[0].data == nullptr;
  start(elementwise_cuda_v2_vectorised_kernel<kOp, First, In, Out>, fills ? kFillThreads : kElementwiseThreads,
        kElementwiseWidth<In, Out>);
}

// One for each source file, which compiles part of the family.
void launch_unary(const ElementwiseArgs& args, Queue& queue, ElementwiseRung);
void launch_binary(const ElementwiseArgs& args, Queue& queue, ElementwiseRung);
void launch_movement(const ElementwiseArgs& args, Queue& queue, ElementwiseRung);

}  // namespace rooflab::kernels
