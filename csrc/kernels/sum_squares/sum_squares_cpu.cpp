// The reference rung of sum_squares on the CPU: see sum_squares.h for what it computes.
#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/sum_squares/sum_squares.h"

namespace rooflab::kernels {

void sum_squares_cpu_v0_reference(const SumSquaresArgs& args, Queue&) {
  double sum = args.continues ? *args.y : 0;
  dispatch_floating(args.dtype, "sum_squares", [&]<class T>() {
    for (int i = 0; i < args.list.count; ++i) {
      const FlatTensor& x = args.list.tensors[i];
      for (int64_t j = 0; j < x.n; ++j) {
        const double number = to_double(static_cast<const T*>(x.data)[j]);
        sum += number * number;
      }
    }
  });
  *args.y = sum;
}

}  // namespace rooflab::kernels
