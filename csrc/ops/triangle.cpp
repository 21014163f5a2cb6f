// tril and triu: matrices in which the part above or below a diagonal is zero.
#include "kernels/triangle/triangle.h"

#include <algorithm>

#include "core/range.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::TriangleArgs;

struct Options {
  int64_t diagonal;
  bool upper;
};

void run(const Call<Options>& call) {
  const Tensor& x = call.inputs[0];
  TriangleArgs args{x.data(), call.outputs[0].data(), x.numel(),          x.ndim(), {},
                    {},       call.options.diagonal,  call.options.upper, x.dtype()};
  std::copy(x.shape().begin(), x.shape().end(), args.sizes);
  std::copy(x.strides().begin(), x.strides().end(), args.strides);
  run_rung(kernels::triangle_ladder, call, args);
}

const Op<Options> kTril("tril", run), kTriu("triu", run);

// The number of elements on or below the diagonal, where column j <= row + diagonal; -rows <= diagonal <= columns. Rows
// before `begin` have none of them, rows from `end` on have all, and each row in between has one more than the row
// before.
int64_t count_below(int64_t rows, int64_t columns, int64_t diagonal) {
  if (rows == 0 || columns == 0) return 0;
  const int64_t begin = std::max<int64_t>(-diagonal, 0), end = std::clamp<int64_t>(columns - diagonal - 1, begin, rows);
  const int64_t between = end - begin, first = begin + diagonal + 1;
  return between * first + between * (between - 1) / 2 + (rows - end) * columns;
}

Tensor triangle(bool upper, const Tensor& x, int64_t diagonal, std::string_view variant) {
  const Op<Options>& op = upper ? kTriu : kTril;
  const OpScope scope(op.name);
  RL_CHECK(x.ndim() >= 2, op.name, "x: expected 2 dimensions or more, got ", x.shape());
  const int64_t rows = x.size(-2), columns = x.size(-1), matrix = std::max<int64_t>(rows * columns, 1);
  const int64_t k = std::clamp(diagonal, -rows, columns);  // beyond these bounds nothing changes
  const int64_t below = count_below(rows, columns, upper ? std::max(k - 1, -rows) : k);
  const int64_t kept = x.numel() / matrix * (upper ? rows * columns - below : below);
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  const Cost cost{0, 0, std::min(compulsory_bytes({x}), kept * size_of(x.dtype())), y.nbytes()};
  return submit(Call(op, {x}, {y}, {k, upper}, cost, variant), autograd::saving(),
                [upper, k](const Tensor& dy) { return triangle(upper, dy, k, {}); });
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal, std::string_view variant) {
  return triangle(false, x, diagonal, variant);
}
Tensor triu(const Tensor& x, int64_t diagonal, std::string_view variant) {
  return triangle(true, x, diagonal, variant);
}

}  // namespace rooflab
