// v3: FlashAttention's backward on Hopper, in three kernels: one writes D and clears dq_sum, one multiplies, and one
// rounds dq_sum into dq. In the second, a block takes 128 or 64 keys of one key head and walks over the queries that
// see them, head by head through the group, so that dK and dV stay in registers. The copy engine (TMA) loads tiles of q
// and dout, warpgroups multiply them (wgmma), and dQ is accumulated in float32 in L2. float16 and bfloat16, D_h a
// multiple of 8 up to 256, no explicit mask, 16-byte aligned operands.
//
// Expected for a tile of 10.5 MFLOP, in cycles of a multiprocessor. The tensor cores need 2560. Shared memory, at 128
// bytes a cycle, needs more, so it binds:
//   D_h  64, 128 x 128 pairs: S, dP 768; dV, dK 512; dQ 512; dS out 256; dQ out and in 512; tiles in 256: 2816
//   D_h 128,  64 x 128 pairs: S, dP 1024; dV, dK 512; dQ 512; dS out 128; dQ out and in 512; tiles in 256: 2944
//   D_h 256,   64 x 64 pairs: S, dP 1024; dV, dK 768; dQ 512; P, dS out 128; dQ out 512; tiles in 512: 3456
// This allows 91, 87 and 74% of 1.07 PFLOP/s at 1.98 GHz. Registers per lane: dK and dV take 64, 128 and 128; S and dP
// take 128, 64 and, in a warpgroup of their own, 64. Measured: half of that peak. A warpgroup's exponentials, fences
// and waits are hidden only by the products of the others, and long runs reach the power limit, which lowers the clock.
//
// TFLOP/s on one H200, bfloat16, B L = 16384, H D_h = 2048, full and causal (FLASH and CUDNN of PyTorch, same run):
//   D_h  64  L  2048: 471, 377 (244, 194; 408, 317)   L 4096: 520, 461 (256, 226; 429, 373)
//            L 16384: 563, 555 (273, 262; 470, 436), deterministic 491, 424
//   D_h 128  L  2048: 512, 419 (257, 213; 500, 398)   L 4096: 554, 495 (278, 247; 536, 465)
//            L 16384: 579, 592 (288, 298; 596, 561), deterministic 468, 437
//   D_h 256  L  2048: 456, 383 (221, 184; 341, 311)   L 4096: 494, 445 (235, 210; 386, 361)
//            L 16384: 532, 515 (251, 243; 363, 396), deterministic 317, 272
// Of 808 us at D_h 128, L = 2048, causal, 66 go to D and the clearing, 690 to the products and 52 to the rounding. The
// first and the last kernel run at the speed of a copy.
//
// Earlier versions, at D_h 128, L = 16384, full (CUDNN: 552 to 600 in these runs). dQ added straight from registers:
// 488, because the fence before a product waits for reductions in flight. dQ by bulk reduction from shared memory: 520.
// dV started together with dK, so that a warpgroup's products are issued back to back: 558. dQ one tile late and sent
// by a warp of its own: the same here, but 540 instead of 480 at D_h 64, and 474 instead of 311 when deterministic.
// Rounding P before dS is computed from it frees registers to start products earlier, but gave 443, and errors a
// quarter larger.
#include "kernels/attention/attention_backward_hopper.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kThreads = 256;

// delta = rowsum(dout * out), by kLanes threads per row; zero for the rows past the end. Clears dq_sum and the turns.
template <class T, int kLanes>
__global__ void __launch_bounds__(kThreads)
    attention_backward_cuda_v3_hopper_prepare_kernel(const __grid_constant__ AttentionBackwardArgs args,
                                                     const __grid_constant__ BackwardProblem problem) {
  const AttentionArgs& forward = args.forward;
  const int64_t index = blockIdx.x * int64_t{kThreads / kLanes} + threadIdx.x / kLanes;  // among the rounded rows
  const int64_t row = index % problem.rounded_rows, head = index / problem.rounded_rows;
  const int64_t h = head % problem.heads, b = head / problem.heads;
  const int column = threadIdx.x % kLanes * kVector;
  float sum = 0;
  if (column < problem.head_size) {
    float4* clear = reinterpret_cast<float4*>(args.dq_sum + index * problem.head_size + column);
    clear[0] = clear[1] = {0, 0, 0, 0};
    if (row < problem.q_length) {
      const auto load = [&](const void* data, const AttentionStrides& strides) {
        const int64_t offset = b * strides.batch + h * strides.head + row * strides.token + column;
        return *reinterpret_cast<const uint4*>(static_cast<const T*>(data) + offset);
      };
      const uint4 out = load(forward.out, forward.out_strides), dout = load(args.dout, args.dout_strides);
      const T *x = reinterpret_cast<const T*>(&out), *y = reinterpret_cast<const T*>(&dout);
#pragma unroll
      for (int i = 0; i < kVector; ++i) sum += to_float(x[i]) * to_float(y[i]);
      if (problem.turns != nullptr && column == 0 && row % kSumRows == 0) {
        auto* turns = problem.turns + b * problem.turn_batch + h * problem.turn_head + row * problem.turn_token;
        *reinterpret_cast<uint2*>(turns) = {0, 0};
      }
    }
  }
#pragma unroll
  for (int lane = kLanes / 2; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffff, sum, lane);
  if (column == 0) args.delta[index] = sum;
}

