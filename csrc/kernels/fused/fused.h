// A chain of elementwise ops in one pass: each element of the operands is read once, goes through all instructions, and
// the requested results are written once. Operands broadcast and may have any strides; results are contiguous and of
// one shape. Instructions mean the same as in the elementwise family (functors.h). Values between them are not rounded
// to 16 bits unless a cast asks for it, so results are closer to the exact ones than those of separate ops. A chain may
// end in reductions over its last dimensions (sum, mean, largest, smallest), which give one number per row, and in
// instructions on these numbers.
//
// FLOPs: those of all instructions and reductions. Compulsory bytes: each operand once, each result once. Roof: memory
// bandwidth.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/common/ladder_declaration.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/fused/fused_launch.h"
#include "kernels/reduce/reduce.h"

namespace rooflab::kernels {

inline constexpr int kMaxFusedInstructions = 64;
inline constexpr int kMaxFusedReductions = 4;
inline constexpr int kMaxFusedRowInstructions = 16;
inline constexpr int kMaxFusedRowValues = kMaxFusedReductions + kMaxFusedRowInstructions;
inline constexpr int kMaxFusedValues =
    kMaxFusedOperands + kMaxFusedNumbers + kMaxFusedInstructions + kMaxFusedRowValues;

// Values are numbered: first the operands, then the numbers, then the results of instructions on elements, then the
// results of reductions, and last the results of instructions on rows.
struct FusedInstruction {
  ElementwiseOp op;
  DType dtype;  // of the inputs (where: of a and b)
  DType out_dtype;
  int16_t inputs[3];
};

struct FusedReduction {
  ReduceOp op;
  DType dtype;  // floating, of the input and of the result
  int16_t input;
};

struct FusedProgram {
  int operands = 0, numbers = 0, instructions = 0, reductions = 0, row_instructions = 0, results = 0;
  DType operand_dtypes[kMaxFusedOperands];
  DType number_dtypes[kMaxFusedNumbers];  // those of the tensors that the numbers are combined with
  FusedInstruction instruction[kMaxFusedInstructions];
  FusedReduction reduction[kMaxFusedReductions];
  FusedInstruction row_instruction[kMaxFusedRowInstructions];  // they only read operands that are constant along a row
  int16_t result_values[kMaxFusedResults];

  constexpr int first_made() const { return operands + numbers; }               // the value of instruction 0
  constexpr int first_of_row() const { return first_made() + instructions; }    // of reduction 0
  constexpr int first_row_made() const { return first_of_row() + reductions; }  // of row_instruction 0
  constexpr int values() const { return first_row_made() + row_instructions; }
  constexpr DType dtype_of(int value) const {
    if (value < operands) return operand_dtypes[value];
    if (value < first_made()) return number_dtypes[value - operands];
    if (value < first_of_row()) return instruction[value - first_made()].out_dtype;
    if (value < first_row_made()) return reduction[value - first_of_row()].dtype;
    return row_instruction[value - first_row_made()].out_dtype;
  }
};

struct FusedArgs {
  FusedProgram program;
  FusedLaunch launch;
};
static_assert(sizeof(FusedArgs) <= 4096, "a CUDA kernel's parameters");

// The CUDA C++ that v1_nvrtc compiles: one kernel, in which each thread computes `width` neighbours; the files that it
// includes, as (name, text); and the compiler's options, except the architecture.
std::string fused_source(const FusedProgram& program, int width);
const std::vector<std::pair<std::string, std::string>>& fused_headers();
const std::vector<std::string>& fused_options();
// Elements in a 16-byte access of the widest array, if all arrays are laid out for such accesses; otherwise 1.
int fused_width(const FusedArgs& args);

extern const Ladder<FusedArgs> fused_ladder;

}  // namespace rooflab::kernels
