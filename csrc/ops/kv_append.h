// What kv_append and rms_norm_rope_append share.
#pragma once

#include "kernels/kv_append/kv_append.h"
#include "ops/ops.h"

namespace rooflab {

// ValueError unless k and v (B, H_kv, L, D_h) can be written into the caches (B, H_kv, T, D_h).
void check_append(const char* op, const Tensor& k_cache, const Tensor& v_cache, const Tensor& k, const Tensor& v,
                  const Tensor& position);

// k and v with adjacent elements in each row; both are kept alive by the caller.
kernels::KvAppendArgs append_args(const Tensor& k_cache, const Tensor& v_cache, const Tensor& k, const Tensor& v,
                                  const Tensor& position);

}  // namespace rooflab
