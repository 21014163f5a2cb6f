"""Profiles: which kernels, whose, in which step and range; schedules; the table, the counts and the trace."""

import gzip
import json
import math
import threading
import time

import pytest

import rooflab as rl
from rooflab.profiler import schedule
from rooflab.profiler.categories import CATEGORIES
from rooflab.profiler.chrome_trace import trace_events
from rooflab.profiler.records import KernelRecord, Range


def unfused_gelu(x):
    return 0.5 * x * (1 + rl.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def mlp(x, w):
    with rl.range("mlp"):
        with rl.range("gate_proj"):
            gate = rl.matmul(x, w)
        with rl.range("act_fn"):
            return rl.gelu(gate)


@pytest.fixture
def operands(device):
    x, w = rl.ones(64, 64, device=device), rl.ones(64, 64, device=device)
    mlp(x, w)
    return x, w


def test_kernels_come_in_order_with_op_range_and_cost(operands):
    with rl.profile() as prof, rl.count() as counted:
        mlp(*operands)
    assert [kernel.op for kernel in prof.kernels] == ["matmul", "gelu"]
    assert [kernel.range for kernel in prof.kernels] == ["mlp/gate_proj", "mlp/act_fn"]
    assert [kernel.category for kernel in prof.kernels] == ["gemm", "elementwise"]
    assert [kernel.step for kernel in prof.kernels] == [0, 0]
    assert sum(kernel.cost.macs for kernel in prof.kernels) == counted.macs == 64**3
    assert sum(kernel.cost.bytes for kernel in prof.kernels) == counted.bytes_read + counted.bytes_written
    first, second = prof.kernels
    assert first.kernel.startswith("matmul_") and first.id + 1 == second.id
    assert 0 <= first.start_us <= second.start_us
    assert all(kernel.duration_us > 0 for kernel in prof.kernels)
    assert prof.dropped == 0 and prof.reason
    assert prof.source in ("cupti", "cuda events", "cpu clock")


def test_unfused_gelu_is_eight_kernels_and_fused_one(operands):
    x, _ = operands
    unfused_gelu(x)
    with rl.profile() as unfused:
        unfused_gelu(x)
    with rl.profile() as fused:
        rl.gelu(x)
    assert unfused.count_kernels()["elementwise"] == unfused.count_kernels()["total"] == 8
    assert fused.count_kernels()["elementwise"] == fused.count_kernels()["total"] == 1


def test_only_active_steps_are_kept(operands):
    with rl.profile(schedule=schedule(wait=1, warmup=3, active=6)) as prof:
        for _ in range(12):
            mlp(*operands)
            prof.step()
        prof.step()
    assert [step.number for step in prof.steps] == [4, 5, 6, 7, 8, 9]
    assert prof.count_kernels() == dict.fromkeys(CATEGORIES, 0) | {"gemm": 1, "elementwise": 1, "total": 2}
    assert prof.count_kernels(per_step=False)["total"] == len(prof.kernels) == 12
    ends = {step.number: (step.start_us, step.start_us + step.duration_us) for step in prof.steps}
    slack = 0 if prof.source == "cpu clock" else 20  # a GPU's clock is mapped onto the host's
    for kernel in prof.kernels:
        begin, end = ends[kernel.step]
        assert begin - slack <= kernel.start_us <= kernel.start_us + kernel.duration_us <= end + slack
    assert {span.path for span in prof.ranges} == {"mlp", "mlp/gate_proj", "mlp/act_fn"}
    assert len(prof.ranges) == 18


def test_a_cycle_repeats():
    x = rl.ones(8)
    with rl.profile(schedule=schedule(wait=1, active=2, repeat=2)) as prof:
        for _ in range(9):
            rl.exp(x)
            prof.step()
    assert [step.number for step in prof.steps] == [1, 2, 4, 5]
    assert prof.count_kernels()["total"] == 1


def test_without_schedule_every_step_is_kept_and_an_empty_tail_is_none():
    x = rl.ones(8)
    with rl.profile() as prof:
        for _ in range(3):
            rl.exp(x)
            prof.step()
    assert [step.number for step in prof.steps] == [0, 1, 2]
    with rl.profile() as tail:
        rl.exp(x)
        tail.step()
        rl.exp(x)
    assert [step.number for step in tail.steps] == [0, 1]
    with rl.profile() as empty:
        pass
    assert empty.count_kernels()["total"] == 0 and len(empty.steps) == 1


def test_steps_that_differ_have_no_count_of_one_step():
    x = rl.ones(8)
    with rl.profile() as prof:
        rl.exp(x)
        prof.step()
        rl.exp(x)
        rl.exp(x)
    with pytest.raises(ValueError, match=r"steps differ \(step 0: 1, step 1: 2\)"):
        prof.count_kernels()
    assert prof.count_kernels(per_step=False)["total"] == 3


def test_a_block_without_active_step_warns():
    with (
        pytest.warns(RuntimeWarning, match="begins with step 4, the block had 2"),
        rl.profile(schedule(wait=3)) as prof,
    ):
        prof.step()
    assert prof.kernels == [] and prof.steps == []
    with pytest.raises(ValueError, match="no step was profiled"):
        prof.count_kernels()
    with pytest.raises(ValueError, match="step: expected one of"):
        prof.plot_timeline()
    assert "0 kernels in 0 steps" in str(prof.key_averages())


def test_ranges_open_at_the_start_of_a_step_belong_to_it():
    x = rl.ones(8)
    with rl.range("outer"), rl.profile() as prof:
        rl.exp(x)
        prof.step()
        with rl.range("inner"):
            rl.exp(x)
    assert [kernel.range for kernel in prof.kernels] == ["outer", "outer/inner"]
    assert [(span.path, span.step) for span in prof.ranges] == [("outer", 0), ("outer", 1), ("outer/inner", 1)]
    for span in prof.ranges:
        step = prof.steps[span.step]
        assert step.start_us <= span.start_us
        assert span.start_us + span.duration_us <= step.start_us + step.duration_us + 1e-6


def test_an_error_in_the_block_passes_and_leaves_nothing_behind():
    x = rl.ones(8)
    with pytest.raises(KeyError), rl.profile() as prof:
        rl.exp(x)
        raise KeyError("the block's own")
    assert prof.count_kernels()["total"] == 1
    rl.exp(x)
    assert len(prof.kernels) == 1
    with rl.profile() as again:
        rl.exp(x)
    assert len(again.kernels) == 1


def test_profiles_do_not_nest_and_run_once():
    with rl.profile() as outer:
        with pytest.raises(RuntimeError, match="profiles do not nest"), rl.profile():
            pass
        rl.exp(rl.ones(8))
        with pytest.raises(RuntimeError, match="once the with-block has ended"):
            _ = outer.kernels
    assert [kernel.op for kernel in outer.kernels][-1] == "exp"
    with pytest.raises(RuntimeError, match="runs once"), outer:
        pass
    with pytest.raises(RuntimeError, match="inside the with-block"):
        outer.step()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wait": -1}, "wait: expected a whole number of at least 0, got -1"),
        ({"active": 0}, "active: expected a whole number of at least 1, got 0"),
        ({"warmup": 1.5}, "warmup: expected a whole number of at least 0, got 1.5"),
        ({"repeat": True}, "repeat: expected a whole number of at least 0, got True"),
    ],
)
def test_a_wrong_schedule_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        schedule(**options)


