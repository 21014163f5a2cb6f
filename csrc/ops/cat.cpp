// cat: copies each tensor to its place in the result, with one launch per tensor, which also converts it.
#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/autocast.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/promotion.h"

namespace rooflab {
namespace {

struct Options {
  int64_t dim;
};

void run(const Call<Options>& call) {
  const int64_t dim = call.options.dim;
  int64_t begin = 0;
  for (const Tensor& x : call.inputs) {
    const int64_t end = begin + x.size(dim);
    write_elements(x, call.outputs[0].slice(dim, begin, end, 1), call.variant);
    begin = end;
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
