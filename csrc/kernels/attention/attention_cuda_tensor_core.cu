// v2: FlashAttention-2's forward on tensor cores, one warp at a time (mma.sync). A block keeps 128 queries (64 where
// D_h is over 128, or with a mask and few blocks), with 32 (16) of them in each warp, and walks over the keys
// that any of them sees, 64 at a time. While one product is computed, cp.async loads the operand of the next. The
// weights go from one product to the other in registers. Tiles that need no mask do no masking work. An explicit mask
// is read once for each head that it is broadcast to, while its tile of scores is computed: see
// attention_mask_tile.cuh, and attention_mask_rows.cuh for a bool mask that several rows share. float16 and bfloat16
// with float32 sums, D_h a multiple of 8, any mask, rows aligned to 16 bytes.
#include "kernels/attention/attention_hidden.cuh"
#include "kernels/attention/attention_mask_rows.cuh"
#include "kernels/attention/attention_mask_tile.cuh"
#include "kernels/attention/attention_mma_tile.cuh"

namespace rooflab::kernels {
namespace {

using namespace mma_tile;

constexpr int kWarps = 4, kBlock = kWarps * 32;
constexpr int kKeys = 64;

template <int kHead>
constexpr int kWarpTiles = kHead > 128 ? 1 : 2;  // of 16 queries
template <int kTiles>
constexpr int kQueries = kWarps* kTiles* kMmaM;

template <class T, int kHead, int kTiles>
struct Shared {
  Tile<T, kQueries<kTiles>, kHead> q;  // at the end, out
  Tile<T, kKeys, kHead> k, v;
};

template <class T, int kHead, int kTiles, class Mask>
__global__ void __launch_bounds__(kBlock, 2)
    attention_cuda_v2_tensor_core_kernel(const __grid_constant__ AttentionArgs args, const uint32_t* mask_bits) {
#ifdef ROOFLAB_SM80
  constexpr int kRows = kQueries<kTiles>;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<Shared<T, kHead, kTiles>*>(shared_bytes);

  // The last queries see the most keys, so they start first.
  const Visibility visibility(args);
  const int tiles = (visibility.q_length + kRows - 1) / kRows;
  const int first_query = (tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * kRows;
  const int64_t batch = blockIdx.x / tiles / args.heads, head = blockIdx.x / tiles % args.heads;
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const auto tensor = [&](const void* data, const AttentionStrides& strides, int64_t h, int64_t rows) {
    return HeadRows<const T>(static_cast<const T*>(data), strides, batch, h, rows, args.head_size);
  };
  const auto q = tensor(args.q, args.q_strides, head, args.q_length);
  const auto k = tensor(args.k, args.k_strides, kv_head, visibility.kv_length);
  const auto v = tensor(args.v, args.v_strides, kv_head, visibility.kv_length);
  const ScoreUnit unit(args);
  const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * kTiles * kMmaM;
  const auto query_of = [&](int i, int half) { return first_query + warp_row + i * kMmaM + accumulator_row(half); };
  using KeyOrder = typename Mask::KeyOrder;
  Mask mask(args, mask_bits, batch, head, first_query, warp_row);

  Accumulator sum[kTiles][kHead / kMmaN] = {};
  float maximum[kTiles][2], weight[kTiles][2] = {};  // per row; this lane's part of the row's sum of weights
#pragma unroll
  for (int i = 0; i < kTiles; ++i) maximum[i][0] = maximum[i][1] = -INFINITY;

  const Visibility::Range keys = visibility.keys_of_tile(first_query, kRows);
  int first_key = keys.begin / kKeys * kKeys;
  shared.q.template load_async<kBlock>(q, first_query);
  shared.k.template load_async<kBlock, KeyOrder>(k, first_key);
  ptx::copy_async_commit();
  for (; first_key < keys.end; first_key += kKeys) {
    const bool loads_mask = mask.takes(first_key);
    if (loads_mask) mask.load(first_key);
    ptx::copy_async_wait<0>();
    __syncthreads();  // k has arrived, and every warp is done with the previous v
    shared.v.template load_async<kBlock, KeyOrder>(v, first_key);
    ptx::copy_async_commit();

    Accumulator score[kTiles][kKeys / kMmaN] = {};
    accumulate_scores<T, kHead>(score, shared.q, warp_row, shared.k, 0);
    ptx::copy_async_wait<0>();
    __syncthreads();  // v has arrived, and every warp is done with k
    if (first_key + kKeys < keys.end) shared.k.template load_async<kBlock, KeyOrder>(k, first_key + kKeys);
    ptx::copy_async_commit();

    if (!loads_mask) {
      // Eight loads at a time. Pairs outside the matrix are hidden below.
      const ExplicitMask<T> all(args, batch, head);
      float bias[kTiles][4];
      apply_in_turn(score, [&](int i, int n, int e, float s) {
        if (i == 0 && e == 0) {
#pragma unroll
          for (int at = 0; at < kTiles * 4; ++at) {
            const int query = query_of(at / 4, at % 4 / 2),
                      key = first_key + Mask::lane_key() + Mask::key_of(n, at % 2);
            bias[at / 4][at % 4] = all.bias(min(query, visibility.q_length - 1), min(key, visibility.kv_length - 1));
          }
        }
        return bias[i][e] == -INFINITY ? -INFINITY : scaled(s, unit.first) + bias[i][e];
      });
    } else if (unit.scaled_first) {
#pragma unroll
      for (auto& row : score) {
#pragma unroll
        for (Accumulator& s : row) {
#pragma unroll
          for (float& one : s) one = scaled(one, unit.first);
        }
      }
    }

    const bool hides = !visibility.all_visible(first_query, kRows, first_key, kKeys);
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      if (loads_mask) mask.apply(score[i], i, first_key);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (hides) {
          const Visibility::Range seen = visibility.keys(query_of(i, half));
          const int begin = seen.begin - first_key - Mask::lane_key(), end = seen.end - first_key - Mask::lane_key();
#pragma unroll
          for (int n = 0; n < kKeys / kMmaN; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              const int key = Mask::key_of(n, e);
              if (key < begin || key >= end) score[i][n][2 * half + e] = -INFINITY;
            }
          }
        }

        float largest = maximum[i][half];
#pragma unroll
        for (const Accumulator& s : score[i]) largest = fmaxf(largest, fmaxf(s[2 * half], s[2 * half + 1]));
        largest = fmaxf(largest, shuffle_xor(largest, 1));
        largest = fmaxf(largest, shuffle_xor(largest, 2));

        const float base = largest == -INFINITY ? 0 : largest;  // no key yet: weights of 0, not NaN
        const float rescale = exp2_approximate((maximum[i][half] - base) * unit.to_base_2);
        maximum[i][half] = largest;
        float shift = base * unit.to_base_2;
        if (__any_sync(0xffffffff, fabsf(shift) > kLargeShift)) {
#pragma unroll
          for (Accumulator& s : score[i]) s[2 * half] -= base, s[2 * half + 1] -= base;
          shift = 0;
        }
        float added = 0;  // by these keys, so that the row's sum takes one addition for all of them
#pragma unroll
        for (Accumulator& s : score[i]) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            s[e] = exp2_approximate(s[e] * unit.to_base_2 - shift);
            added += s[e];
          }
        }
        weight[i][half] = weight[i][half] * rescale + added;
#pragma unroll
        for (Accumulator& s : sum[i]) {
          s[2 * half] *= rescale;
          s[2 * half + 1] *= rescale;
        }
      }
    }

    const auto weights = [&](uint32_t(&a)[4], int i, int key) {
      to_operand<T>(a, score[i][key / kMmaN], score[i][key / kMmaN + 1]);
    };
    accumulate<T, kKeys>(sum, weights, shared.v, 0);
  }
  const bool nan = __any_sync(0xffffffff, has_nan(sum));
  ptx::copy_async_wait<0>();
  __syncthreads();  // q is no longer read, nor written

  // Goes through shared memory, so that stores to device memory are whole vectors. A warp writes and reads its own
  // rows.
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = weight[i][half];
      total += shuffle_xor(total, 1);
      total += shuffle_xor(total, 2);
      const float factor = total == 0 ? 0 : 1 / total;
      const int row = warp_row + i * kMmaM + accumulator_row(half), query = first_query + row;
