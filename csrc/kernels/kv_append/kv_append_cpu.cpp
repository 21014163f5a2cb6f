// kv_append on the CPU: see kv_append.h.
#include <algorithm>
#include <cstring>

#include "kernels/kv_append/kv_append.h"

namespace rooflab::kernels {
namespace {

int64_t checked_position(const KvAppendArgs& args) {
  const int64_t position = *args.position;
  if (position < 0) raise(out_of_range(position));
  return position;
}

void copy_elements(void* to, int64_t to_at, const void* from, int64_t from_at, int64_t count, int64_t size) {
  std::memcpy(static_cast<char*>(to) + to_at * size, static_cast<const char*>(from) + from_at * size, count * size);
}

}  // namespace

void kv_append_cpu_v0_reference(const KvAppendArgs& args, Queue&) {
  const int64_t position = checked_position(args), size = size_of(args.dtype);
  for (int64_t n = 0; n < args.batch * args.heads * args.tokens(); ++n) {
    const KvAppendRow row(args, position, n);
    for (int64_t d = 0; d < args.head_size; ++d) {
      copy_elements(args.k_cache, row.k_to + d, args.k, row.k_from + d, 1, size);
      copy_elements(args.v_cache, row.v_to + d, args.v, row.v_from + d, 1, size);
    }
  }
}

void kv_append_cpu_v1_parallel(const KvAppendArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 1 << 15;  // elements that are worth waking a thread for
  const int64_t position = checked_position(args), size = size_of(args.dtype);
  queue.parallel(args.batch * args.heads * args.tokens(), std::max<int64_t>(kGrain / args.head_size, 1),
                 [&](int64_t begin, int64_t end, int) {
                   for (int64_t n = begin; n < end; ++n) {
                     const KvAppendRow row(args, position, n);
                     copy_elements(args.k_cache, row.k_to, args.k, row.k_from, args.head_size, size);
                     copy_elements(args.v_cache, row.v_to, args.v, row.v_from, args.head_size, size);
                   }
                 });
}

}  // namespace rooflab::kernels
