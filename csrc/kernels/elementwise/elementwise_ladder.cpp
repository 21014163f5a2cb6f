// The ladder of elementwise: see elementwise.h for what it computes.
//
// [measured add, exp] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                         add         exp
//                  16384x4096  16384x4096
//                     float32     float32
//                   % of copy   % of copy
//   v0_reference          9.7           4
//   v1_staged             149         149
//   v1a_rows                -           -
//   v1b_turned              -           -
//   v2_contiguous           -           -
//   v3_tiles                -           -
//   copy, GB/s             31          30
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                         add         add         exp         exp
//                  16384x4096  16384x4096  16384x4096  16384x4096
//                    bfloat16     float32    bfloat16     float32
//                   % of copy   % of copy   % of copy   % of copy
//   v0_reference          7.7          14         5.6          11
//   v1_strided             65         102          63          92
//   v2_vectorised         102         101         100         100
//   v2a_gathered            -           -           -           -
//   v2b_tiles               -           -           -           -
//   v3_mixed                -           -           -           -
//   torch                 102         101         101         100
//   copy, GB/s           2948        3001        2915        2978
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include <algorithm>
#include <bit>

#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/common/launch_size.h"
#include "kernels/elementwise/elementwise.h"

namespace rooflab::kernels {

using enum Device::Type;

void elementwise_cpu_v0_reference(const ElementwiseArgs& args, Queue& queue);
ROOFLAB_PER_ISA(elementwise_cpu_v1_staged, ElementwiseArgs)
ROOFLAB_PER_ISA(elementwise_cpu_v1a_rows, ElementwiseArgs)
ROOFLAB_PER_ISA(elementwise_cpu_v1b_turned, ElementwiseArgs)
ROOFLAB_PER_ISA(elementwise_cpu_v2_contiguous, ElementwiseArgs)
ROOFLAB_PER_ISA(elementwise_cpu_v3_tiles, ElementwiseArgs)
ROOFLAB_CUDA_RUNG(elementwise_cuda_v0_reference, ElementwiseArgs)
ROOFLAB_CUDA_RUNG(elementwise_cuda_v1_strided, ElementwiseArgs)
ROOFLAB_CUDA_RUNG(elementwise_cuda_v2_vectorised, ElementwiseArgs)
ROOFLAB_CUDA_RUNG(elementwise_cuda_v2a_gathered, ElementwiseArgs)
ROOFLAB_CUDA_RUNG(elementwise_cuda_v2b_tiles, ElementwiseArgs)
ROOFLAB_CUDA_RUNG(elementwise_cuda_v3_mixed, ElementwiseArgs)

namespace {

// Whether rows that start at `data` with these strides can be moved `width` elements of `size` bytes at a time.
bool has_vectors(const void* data, const int64_t* strides, int ndim, int64_t size, int64_t width) {
  const int64_t alignment = std::min<int64_t>(size * width, 16);
  bool aligned = is_aligned(data, alignment) && strides[ndim - 1] == 1;
  for (int d = 0; d < ndim - 1; ++d) aligned &= strides[d] * size % alignment == 0;
  return aligned;
}

// What does not stay in cache, v1 writes past it.
bool elementwise_cpu_v1a_accepts(const ElementwiseArgs& args, const Target& target) {
  return args.op == ElementwiseOp::kCopy && args.inputs[0].data != nullptr && !is_mixed(args) &&
         !target.exceeds_cache(args.count * size_of(args.dtype));
}

bool elementwise_cpu_v2_accepts(const ElementwiseArgs& args, const Target&) {
  if (is_mixed(args)) return false;
  const bool copies = args.op == ElementwiseOp::kCopy;
  const bool computes =
      args.op < ElementwiseOp::kEq || (args.op >= ElementwiseOp::kClamp && args.op < ElementwiseOp::kWhere);
  const int inner = args.ndim - 1;
  if (copies)
    return inner == 0 && args.inputs[0].data != nullptr && args.inputs[0].strides[0] == 1 && args.out_strides[0] == 1 &&
           is_aligned(args.out, 64);
  if (!computes || !is_floating(args.dtype) || args.out_strides[inner] != 1) return false;
  if (!is_aligned(args.out, size_of(args.dtype))) return false;  // no element of it would begin a line
  for (int k = 0; k < info(args.op).arity; ++k) {
    const ElementwiseOperand& input = args.inputs[k];
    if (input.data != nullptr && input.strides[inner] != 1 && input.strides[inner] != 0) return false;
  }
  return true;
}

// An op of few instructions.
bool is_light(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::kAdd:
    case ElementwiseOp::kSub:
    case ElementwiseOp::kMul:
    case ElementwiseOp::kDiv:
    case ElementwiseOp::kMaximum:
    case ElementwiseOp::kMinimum:
    case ElementwiseOp::kReluBackward:
    case ElementwiseOp::kNeg:
    case ElementwiseOp::kAbs:
    case ElementwiseOp::kRelu:
    case ElementwiseOp::kPrelu:
    case ElementwiseOp::kClamp:
    case ElementwiseOp::kLerp:
    case ElementwiseOp::kNanToNum: return true;
    default: return false;
  }
}

// Whether an input is one row over and over, which v1 lays out only once.
bool repeats_row(const ElementwiseArgs& args) {
  for (int k = 0; k < arity(args.op); ++k) {
    const ElementwiseOperand& input = args.inputs[k];
    const bool is_row = input.data != nullptr && input.strides[args.ndim - 1] != 0;
    if (is_row && std::all_of(input.strides, input.strides + args.ndim - 1, [](int64_t stride) { return stride == 0; }))
      return true;
  }
  return false;
}

// In shorter rows the vector of a row's end is much of the work: it should be nearly full, and the op light.
bool elementwise_cpu_v2_by_default(const ElementwiseArgs& args, const Target&) {
  constexpr int64_t kVector = 16, kLong = 64, kRepeated = 48, kShort = 32;  // elements; measured
  const int64_t row = args.sizes[args.ndim - 1], in_vectors = (row + kVector - 1) / kVector * kVector;
  if (args.ndim == 1 || row >= kLong) return true;
  if (row < kRepeated && size_of(args.dtype) > 2 && repeats_row(args)) return false;
  return is_light(args.op) && (row >= kShort || 4 * row >= 3 * in_vectors);
}

// The dimension along which an input's elements are adjacent.
int adjacent_dim(const ElementwiseArgs& args, int input = 0) {
  const int inner = args.ndim - 1;
  for (int d = inner; d >= 0; --d)
    if (args.inputs[input].strides[d] == 1) return d;
  return inner;
}
// Whether an input's rows are columns of the result: its elements are adjacent along another dimension than the last.
bool is_turned(const ElementwiseArgs& args, int input = 0) {
  const int inner = args.ndim - 1;
  return args.inputs[input].data != nullptr && args.inputs[input].strides[inner] != 0 &&
         adjacent_dim(args, input) < inner;
}

// The first input that is turned, or -1.
int turned_input(const ElementwiseArgs& args) {
  for (int k = 0; k < arity(args.op); ++k)
    if (is_turned(args, k)) return k;
  return -1;
}

// A copy whose rows lie along another dimension of the input.
bool turns_rows(const ElementwiseArgs& args) {
  return args.op == ElementwiseOp::kCopy && args.count > 0 && args.out_strides[args.ndim - 1] == 1 && is_turned(args);
}

// Of the matrix that is turned.
int64_t shorter_side(const ElementwiseArgs& args, int input = 0) {
  return std::min(args.sizes[adjacent_dim(args, input)], args.sizes[args.ndim - 1]);
}

bool elementwise_cpu_v1b_accepts(const ElementwiseArgs& args, const Target&) {
  return args.op != ElementwiseOp::kCopy && args.count > 0 && turned_input(args) >= 0;
}

// A matrix of a few rows or columns stays in L1 as v1 goes over it.
bool elementwise_cpu_v1b_by_default(const ElementwiseArgs& args, const Target&) {
  constexpr int64_t kShortest = 8;
  return shorter_side(args, turned_input(args)) >= kShortest;
}

Footprint elementwise_cpu_v1b_footprint(const ElementwiseArgs& args, const Target& target) {
  const ElementwiseTurns turns = elementwise_turns(args, target);
  return {.scratch_bytes = turns.workers * turns.bytes_of_worker};
}

bool elementwise_cpu_v3_accepts(const ElementwiseArgs& args, const Target&) { return turns_rows(args); }

bool elementwise_cuda_v1_accepts(const ElementwiseArgs& args, const Target&) { return !is_mixed(args); }

bool elementwise_cuda_v3_accepts(const ElementwiseArgs& args, const Target&) { return is_mixed(args); }

bool elementwise_cuda_v2_accepts(const ElementwiseArgs& args, const Target&) {
  if (is_mixed(args)) return false;
  const int64_t width = 16 / std::max(size_of(args.dtype), size_of(args.out_dtype));
  const int inner = args.ndim - 1;
  if (args.ndim > 1 && args.sizes[inner] % width != 0) return false;
  if (!has_vectors(args.out, args.out_strides, args.ndim, size_of(args.out_dtype), width)) return false;
  for (int k = 0; k < info(args.op).arity; ++k) {
    const ElementwiseOperand& input = args.inputs[k];
    if (input.data == nullptr || input.strides[inner] == 0) continue;
    const int64_t size = args.op == ElementwiseOp::kWhere && k == 0 ? 1 : size_of(args.dtype);
    if (!has_vectors(input.data, input.strides, args.ndim, size, width)) return false;
  }
  return true;
}

// Whether v2a can move elements of `size` bytes at once that begin at `data`.
bool can_begin_at(const void* data, int64_t size, const ElementwiseArgs& args) {
  const int64_t width = elementwise_gathered_width(std::max(size_of(args.dtype), size_of(args.out_dtype)));
  return is_aligned(data, std::min<int64_t>(size * width, 16));
}

// Where v2 cannot: out has no gaps, and neither has one of several operands.
bool elementwise_cuda_v2a_accepts(const ElementwiseArgs& args, const Target& target) {
  if (is_mixed(args) || arity(args.op) < 2 || elementwise_cuda_v2_accepts(args, target)) return false;
  int64_t whole = 1;
  for (int d = args.ndim - 1; d >= 0; whole *= args.sizes[d--])
    if (args.out_strides[d] != whole) return false;
  bool any = false;
  for (int k = 0; k < arity(args.op); ++k) any |= elementwise_lies_alike(args, k);
  return any && can_begin_at(args.out, size_of(args.out_dtype), args);
}

// With fewer elements the launch is most of the time, and v1's shorter code is as fast.
constexpr int64_t kFewestElements = 1 << 15;
bool elementwise_cuda_v2a_by_default(const ElementwiseArgs& args, const Target&) {
  return args.count >= kFewestElements;
}

bool elementwise_cuda_v2b_accepts(const ElementwiseArgs& args, const Target& target) {
  constexpr int64_t kShortest = 4;  // a tile is then not too long for shared memory
  return turns_rows(args) && !is_mixed(args) && !elementwise_cuda_v2_accepts(args, target) &&
         shorter_side(args) >= kShortest && elementwise_tiles(args) <= INT32_MAX;
}

// A matrix that fills no tile, or has rows of a few elements, stays in L1 as v1 goes over it: by an H200's times, 1000
// of 33 x 33 take v1 half as long.
bool elementwise_cuda_v2b_by_default(const ElementwiseArgs& args, const Target&) {
  constexpr int64_t kShortest = 8, kTile = int64_t{1} << kElementwiseTileBits;
  const int64_t matrix = args.sizes[adjacent_dim(args)] * args.sizes[args.ndim - 1];
  return args.count >= kFewestElements && shorter_side(args) >= kShortest && matrix >= kTile;
}

Footprint elementwise_cuda_v2b_footprint(const ElementwiseArgs& args, const Target&) {
  return {.shared_bytes = elementwise_tile_bytes(args)};
}

}  // namespace

