// The elementwise family: arithmetic, functions, comparisons, where, casts and copies, with one launch each. Ops that
// write into an existing tensor are in elementwise_in_place.cpp.
#include "kernels/elementwise/elementwise.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "core/range.h"
#include "core/tensor_check.h"
#include "core/zero_division.h"
#include "ops/autocast.h"
#include "ops/elementwise.h"
#include "ops/elementwise_gradients.h"
#include "ops/fusible.h"
#include "ops/ops.h"
#include "ops/promotion.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::ElementwiseArgs;
using kernels::ElementwiseDomain;
using kernels::ElementwiseInfo;
using kernels::ElementwiseOperand;
// The number as the bits of an element of T.
template <class T>
int64_t bits_of(T value) {
  int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// A floating op takes integers too: as float32, as in PyTorch.
bool takes_integers(ElementwiseOp op) { return op < ElementwiseOp::kGeglu || op > ElementwiseOp::kSigmoidBackward; }

// Whether the op on bools is done on 0 and 1, as in PyTorch; the result is whether it is not 0.
bool takes_bools(ElementwiseOp op) {
  using enum ElementwiseOp;
  return op == kAdd || op == kMul || op == kMaximum || op == kMinimum;
}

void check_domain(const ElementwiseInfo& info, DType dtype) {
  using enum ElementwiseDomain;
  const auto [accepted, wanted] = [&]() -> std::pair<bool, const char*> {
    switch (info.domain) {
      case kFloating: return {is_floating(dtype), " floating-point"};
      case kNumeric: return {dtype != DType::kBool, " numeric"};
      case kIntegral: return {!is_floating(dtype), "n integer or bool"};
      case kAny: break;
    }
    return {true, ""};
  }();
  RL_CHECK(accepted, info.name, "expected a", wanted, " dtype, got ", name(dtype), "; convert with .to()");
}

// Sets the dimensions of args from `out` and the operands, which are broadcast to it, in the order of out's memory.
// Neighbours that are evenly spaced in all of them become one.
template <int kArity>
void set_layout(ElementwiseArgs& args, const Tensor& out, const Tensors& operands) {
  int ndim = 0;
  int64_t* strides[kArity + 1];
  for (int k = 0; k < kArity; ++k) strides[k] = args.inputs[k].strides;
  strides[kArity] = args.out_strides;
  for (const int64_t d : memory_order(out.strides())) {
    const int64_t size = out.shape()[static_cast<int>(d)];
    if (size == 1) continue;
    int64_t steps[kArity + 1];
    bool merges = ndim > 0;
    for (int k = 0; k <= kArity; ++k) {
      const Tensor& x = k < kArity ? operands[k] : out;
      const int at = x.defined() ? static_cast<int>(d) - (out.ndim() - x.ndim()) : -1;
      steps[k] = at >= 0 && x.shape()[at] != 1 ? x.strides()[at] : 0;
      merges = merges && strides[k][ndim - 1] == steps[k] * size;
    }
    if (!merges) args.sizes[ndim++] = 1;
    args.sizes[ndim - 1] *= size;
    for (int k = 0; k <= kArity; ++k) strides[k][ndim - 1] = steps[k];
  }
  if (ndim == 0) {  // one element
    args.sizes[ndim++] = 1;
    for (int64_t* stride : strides) stride[0] = 1;
  }
  args.ndim = ndim;
}

template <int kArity>
void run_member(const Call<ElementwiseOptions>& call) {
  const ElementwiseOp op = call.options.op;
  const Tensor& out = call.outputs[0];
  const bool moves_bits = op == ElementwiseOp::kWhere || op == ElementwiseOp::kCopy;
  ElementwiseArgs args{};  // the reference also reads strides of inputs that are not there
  args.op = op;
  args.dtype = call.options.dtype;
  args.out_dtype = out.dtype();
  args.count = out.numel();
  args.out = out.data();
  args.number = call.options.numbers[0];
  for (int k = 0; k < kArity; ++k) {
    ElementwiseOperand& input = args.inputs[k];
    input.data = call.inputs[k].data();
    input.dtype = call.inputs[k].defined() ? call.inputs[k].dtype() : args.dtype;
    if (call.inputs[k].defined()) continue;
    input.scalar = call.options.numbers[k];
    if (moves_bits) input.scalar.integer = bits_of(input.scalar, args.dtype);
    if (kernels::is_comparison(op)) input.scalar.real = rounded(input.scalar.real, args.dtype);
  }
  set_layout<kArity>(args, out, call.inputs);
  run_rung(kernels::elementwise_ladder, call, args);
}

void run(const Call<ElementwiseOptions>& call) {
  switch (call.inputs.size()) {
    case 1: return run_member<1>(call);
    case 2: return run_member<2>(call);
    default: return run_member<3>(call);
  }
}

const Op<ElementwiseOptions>& op_of(ElementwiseOp op) {
  static const auto& members = *[] {
    auto* made = new std::vector<std::unique_ptr<Op<ElementwiseOptions>>>;
    for (const ElementwiseInfo& info : kernels::kElementwiseOps)
      made->push_back(std::make_unique<Op<ElementwiseOptions>>(info.name, run));
    return made;
  }();
  return *members[static_cast<size_t>(op)];
}

const Op<ElementwiseOptions> kFill("fill", run);

}  // namespace

