"""What is wrong with a kernel: each fault is found, with its thread and its line, and the right kernel has none."""

import re

import numpy as np
import pytest

import rooflab as rl
from rooflab.cuda.simt import process, toolchain

ONES = np.ones(1024, np.float32)


def only(launch, kind):
    assert [finding.kind for finding in launch.findings] == [kind], launch
    return launch.findings[0]


def test_a_guard_that_is_off_by_one(run):
    source = """
    __global__ void f(const float* x, float* y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i COMPARE n)
        y[i] = x[i];
    }"""
    x, y = ONES[:1000].copy(), np.zeros(1000, np.float32)
    found = only(run(source.replace("COMPARE", "<="), 4, 256, x, y, 1000), "out of bounds")
    assert (found.line, found.block, found.thread) == (5, (3, 0, 0), (232, 0, 0))
    assert str(found) == "line 5: Thread 232 of block 3 reads 4 bytes at x[1000], which has 1000 elements."
    assert y.sum() == 1000  # what was written before stays
    assert run(source.replace("COMPARE", "<"), 4, 256, x, y, 1000).findings == []


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("y[8] = 1;", r"writes 4 bytes at y\[8\], which has 8 elements"),
        ("y[-1] = 1;", r"writes 4 bytes at y\[-1\], which has 8 elements"),
        ("y[1 << 28] = 1;", "writes 4 bytes at an address that belongs to no array"),
        ("*(float*)8 = 1;", "writes 4 bytes at a null pointer"),
        ("*(float*)4096 = 1;", "writes 4 bytes at an address that belongs to no array"),
        ("y[0] = *(float*)nothing;", "reads 4 bytes at a null pointer"),
        ("atomicAdd(y + 9, 1.0f);", r"changes 4 bytes at y\[9\], which has 8 elements"),
        ("s[n] = 1; y[0] = s[0];", "writes 4 bytes at byte 128 of the dynamic shared memory"),
        ("t[n] = 1; y[0] = t[0];", "uses element 32 that is outside of its array"),
        ("t[n - 33] = 1; y[0] = t[0];", "uses an element that is outside of its array"),
        ("float a[4]; for (int i = 0; i < n; ++i) a[i] = i; y[0] = a[3];", "uses element 4 that is outside of its"),
        ("*(float4*)(y + 1) = make_float4(0, 0, 0, 0);", "uses 16 bytes at y.1., where an address has to be a mult"),
        ("*(float2*)(t + 1) = make_float2(0, 0);", "uses 8 bytes at an address of its own or its block's, where"),
        ("float4 v = *(float4*)(t + 4 * (n & 3) + 2); y[0] = v.x;", "uses 16 bytes .* to be a multiple of 16"),
        ("*(float4*)(s + 1) = make_float4(0, 0, 0, 0);", "uses 16 bytes at byte 4 of the dynamic shared memory, w"),
        ("half2 v = *(half2*)((half*)t + 1); y[0] = v.x;", "uses 4 bytes at an address .* to be a multiple of 4"),
        ("memcpy(y, s, 64);", "memory that no thread of its block has written|writes 1 bytes at y.8."),
    ],
)  # fmt: skip
def test_addresses(run, statement, says):
    source = f"""
    __global__ void f(float* y, int n, const float* nothing) {{
      extern __shared__ float s[];
      __shared__ float t[32];
      {statement}
      y[1] = t[threadIdx.x] * 0;
    }}"""
    launch = run(source, 1, 1, np.zeros(8, np.float32), 32, None, shared_bytes=128, mode="check")
    assert launch.findings[0].line == 5 and re.search(says, launch.findings[0].what)


@pytest.mark.parametrize(
    ("n", "says"),
    [(11, "writes 16 bytes at y[8], 4 past its end, as it has 11 elements."), (1, "y[8], which has 1 element.")],
)
def test_an_access_across_the_end_says_how_much_is_past_it(run, n, says):
    source = "__global__ void f(float* y) { ((float4*)y)[2] = make_float4(1, 2, 3, 4); }"
    (found,) = run(source, 1, 1, np.zeros(n, np.float32), mode="check").findings
    assert found.what.endswith(says)


