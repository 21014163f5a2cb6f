"""What the threads of a block and of a warp do together: barriers, votes, shuffles, atomics, groups, products."""

import re

import numpy as np
import pytest

import rooflab as rl

BARRIERS = """
__global__ void f(int* y, int n) {
  int t = threadIdx.x;
  int count = __syncthreads_count(t < n), all = __syncthreads_and(t < n), any = __syncthreads_or(t == n);
  y[t] = 10000 * count + 10 * all + any;
}"""


def test_barriers_that_count(run):
    y = np.zeros(100, np.int32)
    for n in (0, 40, 99, 100):
        assert run(BARRIERS, 1, 100, y, n).findings == []
        assert y.tolist() == [10000 * n + 10 * (n == 100) + (n < 100)] * 100


WARP = """
__global__ void f(unsigned* y) {
  unsigned t = threadIdx.x, full = 0xffffffff, row = blockDim.x;
  y[0 * row + t] = __shfl_sync(full, t, 5);
  y[1 * row + t] = __shfl_up_sync(full, t, 2);
  y[2 * row + t] = __shfl_down_sync(full, t, 2, 8);
  y[3 * row + t] = __shfl_xor_sync(full, t, 3);
  y[4 * row + t] = __ballot_sync(full, t % 3 == 0);
  y[5 * row + t] = __all_sync(full, t < 64) + 2 * __any_sync(full, t == 3);
  y[6 * row + t] = __match_any_sync(full, t / 4);
  y[7 * row + t] = __reduce_add_sync(full, t) + __reduce_max_sync(full, t);
  y[8 * row + t] = (unsigned)__shfl_sync(full, 2.5 * t, 3, 4) + __activemask() % 2;
}"""


