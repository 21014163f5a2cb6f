// cat: joins tensors, up to kCatPieces in one launch. Those of several dtypes, or whose rows are not adjacent in
// memory, are copied one by one.
#include "kernels/cat/cat.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/autocast.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/promotion.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::CatArgs;
using kernels::CatPiece;

struct Options {
  int64_t dim;
};

// Adds x, which begins at element `begin` of a row of y, as a piece.
void add_piece(CatArgs& args, const Tensor& x, int64_t begin) {
  const int64_t width = x.numel() / args.rows;
  const auto rows = x.try_view({args.rows, width});
  args.alike &= x.dtype() == args.dtype && rows && (width == 1 || rows->stride(1) == 1);
  args.pieces[args.count++] = {x.data(), width, rows ? rows->stride(0) : 0, begin};
}

void run(const Call<Options>& call) {
  const Tensor& y = call.outputs[0];
  const int64_t dim = call.options.dim;
  int64_t rows = 1;
  for (int d = 0; d < dim; ++d) rows *= y.size(d);
  const int64_t width = y.numel() / rows, size = width / y.size(dim);  // of a row, and of one step along dim in it
  const auto& ladder = kernels::cat_ladder;
  int64_t end = 0;  // of what is joined, in steps along dim
  for (size_t next = 0; next < call.inputs.size();) {
    const int64_t begin = end;
    Tensors pieces;
    CatArgs args{nullptr, rows, 0, width, y.dtype(), true, 0, {}};
    for (; next < call.inputs.size() && args.count < kernels::kCatPieces; ++next) {
      const Tensor& x = call.inputs[next];
      if (x.numel() == 0) continue;
      add_piece(args, x, (end - begin) * size);
      pieces.push_back(x);
      end += x.size(dim);
    }
    if (pieces.empty()) return;
    const Tensor part = y.slice(dim, begin, end, 1);
    args.y = part.data();
    args.width = (end - begin) * size;
    if (!ladder.composes(ladder.choose(call.device(), args, call.variant, "cat"))) {
      run_rung(ladder, call, args);
      continue;
    }
    int64_t at = 0;
    for (const Tensor& x : pieces) {
      write_elements(x, part.slice(dim, at, at + x.size(dim), 1));
      at += x.size(dim);
    }
  }
}

const Op<Options> kOp("cat", run);

}  // namespace

Tensor cat(const Tensors& tensors, int64_t dim, std::string_view variant) {
  std::vector<const Tensor*> operands;
  for (const Tensor& x : tensors) operands.push_back(&x);
  if (const auto dtype = autocast::wanted("cat", operands)) {
    Tensors alike;
    for (const Tensor& x : tensors) alike.push_back(autocast::in(*dtype, x));
    return cat(alike, dim, variant);
  }
  const OpScope scope("cat");
  RL_CHECK(!tensors.empty(), "cat", "tensors: expected at least one, got none");
  const Tensor& first = tensors[0];
  const int64_t along = normalize_dim(dim, first.ndim(), "cat");
  Shape shape = first.shape();
  shape[along] = 0;
  std::vector<std::pair<int64_t, DType>> parts;  // size, dtype
  DType dtype = first.dtype();
  for (const Tensor& x : tensors) {
    check_same_device("cat", first, x);
    dtype = promoted(dtype, x.dtype());
    bool fits = x.ndim() == first.ndim();
    for (int d = 0; fits && d < x.ndim(); ++d) fits = d == along || x.shape()[d] == shape[d];
    RL_CHECK(fits, "cat", "tensors: expected ", first.shape(), " but for dimension ", along, ", got ", x.shape());
    RL_CHECK(!__builtin_add_overflow(shape[along], x.shape()[along], &shape[along]), "cat",
             "tensors: their sizes along dimension ", along, " add up to more than 2^63");
    parts.emplace_back(x.shape()[along], x.dtype());
  }
  Tensor y = Tensor::empty(shape, dtype, first.device());
  const Cost cost{0, 0, compulsory_bytes(tensors), y.nbytes()};
  return submit(
      Call(kOp, tensors, {y}, {along}, cost, variant), autograd::saving(),
      [along, parts = std::move(parts)](const Gradients& dy) {
        Tensors gradients;
        int64_t begin = 0;
        for (const auto& [size, part_dtype] : parts) {
          const int i = static_cast<int>(gradients.size());
          gradients.push_back(dy.wanted(i) ? cast(dy[0].slice(along, begin, begin + size, 1), part_dtype) : Tensor());
          begin += size;
        }
        return gradients;
      });
}

}  // namespace rooflab
