"""Races that values do not show: beside atomic operations, among parts of a warp, and at barriers of two places."""

import numpy as np
import pytest


def kinds(launch):
    return {finding.kind for finding in launch.findings}


@pytest.mark.parametrize(
    "body",
    [
        "if (t == 0) s = 0; BARRIER atomicAdd(&s, 1); __syncthreads(); y[t] = s;",
        "if (t == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); BARRIER if (t == 63) y[0] = s;",
        "if (t == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); BARRIER if (t == 63) s = 3; y[t] = t;",
        "h[t] = 0; BARRIER atomicAdd(&h[t % 32], 1); __syncthreads(); y[t] = h[t];",
    ],
    ids=["counter", "reader", "writer", "histogram"],
)
def test_a_barrier_stands_between_atomic_operations_and_others(run, body):
    source = """__global__ void f(int* y) {
      __shared__ int s, h[64];
      int t = threadIdx.x;
      BODY
    }""".replace("BODY", body)
    for schedule in ("in order", "reversed", "seeded"):
        missing = run(source.replace("BARRIER", ""), 1, 64, np.zeros(64, np.int32), schedule=schedule)
        assert "race" in kinds(missing), schedule  # in some orders a read of what nobody has written too
        right = run(source.replace("BARRIER", "__syncthreads();"), 1, 64, np.zeros(64, np.int32), schedule=schedule)
        assert not kinds(right), schedule


@pytest.mark.parametrize(
    ("order", "other", "found"),
    [
        ("__syncwarp();", "31 - t", set()),
        ("__syncwarp(t < 16 ? 0xffff : 0xffff0000);", "31 - t", {"race"}),
        ("__syncwarp(t < 16 ? 0xffff : 0xffff0000);", "t ^ 15", set()),
        ("__syncwarp(1u << t);", "31 - t", {"race"}),
        ("cooperative_groups::tiled_partition<16>(block).sync();", "31 - t", {"race"}),
        ("cooperative_groups::tiled_partition<16>(block).sync();", "t ^ 8", set()),
        # Halves, then quarters of both halves: what lane 0 did comes before what lane 24 does, and not the other way.
        ("__syncwarp(t % 2 ? 0xaaaaaaaa : 0x55555555); __syncwarp(3u << t / 2 * 2);", "31 - t", set()),
    ],
)
def test_a_part_of_a_warp_is_ordered_by_itself(run, order, other, found):
    source = f"""
    #include <cooperative_groups.h>
    __global__ void f(int* y) {{
      __shared__ int s[32];
      auto block = cooperative_groups::this_thread_block();
      int t = threadIdx.x;
      s[t] = t;
      {order}
      y[t] = s[{other}];
    }}"""
    assert kinds(run(source, 1, 32, np.zeros(32, np.int32))) == found


@pytest.mark.parametrize(
    "body",
    [
        "if (t < 32) bar(); else bar();",
        "if (t & 1) __syncthreads(); else __syncthreads();",
    ],
)
def test_barriers_of_two_places_do_not_meet(run, body):
    source = f"""
    __device__ void bar() {{ __syncthreads(); }}
    __global__ void f(int* y) {{ int t = threadIdx.x; y[t] = t; {body} y[t] += 1; }}"""
    assert kinds(run(source, 1, 64, np.zeros(64, np.int32))) == {"missed barrier"}
    once = source.replace(body, "for (int i = 0; i < 3; ++i) bar();")
    assert not kinds(run(once, 1, 64, np.zeros(64, np.int32)))


# --- shared memory, where others have read since ---

READ_SINCE = """
__global__ void f(float* y, int n) {
  __shared__ float s[4];
  int t = threadIdx.x;
  if (t == 0) s[0] = 1;
  ORDER
  if (t < 2) y[t] = s[0];
  if (t < 32) for (int i = 0; i < n; ++i) y[200 + t] = i;
  if (t == 64) y[64] = s[0];
  if (t == 2) y[2] = s[0];
  READ
  if (t == 3) s[0] = 2;
}
"""


