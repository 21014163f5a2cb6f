// out[i] = op(a[i], b[i], c[i]) over arrays of any strides, broadcast (stride 0) included: arithmetic, functions,
// comparisons, where, casts, strided copies and fills. One family with one table: a new op is a row in kElementwiseOps
// and a line in functors.h.
//
// FLOPs: one per element (geglu 9 and swiglu 2: those of gelu and silu, and a product; clamp 2; lerp 3; casts, copies,
// where, nan_to_num and comparisons none). Compulsory bytes: every input element and every output element once. Roof:
// memory bandwidth everywhere, as long as the arrays do not fit in cache.
#pragma once

#include <array>

#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab {
struct Target;
}

namespace rooflab::kernels {

enum class ElementwiseOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMaximum,
  kMinimum,
  kFloorDivide,
  kRemainder,
  kPrelu,
  kElu,
  kGeglu,
  kSwiglu,
  kReluBackward,
  kTanhBackward,
  kSigmoidBackward,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,  // two inputs
  kNeg,
  kAbs,
  kRelu,
  kExp,
  kLog,
  kLog2,
  kLog10,
  kTanh,
  kSqrt,
  kRsqrt,
  kSin,
  kCos,
  kSigmoid,
  kSilu,
  kSoftplus,
  kLogsigmoid,
  kFloor,
  kCeil,
  kTrunc,
  kRound,
  kSign,
  kBitwiseNot,  // one input
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,  // two inputs, result is bool
  kClamp,
  kLerp,
  kNanToNum,  // three inputs
  kWhere,
  kCast,
  kCopy,  // data movement
};

constexpr bool is_comparison(ElementwiseOp op) { return op >= ElementwiseOp::kEq && op <= ElementwiseOp::kGe; }

// Which dtypes an op takes.
enum class ElementwiseDomain : uint8_t { kFloating, kNumeric, kIntegral, kAny };  // bool belongs to kIntegral and kAny

struct ElementwiseInfo {
  ElementwiseOp op;
  const char* name;
  int arity;
  ElementwiseDomain domain;
  const char* doc;

  constexpr bool is_comparison() const { return kernels::is_comparison(op); }
  constexpr int flops() const {  // per element
    using enum ElementwiseOp;
    switch (op) {
      case kGeglu: return 9;
      case kTanhBackward: return 4;
      case kSigmoidBackward:
      case kLerp: return 3;
      case kSwiglu:
      case kClamp: return 2;
      default: return op < kEq ? 1 : 0;
    }
  }
};

