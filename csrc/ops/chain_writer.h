// The program of a chain of the fusing compiler, written from the calls of a trace.
#pragma once

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "ops/elementwise.h"
#include "ops/fusible.h"
#include "ops/ops.h"
#include "ops/program.h"

namespace rooflab {

inline bool is_gelu(const TracedCall& traced) { return options_of<GeluOptions>(*traced.call); }

// How many factors x the square or the cube of x has; 0 for another call.
inline int factors_of(const TracedCall& traced) {
  const auto* options = options_of<ElementwiseOptions>(*traced.call);
  if (!options || options->op != ElementwiseOp::kPow || !is_floating(options->dtype)) return 0;
  if (traced.inputs[0].storage < 0 || traced.inputs[1].storage >= 0) return 0;
  const double exponent = options->numbers[1].real;
  return exponent == 2 ? 2 : exponent == 3 ? 3 : 0;
}

// The number that replaces NaN in a call of nan_to_num, if it is not 0, which its instruction writes.
inline std::optional<Scalar> number_for_nan(const TracedCall& traced) {
  const auto* options = options_of<ElementwiseOptions>(*traced.call);
  if (!options || options->op != ElementwiseOp::kNanToNum) return std::nullopt;
  const bool is_zero = std::bit_cast<int64_t>(options->numbers[0].real) == 0;
  return is_zero ? std::nullopt : std::optional(options->numbers[0]);
}

// The number as an element of the dtype.
inline Scalar element_of(Scalar number, DType dtype) { return {rounded(number.real, dtype), number.integer}; }

// Writes the program of a chain, call by call.
class ChainWriter {
 public:
  // `numbers`: storages that hold one number everywhere. `shape`: that of the elements; its last `reduced_dims` are
  // reduced.
  ChainWriter(const std::map<int, Scalar>& numbers, const Shape& shape, int reduced_dims)
      : constants_(numbers), shape_(shape), reduced_dims_(reduced_dims) {}

  void add(const TracedCall& traced) {
    const View& out = traced.outputs[0];
    missing_dims_ = shape_.size() - out.shape.size();
    of_rows_ = out.shape != shape_;
    made_[out.storage] = rooflab::reduced_dims(traced) ? add_reduction(traced)
                         : is_gelu(traced)             ? add_gelu(traced)
                                                       : add_elementwise(traced);
  }

  void add_result(int storage) {
    RL_CHECK(program_.results < kernels::kMaxFusedResults, "fused", "too many results for one chain");
    program_.result_values[program_.results++] = made_.at(storage);
  }

  // A sum over the dimensions that count rows, after all other calls.
  void add_column_sum(const TracedCall& traced) {
    RL_CHECK(program_.column_sums < kernels::kMaxFusedColumnSums, "fused", "too many sums of columns for one chain");
    missing_dims_ = 0;
    const int16_t input = operand(traced.inputs[0]);
    const int8_t own_pass = pass_of(input);
    program_.passes = std::max<int>(program_.passes, own_pass + 1);
    program_.column_sum[program_.column_sums++] = {traced.outputs[0].dtype, own_pass, input};
  }

  const std::vector<View>& operands() const { return operands_; }
  // Replaces the provisional numbering of numbers and results, which had to wait for the count of operands.
  std::shared_ptr<const FusedChain> finish() {
    RL_CHECK(program_.passes <= kernels::kMaxFusedPasses, "fused", "too many passes for one chain");
    for (int i = 0; i < program_.instructions; ++i)
      for (int16_t& value : program_.instruction[i].inputs) value = placed(value);
    for (int r = 0; r < program_.reductions; ++r) program_.reduction[r].input = placed(program_.reduction[r].input);
    for (int k = 0; k < program_.column_sums; ++k) program_.column_sum[k].input = placed(program_.column_sum[k].input);
    for (int i = 0; i < program_.row_instructions; ++i)
      for (int16_t& value : program_.row_instruction[i].inputs) value = placed(value);
    for (int k = 0; k < program_.results; ++k) program_.result_values[k] = placed(program_.result_values[k]);
    return std::make_shared<FusedChain>(FusedChain{program_, numbers_, shape_, reduced_dims_});
  }