def test_what_a_warp_does_together(run):
    y = np.zeros((9, 32), np.uint32)
    launch = run(WARP, 1, 32, y)
    t = np.arange(32)
    assert launch.findings == [] and launch.counts.warp_operations == 11
    assert y[0].tolist() == [5] * 32 and y[1].tolist() == [0, 1, *range(30)]
    assert y[2].tolist() == [i + 2 if i % 8 < 6 else i for i in range(32)] and np.array_equal(y[3], t ^ 3)
    assert y[4].tolist() == [sum(1 << i for i in range(0, 32, 3))] * 32 and y[5].tolist() == [3] * 32
    assert y[6].tolist() == [0xF << (i // 4 * 4) for i in range(32)] and y[7].tolist() == [496 + 31] * 32
    assert y[8].tolist() == [int(2.5 * (i // 4 * 4 + 3)) + 1 for i in range(32)]


def test_which_threads_are_active_together(run):
    source = """
    __global__ void f(unsigned* y) {
      unsigned mask = 0;
      if (threadIdx.x % 2) mask = __activemask();
      y[threadIdx.x] = mask + (mask ? __shfl_sync(mask, 1, 1) : 0);
    }"""
    y = np.zeros(32, np.uint32)
    assert run(source, 1, 32, y).findings == []
    assert y.tolist() == [0, 0xAAAAAAAB] * 16


def test_short_warps_and_threads_that_have_ended(run):
    source = """
    __global__ void f(int* y, int n) {
      if (threadIdx.x >= n) return;
      y[threadIdx.x] = __reduce_max_sync(0xffffffff, (int)threadIdx.x);
    }"""
    y = np.zeros(40, np.int32)
    assert run(source, 1, 40, y, 36).findings == []
    assert y.tolist() == [31] * 32 + [35] * 4 + [0] * 4


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("int", np.int32), ("unsigned", np.uint32), ("unsigned long long", np.uint64), ("float", np.float32),
     ("double", np.float64)],
)  # fmt: skip
def test_atomic_operations(run, kind, dtype):
    whole = (
        ""
        if kind in ("float", "double")
        else f"""
      atomicMax(&y[2], ({kind})threadIdx.x); atomicMin(&y[3], ({kind})threadIdx.x);
      atomicOr(&y[4], ({kind})1 << (threadIdx.x % 16)); atomicAnd(&y[5], ~(({kind})1 << (threadIdx.x % 3)));
      atomicXor(&y[6], ({kind})threadIdx.x);"""
    )
    source = f"""
    __global__ void f({kind}* y, {kind}* old) {{
      old[threadIdx.x] = atomicAdd(&y[0], 2);
      {"y[1] = 63" if kind == "double" else f"atomicExch(&y[1], ({kind})threadIdx.x)"};{whole}
      {kind} seen = y[7], assumed;
      do {{ assumed = seen; seen = atomicCAS(&y[7], assumed, assumed + 1); }} while (seen != assumed);
    }}"""
    source = source if kind != "float" and kind != "double" else source[: source.index(f"{kind} seen")] + "}"
    y, old = np.array([0, 0, 0, 9, 0, 15, 0, 0], dtype), np.zeros(64, dtype)
    assert run(source, 1, 64, y, old).findings == []
    expected = [128, 63, 0, 9, 0, 15, 0, 0] if not whole else [128, 63, 63, 0, 65535, 8, 0, 64]
    assert y.tolist() == expected and sorted(old.tolist()) == [2 * i for i in range(64)]


def test_atomic_counters_and_16_bits(run):
    source = """
    __global__ void f(unsigned* y, half* h, half2* h2) {
      atomicInc(&y[0], 9); atomicDec(&y[1], 9); atomicSub(&y[2], 1);
      atomicAdd(h, half(0.5f)); atomicAdd(h2, make_half2(1.0f, half(2.0f)));
    }"""
    y, h, h2 = np.array([0, 0, 64], np.uint32), np.zeros(1, np.float16), np.zeros(2, np.float16)
    assert run(source, 1, 13, y, h, h2).findings == []
    assert y.tolist() == [3, 7, 51] and h.tolist() == [6.5] and h2.tolist() == [13, 26]


def test_cooperative_groups(run):
    source = """
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    namespace cg = cooperative_groups;
    __global__ void f(int* y) {
      cg::thread_block block = cg::this_thread_block();
      auto tile = cg::tiled_partition<8>(block);
      int v = cg::reduce(tile, (int)block.thread_rank(), cg::plus<int>());
      block.sync();
      y[block.thread_rank()] = 1000 * tile.meta_group_rank() + v + tile.shfl(v, 0) * 0 + (int)tile.size();
    }"""
    y = np.zeros(64, np.int32)
    launch = run(source, 1, 64, y)
    assert launch.findings == [] and launch.counts.block_barriers == 1
    assert y.tolist() == [1000 * (t // 8) + sum(range(t // 8 * 8, t // 8 * 8 + 8)) + 8 for t in range(64)]


@pytest.mark.parametrize("type_", ["auto", "cg::thread_block_tile<16>"])  # the latter has forgotten its parent's type
def test_tiles_of_a_tile(run, type_):
    source = f"""
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    __device__ unsigned place(cg::thread_block_tile<8> tile) {{ return tile.meta_group_rank(); }}
    __global__ void f(int* y) {{
      auto warp = cg::tiled_partition<32>(cg::this_thread_block());
      {type_} half = cg::tiled_partition<16>(warp);
      auto quarter = cg::tiled_partition<8>(half);
      y[threadIdx.x] = 1000 * place(quarter) + 100 * warp.meta_group_rank() + 10 * half.meta_group_rank() +
                       half.meta_group_size();
    }}"""
    y = np.zeros(64, np.int32)
    assert run(source, 1, 64, y).findings == []
    assert y.tolist() == [1000 * (t // 8 % 2) + 100 * (t // 32) + 10 * (t // 16 % 2) + 2 for t in range(64)]


@pytest.mark.slow(but_every=3)
@pytest.mark.parametrize(("m", "n"), [(16, 16), (32, 8), (8, 32)])
@pytest.mark.parametrize("layouts", ["row_major row_major", "col_major row_major", "row_major col_major"])
@pytest.mark.parametrize(("type_", "sum_"), [("half", "float"), ("__nv_bfloat16", "float"), ("half", "half")])
def test_matrix_products_of_a_warp(run, m, n, layouts, type_, sum_):
    of_a, of_b = layouts.split()
    step_a, stride_a = (16, 32) if of_a == "row_major" else (16 * m, m)
    step_b, stride_b = (16 * n, n) if of_b == "row_major" else (16, 32)
    source = f"""
    #include <mma.h>
    using namespace nvcuda;
    __global__ void f(const {type_}* a, const {type_}* b, {sum_}* d, {sum_}* t) {{
      wmma::fragment<wmma::matrix_a, {m}, {n}, 16, {type_}, wmma::{of_a}> fa;
      wmma::fragment<wmma::matrix_b, {m}, {n}, 16, {type_}, wmma::{of_b}> fb;
      wmma::fragment<wmma::accumulator, {m}, {n}, 16, {sum_}> sum;
      wmma::fill_fragment(sum, 0.0f);
      for (int k = 0; k < 2; ++k) {{
        wmma::load_matrix_sync(fa, a + {step_a} * k, {stride_a});
        wmma::load_matrix_sync(fb, b + {step_b} * k, {stride_b});
        wmma::mma_sync(sum, fa, fb, sum);
      }}
      for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= {sum_}(2.0f);
      wmma::store_matrix_sync(d, sum, {n}, wmma::mem_row_major);
      wmma::store_matrix_sync(t, sum, {m}, wmma::mem_col_major);
      wmma::load_matrix_sync(sum, t, {m}, wmma::mem_col_major);
      wmma::store_matrix_sync(d + {m * n}, sum, {n}, wmma::mem_row_major);
    }}"""
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 5, (m, 32)).astype("float32"), random.integers(-4, 5, (32, n)).astype("float32")
    dtypes = {"half": "float16", "__nv_bfloat16": "bfloat16", "float": "float32"}
    given = [rl.tensor(np.ascontiguousarray(x.T if by == "col_major" else x), dtype=dtypes[type_])
             for x, by in ((a, of_a), (b, of_b))]  # fmt: skip
    d, t = rl.zeros(2, m, n, dtype=dtypes[sum_]), rl.zeros(n, m, dtype=dtypes[sum_])
    launch = run(source, 1, 32, *given, d, t)
    assert launch.findings == []
    assert d.tolist() == [(2 * a @ b).tolist()] * 2 and t.tolist() == (2 * a @ b).T.tolist()
    assert launch.counts.tensor_flops == 2 * m * n * 32


@pytest.mark.parametrize(
    ("of_a", "of_sum", "what"),
    [
        ("signed char", "int", "matrices of half or __nv_bfloat16 are multiplied here"),
        ("unsigned char", "float", "matrices of half or __nv_bfloat16 are multiplied here"),
        ("float", "float", "matrices of half or __nv_bfloat16 are multiplied here"),
        ("half", "int", "an accumulator is of half or float here"),
        ("half", "double", "an accumulator is of half or float here"),
        ("__nv_bfloat16", "half", "the accumulator of a product of __nv_bfloat16 is of float"),
    ],
)
def test_matrix_products_of_other_types_are_refused(refused, of_a, of_sum, what):
    log = refused(f"""
    #include <mma.h>
    using namespace nvcuda::wmma;
    __global__ void f(float* y) {{
      fragment<matrix_a, 16, 16, 16, {of_a}, row_major> a;
      fragment<matrix_b, 16, 16, 16, {of_a}, col_major> b;
      fragment<accumulator, 16, 16, 16, {of_sum}> c;
      mma_sync(c, a, b, c);
    }}""")
    assert re.search(rf"^source\([5-8]\): error: {what}", log), log


def test_a_matrix_product_needs_its_whole_warp(run):
    source = """
    #include <mma.h>
    using namespace nvcuda::wmma;
    __global__ void f(const half* x, float* y) {
      fragment<matrix_a, 16, 16, 16, half, row_major> a;
      fragment<matrix_b, 16, 16, 16, half, row_major> b;
      fragment<accumulator, 16, 16, 16, float> c;
      fill_fragment(c, 0.0f);
      load_matrix_sync(a, x, 16);
      load_matrix_sync(b, x, 16);
      if (threadIdx.x < 31)
        mma_sync(c, a, b, c);
      y[threadIdx.x] = c.x[0];
    }"""
    found = run(source, 1, 32, np.zeros(256, np.float16), np.zeros(32, np.float32)).findings
    assert [f.kind for f in found] == ["missed threads of a warp"] and found[0].line == 12


OPERATIONS = ["__shfl_sync(M, t, 0)", "__shfl_xor_sync(M, t, 1)", "__ballot_sync(M, t)", "__any_sync(M, t)",
              "__reduce_add_sync(M, t)", "__match_any_sync(M, t)", "(__syncwarp(M), 1)"]  # fmt: skip


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_threads_that_go_past_what_they_are_named_for(run, operation):
    """CUDA lets a mask name threads that have ended before."""
    source = """
    __global__ void f(int* y, unsigned M, int return_at, int skip_at) {
      int t = threadIdx.x, v = 0;
      if (t >= return_at) { y[t] = -1; return; }
      for (int k = t; k < 40; k += 32) {
        if (t < skip_at)
          v += OPERATION;
        y[t] = v;
      }
    }""".replace("OPERATION", operation)
    y = np.zeros(32, np.int32)
    for mask, return_at, skip_at in [(~0, 32, 32), (~0, 16, 32), (0xFFFF, 32, 16), (~0, 16, 16)]:
        assert run(source, 1, 32, y, mask & 0xFFFFFFFF, return_at, skip_at).findings == []
    for mask, lanes in [(0xFFFFFFFF, ", ".join(map(str, range(16, 32)))), (0x1FFFF, "16")]:
        found = run(source, 1, 32, y, mask, 32, 16).findings[0]
        assert (found.kind, found.line, found.thread) == ("missed threads of a warp", 7, (0, 0, 0))
        assert f" {lanes} of its warp, which went past it and ended (mask {mask:#010x})" in found.what


def test_two_operations_of_a_warp_do_not_meet(run):
    source = """
    __global__ void f(int* y) {
      int t = threadIdx.x;
      if (t < 16) y[t] = __shfl_xor_sync(0xffffffff, t, 1);
      else y[t] = __OTHER_sync(0xffffffff, t ARGUMENT);
    }"""
    y = np.zeros(32, np.int32)
    assert run(source.replace("OTHER", "shfl_xor").replace("ARGUMENT", ", 1"), 1, 32, y).findings == []
    found = run(source.replace("OTHER", "ballot").replace("ARGUMENT", ""), 1, 32, y).findings[0]
    assert (found.kind, found.line) == ("missed threads of a warp", 4)
    assert "30, 31 of its warp, which are in another operation (mask 0xffffffff)" in found.what


@pytest.mark.parametrize("condition", ["odd", "n > 3"])
def test_threads_that_meet_again_make_one_request(run, condition):
    """A compiler would rather have two copies of what stands between two branches that go the same way."""
    source = f"""
    __global__ void f(const float* x, float* y, int n) {{
      int t = threadIdx.x;
      bool odd = t % 2;
      if (odd) n = 4;
      y[t] = x[t];
      if ({condition}) y[t + 32] = n;
    }}"""
    counts = run(source, 1, 32, np.ones(32, np.float32), np.zeros(64, np.float32), 3).counts
    assert (counts.global_loads.requests, counts.global_stores.requests) == (1, 2)