def test_a_store_through_a_pointer_to_const(run):
    source = "__global__ void f(const float* x, float* y) {\n  y[1] = 2;\n  ((float*)x)[1] = 1;\n}"
    x, y = np.zeros(4, np.float32), np.zeros(4, np.float32)
    found = only(run(source, 1, 1, x, y), "constant written")
    assert found.line == 3 and "writes 4 bytes at x[1], where the parameter points to const" in found.what
    assert x.tolist() == [0] * 4
    assert run(source, 1, 1, y, y).findings == [] and y[1] == 1  # the same memory, which may be written


SHARED = """
__global__ void f(float* y, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
  BEFORE
  s[t] = y[t];
  BETWEEN
  y[t] = s[63 - t];
}
"""


def shared(before="", between="__syncthreads();"):
    return SHARED.replace("BEFORE", before).replace("BETWEEN", between)


def test_a_missing_barrier_is_a_race_of_both_threads(run):
    assert run(shared(), 1, 64, np.arange(64, dtype=np.float32), 64).findings == []
    launch = run(shared(between=""), 1, 64, np.arange(64, dtype=np.float32), 64)
    races = [finding for finding in launch.findings if finding.kind == "race"]
    assert {finding.line for finding in races} == {6, 8}
    late = next(finding for finding in races if finding.line == 8)
    assert (late.thread[0] ^ 63) < 32 and f"thread {late.thread[0] ^ 63} " in late.what and "line 6" in late.what


def test_a_race_is_found_in_any_order(run):
    kinds = [
        {f.kind for f in run(shared(between=""), 1, 64, np.ones(64, np.float32), 64, schedule=order, seed=5).findings}
        for order in ("in order", "reversed", "seeded")
    ]
    assert all("race" in found for found in kinds)


def test_a_warp_needs_its_own_barrier(run):
    source = shared(before="if (t >= 32) return;", between="SYNC").replace("63 - t", "31 - t")
    y = np.arange(64, dtype=np.float32)
    assert run(source.replace("SYNC", "__syncwarp();"), 1, 64, y, 64).findings == []
    found = run(source.replace("SYNC", ""), 1, 64, y, 64).findings
    assert "race" in [finding.kind for finding in found]
    # A shuffle orders no memory.
    found = run(source.replace("SYNC", "t += __shfl_sync(~0u, 0, 0);"), 1, 64, y, 64).findings
    assert [finding.kind for finding in found] == ["race"]


def test_neighbours_in_one_word_are_no_race_and_one_byte_is(run):
    source = """
    __global__ void f(char* y, int step) {
      __shared__ char s[64];
      s[threadIdx.x / step] = 1;
      __syncthreads();
      y[threadIdx.x] = s[threadIdx.x / step];
    }"""
    assert run(source, 1, 64, np.zeros(64, np.int8), 1).findings == []
    assert only(run(source, 1, 64, np.zeros(64, np.int8), 2), "race").line == 4


def test_a_reader_is_remembered_when_the_writer_reads_too(run):
    between = "float v = s[(t + 1) % 32]; v += s[t]; s[t] = v; __syncthreads();"
    source = shared(between=f"__syncthreads(); {between}").replace("63 - t", "31 - t")
    found = run(source, 1, 32, np.ones(64, np.float32), 64, mode="check").findings
    assert {(finding.kind, finding.line) for finding in found} == {("race", 7)}


def test_atomic_operations_are_no_race_among_themselves(run):
    source = """
    __global__ void f(int* y) {
      __shared__ int s;
      if (threadIdx.x == 0) s = 0;
      __syncthreads();
      atomicAdd(&s, 1);
      BARRIER
      y[0] = s;
    }"""
    assert run(source.replace("BARRIER", "__syncthreads();"), 1, 64, np.zeros(1, np.int32)).findings == []
    assert "race" in [f.kind for f in run(source.replace("BARRIER", ""), 1, 64, np.zeros(1, np.int32)).findings]


def test_shared_memory_that_nobody_wrote(run):
    source = """
    __global__ void f(float* y) {
      __shared__ float s[64];
      if (threadIdx.x < 63) s[threadIdx.x] = 1;
      __syncthreads();
      y[threadIdx.x] = s[threadIdx.x];
    }"""
    found = only(run(source, 3, 64, np.zeros(64, np.float32)), "uninitialised")
    assert (found.line, found.block, found.thread, found.count) == (6, (0, 0, 0), (63, 0, 0), 3)


