// A chain of elementwise ops in one pass: each element of the operands is read once, goes through all instructions, and
// the requested results are written once. Operands broadcast and may have any strides; results are contiguous and of
// one shape. Instructions mean the same as in the elementwise family (functors.h), but on a GPU a quotient of 16-bit
// values is to two units in the last place of float, and their exponential is the hardware's, which gives 0 below
// 2^-126. Values between instructions are not rounded to 16 bits unless a cast asks for it, so results are closer to
// the exact ones than those of separate ops.
//
// A chain may reduce its last dimensions (sum, mean, largest, smallest), which gives one number per row, and have
// instructions on these numbers. Elements that are made from such a number need another pass over the row: its operands
// are read again, from a cache as long as the row fits, and what the pass needs is computed again. Softmax takes three
// passes: the largest element, the sum of the exponentials, the quotients.
//
// Beside reductions of rows a chain may have sums of columns: one number for each column, the sum over all rows, such
// as the gradient of a norm's weight. Each block of rows leaves its own sums in scratch, and a second stage adds them
// (common/column_sums.h). Nothing in the chain reads such a sum. A GPU adds float64 in double and all others in
// float, which may overflow on the way where the op `sum` would add once more.
//
// FLOPs: those of all instructions, reductions and sums, once. Compulsory bytes: each operand once, each result once.
// Roof: memory bandwidth.
#pragma once

#include <array>
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
// Passes over a row: elements may be made from numbers of rows before the first reduction, and after each.
inline constexpr int kMaxFusedPasses = kMaxFusedReductions + 2;
inline constexpr int kMaxFusedRowValues = kMaxFusedReductions + kMaxFusedRowInstructions;
inline constexpr int kMaxFusedValues =
    kMaxFusedOperands + kMaxFusedNumbers + kMaxFusedInstructions + kMaxFusedRowValues;

// Whether a block's registers hold a row, and the sums of its columns over other rows. `bytes`: those of an element of
// each operand and of each sum together, which are at least 4 each. An operand with one number for a row has none.
constexpr bool holds_summed_row(int64_t columns, int64_t bytes) { return columns <= 8192 && columns * bytes <= 81920; }

// Values are numbered: first the operands, then the numbers, then the results of instructions on elements, then the
// results of reductions, and last the results of instructions on rows.
struct FusedInstruction {
  ElementwiseOp op;
  DType dtype;  // of the inputs (where: of a and b)
  DType out_dtype;
  int8_t pass;  // the first that computes it; on rows: the one after whose reductions it runs
  int16_t inputs[3];
};

struct FusedReduction {
  ReduceOp op;
  DType dtype;  // floating, of the input and of the result
  int8_t pass;
  int16_t input;
};

// For each column the sum over all rows. It has no number as a value, and is none of the `results`.
struct FusedColumnSum {
  DType dtype;  // of the input and of the result: floating, and float64 for all sums of a chain or for none
  int8_t pass;
  int16_t input;
};

struct FusedProgram {
  int operands = 0, numbers = 0, instructions = 0, reductions = 0, row_instructions = 0, results = 0;
  int column_sums = 0;  // only where there are reductions
  int passes = 1;       // over each row
  DType operand_dtypes[kMaxFusedOperands];
  DType number_dtypes[kMaxFusedNumbers];  // those of the tensors that the numbers are combined with
  FusedInstruction instruction[kMaxFusedInstructions];
  FusedReduction reduction[kMaxFusedReductions];
  FusedInstruction row_instruction[kMaxFusedRowInstructions];  // they only read operands that are constant along a row
  FusedColumnSum column_sum[kMaxFusedColumnSums];
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
  constexpr bool is_of_row(int value) const { return value >= first_of_row(); }
  // The pass that stores a result; those of rows are stored after the last.
  constexpr int stored_in(int result_value) const {
    return is_of_row(result_value) ? passes - 1 : instruction[result_value - first_made()].pass;
  }
  using Values = std::array<bool, kMaxFusedValues>;
  // Which values a pass reads or computes for each element: those that its reductions, sums and results are made of.
  // `kept`: instructions whose values are still there from passes before.
  constexpr Values needed_in(int pass, const Values& kept = {}) const {
    Values is_needed{};
    for (int r = 0; r < reductions; ++r)
      if (reduction[r].pass == pass) is_needed[reduction[r].input] = true;
    for (int k = 0; k < column_sums; ++k)
      if (column_sum[k].pass == pass) is_needed[column_sum[k].input] = true;
    for (int k = 0; k < results; ++k)
      if (const int value = result_values[k]; !is_of_row(value) && stored_in(value) == pass) is_needed[value] = true;
    for (int i = instructions - 1; i >= 0; --i)
      if (is_needed[first_made() + i] && !kept[first_made() + i])
        for (int k = 0; k < info(instruction[i].op).arity; ++k) is_needed[instruction[i].inputs[k]] = true;
    return is_needed;
  }
  // Of the sums that v1_nvrtc's blocks leave for each column.
  constexpr int64_t partial_sum_bytes(int64_t blocks, int64_t columns) const {
    return column_sums * blocks * columns * (column_sum[0].dtype == DType::kFloat64 ? 8 : 4);
  }
  constexpr int passes_that_read(int operand) const {
    int count = 0;
    for (int pass = 0; pass < passes; ++pass) count += needed_in(pass)[operand];
    return count;
  }
};

struct FusedArgs {
  FusedProgram program;
  FusedLaunch launch;
};
static_assert(sizeof(FusedArgs) <= 4096, "a CUDA kernel's parameters");

// What v1_nvrtc is compiled for. Where rows are reduced, a row belongs to some lanes of a warp, or to a block.
struct FusedTiling {
  int width = 1;         // neighbours that a thread moves in one access: a pack
  int threads = 32;      // of a row: up to 32, or a block of at least kFusedThreads
  int packs = 1;         // that a thread holds at a time
  bool keeps = true;     // whether these are all that it has of the row: later passes need not read it again
  int whole = 0;         // how many of these, from the first on, every thread has, where they are the whole row
  bool is_long = false;  // whether the results have 2^31 elements or more
  int dims = 2;          // FusedLaunch::ndim
  int row_dims = 1;      // FusedLaunch::row_ndim
  uint8_t repeats[kMaxFusedOperands] = {};  // bit d: the operand has stride 0 in dimension d
  uint32_t adjacent = 0;                    // bit k: operand k has stride 1 in the last dimension
  // Where no rows are reduced, bit k says of operand k
  uint32_t contiguous = 0;  // that its elements lie one behind another, in the order of the results, in aligned packs
  uint32_t loose = 0;       // or that they are read one by one, because packs would not be aligned

  // Whether an operand has one number for each row.
  constexpr bool is_constant(int operand) const { return repeats[operand] >> row_dims == (1 << (dims - row_dims)) - 1; }
};

// The CUDA C++ that v1_nvrtc compiles; the files that it includes, as (name, text); and the compiler's options, except
// the architecture.
std::string fused_source(const FusedProgram& program, const FusedTiling& tiling);
const std::vector<std::pair<std::string, std::string>>& fused_headers();
const std::vector<std::string>& fused_options();

extern const Ladder<FusedArgs> fused_ladder;

}  // namespace rooflab::kernels
