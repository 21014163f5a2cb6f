// v3a: v3 with a bool mask. A kernel before packs the mask into bits, 32 keys of a query in a word, so that a lane
// needs two words for each row and 64 keys. It asks for them before it waits for the scores that they mask. With them,
// two warpgroups have enough registers, where v3 has up to three. A block of keys that all rows of a warp see costs no
// masking.
#include "kernels/attention/attention_mask_rows.cuh"
#include "kernels/attention/attention_ping_pong.cuh"

namespace rooflab::kernels {

using namespace ping_pong;

namespace {

// The bits of a lane's two rows, eight apart, for a block of keys.
template <int kKeys>
class RowBits {
  static constexpr int kPairs = kKeys / 64;  // of words

 public:
  __device__ RowBits(const ForwardProblem& problem) : problem_(problem) {}

  __device__ __forceinline__ void set_rows(const QueryTile& tile, int row) {
    const AttentionArgs& args = problem_.args;
    const int64_t rows = attention_mask_rows(args), heads = args.mask_strides[1] == 0 ? 1 : args.heads;
    const int64_t mask =
        (args.mask_strides[0] == 0 ? 0 : tile.batch) * heads + (args.mask_strides[1] == 0 ? 0 : tile.head);
    row_words_ = static_cast<int>(attention_mask_row_words(args));
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows_[half] = problem_.mask_bits + (mask * rows + min(int64_t{row + 8 * half}, rows - 1)) * row_words_;
  }

  // Of the block whose first key is `key`. Past the end of a row all keys are hidden.
  __device__ __forceinline__ void load(int key) {
    uint32_t all = ~0u;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        const int at = key / 32 + 2 * pair;
        const uint2 two = at < row_words_ ? *reinterpret_cast<const uint2*>(rows_[half] + at) : uint2{};
        words_[half][2 * pair] = two.x >> first_bit(), words_[half][2 * pair + 1] = two.y >> first_bit();
        all &= two.x & two.y;
      }
    }
    sees_all_ = all == ~0u;
  }

  __device__ __forceinline__ void apply(float (&scores)[kKeys / 2]) const {
    if (__all_sync(~0u, sees_all_)) return;
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) {
      const int column = i / 4 * 8 + i % 2;
      if (!(words_[i / 2 % 2][column / 32] >> column % 32 & 1)) scores[i] = -INFINITY;
    }
  }

 private:
  static __device__ __forceinline__ int first_bit() { return threadIdx.x % 4 * 2; }

  const ForwardProblem& problem_;
  const uint32_t* rows_[2];
  int row_words_;
  uint32_t words_[2][2 * kPairs];  // from the lane's first key on
  bool sees_all_;
};

template <class T, class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    attention_cuda_v3a_mask_bits_kernel(const __grid_constant__ CUtensorMap q_map,
                                        const __grid_constant__ CUtensorMap k_map,
                                        const __grid_constant__ CUtensorMap v_map,
                                        const __grid_constant__ ForwardProblem problem) {
#ifdef ROOFLAB_SM90A
  attend<T, S, RowBits<S::kKeys>>(q_map, k_map, v_map, problem);
#else
  unsupported_architecture();
#endif
}

template <class T>
void launch_masked(const AttentionArgs& args, Queue& queue) {
  const uint32_t* bits = launch_mask_rows(args, queue);
  const auto start = [&]<class S>() {
    launch<T, S>(attention_cuda_v3a_mask_bits_kernel<T, S>, queue.target().sm_count, args, queue, bits);
  };
  if (args.head_size <= 64) {
    start.template operator()<NarrowShape64>();
  } else if (args.head_size <= 128) {
    start.template operator()<NarrowShape128>();
  } else {
    start.template operator()<Shape256>();
  }
}

}  // namespace

void attention_cuda_v3a_mask_bits(const AttentionArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch_masked<__half>(args, queue) : launch_masked<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
