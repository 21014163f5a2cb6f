// cumsum on the CPU: see cumsum.h for what it computes.
#include <type_traits>

#include "core/dispatch.h"
#include "kernels/common/columns.h"
#include "kernels/common/reference.h"
#include "kernels/cumsum/cumsum.h"

namespace rooflab::kernels {
namespace {

// Lines [first, first + columns) of one outer position. Integers wrap around.
template <class T>
void sum_columns(const CumsumArgs& args, int64_t outer, int64_t first, int64_t columns) {
  using Total = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  using Y = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  const T* x = static_cast<const T*>(args.x) + outer * args.x_outer_stride + first * args.x_inner_stride;
  Y* y = static_cast<Y*>(args.y) + outer * args.y_outer_stride + first * args.y_inner_stride;
  Total totals[kColumns] = {};
  for (int64_t k = 0; k < args.n; ++k)
    for (int64_t c = 0; c < columns; ++c) {
      const T value = x[k * args.x_stride + c * args.x_inner_stride];
      Y& sum = y[k * args.y_stride + c * args.y_inner_stride];
      if constexpr (std::is_integral_v<T>)
        sum = static_cast<Y>(totals[c] += static_cast<uint64_t>(static_cast<int64_t>(value)));
      else
        sum = from_double<T>(totals[c] += to_double(value));
    }
}

}  // namespace

void cumsum_cpu_v0_reference(const CumsumArgs& args, Queue&) {
  dispatch_all(args.dtype, "cumsum", [&]<class T>() {
    for (int64_t outer = 0; outer < args.outer; ++outer)
      for (int64_t i = 0; i < args.inner; ++i) sum_columns<T>(args, outer, i, 1);
  });
}

void cumsum_cpu_v1_parallel(const CumsumArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "cumsum", [&]<class T>() {
    for_columns(queue, args.outer, args.n, args.inner,
                [&](int64_t outer, int64_t first, int64_t columns) { sum_columns<T>(args, outer, first, columns); });
  });
}

}  // namespace rooflab::kernels
