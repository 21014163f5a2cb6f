// The elementwise family on the CPU. v1 and v1b have one kernel for each op and type computed in; staged.h feeds it
// block by block. v2 has one for each op and type of element, which goes row by row from memory to registers and back.
#include "kernels/elementwise/contiguous_rows.h"
#include "kernels/elementwise/functors.h"
#include "kernels/elementwise/functors_simd.h"
#include "kernels/elementwise/staged.h"
#include "kernels/elementwise/turn_tiles.h"

namespace rooflab::kernels {
void check_divisor(const ElementwiseArgs& args, Queue& queue);  // elementwise_cpu.cpp
}

namespace rooflab::kernels::ROOFLAB_ISA {

namespace {

// Of bools, as bytes that hold 0 or 1: the compiler makes no vectors of the type bool.
template <ElementwiseOp kOp>
void bitwise_block(const uint8_t* a, const uint8_t* b, uint8_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = kOp == ElementwiseOp::kBitwiseNot ? a[i] ^ uint8_t { 1 } : evaluate_bits<kOp, uint8_t>(a[i], b[i]);
}

template <ElementwiseOp kOp, class T>
void arithmetic_block(const void* const* in, void* out, int64_t n, unsigned) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[info(kOp).arity > 1 ? 1 : 0]);
  const T* c = static_cast<const T*>(in[info(kOp).arity - 1]);
  T* to = static_cast<T*>(out);
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int kLanes = Simd<T>::kLanes;
    const Simd<T> number = scalar_as<T>(*static_cast<const ElementwiseScalar*>(in[3]));
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(to + i, evaluate<kOp>(load(a + i), load(b + i), load(c + i), number));
    const int64_t rest = n - i;
    if (rest > 0) store(to + i, evaluate<kOp>(load(a + i, rest), load(b + i, rest), load(c + i, rest), number), rest);
  } else if constexpr (std::is_same_v<T, bool>) {
    bitwise_block<kOp>(static_cast<const uint8_t*>(in[0]), static_cast<const uint8_t*>(in[info(kOp).arity - 1]),
                       static_cast<uint8_t*>(out), n);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = evaluate<kOp>(a[i], b[i], c[i]);
  }
}

template <class T>
void comparison_block(const void* const* in, void* out, int64_t n, unsigned outcomes) {
  using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  const Element* a = static_cast<const Element*>(in[0]);
  const Element* b = static_cast<const Element*>(in[1]);
  if constexpr (std::is_same_v<T, bool>) {
    uint8_t* to = static_cast<uint8_t*>(out);
    const uint8_t less = outcomes & kLess ? 1 : 0, equal = outcomes & kEqual ? 1 : 0,
                  greater = outcomes & kGreater ? 1 : 0;
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t x = a[i], y = b[i], differs = x ^ y;
      to[i] = (less & differs & y) | (greater & differs & x) | (equal & (differs ^ 1));
    }
  } else {
    bool* to = static_cast<bool*>(out);
    for (int64_t i = 0; i < n; ++i) to[i] = holds(outcomes, a[i], b[i]);
  }
}

template <class From, class To>
void cast_block(const void* const* in, void* out, int64_t n, unsigned) {
  const From* from = static_cast<const From*>(in[0]);
  To* to = static_cast<To*>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
}

// Casts to a float from which a 16-bit type is then made, with one correct rounding in all.
template <class From>
void cast_to_small_block(const void* const* in, void* out, int64_t n, unsigned) {
  using Wide = std::conditional_t<std::is_integral_v<From>, int64_t, double>;
  const From* from = static_cast<const From*>(in[0]);
  float* to = static_cast<float*>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = round_to_odd(static_cast<Wide>(from[i]));
}

template <class Word>
void where_block(const void* const* in, void* out, int64_t n, unsigned) {
  const uint8_t* condition = static_cast<const uint8_t*>(in[0]);
  const Word* a = static_cast<const Word*>(in[1]);
  const Word* b = static_cast<const Word*>(in[2]);
  Word* to = static_cast<Word*>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = condition[i] ? a[i] : b[i];
}

template <class Word>
void copy_block(const void* const* in, void* out, int64_t n, unsigned) {
  std::memcpy(out, in[0], static_cast<size_t>(n) * sizeof(Word));
}

}  // namespace

