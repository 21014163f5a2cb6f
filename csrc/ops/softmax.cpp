// softmax: checks, cost and ladder.
#include "kernels/softmax/softmax.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/autocast.h"
#include "ops/ops.h"
#include "ops/row_backward.h"
#include "ops/rows.h"
#include "ops/variant.h"

namespace rooflab {
namespace {

using kernels::SoftmaxArgs;
using enum Device::Type;

const Ladder<SoftmaxArgs> kLadder(
    "softmax",
    {
        {"v2_one_pass", kCuda, "the row stays in registers, 16-byte accesses; aligned rows of up to 32768 elements",
         kernels::softmax_cuda_v2_accepts, kernels::softmax_cuda_v2_one_pass},
        {"v1_online", kCuda, "one block per row, maximum and sum in one pass", nullptr,
         kernels::softmax_cuda_v1_online},
        {"v0_reference", kCuda, "one thread per row, three passes, in double", nullptr,
         kernels::softmax_cuda_v0_reference},
        {"v2_one_pass", kCpu, "the row's exponentials stay in cache, SIMD, all threads; rows of up to 128 KiB of them",
         kernels::softmax_cpu_v2_accepts, kernels::softmax_cpu_v2_one_pass},
        {"v1_online", kCpu, "maximum and sum in one pass, SIMD, all threads", nullptr, kernels::softmax_cpu_v1_online},
        {"v0_reference", kCpu, "one thread, three passes, in double", nullptr, kernels::softmax_cpu_v0_reference},
    });

constexpr int64_t kFlops = 5;  // per element

void run(const Call& call) {
  const int64_t along = call.get<int64_t>("dim");
  const Rows rows = as_rows(call.inputs[0].transpose(along, -1));
  kLadder.run(call, SoftmaxArgs{rows.x.data(), call.outputs[0].data(), rows.n, rows.d, rows.stride, rows.x.dtype()});
}

const Op kOp("softmax", run);

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim, std::string_view variant) {
  if (const auto dtype = autocast::wanted("softmax", {&x})) return softmax(autocast::in(*dtype, x), dim, variant);
  const OpScope scope("softmax");
  check_floating("softmax", "x", x);
  const int64_t along = normalize_dim(dim, x.ndim(), "softmax");
  Shape moved = x.shape();  // in memory the rows of y are adjacent
  std::swap(moved[along], moved[x.ndim() - 1]);
  Tensor y = Tensor::empty(moved, x.dtype(), x.device()).transpose(along, -1);
  const Cost cost{0, kFlops * x.numel(), compulsory_bytes({x}), y.nbytes()};
  return submit({&kOp, {x}, {y}, {{"dim", along}}, cost, std::string(variant)}, autograd::saving(y),
                [along](const Tensor& dy, const Tensor& y) { return softmax_backward(dy, y, along); });
}

}  // namespace rooflab
