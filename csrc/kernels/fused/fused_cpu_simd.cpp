// v1_blocks of fused: the block kernels of the elementwise family, one after another on the same block, and reductions
// of its rows.
#include <algorithm>

#include "kernels/common/column_sums.h"
#include "kernels/common/row_simd.h"
#include "kernels/fused/block_chain.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int64_t kHeldElements = 1 << 14;  // elements of rows that are still in a cache when another pass reads them

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
double reduced(ReduceOp op, const T* x, int64_t n) {
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
  Rows(const FusedArgs& args, const Schedule& schedule, const Target& target)
      : program_(args.program),
        launch_(args.launch),
        schedule_(schedule),
        operands_(array_of<BlockReader>(program_.operands)),
        results_(array_of<BlockWriter>(program_.results)),
        made_(array_of<BlockBuffer>(program_.values() - program_.first_of_row())),
        totals_(array_of<BlockBuffer>(program_.reductions)) {
    for (int k = 0; k < program_.operands; ++k)
      operands_[k].open({static_cast<char*>(const_cast<void*>(launch_.operands[k].data)), program_.operand_dtypes[k],
                         launch_.row_ndim, launch_.sizes, launch_.operands[k].strides},
                        SmallFloats::kAsFloat);
    for (int k = 0; k < program_.results; ++k) {
      if (!program_.is_of_row(program_.result_values[k])) continue;
      const DType dtype = program_.dtype_of(program_.result_values[k]);
      results_[k].open({static_cast<char*>(launch_.results[k]), dtype, 1, &launch_.rows, &kContiguous},
                       SmallFloats::kAsFloat, target.exceeds_cache(launch_.rows * size_of(dtype)));
    }
    for (int i = 0; i < program_.row_instructions; ++i) steps_[i] = Step(program_.row_instruction[i]);
  }

  // The sums of columns over the rows that follow begin anew, in doubles: (column_sums, columns).
  void begin_sums(double* sums) {
    sums_ = sums;
    std::fill_n(sums, program_.column_sums * launch_.columns, 0.0);
  }

  // One pass over rows [first, first + n), several short ones at a time.
  void run(Blocks& blocks, int pass, int64_t first, int64_t n) {
    const int64_t together = std::max<int64_t>(kBlock / launch_.columns, 1);
    for (int64_t row = 0; row < n; row += together) run_rows(blocks, pass, first, row, std::min(together, n - row));
    run_instructions(blocks, pass, first, n);
  }

  // Stores the results of rows [first, first + n).
  void store(int64_t first, int64_t n) {
    for (int k = 0; k < program_.results; ++k) {
      const int v = program_.result_values[k];
      if (!program_.is_of_row(v)) continue;
      std::memcpy(results_[k].target(first), made_[schedule_.index[v]].bytes,
                  static_cast<size_t>(n * size_of(computed(program_.dtype_of(v)))));
      results_[k].commit(first, n);
    }
  }

 private:
  // A pass over `count` rows from `first + row` on, block by block, with its reductions.
  void run_rows(Blocks& blocks, int pass, int64_t first, int64_t row, int64_t count) {
    for (int v = program_.first_of_row(); v < program_.values(); ++v)
      if (schedule_.passes[pass].is_needed[v])
        blocks.set_of_rows(v, at(v, row), count, std::min(kBlock, launch_.columns));
    for (int64_t column = 0; column < launch_.columns; column += kBlock) {
      const int64_t n = std::min(kBlock, launch_.columns - column), place = row * launch_.columns + column;
      blocks.run(pass, first * launch_.columns + place, place, count * n);
      for (int r = 0; r < program_.reductions; ++r)
        if (program_.reduction[r].pass == pass) reduce(blocks, r, count, n, column == 0);
      for (int k = 0; k < program_.column_sums; ++k)
        if (program_.column_sum[k].pass == pass) add_columns(blocks, k, column, count, n);
    }
    for (int r = 0; r < program_.reductions; ++r)
      if (program_.reduction[r].pass == pass) finish(r, row, count);
  }

  // Adds n elements of each of `count` rows to the rows' totals.
  void reduce(Blocks& blocks, int r, int64_t count, int64_t n, bool is_first) {
    const FusedReduction& reduction = program_.reduction[r];
    with_computed_type(reduction.dtype, [&]<class T>(T) {
      if constexpr (std::is_floating_point_v<T>) {
        const T* elements = static_cast<const T*>(blocks.value(reduction.input));
        double* total = totals(r);
        for (int64_t i = 0; i < count; ++i) {
          const double found = reduced(reduction.op, elements + i * n, n);
          total[i] = is_first ? found : joined(reduction.op, total[i], found);
        }
      }
    });
  }

  // Adds n elements of each of `count` rows to the sums of the columns from `column` on.
  void add_columns(Blocks& blocks, int k, int64_t column, int64_t count, int64_t n) {
    const FusedColumnSum& sum = program_.column_sum[k];
    with_computed_type(sum.dtype, [&]<class T>(T) {
      const T* elements = static_cast<const T*>(blocks.value(sum.input));
      double* to = sums_ + k * launch_.columns + column;
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < n; ++j) to[j] += static_cast<double>(elements[i * n + j]);
    });
  }

  // Makes the totals the values of rows from `row` on.
  void finish(int r, int64_t row, int64_t count) {
    const FusedReduction& reduction = program_.reduction[r];
    const double divisor = reduction.op == ReduceOp::kMean ? static_cast<double>(launch_.columns) : 1;
    with_computed_type(reduction.dtype, [&]<class T>(T) {
      T* to = static_cast<T*>(at(program_.first_of_row() + r, row));
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(totals(r)[i] / divisor);
    });
  }

  double* totals(int r) { return reinterpret_cast<double*>(totals_[r].bytes); }
  void* at(int v, int64_t row) {
    return made_[schedule_.index[v]].bytes + row * size_of(computed(program_.dtype_of(v)));
  }

  // The instructions that follow the reductions of a pass.
  void run_instructions(Blocks& blocks, int pass, int64_t first, int64_t n) {
    void* values[kMaxFusedValues];
    for (int k = 0; k < program_.numbers; ++k) values[program_.operands + k] = blocks.number(k);
    for (int v = program_.first_of_row(); v < program_.values(); ++v) values[v] = made_[schedule_.index[v]].bytes;
    for (int i = 0; i < program_.row_instructions; ++i) {
      const FusedInstruction& instruction = program_.row_instruction[i];
      if (instruction.pass != pass) continue;
      for (int k = 0; k < info(instruction.op).arity; ++k)
        if (const int v = instruction.inputs[k]; v < program_.operands)
          values[v] = const_cast<void*>(operands_[v].read(first, n));
      steps_[i].run(instruction, values, values[program_.first_row_made() + i], n);
    }
  }

  const FusedProgram& program_;
  const FusedLaunch& launch_;
  const Schedule& schedule_;
  Step steps_[kMaxFusedRowInstructions];
  const std::unique_ptr<BlockReader[]> operands_;
  const std::unique_ptr<BlockWriter[]> results_;
  const std::unique_ptr<BlockBuffer[]> made_;    // the values of rows, in the order of the program
  const std::unique_ptr<BlockBuffer[]> totals_;  // of the rows of a block, by reduction
  double* sums_ = nullptr;
};

