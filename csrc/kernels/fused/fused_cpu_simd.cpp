// v1_blocks of fused: the block kernels of the elementwise family, one after another on the same block.
#include <algorithm>

#include "kernels/common/row_simd.h"
#include "kernels/elementwise/functors.h"
#include "kernels/elementwise/staged.h"
#include "kernels/fused/fused.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int64_t kContiguous = 1;  // the stride of a result

// The dtype in which a value is kept inside a block.
DType computed(DType dtype) { return is_floating(dtype) && size_of(dtype) == 2 ? DType::kFloat32 : dtype; }

template <class Small>
void round_block(void* block, int64_t n) {
  Small rounded[kBlock];
  convert_small<float, Small>(block, rounded, n);
  convert_small<Small, float>(rounded, block, n);
}

void fill_block(DType dtype, const ElementwiseScalar& number, BlockBuffer& block) {
  with_computed_type(dtype, [&]<class T>(T) {
    T* to = reinterpret_cast<T*>(block.bytes);
    for (int64_t i = 0; i < kBlock; ++i) to[i] = scalar_as<T>(number);
  });
}

// How an instruction runs on a block.
class Step {
 public:
  Step() = default;
  explicit Step(const FusedInstruction& instruction)
      : kernel_(block_kernel(instruction.op, computed(instruction.dtype), instruction.out_dtype)),
        outcomes_(outcomes(instruction.op)) {
    if (instruction.op != ElementwiseOp::kCast) return;
    if (instruction.out_dtype == DType::kFloat16) round_ = round_block<Half>;
    if (instruction.out_dtype == DType::kBFloat16) round_ = round_block<BFloat16>;
  }

  void run(const FusedInstruction& instruction, void* const* values, void* made, int64_t n) const {
    const void* inputs[3];
    for (int k = 0; k < info(instruction.op).arity; ++k) inputs[k] = values[instruction.inputs[k]];
    kernel_(inputs, made, n, outcomes_);
    if (round_) round_(made, n);
  }

 private:
  BlockKernel kernel_ = nullptr;
  unsigned outcomes_ = 0;
  void (*round_)(void*, int64_t) = nullptr;  // null: no rounding to 16 bits
};

// Where each value of a block is kept, and the step that makes it. Computed once for all blocks.
struct Schedule {
  enum Place : int8_t { kOperand, kNumber, kBuffer, kResult };
  Place place[kMaxFusedValues];
  int16_t index[kMaxFusedValues];  // of the operand, number, buffer or result
  Step steps[kMaxFusedInstructions];
  int buffers = 0;

  explicit Schedule(const FusedProgram& program) {
    for (int v = 0; v < program.first_made(); ++v) {
      place[v] = v < program.operands ? kOperand : kNumber;
      index[v] = static_cast<int16_t>(v < program.operands ? v : v - program.operands);
    }
    place_made(program);
    for (int i = 0; i < program.instructions; ++i) steps[i] = Step(program.instruction[i]);
  }

 private:
  // Results are made in the place they are written from; all other values share as few buffers as possible.
  void place_made(const FusedProgram& program) {
    int last_use[kMaxFusedValues] = {};
    for (int i = 0; i < program.instructions; ++i)
      for (int k = 0; k < info(program.instruction[i].op).arity; ++k) last_use[program.instruction[i].inputs[k]] = i;
    for (int r = 0; r < program.reductions; ++r) last_use[program.reduction[r].input] = program.instructions;
    int free_after[kMaxFusedInstructions];  // the last instruction that reads the buffer's current value
    for (int i = 0; i < program.instructions; ++i) {
      const int v = program.first_made() + i;
      place[v] = kBuffer;
      for (int k = 0; k < program.results; ++k)
        if (program.result_values[k] == v) place[v] = kResult, index[v] = static_cast<int16_t>(k);
      if (place[v] == kResult) continue;
      int b = 0;
      while (b < buffers && free_after[b] >= i) ++b;
      buffers = b == buffers ? b + 1 : buffers;
      free_after[b] = last_use[v] > i ? last_use[v] : i;
      index[v] = static_cast<int16_t>(b);
    }
  }
};

