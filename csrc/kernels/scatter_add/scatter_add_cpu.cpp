// scatter_add on the CPU: see scatter_add.h for what it computes.
#include <algorithm>
#include <type_traits>

#include "kernels/common/strided.h"
#include "kernels/gather/share_places.h"
#include "kernels/scatter_add/dispatch_sums.h"

namespace rooflab::kernels {
namespace {

// Integers wrap around.
template <class S, class T>
S add(S sum, T x) {
  if constexpr (std::is_integral_v<S>)
    return static_cast<S>(static_cast<std::make_unsigned_t<S>>(sum) + static_cast<std::make_unsigned_t<S>>(x));
  else if constexpr (sizeof(T) == 2)
    return sum + static_cast<float>(x);
  else
    return sum + x;
}

// Adds, in order, the elements whose position along dimension `shared` is in [begin, end).
template <class T, class S, class I>
void add_part(const ScatterAddArgs& args, int shared, int64_t begin, int64_t end) {
  const int last = args.at.ndim - 1;
  int64_t sizes[kMaxDims];
  std::copy_n(args.at.sizes, args.at.ndim, sizes);
  const int64_t rows = args.at.count / sizes[last] / (shared == last ? 1 : sizes[shared]);
  sizes[shared] = end - begin;
  const int64_t parts = shared == last ? rows : rows * sizes[shared], length = sizes[last];
  const I* index = static_cast<const I*>(args.at.index) + begin * args.at.strides[shared];
  const T* src = static_cast<const T*>(args.src) + begin * args.src_strides[shared];
  S* y = static_cast<S*>(args.y) + begin * args.y_strides[shared];
  const int64_t from_end = args.at.from_end;
  const int64_t index_step = args.at.strides[last], src_step = args.src_strides[last], y_step = args.y_strides[last];
  StridedWalk<3> walk(0, last, sizes, {args.at.strides, args.src_strides, args.y_strides});
  for (int64_t row = 0; row < parts; ++row, walk.next()) {
    const I* own_index = index + walk.offsets[0];
    const T* own_src = src + walk.offsets[1];
    S* own_y = y + walk.offsets[2];
    if (index_step == 0 && src_step == 1 && y_step == 1) {
      own_y += place_of(*own_index, from_end) * args.at.step;
      for (int64_t j = 0; j < length; ++j) own_y[j] = add(own_y[j], own_src[j]);
    } else {
      for (int64_t j = 0; j < length; ++j) {
        S& sum = own_y[j * y_step + place_of(own_index[j * index_step], from_end) * args.at.step];
        sum = add(sum, own_src[j * src_step]);
      }
    }
  }
}

// Calls f(part), where part(shared, begin, end) adds one part.
template <class F>
void with_types(const ScatterAddArgs& args, F&& f) {
  dispatch_sums(args, [&]<class T, class S>() {
    if (args.at.dtype == DType::kInt64)
      f([&](int shared, int64_t begin, int64_t end) { add_part<T, S, int64_t>(args, shared, begin, end); });
    else
      f([&](int shared, int64_t begin, int64_t end) { add_part<T, S, int32_t>(args, shared, begin, end); });
  });
}

}  // namespace

void scatter_add_cpu_v0_reference(const ScatterAddArgs& args, Queue& queue) {
  check_indices(args.at, queue);
  with_types(args, [&](auto part) { part(0, 0, args.at.sizes[0]); });
}

void scatter_add_cpu_v1_parallel(const ScatterAddArgs& args, Queue& queue) {
  check_indices(args.at, queue);
  with_types(args, [&](auto part) { share_places(args.at, args.y_strides, queue, part); });
}

}  // namespace rooflab::kernels
