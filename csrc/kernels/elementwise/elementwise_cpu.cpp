// The reference of the elementwise family on the CPU, and the check of divisors.
#include <algorithm>
#include <atomic>

#include "core/queue.h"
#include "core/zero_division.h"
#include "kernels/elementwise/reference.h"

namespace rooflab::kernels {

void check_divisor(const ElementwiseArgs& args, Queue& queue) {
  if (!divides_integers(args)) return;
  constexpr int64_t kGrain = int64_t{1} << 15;  // elements that are worth waking a thread for
  const ElementwiseOperand& divisor = args.inputs[1];
  std::atomic<bool> is_zero{divisor.data == nullptr && divisor.scalar.integer == 0};
  if (divisor.data != nullptr)
    queue.parallel(args.count, kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t offset[1] = {};
        add_offsets(i, args.ndim, args.sizes, {divisor.strides}, offset);
        if (load_as<int64_t>(divisor.dtype, divisor.data, offset[0]) == 0) is_zero = true;
      }
    });
  if (is_zero) throw ZeroDivision(info(args.op).name);
}

void elementwise_cpu_v0_reference(const ElementwiseArgs& args, Queue& queue) {
  check_divisor(args, queue);
  for (int64_t i = 0; i < args.count; ++i) reference_element(args, i);
}

}  // namespace rooflab::kernels