ElementwiseTurn elementwise_turn(const ElementwiseArgs& args, int input) {
  const int inner = args.ndim - 1, turned = adjacent_dim(args, input);
  const int64_t* strides = args.inputs[input].strides;
  ElementwiseTurn turn{};
  turn.rows = args.sizes[turned];
  turn.columns = args.sizes[inner];
  turn.step = strides[inner];
  turn.out_step = args.out_strides[turned];
  for (int d = 0; d < inner; ++d) {
    if (d == turned) continue;
    turn.sizes[turn.outer_dims] = args.sizes[d];
    turn.strides[turn.outer_dims] = strides[d];
    turn.out_strides[turn.outer_dims++] = args.out_strides[d];
  }
  return turn;
}

ElementwiseTurns elementwise_turns(const ElementwiseArgs& args, const Target& target) {
  constexpr int64_t kSide = 16;  // elements: whole cache lines of 4 bytes, and blocks that are turned in registers
  ElementwiseArgs walk = args;
  for (int64_t d = args.ndim - 1, next = 1; d >= 0; next *= args.sizes[d--]) walk.out_strides[d] = next;
  const int first = turned_input(args);
  const ElementwiseTurn matrix = elementwise_turn(walk, first);
  ElementwiseTurns turns{};
  int64_t largest = 1, inputs = 0;
  for (int k = 0; k < 3; ++k) {
    turns.is_turned[k] = k < arity(args.op) && is_turned(args, k) && adjacent_dim(args, k) == adjacent_dim(args, first);
    turns.of[k] = turns.is_turned[k] ? elementwise_turn(walk, k) : matrix;
    if (!turns.is_turned[k]) continue;
    largest = std::max(largest, size_of(args.inputs[k].dtype));
    ++inputs;
  }
  turns.columns = std::min(matrix.columns, kElementwiseHeldColumns);
  turns.rows = kElementwiseHeldBytes / (largest * turns.columns) / kSide * kSide;
  turns.down = blocks_of(matrix.rows, turns.rows);
  turns.across = blocks_of(matrix.columns, turns.columns);
  turns.tiles = args.count / (matrix.rows * matrix.columns) * turns.down * turns.across;
  turns.has_whole_rows = turns.across == 1 && matrix.out_step == matrix.columns;
  turns.workers = std::min<int64_t>(turns.tiles, target.threads);
  turns.bytes_of_worker = inputs * kElementwiseHeldBytes;
  return turns;
}

