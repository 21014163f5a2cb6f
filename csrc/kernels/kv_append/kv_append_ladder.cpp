// The ladder of kv_append: see kv_append.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/kv_append/kv_append.h"

namespace rooflab::kernels {

using enum Device::Type;

void kv_append_cpu_v0_reference(const KvAppendArgs&, Queue&);
void kv_append_cpu_v1_parallel(const KvAppendArgs&, Queue&);
ROOFLAB_CUDA_RUNG(kv_append_cuda_v0_reference, KvAppendArgs)
ROOFLAB_CUDA_RUNG(kv_append_cuda_v1_vectorised, KvAppendArgs)

bool kv_append_cuda_v1_accepts(const KvAppendArgs& args, const Target&) {
  const int64_t size = size_of(args.dtype);
  const auto fits = [&](const void* data, const AttentionStrides& strides) {
    return is_aligned(data) && strides.batch * size % 16 == 0 && strides.head * size % 16 == 0 &&
           strides.token * size % 16 == 0;
  };
  return args.head_size * size % 16 == 0 && fits(args.k, args.k_strides) && fits(args.v, args.v_strides) &&
         fits(args.k_cache, args.k_cache_strides) && fits(args.v_cache, args.v_cache_strides);
}

const Ladder<KvAppendArgs> kv_append_ladder(
    "kv_append", {
                     {"v1_vectorised", kCuda, "16 bytes per thread; aligned rows", kv_append_cuda_v1_accepts,
                      kv_append_cuda_v1_vectorised},
                     {"v0_reference", kCuda, "one thread per element", nullptr, kv_append_cuda_v0_reference},
                     {"v1_parallel", kCpu, "all threads, a row at a time", nullptr, kv_append_cpu_v1_parallel},
                     {"v0_reference", kCpu, "one thread, an element at a time", nullptr, kv_append_cpu_v0_reference},
                 });

}  // namespace rooflab::kernels
