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