@pytest.mark.parametrize("trips", [1, 40_000])  # a warp pauses after 65,536 records
@pytest.mark.parametrize(
    ("order", "read", "threads", "others"),
    [
        ("__syncwarp();", "if (t == 0 || t == 2 || t == 3) __syncwarp(0xd);", 32, {1}),
        ("__syncwarp();", "if (t > 0 && t < 4) __syncwarp(0xe);", 32, {0}),
        ("__syncwarp();", "if (t < 4) __syncwarp(0xf);", 32, set()),
        ("__syncwarp();", "if (t == 1 || t == 3) __syncwarp(0xa); if (t == 0 || t == 3) __syncwarp(0x9);", 32, {2}),
        ("__syncwarp();", "if (t < 2) __syncwarp(3); if (t == 1 || t == 3) __syncwarp(0xa);", 32, {2}),
        ("__syncwarp();", "if (t < 3) __syncwarp(7); if (t == 1 || t == 3) __syncwarp(0xa);", 32, set()),
        ("__syncthreads();", "__syncwarp();", 96, {64}),
    ],
)
def test_a_visit_that_others_hide_is_in_a_race(run, order, read, threads, others, trips):
    source = READ_SINCE.replace("ORDER", order).replace("READ", read)
    found = run(source, 1, threads, np.zeros(256, np.float32), trips).findings
    named = [(f.thread[0], f.what.partition(" and thread ")[2].split()[0]) for f in found]
    assert {f.kind for f in found} == ({"race"} if others else set())
    assert {one if str(other) == "3" else int(other) for one, other in named} == others, named


# --- global memory ---

SCAN = """
__global__ void f(const float* x, float* y, int n) {
  int t = threadIdx.x;
  y[t] = x[t];
  __syncthreads();
  for (int d = 1; d < n; d *= 2) {
    float before = t >= d ? y[t - d] : 0.0f;
    __syncthreads();
    if (t >= d) y[t] += before;
    BARRIER
  }
}
"""


@pytest.mark.parametrize("schedule", ["in order", "reversed", "seeded"])
def test_a_barrier_that_is_missing_in_global_memory(run, schedule):
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    right = run(SCAN.replace("BARRIER", "__syncthreads();"), 1, 64, x, y, 64, schedule=schedule)
    assert right.findings == [] and y.tolist() == list(range(1, 65))
    wrong = run(SCAN.replace("BARRIER", ""), 1, 64, x, y, 64, schedule=schedule)
    assert kinds(wrong) == {"race"} and {f.line for f in wrong.findings} <= {7, 9}