// Adds up what the blocks of rows left for each column: (blocks, column_sums, columns).
void add_blocks(const FusedArgs& args, const double* partial, Queue& queue) {
  const FusedProgram& program = args.program;
  const FusedLaunch& launch = args.launch;
  const int64_t blocks = cpu_blocks(launch.rows), width = program.column_sums * launch.columns;
  for (int k = 0; k < program.column_sums; ++k) {
    const DType dtype = program.column_sum[k].dtype;
    queue.parallel(launch.columns, 1 + kParallelGrain / blocks, [&](int64_t first, int64_t last, int) {
      BlockWriter result;
      result.open({static_cast<char*>(launch.column_sums[k]), dtype, 1, &launch.columns, &kContiguous},
                  SmallFloats::kAsFloat, false);
      double total[kBlock];
      for (int64_t column = first; column < last; column += kBlock) {
        const int64_t n = std::min(kBlock, last - column);
        std::fill_n(total, n, 0.0);
        for (int64_t block = 0; block < blocks; ++block)
          for (int64_t i = 0; i < n; ++i) total[i] += partial[block * width + k * launch.columns + column + i];
        with_computed_type(dtype, [&]<class T>(T) {
          T* to = static_cast<T*>(result.target(column));
          for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(total[i]);
        });
        result.commit(column, n);
      }
    });
  }
}

}  // namespace

void fused_cpu_v1_blocks(const FusedArgs& args, Queue& queue) {
  const FusedProgram& program = args.program;
  const FusedLaunch& launch = args.launch;
  const Schedule schedule(program);
  if (program.reductions == 0) {
    queue.parallel(launch.count, kParallelGrain, [&](int64_t first, int64_t last, int) {
      Blocks blocks(args, schedule, 0, queue.target());
      for (int64_t begin = first; begin < last; begin += kBlock)
        blocks.run(0, begin, 0, std::min(kBlock, last - begin));
    });
    return;
  }
  // Rows that are read again are few enough to stay in a cache from one pass to the next.
  const int64_t columns = launch.columns;
  const int64_t together = program.passes == 1 ? kBlock : std::clamp<int64_t>(kHeldElements / columns, 1, kBlock);
  // Rows whose columns are summed form the same blocks with any number of threads, and so does what is added up.
  const bool sums = program.column_sums > 0;
  const int64_t unit = sums ? cpu_block_rows(launch.rows) : 1, width = program.column_sums * columns;
  double* partial = sums ? queue.scratch<double>(cpu_blocks(launch.rows) * width) : nullptr;
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / (columns * unit));
  queue.parallel((launch.rows + unit - 1) / unit, grain, [&](int64_t first, int64_t last, int) {
    Blocks blocks(args, schedule, together * columns, queue.target());
    Rows rows(args, schedule, queue.target());
    const int64_t end = std::min(last * unit, launch.rows);
    for (int64_t begin = first * unit, n; begin < end; begin += n) {
      n = std::min(together, end - begin);
      if (sums) n = std::min(n, unit - begin % unit);
      if (sums && begin % unit == 0) rows.begin_sums(partial + begin / unit * width);
      for (int pass = 0; pass < program.passes; ++pass) rows.run(blocks, pass, begin, n);
      rows.store(begin, n);
    }
  });
  if (sums) add_blocks(args, partial, queue);
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