def test_a_return_before_a_barrier(run):
    found = only(run(shared(before="if (t >= n) return;").replace("63 - t", "t"), 1, 64, ONES[:64].copy(), 40),
                 "missed barrier")  # fmt: skip
    assert (found.line, found.thread) == (7, (40, 0, 0))
    assert "ended before a barrier that 40 threads of its block wait at (with 23 more)" in found.what


def test_barriers_in_two_branches(run):
    source = """
    __global__ void f(float* y) {
      if (threadIdx.x < 32) __syncthreads();
      else
        __syncthreads();
      y[threadIdx.x] = 1;
    }"""
    found = only(run(source, 1, 64, np.zeros(64, np.float32)), "missed barrier")
    assert (found.line, found.thread) == (5, (32, 0, 0)) and "waits on line 3" in found.what


def test_lanes_that_a_shuffle_waits_for_in_vain(run):
    source = """
    __global__ void f(float* y) {
      float v = 1;
      if (threadIdx.x < 16) v = __shfl_xor_sync(0xffffffff, v, 1);
      else __syncthreads();
      y[threadIdx.x] = v;
    }"""
    found = only(run(source, 1, 32, np.zeros(32, np.float32)), "missed threads of a warp")
    assert found.line == 4 and "lanes 16, 17" in found.what


def test_nothing_written(run):
    assert only(run("__global__ void f(float* y) {}", 1, 32, np.zeros(4, np.float32)), "nothing written").line == 0
    assert run("__global__ void f(const float* y) {}", 1, 32, np.zeros(4, np.float32)).findings == []
    assert run("__global__ void f(float* y) {}", 4, 32, np.zeros(4, np.float32), blocks=2).findings == []


@pytest.mark.parametrize(
    "body", ["while (n) y[0] += 1;", "while (n) n += 0 * threadIdx.x;", "for (;;) __syncthreads();"]
)
def test_a_loop_without_end_ends(run, body):
    source = f"__global__ void f(volatile float* y, int n) {{\n{body}\ny[0] = n; }}"
    found = only(run(source, 1, 32, np.zeros(4, np.float32), 1, seconds=0.5, mode="check"), "endless")
    assert "was not done after 0.5 s" in found.what and found.line == 2
    assert rl.ones(3).sum().item() == 3


@pytest.mark.parametrize(("seconds", "kind"), [(0.5, "endless"), (60, "crash")])
def test_a_process_that_cannot_tell_its_end(run, monkeypatch, tmp_path, seconds, kind):
    """As if it had been killed by someone else."""
    program = tmp_path / "runner"
    program.write_text(
        "#!/bin/sh\ntrap '' TERM\n" + ("while :; do :; done" if seconds < 1 else "exit 9"), encoding="utf-8"
    )
    program.chmod(0o755)
    accountant = toolchain.programs()[1]
    monkeypatch.setattr(toolchain, "programs", lambda: (program, accountant))
    monkeypatch.setattr(process, "_PATIENCE", 0.2)
    only(run("__global__ void f(float* y) { y[0] = 1; }", 1, 1, np.zeros(4, np.float32), seconds=seconds), kind)


def test_faults_of_the_process(run):
    y = np.zeros(4, np.float32)
    deep = """
    __device__ float f(float* y, int n) { float a[500]; a[n % 500] = n; return n ? f(y, n + 1) + a[n % 7] : 0; }
    __global__ void g(float* y) { y[0] = f(y, 1); }"""
    only(run(deep, 1, 1, y), "stack overflow")
    only(run(deep, 1, 1, y, mode="functional"), "stack overflow")
    found = only(run("__global__ void f(int* y, int n) {\n  y[0] = 5 / n;\n}", 1, 1, np.zeros(4, np.int32), 0),
                 "division by zero")  # fmt: skip
    assert found.line == 2
    found = only(run("__global__ void f(float* y) {\n\n  assert(threadIdx.x < 5);\n}", 1, 8, y), "assertion")
    assert (found.line, found.thread) == (3, (5, 0, 0))
    assert only(run("__global__ void f(float* y) {\n  __trap();\n}", 1, 8, y), "trap").line == 2
    only(run("__global__ void f(float* y) { *(float*)12345 = 1; }", 1, 1, y, mode="functional"), "crash")
    null = "__global__ void f(int* y) { y[0] = 1; int* p = 0; *p = 1; y[0] = 2; }"  # g++ sees that it is null
    only(run(null, 1, 1, np.zeros(4, np.int32), mode="functional"), "crash")


