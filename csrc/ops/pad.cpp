// pad: a tensor with a number around it. A fill and a copy; of large tensors only the ends are filled.
#include "core/range.h"
#include "core/target.h"
#include "core/tensor_check.h"
#include "ops/elementwise.h"
#include "ops/ops.h"

namespace rooflab {
namespace {

struct Options {
  Shape before;  // how many elements, in each dimension
  Scalar number;
};

// The part of y that x becomes.
Tensor middle_of(const Tensor& y, const Shape& before, const Shape& shape) {
  Tensor part = y;
  for (int d = 0; d < y.ndim(); ++d) part = part.slice(d, before[d], before[d] + shape[d], 1);
  return part;
}

// Up to so many bytes, to write some elements twice takes less time than to start more fills.
int64_t small_bytes(Device device) {
  return target_of(device).kind == Device::Type::kCuda ? int64_t{8} << 20 : int64_t{16} << 10;
}

void run(const Call<Options>& call) {
  const Tensor &x = call.inputs[0], &y = call.outputs[0];
  const auto& [before, number] = call.options;
  if (y.nbytes() <= small_bytes(y.device()) || x.numel() == 0) {
    write_elements(Tensor(), y, number);
  } else {
    Tensor rest = y;  // which no fill has reached
    for (int d = 0; d < y.ndim(); ++d) {
      const int64_t begin = before[d], end = begin + x.size(d);
      write_elements(Tensor(), rest.slice(d, 0, begin, 1), number);
      write_elements(Tensor(), rest.slice(d, end, y.size(d), 1), number);
      rest = rest.slice(d, begin, end, 1);
    }
  }
  write_elements(x, middle_of(y, before, x.shape()));
}

const Op<Options> kOp("pad", run);

}  // namespace

Tensor pad(const Tensor& x, const Shape& before, const Shape& after, Scalar number) {
  const OpScope scope("pad");
  check_number("pad", number, x.dtype());
  Shape shape = x.shape();
  for (int d = 0; d < x.ndim(); ++d)
    RL_CHECK(!__builtin_add_overflow(shape[d], before[d], &shape[d]) &&
                 !__builtin_add_overflow(shape[d], after[d], &shape[d]),
             "pad", "pad: dimension ", d, " has more than 2^63 elements");
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  const Cost cost{0, 0, compulsory_bytes({x}), y.nbytes()};
  return submit(Call(kOp, {x}, {y}, {before, number}, cost), autograd::saving(),
                [before, from = x.shape()](const Tensor& dy) { return middle_of(dy, before, from); });
}

}  // namespace rooflab
