// v1_blocks of fused: the block kernels of the elementwise family, one after another on the same block.
#include "kernels/elementwise/functors.h"
#include "kernels/elementwise/staged.h"
#include "kernels/fused/fused.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// The dtype that a value has inside a block.
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

// Where each value of a block is, and what makes it. Worked out once for all blocks.
struct Schedule {
  enum Place : int8_t { kOperand, kNumber, kBuffer, kResult };
  struct Step {
    BlockKernel kernel;
    unsigned outcomes;
    void (*round)(void*, int64_t);  // null: no rounding to 16 bits
  };
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
    for (int i = 0; i < program.instructions; ++i) {
      const FusedInstruction& instruction = program.instruction[i];
      steps[i].kernel = block_kernel(instruction.op, computed(instruction.dtype), instruction.out_dtype);
      steps[i].outcomes = outcomes(instruction.op);
      steps[i].round = nullptr;
      if (instruction.op != ElementwiseOp::kCast) continue;
      if (instruction.out_dtype == DType::kFloat16) steps[i].round = round_block<Half>;
      if (instruction.out_dtype == DType::kBFloat16) steps[i].round = round_block<BFloat16>;
    }
  }

 private:
  // Results are made where they are written from; other values take turns in as few buffers as do.
  void place_made(const FusedProgram& program) {
    int last_use[kMaxFusedValues] = {};
    for (int i = 0; i < program.instructions; ++i)
      for (int k = 0; k < info(program.instruction[i].op).arity; ++k) last_use[program.instruction[i].inputs[k]] = i;
    int free_after[kMaxFusedInstructions];  // the last instruction that reads what the buffer holds
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

}  // namespace

void fused_cpu_v1_blocks(const FusedArgs& args, Queue& queue) {
  const FusedProgram& program = args.program;
  const FusedLaunch& launch = args.launch;
  const Schedule schedule(program);
  const int64_t contiguous = 1;
  queue.parallel(launch.count, kParallelGrain, [&](int64_t first, int64_t last, int) {
    BlockReader operands[kMaxFusedOperands];
    BlockWriter results[kMaxFusedResults];
    BlockBuffer numbers[kMaxFusedNumbers], buffers[kMaxFusedInstructions];
    for (int k = 0; k < program.operands; ++k)
      operands[k].open({static_cast<char*>(const_cast<void*>(launch.operands[k].data)), program.operand_dtypes[k],
                        launch.ndim, launch.sizes, launch.operands[k].strides},
                       SmallFloats::kAsFloat);
    for (int k = 0; k < program.results; ++k) {
      const DType dtype = program.dtype_of(program.result_values[k]);
      results[k].open({static_cast<char*>(launch.results[k]), dtype, 1, &launch.count, &contiguous},
                      SmallFloats::kAsFloat, queue.target().exceeds_cache(launch.count * size_of(dtype)));
    }
    for (int k = 0; k < program.numbers; ++k) fill_block(program.number_dtypes[k], launch.numbers[k], numbers[k]);

    void* values[kMaxFusedValues];
    for (int64_t begin = first; begin < last; begin += kBlock) {
      const int64_t n = last - begin < kBlock ? last - begin : kBlock;
      for (int v = 0; v < program.values(); ++v) {
        const int index = schedule.index[v];
        switch (schedule.place[v]) {
          case Schedule::kOperand: values[v] = const_cast<void*>(operands[index].read(begin, n)); break;
          case Schedule::kNumber: values[v] = numbers[index].bytes; break;
          case Schedule::kBuffer: values[v] = buffers[index].bytes; break;
          case Schedule::kResult: values[v] = results[index].target(begin); break;
        }
      }
      for (int i = 0; i < program.instructions; ++i) {
        const FusedInstruction& instruction = program.instruction[i];
        const Schedule::Step& step = schedule.steps[i];
        const void* inputs[3];
        for (int k = 0; k < info(instruction.op).arity; ++k) inputs[k] = values[instruction.inputs[k]];
        void* made = values[program.first_made() + i];
        step.kernel(inputs, made, n, step.outcomes);
        if (step.round) step.round(made, n);
      }
      for (int k = 0; k < program.results; ++k) results[k].commit(begin, n);
    }
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
