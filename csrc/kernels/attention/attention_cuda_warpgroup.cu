// The rungs between v2, whose products are a warp's, and v3, where everything overlaps; one idea each. In both, a block
// has two warpgroups of four warps. Each keeps 64 queries, and they walk over the keys 128 at a time.
//
// v2a: wgmma multiplies 64 rows by up to 256 columns in one instruction of a warpgroup, and reads its operands from
// shared memory by itself: no ldmatrix, no fragments in registers but the weights. Tiles are copied by all threads
// (cp.async), as in v2, and wgmma wants them in 128-byte lines whose 16-byte vectors are permuted by xor. By itself
// this is slower than v2 (H100: 191 TFLOP/s against 283 at D_h 64, and 253 against 323 at D_h 128), because nothing
// runs while the tiles are copied. v2b: one thread asks the copy engine (TMA) for a whole tile, which arrives permuted,
// with zeros outside the matrix, and reports to a barrier in shared memory. The next keys and values arrive while these
// are multiplied.
//
// What is left for v2c: softmax waits for its product, and the tensor cores wait for softmax. v2c and v3 are in
// attention_cuda_hopper.cu, and the times of all in attention_ladder.cpp.
// float16 and bfloat16 with float32 sums, D_h a multiple of 8 up to 128, no explicit mask, 16-byte aligned operands.
#include "kernels/attention/attention_forward_hopper.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kWarpgroups = 2, kThreads = kWarpgroups * kWarpgroup;
constexpr int kRows = kWarpgroups * kWarpgroupRows, kKeys = 128;

// kStages tiles of keys and of values.
template <class T, int kHeadSize, int kStages>
struct Shared {
  alignas(1024) TokenTile<T, kWarpgroupRows, kHeadSize> q[kWarpgroups];
  alignas(1024) TokenTile<T, kKeys, kHeadSize> k[kStages];
  alignas(1024) TokenTile<T, kKeys, kHeadSize> v[kStages];
  ptx::Barrier q_full, full[kStages];
};

// What a warpgroup keeps in registers of its 64 queries, and the steps of its computation.
template <class T, int kHeadSize>
struct Rows {
  const ForwardProblem& problem;
  const QueryTile& tile;
  const int warp_row, row;  // the first of the warp; the first of the lane's two, which are eight apart
  const VisibleKeys visible;
  Softmax softmax;
  float out[kHeadSize / 2] = {};

  __device__ __forceinline__ Rows(const ForwardProblem& problem, const QueryTile& tile, int warpgroup)
      : problem(problem),
        tile(tile),
        warp_row(tile.row + warpgroup * kWarpgroupRows + threadIdx.x % kWarpgroup / 32 * 16),
        row(warp_row + threadIdx.x % 32 / 4),
        visible(problem, warp_row, row) {}

  // Adds the block of keys that begins at `key`: scores, softmax, and the weighted sum of values, one after another.
  __device__ __forceinline__ void add(const TokenTile<T, kWarpgroupRows, kHeadSize>& q,
                                      const TokenTile<T, kKeys, kHeadSize>& k, const TokenTile<T, kKeys, kHeadSize>& v,
                                      int key) {
    float scores[kKeys / 2], rescale[2];
    const uint64_t q_lines = ptx::swizzled_tile(q, 0), k_lines = ptx::swizzled_tile(k, 0);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kHeadSize / kMmaK; ++step)
      ptx::wgmma<T, kKeys, true, true>(scores, q_lines + along_lines<kWarpgroupRows>(step),
                                       k_lines + along_lines<kKeys>(step), step > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(scores);

    mask<kKeys>(scores, visible, key);
    if (update(softmax, scores, problem.scale_log2, rescale)) {
#pragma unroll
      for (int i = 0; i < kHeadSize / 2; ++i) out[i] *= rescale[i / 2 % 2];
    }
    uint32_t weights[kKeys / kMmaK][4];
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) weights[i / 4][i % 4] = ptx::pack<T>(scores[2 * i], scores[2 * i + 1]);

    const uint64_t v_lines = ptx::swizzled_tile(v, sizeof(v[0]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kKeys / kMmaK; ++step)
      ptx::wgmma<T, kHeadSize, false>(out, weights[step], v_lines + across_lines(step), true);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(out);
  }

  __device__ __forceinline__ void finish() {
    const bool nan = __any_sync(0xffffffff, has_nan(out));
    store<T, kHeadSize>(problem, tile, row, out, softmax);
    if (nan)
      leave_out_hidden_keys<T, kHeadSize, kKeys>(problem.args, tile.batch, tile.head, warp_row, 16, tile.row, kRows);
  }
};