int64_t bits_of(const kernels::ElementwiseScalar& number, DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return bits_of(number.real);
    case DType::kFloat32: return bits_of(static_cast<float>(number.real));
    case DType::kFloat16: return bits_of(Half(round_to_odd(number.real)));
    case DType::kBFloat16: return bits_of(BFloat16(round_to_odd(number.real)));
    case DType::kInt64:
    case DType::kInt32:
    case DType::kBool: break;
  }
  return number.integer;
}

Shape memory_order(const Shape& strides) {
  const auto step = [&](int64_t d) { return std::abs(strides[static_cast<int>(d)]); };
  Shape order;
  for (int d = 0; d < strides.size(); ++d) {  // an insertion: std::stable_sort allocates memory
    order.push_back(d);
    for (int at = d; at > 0 && step(order[at - 1]) < step(d); --at) std::swap(order[at - 1], order[at]);
  }
  return order;
}

void check_number(const char* op, Scalar number, DType dtype) {
  if (is_floating(dtype)) return;
  const int64_t low = dtype == DType::kInt32 ? INT32_MIN : dtype == DType::kBool ? 0 : INT64_MIN;
  const int64_t high = dtype == DType::kInt32 ? INT32_MAX : dtype == DType::kBool ? 1 : INT64_MAX;
  RL_CHECK(static_cast<double>(number.integer) == number.real && number.integer >= low && number.integer <= high, op,
           "number: expected one that ", name(dtype), " can hold, got ", number.real);
}

ElementwiseDTypes dtypes_of(ElementwiseOp op, const Operand& a, const Operand& b) {
  using enum ElementwiseOp;
  const ElementwiseInfo& info = kernels::info(op);
  DType common = common_dtype({a, b});
  if (info.domain == ElementwiseDomain::kFloating && !is_floating(common) && takes_integers(op))
    common = DType::kFloat32;
  if (info.is_comparison()) {
    // The int32 elements of a tensor are compared with a number that only int64 holds as int64.
    for (const Operand* x : {&a, &b})
      if (!x->tensor && common == DType::kInt32 && x->scalar.integer != static_cast<int32_t>(x->scalar.integer))
        return {DType::kInt64, DType::kBool};
    return {common, DType::kBool};
  }
  if (common == DType::kBool && takes_bools(op)) return {DType::kInt32, DType::kBool};
  check_domain(info, common);
  if (is_floating(common) || b.tensor) return {common, common};
  RL_CHECK(op != kPow || b.scalar.integer >= 0, "pow", "number: expected an exponent >= 0 for ", name(common), ", got ",
           b.scalar.integer);
  if ((op == kFloorDivide || op == kRemainder) && b.scalar.integer == 0) throw ZeroDivision(info.name);
  return {common, common};
}

void submit_into(ElementwiseOp op, std::initializer_list<Operand> operands, DType dtype, const Tensor& out,
                 std::string_view variant) {
  const bool fills = op == ElementwiseOp::kCopy && !operands.begin()->tensor;
  Call call(fills ? kFill : op_of(op), {}, {out}, {op, dtype, {}}, {}, variant);
  call.inputs.reserve(operands.size());
  for (const Operand& operand : operands) {
    if (!operand.tensor) check_number(call.op->name, operand.scalar, dtype);
    call.options.numbers[call.inputs.size()] = operand.scalar;
    call.inputs.push_back(operand.tensor ? *operand.tensor : Tensor());
  }
  const int64_t flops = kernels::info(op).flops() * out.numel();
  call.cost = {0, flops, compulsory_bytes(call.inputs), out.nbytes()};
  submit(call);
}

