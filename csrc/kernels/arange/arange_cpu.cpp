// arange on the CPU: see arange.h for what it computes.
#include "kernels/arange/arange_element.h"

namespace rooflab::kernels {
namespace {

// The dtype is known to the loop, which can then be vectorised.
template <class T>
void write(const ArangeArgs& args, int64_t begin, int64_t end) {
  T* const y = static_cast<T*>(args.y);
  if (args.in_integers)
    for (int64_t i = begin; i < end; ++i) y[i] = as_element<T>(integer_of(args, i));
  else
    for (int64_t i = begin; i < end; ++i) y[i] = as_element<T>(real_of(args, i));
}

}  // namespace

void arange_cpu_v0_reference(const ArangeArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 16384;  // elements that are worth waking a thread for
  queue.parallel(args.count, kGrain, [&](int64_t begin, int64_t end, int) {
    with_type(args.dtype, [&]<class T>(T) { write<T>(args, begin, end); });
  });
}

}  // namespace rooflab::kernels
