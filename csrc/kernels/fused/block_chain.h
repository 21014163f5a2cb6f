// The elements of a chain, a block at a time. For *_simd.cpp files (see simd.h).
#pragma once

#include <memory>

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
  with_computed_type(dtype,
                     [&]<class T>(T) { std::fill_n(reinterpret_cast<T*>(block.bytes), kBlock, scalar_as<T>(number)); });
}

// Repeats each of `count` numbers n times.
void repeat_numbers(DType dtype, const void* numbers, int64_t count, int64_t n, BlockBuffer& block) {
  with_computed_type(dtype, [&]<class T>(T) {
    for (int64_t i = 0; i < count; ++i)
      std::fill_n(reinterpret_cast<T*>(block.bytes) + i * n, n, static_cast<const T*>(numbers)[i]);
  });
}

// Arrays on the heap: a thread's stack may be small.
template <class T>
std::unique_ptr<T[]> array_of(int64_t count) {
  return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(count));
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
    const ElementwiseScalar number{};
    const void* inputs[4] = {nullptr, nullptr, nullptr, &number};
    for (int k = 0; k < info(instruction.op).arity; ++k) inputs[k] = values[instruction.inputs[k]];
    kernel_(inputs, made, n, outcomes_);
    if (round_) round_(made, n);
  }

 private:
  BlockKernel kernel_ = nullptr;
  unsigned outcomes_ = 0;
  void (*round_)(void*, int64_t) = nullptr;  // null: no rounding to 16 bits
};

// Indices of values, instructions or results, in an array of fixed size.
struct Indices {
  int16_t indices[kMaxFusedValues];
  int count = 0;

  void add(int index) { indices[count++] = static_cast<int16_t>(index); }
  const int16_t* begin() const { return indices; }
  const int16_t* end() const { return indices + count; }
};

// Where each value of a block is kept, the step that makes it, and what each pass does. Computed once for all blocks.
struct Schedule {
  enum Place : int8_t { kOperand, kNumber, kBuffer, kResult, kKept, kOfRow };
  Place place[kMaxFusedValues];
  int16_t index[kMaxFusedValues];  // among the values in such a place
  Step steps[kMaxFusedInstructions];
  int buffers = 0, kept = 0;
  struct Pass {
    FusedProgram::Values is_needed;
    Indices moving;  // values that lie elsewhere in each block
    Indices made;    // instructions
    Indices stored;  // results of elements
  };
  Pass passes[kMaxFusedPasses];

  explicit Schedule(const FusedProgram& program) {
    const auto put = [&](int first, int last, Place where) {
      for (int v = first; v < last; ++v) place[v] = where, index[v] = static_cast<int16_t>(v - first);
    };
    put(0, program.operands, kOperand);
    put(program.operands, program.first_made(), kNumber);
    put(program.first_of_row(), program.values(), kOfRow);
    for (int i = 0; i < program.instructions; ++i) steps[i] = Step(program.instruction[i]);
    FusedProgram::Values is_result{}, is_there{};
    for (int k = 0; k < program.results; ++k) is_result[program.result_values[k]] = true;
    for (int p = 0; p < program.passes; ++p) {
      Pass& pass = passes[p];
      pass.is_needed = program.needed_in(p, is_there);
      for (int i = 0; i < program.instructions; ++i) {
        const int v = program.first_made() + i;
        if (pass.is_needed[v] && !is_there[v]) pass.made.add(i);
        is_there[v] |= pass.is_needed[v] && !is_result[v];  // a result is computed again: its memory may be far away
      }
      for (int k = 0; k < program.results; ++k)
        if (const int v = program.result_values[k]; !program.is_of_row(v) && program.stored_in(v) == p)
          pass.stored.add(k);
    }
    place_made(program);
    for (int p = 0; p < program.passes; ++p)
      for (int v = 0; v < program.first_of_row(); ++v)
        if (passes[p].is_needed[v] && place[v] != kNumber && place[v] != kBuffer) passes[p].moving.add(v);
  }

 private:
  // Whether more than one pass needs the value: the first of them makes it.
  bool is_kept(int value, int count_of_passes) const {
    int count = 0;
    for (int p = 0; p < count_of_passes; ++p) count += passes[p].is_needed[value];
    return count > 1;
  }