void write_elements(const Tensor& from, const Tensor& to, Scalar number) {
  if (to.numel() == 0) return;
  const bool casts = from.defined() && from.dtype() != to.dtype();
  const ElementwiseOp op = casts ? ElementwiseOp::kCast : ElementwiseOp::kCopy;
  Call(op_of(op), {from}, {to}, {op, from.defined() ? from.dtype() : to.dtype(), {number}}, {}).run();
}

namespace {

// One of the operands of this shape, if all of them lie in memory alike, without gaps, and turned: their adjacent
// elements lie along another dimension than the last one. Otherwise null.
const Tensor* turned_operand(std::initializer_list<Operand> operands, const Shape& shape) {
  const Tensor* turned = nullptr;
  for (const Operand& operand : operands) {
    if (!operand.tensor || operand.tensor->shape() != shape) continue;
    if (turned && turned->strides() != operand.tensor->strides()) return nullptr;
    turned = operand.tensor;
  }
  if (!turned || turned->is_contiguous()) return nullptr;
  int64_t dense = 1, adjacent = 0;
  const Shape order = memory_order(turned->strides());
  for (int i = order.size() - 1; i >= 0; --i) {
    const int d = static_cast<int>(order[i]);
    if (shape[d] == 1) continue;
    if (turned->strides()[d] != dense) return nullptr;
    if (dense == 1) adjacent = d;
    dense *= shape[d];
  }
  for (int d = static_cast<int>(adjacent) + 1; d < shape.size(); ++d)
    if (shape[d] > 1) return turned;
  return nullptr;
}

}  // namespace

Tensor empty_beside(std::initializer_list<Operand> operands, const Shape& shape, DType dtype, Device device) {
  const Tensor* turned = turned_operand(operands, shape);
  if (!turned) return Tensor::empty(shape, dtype, device);
  const Shape order = memory_order(turned->strides());
  Shape sizes, places = shape;  // where each dimension is in that order
  for (int i = 0; i < order.size(); ++i) {
    sizes.push_back(shape[static_cast<int>(order[i])]);
    places[static_cast<int>(order[i])] = i;
  }
  return Tensor::empty(sizes, dtype, device).permute(places);
}

namespace {

Tensor run_new(ElementwiseOp op, std::initializer_list<Operand> operands, DType dtype, DType out_dtype,
               const Shape& shape, Device device, std::string_view variant) {
  const bool in_order = op == ElementwiseOp::kCopy;
  Tensor out = in_order ? Tensor::empty(shape, out_dtype, device) : empty_beside(operands, shape, out_dtype, device);
  submit_into(op, operands, dtype, out, variant);
  return out;
}

Tensor map(ElementwiseOp op, const Tensor& x, DType dtype, DType out_dtype, std::string_view variant) {
  Tensor y = run_new(op, {Operand(x)}, dtype, out_dtype, x.shape(), x.device(), variant);
  record_unary(op, y, x);
  return y;
}

Tensor binary(ElementwiseOp op, const Operand& a, const Operand& b, const Shape& shape, std::string_view variant) {
  const auto [dtype, out_dtype] = dtypes_of(op, a, b);
  Tensor y = run_new(op, {a, b}, dtype, out_dtype, shape, (a.tensor ? a : b).tensor->device(), variant);
  record_binary(op, y, a, b);
  return y;
}

Tensor where_of(const Tensor& condition, const Operand& a, const Operand& b, const Shape& shape,
                std::string_view variant) {
  RL_CHECK(condition.dtype() == DType::kBool, "where", "condition: expected bool, got ", name(condition.dtype()));
  for (const Operand* x : {&a, &b})
    if (x->tensor) check_same_device("where", condition, *x->tensor);
  const Shape whole = condition.shape() == shape ? shape : broadcast_shapes("where", condition.shape(), shape);
  const DType dtype = common_dtype({a, b});
  Tensor y =
      run_new(ElementwiseOp::kWhere, {Operand(condition), a, b}, dtype, dtype, whole, condition.device(), variant);
  record_where(y, condition, a, b);
  return y;
}

}  // namespace