ElementwiseTile elementwise_tile(const ElementwiseArgs& args) {
  constexpr int kSideBits = kElementwiseTileBits / 2;
  const auto bits = [](int64_t size) { return static_cast<int>(std::bit_width(static_cast<uint64_t>(size) - 1)); };
  const int rows = bits(args.sizes[adjacent_dim(args)]), columns = bits(args.sizes[args.ndim - 1]);
  const int height = rows < kSideBits ? rows : kElementwiseTileBits - std::min(columns, kSideBits);
  // An odd number of words of 4 bytes, or of 8, so that neighbouring columns lie in other banks. (With elements of one
  // byte, two columns of a tile of height 4 share a bank.)
  const int pad = static_cast<int>(std::max<int64_t>(4 / size_of(args.dtype), 1));
  return {height, kElementwiseTileBits - height, (1 << height) + pad};
}

int64_t elementwise_tile_bytes(const ElementwiseArgs& args) {
  const ElementwiseTile tile = elementwise_tile(args);
  return (int64_t{tile.line} << tile.width_bits) * size_of(args.dtype);
}

int64_t elementwise_tiles(const ElementwiseArgs& args) {
  const ElementwiseTile tile = elementwise_tile(args);
  const int64_t rows = args.sizes[adjacent_dim(args)], columns = args.sizes[args.ndim - 1];
  return args.count / (rows * columns) * (((rows - 1) >> tile.height_bits) + 1) *
         (((columns - 1) >> tile.width_bits) + 1);
}

