// v1: all layers' decode step in one launch. There is one block for each multiprocessor. It keeps its share of a
// layer's weights in shared memory, and loads that of the next layer as soon as a step is done with it. So it hardly
// waits for weights. Each step waits for the numbers that it needs from other blocks (gemma3_decode_slots.cuh):
//
//   1  norm, then some rows of qkv
//   2  norm and rope, append, attention to some keys     as in attention's v4_split_kv
//   3  combine these parts, then o                       a block has some of o's columns
//   4  add the slices of o, residual, norm, gate and up, GeGLU
//   5  down                                              some of the columns again
//   6  add the slices of down, norm, residual            the next layer's x
//
// With one text each block combines the parts and adds the slices that it needs for itself, because that takes less
// time than to wait once more. With several texts that would read too much, so one block does it for each text, and
// passes the normalised rows on.
//
// Latency binds. With one text of 1024 tokens an H100 takes 17.3 us a layer, of which its bytes need 4. With eight
// texts it takes 22.1. A token of the 270M model takes 462 and 555 us; with a launch a layer, and a barrier of all
// blocks after each step, it took 539 and 756. A quarter of the warps' time is waiting for numbers of other blocks, 22
// % barriers of a block, and 29 % fixed latencies and shared memory: two warps a scheduler hide none of these.
//
// A product multiplies 16 rows of the weight by up to 8 texts with mma.sync, so 8 texts take no longer than one. It
// takes more texts in two turns: with sixteen, a token takes an H200 637 us, where separate steps took 950. All sums
// are accumulated in float32 in a fixed order: the result has the same bits on every run.
#include <cooperative_groups.h>

#include "kernels/gemma3_decode/gemma3_decode_attention.cuh"

namespace rooflab::kernels {

using namespace gemma3_decode;

namespace {

template <class T, int kD, bool kOneText>
__global__ void __launch_bounds__(kThreads, 1)
    gemma3_decode_cuda_v1_one_launch_kernel(const __grid_constant__ Gemma3DecodeArgs args,
                                            const __grid_constant__ DecodePlan plan, Slot* slots) {
#ifdef ROOFLAB_SM90
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ Fixed fixed;
  Decode<T, kD, kOneText> decode(args, plan, slots, shared, fixed);
  decode.start();
  auto keys = decode.prefetch_keys(0);
  const auto all_blocks = cooperative_groups::this_grid();
  for (int64_t i = all_blocks.thread_rank(); i < 2 * plan.slots(); i += all_blocks.num_threads()) slots[i] = 0;
  all_blocks.sync();

  Row x;
  if (decode.has_row()) x = decode.begin();

#pragma unroll 1
  for (int half = 0; half < 2 * args.count; ++half) {
    const int layer = half / 2;
    const bool is_mlp = half % 2;
    if (is_mlp) {
      decode.gate(layer);
      decode.down(layer);
    } else {
      decode.project(layer);
      decode.attend(layer, keys);
      decode.project_heads(layer, keys.parts);
      if (layer + 1 < args.count) keys = decode.prefetch_keys(layer + 1);
    }
    if (decode.has_row()) x = decode.add(layer, is_mlp, x);
  }
  if (decode.has_row()) decode.store(x);
#else
  unsupported_architecture();
#endif
}

template <class T>
void launch(const Gemma3DecodeArgs& args, Queue& queue) {
  const DecodePlan plan = decode_plan(args, queue.target());
  Slot* slots = static_cast<Slot*>(queue.scratch_bytes(plan.scratch_bytes()));
  const auto start = [&](auto kernel) {
    queue.launch(kernel, {.grid = plan.blocks, .block = kThreads, .shared_bytes = plan.shared_bytes, .together = true},
                 args, plan, slots);
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