double rounded(double number, DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return static_cast<float>(number);
    case DType::kFloat16: return static_cast<float>(Half(round_to_odd(number)));
    case DType::kBFloat16: return static_cast<float>(BFloat16(round_to_odd(number)));
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kInt32:
    case DType::kBool: break;
  }
  return number;
}

Tensor elementwise(ElementwiseOp op, const Tensor& x, std::string_view variant) {
  const ElementwiseInfo& info = kernels::info(op);
  if (const auto dtype = autocast::wanted(info.name, {&x})) return elementwise(op, autocast::in(*dtype, x), variant);
  const OpScope scope(info.name);
  const bool as_float = info.domain == ElementwiseDomain::kFloating && !is_floating(x.dtype());
  const DType dtype = as_float ? DType::kFloat32 : x.dtype();
  check_domain(info, dtype);
  return map(op, x, dtype, dtype, variant);
}

Tensor elementwise(ElementwiseOp op, const Tensor& a, const Tensor& b, std::string_view variant) {
  const char* name = kernels::info(op).name;
  if (const auto dtype = autocast::wanted(name, {&a, &b}))
    return elementwise(op, autocast::in(*dtype, a), autocast::in(*dtype, b), variant);
  const OpScope scope(name);
  check_same_device(name, a, b);
  if (!takes_integers(op)) check_same_dtype(name, a, b);
  return binary(op, a, b, a.shape() == b.shape() ? a.shape() : broadcast_shapes(name, a.shape(), b.shape()), variant);
}

Tensor elementwise(ElementwiseOp op, const Tensor& a, Scalar b, std::string_view variant) {
  const char* name = kernels::info(op).name;
  if (const auto dtype = autocast::wanted(name, {&a})) return elementwise(op, autocast::in(*dtype, a), b, variant);
  const OpScope scope(name);
  return binary(op, a, b, a.shape(), variant);
}

Tensor elementwise(ElementwiseOp op, Scalar a, const Tensor& b, std::string_view variant) {
  const char* name = kernels::info(op).name;
  if (const auto dtype = autocast::wanted(name, {&b})) return elementwise(op, a, autocast::in(*dtype, b), variant);
  const OpScope scope(name);
  return binary(op, a, b, b.shape(), variant);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, std::string_view variant) {
  if (const auto dtype = autocast::wanted("where", {&a, &b}))
    return where(condition, autocast::in(*dtype, a), autocast::in(*dtype, b), variant);
  const OpScope scope("where");
  check_same_device("where", a, b);
  return where_of(condition, a, b, broadcast_shapes("where", a.shape(), b.shape()), variant);
}

Tensor where(const Tensor& condition, const Tensor& a, Scalar b, std::string_view variant) {
  const OpScope scope("where");
  return where_of(condition, a, b, a.shape(), variant);
}

Tensor where(const Tensor& condition, Scalar a, const Tensor& b, std::string_view variant) {
  const OpScope scope("where");
  return where_of(condition, a, b, b.shape(), variant);
}

Tensor where(const Tensor& condition, Scalar a, Scalar b, std::string_view variant) {
  const OpScope scope("where");
  return where_of(condition, a, b, condition.shape(), variant);
}

Tensor clamp(const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high, std::string_view variant) {
  RL_CHECK(low || high, "clamp", "expected min, max or both, got neither");
  Tensor y = [&] {
    const autograd::GradMode off(false);
    if (!high) return elementwise(ElementwiseOp::kMaximum, x, *low, variant);
    if (!low) return elementwise(ElementwiseOp::kMinimum, x, *high, variant);
    const OpScope scope("clamp");
    const DType common = common_dtype({x, *low, *high});
    const DType computed = common == DType::kBool ? DType::kInt32 : common;
    return run_new(ElementwiseOp::kClamp, {x, *low, *high}, computed, common, x.shape(), x.device(), variant);
  }();
  record_clamp(y, x, low, high);
  return y;
}

Tensor cast(const Tensor& x, DType dtype, std::string_view variant) {
  if (x.dtype() == dtype) return x;
  const OpScope scope("cast");
  return map(ElementwiseOp::kCast, x, x.dtype(), dtype, variant);
}

Tensor copy(const Tensor& x, std::string_view variant) {
  const OpScope scope("copy");
  return map(ElementwiseOp::kCopy, x, x.dtype(), x.dtype(), variant);
}

}  // namespace rooflab