// dq = scale dq_sum, rounded. A thread takes eight columns of two rows, eight rows apart: what four lanes accumulated.
template <class T>
__global__ void __launch_bounds__(kThreads)
    attention_backward_cuda_v3_hopper_finish_kernel(const __grid_constant__ AttentionBackwardArgs args,
                                                    const __grid_constant__ BackwardProblem problem) {
  const int columns = problem.head_size / kSumColumn, pairs_in_tile = kSumRows / 2 * columns;
  const int64_t index = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  const int64_t tile = index / pairs_in_tile, tiles_in_head = problem.rounded_rows / kSumRows;
  const int within = static_cast<int>(index % pairs_in_tile), column = within % columns, pair = within / columns;
  const int64_t head = tile / tiles_in_head, h = head % problem.heads, b = head / problem.heads;
  const int64_t row = tile % tiles_in_head * kSumRows + pair / 8 * 16 + pair % 8;
  if (b >= problem.batch || row >= problem.q_length) return;

  const float4* sums = reinterpret_cast<const float4*>(args.dq_sum + tile * kSumRows * problem.head_size) +
                       column * kWarpgroup + pair * 4;
  uint32_t first[4], second[4];
#pragma unroll
  for (int lane = 0; lane < 4; ++lane) {
    const float4 x = sums[lane];
    first[lane] = ptx::pack<T>(x.x * problem.scale, x.y * problem.scale);
    second[lane] = ptx::pack<T>(x.z * problem.scale, x.w * problem.scale);
  }
  const AttentionStrides& strides = args.dq_strides;
  T* dq = static_cast<T*>(args.dq) + b * strides.batch + h * strides.head + row * strides.token + column * kSumColumn;
  *reinterpret_cast<uint4*>(dq) = {first[0], first[1], first[2], first[3]};
  if (row + 8 < problem.q_length) {
    *reinterpret_cast<uint4*>(dq + 8 * strides.token) = {second[0], second[1], second[2], second[3]};
  }
}

BackwardProblem backward_problem(const AttentionBackwardArgs& args) {
  const AttentionArgs& f = args.forward;
  constexpr int64_t kSectionBytes = 24 << 20;  // what may stay in half of L2: q, dout and dq_sum of a few heads
  BackwardProblem problem{};
  problem.batch = static_cast<int>(f.batch);
  problem.heads = static_cast<int>(f.heads);
  problem.kv_heads = static_cast<int>(f.kv_heads);
  problem.q_length = static_cast<int>(f.q_length);
  problem.kv_length = static_cast<int>(f.kv_length);
  problem.head_size = static_cast<int>(f.head_size);
  problem.rounded_rows = static_cast<int>(attention_rounded_rows(f.q_length));
  const int window = static_cast<int>(std::min(f.window, f.q_length + f.kv_length));
  problem.offset = problem.kv_length - problem.q_length;
  problem.lowest = 1 - window;
  problem.highest = f.is_causal ? 0 : window - 1;
  const int64_t bytes = f.heads / f.kv_heads * problem.rounded_rows * f.head_size * (2 + 2 + sizeof(float));
  problem.heads_in_section = static_cast<int>(std::clamp<int64_t>(kSectionBytes / bytes, 1, f.batch * f.kv_heads));
  problem.scale = f.scale;
  problem.scale_log2 = f.scale * kLog2E;
  problem.lse = f.lse;
  problem.delta = args.delta;
  problem.dq_sum = args.dq_sum;
  problem.args = args;
  if (args.deterministic) {
    const int64_t element = size_of(f.dtype);
    problem.turns = static_cast<char*>(args.dq);
    problem.turn_batch = args.dq_strides.batch * element;
    problem.turn_head = args.dq_strides.head * element;
    problem.turn_token = args.dq_strides.token * element;
  }
  return problem;
}

template <class T, int kLanes>
void prepare(const AttentionBackwardArgs& args, const BackwardProblem& problem, Queue& queue) {
  const int64_t rows = int64_t{problem.batch} * problem.heads * problem.rounded_rows;
  queue.launch(attention_backward_cuda_v3_hopper_prepare_kernel<T, kLanes>, {rows * kLanes / kThreads, kThreads}, args,
               problem);
}

template <class T>
void run(const AttentionBackwardArgs& args, Queue& queue) {
  const BackwardProblem problem = backward_problem(args);
  const int64_t head_size = problem.head_size;
  if (head_size <= 64) {
    prepare<T, 8>(args, problem, queue);
  } else if (head_size <= 128) {
    prepare<T, 16>(args, problem, queue);
  } else {
    prepare<T, 32>(args, problem, queue);
  }
  (head_size <= 128 ? attention_backward_hopper_registers : attention_backward_hopper_shared)(args, problem, queue);
  const int64_t vectors = int64_t{problem.batch} * problem.heads * problem.rounded_rows / 2 * (head_size / kSumColumn);
  queue.launch(attention_backward_cuda_v3_hopper_finish_kernel<T>, {(vectors + kThreads - 1) / kThreads, kThreads},
               args, problem);
}

}  // namespace

void attention_backward_cuda_v3_hopper(const AttentionBackwardArgs& call, Queue& queue) {
  const AttentionBackwardArgs args = attention_backward_with_scratch(call, true, queue);
  args.forward.dtype == DType::kFloat16 ? run<__half>(args, queue) : run<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