#pragma unroll
      for (int n = 0; n < kHead / kMmaN; ++n) {
        const Accumulator& s = sum[i][n];
        *reinterpret_cast<uint32_t*>(shared.q.vector(row, n) + accumulator_column()) =
            ptx::pack<T>(s[2 * half] * factor, s[2 * half + 1] * factor);
      }
      if (args.lse != nullptr && lane % 4 == 0 && query < visibility.q_length) {
        store_lse(args, (batch * args.heads + head) * args.q_length + query, maximum[i][half], unit.left,
                  logf(total) - rounding_of_shift(maximum[i][half], unit.to_base_2));
      }
    }
  }
  __syncwarp();
  const HeadRows<T> out(static_cast<T*>(args.out), args.out_strides, batch, head, args.q_length, args.head_size);
  constexpr int kWide = kHead / kVector;
  for (int at = lane; at < kTiles * kMmaM * kWide; at += 32) {
    const int row = warp_row + at / kWide, index = at % kWide;
    if (first_query + row < out.rows && index * kVector < out.columns) {
      *reinterpret_cast<uint4*>(out.at(first_query + row, index * kVector)) =
          *reinterpret_cast<const uint4*>(shared.q.vector(row, index));
    }
  }
  if (nan) {
    leave_out_hidden_keys<T, kHead, kKeys>(args, batch, head, first_query + warp_row, kTiles * kMmaM, first_query,
                                           kRows);
  }
