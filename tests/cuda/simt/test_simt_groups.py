"""Cooperative groups: any group as a parameter, groups of lanes, and the grid."""

import numpy as np

_HEAD = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
"""


def test_a_function_of_any_group(run):
    source = """
    __device__ int sum(cg::thread_group group, int* t, int value) {
      int rank = group.thread_rank();
      for (int i = group.size() / 2; i > 0; i /= 2) {
        t[rank] = value;
        group.sync();
        if (rank < i) value += t[rank + i];
        group.sync();
      }
      return value;
    }
    __global__ void f(int* y) {
      __shared__ int t[64];
      cg::thread_block block = cg::this_thread_block();
      int first = threadIdx.x / 16 * 16, of_block = sum(block, t, threadIdx.x);
      int of_tile = sum(cg::tiled_partition(block, 16), t + first, threadIdx.x);
      int of_lanes = sum(cg::tiled_partition<16>(block), t + first, 1);
      if (threadIdx.x == first) y[first / 16] = 1000000 * of_lanes + 10000 * (threadIdx.x ? 0 : of_block) + of_tile;
    }"""
    y = np.zeros(4, np.int32)
    assert run(_HEAD + source, 1, 64, y).findings == []
    sums = [sum(range(first, first + 16)) for first in (0, 16, 32, 48)]
    assert y.tolist() == [16_000_000 + 10_000 * (2016 if i == 0 else 0) + each for i, each in enumerate(sums)]


def test_active_lanes_add_once_for_all(run):
    source = """
    __global__ void f(int* counter, int* place) {
      if (threadIdx.x % 3 != 1) return;
      cg::coalesced_group active = cg::coalesced_threads();
      int first;
      if (active.thread_rank() == 0) first = atomicAdd(counter, active.size());
      place[threadIdx.x] = active.shfl(first, 0) + active.thread_rank();
    }"""
    counter, place = np.zeros(1, np.int32), np.full(64, -1, np.int32)
    launch = run(_HEAD + source, 1, 64, counter, place)
    assert launch.findings == [] and launch.counts.global_atomics.threads == 2
    assert counter[0] == 21 and place[1::3].tolist() == list(range(21))


def test_lanes_of_a_label(run):
    source = """
    __global__ void f(int* y) {
      int t = threadIdx.x, all;
      auto warp = cg::tiled_partition<32>(cg::this_thread_block());
      cg::coalesced_group third = cg::labeled_partition(warp, t % 3), low = cg::binary_partition(warp, t < 10);
      y[t] = 1000 * third.ballot(third.thread_rank() == 1) + cg::reduce(third, t, cg::plus<int>());
      y[32 + t] = 10000 * low.any(t == 10) + 100 * low.shfl(t, 2) + low.size();
      y[64 + t] = 100 * low.shfl_down(t, 1) + low.shfl_up(t, 3);
      y[96 + t] = third.match_any(t / 16);
      y[128 + t] = warp.match_all(7, all) == 0xffffffff && all && !warp.match_all(t, all) && !all;
      y[160 + t] = warp.match_any(t / 16);
    }"""
    y = np.zeros((6, 32), np.int32)
    assert run(_HEAD + source, 1, 32, y).findings == []
    lanes = range(32)
    assert y[0].tolist() == [2000 + sum(range(t % 3, 32, 3)) for t in lanes]
    assert y[1].tolist() == [210] * 10 + [11222] * 22
    down, up = (
        [min(t + 1, 9 if t < 10 else 31) for t in lanes],
        [t - 3 if t in {*range(3, 10), *range(13, 32)} else t for t in lanes],
    )
    assert y[2].tolist() == [100 * a + b for a, b in zip(down, up, strict=True)]
    assert y[3].tolist() == [
        sum(1 << i for i, o in enumerate(range(t % 3, 32, 3)) if o // 16 == t // 16) for t in lanes
    ]
    assert y[4].tolist() == [1] * 32
    assert y[5].view(np.uint32).tolist() == [0xFFFF] * 16 + [0xFFFF0000] * 16


def test_operations_on_bits(run):
    source = """
    __global__ void f(int* y) {
      auto tile = cg::tiled_partition<8>(cg::this_thread_block());
      int bit = 1 << threadIdx.x;
      y[0] = cg::reduce(tile, bit, cg::bit_or<int>());
      y[1] = cg::reduce(tile, ~bit, cg::bit_and<int>());
      y[2] = cg::reduce(tile, 3 * bit, cg::bit_xor<int>());
    }"""
    y = np.zeros(3, np.int32)
    run(_HEAD + source, 1, 8, y)
    assert y.tolist() == [255, ~255, 257]


def test_places_in_the_grid(run, refused):
    source = """
    __global__ void f(long long* y) {
      cg::grid_group grid = cg::this_grid();
      y[grid.thread_rank()] = 1000 * grid.size() + 100 * grid.num_blocks() + grid.block_rank() + grid.dim_blocks().y;
    }"""
    y = np.zeros(6 * 8, np.int64)
    assert run(_HEAD + source, (3, 2), (4, 2), y).findings == []
    assert y.tolist() == [48_600 + t // 8 + 2 for t in range(48)]
    log = refused(_HEAD + "__global__ void f() {\ncg::this_grid().sync(); }")
    assert log == "source(6): error: the sync of a grid is not supported: end the kernel, and launch a second one"