BlockKernel block_kernel(ElementwiseOp op, DType dtype, DType out_dtype) {
  if (op == ElementwiseOp::kWhere)
    return with_word(dtype, []<class Word>(Word) -> BlockKernel { return where_block<Word>; });
  if (op == ElementwiseOp::kCopy)
    return with_word(dtype, []<class Word>(Word) -> BlockKernel { return copy_block<Word>; });
  return with_computed_type(dtype, [&]<class T>(T) -> BlockKernel {
    if (op == ElementwiseOp::kCast && is_floating(out_dtype) && size_of(out_dtype) == 2) return cast_to_small_block<T>;
    if (op == ElementwiseOp::kCast)
      return with_computed_type(out_dtype, []<class To>(To) -> BlockKernel { return cast_block<T, To>; });
    if (is_comparison(op)) return comparison_block<T>;
    BlockKernel kernel = nullptr;
    dispatch_arithmetic(op, [&]<ElementwiseOp kOp>() {
      if constexpr (takes<T>(kOp)) kernel = arithmetic_block<kOp, T>;
    });
    return kernel;
  });
}

namespace {

template <class Small>
void round_block(const void* from, void* to, int64_t n) {
  BlockBuffer narrow;
  convert_small<float, Small>(from, narrow.bytes, n);
  convert_small<Small, float>(narrow.bytes, to, n);
}

// The dtype that is computed as this one is: float32 for 16 bits.
DType computed_as(DType dtype) { return size_of(dtype) == 2 ? DType::kFloat32 : dtype; }

Conversion conversion(DType from, DType to) {
  Conversion made;
  if (computed_as(from) != computed_as(to)) made.cast = block_kernel(ElementwiseOp::kCast, from, to);
  if (from != to && to == DType::kFloat16) made.round = round_block<Half>;
  if (from != to && to == DType::kBFloat16) made.round = round_block<BFloat16>;
  return made;
}

// The block writer rounds to 16 bits itself.
Conversion conversion_of_result(DType from, DType to) {
  Conversion made = conversion(from, to);
  made.round = nullptr;
  return made;
}

void open_input(const ElementwiseArgs& args, int k, SmallFloats small, BlockReader& reader) {
  const ElementwiseOperand& input = args.inputs[k];
  const bool is_condition = args.op == ElementwiseOp::kWhere && k == 0;
  if (input.data != nullptr) {
    const StridedArray array{static_cast<char*>(const_cast<void*>(input.data)), input.dtype, args.ndim, args.sizes,
                             input.strides};
    return reader.open(array, small, is_condition ? Conversion{} : conversion(input.dtype, args.dtype));
  }
  const auto fill = [&]<class T>(T) { reader.fill(scalar_as<T>(input.scalar), args.count); };
  small == SmallFloats::kAsBits ? with_word(args.dtype, fill) : with_computed_type(args.dtype, fill);
}

StridedArray output_of(const ElementwiseArgs& args) {
  return {static_cast<char*>(args.out), args.out_dtype, args.ndim, args.sizes, args.out_strides};
}

}  // namespace

namespace {

// How blocks are computed.
struct Staged {
  const ElementwiseArgs& args;
  bool mixed = is_mixed(args);
  bool moves_bits = !mixed && (args.op == ElementwiseOp::kWhere || args.op == ElementwiseOp::kCopy);
  SmallFloats small = moves_bits ? SmallFloats::kAsBits : SmallFloats::kAsFloat;
  BlockKernel kernel = block_kernel(args.op, mixed ? computed_as(args.dtype) : args.dtype, args.out_dtype);
  Conversion of_result =
      mixed && !is_comparison(args.op) ? conversion_of_result(args.dtype, args.out_dtype) : Conversion{};
  StridedArray out = output_of(args);
  unsigned truths = outcomes(args.op);
  int arity = info(args.op).arity;
};

// What a thread needs for that.
struct StagedArrays {
  const Staged& op;
  BlockReader inputs[3];
  BlockWriter output;

