"""Counts of kernels, each worked out by hand: the figures of the textbook's patterns."""

import numpy as np
import pytest

import rooflab as rl

COPIES = """
__global__ void together(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
__global__ void strided(const float* x, float* y, int n) {
  int i = 32 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i];
}
__global__ void offset(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i + 1];
}
__global__ void wide(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
"""


@pytest.mark.parametrize(
    ("name", "threads", "n", "sectors", "efficiency"),
    [("together", 4096, 4096, 4.0, 1.0), ("strided", 128, 4096, 32.0, 0.125), ("offset", 4064, 4064, 5.0, 0.8),
     ("wide", 1024, 1024, 16.0, 1.0)],
)  # fmt: skip
def test_sectors_of_a_request(run, name, threads, n, sectors, efficiency):
    x, y = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    launch = run(COPIES, threads // 32, 32, x, y, n, name=name)
    loads = launch.counts.global_loads
    assert (loads.requests, loads.threads) == (threads // 32, threads)
    assert (loads.sectors_per_request, loads.efficiency) == (sectors, efficiency)
    assert launch.counts.global_stores.sectors_per_request == (sectors if name != "offset" else 4.0)
    assert launch.counts.bytes_read == launch.counts.bytes_written == threads * (16 if name == "wide" else 4)


def test_a_view_begins_where_it_begins(run):
    x, y = rl.arange(4096).float(), rl.zeros(4096)
    assert run(COPIES, 1, 32, x[1:], y, 32).counts.global_loads.sectors == 5
    assert run(COPIES, 1, 32, x[8:], y, 32).counts.global_loads.sectors == 4
    array = np.zeros(4096, np.float32)
    assert run(COPIES, 1, 32, array[1:], y, 32).counts.global_loads.sectors == 5
    assert y.tolist()[:32] == [0.0] * 32


TRANSPOSE = """
__global__ void transpose(const float* x, float* y, int n) {
  __shared__ float tile[32][32 + PAD];
  int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(j + k) * n + i];
  __syncthreads();
  i = blockIdx.y * 32 + threadIdx.x, j = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) y[(j + k) * n + i] = tile[threadIdx.x][threadIdx.y + k];
}
"""


@pytest.mark.parametrize(("pad", "conflicts"), [(0, 63_488), (1, 0)])
def test_a_transpose_conflicts_until_it_is_padded(build, numbers, pad, conflicts):
    x, y = numbers(256, 256), np.zeros((256, 256), np.float32)
    launch = build(TRANSPOSE, options=[f"-DPAD={pad}"])((8, 8), (32, 8), x, y, 256, mode="count")
    assert np.array_equal(y, x.T)
    counts = launch.counts
    assert counts.shared_loads.bank_conflicts == counts.bank_conflicts == conflicts
    assert counts.shared_loads.requests == counts.shared_stores.requests == 2048
    assert counts.global_loads.sectors_per_request == counts.global_stores.sectors_per_request == 4
    assert launch.lines[8].shared_loads.bank_conflicts == conflicts and launch.lines[5].shared_stores.requests == 2048


MATMULS = """#define TILE 16
__global__ void naive(const float* a, const float* b, float* c, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
  c[i * n + j] = sum;
}
__global__ void swapped(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
  c[i * n + j] = sum;
}
__global__ void tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * TILE + y, j = blockIdx.x * TILE + x;
  float sum = 0;
  for (int t = 0; t < n / TILE; ++t) {
    as[y][x] = a[i * n + t * TILE + x];
    bs[y][x] = b[(t * TILE + y) * n + j];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += as[y][k] * bs[k][x];
    __syncthreads();
  }
  c[i * n + j] = sum;
}
"""


def test_a_tiled_matmul_of_256(build, numbers):
    a, b, c = numbers(256, 256), numbers(256, 256).T.copy(), np.zeros((256, 256), np.float32)
    tiled = build(MATMULS, "tiled")
    counts = tiled((16, 16), (16, 16), a, b, c, 256, mode="count").counts
    assert np.allclose(c, a @ b, atol=1e-4)
    assert (counts.global_loads.requests, counts.global_loads.sectors) == (65_536, 262_144)
    assert counts.global_stores.sectors_per_request == 4
    assert (counts.shared_loads.requests, counts.shared_loads.wavefronts) == (1_048_576, 1_048_576)
    assert counts.bank_conflicts == 0 and counts.flops == 2 * 256**3
    assert (counts.block_barriers, counts.barriers) == (8192, 65_536)
    assert counts.bytes_read == 2 * 256**3 // 16 * 4 and counts.active_threads == 32


@pytest.mark.parametrize(("name", "loads", "stores"), [("naive", 2.0, 4.0), ("swapped", 8.5, 16.0)])
def test_which_index_goes_along_the_row(run, numbers, name, loads, stores):
    a, c = numbers(64, 64), np.zeros((64, 64), np.float32)
    counts = run(MATMULS, (4, 4), (16, 16), a, a, c, 64, name=name).counts
    assert np.allclose(c, a @ a, atol=1e-4)
    assert (counts.global_loads.sectors_per_request, counts.global_stores.sectors_per_request) == (loads, stores)
    assert counts.flops == 2 * 64**3 and counts.bytes_read == 2 * 64**3 * 4


REDUCTION = """
__global__ void tree(const float* x, float* y) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) atomicAdd(y, s[0]);
}
__global__ void interleaved(const float* x, float* y) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    int i = 2 * step * t;
    if (i < 256) s[i] += s[i + step];
    __syncthreads();
  }
  if (t == 0) atomicAdd(y, s[0]);
}
__global__ void shuffled(const float* x, float* y) {
  __shared__ float warps[8];
  float v = x[blockIdx.x * 256 + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 8) {
    v = warps[threadIdx.x];
    for (int o = 4; o > 0; o /= 2) v += __shfl_down_sync(0xff, v, o);
    if (threadIdx.x == 0) atomicAdd(y, v);
  }
}
"""


@pytest.mark.parametrize(
    ("name", "block_barriers", "conflicts", "shuffles"),
    # Interleaved: at step s the loads s[2st] of a warp meet in banks; 2-way for s = 1, and so on while lanes are left:
    # 4 warps x 1, 2 x 3, 1 x 7, 1 x 7 (16 threads in 4 banks are 8-way), ... for each of three accesses a line.
    [("tree", 9, 0, 0), ("interleaved", 9, None, 0), ("shuffled", 1, 0, 8 * 5 + 3)],
)  # fmt: skip
def test_reductions(run, name, block_barriers, conflicts, shuffles):
    x, y = np.arange(1024, dtype=np.float32) % 7, np.zeros(1, np.float32)
    counts = run(REDUCTION, 4, 256, x, y, name=name).counts
    assert y[0] == x.sum()
    assert counts.block_barriers == 4 * block_barriers and counts.barriers == 8 * 4 * block_barriers
    assert counts.global_atomics.requests == counts.global_atomics.threads == 4
    assert counts.warp_operations == 4 * shuffles
    assert counts.bank_conflicts == conflicts if conflicts is not None else counts.bank_conflicts > 0
    if name != "shuffled":
        assert counts.flops == 4 * 255


def test_conflicts_of_an_interleaved_step(run):
    """256 bytes apart: 32 lanes in one bank, and 8 bytes apart in 16 banks."""
    source = """
    __global__ void f(float* y, int stride) {
      __shared__ float s[2048];
      for (int i = threadIdx.x; i < 2048; i += 32) s[i] = i;
      __syncwarp();
      y[threadIdx.x] = s[threadIdx.x * stride];
    }"""
    y = np.zeros(32, np.float32)
    for stride in (1, 2, 3, 4, 8, 16, 32, 33, 64):
        counts = run(source, 1, 32, y, stride).counts
        assert counts.shared_loads.bank_conflicts == np.gcd(stride, 32) - 1, stride
        assert y.tolist() == [i * stride for i in range(32)]
    assert run(source, 1, 32, y, 0).counts.shared_loads.bank_conflicts == 0  # one word for all


HISTOGRAM = """
__global__ void direct(const int* x, int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[x[i]], 1);
}
__global__ void own(const int* x, int* bins, int n) {
  __shared__ int mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&mine[x[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
"""


def test_histograms(run):
    x = np.random.default_rng(3).integers(0, 256, 4096, dtype=np.int32)
    for name, everywhere, shared in (("direct", 4096, 0), ("own", 16 * 256, 4096)):
        bins = np.zeros(256, np.int32)
        counts = run(HISTOGRAM, 16, 256, x, bins, 4096, name=name).counts
        assert np.array_equal(bins, np.bincount(x, minlength=256))
        assert (counts.global_atomics.threads, counts.shared_atomics.threads) == (everywhere, shared)
    same = np.full(32, 5, np.int32)
    counts = run(HISTOGRAM, 1, 256, same, np.zeros(256, np.int32), 32, name="own").counts
    assert counts.shared_atomics.bank_conflicts == 31  # one after another


def test_wide_accesses_of_shared_memory_go_in_parts_of_a_warp(run):
    source = """
    __global__ void f(float4* y, float2* z) {
      __shared__ float4 four[32];
      __shared__ float2 two[32];
      four[threadIdx.x] = make_float4(1, 2, 3, 4);
      two[threadIdx.x] = make_float2(5, 6);
      __syncthreads();
      y[threadIdx.x] = four[threadIdx.x];
      z[threadIdx.x] = two[threadIdx.x];
    }"""
    y, z = np.zeros((32, 4), np.float32), np.zeros((32, 2), np.float32)
    counts = run(source, 1, 32, y, z).counts
    assert (y == [1, 2, 3, 4]).all() and (z == [5, 6]).all()
    assert (counts.shared_loads.requests, counts.shared_loads.wavefronts, counts.bank_conflicts) == (2, 4 + 2, 0)
    assert counts.global_stores.sectors == 16 + 8


def test_divergence(run):
    """Lanes that went apart come together again behind the branch."""
    source = """
    __global__ void f(float* x) {
      int t = threadIdx.x;
      if (t % 2) x[t] = 1;
      else x[t] = 2;
      for (int i = 0; i < t % 4; ++i) x[t] += 1;
      x[t] *= 2;
    }"""
    x = np.zeros(32, np.float32)
    launch = run(source, 1, 32, x)
    assert x.tolist() == [2 * ((1 if t % 2 else 2) + t % 4) for t in range(32)]
    stores = launch.lines[4].global_stores, launch.lines[5].global_stores
    assert [(s.requests, s.threads) for s in stores] == [(1, 16), (1, 16)]
    loop = launch.lines[6].global_loads
    assert (loop.requests, loop.threads) == (3, 8 * (1 + 2 + 3))
    assert (launch.lines[7].global_stores.requests, launch.lines[7].global_stores.threads) == (1, 32)
    assert launch.counts.active_threads < 32


def test_lanes_that_shuffle_apart_meet_again(run):
    source = """
    __global__ void f(int* x) {
      int t = threadIdx.x, v = t;
      if (t < 16) v = __shfl_xor_sync(0xffff, v, 1);
      x[t] = v;
    }"""
    x = np.zeros(32, np.int32)
    launch = run(source, 1, 32, x)
    assert x.tolist() == [t ^ 1 for t in range(16)] + list(range(16, 32))
    assert (launch.counts.global_stores.requests, launch.counts.warp_operations) == (1, 1)


def test_nested_loops_of_different_lengths_merge_by_place_and_not_by_turn(run):
    """Four lanes run the inner loop i * lane times: 20 requests, as the longest lane of each turn of i needs."""
    source = """
    __global__ void f(volatile int* x) {
      int t = threadIdx.x;
      for (int i = 0; i < 4; ++i)
        for (int k = 0; k < (i + t) % 4 + i; ++k) x[t] = k;
    }"""
    longest = [max((i + t) % 4 + i for t in range(4)) for i in range(4)]
    threads = sum((i + t) % 4 + i for t in range(4) for i in range(4))
    stores = run(source, 1, 4, np.zeros(4, np.int32)).counts.global_stores
    assert (stores.requests, stores.threads) == (sum(longest), threads)


def test_threads_that_call_a_function_meet_the_others_behind_it(run):
    source = """
    template <int D> __device__ float sum(const float* p) {
      float s = 0;
      for (int i = 0; i < D; ++i) s += p[i];
      return s;
    }
    __device__ float after(const float* p);
    struct Twice {
      const float* p;
      __device__ Twice(const float* q) : p(q) {}
      __device__ float get() { return 2 * p[0]; }
    };
    __global__ void f(const float* x, float* y, int n) {
      int t = threadIdx.x;
      float v = 0;
      auto third = [=] __device__ (int i) { return x[i] / 3; };
      if (t < n) v = sum<4>(x + t) + Twice(x).get();
      if (t < n + 3) v += after(x + t) + third(t);
      y[t] = v;
    }
    __device__ float after(const float* p) { return p[1] * p[2]; }"""
    y = np.zeros(32, np.float32)
    counts = run(source, 1, 32, np.ones(64, np.float32), y, 16).counts
    assert np.allclose(y, [6 + 4 / 3] * 16 + [4 / 3] * 3 + [0] * 13)
    assert (counts.global_stores.requests, counts.global_loads.requests) == (1, 4 + 1 + 3)


def test_the_same_at_each_run_in_each_order(build, numbers):
    a, c = numbers(64, 64), np.zeros((64, 64), np.float32)
    tiled = build(MATMULS, "tiled")
    first = tiled((4, 4), (16, 16), a, a, c, 64, mode="count")
    for schedule, seed in (("in order", 0), ("reversed", 0), ("seeded", 1), ("seeded", 2)):
        c[:] = 0
        again = tiled((4, 4), (16, 16), a, a, c, 64, mode="count", schedule=schedule, seed=seed)
        assert (again.counts, again.lines) == (first.counts, first.lines)
        assert np.allclose(c, a @ a, atol=1e-4)


def test_who_accesses_what_is_the_costliest_request_of_each_place(build):
    """Of the loads with strides 1, 2, 4 and 4 again, the first one with stride 4 is kept."""
    source = """
    __device__ float total;
    __global__ void f(const float* x, float* y) {
      __shared__ float s[64];
      int t = threadIdx.x;
      for (int turn = 0; turn < 4; ++turn)
        s[2 * t] = x[min(1 << turn, 4) * t + turn];
      __syncthreads();
      if (t >= 24) y[t] = s[2 * t];
      atomicAdd(&total, 1.0f);
    }"""
    x, y = np.ones(160, np.float32), np.zeros(32, np.float32)
    launch = build(source)(1, 32, x[2:], y, mode="count")
    assert [(one.line, one.memory, one.operation, one.array, one.bytes, one.cost) for one in launch.requests] == [
        (7, "global", "load", "x", 4, 17), (7, "shared", "store", "", 4, 2), (9, "shared", "load", "", 4, 1),
        (9, "global", "store", "y", 4, 1), (10, "global", "atomic", "", 4, 32),
    ]  # fmt: skip
    load, write, read, store, _ = launch.requests
    assert load.lanes == tuple(range(32)) and load.addresses == tuple(8 + 4 * (4 * t + 2) for t in range(32))
    assert write.addresses == tuple(8 * t for t in range(32))
    assert read.addresses == tuple(64 + 8 * t for t in range(8)), "from bank 0 of the first row that is touched"
    assert (store.lanes, store.addresses) == (tuple(range(24, 32)), tuple(4 * t for t in range(24, 32)))
    assert build(source)(1, 32, x[2:], y).requests == []


def test_intensity_is_flops_over_the_bytes_of_sectors(run, numbers):
    a, c = numbers(64, 64), np.zeros((64, 64), np.float32)
    counts = run(MATMULS, (4, 4), (16, 16), a, a, c, 64, name="tiled").counts
    # Each of 16 blocks loads 2 x 4 tiles of 16 rows of two sectors, and 64 x 64 floats are stored.
    assert counts.intensity == 2 * 64**3 / (32 * (16 * 8 * 32 + 64 * 8))
    assert run(COPIES, 1, 32, a, c, 32, name="together").counts.intensity == 0.0