#else
  unsupported_architecture();
#endif
}

int64_t blocks_of(const AttentionArgs& args, int rows) {
  return args.batch * args.heads * ((args.q_length + rows - 1) / rows);
}

template <class T, int kHead, int kTiles, class Mask>
void launch(const AttentionArgs& args, Queue& queue, const uint32_t* mask_bits = nullptr) {
  constexpr int64_t kBytes = sizeof(Shared<T, kHead, kTiles>);
  static_assert(kBytes <= attention_v2_bytes(kHead));
  queue.launch(attention_cuda_v2_tensor_core_kernel<T, kHead, kTiles, Mask>,
               {blocks_of(args, kQueries<kTiles>), kBlock, kBytes}, args, mask_bits);
}

template <class T, int kHead, int kTiles>
void launch_masked(const AttentionArgs& args, Queue& queue) {
  if (!attention_v2_packs_mask(args))
    return launch<T, kHead, kTiles, MaskTile<T, kTiles, kQueries<kTiles>>>(args, queue);
  launch<T, kHead, kTiles, MaskRows<kTiles, kQueries<kTiles>>>(args, queue, launch_mask_rows(args, queue));
}

template <class T, int kHead>
void launch(const AttentionArgs& args, Queue& queue) {
  constexpr int kTiles = kWarpTiles<kHead>;
  if (args.mask == nullptr) return launch<T, kHead, kTiles, NoMask>(args, queue);
  if constexpr (kTiles > 1) {  // half as many queries each, where there is not a block for every multiprocessor
    if (blocks_of(args, kQueries<kTiles>) < queue.target().sm_count) return launch_masked<T, kHead, 1>(args, queue);
  }
  launch_masked<T, kHead, kTiles>(args, queue);
}

template <class T>
void launch(const AttentionArgs& args, Queue& queue) {
  if (args.head_size <= 64) return launch<T, 64>(args, queue);
  if (args.head_size <= 128) return launch<T, 128>(args, queue);
  launch<T, 256>(args, queue);
}

}  // namespace

void attention_cuda_v2_tensor_core(const AttentionArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch<__half>(args, queue) : launch<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
