// Random fills. One sequence for the process: every call takes the next stream number under the seed, whatever the
// device, so a program draws the same values on a CPU and on a GPU.
#include "kernels/random/random.h"

#include <atomic>

#include "core/range.h"
#include "ops/ops.h"
#include "ops/variant.h"

namespace rooflab {
namespace {

using kernels::RandomArgs;
using kernels::RandomKind;
using enum Device::Type;

const Ladder<RandomArgs> kLadder(
    "random",
    {
        {"v1_blocked", kCuda, "a whole Philox block a thread, stored as one vector", nullptr,
         kernels::random_cuda_v1_blocked},
        {"v0_reference", kCuda, "one element a thread", nullptr, kernels::random_cuda_v0_reference},
        {"v1_blocked", kCpu, "whole Philox blocks side by side, SIMD, all threads", nullptr,
         kernels::random_cpu_v1_blocked},
        {"v0_reference", kCpu, "one thread, one element at a time", nullptr, kernels::random_cpu_v0_reference},
    });

std::atomic<uint64_t> seed{0}, next_stream{0};

Tensor draw(const char* op, RandomArgs args, const Shape& shape, DType dtype, Device device) {
  const OpScope scope(op);
  Tensor out = Tensor::empty(shape, dtype, device);
  args.out = out.data();
  args.count = out.numel();
  args.dtype = dtype;
  args.seed = seed.load(std::memory_order_relaxed);
  args.stream = next_stream.fetch_add(1, std::memory_order_relaxed);
  if (out.numel() > 0) kLadder.run(device, args, Cost{0, 0, 0, out.nbytes()}, {}, op);
  return out;
}

Tensor draw_floating(const char* op, RandomKind kind, const Shape& shape, DType dtype, Device device) {
  RL_CHECK(is_floating(dtype), op, "dtype: expected a floating-point dtype, got ", name(dtype));
  RandomArgs args{};
  args.kind = kind;
  return draw(op, args, shape, dtype, device);
}

}  // namespace

void manual_seed(uint64_t value) {
  seed = value;
  next_stream = 0;
}

Tensor randn(const Shape& shape, DType dtype, Device device) {
  return draw_floating("randn", RandomKind::kNormal, shape, dtype, device);
}

Tensor rand(const Shape& shape, DType dtype, Device device) {
  return draw_floating("rand", RandomKind::kUniform, shape, dtype, device);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype, Device device) {
  RL_CHECK(dtype == DType::kInt64 || dtype == DType::kInt32, "randint", "dtype: expected int64 or int32, got ",
           name(dtype));
  RL_CHECK(low < high, "randint", "high: expected more than low (", low, "), got ", high);
  RL_CHECK(dtype == DType::kInt64 || (low >= INT32_MIN && high - 1 <= INT32_MAX), "randint", "range: [", low, ", ",
           high, ") does not fit int32");
  RandomArgs args{};
  args.kind = RandomKind::kIntegers;
  args.low = low;
  args.range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return draw("randint", args, shape, dtype, device);
}

}  // namespace rooflab
