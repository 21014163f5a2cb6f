// kv_append: checks and cost. It writes into the given caches.
#include "ops/kv_append.h"

#include "autograd/tape.h"
#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/attention_operands.h"
#include "ops/ops.h"
#include "ops/rung.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

void check_new(const char* op, const char* argument, const Tensor& x, const char* cache_argument, const Tensor& cache) {
  check_same_device(op, x, cache);
  check_same_dtype(op, x, cache);
  RL_CHECK(x.ndim() == 4, op, argument, ": expected (B, H_kv, L, D_h), got ", x.shape());
  const bool fits = cache.ndim() == 4 && cache.size(0) == x.size(0) && cache.size(1) == x.size(1) &&
                    cache.size(2) > 0 && cache.size(3) == x.size(3);
  RL_CHECK(fits, op, cache_argument, ": expected (B=", x.size(0), ", H_kv=", x.size(1), ", T > 0, D_h=", x.size(3),
           "), got ", cache.shape());
  RL_CHECK(cache.size(3) == 1 || cache.stride(3) == 1, op, cache_argument,
           ": expected adjacent elements in the last dimension, got strides ", cache.strides());
  check_writable(op, cache);
  autograd::check_source(op, x);
}

void run(const Call<NoOptions>& call) {
  const Tensor k = operand_as(call.inputs[0], as_heads(call.inputs[0])),
               v = operand_as(call.inputs[1], as_heads(call.inputs[1]));
  run_rung(kernels::kv_append_ladder, call, append_args(call.outputs[0], call.outputs[1], k, v, call.inputs[2]));
}

const Op<NoOptions> kOp("kv_append", run, kLooks);

}  // namespace

void check_append(const char* op, const Tensor& k_cache, const Tensor& v_cache, const Tensor& k, const Tensor& v,
                  const Tensor& position) {
  check_floating(op, "k", k);
  check_new(op, "k", k, "k_cache", k_cache);
  check_new(op, "v", v, "v_cache", v_cache);
  check_same_dtype(op, k, v);
  RL_CHECK(k.shape() == v.shape(), op, "v: expected the shape of k ", k.shape(), ", got ", v.shape());
  RL_CHECK(k_cache.shape() == v_cache.shape(), op, "v_cache: expected the shape of k_cache ", k_cache.shape(), ", got ",
           v_cache.shape());
  check_same_device(op, k, position);
  RL_CHECK(position.dtype() == DType::kInt64 && position.numel() == 1, op, "position: expected one int64 number, got ",
           name(position.dtype()), " ", position.shape());
  check_caches_are_apart(op, k_cache, v_cache);
}

kernels::KvAppendArgs append_args(const Tensor& k_cache, const Tensor& v_cache, const Tensor& k, const Tensor& v,
                                  const Tensor& position) {
  return {k.data(),
          v.data(),
          k_cache.data(),
          v_cache.data(),
          position.data<int64_t>(),
          k.size(0),
          k.size(1),
          k.size(2),
          k_cache.size(2),
          k.size(3),
          attention_strides(k),
          attention_strides(v),
          attention_strides(k_cache),
          attention_strides(v_cache),
          k.dtype(),
          report_of(k.device())};
}

void kv_append(const Tensor& k_cache, const Tensor& v_cache, const Tensor& k, const Tensor& v, const Tensor& position,
               std::string_view variant) {
  const OpScope scope("kv_append");
  Trace::refuse("kv_append", "a write of some tokens of a cache cannot be recorded; call it outside of the function");
  check_append("kv_append", k_cache, v_cache, k, v, position);
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
