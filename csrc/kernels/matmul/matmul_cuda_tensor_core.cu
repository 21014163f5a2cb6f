// v4: tensor cores, one warp at a time (mma.sync). The block's 128 x 256 tile of C is computed by eight warps of 64 x
// 64. Each step of 16 along K takes 32 matrix instructions. ldmatrix loads their fragments, and transposes those of an
// operand whose rows do not run along K. Tiles are loaded in the background (cp.async), three ahead; fragments, one
// step ahead. float16 and bfloat16 with float32 sums, rows or columns contiguous, any alignment.
#include "kernels/common/cuda_types.cuh"
#include "kernels/common/ptx_ampere.cuh"
#include "kernels/matmul/matmul_cuda.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 32, kStages = 4;
[[maybe_unused]] constexpr int kWarpTile = 64, kMmaM = 16, kMmaN = 8, kMmaK = 16;
constexpr int kThreads = (kBlockM / kWarpTile) * (kBlockN / kWarpTile) * 32;
[[maybe_unused]] constexpr int kGroup = 16;
constexpr int kVector = 8;  // elements in 16 bytes

template <class T>
struct Matrix {
  const T* data;
  int64_t leading, batch_stride;
  int rows;      // along M or N
  bool vectors;  // all vectors of eight are aligned, and lie wholly inside or wholly outside
};

// kRows by 32 along K, in memory's own order: lines of 64 bytes along K (K-major) or lines along the rows. The 16-byte
// vectors of a line are permuted by xor, so that the eight lines that ldmatrix reads at a time lie in different banks.
template <class T, int kRows, bool kKMajor>
struct Tile {
  static constexpr int kLength = kKMajor ? kBlockK : kRows;
  static constexpr int kLines = kKMajor ? kRows : kBlockK;
  T data[kLines][kLength];

  __device__ __forceinline__ T* vector(int line, int index) {
    const int swizzled = kKMajor ? index ^ (line / 2 % 4) : index ^ (line % 8);
    return &data[line][swizzled * kVector];
  }

  // Four fragments of 8 x 8 at (row, k): rows 0..7 and 8..15, each with k 0..7 and 8..15. With kRowsFirst the rows vary
  // faster.
  template <bool kRowsFirst>
  __device__ __forceinline__ void fragments(uint32_t (&out)[4], int row, int k) {
    const int lane = threadIdx.x % 32, low = lane / 8 % 2 * 8, high = lane / 16 * 8;
    row += kRowsFirst ? low : high;
    k += kRowsFirst ? high : low;
    if constexpr (kKMajor) {
      ptx::load_matrices<false>(out, vector(row + lane % 8, k / kVector));
    } else {
      ptx::load_matrices<true>(out, vector(k + lane % 8, row / kVector));
    }
  }
};

// One thread's part in loading the tiles of an operand, one after another along K, with zeros outside the operand.
template <class T, int kRows, bool kKMajor>
struct TileLoader {
  using Tile = Tile<T, kRows, kKMajor>;
  static constexpr int kWide = Tile::kLength / kVector;  // threads per line
  static constexpr int kStep = kThreads / kWide;         // lines that one pass of all threads covers
  static_assert(kStep % 8 == 0, "all passes swizzle alike");

  __device__ TileLoader(const Matrix<T>& matrix, int64_t batch, int first_row, int k_size)
      : line(threadIdx.x / kWide),
        index(threadIdx.x % kWide),
        rows_left(matrix.rows - first_row - (kKMajor ? line : index * kVector)),
        k_left(k_size - (kKMajor ? index * kVector : line)),
        vectors(matrix.vectors),
        leading(matrix.leading),
        source(matrix.data + batch * matrix.batch_stride +
               (kKMajor ? (first_row + line) * leading : line * leading + first_row) + index * kVector) {}

  __device__ __forceinline__ void next(Tile& tile) {
    const int lines_left = kKMajor ? rows_left : k_left, length_left = kKMajor ? k_left : rows_left;
    const T* from = source;
    T* to = tile.vector(line, index);
    if (vectors) {
#pragma unroll
      for (int pass = 0; pass < Tile::kLines; pass += kStep, from += kStep * leading) {
        const bool inside = lines_left > pass && length_left > 0;
        ptx::copy_async<16>(to + pass * Tile::kLength, from, inside ? 16 : 0);
      }
    } else {
#pragma unroll 1
      for (int pass = 0; pass < Tile::kLines; pass += kStep, from += kStep * leading) {
#pragma unroll
        for (int e = 0; e < kVector; ++e) {
          const bool inside = lines_left > pass && length_left > e;
          to[pass * Tile::kLength + e] = inside ? from[e] : T(0.0f);
        }
      }
    }
    source += kKMajor ? kBlockK : kBlockK * leading;
    k_left -= kBlockK;
  }

  const int line, index;
  const int rows_left;
  int k_left;
  const bool vectors;
  const int64_t leading;
  const T* source;
};

template <class T, bool kAKMajor, bool kBKMajor>
struct Stage {
  Tile<T, kBlockM, kAKMajor> a;
  Tile<T, kBlockN, kBKMajor> b;
};