inline constexpr auto kElementwiseOps = [] {
  using enum ElementwiseOp;
  using enum ElementwiseDomain;
  return std::to_array<ElementwiseInfo>({
      {kAdd, "add", 2, kNumeric, "a + b"},
      {kSub, "sub", 2, kNumeric, "a - b"},
      {kMul, "mul", 2, kNumeric, "a * b"},
      {kDiv, "div", 2, kFloating, "a / b"},
      {kPow, "pow", 2, kNumeric, "a to the power b"},
      {kMaximum, "maximum", 2, kNumeric, "the larger of a and b; NaN where either is"},
      {kMinimum, "minimum", 2, kNumeric, "the smaller of a and b; NaN where either is"},
      {kFloorDivide, "floor_divide", 2, kNumeric, "a / b rounded down"},
      {kRemainder, "remainder", 2, kNumeric, "a - b * floor(a / b), of b's sign"},
      {kPrelu, "prelu", 2, kFloating, "a where it is positive, else a * b"},
      {kElu, "elu", 2, kFloating, "a where it is positive, else b * (exp(a) - 1)"},
      {kGeglu, "geglu", 2, kFloating, "gelu(a) * b with the tanh form of gelu: a gated activation, a the gate"},
      {kSwiglu, "swiglu", 2, kFloating, "silu(a) * b: a gated activation, a the gate"},
      {kReluBackward, "relu_backward", 2, kFloating,
       "the gradient of relu, with b the result of relu: 0 where b <= 0, else a"},
      {kTanhBackward, "tanh_backward", 2, kFloating,
       "the gradient of tanh, with b the result of tanh: a (1 - b) (1 + b)"},
      {kSigmoidBackward, "sigmoid_backward", 2, kFloating, "the gradient of sigmoid, with b its result: a b (1 - b)"},
      {kBitwiseAnd, "bitwise_and", 2, kIntegral, "a & b, bit by bit; for bools, whether both hold"},
      {kBitwiseOr, "bitwise_or", 2, kIntegral, "a | b, bit by bit; for bools, whether one holds"},
      {kBitwiseXor, "bitwise_xor", 2, kIntegral, "a ^ b, bit by bit; for bools, whether they differ"},
      {kNeg, "neg", 1, kNumeric, "-x"},
      {kAbs, "abs", 1, kNumeric, "|x|"},
      {kRelu, "relu", 1, kNumeric, "max(x, 0)"},
      {kExp, "exp", 1, kFloating, "e to the power x"},
      {kLog, "log", 1, kFloating, "natural logarithm of x"},
      {kLog2, "log2", 1, kFloating, "logarithm of x to the base 2, exact for powers of 2"},
      {kLog10, "log10", 1, kFloating, "logarithm of x to the base 10"},
      {kTanh, "tanh", 1, kFloating, "hyperbolic tangent of x"},
      {kSqrt, "sqrt", 1, kFloating, "square root of x"},
      {kRsqrt, "rsqrt", 1, kFloating, "1 / sqrt(x)"},
      {kSin, "sin", 1, kFloating, "sine of x radians"},
      {kCos, "cos", 1, kFloating, "cosine of x radians"},
      {kSigmoid, "sigmoid", 1, kFloating, "1 / (1 + exp(-x))"},
      {kSilu, "silu", 1, kFloating, "x / (1 + exp(-x))"},
      {kSoftplus, "softplus", 1, kFloating, "log(1 + exp(x)), to the last digits for large |x| too"},
      {kLogsigmoid, "logsigmoid", 1, kFloating, "log(sigmoid(x)), to the last digits for large |x| too"},
      {kFloor, "floor", 1, kNumeric, "the largest integer that is not above x; it has no gradient"},
      {kCeil, "ceil", 1, kNumeric, "the smallest integer that is not below x; it has no gradient"},
      {kTrunc, "trunc", 1, kNumeric, "x without its fractional part, rounded towards zero; it has no gradient"},
      {kRound, "round", 1, kNumeric, "the nearest integer; halfway between two, the even one; it has no gradient"},
      {kSign, "sign", 1, kNumeric, "-1, 0 or 1; 0 for NaN; it has no gradient"},
      {kBitwiseNot, "bitwise_not", 1, kIntegral, "~x, bit by bit; for a bool, its opposite"},
      {kEq, "eq", 2, kAny, "a == b"},
      {kNe, "ne", 2, kAny, "a != b"},
      {kLt, "lt", 2, kAny, "a < b"},
      {kLe, "le", 2, kAny, "a <= b"},
      {kGt, "gt", 2, kAny, "a > b"},
      {kGe, "ge", 2, kAny, "a >= b"},
      {kClamp, "clamp", 3, kNumeric, "x, but no less than min and no more than max; max where min is larger"},
      {kLerp, "lerp", 3, kFloating, "start + weight * (end - start); exactly end for a weight of 1"},
      {kNanToNum, "nan_to_num", 3, kFloating, "x, but numbers in place of NaN and infinities"},
      {kWhere, "where", 3, kAny, "a where the condition holds, else b"},
      {kCast, "cast", 1, kAny, "x in another dtype"},
      {kCopy, "copy", 1, kAny, "x, moved as it is"},
  });
}();

constexpr const ElementwiseInfo& info(ElementwiseOp op) { return kElementwiseOps[static_cast<size_t>(op)]; }

// info(op).arity for code that runs on the GPU, where the table is not visible.
constexpr int arity(ElementwiseOp op) {
  using enum ElementwiseOp;
  return op < kNeg ? 2 : op < kEq ? 1 : op < kClamp ? 2 : op <= kWhere ? 3 : 1;
}
static_assert(
    [] {
      for (size_t i = 0; i < kElementwiseOps.size(); ++i) {
        const ElementwiseInfo& row = kElementwiseOps[i];
        if (static_cast<size_t>(row.op) != i || row.arity != arity(row.op)) return false;
      }
      return true;
    }(),
    "kElementwiseOps is in the order of ElementwiseOp");

