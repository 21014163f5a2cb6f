// v3: a thread computes an 8 x 16 tile of C, kept in registers. For each k it reads 8 elements of A and 16 of B from
// shared memory, four per load, and does 128 multiply-adds with them: 5.3 for each element that it reads, where v2 does
// 0.5. That is enough for the arithmetic units to bind. While one tile of A and B is multiplied, the next is loaded
// from device memory into registers and then stored in the other of two buffers. float32, rows or columns contiguous.
#include "kernels/matmul/matmul_cuda.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8, kBuffers = 2, kGroup = 8;
constexpr int kThreadM = 8, kThreadN = 16, kHalfN = kThreadN / 2;
constexpr int kLanesM = 8, kLanesN = 4;
constexpr int kWarpM = kLanesM * kThreadM, kWarpN = kLanesN * kThreadN;
constexpr int kThreads = (kBlockM / kWarpM) * (kBlockN / kWarpN) * 32;
constexpr int kVector = 4;

struct Matrix {
  const float* data;
  int64_t leading, batch_stride;
  int rows;  // along M or N
};

// kBlockK x kRows, with K outermost whatever the layout in memory. Successive k are 4 banks apart, so that a warp that
// writes 16 rows at k and at k + 4 uses 32 different banks.
template <int kRows>
using Tile = float[kBlockK][kRows + 4];

// One thread's part in loading the tiles of an operand, one after another along K, with zeros outside the operand.
// kVectors: all vectors of four are aligned, and lie wholly inside or wholly outside.
template <int kRows, bool kKMajor, bool kVectors>
struct TileLoader {
  static constexpr int kWide = kKMajor ? kBlockK / kVector : kRows / kVector;  // vectors in a row of memory
  static constexpr int kStep = kThreads / kWide;                               // rows of memory that a pass covers
  static constexpr int kPasses = (kKMajor ? kRows : kBlockK) / kStep;

  __device__ TileLoader(const Matrix& matrix, int64_t batch, int first_row, int k_size)
      : k(kKMajor ? threadIdx.x / 16 % kWide * kVector : threadIdx.x / kWide),
        row(kKMajor ? threadIdx.x / (16 * kWide) * 16 + threadIdx.x % 16 : threadIdx.x % kWide * kVector),
        k_left(k_size - k),
        rows_left(matrix.rows - first_row - row),
        leading(matrix.leading),
        source(matrix.data + batch * matrix.batch_stride +
               (kKMajor ? (first_row + row) * leading + k : k * leading + (first_row + row))) {}

  __device__ __forceinline__ void fetch() {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const float* from = source + pass * kStep * leading;
      const int length_left = kKMajor ? k_left : rows_left;
      const bool inside = (kKMajor ? rows_left : k_left) > pass * kStep;
      if constexpr (kVectors) {
        const float4 zero = {0, 0, 0, 0};
        held[pass] = inside && length_left > 0 ? __ldg(reinterpret_cast<const float4*>(from)) : zero;
      } else {
        held[pass].x = inside && length_left > 0 ? from[0] : 0;
        held[pass].y = inside && length_left > 1 ? from[1] : 0;
        held[pass].z = inside && length_left > 2 ? from[2] : 0;
        held[pass].w = inside && length_left > 3 ? from[3] : 0;
      }
    }
    source += kKMajor ? kBlockK : kBlockK * leading;
    k_left -= kBlockK;
  }

  __device__ __forceinline__ void store(Tile<kRows>& tile) const {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if constexpr (kKMajor) {
        float* to = &tile[k][row + pass * kStep];
        to[0 * (kRows + 4)] = held[pass].x;
        to[1 * (kRows + 4)] = held[pass].y;
        to[2 * (kRows + 4)] = held[pass].z;
        to[3 * (kRows + 4)] = held[pass].w;
      } else {
        *reinterpret_cast<float4*>(&tile[k + pass * kStep][row]) = held[pass];
      }
    }
  }

  const int k, row;
  int k_left;
  const int rows_left;
  const int64_t leading;
  const float* source;
  float4 held[kPasses];
};

// Loads eight elements in two groups of four, so that the loads of a warp cover contiguous shared memory.
template <int kStep>
__device__ __forceinline__ void load_fragment(float (&fragment)[8], const float* first) {
  reinterpret_cast<float4*>(fragment)[0] = *reinterpret_cast<const float4*>(first);
  reinterpret_cast<float4*>(fragment)[1] = *reinterpret_cast<const float4*>(first + kStep);
}

__device__ __forceinline__ void store_four(float* to, int left, bool vectors, const float* from) {
  if (vectors && left > 0) {
    *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (e < left) to[e] = from[e];
    }
  }
}

