// Random fills. The process has one sequence: every call takes the next stream number under the seed, whatever the
// device, so a program draws the same values on a CPU and on a GPU.
#include "kernels/random/random.h"

#include <atomic>

#include "autograd/draws.h"
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
  autograd::Draw at;
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
  args.seed = call.options.at.seed;
  args.stream = call.options.at.stream;
  if (const std::shared_ptr<Storage>& advance = call.options.at.advance) {
    args.advance = static_cast<const int64_t*>(advance->data());
    if (Graph* graph = Graph::capturing()) graph->keep(advance);
  }
  args.low = call.options.low;
  args.range = call.options.range;
  run_rung(kernels::random_ladder, call, args);
}

const Op<Options> kRandn("randn", run), kRand("rand", run), kRandint("randint", run);

RandomState next_of_process() {
  return {seed.load(std::memory_order_relaxed), next_stream.fetch_add(1, std::memory_order_relaxed)};
}

// A graph draws from streams of its own, so that each replay draws other numbers than the last one.
autograd::Draw place_of(const RandomState& at, Device device) {
  Graph* const graph = Graph::capturing();
  if (!graph || graph->device() != device) return {at.seed, at.next_stream, {}};
  Graph::RandomStream own = graph->next_random_stream();
  return {at.seed, own.stream, std::move(own.advance)};
}

template <class Next>
Tensor draw(const Op<Options>& op, RandomKind kind, const Next& next, const Shape& shape, DType dtype, Device device,
            int64_t low = 0, uint64_t range = 0) {
  Trace::refuse(op.name, "random numbers differ from call to call; draw them outside and pass them as an argument");
  Tensor out = Tensor::empty(shape, dtype, device);
  const Options options{kind, autograd::drawn([&] { return place_of(next(), device); }), low, range};
  submit(Call(op, {}, {out}, options, Cost{0, 0, 0, out.nbytes()}));
  return out;
}

template <class Next>
Tensor draw_floating(const Op<Options>& op, RandomKind kind, const Next& next, const Shape& shape, DType dtype,
                     Device device) {
  const OpScope scope(op.name);
  RL_CHECK(is_floating(dtype), op.name, "dtype: expected a floating-point dtype, got ", name(dtype));
  return draw(op, kind, next, shape, dtype, device);
}

}  // namespace

void manual_seed(uint64_t value) { set_random_state({value, 0}); }

RandomState random_state() { return {seed, next_stream}; }

void set_random_state(const RandomState& state) {
  if (autograd::draws_again()) return;
  seed = state.seed;
  next_stream = state.next_stream;
}

Tensor randn(const Shape& shape, DType dtype, Device device) {
  return draw_floating(kRandn, RandomKind::kNormal, next_of_process, shape, dtype, device);
}

Tensor rand(const Shape& shape, DType dtype, Device device) {
  return draw_floating(kRand, RandomKind::kUniform, next_of_process, shape, dtype, device);
}

Tensor rand_at(const RandomState& at, const Shape& shape, DType dtype, Device device) {
  return draw_floating(
      kRand, RandomKind::kUniform, [&] { return at; }, shape, dtype, device);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype, Device device) {
  const OpScope scope("randint");
  RL_CHECK(dtype == DType::kInt64 || dtype == DType::kInt32, "randint", "dtype: expected int64 or int32, got ",
           name(dtype));
  RL_CHECK(low < high, "randint", "high: expected more than low (", low, "), got ", high);
  RL_CHECK(dtype == DType::kInt64 || (low >= INT32_MIN && high - 1 <= INT32_MAX), "randint", "range: [", low, ", ",
           high, ") does not fit int32");
  return draw(kRandint, RandomKind::kIntegers, next_of_process, shape, dtype, device, low,
              static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
}

}  // namespace rooflab