def test_a_wrong_source_is_refused_and_leaves_nothing_behind():
    expected = 'source: expected auto, cupti, cuda events, cpu clock or model, got "gpu"'
    with pytest.raises(ValueError, match=expected), rl.profile(source="gpu"):
        pass
    if not rl.cuda.is_available():
        with pytest.raises(rl.CudaError), rl.profile(source="cupti"):
            pass
    with rl.profile(source="cpu clock") as prof:
        rl.exp(rl.ones(8))
    assert prof.source == "cpu clock" and prof.reason == "the caller asked for it"


def test_launches_of_other_threads_are_seen():
    x = rl.ones(8)
    with rl.profile() as prof:
        thread = threading.Thread(target=lambda: rl.exp(x))
        thread.start()
        thread.join()
    assert [kernel.op for kernel in prof.kernels] == ["exp"]


def test_durations_are_those_of_the_clock():
    x = rl.ones(2048, 512)
    rl.exp(x)
    begin = time.perf_counter()
    with rl.profile() as prof:
        rl.exp(x)
    outside_us = (time.perf_counter() - begin) * 1e6
    assert 0 < prof.kernels[0].duration_us <= prof.steps[0].duration_us < outside_us


def test_the_table_sorts_limits_and_refuses(operands):
    x, w = operands
    with rl.profile() as prof:
        for _ in range(2):
            mlp(x, w)
            rl.gelu(x)
            prof.step()
    averages = prof.key_averages()
    by_op = {row.op: row for row in averages}
    assert (by_op["gelu"].calls, by_op["gelu"].calls_per_step, by_op["matmul"].calls_per_step) == (4, 2, 1)
    assert math.isclose(sum(row.share for row in averages), 1)
    assert math.isclose(by_op["gelu"].mean_us * 4, by_op["gelu"].total_us)
    assert math.isclose(by_op["matmul"].flops_per_s, 2 * 2 * 64**3 / (by_op["matmul"].total_us * 1e-6))
    lines = averages.table(sort_by="count", row_limit=1).splitlines()
    assert lines[0].split()[:3] == ["kernel", "op", "category"]
    assert "gelu" in lines[2] and lines[3] == "... and 1 row more"
    assert "6 kernels in 2 steps" in lines[4] and prof.source in lines[4]
    assert averages.table(sort_by="op").splitlines()[2].split()[1] == "gelu"
    assert "..." in averages.table(max_name_width=8).splitlines()[2]
    with pytest.raises(ValueError, match="sort_by: expected one of duration, mean"):
        averages.table(sort_by="cuda_memory_usage")
    with pytest.raises(ValueError, match="row_limit"):
        averages.table(row_limit=-1)