// All threads copy the tokens from `first` on of one head, as a tensor map with 128-byte swizzle would write them.
template <class T, int kTokens, int kPanels>
__device__ __forceinline__ void copy_tokens(T (&tile)[kPanels][kTokens][kLine], const HeadRows<const T>& head,
                                            int first) {
#pragma unroll
  for (int i = threadIdx.x; i < kPanels * kTokens * kLineUnits; i += kThreads) {
    const int panel = i / (kTokens * kLineUnits), token = i / kLineUnits % kTokens, unit = i % kLineUnits;
    const int column = panel * kLine + unit * kVector;
    const bool inside = first + token < head.rows && column < head.columns;
    ptx::copy_async<16>(&tile[panel][token][(unit ^ token % 8) * kVector],
                        inside ? head.at(first + token, column) : head.data, inside ? 16 : 0);
  }
}

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kThreads, 1)
    attention_cuda_v2a_wgmma_kernel(const __grid_constant__ ForwardProblem problem) {
#ifdef ROOFLAB_SM90A
  extern __shared__ __align__(1024) unsigned char raw[];
  auto& shared = *reinterpret_cast<Shared<T, kHeadSize, 1>*>(raw);
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  const QueryTile tile = QuerySchedule<kRows, kKeys>().next(problem);
  const AttentionArgs& args = problem.args;
  const auto head_of = [&](const void* data, const AttentionStrides& strides, int head, int64_t length) {
    return HeadRows<const T>(static_cast<const T*>(data), strides, tile.batch, head, length, args.head_size);
  };
  const auto q = head_of(args.q, args.q_strides, tile.head, args.q_length);
  const auto k = head_of(args.k, args.k_strides, tile.head / problem.queries_per_key, args.kv_length);
  const auto v = head_of(args.v, args.v_strides, tile.head / problem.queries_per_key, args.kv_length);

#pragma unroll
  for (int i = 0; i < kWarpgroups; ++i) copy_tokens(shared.q[i], q, tile.row + i * kWarpgroupRows);
  Rows<T, kHeadSize> rows(problem, tile, warpgroup);
  for (int block = tile.first_block; block < tile.end_block; ++block) {
    copy_tokens(shared.k[0], k, block * kKeys);
    copy_tokens(shared.v[0], v, block * kKeys);
    ptx::copy_async_commit();
    ptx::copy_async_wait<0>();
    ptx::async_proxy_fence();  // wgmma reads what these threads have written
    __syncthreads();
    rows.add(shared.q[warpgroup], shared.k[0], shared.v[0], block * kKeys);
    __syncthreads();  // both warpgroups are done with the keys and values
  }
  rows.finish();
#else
  unsupported_architecture();
#endif
}

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kThreads, 1)
    attention_cuda_v2b_tma_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                                  const __grid_constant__ CUtensorMap v_map,
                                  const __grid_constant__ ForwardProblem problem) {
#ifdef ROOFLAB_SM90A
  constexpr int kStages = 2;
  extern __shared__ __align__(1024) unsigned char raw[];
  auto& shared = *reinterpret_cast<Shared<T, kHeadSize, kStages>*>(raw);
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  const QueryTile tile = QuerySchedule<kRows, kKeys>().next(problem);
  const int kv_head = tile.head / problem.queries_per_key;

  if (threadIdx.x == 0) {
    ptx::barrier_init(shared.q_full, kWarpgroups);
    for (ptx::Barrier& full : shared.full) ptx::barrier_init(full, 2);  // keys and values
    ptx::barrier_init_fence();
  }
  __syncthreads();
  const auto load = [&](int stage, int token) {  // by one thread
    load_tokens(shared.k[stage], k_map, shared.full[stage], token, kv_head, tile.batch);
    load_tokens(shared.v[stage], v_map, shared.full[stage], token, kv_head, tile.batch);
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kWarpgroups; ++i)
      load_tokens(shared.q[i], q_map, shared.q_full, tile.row + i * kWarpgroupRows, tile.head, tile.batch);
    load(0, tile.first_block * kKeys);
  }

  Rows<T, kHeadSize> rows(problem, tile, warpgroup);
  StageRing<kStages> at;
  ptx::barrier_wait(shared.q_full, 0);
  for (int block = tile.first_block; block < tile.end_block; ++block) {
    if (threadIdx.x == 0 && block + 1 < tile.end_block) load(at.stage ^ 1, (block + 1) * kKeys);
    ptx::barrier_wait(shared.full[at.stage], at.parity);
    rows.add(shared.q[warpgroup], shared.k[at.stage], shared.v[at.stage], block * kKeys);
    at.advance();
    __syncthreads();  // both warpgroups are done with this stage, which is loaded next
  }
  rows.finish();
#else
  unsupported_architecture();
#endif
}

// Calls launch.operator()<T, kHeadSize>() as the arguments say.
template <class Launch>
void dispatch_shape(const AttentionArgs& args, Launch&& launch) {
  const auto by_head = [&]<class T>() {
    args.head_size <= 64 ? launch.template operator()<T, 64>() : launch.template operator()<T, 128>();
  };
  args.dtype == DType::kFloat16 ? by_head.template operator()<__half>() : by_head.template operator()<__nv_bfloat16>();
}

// Starts a kernel that takes tensor maps.
template <class Kernel>
void launch_mapped(Kernel* kernel, int threads, int64_t shared_bytes, const AttentionArgs& args, Queue& queue) {
  const ForwardProblem problem = forward_problem(args, kRows, queue.target());
  queue.launch(kernel, {problem.tiles, threads, shared_bytes},
               attention_map(args.q, args.q_strides, args.batch, args.heads, args.q_length, args.head_size, args.dtype,
                             kWarpgroupRows),
               key_map(args, args.k, args.k_strides, args.batch, kKeys),
               key_map(args, args.v, args.v_strides, args.batch, kKeys), problem);
}

}  // namespace

void attention_cuda_v2a_wgmma(const AttentionArgs& args, Queue& queue) {
  const ForwardProblem problem = forward_problem(args, kRows, queue.target());
  dispatch_shape(args, [&]<class T, int kHeadSize>() {
    queue.launch(attention_cuda_v2a_wgmma_kernel<T, kHeadSize>,
                 {problem.tiles, kThreads, sizeof(Shared<T, kHeadSize, 1>)}, problem);
  });
}

void attention_cuda_v2b_tma(const AttentionArgs& args, Queue& queue) {
  dispatch_shape(args, [&]<class T, int kHeadSize>() {
    launch_mapped(attention_cuda_v2b_tma_kernel<T, kHeadSize>, kThreads, sizeof(Shared<T, kHeadSize, 2>), args, queue);
  });
}

}  // namespace rooflab::kernels
