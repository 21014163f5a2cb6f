// v3: FlashAttention's forward on Hopper. A block has two or three consumer warpgroups, each with 64 query rows, which
// keep scores, probabilities and sums in registers. One thread of another warpgroup only issues the copies of tiles of
// q, k and v (TMA). A consumer starts q k^T of the next block of keys together with this block's product with v
// (wgmma), so its softmax overlaps with a product. The consumers also take turns at the tensor cores, so that the
// exponentials of one overlap with the products of another. Only blocks of keys that need masking pay for it. So far
// this is v2c; in v3 a block stays on its multiprocessor and takes one tile of queries after another, so that the first
// copies of a tile overlap with the end of the previous one. float16 and bfloat16 with float32 sums, D_h a multiple of
// 8 up to 256, no explicit mask, 16-byte aligned operands.
//
// What binds: there are 4 D_h FLOPs for each exponential, and a multiprocessor does 4096 FLOPs or 16 exponentials per
// clock. At D_h 64 both take equally long; at 128 the exponentials take half as long. Measured on a Hopper GPU of 700
// W, long sequences run into its power limit (1.4 to 1.7 of 1.98 GHz): D_h 128 reaches 75% of the tensor cores' rate at
// that clock, and D_h 64 is slower because of its softmax.
#include "kernels/attention/attention_ping_pong.cuh"

namespace rooflab::kernels {

using namespace ping_pong;

namespace {

template <class T, class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    attention_cuda_v2c_ping_pong_kernel(const __grid_constant__ CUtensorMap q_map,
                                        const __grid_constant__ CUtensorMap k_map,
                                        const __grid_constant__ CUtensorMap v_map,
                                        const __grid_constant__ ForwardProblem problem) {
#ifdef ROOFLAB_SM90A
  attend<T, S>(q_map, k_map, v_map, problem);
#else
  unsupported_architecture();
#endif
}

template <class T, class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    attention_cuda_v3_hopper_kernel(const __grid_constant__ CUtensorMap q_map,
                                    const __grid_constant__ CUtensorMap k_map,
                                    const __grid_constant__ CUtensorMap v_map,
                                    const __grid_constant__ ForwardProblem problem) {
#ifdef ROOFLAB_SM90A
  attend<T, S>(q_map, k_map, v_map, problem);
#else
  unsupported_architecture();
#endif
}

// A block for each tile of queries.
template <class T, class S>
void launch_ping_pong(const AttentionArgs& args, Queue& queue) {
  launch<T, S>(attention_cuda_v2c_ping_pong_kernel<T, S>, INT32_MAX, args, queue);
}

template <class T>
void launch_ping_pong(const AttentionArgs& args, Queue& queue) {
  args.head_size <= 64 ? launch_ping_pong<T, Shape64>(args, queue) : launch_ping_pong<T, NarrowShape128>(args, queue);
}

// A block for each multiprocessor, which takes one tile after another.
template <class T, class S>
void launch_persistent(const AttentionArgs& args, Queue& queue) {
  launch<T, S>(attention_cuda_v3_hopper_kernel<T, S>, queue.target().sm_count, args, queue);
}

template <class T>
void launch_persistent(const AttentionArgs& args, Queue& queue) {
  constexpr int64_t kLong = 8192;  // keys
  const bool hides = args.is_causal || args.window < args.q_length + args.kv_length;
  // Where all tiles are alike, the rows that the busiest block takes decide. Wider tiles are taken to need a tenth less
  // time a row.
  const auto rows_of_block = [&](int64_t rows) {
    const int64_t tiles = args.batch * args.heads * ((args.q_length + rows - 1) / rows),
                  blocks = queue.target().sm_count;
    return (tiles + blocks - 1) / blocks * rows;
  };
  const bool shorter = !hides && 11 * rows_of_block(NarrowShape64::kRows) < 10 * rows_of_block(Shape64::kRows);
  static_assert(NarrowShape64::kRows == NarrowShape128::kRows && Shape64::kRows == Shape128::kRows);
  if (args.head_size <= 64) {
    shorter ? launch_persistent<T, NarrowShape64>(args, queue) : launch_persistent<T, Shape64>(args, queue);
  } else if (args.head_size <= 128) {
    const bool narrow = shorter || (hides && std::min(args.window, args.kv_length) < kLong);
    narrow ? launch_persistent<T, NarrowShape128>(args, queue) : launch_persistent<T, Shape128>(args, queue);
  } else {
    launch_persistent<T, Shape256>(args, queue);
  }
}

}  // namespace

void attention_cuda_v2c_ping_pong(const AttentionArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch_ping_pong<__half>(args, queue) : launch_ping_pong<__nv_bfloat16>(args, queue);
}

void attention_cuda_v3_hopper(const AttentionArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch_persistent<__half>(args, queue)
                                : launch_persistent<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