 private:
  // Where the provisional numbers begin.
  static constexpr int16_t kNumbers = 1000, kMade = 2000, kReduced = 3000, kRowMade = 4000;

  int16_t placed(int16_t value) const {
    if (value >= kRowMade) return static_cast<int16_t>(value - kRowMade + program_.first_row_made());
    if (value >= kReduced) return static_cast<int16_t>(value - kReduced + program_.first_of_row());
    if (value >= kMade) return static_cast<int16_t>(value - kMade + program_.first_made());
    return static_cast<int16_t>(value >= kNumbers ? value - kNumbers + program_.operands : value);
  }

  int16_t operand(View view) {
    if (const auto found = made_.find(view.storage); found != made_.end()) return found->second;
    if (const auto found = constants_.find(view.storage); found != constants_.end())
      return number(found->second, view.dtype);
    for (int d = 0; d < missing_dims_; ++d) {  // for rows whose reduced dimensions were dropped
      view.shape.push_back(1);
      view.strides.push_back(0);
    }
    const auto known = std::find(operands_.begin(), operands_.end(), view);
    if (known != operands_.end()) return static_cast<int16_t>(known - operands_.begin());
    RL_CHECK(program_.operands < kernels::kMaxFusedOperands, "fused", "too many operands for one chain");
    operands_.push_back(view);
    program_.operand_dtypes[program_.operands] = view.dtype;
    return static_cast<int16_t>(program_.operands++);
  }

  int16_t number(Scalar value, DType dtype) {
    for (int i = 0; i < program_.numbers; ++i) {
      const bool is_same = std::bit_cast<int64_t>(numbers_[i].real) == std::bit_cast<int64_t>(value.real);
      if (is_same && numbers_[i].integer == value.integer && program_.number_dtypes[i] == dtype)
        return static_cast<int16_t>(kNumbers + i);
    }
    RL_CHECK(program_.numbers < kernels::kMaxFusedNumbers, "fused", "too many numbers for one chain");
    program_.number_dtypes[program_.numbers] = dtype;
    numbers_.push_back(value);
    return static_cast<int16_t>(kNumbers + program_.numbers++);
  }
  int16_t number(double value, DType dtype) { return number(Scalar{value, 0}, dtype); }

  // The first pass over a row in which an element can be made from the value.
  int8_t pass_of(int16_t value) const {
    if (value >= kRowMade) return static_cast<int8_t>(program_.row_instruction[value - kRowMade].pass + 1);
    if (value >= kReduced) return static_cast<int8_t>(program_.reduction[value - kReduced].pass + 1);
    return value >= kMade ? program_.instruction[value - kMade].pass : int8_t{0};
  }

  int16_t instruction(ElementwiseOp op, DType dtype, DType out_dtype, int16_t a, int16_t b = 0, int16_t c = 0) {
    const int8_t pass = std::max({pass_of(a), pass_of(b), pass_of(c)});
    if (of_rows_) {
      RL_CHECK(program_.row_instructions < kernels::kMaxFusedRowInstructions, "fused", "too many calls on rows");
      const auto after = static_cast<int8_t>(std::max(pass - 1, 0));
      program_.row_instruction[program_.row_instructions] = {op, dtype, out_dtype, after, {a, b, c}};
      return static_cast<int16_t>(kRowMade + program_.row_instructions++);
    }
    RL_CHECK(program_.instructions < kernels::kMaxFusedInstructions, "fused", "too many calls for one chain");
    program_.passes = std::max<int>(program_.passes, pass + 1);
    program_.instruction[program_.instructions] = {op, dtype, out_dtype, pass, {a, b, c}};
    return static_cast<int16_t>(kMade + program_.instructions++);
  }