template <bool kAKMajor, bool kBKMajor, bool kVectors>
__global__ void __launch_bounds__(kThreads, 2)
    matmul_cuda_v3_register_tile_kernel(Matrix a, Matrix b, float* c, int64_t batches, int k_size, bool c_vectors) {
  __shared__ __align__(16) Tile<kBlockM> a_tiles[kBuffers];
  __shared__ __align__(16) Tile<kBlockN> b_tiles[kBuffers];

  const int m_tiles = (a.rows + kBlockM - 1) / kBlockM, n_tiles = (b.rows + kBlockN - 1) / kBlockN;
  const TileIndex tile = grouped_tile<kGroup>(blockIdx.x, m_tiles, n_tiles);
  const int first_m = tile.m * kBlockM, first_n = tile.n * kBlockN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // Neighbouring lanes share their rows of A, and lanes two apart their columns of B: such pairs cost one 16-byte read.
  const int lane_m = lane / 2 % 2 + lane / 8 * 2, lane_n = lane % 2 + lane / 4 % 2 * 2;
  const int thread_m = warp / (kBlockN / kWarpN) * kWarpM + lane_m * 4;
  const int thread_n = warp % (kBlockN / kWarpN) * kWarpN + lane_n * 4;
  const int k_tiles = (k_size + kBlockK - 1) / kBlockK;

  for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
    TileLoader<kBlockM, kAKMajor, kVectors> a_loader(a, batch, first_m, k_size);
    TileLoader<kBlockN, kBKMajor, kVectors> b_loader(b, batch, first_n, k_size);
    float sum[kThreadM][kThreadN] = {};
    float a_fragment[2][kThreadM], b_fragment[2][kHalfN];  // for two successive k; for the two halves of the columns

    auto load_a = [&](int k_tile, int k) {
      load_fragment<kLanesM * 4>(a_fragment[k % 2], &a_tiles[k_tile % kBuffers][k][thread_m]);
    };
    auto load_b = [&](int k_tile, int k, int half) {
      load_fragment<kLanesN * 4>(b_fragment[half], &b_tiles[k_tile % kBuffers][k][thread_n + half * kWarpN / 2]);
    };
    auto multiply = [&](int k, int half) {
#pragma unroll
      for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < kHalfN; ++j) sum[i][half * kHalfN + j] += a_fragment[k % 2][i] * b_fragment[half][j];
      }
    };
    auto fetch = [&] {
      a_loader.fetch();
      b_loader.fetch();
    };
    auto store = [&](int k_tile) {
      a_loader.store(a_tiles[k_tile % kBuffers]);
      b_loader.store(b_tiles[k_tile % kBuffers]);
    };

    fetch();
    __syncthreads();  // all threads are done with the buffers of the batch's previous matrix
    store(0);
    __syncthreads();
    load_a(0, 0);
    load_b(0, 0, 0);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      // Fetches the next tile, or zeros past the last one.
      fetch();
      // Fragments are loaded half a step ahead, while the 64 products before theirs are accumulated.
#pragma unroll
      for (int k = 0; k < kBlockK; ++k) {
        load_b(k_tile, k, 1);
        multiply(k, 0);
        if (k + 1 < kBlockK) {
          load_a(k_tile, k + 1);
          load_b(k_tile, k + 1, 0);
        } else {
          store(k_tile + 1);
          __syncthreads();
          load_a(k_tile + 1, 0);
          load_b(k_tile + 1, 0, 0);
        }
        multiply(k, 1);
      }
    }

#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
      const int row = first_m + thread_m + i / 4 * (kLanesM * 4) + i % 4;
      if (row >= a.rows) break;
      float* c_row = c + (batch * a.rows + row) * b.rows;
#pragma unroll
      for (int j = 0; j < kThreadN; j += 4) {
        const int col = first_n + thread_n + j * kLanesN;
        store_four(c_row + col, b.rows - col, c_vectors, &sum[i][j]);
      }
    }
  }
}

template <bool kAKMajor, bool kBKMajor, bool kVectors>
void launch(const MatmulArgs& args, Queue& queue) {
  const auto matrix = [](const MatmulOperand& operand, int64_t rows) {
    return Matrix{static_cast<const float*>(operand.data), operand.leading, operand.batch_stride,
                  static_cast<int>(rows)};
  };
  const bool c_vectors = is_aligned(args.c) && args.n % 4 == 0;
  const int64_t tiles = (args.m + kBlockM - 1) / kBlockM * ((args.n + kBlockN - 1) / kBlockN);
  const Dim3 grid(tiles, 1, std::min<int64_t>(args.batch, kMaxGridZ));
  queue.launch(matmul_cuda_v3_register_tile_kernel<kAKMajor, kBKMajor, kVectors>, {grid, kThreads},
               matrix(matmul_a(args), args.m), matrix(matmul_b(args), args.n), static_cast<float*>(args.c), args.batch,
               static_cast<int>(args.k), c_vectors);
}

template <bool kVectors>
void launch(const MatmulArgs& args, Queue& queue) {
  const bool a_k_major = matmul_a(args).k_major, b_k_major = matmul_b(args).k_major;
  if (a_k_major) {
    b_k_major ? launch<true, true, kVectors>(args, queue) : launch<true, false, kVectors>(args, queue);
  } else {
    b_k_major ? launch<false, true, kVectors>(args, queue) : launch<false, false, kVectors>(args, queue);
  }
}

}  // namespace

void matmul_cuda_v3_register_tile(const MatmulArgs& args, Queue& queue) {
  const auto has_vectors = [&](const MatmulOperand& operand) {
    return operand.row_length % kVector == 0 && operand.aligned_to_16_bytes(args.dtype);
  };
  const bool vectors = has_vectors(matmul_a(args)) && has_vectors(matmul_b(args));
  vectors ? launch<true>(args, queue) : launch<false>(args, queue);
}

}  // namespace rooflab::kernels