// A thread's arrays, and the values of the block that it is working on.
class Blocks {
 public:
  Blocks(const FusedArgs& args, const Schedule& schedule, const Target& target)
      : program_(args.program), schedule_(schedule) {
    const FusedLaunch& launch = args.launch;
    for (int k = 0; k < program_.operands; ++k)
      operands_[k].open({static_cast<char*>(const_cast<void*>(launch.operands[k].data)), program_.operand_dtypes[k],
                         launch.ndim, launch.sizes, launch.operands[k].strides},
                        SmallFloats::kAsFloat);
    for (int k = 0; k < program_.results; ++k) {
      if (program_.result_values[k] >= program_.first_of_row()) continue;
      const DType dtype = program_.dtype_of(program_.result_values[k]);
      results_[k].open({static_cast<char*>(launch.results[k]), dtype, 1, &launch.count, &kContiguous},
                       SmallFloats::kAsFloat, target.exceeds_cache(launch.count * size_of(dtype)));
    }
    for (int k = 0; k < program_.numbers; ++k) fill_block(program_.number_dtypes[k], launch.numbers[k], numbers_[k]);
  }

  // Computes elements [begin, begin + n), n <= kBlock.
  void run(int64_t begin, int64_t n) {
    for (int v = 0; v < program_.first_of_row(); ++v) {
      const int index = schedule_.index[v];
      switch (schedule_.place[v]) {
        case Schedule::kOperand: values_[v] = const_cast<void*>(operands_[index].read(begin, n)); break;
        case Schedule::kNumber: values_[v] = numbers_[index].bytes; break;
        case Schedule::kBuffer: values_[v] = buffers_[index].bytes; break;
        case Schedule::kResult: values_[v] = results_[index].target(begin); break;
      }
    }
    for (int i = 0; i < program_.instructions; ++i)
      schedule_.steps[i].run(program_.instruction[i], values_, values_[program_.first_made() + i], n);
    for (int k = 0; k < program_.results; ++k)
      if (program_.result_values[k] < program_.first_of_row()) results_[k].commit(begin, n);
  }

  void* value(int v) const { return values_[v]; }
  void* number(int k) { return numbers_[k].bytes; }

 private:
  const FusedProgram& program_;
  const Schedule& schedule_;
  BlockReader operands_[kMaxFusedOperands];
  BlockWriter results_[kMaxFusedResults];
  BlockBuffer numbers_[kMaxFusedNumbers], buffers_[kMaxFusedInstructions];
  void* values_[kMaxFusedValues];
};

// A sum that overflows float on the way is computed again in double.
template <class T>
double sum_of(const T* x, int64_t n) {
  const double total = sum_row<T>(
      n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return load_lanes(x + i, lanes); });
  if (sizeof(T) == 8 || __builtin_isfinite(total)) return total;
  double again = 0;
  for (int64_t i = 0; i < n; ++i) again += x[i];
  return again;
}

template <class T>
double reduced(ReduceOp op, const void* block, int64_t n) {
  const T* x = static_cast<const T*>(block);
  if (op == ReduceOp::kMax) return extreme_row<true>(x, n);
  if (op == ReduceOp::kMin) return extreme_row<false>(x, n);
  return sum_of(x, n);
}

double joined(ReduceOp op, double total, double found) {
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) return total + found;
  const bool wins = op == ReduceOp::kMax ? found > total : found < total;
  return wins || found != found ? found : total;
}

// What a thread computes for rows, up to kBlock of them at a time.
class Rows {
 public:
  Rows(const FusedArgs& args, const Target& target)
      : program_(args.program), launch_(args.launch), rows_(launch_.count / launch_.columns) {
    for (int k = 0; k < program_.operands; ++k)
      operands_[k].open({static_cast<char*>(const_cast<void*>(launch_.operands[k].data)), program_.operand_dtypes[k],
                         launch_.row_ndim, launch_.sizes, launch_.operands[k].strides},
                        SmallFloats::kAsFloat);
    for (int k = 0; k < program_.results; ++k) {
      if (program_.result_values[k] < program_.first_of_row()) continue;
      const DType dtype = program_.dtype_of(program_.result_values[k]);
      results_[k].open({static_cast<char*>(launch_.results[k]), dtype, 1, &rows_, &kContiguous}, SmallFloats::kAsFloat,
                       target.exceeds_cache(rows_ * size_of(dtype)));
    }
    for (int i = 0; i < program_.row_instructions; ++i) steps_[i] = Step(program_.row_instruction[i]);
  }

