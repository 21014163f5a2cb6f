"""What a profile tells of the host: ops, ranges, submissions and waits, whose time is whose, and who waited."""

import contextlib
import json
import threading
import time

import pytest

import rooflab as rl
from rooflab import _core
from rooflab.profiler.chrome_trace import trace_events
from rooflab.profiler.host import host_records
from rooflab.profiler.host_averages import HostAverages
from rooflab.profiler.records import KernelRecord, Step
from rooflab.profiler.waiting import waiting


def span(kind, name, start, duration, launch=0, device="", thread=0, step=0):
    """As the core gives them; microseconds here."""
    return {
        "kind": kind, "name": name, "range": "", "device": device, "thread": thread, "step": step,
        "start_ns": start * 1000, "duration_ns": duration * 1000, "launch": launch, "shapes": "", "stack": 0,
    }  # fmt: skip


def on_gpu(launch, start, duration):
    return {"device": "cuda:0", "id": launch, "start_ns": start * 1000, "duration_ns": duration * 1000}


def range_of(path, start, duration, thread=0, step=0):
    return {
        "path": path, "thread": thread, "step": step, "start_ns": start * 1000, "duration_ns": duration * 1000,
        "ended": "closed",
    }  # fmt: skip


@pytest.fixture
def gpu_records():
    """Two ops in a range, of which the first calls another one and launches two kernels; then a wait."""
    spans = [
        span("op", "outer", 10, 20),
        span("launch", "fill", 12, 2, launch=1, device="cuda:0"),
        span("op", "inner", 15, 10),
        span("launch", "launch", 18, 4, launch=2, device="cuda:0"),
        span("op", "inner", 40, 5),
        span("launch", "launch", 41, 3, launch=3, device="cuda:0"),
        span("wait", "synchronize", 50, 40),
    ]
    kernels = [on_gpu(1, 20, 3), on_gpu(2, 30, 30), on_gpu(3, 70, 10), on_gpu(0, 85, 5)]
    return host_records(spans, [range_of("a/step", 5, 42)], kernels, origin_ns=5000, frames=lambda number: ())


def by_place(records):
    return {(record.kind, record.name, record.start_us): record for record in records}


def test_time_is_divided_among_what_is_inside(gpu_records):
    found = by_place(gpu_records)
    times = {key: (one.duration_us, one.self_us) for key, one in found.items()}
    assert times == {
        ("range", "step", 0.0): (42.0, 17.0),
        ("op", "outer", 5.0): (20.0, 8.0),
        ("launch", "fill", 7.0): (2.0, 2.0),
        ("op", "inner", 10.0): (10.0, 6.0),
        ("launch", "launch", 13.0): (4.0, 4.0),
        ("op", "inner", 35.0): (5.0, 2.0),
        ("launch", "launch", 36.0): (3.0, 3.0),
        ("wait", "synchronize", 45.0): (40.0, 40.0),
    }
    assert sum(one.self_us for one in gpu_records) == 42 + 40
    around = [one.parent if one.parent is None else gpu_records[one.parent].name for one in gpu_records]
    assert around == [None, "step", "outer", "outer", "inner", "step", "inner", None]


def test_a_kernel_is_of_the_op_that_launched_it_and_of_all_around(gpu_records):
    found = by_place(gpu_records)
    assert (found["op", "outer", 5.0].device_us, found["op", "outer", 5.0].self_device_us) == (33.0, 3.0)
    assert (found["op", "inner", 10.0].device_us, found["op", "inner", 10.0].self_device_us) == (30.0, 30.0)
    assert (found["range", "step", 0.0].device_us, found["range", "step", 0.0].self_device_us) == (43.0, 0.0)
    assert found["wait", "synchronize", 45.0].device_us == 0
    assert [found[key].launches for key in (("op", "outer", 5.0), ("op", "inner", 35.0), ("range", "step", 0.0))] == [
        2, 1, 3,
    ]  # fmt: skip


