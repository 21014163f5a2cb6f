// One element, or one row, of the results of any chain: the v0 rung of both devices.
#pragma once

#include "kernels/elementwise/reference.h"
#include "kernels/fused/fused.h"

namespace rooflab::kernels {

// One element of a value: `real` where its dtype is floating, else `integer`.
union FusedElement {
  double real;
  int64_t integer;
};

ROOFLAB_HOST_DEVICE FusedElement load_element(DType dtype, const void* data, int64_t i) {
  if (is_floating(dtype)) return {.real = load_as<double>(dtype, data, i)};
  return {.integer = load_as<int64_t>(dtype, data, i)};
}

ROOFLAB_HOST_DEVICE void store_element(DType dtype, void* data, int64_t i, FusedElement value) {
  is_floating(dtype) ? store_as(dtype, data, i, value.real) : store_as(dtype, data, i, value.integer);
}

// `value`, as an array of the dtype holds it.
template <class Compute>
ROOFLAB_HOST_DEVICE FusedElement rounded_to(DType dtype, Compute value) {
  int64_t memory;
  store_as(dtype, &memory, 0, value);
  return load_element(dtype, &memory, 0);
}

template <class Compute>
ROOFLAB_HOST_DEVICE FusedElement evaluate_as(const FusedInstruction& instruction, Compute a, Compute b, Compute c) {
  if (instruction.op == ElementwiseOp::kCast) return rounded_to(instruction.out_dtype, a);
  if (is_comparison(instruction.op)) return {.integer = holds(outcomes(instruction.op), a, b)};
  if (instruction.op == ElementwiseOp::kBitwiseNot && instruction.dtype == DType::kBool)
    return {.integer = a == Compute(0)};
  FusedElement made{};
  dispatch_arithmetic(instruction.op, [&]<ElementwiseOp kOp>() {
    if constexpr (!takes<Compute>(kOp))
      return;
    else if constexpr (std::is_floating_point_v<Compute>)
      made.real = evaluate<kOp>(a, b, c);
    else
      made = rounded_to(instruction.out_dtype, evaluate<kOp>(a, b, c));
  });
  return made;
}

ROOFLAB_HOST_DEVICE FusedElement evaluate_element(const FusedInstruction& instruction, const FusedElement* values) {
  const FusedElement a = values[instruction.inputs[0]], b = values[instruction.inputs[1]];
  const FusedElement c = values[instruction.inputs[2]];
  if (instruction.op == ElementwiseOp::kCopy) return a;
  if (instruction.op == ElementwiseOp::kWhere) return a.integer ? b : c;
  if (is_floating(instruction.dtype)) return evaluate_as(instruction, a.real, b.real, c.real);
  return evaluate_as(instruction, a.integer, b.integer, c.integer);
}

// Loads the operands at element i, and the numbers.
ROOFLAB_HOST_DEVICE void load_values(const FusedArgs& args, int64_t i, FusedElement* values) {
  const auto& [program, launch] = args;
  for (int k = 0; k < program.operands; ++k) {
    int64_t offset[1] = {};
    add_offsets(i, launch.ndim, launch.sizes, {launch.operands[k].strides}, offset);
    values[k] = load_element(program.operand_dtypes[k], launch.operands[k].data, offset[0]);
  }
  for (int k = 0; k < program.numbers; ++k) {
    FusedElement& number = values[program.operands + k];
    if (is_floating(program.number_dtypes[k]))
      number.real = launch.numbers[k].real;
    else
      number.integer = launch.numbers[k].integer;
  }
}

// Stores the results of a pass that belong to element i, or to row i.
ROOFLAB_HOST_DEVICE void store_values(const FusedArgs& args, int64_t i, int pass, bool of_row,
                                      const FusedElement* values) {
  const auto& [program, launch] = args;
  for (int k = 0; k < program.results; ++k) {
    const int value = program.result_values[k];
    if (program.is_of_row(value) != of_row || program.stored_in(value) != pass) continue;
    store_element(program.dtype_of(value), launch.results[k], i, values[value]);
  }
}

// Element i as far as a pass computes it. `values` already holds the row's numbers from the passes before.
ROOFLAB_HOST_DEVICE void reference_element(const FusedArgs& args, int64_t i, int pass, FusedElement* values) {
  const FusedProgram& program = args.program;
  load_values(args, i, values);
  for (int k = 0; k < program.instructions; ++k)
    if (program.instruction[k].pass <= pass)
      values[program.first_made() + k] = evaluate_element(program.instruction[k], values);
  store_values(args, i, pass, false, values);
}

ROOFLAB_HOST_DEVICE double reduced_with(ReduceOp op, double a, double b) {
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) return a + b;
  return (op == ReduceOp::kMax ? b > a : b < a) || b != b ? b : a;
}