  // Computes the reductions of row `first + row`, block by block.
  void reduce(Blocks& blocks, int64_t first, int64_t row) {
    double totals[kMaxFusedReductions] = {};
    const int64_t origin = (first + row) * launch_.columns;
    for (int64_t column = 0; column < launch_.columns; column += kBlock) {
      const int64_t n = std::min(kBlock, launch_.columns - column);
      blocks.run(origin + column, n);
      for (int r = 0; r < program_.reductions; ++r) {
        const auto& [op, dtype, input] = program_.reduction[r];
        const double found = dtype == DType::kFloat64 ? reduced<double>(op, blocks.value(input), n)
                                                      : reduced<float>(op, blocks.value(input), n);
        totals[r] = column == 0 ? found : joined(op, totals[r], found);
      }
    }
    for (int r = 0; r < program_.reductions; ++r) {
      const auto& [op, dtype, input] = program_.reduction[r];
      const double value = op == ReduceOp::kMean ? totals[r] / static_cast<double>(launch_.columns) : totals[r];
      if (dtype == DType::kFloat64)
        reinterpret_cast<double*>(made_[r].bytes)[row] = value;
      else
        reinterpret_cast<float*>(made_[r].bytes)[row] = static_cast<float>(value);
    }
  }

  // Runs the instructions on rows [first, first + n), and stores their results.
  void finish(Blocks& blocks, int64_t first, int64_t n) {
    void* values[kMaxFusedValues];
    for (int k = 0; k < program_.numbers; ++k) values[program_.operands + k] = blocks.number(k);
    for (int v = program_.first_of_row(); v < program_.values(); ++v)
      values[v] = made_[v - program_.first_of_row()].bytes;
    for (int i = 0; i < program_.row_instructions; ++i) {
      const FusedInstruction& instruction = program_.row_instruction[i];
      for (int k = 0; k < info(instruction.op).arity; ++k)
        if (const int v = instruction.inputs[k]; v < program_.operands)
          values[v] = const_cast<void*>(operands_[v].read(first, n));
      steps_[i].run(instruction, values, values[program_.first_row_made() + i], n);
    }
    for (int k = 0; k < program_.results; ++k) {
      const int v = program_.result_values[k];
      if (v < program_.first_of_row()) continue;
      std::memcpy(results_[k].target(first), values[v],
                  static_cast<size_t>(n * size_of(computed(program_.dtype_of(v)))));
      results_[k].commit(first, n);
    }
  }

 private:
  const FusedProgram& program_;
  const FusedLaunch& launch_;
  const int64_t rows_;
  Step steps_[kMaxFusedRowInstructions];
  BlockReader operands_[kMaxFusedOperands];
  BlockWriter results_[kMaxFusedResults];
  BlockBuffer made_[kMaxFusedRowValues];
};

}  // namespace

void fused_cpu_v1_blocks(const FusedArgs& args, Queue& queue) {
  const FusedLaunch& launch = args.launch;
  const Schedule schedule(args.program);
  if (args.program.reductions == 0) {
    queue.parallel(launch.count, kParallelGrain, [&](int64_t first, int64_t last, int) {
      Blocks blocks(args, schedule, queue.target());
      for (int64_t begin = first; begin < last; begin += kBlock) blocks.run(begin, std::min(kBlock, last - begin));
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / launch.columns);
  queue.parallel(launch.count / launch.columns, grain, [&](int64_t first, int64_t last, int) {
    Blocks blocks(args, schedule, queue.target());
    Rows rows(args, queue.target());
    for (int64_t begin = first; begin < last; begin += kBlock) {
      const int64_t n = std::min(kBlock, last - begin);
      for (int64_t row = 0; row < n; ++row) rows.reduce(blocks, begin, row);
      rows.finish(blocks, begin, n);
    }
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