def test_rows_have_pytorchs_orders(gpu_records):
    rows = HostAverages(gpu_records, whole_us=100.0)

    def names(sort_by):
        return [line.split()[0] for line in rows.table(sort_by=sort_by).splitlines()[2:]]

    assert names("cpu_time_total") == ["step", "synchronize", "outer", "inner", "launch", "fill"]
    assert names("self_cpu_time_total") == ["synchronize", "step", "outer", "inner", "launch", "fill"]
    assert names("cpu_time")[:3] == ["step", "synchronize", "outer"]
    assert names("cuda_time_total")[:3] == names("device_time_total")[:3] == ["step", "inner", "outer"]
    assert names("self_cuda_time_total")[:2] == names("self_device_time_total")[:2] == ["inner", "outer"]
    assert names("cuda_time")[:3] == names("device_time")[:3] == ["step", "outer", "inner"]
    assert names("launches")[0] == "step"
    inner = next(row for row in rows if row.name == "inner")
    assert (inner.calls, inner.cpu_us, inner.self_cpu_us, inner.device_us, inner.launches) == (2, 15.0, 8.0, 40.0, 2)
    head, _, first, *_ = rows.table(row_limit=1).splitlines()
    assert "self CUDA" in head and first.split()[:4] == ["step", "range", "17.0%", "17"]


def test_an_op_inside_itself_is_not_counted_twice():
    spans = [span("op", "sum", 0, 10), span("op", "sum", 2, 5)]
    (row,) = HostAverages(host_records(spans, [], [], 0, lambda number: ()), whole_us=10.0)
    assert (row.calls, row.cpu_us, row.self_cpu_us) == (2, 10.0, 10.0)


def test_threads_and_steps_do_not_contain_each_other():
    spans = [span("op", "a", 0, 10), span("op", "b", 2, 3, thread=1), span("op", "c", 4, 2, step=1)]
    assert [one.self_us for one in host_records(spans, [], [], 0, lambda number: ())] == [10.0, 3.0, 2.0]


def kernel(start, duration, device="cuda:0", step=0, stream=7, launch=0, thread=0):
    return KernelRecord(
        name="k", op="exp", kernel="v0", range="", category="elementwise", device=device, stream=stream, step=step,
        start_us=start, duration_us=duration, grid=(1, 1, 1), block=(32, 1, 1), shared_bytes=0, registers=8,
        cost=rl.Cost(), id=launch, thread=thread,
    )  # fmt: skip


def test_a_device_waits_while_no_kernel_runs():
    kernels = [kernel(10, 10), kernel(15, 10, stream=8), kernel(40, 20), kernel(110, 5, step=1)]
    (row,) = waiting(kernels, [Step(0, 0.0, 100.0), Step(1, 100.0, 20.0)], [])
    assert (row.device, row.total_us, row.busy_us, row.waited_us) == ("cuda:0", 120.0, 40.0, 80.0)
    assert row.waited_share == pytest.approx(2 / 3)
    assert row.gap_us == pytest.approx((0 + 15) / 2), "an overlap is no gap, and neither is the end of a step"
    assert row.is_host_bound and str(row).startswith("host-bound: cuda:0 waited 66.7% of the time, 7.5 µs")


def test_a_kernel_beside_a_longer_one_adds_nothing():
    kernels = [kernel(10, 60), kernel(20, 5, stream=8), kernel(40, 10, stream=8), kernel(90, 5)]
    (row,) = waiting(kernels, [Step(0, 0.0, 100.0)], [])
    assert (row.busy_us, row.gap_us) == (65.0, 0.0)


