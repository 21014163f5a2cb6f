#include "ops/attention_operands.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/tensor_check.h"
#include "ops/arithmetic.h"

namespace rooflab {
namespace {

// sum over i < rows of i + first, each clamped to [0, most]
int64_t clamped_sum(int64_t rows, int64_t first, int64_t most) {
  const int64_t begin = std::clamp<int64_t>(-first, 0, rows), full = std::clamp<int64_t>(most - first, begin, rows);
  const int64_t rising = full - begin;
  return rising * (begin + first) + rising * (rising - 1) / 2 + (rows - full) * std::max<int64_t>(most, 0);
}

Tensor with_adjacent_elements(const Tensor& x) { return x.size(-1) == 1 || x.stride(-1) == 1 ? x : contiguous(x); }

void check_heads(const char* op, const char* argument, const Tensor& x, const Tensor& q) {
  check_same_device(op, q, x);
  check_same_dtype(op, q, x);
  RL_CHECK(x.ndim() == q.ndim(), op, argument, ": expected ", q.ndim(), " dimensions as in q, got ", x.shape());
  RL_CHECK(x.size(-1) == q.size(-1), op, argument, ": expected (..., L_kv, D_h=", q.size(-1), "), got ", x.shape());
  RL_CHECK(x.ndim() == 3 || x.size(0) == q.size(0), op, argument, ": expected B=", q.size(0), " as in q, got ",
           x.shape());
}

Tensor expanded_mask(const char* op, const Tensor& mask, const Tensor& q, const Tensor& k) {
  check_same_device(op, q, mask);
  RL_CHECK(mask.dtype() == DType::kBool || mask.dtype() == q.dtype(), op, "attn_mask: expected bool or ",
           name(q.dtype()), ", got ", name(mask.dtype()));
  const Shape scores{q.size(0), q.size(1), q.size(2), k.size(2)};
  RL_CHECK(mask.ndim() <= 4 && broadcast_shapes(op, mask.shape(), scores) == scores, op,
           "attn_mask: expected a shape that broadcasts to (B, H, L_q, L_kv) = ", scores, ", got ", mask.shape());
  return expand(mask, scores);
}

// 1, 2 ... count.
Tensor counted(int64_t count, Device device) {
  Tensor ones = Tensor::empty({count}, DType::kInt64, device);
  fill(ones, Scalar{1, 1});
  return cumsum(ones, 0);
}

// How many keys count: the number that the device holds, clamped to [0, L_kv].
Tensor end_of_keys(const kernels::AttentionArgs& args, const Tensor& held) {
  using enum ElementwiseOp;
  const Scalar none{}, all{static_cast<double>(args.kv_length), args.kv_length};
  return elementwise(kMaximum, elementwise(kMinimum, held, all), none);
}

// attention_mask where the device holds the number of keys in k and v.
Tensor held_mask(const kernels::AttentionArgs& args, const Tensor& held) {
  using enum ElementwiseOp;
  const autograd::GradMode off(false);
  const auto number = [](int64_t n) { return Scalar{static_cast<double>(n), n}; };
  const Tensor key = counted(args.kv_length, held.device());
  const Tensor query = elementwise(kAdd, counted(args.q_length, held.device()).unsqueeze(1), number(-args.q_length));
  const Tensor end = end_of_keys(args, held);
  const Tensor ahead = elementwise(kSub, key - query, end);  // distance from the query's own key forward to this key
  Tensor sees = elementwise(kLe, key, end);
  const auto also = [&](ElementwiseOp op, int64_t n) {
    sees = elementwise(kBitwiseAnd, sees, elementwise(op, ahead, number(n)));
  };
  if (args.is_causal) also(kLe, 0);
  if (args.window < args.q_length + args.kv_length) {
    also(kLt, args.window);
    also(kGt, -args.window);
  }
  return sees;
}

// The arguments of the kernels, from tensors that have been checked.
void lay_out(AttentionOperands& operands, bool is_causal, int64_t window) {
  const auto& [q, k, v, mask, held, scale, _] = operands;
  kernels::AttentionArgs& args = operands.args;
  args.q = q.data();
  args.k = k.data();
  args.v = v.data();
  args.batch = q.size(0);
  args.heads = q.size(1);
  args.kv_heads = k.size(1);
  args.q_length = q.size(2);
  args.kv_length = k.size(2);
  args.head_size = q.size(3);
  args.q_strides = attention_strides(q);
  args.k_strides = attention_strides(k);
  args.v_strides = attention_strides(v);
  args.out_strides = strides_laid_out_like(q);
  args.scale = static_cast<float>(scale);
  args.is_causal = is_causal;
  args.window = window;
  args.dtype = q.dtype();
  if (held) args.held = held->data<int64_t>();
  if (!mask) return;
  args.mask = mask->data();
  args.mask_is_bool = mask->dtype() == DType::kBool;
  std::copy(mask->strides().begin(), mask->strides().end(), args.mask_strides);
}

using Steps = std::vector<std::pair<int64_t, int64_t>>;  // the stride and size of each dimension, outermost first

// Whether some number of steps along each dimension from the given one on, either way, covers a distance. What the
// finer dimensions reach is less than a step of each.
bool reaches(int64_t distance, const Steps& steps, size_t dim = 0) {
  if (dim == steps.size()) return distance == 0;
  const auto [stride, size] = steps[dim];
  for (int64_t count = distance / stride - 1; count <= distance / stride + 1; ++count)
    if (std::abs(count) < size && reaches(distance - count * stride, steps, dim + 1)) return true;
  return false;
}

// Whether two tensors of one shape, none of whose own elements share memory, have one in common. Those that lie between
// each other in different ways are taken to have one.
bool share_elements(const Tensor& a, const Tensor& b) {
  if (!a.overlaps(b)) return false;
  Steps steps;
  for (int i = 0; i < a.ndim(); ++i) {
    if (a.size(i) == 1) continue;
    if (a.stride(i) != b.stride(i)) return true;
    steps.emplace_back(std::abs(a.stride(i)), a.size(i));
  }
  std::sort(steps.rbegin(), steps.rend());
  const int64_t bytes = b.data<char>() - a.data<char>(), size = size_of(a.dtype());
  return bytes % size != 0 || reaches(bytes / size, steps);
}

// Whether every query may see every key, as far as causality and the window go.
bool allows_all_pairs(const kernels::AttentionArgs& args) {
  return visible_pairs(args) == args.q_length * args.kv_length;
}

}  // namespace

Tensor as_heads(const Tensor& x) { return with_adjacent_elements(x.ndim() == 3 ? unsqueeze(x, 0) : x); }

kernels::AttentionStrides attention_strides(const Tensor& x) { return {x.stride(0), x.stride(1), x.stride(2)}; }

void check_caches_are_apart(const char* op, const Tensor& k_cache, const Tensor& v_cache) {
  RL_CHECK(!share_elements(k_cache, v_cache), op, "v_cache: expected memory that k_cache does not share");
}

kernels::AttentionStrides strides_laid_out_like(const Tensor& x) {
  const int64_t heads = std::max<int64_t>(x.size(1), 1), tokens = std::max<int64_t>(x.size(2), 1), elements = x.size(3);
  const bool tokens_outside = heads > 1 && tokens > 1 && x.stride(2) > x.stride(1);
  if (tokens_outside) return {heads * tokens * elements, elements, heads * elements};
  return {heads * tokens * elements, tokens * elements, elements};
}

Tensor empty_laid_out_like(const Tensor& x) {
  const kernels::AttentionStrides strides = strides_laid_out_like(x);
  return Tensor::empty(x.shape(), x.dtype(), x.device())
      .as_strided(x.shape(), {strides.batch, strides.head, strides.token, 1}, 0);
}

AttentionOperands attention_operands(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                                     const std::optional<Tensor>& mask, const AttentionOptions& options) {
  check_floating(op, "q", q);
  RL_CHECK(q.ndim() == 3 || q.ndim() == 4, op, "q: expected (B, H, L_q, D_h) or (H, L_q, D_h), got ", q.shape());
  check_heads(op, "k", k, q);
  check_heads(op, "v", v, q);
  RL_CHECK(k.shape() == v.shape(), op, "v: expected the shape of k ", k.shape(), ", got ", v.shape());
  RL_CHECK(q.size(-1) > 0, op, "q: expected D_h > 0, got ", q.shape());
  const int64_t heads = q.size(-3), kv_heads = k.size(-3);
  RL_CHECK(kv_heads > 0 ? heads % kv_heads == 0 : heads == 0, op, "k: expected H_kv to divide H=", heads, ", got ",
           k.shape());
  RL_CHECK(!options.window || *options.window > 0, op, "window: expected > 0, got ", options.window.value_or(0));
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
  RL_CHECK(std::isfinite(scale), op, "scale: expected a finite number, got ", scale);

  if (const auto& held = options.kv_length) {
    check_same_device(op, q, *held);
    RL_CHECK(held->dtype() == DType::kInt64 && held->numel() == 1, op, "kv_length: expected one int64 number, got ",
             name(held->dtype()), " ", held->shape());
  }
  AttentionOperands operands{as_heads(q), as_heads(k), as_heads(v), std::nullopt, options.kv_length, scale, {}};
  if (mask) operands.mask = expanded_mask(op, *mask, operands.q, operands.k);
  const int64_t unlimited = q.size(-2) + k.size(-2);
  lay_out(operands, options.is_causal, std::min(options.window.value_or(unlimited), unlimited));
  return operands;
}

AttentionCallOptions call_options(const AttentionOperands& operands, bool deterministic) {
  return {operands.args.is_causal, deterministic, operands.args.window, operands.scale};
}

AttentionOperands attention_operands(const Call<AttentionCallOptions>& call) {
  const Tensors& in = call.inputs;
  const auto optional = [](const Tensor& x) { return x.defined() ? std::optional(x) : std::nullopt; };
  AttentionOperands operands{in[0], in[1], in[2], optional(in[3]), optional(in[4]), call.options.scale, {}};
  lay_out(operands, call.options.is_causal, call.options.window);
  return operands;
}

DType lse_dtype(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

int64_t visible_pairs(const kernels::AttentionArgs& args) {
  const int64_t first = args.kv_length - args.q_length;  // the first query's position
  const int64_t after = args.is_causal ? 1 : args.window;
  return clamped_sum(args.q_length, first + after, args.kv_length) -
         clamped_sum(args.q_length, first - args.window + 1, args.kv_length);
}

Tensor heads_product(const Tensor& a, const Tensor& b, const std::optional<Tensor>& hidden) {
  const auto grouped = [&](const Tensor& x) {  // the rows of the heads that share a key head, one after another
    return reshape(x, {x.size(0), b.size(1), x.size(1) / b.size(1) * x.size(2), x.size(3)});
  };
  Tensor product = matmul(grouped(a), b);
  if (hidden) product = attention_repair(product, grouped(a), b, grouped(*hidden));
  return reshape(product, {a.size(0), a.size(1), a.size(2), b.size(3)});
}

Tensor masked_scores(const AttentionOperands& operands) {
  const kernels::AttentionArgs& args = operands.args;
  const Scalar hidden{-INFINITY, 0};
  Tensor scores = heads_product(operands.q, transpose(operands.k, -2, -1)) * operands.scale;
  if (operands.held)
    scores = where(held_mask(args, *operands.held), scores, hidden);
  else if (!allows_all_pairs(args))
    scores = where(attention_mask(args.q_length, args.kv_length, args.is_causal, args.window, scores.device()), scores,
                   hidden);
  if (!operands.mask) return scores;
  const Tensor& mask = *operands.mask;
  if (args.mask_is_bool) return where(mask, scores, hidden);
  return where(elementwise(ElementwiseOp::kEq, mask, hidden), hidden, scores + mask);  // hides a score that is NaN too
}

Tensor values_that_count(const AttentionOperands& operands) {
  if (!operands.held) return operands.v;
  const Tensor key = counted(operands.args.kv_length, operands.v.device()).unsqueeze(1);
  return where(elementwise(ElementwiseOp::kLe, key, end_of_keys(operands.args, *operands.held)), operands.v, Scalar{});
}

std::optional<Tensor> hidden_pairs(const AttentionOperands& operands, const Tensor& scores) {
  if (!operands.mask && allows_all_pairs(operands.args)) return std::nullopt;
  return elementwise(ElementwiseOp::kEq, scores, Scalar{-INFINITY, 0});
}

bool may_see_nothing(const kernels::AttentionArgs& args) {
  const kernels::KeyRange seen = kernels::visible_keys(0, args.q_length, args.kv_length, args.is_causal, args.window);
  return args.mask || args.held || seen.begin == seen.end;
}

}  // namespace rooflab