def assert_nested(slices):
    """Slices of one track lie one in the other or one after the other, to the nanosecond."""
    for track in {(event["pid"], event["tid"]) for event in slices}:
        open_until = []
        for event in (event for event in slices if (event["pid"], event["tid"]) == track):
            start, end = round(1e3 * event["ts"]), round(1e3 * event["ts"]) + round(1e3 * event["dur"])
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1], "slices of one track overlap"
            open_until.append(end)


def test_the_trace_is_valid_and_nests(operands, tmp_path):
    with rl.profile() as prof:
        for _ in range(2):
            mlp(*operands)
            prof.step()
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    assert json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes())) == trace
    events = trace["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert {event["ph"] for event in events} <= {"X", "M", "s", "f"}
    assert min(event["ts"] for event in slices) == 0
    kernels = [event for event in slices if "op" in event.get("args", {})]
    assert [event["args"]["op"] for event in kernels] == ["matmul", "gelu"] * 2
    assert kernels[0]["args"]["flops"] == 2 * 64**3
    assert [event["args"]["range"] for event in kernels[:2]] == ["mlp/gate_proj", "mlp/act_fn"]
    assert trace["otherData"]["source"] == prof.source
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    tracks = {(event["pid"], event["tid"]) for event in slices}
    assert tracks <= named
    assert_nested(slices)
    host = [(e["cat"], e["name"]) for e in slices if (e["pid"], e["tid"]) == (0, 0) and e["cat"] in ("range", "op")]
    nested = [("range", "mlp"), ("range", "gate_proj"), ("op", "matmul"), ("range", "act_fn"), ("op", "gelu")]
    assert host == [("range", "step 0"), *nested, ("range", "step 1"), *nested]


def test_slices_of_a_model_do_not_overlap_by_their_rounding():
    with rl.profile() as prof:
        for i in range(60):
            for name in ("a", "b"):
                with rl.range(name), rl.range("inner"):
                    rl.empty(1000 + 7 * i, device="meta:H200") + 1
    assert_nested([event for event in trace_events(prof.kernels, prof.ranges, prof.steps) if event["ph"] == "X"])
    meet = [Range("a", 0, 0.1 + 0.2, 0.2005), Range("b", 0, 0.5005, 1.0)]  # the sum is above half a nanosecond
    assert_nested([event for event in trace_events([], meet, []) if event["ph"] == "X"])


def test_ranges_of_a_stream_end_where_the_next_one_begins():
    """The last kernel of a range may still run when the first of the next range begins (early launch)."""

    def kernel(path, start, duration):
        return KernelRecord(
            name="k", op="exp", kernel="v0", range=path, category="elementwise", device="cuda:0", stream=7, step=0,
            start_us=start, duration_us=duration, grid=(1, 1, 1), block=(32, 1, 1), shared_bytes=0, registers=8,
            cost=rl.Cost(), id=0,
        )  # fmt: skip

    events = trace_events([kernel("a/x", 0.0, 12.0), kernel("a/y", 10.0, 5.0), kernel("b", 14.0, 6.0)], [], [])
    ranges = {e["args"]["range"]: e for e in events if e["ph"] == "X" and e["cat"] == "range"}
    spans = {path: (event["ts"], event["ts"] + event["dur"]) for path, event in ranges.items()}
    assert spans == {"a": (0, 14), "a/x": (0, 10), "a/y": (10, 14), "b": (14, 20)}
    assert_nested(list(ranges.values()))


@pytest.mark.parametrize("source", ["cpu clock", "model"])
def test_each_thread_has_tracks_of_its_own(tmp_path, source):
    """Two threads open a range of one name and close it crosswise: here, there, here, there."""
    turns = [threading.Event() for _ in range(3)]
    device = rl.meta("H200") if source == "model" else "cpu"
    x = rl.ones(1000, device=device)

    def work():
        turns[0].wait()
        with rl.range("same"):
            rl.exp(x)
            turns[1].set()
            turns[2].wait()
            with rl.range("inner"):
                rl.exp(x)

    other = threading.Thread(target=work)
    with rl.profile(source=source) as prof:
        other.start()
        with rl.range("same"):
            rl.exp(x)
            turns[0].set()
            turns[1].wait()
        turns[2].set()
        other.join()
        with rl.range("after"):
            rl.exp(x)
    assert [(kernel.range, kernel.thread) for kernel in prof.kernels] == [
        *(("same", 0), ("same", 1), ("same/inner", 1), ("after", 0)),
    ]
    spans = [(span.path, span.thread, span.start_us, span.start_us + span.duration_us) for span in prof.ranges]
    assert [span[:2] for span in spans] == [("same", 0), ("same", 1), ("same/inner", 1), ("after", 0)]
    (_, _, here, here_ends), (_, _, there, there_ends), *_ = spans
    assert here < there < here_ends < there_ends, "each close ends the range of its own thread"

    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert_nested(slices)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in slices} == set(names), "each track has one name, and each name a track"
    shown = [(names[e["pid"], e["tid"]], e["name"]) for e in slices if e["pid"] == 0 and e["cat"] == "range"]
    assert sorted(shown) == sorted(
        [
            *(("thread 0", name) for name in ("step 0", "same", "after")),
            *(("thread 1", name) for name in ("same", "inner")),
        ]
    )
    ops = [names[e["pid"], e["tid"]] for e in slices if e["cat"] == "op"]
    assert ops == ([] if source == "model" else ["thread 0", "thread 1", "thread 1", "thread 0"])
    ran = [names[e["pid"], e["tid"]] for e in slices if "op" in e.get("args", {})]
    assert ran == (["stream 0"] * 4 if source == "model" else ["thread 0", *["thread 1"] * 2, "thread 0"])


def test_the_timeline_is_a_figure():
    x = rl.ones(8)
    with rl.profile() as prof:
        rl.exp(x)
        prof.step()
        rl.exp(x)
    assert prof.plot_timeline(rows="op").axes
    with pytest.raises(ValueError, match=r"expected one of \[0, 1\], got 7"):
        prof.plot_timeline(step=7)