def test_whoever_waited_longer_is_not_the_one_that_binds():
    spans = [span("wait", "synchronize", 20, 75), span("op", "exp", 0, 5)]
    host = host_records(spans, [], [], 0, lambda number: ())
    (row,) = waiting([kernel(5, 90)], [Step(0, 0.0, 100.0)], host)
    assert (row.waited_us, row.host_waited_us, row.is_host_bound) == (10.0, 75.0, False)
    assert str(row) == (
        "device-bound: cuda:0 waited 10.0% of the time, 0 s from one kernel to the next (median); "
        "the host waited 75.0% for it"
    )
    (unknown,) = waiting([kernel(5, 90)], [Step(0, 0.0, 100.0)], None)
    assert unknown.is_host_bound is None and "was not recorded" in str(unknown)


def test_the_host_of_a_real_call():
    a = rl.ones(300, 300)
    with rl.profile() as prof, rl.range("block"):
        rl.gelu(a @ a)
        time.sleep(0.02)
    kinds = [(record.kind, record.name, record.range) for record in prof.host]
    assert kinds == [("range", "block", "block"), ("op", "matmul", "block"), ("op", "gelu", "block")]
    block, matmul, gelu = prof.host
    assert block.start_us <= matmul.start_us <= matmul.start_us + matmul.duration_us <= gelu.start_us
    for record, kernel in zip((matmul, gelu), prof.kernels, strict=True):
        assert record.start_us <= kernel.start_us
        assert kernel.start_us + kernel.duration_us <= record.start_us + record.duration_us + 1e-3
        assert record.self_us == record.duration_us and record.launches == 1 and record.device_us == 0
    assert block.self_us == pytest.approx(block.duration_us - matmul.duration_us - gelu.duration_us)
    assert block.self_us > 20_000
    table = prof.key_averages().table(sort_by="self_cpu_time_total")
    assert table.splitlines()[2].split()[:2] == ["block", "range"]
    assert "CUDA" not in table, "nothing ran there"
    share = float(table.splitlines()[-2].split(": ")[1].split("%")[0])
    assert share == pytest.approx(
        100 * (1 - (matmul.duration_us + gelu.duration_us) / prof.steps[0].duration_us), abs=0.1
    )
    assert prof.verdict.startswith("kernels on the CPU ran in ") and prof.verdict[1:] in table
    assert prof.waiting[0].is_host_bound is None


def test_backward_rules_are_inside_the_threads_time():
    x = rl.ones(50, 50, requires_grad=True)
    with rl.profile() as prof:
        rl.tanh(x @ x).sum().backward()
    ops = [record.name for record in prof.host if record.kind == "op"]
    assert ops[:3] == ["matmul", "tanh", "sum"] and ops.count("matmul") == 3
    steps = prof.steps[0]
    assert all(0 <= r.start_us <= r.start_us + r.duration_us <= steps.duration_us + 1e-3 for r in prof.host)


def test_what_waits_is_a_wait_and_no_op():
    """On a machine without a GPU a wait ends in an error; its time is there, and counts no op."""
    with rl.profile() as prof, rl.count() as counted, contextlib.suppress(rl.CudaError):
        rl.cuda.synchronize()
    assert [(record.kind, record.name) for record in prof.host if record.name == "synchronize"] == [
        ("wait", "synchronize")
    ]
    assert counted.ops == 0


def test_only_profiled_steps_have_a_host():
    x = rl.ones(10)
    with rl.profile(schedule=rl.profiler.schedule(wait=1, active=2)) as prof:
        for _ in range(4):
            rl.exp(x)
            prof.step()
    assert [(record.name, record.step) for record in prof.host] == [("exp", 1), ("exp", 2)]
    assert [row.calls for row in prof.key_averages().host] == [2]


def test_shapes_are_those_of_the_operands():
    a, b = rl.ones(2, 3), rl.ones(3, 4)
    with rl.profile(record_shapes=True) as prof:
        for _ in range(2):
            a @ b
        b @ rl.ones(4, 1)
        rl.exp(a) * 2
    shapes = [(r.name, r.input_shapes) for r in prof.host if r.name in ("matmul", "exp")]
    assert shapes == [
        *[("matmul", "[[2, 3], [3, 4]]")] * 2, ("matmul", "[[3, 4], [4, 1]]"), ("exp", "[[2, 3]]"),
    ]  # fmt: skip
    rows = [(r.input_shapes, r.calls) for r in prof.key_averages(group_by_input_shape=True).host if r.name == "matmul"]
    assert sorted(rows) == [("[[2, 3], [3, 4]]", 2), ("[[3, 4], [4, 1]]", 1)]
    assert "[[3, 4], [4, 1]]" in prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time")
    with rl.profile() as plain:
        a @ b
    assert [record.input_shapes for record in plain.host] == [""]


