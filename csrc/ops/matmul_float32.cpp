// matmul_float32: checks and cost; and the version that is composed of other ops.
#include "kernels/matmul_float32/matmul_float32.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/matmul_float32.h"
#include "ops/matrix_operands.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

void run(const Call<NoOptions>& call) {
  kernels::MatmulArgs args = matrix_operands(call.inputs[0], call.inputs[1]);
  args.c = call.outputs[0].data();
  run_rung(kernels::matmul_float32_ladder, call, args);
}

const Op<NoOptions> kOp("matmul_float32", run);

}  // namespace

Tensor matmul_float32(const Tensor& a, const Tensor& b, std::string_view variant) {
  const OpScope scope("matmul_float32");
  check_same_device("matmul_float32", a, b);
  check_same_dtype("matmul_float32", a, b);
  RL_CHECK(is_floating(a.dtype()) && size_of(a.dtype()) == 2, "matmul_float32", "a: expected float16 or bfloat16, got ",
           name(a.dtype()));
  RL_CHECK(a.ndim() == 2 && b.ndim() == 2 && a.size(1) == b.size(0), "matmul_float32",
           "expected (M, K) and (K, N), got ", a.shape(), " and ", b.shape());
  const autograd::GradMode off(false);
  const auto& ladder = kernels::matmul_float32_ladder;
  const int rung = ladder.choose(a.device(), matrix_operands(a, b), variant, kOp.name);
  if (ladder.composes(rung)) {
    const Tensor c = cast(matmul(a, b), DType::kFloat32);
    scope.done();  // its parts have counted their work
    return c;
  }
  const Tensor c = Tensor::empty({a.size(0), b.size(1)}, DType::kFloat32, a.device());
  const int64_t macs = flops_of("matmul_float32", {2, a.size(0), b.size(1), a.size(1)}, a.shape(), b.shape()) / 2;
  submit(Call(kOp, {a, b}, {c}, {}, {macs, 2 * macs, compulsory_bytes({a, b}), c.nbytes()}, variant, rung));
  return c;
}

}  // namespace rooflab