// Where the sums of columns are made: `elements` numbers for each of them, as many as there are columns, to which row
// after row is added, or as many as the chain has elements, whose rows are added in the end.
struct ReferenceSums {
  double* sums;
  int64_t elements;

  ROOFLAB_HOST_DEVICE void add(const FusedProgram& program, int64_t i, int pass, const FusedElement* values) const {
    for (int k = 0; k < program.column_sums; ++k) {
      if (program.column_sum[k].pass != pass) continue;
      double& sum = sums[k * elements + i % elements];
      const double element = values[program.column_sum[k].input].real;
      sum = i < elements ? element : sum + element;
    }
  }
  ROOFLAB_HOST_DEVICE void store(const FusedArgs& args, int64_t column) const {
    for (int k = 0; k < args.program.column_sums; ++k) {
      FusedElement total{.real = 0};
      for (int64_t i = column; i < elements; i += args.launch.columns) total.real += sums[k * elements + i];
      store_element(args.program.column_sum[k].dtype, args.launch.column_sums[k], column, total);
    }
  }
};

// One pass over row i: its reductions, and the instructions on rows that follow them.
ROOFLAB_HOST_DEVICE void reference_pass(const FusedArgs& args, int64_t i, int pass, FusedElement* values,
                                        const ReferenceSums& sums) {
  const auto& [program, launch] = args;
  double reduced[kMaxFusedReductions];
  for (int64_t column = 0; column < launch.columns; ++column) {
    reference_element(args, i * launch.columns + column, pass, values);
    sums.add(program, i * launch.columns + column, pass, values);
    for (int r = 0; r < program.reductions; ++r) {
      if (program.reduction[r].pass != pass) continue;
      const double element = values[program.reduction[r].input].real;
      reduced[r] = column == 0 ? element : reduced_with(program.reduction[r].op, reduced[r], element);
    }
  }
  load_values(args, i * launch.columns, values);
  for (int r = 0; r < program.reductions; ++r) {
    if (program.reduction[r].pass != pass) continue;
    const double count = program.reduction[r].op == ReduceOp::kMean ? static_cast<double>(launch.columns) : 1.0;
    values[program.first_of_row() + r].real = reduced[r] / count;
  }
  for (int k = 0; k < program.row_instructions; ++k)
    if (program.row_instruction[k].pass == pass)
      values[program.first_row_made() + k] = evaluate_element(program.row_instruction[k], values);
}

// One element of a chain without reductions; otherwise one row.
ROOFLAB_HOST_DEVICE void reference_chain(const FusedArgs& args, int64_t i, const ReferenceSums& sums) {
  const FusedProgram& program = args.program;
  FusedElement values[kMaxFusedValues];
  if (program.reductions == 0) return reference_element(args, i, 0, values);
  for (int pass = 0; pass < program.passes; ++pass) reference_pass(args, i, pass, values, sums);
  store_values(args, i, program.passes - 1, true, values);
}

}  // namespace rooflab::kernels