def test_a_model_has_no_host():
    with rl.profile() as prof:
        rl.exp(rl.empty(10, device=rl.meta("H200")))
    assert prof.host == [] and prof.waiting == [] and "model" in prof.verdict
    with pytest.raises(ValueError, match="are a model's"):
        prof.key_averages().table(sort_by="cpu_time_total")


@pytest.mark.parametrize(
    ("leave", "ended"),
    [("normally", "closed"), ("raise", "by an exception"), ("inner", "left open"), ("open", "left open")],
)
def test_a_range_says_how_it_ended(tmp_path, leave, ended):
    def work():
        if leave == "normally":
            with rl.range("name"):
                pass
        elif leave == "raise":
            with rl.range("name"):
                raise KeyError
        elif leave == "inner":
            with rl.range("around"):
                rl.range("name").__enter__()
                raise KeyError
        else:
            entered.append(rl.range("name"))
            entered[0].__enter__()
            raise KeyError

    entered = []
    prof = rl.profile()
    try:
        with prof:
            work()
    except KeyError:
        pass
    finally:
        for left in entered:
            left.__exit__(None, None, None)
    found = next(span for span in prof.ranges if span.path.endswith("name"))
    assert found.ended == ended
    prof.export_chrome_trace(tmp_path / "trace.json")
    names = [e["name"] for e in json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]]
    assert ("name" if ended == "closed" else f"name ({ended})") in names


def test_a_range_that_goes_on_is_open():
    with rl.range("before"), rl.profile() as prof:
        with rl.range("both"):
            prof.step()
        rl.ones(2)
    assert [(span.path, span.step, span.ended) for span in prof.ranges] == [
        ("before", 0, "open"), ("before/both", 0, "open"),
        ("before", 1, "open"), ("before/both", 1, "closed"),
    ]  # fmt: skip


def test_a_thread_is_one_track_and_a_launch_leads_to_its_kernel(gpu_records):
    kernels = [kernel(15, 3, launch=1), kernel(25, 30, launch=2), kernel(65, 10, launch=3), kernel(3, 1, "cpu")]
    events = trace_events(kernels, [], [Step(0, 0.0, 90.0)], gpu_records)
    on_host = [event for event in events if event["ph"] == "X" and event["pid"] == 0]
    assert {event["tid"] for event in on_host} == {0}
    assert [e["name"] for e in on_host] == [
        "step 0", "k", "outer", "fill", "inner", "launch", "inner", "launch", "synchronize",
    ]  # fmt: skip
    arrows = {(e["id"], e["ph"]): (e["pid"], e["ts"]) for e in events if e["ph"] in "sf"}
    assert arrows == {
        (1, "s"): (0, 7.0), (1, "f"): (1, 15.0), (2, "s"): (0, 13.0), (2, "f"): (1, 25.0), (3, "s"): (0, 36.0),
        (3, "f"): (1, 65.0),
    }  # fmt: skip


def test_a_thread_that_is_inside_an_op_at_the_end_is_left_out():
    """Its op ends after the profile, which must not wait for it or fail."""
    go, done = threading.Event(), threading.Event()

    class Slow(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            go.set()
            done.wait(5)
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            return dy

    other = threading.Thread(target=lambda: Slow.apply(rl.ones(3)))
    with rl.profile() as prof:
        other.start()
        go.wait(5)
    done.set()
    other.join()
    assert all(record.duration_us >= 0 for record in prof.host)
    assert _core.ProfilerSession().host() == []
