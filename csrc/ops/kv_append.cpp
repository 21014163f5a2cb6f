// kv_append: checks and cost. It writes into the given caches.
#include "kernels/kv_append/kv_append.h"

#include "autograd/tape.h"
#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/attention_operands.h"
#include "ops/ops.h"
#include "ops/rung.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

using kernels::KvAppendArgs;

void check_new(const char* argument, const Tensor& x, const char* cache_argument, const Tensor& cache) {
  check_same_device("kv_append", x, cache);
  check_same_dtype("kv_append", x, cache);
  RL_CHECK(x.ndim() == 4, "kv_append", argument, ": expected (B, H_kv, L, D_h), got ", x.shape());
  const bool fits = cache.ndim() == 4 && cache.size(0) == x.size(0) && cache.size(1) == x.size(1) &&
                    cache.size(2) > 0 && cache.size(3) == x.size(3);
  RL_CHECK(fits, "kv_append", cache_argument, ": expected (B=", x.size(0), ", H_kv=", x.size(1),
           ", T > 0, D_h=", x.size(3), "), got ", cache.shape());
  RL_CHECK(cache.size(3) == 1 || cache.stride(3) == 1, "kv_append", cache_argument,
           ": expected adjacent elements in the last dimension, got strides ", cache.strides());
  check_writable("kv_append", cache);
  autograd::check_source("kv_append", x);
}

void run(const Call<NoOptions>& call) {
  const Tensor k = operand_as(call.inputs[0], as_heads(call.inputs[0])),
               v = operand_as(call.inputs[1], as_heads(call.inputs[1]));
  const Tensor &k_cache = call.outputs[0], &v_cache = call.outputs[1];
  run_rung(kernels::kv_append_ladder, call,
           KvAppendArgs{k.data(), v.data(), k_cache.data(), v_cache.data(), call.inputs[2].data<int64_t>(), k.size(0),
                        k.size(1), k.size(2), k_cache.size(2), k.size(3), attention_strides(k), attention_strides(v),
                        attention_strides(k_cache), attention_strides(v_cache), k.dtype(), report_of(k.device())});
}

const Op<NoOptions> kOp("kv_append", run, kLooks);

}  // namespace

void kv_append(const Tensor& k_cache, const Tensor& v_cache, const Tensor& k, const Tensor& v, const Tensor& position,
               std::string_view variant) {
  const OpScope scope("kv_append");
  Trace::refuse("kv_append", "a write of some tokens of a cache cannot be recorded; call it outside of the function");
  check_floating("kv_append", "k", k);
  check_new("k", k, "k_cache", k_cache);
  check_new("v", v, "v_cache", v_cache);
  check_same_dtype("kv_append", k, v);
  RL_CHECK(k.shape() == v.shape(), "kv_append", "v: expected the shape of k ", k.shape(), ", got ", v.shape());
  RL_CHECK(k_cache.shape() == v_cache.shape(), "kv_append", "v_cache: expected the shape of k_cache ", k_cache.shape(),
           ", got ", v_cache.shape());
  check_same_device("kv_append", k, position);
  RL_CHECK(position.dtype() == DType::kInt64 && position.numel() == 1, "kv_append",
           "position: expected one int64 number, got ", name(position.dtype()), " ", position.shape());
  check_caches_are_apart("kv_append", k_cache, v_cache);
  if (k.numel() == 0) return;
  const int64_t tokens = std::min(k.size(2), k_cache.size(2)), written = 2 * k.nbytes() / k.size(2) * tokens;
  const Cost cost{0, 0, written + position.nbytes(), written};
  Tensors inputs{k, v, position};
  for (Tensor& x : inputs)
    if (x.overlaps(k_cache) || x.overlaps(v_cache)) x = copy(x);
  submit(Call(kOp, std::move(inputs), {k_cache, v_cache}, {}, cost, variant));
  k_cache.storage()->bump_version();
  v_cache.storage()->bump_version();
}

}  // namespace rooflab