  int16_t add_elementwise(const TracedCall& traced) {
    if (const int factors = factors_of(traced)) return add_power(traced, factors);
    const auto& [op, dtype, numbers] = *options_of<ElementwiseOptions>(*traced.call);
    const DType out_dtype = traced.outputs[0].dtype;
    const int arity = static_cast<int>(traced.inputs.size());
    int16_t inputs[3] = {};
    for (int k = 0; k < arity; ++k) {
      if (traced.inputs[k].storage >= 0) {
        const bool is_condition = op == ElementwiseOp::kWhere && k == 0;
        inputs[k] = converted(operand(traced.inputs[k]), traced.inputs[k].dtype, is_condition ? DType::kBool : dtype);
        continue;
      }
      const Scalar scalar = numbers[k];
      // Arithmetic uses a number as it is; other ops use it as an element of the dtype.
      const bool is_element = kernels::is_comparison(op) || op == ElementwiseOp::kWhere || op == ElementwiseOp::kCopy;
      inputs[k] = number(is_element ? element_of(scalar, dtype) : scalar, dtype);
    }
    const bool makes_another = op == ElementwiseOp::kCast || kernels::is_comparison(op);
    const DType made = makes_another ? out_dtype : dtype;
    int16_t value = instruction(op, dtype, made, inputs[0], inputs[1], inputs[2]);
    if (const auto nan = number_for_nan(traced)) {
      const int16_t is_nan = instruction(ElementwiseOp::kNe, dtype, DType::kBool, inputs[0], inputs[0]);
      value = instruction(ElementwiseOp::kWhere, dtype, dtype, is_nan, number(*nan, dtype), value);
    }
    return converted(value, made, out_dtype);
  }

  // x * x or x * x * x, where a kernel that takes any exponent would hold the code for all others, too.
  int16_t add_power(const TracedCall& traced, int factors) {
    const DType dtype = options_of<ElementwiseOptions>(*traced.call)->dtype;
    const int16_t x = converted(operand(traced.inputs[0]), traced.inputs[0].dtype, dtype);
    int16_t power = x;
    for (int k = 1; k < factors; ++k) power = instruction(ElementwiseOp::kMul, dtype, dtype, power, x);
    return converted(power, dtype, traced.outputs[0].dtype);
  }

  int16_t converted(int16_t value, DType from, DType to) {
    return from == to ? value : instruction(ElementwiseOp::kCast, from, to, value);
  }

  int16_t add_reduction(const TracedCall& traced) {
    RL_CHECK(program_.reductions < kernels::kMaxFusedReductions, "fused", "too many reductions for one chain");
    missing_dims_ = 0;
    const DType dtype = traced.outputs[0].dtype;
    const kernels::ReduceOp op = options_of<ReduceOptions>(*traced.call)->op;
    const int16_t input = operand(traced.inputs[0]);
    const int8_t pass = pass_of(input);
    program_.passes = std::max<int>(program_.passes, pass + 1);
    program_.reduction[program_.reductions] = {op, dtype, pass, input};
    return static_cast<int16_t>(kReduced + program_.reductions++);
  }

  // gelu(x) 1, a gated activation.
  int16_t add_gelu(const TracedCall& traced) {
    const DType dtype = traced.outputs[0].dtype;
    return instruction(ElementwiseOp::kGeglu, dtype, dtype, operand(traced.inputs[0]), number(1, dtype));
  }

  const std::map<int, Scalar>& constants_;
  const Shape shape_;
  const int reduced_dims_;
  bool of_rows_ = false;  // what is being added
  int missing_dims_ = 0;
  kernels::FusedProgram program_{};
  std::vector<View> operands_;
  std::vector<Scalar> numbers_;
  std::map<int, int16_t> made_;  // the value for each storage that the chain writes
};

}  // namespace rooflab
