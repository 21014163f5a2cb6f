// Random fills. The process has one sequence: every call takes the next stream number under the seed, whatever the
// device, so a program draws the same values on a CPU and on a GPU.
#include "kernels/random/random.h"

#include <atomic>

#include "core/range.h"
#include "ops/graph.h"
#include "ops/ops.h"
#include "ops/random.h"
#include "ops/rung.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

using kernels::RandomArgs;
using kernels::RandomKind;

std::atomic<uint64_t> seed{0}, next_stream{0};

struct Options {
  RandomKind kind;
  uint64_t seed, stream;
  int64_t low;     // of integers
  uint64_t range;  // of integers
};

void run(const Call<Options>& call) {
  const Tensor& out = call.outputs[0];
  RandomArgs args{};
  args.kind = call.options.kind;
  args.out = out.data();
  args.count = out.numel();
  args.dtype = out.dtype();
  args.seed = call.options.seed;
  args.stream = call.options.stream;
  args.low = call.options.low;
  args.range = call.options.range;
  if (Graph* graph = Graph::capturing()) {
    const Graph::RandomStream next = graph->next_random_stream();
    args.stream = next.stream;
    args.advance = next.advance;
  }
  run_rung(kernels::random_ladder, call, args);
}

const Op<Options> kRandn("randn", run), kRand("rand", run), kRandint("randint", run);

Tensor draw(const Op<Options>& op, RandomKind kind, const Shape& shape, DType dtype, Device device, int64_t low = 0,
            uint64_t range = 0) {
  Trace::refuse(op.name, "random numbers differ from call to call; draw them outside and pass them as an argument");
  Tensor out = Tensor::empty(shape, dtype, device);
  const Options options{kind, seed.load(std::memory_order_relaxed), next_stream.fetch_add(1, std::memory_order_relaxed),
                        low, range};
  submit(Call(op, {}, {out}, options, Cost{0, 0, 0, out.nbytes()}));
  return out;
}

Tensor draw_floating(const Op<Options>& op, RandomKind kind, const Shape& shape, DType dtype, Device device) {
  const OpScope scope(op.name);
  RL_CHECK(is_floating(dtype), op.name, "dtype: expected a floating-point dtype, got ", name(dtype));
  return draw(op, kind, shape, dtype, device);
}

}  // namespace

void manual_seed(uint64_t value) {
  seed = value;
  next_stream = 0;
}

RandomState random_state() { return {seed, next_stream}; }

void set_random_state(const RandomState& state) {
  seed = state.seed;
  next_stream = state.next_stream;
}

Tensor randn(const Shape& shape, DType dtype, Device device) {
  return draw_floating(kRandn, RandomKind::kNormal, shape, dtype, device);
}

Tensor rand(const Shape& shape, DType dtype, Device device) {
  return draw_floating(kRand, RandomKind::kUniform, shape, dtype, device);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype, Device device) {
  const OpScope scope("randint");
  RL_CHECK(dtype == DType::kInt64 || dtype == DType::kInt32, "randint", "dtype: expected int64 or int32, got ",
           name(dtype));
  RL_CHECK(low < high, "randint", "high: expected more than low (", low, "), got ", high);
  RL_CHECK(dtype == DType::kInt64 || (low >= INT32_MIN && high - 1 <= INT32_MAX), "randint", "range: [", low, ", ",
           high, ") does not fit int32");
  return draw(kRandint, RandomKind::kIntegers, shape, dtype, device, low,
              static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
}

}  // namespace rooflab