@pytest.mark.parametrize("mode", ["count", "functional"])
@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        ("1 / n", "division by zero", "divides an integer by zero."),
        ("7u % n", "division by zero", "divides an integer by zero."),
        ("1 << (n + 32)", "shift", "shifts an integer of 32 bits by 32:"),
        ("-8ll >> (n - 1)", "shift", "shifts an integer of 64 bits by -1:"),
        ("(int)x", "conversion", r"converts 3e\+09 to an integer type that cannot hold it"),
        ("(unsigned char)(double)-x", "conversion", r"converts -3e\+09 to"),
        ("(long long)(x * INFINITY * 0)", "conversion", "converts nan to an .* takes 0,"),
    ],
)
def test_arithmetic_that_is_not_defined(run, mode, value, kind, says):
    """A GPU makes one value of it, and this machine another."""
    source = f"__global__ void f(int* y, int n, float x) {{\n  y[0] = 1;\n  y[1] = {value};\n}}"
    found = only(run(source, 1, 1, np.zeros(2, np.int32), 0, 3e9, mode=mode), kind)
    assert found.line == 3 and re.search(says, found.what.replace("-nan", "nan"))


def test_arithmetic_that_is_just_defined(run):
    source = """
    __global__ void f(int* y, int n, float x) {
      y[0] = -2147483647 - 1 - n, y[1] = 1 << (31 - n), y[2] = -8 >> (31 - n), y[3] = (int)-x, y[4] = (unsigned)-0.9f;
      y[5] = (signed char)-128.9f;
      y[6] = __float2int_rn(2 * x) + __float2int_rz(-2 * x) + __float2int_rd(x * INFINITY * n);
      y[7] = y[0] / (n - 1);
    }"""
    y = np.zeros(8, np.int32)
    launch = run(source, 1, 1, y, 0, 2.0**31)
    least = -(1 << 31)
    assert y.tolist()[:7] == [least, least, -1, least, 0, -128, -1]
    assert "the least integer by -1" in only(launch, "division by zero").what


@pytest.mark.parametrize(
    ("threads", "value", "count"),
    [
        ("t < 8", "__shfl_down_sync(0xff, t, 4)", 0),  # the upper half is of no use
        ("t >= 24", "__shfl_up_sync(0xff000000, t, 4)", 0),
        ("t < 8", "__shfl_down_sync(0xff, t, 8)", 8),
        ("t < 20", "__shfl_down_sync(~0u, t, 16)", 12),  # lanes that have ended
        ("t < 20", "__shfl_xor_sync(~0u, t, 16)", 12),
        ("t < 16", "__shfl_sync(0xffff, t, 20)", 16),
        ("t < 16", "__shfl_sync(0xffff, t, 20, 8)", 0),
        ("t % 8 < 4", "__shfl_sync(0x0f0f0f0f, t, 21, 8)", 16),
    ],
)
def test_shuffles_from_lanes_that_give_nothing(run, threads, value, count):
    source = f"""
    __global__ void f(int* y) {{
      int t = threadIdx.x;
      if (!({threads})) return;
      y[t] = {value};
    }}"""
    launch = run(source, 1, 32, np.zeros(32, np.int32))
    if count == 0:
        assert launch.findings == []
    else:
        found = only(launch, "missed threads of a warp")
        assert (found.line, found.count) == (5, count) and "which does not take part in the shuffle" in found.what