  StagedArrays(const Staged& staged, bool streaming)
      : op(staged), output(staged.out, staged.small, streaming, staged.of_result) {
    for (int k = 0; k < op.arity; ++k) open_input(op.args, k, op.small, inputs[k]);
  }
  // Elements [begin, begin + n), where block(k) gives those of input k.
  template <class Block>
  ROOFLAB_INLINE void compute(int64_t begin, int64_t n, Block block) {
    const void* blocks[4];
    for (int k = 0; k < op.arity; ++k) blocks[k] = block(k);
    blocks[3] = &op.args.number;
    op.kernel(blocks, output.target(begin), n, op.truths);
    output.commit(begin, n);
  }
  void compute(int64_t first, int64_t last) {
    bool is_in_place = output.is_in_place();
    for (int k = 0; k < op.arity; ++k) is_in_place &= inputs[k].is_in_place();
    // Where no element passes through a buffer, a block has as many bytes whatever their size.
    const int64_t block = is_in_place ? kBlock * 8 / size_of(op.args.dtype) : kBlock;
    for (int64_t begin = first; begin < last; begin += block) {
      const int64_t n = smaller(last - begin, block);
      compute(begin, n, [&](int k) { return inputs[k].read(begin, n); });
    }
  }
};

// A number for each element, without a block of it that would be read again and again.
template <class Word>
void fill_dense(const ElementwiseArgs& args, Queue& queue) {
  Word* const to = static_cast<Word*>(args.out);
  const Word number = scalar_as<Word>(args.inputs[0].scalar);
  queue.parallel(args.count, kParallelGrain, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first; i < last; ++i) to[i] = number;
  });
}

}  // namespace

void elementwise_cpu_v1_staged(const ElementwiseArgs& args, Queue& queue) {
  check_divisor(args, queue);
  const Staged op{args};
  const int64_t line = 64 / size_of(args.out_dtype);
  const bool stays_in_cache = !queue.target().exceeds_cache(args.count * size_of(args.out_dtype));
  if (op.out.is_dense() && stays_in_cache && args.op == ElementwiseOp::kCopy && args.inputs[0].data == nullptr)
    return with_word(args.dtype, [&]<class Word>(Word) { fill_dense<Word>(args, queue); });
  if (!op.out.is_dense() || stays_in_cache)
    return queue.parallel(args.count, kParallelGrain,
                          [&](int64_t first, int64_t last, int) { StagedArrays(op, false).compute(first, last); });
  const int64_t lines = parts_of(args.count, line);
  queue.parallel(lines, lines_of_thread(queue, lines), [&](int64_t first, int64_t last, int) {
    StagedArrays arrays(op, true);
    walk_lines(first, last,
               [&](int64_t from, int64_t to) { arrays.compute(from * line, smaller(to * line, args.count)); });
  });
}

namespace {

// Turns a tile of one input.
void turn_tile(DType dtype, const void* data, int64_t offset, int64_t step, char* to, int64_t line, int64_t rows,
               int64_t columns) {
  with_word(dtype, [&]<class Word>(Word) {
    turn(static_cast<const Word*>(data) + offset, step, reinterpret_cast<Word*>(to), line, rows, columns);
  });
}

// Computes one tile. held[k] is a thread's scratch for input k, if that is turned.
void compute_tile(const ElementwiseTurns& turns, int64_t tile, StagedArrays& arrays, char* const (&held)[3]) {
  const ElementwiseArgs& args = arrays.op.args;
  const ElementwiseTurn& matrix = turns.of[0];
  const int64_t row = tile / turns.across % turns.down * turns.rows, column = tile % turns.across * turns.columns;
  const int64_t rows = smaller(turns.rows, matrix.rows - row),
                columns = smaller(turns.columns, matrix.columns - column);
  int64_t offsets[4] = {0, 0, 0, row * matrix.out_step + column};
  for (int k = 0; k < 3; ++k) offsets[k] = row + column * turns.of[k].step;
  add_offsets(tile / (turns.down * turns.across), matrix.outer_dims, matrix.sizes,
              {turns.of[0].strides, turns.of[1].strides, turns.of[2].strides, matrix.out_strides}, offsets);
  for (int k = 0; k < 3; ++k)
    if (turns.is_turned[k])
      turn_tile(args.inputs[k].dtype, args.inputs[k].data, offsets[k], turns.of[k].step, held[k], turns.columns, rows,
                columns);
  const int64_t runs = turns.has_whole_rows ? 1 : rows, run = turns.has_whole_rows ? rows * columns : columns;
  for (int64_t r = 0; r < runs; ++r)
    for (int64_t i = 0; i < run; i += kBlock) {
      const int64_t begin = offsets[3] + r * matrix.out_step + i, n = smaller(run - i, kBlock);
      arrays.compute(begin, n, [&](int k) {
        if (!turns.is_turned[k]) return arrays.inputs[k].read(begin, n);
        return arrays.inputs[k].computed(held[k] + (r * turns.columns + i) * size_of(args.inputs[k].dtype), n);
      });
    }
}

}  // namespace

