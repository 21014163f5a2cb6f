"""What a profile's table, trace and units say, for made-up kernels whose sums are worked out by hand."""

import dataclasses
import time

import numpy as np
import pytest

import rooflab as rl
from rooflab import _core
from rooflab.profiler import session
from rooflab.profiler.averages import KernelAverages
from rooflab.profiler.chrome_trace import trace_events
from rooflab.profiler.records import KernelRecord, Range, Step


def kernel(name, start_us, duration_us, flops=0, read=0, op="matmul", step=0):
    cost = rl.Cost(macs=0, flops=flops, bytes_read=read, bytes_written=0)
    where = {"device": "cpu", "stream": 0, "range": "", "kernel": name, "category": "gemm", "id": 0}
    shape = {"grid": (0, 0, 0), "block": (0, 0, 0), "shared_bytes": 0, "registers": 0}
    return KernelRecord(
        name=name, op=op, step=step, start_us=start_us, duration_us=duration_us, cost=cost, **where, **shape
    )


@pytest.fixture
def averages():
    """Of two steps: "often" is short and runs most, "long" has the longest call, "most" takes the most time."""
    often = [kernel("often", 10.0 * i, 1.0, flops=4_000_000, step=i % 2) for i in range(6)]
    most = [kernel("most", 100.0 + 10 * i, 4.0, read=12_000, step=i) for i in range(2)]
    return KernelAverages([*often, kernel("long", 200.0, 7.5), *most], steps=2)


def test_rows_come_by_total_time(averages):
    assert [row.name for row in averages] == ["most", "long", "often"]
    assert [row.total_us for row in averages] == [8.0, 7.5, 6.0]
    assert [row.mean_us for row in averages] == [4.0, 7.5, 1.0]
    assert [row.calls_per_step for row in averages] == [1.0, 0.5, 3.0]
    assert [row.share for row in averages] == pytest.approx([8 / 21.5, 7.5 / 21.5, 6 / 21.5])
    assert averages[2].flops_per_s == pytest.approx(4e12) and averages[0].bytes_per_s == pytest.approx(3e9)


@pytest.mark.parametrize(
    ("sort_by", "names"),
    [
        ("duration", "most long often"),
        ("mean", "long most often"),
        ("count", "often most long"),
        ("flops", "often most long"),
        ("bytes", "most long often"),
        ("name", "long most often"),
    ],
)
def test_each_order_is_what_its_name_says(averages, sort_by, names):
    lines = averages.table(sort_by=sort_by).splitlines()[2:-1]
    assert [line.split()[0] for line in lines] == names.split()


def test_the_table_says_its_units(averages):
    head, _, first, *_, last = averages.table().splitlines()
    assert "total ms" in head and "mean us" in head
    assert first.split() == ["most", "matmul", "gemm", "2", "1", "0.008", "4.00", "37.2%", "-", "3", "GB/s"]
    assert last == "9 kernels in 2 steps, 21.5 µs of kernel time."
    assert averages.table(row_limit=1).splitlines()[-2] == "... and 2 rows more"


def test_each_device_has_rows_of_its_own():
    here = kernel("k", 0.0, 1.0)
    there = [dataclasses.replace(here, device="meta:H200", duration_us=time_us) for time_us in (3.0, 4.0)]
    rows = KernelAverages([here, *there], steps=1)
    assert [(row.device, row.calls, row.mean_us) for row in rows] == [("meta:H200", 2, 3.5), ("cpu", 1, 1.0)]
    head, _, first, *_ = rows.table().splitlines()
    assert head.split()[3] == "device" and first.split()[3] == "meta:H200" and "meta:H200" in rows.to_markdown()
    assert "device" not in KernelAverages(there, steps=1).table()


def test_a_time_that_is_known_is_no_zero():
    cells = KernelAverages([kernel("k", 0.0, 0.0012345)], steps=1).table().splitlines()[2].split()
    assert cells[5:7] == ["1.23e-06", "0.00123"]


def test_a_kernel_that_the_cpu_ran_for_a_gpu_has_its_time_and_no_rates():
    cost = rl.Cost(flops=4_000_000, bytes_read=12, bytes_written=0)
    with rl.profile() as prof, rl.count() as counted:
        _core.cuda.launch_on_cpu("k", lambda: time.sleep(0.01), [], cost)
        with pytest.raises(ZeroDivisionError):
            _core.cuda.launch_on_cpu("fails", lambda: 1 // 0, [], cost)
    (only,), (row,) = prof.kernels, prof.key_averages()
    assert only.is_interpreted and only.cost == cost and only.duration_us >= 10_000
    assert (row.flops_per_s, row.bytes_per_s) == (0, 0) and row.total_us == only.duration_us
    assert (counted.ops, counted.launches, counted.flops) == (1, 1, 4_000_000)
    assert "says nothing about a GPU" in prof.verdict and "says nothing about a GPU" in str(prof.key_averages())
    with rl.profile() as other:
        rl.exp(rl.ones(3))
    assert "about a GPU" not in other.verdict + str(other.key_averages())


def test_a_trace_is_in_microseconds():
    events = trace_events([kernel("k", 12.5, 3.25)], [Range("mlp/gate", 0, 10.0, 8.0)], [Step(0, 9.0, 20.0)])
    slices = {event["name"]: (event["ts"], event["dur"]) for event in events if event["ph"] == "X"}
    assert slices == {"k": (12.5, 3.25), "gate": (10.0, 8.0), "step 0": (9.0, 20.0)}


def test_nanoseconds_become_microseconds_from_the_origin():
    found = session._microseconds({"name": "k", "start_ns": 7_500, "duration_ns": 1_250}, origin_ns=5_000)
    assert found == {"name": "k", "start_us": 2.5, "duration_us": 1.25}


@pytest.mark.parametrize("sort_by", ["duration", "cpu_time_total"])
@pytest.mark.parametrize("wrong", ["a", True, 1.0])
def test_a_row_limit_is_a_whole_number(sort_by, wrong):
    with rl.profile() as prof:
        rl.ones(3)
    with pytest.raises(ValueError, match=rf"row_limit: expected a whole number of at least 0, got {wrong!r}"):
        prof.key_averages().table(sort_by=sort_by, row_limit=wrong)
    averages = prof.key_averages()
    assert averages.table(sort_by=sort_by, row_limit=np.int64(1)) == averages.table(sort_by=sort_by, row_limit=1)
    assert repr(prof).startswith("Profile(1 step, 1 kernel on cpu")