# Each with the last line of the race; 0 where there is none.
GLOBAL = {
    "a counter": ("h[x[i]]++;", 4),
    "a counter of bytes": ("((char*)h)[i / 2]++;", 4),
    "bytes of its own": ("((char*)h)[i]++;", 0),
    "an atomic counter": ("atomicAdd(&h[x[i]], 1);", 0),
    "what another block wrote": ("h[b] = 1;\nif (b == 3) y[t] = h[0];", 5),
    "what another warp wrote": ("y[i] = t;\ny[i] += y[i ^ 32];", 5),
    "what another block reads": ("y[i] = h[1];\nif (b == 1) h[1] = 3;", 5),
    "what another thread of the warp wrote": ("y[i] = t;\ny[i] += y[i ^ 1];", 5),
    "what the warp wrote, in order": ("y[i] = t;\n__syncwarp();\nint v = y[i ^ 1];\n__syncwarp();\ny[i] += v;", 0),
    "what the block wrote, in order": (
        "y[i] = t;\n__syncthreads();\nint v = y[i ^ 33];\n__syncthreads();\ny[i] += v;",
        0,
    ),
    "zero, and then atomic operations": ("if (i == 0) h[0] = 0;\natomicAdd(&h[0], 1);", 5),
    "zeros of two lines": ("if (t == 0) h[b / 2] = 0;\nif (t == 33) h[b / 2] = 2;", 5),
    "the same of all": ("h[0] = 1;", 0),
    "a variable of the device": ("if (i == 0) total = 1;\ny[i] = total;", 5),
    "the last block's sum": (
        "h[b] = t;\n__threadfence();\n__shared__ bool last;\n__syncthreads();\n"
        "if (t == 0) last = atomicAdd(&h[9], 1) == 3;\n__syncthreads();\nif (last) y[t] = h[0] + h[1] + h[2] + h[3];",
        0,
    ),
    "a flag": (
        "volatile int* flag = &h[8];\nif (i == 0) { h[0] = 3; __threadfence(); *flag = 1; }\n"
        "if (b == 1) { while (!*flag); y[i] = h[0]; }",
        0,
    ),
    "a flag within a block": (
        "volatile int* flag = &h[b];\nif (t == 0) { y[i] = 3; __threadfence(); *flag = 1; }\n"
        "if (t > 31) { while (!*flag); y[i] = y[i - t]; }",
        0,
    ),
    "a lock": (
        "while (atomicCAS(&h[9], 0, 1));\nh[0] += 1;\n__threadfence();\natomicExch(&h[9], 0);",
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GLOBAL)
def test_races_in_global_memory(run, name):
    body, line = GLOBAL[name]
    source = f"""__device__ int total;
__global__ void f(const int* x, int* h, int* y) {{
int t = threadIdx.x, b = blockIdx.x, i = b * 64 + t;
{body}
}}"""
    x, h, y = np.zeros(256, np.int32), np.zeros(64, np.int32), np.zeros(256, np.int32)
    found = run(source, 4, 64, x, h, y).findings
    assert {f.kind for f in found} == ({"race"} if line else set()) and {f.line for f in found} - {4} <= {line}
    if name == "what another block wrote":
        assert "Thread 0 of block 3 and thread 63 of block 0 access h[0], one of them writing" in found[0].what
        assert "the other on line 4" in found[0].what
    if name == "a variable of the device":
        assert "access a __device__ variable" in found[0].what


_BY_SWAPS = """
__device__ double added(double* address, double value) {  // of the CUDA Programming Guide
  unsigned long long* bits = (unsigned long long*)address;
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
__device__ void raised(int* place, int value) {
  while (true) {
    int old = *place;
    if (old >= value || atomicCAS(place, old, value) == old) break;
  }
}
__global__ void k(double* sum, int* most, int* shared_most) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  added(sum, 1);
  raised(most, threadIdx.x);
  raised(&s, threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) shared_most[blockIdx.x] = s;
}
"""


@pytest.mark.parametrize(("grid", "block"), [(1, 2), (2, 1), (3, 64)])
def test_a_compare_and_swap_may_begin_with_a_load(run, grid, block):
    total, most, shared = np.zeros(1), np.zeros(1, np.int32), np.zeros(grid, np.int32)
    assert run(_BY_SWAPS, grid, block, total, most, shared).findings == []
    assert (total[0], most[0], shared.tolist()) == (grid * block, block - 1, [block - 1] * grid)


@pytest.mark.parametrize(
    "other",
    [
        "y[1] = y[0];",  # a load that nothing is compared with
        "y[0] = 5;",
        "int old = y[0]; y[0] = 0; atomicCAS(y, old, 1);",
    ],
)
def test_a_compare_and_swap_races_with_what_is_none(run, other):
    swap = "int old = y[0];\n atomicCAS(y, old, old + 1);"
    source = f"__global__ void k(int* y) {{ if (blockIdx.x == 0) {{ {swap} }} else {{\n {other} }} }}"
    assert {finding.kind for finding in run(source, 2, 1, np.zeros(2, np.int32)).findings} == {"race"}


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < 300; ++i) sum += x[i];",
        "if (((short*)y)[1] > 0x7000) return;",  # a part of what is swapped
    ],
    ids=["work between", "half a word"],
)
def test_what_may_stand_between_a_load_and_its_swap(run, body):
    swap = """while (true) {
      int seen = __float_as_int(old), was = atomicCAS((int*)y, seen, __float_as_int(old + sum));
      if (was == seen) break;
      old = __int_as_float(was);
    }"""
    source = f"__global__ void k(float* y, const float* x) {{ float old = y[0], sum = 1; {body} {swap} }}"
    assert run(source, 3, 2, np.zeros(1, np.float32), np.ones(300, np.float32)).findings == []


def test_a_load_that_begins_a_swap_elsewhere_is_in_a_race(run):
    source = """__global__ void k(int* y) {
      int t = threadIdx.x;
      if (blockIdx.x == 0) {
        int v = y[t];
        if (t == 0) atomicCAS(y, v, v + 1); else y[4 + t] = v;
      } else if (t > 0) {
        atomicAdd(y + t, 1);
      }
    }"""
    found = run(source, 2, 3, np.zeros(8, np.int32)).findings
    assert [(f.kind, f.line, f.count) for f in found] == [("race", 7, 2)]  # y[1] and y[2]


def test_a_race_of_one_statement_is_told_once(run):
    launch = run("__global__ void k(int* y) { y[0] += 1; }", 2, 1, np.zeros(1, np.int32))
    assert [finding.count for finding in launch.findings] == [2]  # of its load, and of its store
    assert launch.findings[0].what.endswith("the other on line 1 (2 times on this line).")


def test_a_race_is_told_before_what_it_reads_too_early(run):
    source = """__global__ void f(float* y) {
      __shared__ float s[64];
      s[threadIdx.x] = y[threadIdx.x];
      y[threadIdx.x] = s[63 - threadIdx.x];
    }"""
    kinds = [finding.kind for finding in run(source, 1, 64, np.zeros(64, np.float32)).findings]
    assert kinds == ["race", "race", "uninitialised"]
