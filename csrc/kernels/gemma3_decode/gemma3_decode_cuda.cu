// v1: a layer's decode step in one launch. There is one block for each multiprocessor. It prefetches its share of the
// weights, and its first keys and values, into shared memory some steps before they are needed. All blocks work on the
// same step. Its results pass through global memory, which here means the L2 cache, and a grid-wide barrier ends it:
//
//   1  norm, then some rows of qkv                       every block normalises x for itself
//   2  norm and rope, append, attention to some keys     as in attention's v4_split_kv
//   3  combine these parts, then o                       a block has 1/8 of o's columns and combines only these
//   4  add the 8 slices of o, residual, norm, gate and up, GeGLU
//   5  down                                              1/8 of the columns again
//   6  add the 8 slices of down, norm, residual          one block for each text
//
// Latency binds. With one text of 4096 tokens an H200 takes 19.5 us. The 13 launches took 43.6, and a copy of as many
// bytes takes 5. The five barriers cost 5 us. Each step also waits for the L2 cache, when it begins and when it ends.
// With eight texts it takes 39.8 us, and the 13 launches took 50.5.
//
// A product multiplies 16 rows of the weight by up to 8 texts with mma.sync, so 8 texts take no longer than one. All
// sums are accumulated in float32 in a fixed order: the result has the same bits on every run.
#include <cooperative_groups.h>

#include <utility>

#include "kernels/gemma3_decode/gemma3_decode_attention.cuh"

namespace rooflab::kernels {

using namespace gemma3_decode;

namespace {

template <class T, int kD, bool kOneText>
__global__ void __launch_bounds__(kThreads, 1)
    gemma3_decode_cuda_v1_one_launch_kernel(const __grid_constant__ Gemma3DecodeArgs args,
                                            const __grid_constant__ DecodePlan plan,
                                            const __grid_constant__ Between between) {
#ifdef ROOFLAB_SM90
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ ptx::Barrier barriers[4];
  __shared__ BlockSum::Scratch scratch;
  BlockSum block_sum(scratch);
  const auto all_blocks = cooperative_groups::this_grid();
  const Decode<T, kD, kOneText> decode(args, plan, between, shared, barriers, block_sum);
  const int64_t position = *args.position;
  const auto x = decode.residual(), input_norm = decode.parameter(args.input_norm);
  if (decode.prefetches()) decode.prefetch_qkv();
  const bool is_last = blockIdx.x == gridDim.x - 1;
  if (is_last && threadIdx.x < kDecodeBarriers) between.arrived[threadIdx.x * kDecodeBarrierStride] = 0;
  decode.project(x, input_norm);
  auto arrived = all_blocks.barrier_arrive();
  auto keys = decode.prefetch_keys(position);
  if (decode.prefetches()) decode.prefetch_o();
  all_blocks.barrier_wait(std::move(arrived));

  const auto grid_barrier = [&](int i) { return GridBarrier(between.arrived + i * kDecodeBarrierStride); };
  decode.attend(keys);
  grid_barrier(0).arrive();
  if (decode.prefetches()) decode.prefetch_gate_up();
  grid_barrier(0).wait();
  decode.project_heads();
  grid_barrier(1).arrive();
  if (decode.prefetches()) decode.prefetch_down();
  const auto post_norm = decode.parameter(args.post_attention_norm);
  const auto pre_norm = decode.parameter(args.pre_feedforward_norm);
  grid_barrier(1).wait();
  const auto h = decode.gate(x, post_norm, pre_norm);
  grid_barrier(2).arrive();
  grid_barrier(2).wait();
  decode.down();
  grid_barrier(3).arrive();
  if (blockIdx.x >= args.batch) return;
  const auto last_norm = decode.parameter(args.post_feedforward_norm);
  grid_barrier(3).wait();
  decode.finish(h, last_norm);
#else
  unsupported_architecture();
#endif
}

Between between(const DecodePlan& plan, Queue& queue) {
  float* next = static_cast<float*>(queue.scratch_bytes(plan.scratch_bytes()));
  const auto take = [&](int64_t floats) { return std::exchange(next, next + floats); };
  Between result{};
  result.parts = take(plan.part_floats);
  result.qkv = take(plan.qkv_floats);
  result.o = take(plan.o_floats);
  result.down = take(plan.down_floats);
  result.active = take(plan.active_elements / 2);
  result.stats = reinterpret_cast<float2*>(take(plan.stat_floats));
  result.arrived = reinterpret_cast<unsigned*>(take(plan.barrier_floats));
  return result;
}

template <class T>
void launch(const Gemma3DecodeArgs& args, Queue& queue) {
  const DecodePlan plan = decode_plan(args, queue.target());
  const auto start = [&](auto kernel) {
    queue.launch(kernel, {.grid = plan.blocks, .block = kThreads, .shared_bytes = plan.shared_bytes, .together = true},
                 args, plan, between(plan, queue));
  };
  const auto start_for = [&]<int kD>() {
    args.batch == 1 ? start(gemma3_decode_cuda_v1_one_launch_kernel<T, kD, true>)
                    : start(gemma3_decode_cuda_v1_one_launch_kernel<T, kD, false>);
  };
  args.head_size == 128 ? start_for.template operator()<128>() : start_for.template operator()<256>();
}

}  // namespace

void gemma3_decode_cuda_v1_one_launch(const Gemma3DecodeArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch<__half>(args, queue) : launch<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
