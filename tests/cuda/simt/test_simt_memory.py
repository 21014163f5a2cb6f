"""Where arrays lie while a kernel runs, and what comes back of them."""

import threading

import numpy as np
import pytest

from rooflab.cuda.simt import memory, process

_SHIFTED = "__global__ void k(const float* x, float* y, float* z, int by) { z[0] = 1; y[by] = x[0]; }"


@pytest.mark.parametrize("by", [1024, 1500, 2047, -1, -600, -1024])
def test_an_index_as_far_out_of_bounds_as_its_array_is_long_hits_no_other_array(run, by):
    x, y, z = (np.ones(1024, np.float32) for _ in range(3))
    launch = run(_SHIFTED, 1, 1, x, y, z, by, mode="check")
    assert [finding.kind for finding in launch.findings] == ["out of bounds"]
    assert f"y[{by}], which has 1024 elements" in launch.findings[0].what
    assert y.sum() == z.sum() == 1024


def test_gaps_are_smaller_where_a_file_cannot_be_long(run, monkeypatch):
    x, y, z = (np.ones(1024, np.float32) for _ in range(3))
    monkeypatch.setattr(memory.resource, "getrlimit", lambda which: (20_000, 20_000))
    made = []
    request = process.Request
    monkeypatch.setattr(process, "Request", lambda *args: made.append(request(*args)) or made[-1])
    assert not run(_SHIFTED, 1, 1, x, y, z, 5).findings
    assert run(_SHIFTED, 1, 1, x, y, z, 1024).findings
    assert [each.arena_bytes <= 20_000 for each in made] == [True, True]


def test_more_memory_than_addresses_is_refused(build):
    large = np.lib.stride_tricks.as_strided(np.ones(2, np.float32), (2,), (1 << 34,))
    with pytest.raises(ValueError, match=r"\[k\] arrays of 16\.0 GiB, where a launch can have 16 GiB"):
        build("__global__ void k(const float* x) {}")(1, 1, large)


@pytest.mark.parametrize("is_interleaved", [True, False])
def test_launches_of_two_threads_keep_what_each_writes_to_one_array(build, monkeypatch, is_interleaved):
    kernel = build("__global__ void k(float* y, int first, int step) { y[first + step * threadIdx.x] += 1; }")
    whole = np.zeros(64, np.float32)
    views = (whole[::2], whole[1::2]) if is_interleaved else (whole, whole)
    first_ran, second_is_done = threading.Event(), threading.Event()
    run = process.run

    def slow_at_first(*args):
        report = run(*args)
        if not first_ran.is_set():
            first_ran.set()
            second_is_done.wait(0.3)  # in vain, as it waits for this launch
        return report

    monkeypatch.setattr(process, "run", slow_at_first)
    thread = threading.Thread(target=lambda: kernel(1, 32, views[0], 0, 2))
    thread.start()
    first_ran.wait()
    kernel(1, 32, views[1], 0 if is_interleaved else 1, 2)
    second_is_done.set()
    thread.join()
    assert whole.tolist() == [1] * 64


@pytest.mark.parametrize(("change", "verb"), [("c[1] = 2", "writes"), ("atomicAdd(c, 1)", "changes")])
def test_a_constant_variable_is_only_read(run, change, verb):
    source = f"__constant__ int c[2] = {{1, 2}};\n__global__ void k(int* y) {{ y[0] = c[0]; {change}; }}"
    (found,) = run(source, 1, 1, np.zeros(1, np.int32)).findings
    assert found.kind == "constant written"
    assert f"{verb} 4 bytes of a __constant__ variable" in found.what


def test_compare_and_swap_for_the_block_and_for_the_system(run):
    y = np.array([0, 7, 7], np.int32)
    launch = run("__global__ void k(int* y) { atomicCAS_block(y, 0, 4); y[1] = atomicCAS_system(y, 4, 5); }", 1, 1, y)
    assert (y.tolist(), launch.counts.global_atomics.requests) == ([5, 4, 7], 2)


def test_a_launch_that_takes_too_long_says_how_many_blocks_it_did(build, run):
    source = "__global__ void k(int* y, int last) { while (blockIdx.x == last) y[1] = 1; }"
    y = np.zeros(2, np.int32)
    (found,) = run(source, 9, 1, y, 5, mode="check", seconds=0.3).findings
    assert (
        "was not done after 0.3 s, when 5 of 9 blocks were: all may take longer, or a loop may have no end"
        in found.what
    )
    (found,) = run(source, 9, 1, y, 0, mode="check", seconds=0.3).findings
    assert "was not done after 0.3 s: a loop may have no end" in found.what
    build(source)(1, 1, y, 5, seconds=float("inf"))