void elementwise_cpu_v1b_turned(const ElementwiseArgs& args, Queue& queue) {
  check_divisor(args, queue);
  const Staged op{args};
  const ElementwiseTurns turns = elementwise_turns(args, queue.target());
  char* scratch = queue.scratch<char>(turns.workers * turns.bytes_of_worker);
  const int64_t grain = larger(kParallelGrain * turns.tiles / args.count, 1);
  queue.parallel(turns.tiles, grain, turns.workers, [&](int64_t begin, int64_t end, int worker) {
    StagedArrays arrays(op, false);
    char *held[3] = {}, *next = scratch + worker * turns.bytes_of_worker;
    for (int k = 0; k < 3; ++k)
      if (turns.is_turned[k]) held[k] = std::exchange(next, next + kElementwiseHeldBytes);
    for (int64_t tile = begin; tile < end; ++tile) compute_tile(turns, tile, arrays, held);
  });
}

void elementwise_cpu_v2_contiguous(const ElementwiseArgs& args, Queue& queue) {
  const RowsKernel kernel = find_rows_kernel(args);
  const int64_t* strides[3];
  for (int k = 0; k < 3; ++k)  // a number has none
    strides[k] = k < info(args.op).arity && args.inputs[k].data ? args.inputs[k].strides : args.out_strides;
  const auto compute = [&](int64_t first, int64_t last, bool streaming) {
    for_each_piece(
        args.ndim, args.sizes, {strides[0], strides[1], strides[2], args.out_strides}, first, last - first,
        [&](const auto& offsets, int64_t, int64_t rows, int64_t run) { kernel(args, offsets, rows, run, streaming); });
  };
  if (!output_of(args).is_dense() || !queue.target().exceeds_cache(args.count * size_of(args.dtype)))
    return queue.parallel(args.count, kParallelGrain,
                          [&](int64_t first, int64_t last, int) { compute(first, last, false); });
  const int64_t line = 64 / size_of(args.dtype), lines = args.count / line;
  parallel_lines(queue, lines, [&](int64_t first, int64_t last) { compute(first * line, last * line, true); });
  compute(lines * line, args.count, false);
}

void elementwise_cpu_v1a_rows(const ElementwiseArgs& args, Queue& queue) {
  const int64_t size = size_of(args.dtype);
  const CopyRows copy = copy_rows_of(size);
  const int64_t* const from_strides = args.inputs[0].strides;
  const Steps from_steps = steps_of(args.ndim, from_strides), to_steps = steps_of(args.ndim, args.out_strides);
  const char* from = static_cast<const char*>(args.inputs[0].data);
  char* to = static_cast<char*>(args.out);
  queue.parallel(args.count, kParallelGrain, [&](int64_t first, int64_t last, int) {
    const auto visit = [&](const auto& offsets, int64_t, int64_t rows, int64_t run) {
      copy(from + offsets[0] * size, from_steps, to + offsets[1] * size, to_steps, rows, run);
    };
    for_each_piece(args.ndim, args.sizes, {from_strides, args.out_strides}, first, last - first, visit);
  });
}

void elementwise_cpu_v3_tiles(const ElementwiseArgs& args, Queue& queue) {
  switch (size_of(args.dtype)) {
    case 1: return turn_tiles<uint8_t>(args, queue);
    case 2: return turn_tiles<uint16_t>(args, queue);
    case 4: return turn_tiles<uint32_t>(args, queue);
    default: return turn_tiles<uint64_t>(args, queue);
  }
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