@pytest.mark.parametrize("way", ["down", "up"])
def test_the_value_of_a_lane_that_is_gone_looks_wrong(run, way):
    """The last lanes of a sum by halves take such values too, and nobody looks at them: there is no finding."""
    source = f"""
    __global__ void f(float* y) {{
      int t = threadIdx.x;
      if (t >= 5 && t < 28) y[t] = __shfl_{way}_sync(~0u, 1.0f, 2) - 1.0f;
    }}"""
    y = np.zeros(32, np.float32)
    assert run(source, 1, 32, y).findings == []
    gone = [26, 27] if way == "down" else [5, 6]
    assert [t for t in range(32) if y[t]] == gone and (np.abs(y[gone]) > 1e30).all()


@pytest.mark.parametrize("width", [0, 3, 64, -8])
def test_a_shuffle_of_an_odd_width(run, width):
    source = "__global__ void f(int* y, int w) {\n  y[threadIdx.x] = __shfl_sync(~0u, 1, 0, w);\n}"
    found = only(run(source, 1, 32, np.zeros(32, np.int32), width), "shuffle width")
    assert found.line == 2 and f"with a width of {width}, which is not 1, 2, 4" in found.what


# --- flash attention of one head, right and as students get it wrong ---

FLASH = """
#define D 16
#define TILE 16
__global__ void flash(const float* q, const float* k, const float* v, float* o, int n) {
  __shared__ float ks[TILE][D], vs[TILE][D];
  int row = blockIdx.x * TILE + threadIdx.x;
  // EARLY
  float m = -INFINITY, l = 0, acc[D];
  for (int d = 0; d < D; ++d) acc[d] = 0;
  for (int t = 0; t < n; t += TILE) {
    for (int d = 0; d < D; ++d) {
      bool in = t + threadIdx.x < n;
      ks[threadIdx.x][d] = in ? k[(t + threadIdx.x) * D + d] : 0;
      vs[threadIdx.x][d] = in ? v[(t + threadIdx.x) * D + d] : 0;
    }
    __syncthreads();  // LOADED
    for (int j = 0; row < n && j < TILE && t + j < n; ++j) {
      float s = 0;
      for (int d = 0; d < D; ++d) s += q[row * D + d] * ks[j][d];
      float new_m = fmaxf(m, s * 0.25f), scale = __expf(m - new_m), p = __expf(s * 0.25f - new_m);
      l = l * scale + p;
      for (int d = 0; d < D; ++d) acc[d] = acc[d] * scale + p * vs[j][d];
      m = new_m;
    }
    __syncthreads();  // USED
  }
  if (row < n)
    for (int d = 0; d < D; ++d) o[row * D + d] = acc[d] / l;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("", "", []),
        ("__syncthreads();  // LOADED", "", ["race"]),
        ("__syncthreads();  // USED", "", ["race"]),
        ("// EARLY", "if (row >= n) return;", ["missed barrier", "uninitialised"]),
        ("if (row < n)\n", "if (row <= n)\n", ["out of bounds"]),
        ("bool in = t + threadIdx.x < n;", "bool in = t + threadIdx.x <= n;", ["out of bounds"]),
        ("o[row * D + d] = acc[d] / l", "acc[d] /= l", ["nothing written"]),
    ],
)
def test_flash_attention(run, numbers, old, new, kinds):
    n = 40
    q, k, v = numbers(3, n, 16)
    o = np.zeros((n, 16), np.float32)
    launch = run(FLASH.replace(old, new) if old else FLASH, 3, 16, q, k, v, o, n)
    assert sorted({finding.kind for finding in launch.findings}) == kinds
    if not kinds:
        assert launch.findings == []
        scores = np.exp(q @ k.T / 4)
        assert np.allclose(o, scores / scores.sum(1, keepdims=True) @ v, atol=1e-5)
        # K and V are read once by each of the three blocks of queries.
        assert launch.lines[13].global_loads.bytes == launch.lines[14].global_loads.bytes == 3 * n * 16 * 4


def test_a_mask_without_the_own_lane(run):
    source = "__global__ void f(float* y) { y[threadIdx.x] = __shfl_down_sync(0xffff, 1.0f, 1); }"
    found = only(run(source, 1, 32, np.zeros(32, np.float32)), "missed threads of a warp")
    assert "names lanes of its warp by the mask 0x0000ffff, which leaves out its own lane 16" in found.what