bool elementwise_lies_alike(const ElementwiseArgs& args, int k) {
  const ElementwiseOperand& input = args.inputs[k];
  const int64_t size = args.op == ElementwiseOp::kWhere && k == 0 ? 1 : size_of(args.dtype);
  return input.data != nullptr && std::equal(input.strides, input.strides + args.ndim, args.out_strides) &&
         can_begin_at(input.data, size, args);
}

const Ladder<ElementwiseArgs> elementwise_ladder(
    "elementwise",
    {
        {"v3_mixed", kCuda, "each operand converted in registers from its own dtype; only for operands that differ",
         elementwise_cuda_v3_accepts, elementwise_cuda_v3_mixed},
        {"v2a_gathered", kCuda,
         "v2 for rows of any length: what lies as the output does is moved by 16 bytes, other operands one by one",
         elementwise_cuda_v2a_accepts, elementwise_cuda_v2a_gathered, nullptr, elementwise_cuda_v2a_by_default},
        {"v2b_tiles", kCuda,
         "tiles pass through shared memory, so that neighbours are read and written; copies that turn rows into "
         "columns",
         elementwise_cuda_v2b_accepts, elementwise_cuda_v2b_tiles, elementwise_cuda_v2b_footprint,
         elementwise_cuda_v2b_by_default},
        {"v2_vectorised", kCuda,
         "16-byte accesses, at most one index computation per vector; adjacent and aligned rows",
         elementwise_cuda_v2_accepts, elementwise_cuda_v2_vectorised},
        {"v1_strided", kCuda, "four elements per thread, op and dtype compiled in, in float; any strides",
         elementwise_cuda_v1_accepts, elementwise_cuda_v1_strided},
        {"v0_reference", kCuda, "one element per thread, op and dtype found at run time, in double", nullptr,
         elementwise_cuda_v0_reference},
        {"v3_tiles", kCpu, "square blocks, 16 bytes wide, are turned in registers; copies that turn rows into columns",
         elementwise_cpu_v3_accepts, elementwise_cpu_v3_tiles},
        {"v2_contiguous", kCpu,
         "no staging: large arrays in four streams past the caches; rows of floats without gaps, and copies",
         elementwise_cpu_v2_accepts, elementwise_cpu_v2_contiguous, nullptr, elementwise_cpu_v2_by_default},
        {"v1b_turned", kCpu,
         "v1 tile by tile: inputs whose rows are columns of the result are turned first, in L2; all ops but copies",
         elementwise_cpu_v1b_accepts, elementwise_cpu_v1b_turned, elementwise_cpu_v1b_footprint,
         elementwise_cpu_v1b_by_default},
        {"v1a_rows", kCpu, "no staging: rows go from place to place; copies that stay in cache",
         elementwise_cpu_v1a_accepts, elementwise_cpu_v1a_rows},
        {"v1_staged", kCpu,
         "blocks of 512 elements pass through L1: gathered, widened, computed in SIMD, narrowed; all threads", nullptr,
         elementwise_cpu_v1_staged},
        {"v0_reference", kCpu, "one thread, op and dtype found at run time, in double", nullptr,
         elementwise_cpu_v0_reference},
    },
    [] {
      std::vector<const char*> names;
      for (const ElementwiseInfo& info : kElementwiseOps) names.push_back(info.name);
      return names;
    }());

}  // namespace rooflab::kernels
