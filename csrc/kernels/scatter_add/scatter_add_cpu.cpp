// scatter_add on the CPU: see scatter_add.h for what it computes.
#include <algorithm>
#include <atomic>
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

// Calls f(to, from, count) for the elements, in order, whose position along dimension `shared` is in [begin, end): so
// many neighbours in src and in y, often one. Leaves out numbers that are out of range, and returns whether there are
// none.
template <class I, class F>
bool for_each_run(const ScatterAddArgs& args, int shared, int64_t begin, int64_t end, const F& f) {
  const int last = args.at.ndim - 1;
  int64_t sizes[kMaxDims];
  std::copy_n(args.at.sizes, args.at.ndim, sizes);
  const int64_t rows = args.at.count / sizes[last] / (shared == last ? 1 : sizes[shared]);
  sizes[shared] = end - begin;
  const int64_t parts = shared == last ? rows : rows * sizes[shared], length = sizes[last];
  const I* index = static_cast<const I*>(args.at.index) + begin * args.at.strides[shared];
  const int64_t src_begin = begin * args.src_strides[shared], y_begin = begin * args.y_strides[shared];
  const int64_t from_end = args.at.from_end, step = args.at.step;
  const int64_t index_step = args.at.strides[last], src_step = args.src_strides[last], y_step = args.y_strides[last];
  const bool is_row = index_step == 0 && src_step == 1 && y_step == 1;
  const bool is_plain = index_step == 1 && src_step == 1 && y_step == 0 && step == 1 && from_end == 0;
  bool are_inside = true;
  const auto put = [&](int64_t place, int64_t to, int64_t from, auto count) {
    if (static_cast<uint64_t>(place) < static_cast<uint64_t>(args.at.limit))
      f(to + place * step, from, count);
    else
      are_inside = false;
  };
  constexpr std::integral_constant<int64_t, 1> kOne;
  StridedWalk<3> walk(0, last, sizes, {args.at.strides, args.src_strides, args.y_strides});
  for (int64_t row = 0; row < parts; ++row, walk.next()) {
    const I* own_index = index + walk.offsets[0];
    const int64_t from = src_begin + walk.offsets[1], to = y_begin + walk.offsets[2];
    if (is_row)
      put(place_of(*own_index, from_end), to, from, length);
    else if (is_plain)
      for (int64_t j = 0; j < length; ++j) put(own_index[j], to, from + j, kOne);
    else
      for (int64_t j = 0; j < length; ++j)
        put(place_of(own_index[j * index_step], from_end), to + j * y_step, from + j * src_step, kOne);
  }
  return are_inside;
}

template <class T, class S, class I>
bool add_part(const ScatterAddArgs& args, int shared, int64_t begin, int64_t end) {
  const T* src = static_cast<const T*>(args.src);
  S* y = static_cast<S*>(args.y);
  [[maybe_unused]] T* rounded = static_cast<T*>(args.rounded);
  const auto for_each = [&](const auto& f) { return for_each_run<I>(args, shared, begin, end, f); };
  if constexpr (sizeof(T) == 2 && sizeof(S) == 4)
    if (rounded)
      for_each([=](int64_t to, int64_t, auto count) {
        for (int64_t j = 0; j < count; ++j) y[to + j] = static_cast<float>(rounded[to + j]);
      });
  const bool are_inside = for_each([=](int64_t to, int64_t from, auto count) {
    for (int64_t j = 0; j < count; ++j) y[to + j] = add(y[to + j], src[from + j]);
  });
  if constexpr (sizeof(T) == 2 && sizeof(S) == 4)
    if (rounded)
      for_each([=](int64_t to, int64_t, auto count) {
        for (int64_t j = 0; j < count; ++j) rounded[to + j] = T(y[to + j]);
      });
  return are_inside;
}

// Calls f(part), where part(shared, begin, end) adds one part, and returns whether all its numbers are in range.
template <class F>
void with_types(const ScatterAddArgs& args, F&& f) {
  dispatch_sums(args, [&]<class T, class S>() {
    if (args.at.dtype == DType::kInt64)
      f([&](int shared, int64_t begin, int64_t end) { return add_part<T, S, int64_t>(args, shared, begin, end); });
    else
      f([&](int shared, int64_t begin, int64_t end) { return add_part<T, S, int32_t>(args, shared, begin, end); });
  });
}

}  // namespace

// y is new: where an error drops it, nobody sees what was added.
void scatter_add_cpu_v0_reference(const ScatterAddArgs& args, Queue& queue) {
  with_types(args, [&](auto part) {
    if (!part(0, 0, args.at.sizes[0])) check_indices(args.at, queue);
  });
}

void scatter_add_cpu_v1_parallel(const ScatterAddArgs& args, Queue& queue) {
  std::atomic<bool> are_inside = true;
  with_types(args, [&](auto part) {
    share_places(args.at, args.y_strides, queue, [&](int shared, int64_t begin, int64_t end) {
      if (!part(shared, begin, end)) are_inside = false;
    });
  });
  if (!are_inside) check_indices(args.at, queue);  // names the first
}

}  // namespace rooflab::kernels
