// searchsorted on the CPU: see searchsorted.h for what it computes.
#include "core/dispatch.h"
#include "kernels/searchsorted/searchsorted.h"

namespace rooflab::kernels {

void searchsorted_cpu_v0_reference(const SearchsortedArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 1024;  // values that are worth waking a thread for
  dispatch_all(args.dtype, "searchsorted", [&]<class T>() {
    queue.parallel(args.rows * args.m, kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) searchsorted_element<T>(args, i);
    });
  });
}

}  // namespace rooflab::kernels
