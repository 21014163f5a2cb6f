// attention: checks, cost, ladder and backward rule; the textbook version, composed of other ops.
#include "kernels/attention/attention.h"

#include <cmath>

#include "core/range.h"
#include "ops/attention_operands.h"
#include "ops/variant.h"

namespace rooflab {
namespace {

using kernels::AttentionArgs;
using enum Device::Type;
using enum ElementwiseOp;

bool not_double(const AttentionArgs& args) { return args.dtype != DType::kFloat64; }

const Ladder<AttentionArgs> kLadder(
    "attention",
    {
        {"v4_split_kv", kCuda, "few queries, many keys: blocks share the keys, then combine; heads of a group together",
         kernels::attention_cuda_v4_accepts, kernels::attention_cuda_v4_split_kv},
        {"v3_hopper", kCuda, "TMA feeds wgmma, softmax of one warpgroup under the products of another; sm_90a, 16 bit",
         kernels::attention_cuda_v3_accepts, kernels::attention_cuda_v3_hopper},
        {"v2_tensor_core", kCuda, "flash with mma.sync from a cp.async pipeline; sm_80 and newer, 16 bit",
         kernels::attention_cuda_v2_accepts, kernels::attention_cuda_v2_tensor_core},
        {"v1_flash", kCuda, "tiles with online softmax on FMA units; D_h up to 256", kernels::attention_cuda_v1_accepts,
         kernels::attention_cuda_v1_flash},
        {"v0_composed", kCuda, "scores, mask, softmax and weighted sum as ops of their own", nullptr,
         composed<AttentionArgs>},
        {"v3_split_kv", kCpu, "few queries, many keys: threads share the keys, then combine; heads of a group together",
         kernels::attention_cpu_v3_accepts, kernels::attention_cpu_v3_split_kv},
        {"v2_flash_simd", kCpu, "flash with SIMD register tiles, all threads; not float64", not_double,
         kernels::attention_cpu_v2_flash_simd},
        {"v1_flash", kCpu, "tiles with online softmax, one thread; not float64", not_double,
         kernels::attention_cpu_v1_flash},
        {"v0_composed", kCpu, "scores, mask, softmax and weighted sum as ops of their own", nullptr,
         composed<AttentionArgs>},
    });

constexpr int64_t kSoftmaxFlops = 5;  // a visible pair

AttentionResult composed_attention(const AttentionOperands& operands, bool return_lse) {
  Tensor scores = masked_scores(operands);
  std::optional<Tensor> sees_nothing, lse;
  if (may_see_nothing(operands.args)) {  // such rows are uniform for softmax, then zero
    sees_nothing = elementwise(kEq, max(scores, {-1}, true), Scalar{-INFINITY, 0});
    scores = where(*sees_nothing, Scalar{}, scores);
  }
  if (return_lse) {
    const Tensor wide = scores.dtype() == DType::kFloat64 ? scores : cast(scores, DType::kFloat32);
    const Tensor top = max(wide, {-1}, true);
    lse = elementwise(kAdd, top, elementwise(kLog, sum(elementwise(kExp, elementwise(kSub, wide, top)), {-1}, true)));
    if (sees_nothing) lse = where(*sees_nothing, Scalar{-INFINITY, 0}, *lse);
    lse = lse->squeeze(-1);
  }
  Tensor weights = softmax(scores, -1);
  if (sees_nothing) weights = where(*sees_nothing, Scalar{}, weights);
  return {heads_product(weights, operands.v), lse};
}

}  // namespace

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                          bool return_lse, std::string_view variant) {
  const OpScope scope("attention");
  AttentionOperands operands = attention_operands("attention", q, k, v, options);
  AttentionArgs& args = operands.args;
  const Device device = q.device();
  const bool sees_keys = args.kv_length > 0 && operands.q.numel() > 0;
  const bool composes = kLadder.composes(device, args, variant);
  AttentionResult result;
  if (sees_keys && composes) {
    result = composed_attention(operands, return_lse);
  } else {
    result.out = empty_laid_out_like(operands.q);
    if (return_lse) result.lse = Tensor::empty({args.batch, args.heads, args.q_length}, DType::kFloat32, device);
    if (sees_keys) {
      Tensor partial;
      if (const int64_t floats = kernels::attention_partial_floats(args))
        partial = Tensor::empty({floats}, DType::kFloat32, device);
      args.out = result.out.data();
      args.out_strides = attention_strides(result.out);
      args.lse = result.lse ? result.lse->data<float>() : nullptr;
      args.partial = partial.data<float>();
      const int64_t pairs = args.batch * args.heads * visible_pairs(args), macs = 2 * pairs * args.head_size;
      kLadder.run(device, args,
                  Cost{macs, 2 * macs + kSoftmaxFlops * pairs, attention_bytes(operands),
                       result.out.nbytes() + (result.lse ? result.lse->nbytes() : 0)},
                  variant);
    } else {
      fill(result.out, {});
      if (return_lse) fill(*result.lse, {-INFINITY, 0});
    }
  }
  if (q.ndim() == 4) return result;
  return {result.out.select(0, 0), result.lse ? std::optional(result.lse->select(0, 0)) : std::nullopt};
}

}  // namespace rooflab