template <class T, bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(kThreads, 1)
    matmul_cuda_v4_tensor_core_kernel(Matrix<T> a, Matrix<T> b, T* c, int64_t batches, int k_size) {
#ifdef ROOFLAB_SM80
  extern __shared__ __align__(1024) unsigned char shared[];
  auto* stages = reinterpret_cast<Stage<T, kAKMajor, kBKMajor>*>(shared);

  const int m_tiles = (a.rows + kBlockM - 1) / kBlockM, n_tiles = (b.rows + kBlockN - 1) / kBlockN;
  const TileIndex tile = grouped_tile<kGroup>(blockIdx.x, m_tiles, n_tiles);
  const int first_m = tile.m * kBlockM, first_n = tile.n * kBlockN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr int kWarpsN = kBlockN / kWarpTile;
  const int warp_m = warp / kWarpsN * kWarpTile, warp_n = warp % kWarpsN * kWarpTile;
  const int k_tiles = (k_size + kBlockK - 1) / kBlockK;

  for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
    TileLoader<T, kBlockM, kAKMajor> a_loader(a, batch, first_m, k_size);
    TileLoader<T, kBlockN, kBKMajor> b_loader(b, batch, first_n, k_size);
    auto load_stage = [&](int k_tile) {
      if (k_tile < k_tiles) {
        a_loader.next(stages[k_tile % kStages].a);
        b_loader.next(stages[k_tile % kStages].b);
      }
      ptx::copy_async_commit();
    };

    constexpr int kSteps = kBlockK / kMmaK;
    float sum[kWarpTile / kMmaM][kWarpTile / kMmaN][4] = {};
    uint32_t a_fragments[2][kWarpTile / kMmaM][4], b_fragments[2][kWarpTile / 16][4];
    auto load_fragments = [&](int k_tile, int step) {
      auto& stage = stages[k_tile % kStages];
#pragma unroll
      for (int i = 0; i < kWarpTile / kMmaM; ++i) {
        stage.a.template fragments<true>(a_fragments[step % 2][i], warp_m + i * kMmaM, step * kMmaK);
      }
#pragma unroll
      for (int j = 0; j < kWarpTile / 16; ++j) {
        stage.b.template fragments<false>(b_fragments[step % 2][j], warp_n + j * 16, step * kMmaK);
      }
    };
    auto wait_for_next_stage = [&] {
      ptx::copy_async_wait<kStages - 2>();
      __syncthreads();
    };

    for (int k_tile = 0; k_tile < kStages - 1; ++k_tile) load_stage(k_tile);
    wait_for_next_stage();
    load_fragments(0, 0);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      load_stage(k_tile + kStages - 1);  // replaces the previous tile: all warps have passed the barrier since
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (step + 1 < kSteps) {
          load_fragments(k_tile, step + 1);
        } else {
          wait_for_next_stage();
          load_fragments(k_tile + 1, 0);
        }
#pragma unroll
        for (int i = 0; i < kWarpTile / kMmaM; ++i) {
#pragma unroll
          for (int j = 0; j < kWarpTile / kMmaN; ++j) {
            const uint32_t(&pair)[4] = b_fragments[step % 2][j / 2];
            ptx::mma_m16n8k16<T>(sum[i][j], a_fragments[step % 2][i], pair[j % 2 * 2], pair[j % 2 * 2 + 1]);
          }
        }
      }
    }

    // In a 16 x 8 accumulator a lane holds two neighbours of row lane / 4 and two of the row eight below.
    const bool pairs = b.rows % 2 == 0 && reinterpret_cast<uintptr_t>(c) % 4 == 0;
#pragma unroll
    for (int i = 0; i < kWarpTile / kMmaM * 2; ++i) {
      const int row = first_m + warp_m + i * 8 + lane / 4;
      if (row >= a.rows) break;
      T* c_row = c + (batch * a.rows + row) * b.rows;
#pragma unroll
      for (int j = 0; j < kWarpTile / kMmaN; ++j) {
        const int col = first_n + warp_n + j * kMmaN + lane % 4 * 2;
        const float first = sum[i / 2][j][i % 2 * 2], second = sum[i / 2][j][i % 2 * 2 + 1];
        if (pairs && col < b.rows) {
          *reinterpret_cast<uint32_t*>(c_row + col) = ptx::pack<T>(first, second);
        } else {
          if (col < b.rows) c_row[col] = from_float<T>(first);
          if (col + 1 < b.rows) c_row[col + 1] = from_float<T>(second);
        }
      }
    }
    ptx::copy_async_wait<0>();
    __syncthreads();  // the next matrix of the batch refills the stages
  }
#else
  unsupported_architecture();
#endif
}

template <class T, bool kAKMajor, bool kBKMajor>
void launch(const MatmulArgs& args, Queue& queue) {
  const auto matrix = [&](const MatmulOperand& operand, int64_t rows) {
    return Matrix<T>{static_cast<const T*>(operand.data), operand.leading, operand.batch_stride, static_cast<int>(rows),
                     operand.row_length % kVector == 0 && operand.aligned_to_16_bytes(args.dtype)};
  };
  constexpr auto kernel = matmul_cuda_v4_tensor_core_kernel<T, kAKMajor, kBKMajor>;
  static_assert(kStages * sizeof(Stage<T, kAKMajor, kBKMajor>) == kMatmulV4Bytes);
  const int64_t tiles = (args.m + kBlockM - 1) / kBlockM * ((args.n + kBlockN - 1) / kBlockN);
  const Dim3 grid(tiles, 1, std::min<int64_t>(args.batch, kMaxGridZ));
  queue.launch(kernel, {grid, kThreads, kMatmulV4Bytes}, matrix(matmul_a(args), args.m), matrix(matmul_b(args), args.n),
               static_cast<T*>(args.c), args.batch, static_cast<int>(args.k));
}

template <class T>
void launch(const MatmulArgs& args, Queue& queue) {
  const bool a_k_major = matmul_a(args).k_major, b_k_major = matmul_b(args).k_major;
  if (a_k_major) {
    b_k_major ? launch<T, true, true>(args, queue) : launch<T, true, false>(args, queue);
  } else {
    b_k_major ? launch<T, false, true>(args, queue) : launch<T, false, false>(args, queue);
  }
}

}  // namespace

void matmul_cuda_v4_tensor_core(const MatmulArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch<__half>(args, queue) : launch<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