  // Results are made in the place they are written from. What a later pass reads is kept for as many elements as there
  // are between two passes. All other values share as few buffers as possible.
  void place_made(const FusedProgram& program) {
    int last_use[kMaxFusedValues] = {};
    for (int i = 0; i < program.instructions; ++i)
      for (int k = 0; k < info(program.instruction[i].op).arity; ++k) last_use[program.instruction[i].inputs[k]] = i;
    for (int r = 0; r < program.reductions; ++r) last_use[program.reduction[r].input] = program.instructions;
    for (int k = 0; k < program.column_sums; ++k) last_use[program.column_sum[k].input] = program.instructions;
    int free_after[kMaxFusedInstructions];  // the last instruction that reads the buffer's current value
    for (int i = 0; i < program.instructions; ++i) {
      const int v = program.first_made() + i;
      place[v] = kBuffer;
      for (int k = 0; k < program.results; ++k)
        if (program.result_values[k] == v) place[v] = kResult, index[v] = static_cast<int16_t>(k);
      if (place[v] == kResult) continue;
      if (is_kept(v, program.passes)) {
        place[v] = kKept;
        index[v] = static_cast<int16_t>(kept++);
        continue;
      }
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
  // `held`: how many elements are computed between two passes.
  Blocks(const FusedArgs& args, const Schedule& schedule, int64_t held, const Target& target)
      : program_(args.program),
        schedule_(schedule),
        held_blocks_((held + kBlock - 1) / kBlock),
        operands_(array_of<BlockReader>(program_.operands)),
        results_(array_of<BlockWriter>(program_.results)),
        numbers_(array_of<BlockBuffer>(program_.numbers)),
        buffers_(array_of<BlockBuffer>(schedule.buffers)),
        of_row_(array_of<BlockBuffer>(program_.passes > 1 ? program_.values() - program_.first_of_row() : 0)),
        kept_(array_of<BlockBuffer>(schedule.kept * held_blocks_)) {
    const FusedLaunch& launch = args.launch;
    for (int k = 0; k < program_.operands; ++k)
      operands_[k].open({static_cast<char*>(const_cast<void*>(launch.operands[k].data)), program_.operand_dtypes[k],
                         launch.ndim, launch.sizes, launch.operands[k].strides},
                        SmallFloats::kAsFloat);
    for (int k = 0; k < program_.results; ++k) {
      if (program_.is_of_row(program_.result_values[k])) continue;
      const DType dtype = program_.dtype_of(program_.result_values[k]);
      results_[k].open({static_cast<char*>(launch.results[k]), dtype, 1, &launch.count, &kContiguous},
                       SmallFloats::kAsFloat, target.exceeds_cache(launch.count * size_of(dtype)));
    }
    for (int k = 0; k < program_.numbers; ++k) fill_block(program_.number_dtypes[k], launch.numbers[k], numbers_[k]);
    for (int v = 0; v < program_.values(); ++v) {
      const int index = schedule.index[v];
      if (schedule.place[v] == Schedule::kNumber) values_[v] = numbers_[index].bytes;
      if (schedule.place[v] == Schedule::kBuffer) values_[v] = buffers_[index].bytes;
      if (schedule.place[v] == Schedule::kOfRow) values_[v] = of_row_.get() + index;
    }
  }

  // Computes what a pass needs of elements [begin, begin + n), n <= kBlock. They are those from `at` on of the elements
  // between two passes.
  void run(int pass, int64_t begin, int64_t at, int64_t n) {
    const auto& [is_needed, moving, made, stored] = schedule_.passes[pass];
    for (const int v : moving) values_[v] = place_of(v, begin, at, n);
    for (const int i : made)
      schedule_.steps[i].run(program_.instruction[i], values_, values_[program_.first_made() + i], n);
    for (const int k : stored) results_[k].commit(begin, n);
  }

  // Repeats a value of `count` rows, one for each of n elements of a row.
  void set_of_rows(int v, const void* numbers, int64_t count, int64_t n) {
    repeat_numbers(computed(program_.dtype_of(v)), numbers, count, n, of_row_[schedule_.index[v]]);
  }

  void* value(int v) const { return values_[v]; }
  void* number(int k) { return numbers_[k].bytes; }

 private:
  // Where a value of the elements from `begin` on lies. An operand is read.
  void* place_of(int v, int64_t begin, int64_t at, int64_t n) {
    const int index = schedule_.index[v];
    if (schedule_.place[v] == Schedule::kOperand) return const_cast<void*>(operands_[index].read(begin, n));
    if (schedule_.place[v] == Schedule::kResult) return results_[index].target(begin);
    return kept_[index * held_blocks_].bytes + at * size_of(computed(program_.dtype_of(v)));
  }

  const FusedProgram& program_;
  const Schedule& schedule_;
  const int64_t held_blocks_;
  const std::unique_ptr<BlockReader[]> operands_;
  const std::unique_ptr<BlockWriter[]> results_;
  const std::unique_ptr<BlockBuffer[]> numbers_, buffers_, of_row_, kept_;
  void* values_[kMaxFusedValues];
};

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
