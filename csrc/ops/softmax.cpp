// softmax: checks, cost and ladder.
#include "kernels/softmax/softmax.h"

#include "autograd/tape.h"
#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/compulsory_bytes.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "ops/variant.h"

namespace rooflab {
namespace {

using kernels::SoftmaxArgs;
using enum Device::Type;

const Ladder<SoftmaxArgs> kLadder(
    "softmax",
    {
        {"v2_one_pass", kCuda, "the row waits in registers, 16-byte accesses; aligned rows of up to 32768 elements",
         kernels::softmax_cuda_v2_accepts, kernels::softmax_cuda_v2_one_pass},
        {"v1_online", kCuda, "a block a row, maximum and sum in one pass", nullptr, kernels::softmax_cuda_v1_online},
        {"v0_reference", kCuda, "a thread a row, three passes, in double", nullptr, kernels::softmax_cuda_v0_reference},
        {"v2_one_pass", kCpu, "the row's exponentials wait in cache, SIMD, all threads; rows of up to 128 KiB of them",
         kernels::softmax_cpu_v2_accepts, kernels::softmax_cpu_v2_one_pass},
        {"v1_online", kCpu, "maximum and sum in one pass, SIMD, all threads", nullptr, kernels::softmax_cpu_v1_online},
        {"v0_reference", kCpu, "one thread, three passes, in double", nullptr, kernels::softmax_cpu_v0_reference},
    });

constexpr int64_t kFlops = 5;  // an element

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim, std::string_view variant) {
  const OpScope scope("softmax");
  check_floating("softmax", "x", x);
  const int along = normalize_dim(dim, x.ndim(), "softmax");
  const Tensor moved = x.transpose(along, -1);
  Tensor y = Tensor::empty(moved.shape(), x.dtype(), x.device());
  if (y.numel() > 0) {
    const Rows rows = as_rows(moved);
    const SoftmaxArgs args{rows.x.data(), y.data(), rows.n, rows.d, rows.stride, x.dtype()};
    kLadder.run(x.device(), args, Cost{0, kFlops * x.numel(), compulsory_bytes(x), y.nbytes()}, variant);
  }
  y = y.transpose(along, -1);
  if (autograd::recording(x))
    autograd::record("softmax", y, {x}, autograd::saving(y),
                     [along](const Tensor& dy, const Tensor& y) { return y * (dy - sum(dy * y, {along}, true)); });
  return y;
}

}  // namespace rooflab