// A number in place of an input. `real` is used where the op computes in floating point, otherwise `integer`. Copies
// and where only move bits: for them `integer` holds the element's own bits.
struct ElementwiseScalar {
  double real = 0;
  int64_t integer = 0;
};

struct ElementwiseOperand {
  const void* data;           // null: the scalar is used instead
  DType dtype;                // of the elements
  int64_t strides[kMaxDims];  // of each dimension, in elements
  ElementwiseScalar scalar;
};

struct ElementwiseArgs {
  ElementwiseOp op;
  DType dtype;  // what is computed in; each input of another dtype is converted to it first. where: of a and b; its
                // condition, inputs[0], is bool
  DType out_dtype;
  ElementwiseScalar number;  // nan_to_num: in place of NaN. Its inputs are x and what replaces inf and -inf
  int ndim;                  // dimensions after merging: neighbours that are evenly spaced in all arrays are one;
                             // at least 1
  int64_t count;             // elements of out
  int64_t sizes[kMaxDims];
  ElementwiseOperand inputs[3];  // info(op).arity of them
  void* out;
  int64_t out_strides[kMaxDims];
};

// CUDA, v2a: how many elements a thread takes, by the size of the largest, and whether those of input k have the
// strides of out and begin where a vector may, so that they can be moved at once.
constexpr int elementwise_gathered_width(int64_t size) { return static_cast<int>(size == 4 ? 8 : 16 / size); }
bool elementwise_lies_alike(const ElementwiseArgs&, int k);

// An input whose rows are columns of the result, as that of a copy that turns rows into columns: the result has rows of
// adjacent elements, which are a column of the input's, and there are as many such matrices as the outer dimensions
// have elements.
struct ElementwiseTurn {
  int64_t rows, columns;   // of the result
  int64_t step, out_step;  // from a column to the next in the input, and from a row to the next in the result
  int outer_dims;          // all others
  int64_t sizes[kMaxDims], strides[kMaxDims], out_strides[kMaxDims];
};
ElementwiseTurn elementwise_turn(const ElementwiseArgs&, int input = 0);

// CPU, v1b: which inputs are turned, and the tiles into which it cuts the result. A thread's scratch holds such a tile
// of each of these inputs.
inline constexpr int64_t kElementwiseHeldColumns = 512;     // of a tile, at most
inline constexpr int64_t kElementwiseHeldBytes = 64 << 10;  // of a tile of one input
struct ElementwiseTurns {
  bool is_turned[3];
  ElementwiseTurn of[3];  // with out_step and out_strides in a result without gaps; the same matrix for all inputs
  int64_t rows, columns;  // of a tile, at most
  int64_t down, across;   // how many tiles a matrix has
  int64_t tiles;          // of all matrices
  bool has_whole_rows;    // then the elements of a tile are neighbours in a result without gaps
  int64_t workers, bytes_of_worker;
};
ElementwiseTurns elementwise_turns(const ElementwiseArgs&, const Target&);

// CUDA, v2b: the tile that turns a matrix, by powers of two. A line of it in shared memory holds a column.
inline constexpr int kElementwiseTileBits = 12;
struct ElementwiseTile {
  int height_bits, width_bits;
  int line;  // elements
};
ElementwiseTile elementwise_tile(const ElementwiseArgs&);
int64_t elementwise_tile_bytes(const ElementwiseArgs&);
int64_t elementwise_tiles(const ElementwiseArgs&);  // how many there are

// Whether elements are converted on their way in or out. (A cast is no such op: to convert is what it computes.)
constexpr bool is_mixed(const ElementwiseArgs& args) {
  const bool makes_another = args.op == ElementwiseOp::kCast || is_comparison(args.op);
  bool mixed = !makes_another && args.out_dtype != args.dtype;
  for (int k = args.op == ElementwiseOp::kWhere ? 1 : 0; k < arity(args.op); ++k)
    mixed |= args.inputs[k].data != nullptr && args.inputs[k].dtype != args.dtype;
  return mixed;
}

// Whether it divides integers, for which a divisor of 0 is an error.
constexpr bool divides_integers(const ElementwiseArgs& args) {
  return (args.op == ElementwiseOp::kFloorDivide || args.op == ElementwiseOp::kRemainder) && !is_floating(args.dtype);
}

extern const Ladder<ElementwiseArgs> elementwise_ladder;

}  // namespace rooflab::kernels
