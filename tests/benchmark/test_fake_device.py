"""A device on a virtual clock: each time is known, and each clock of the program shows it."""

import copy
import copyreg
import datetime
import pickle
import subprocess
import sys
import threading
import time
import timeit
from datetime import datetime as imported_datetime
from time import perf_counter as imported_clock

import pytest

import rooflab as rl
from rooflab.benchmark.fake_device import FakeDevice
from rooflab.benchmark.fake_model import FakeModel
from rooflab.grading.measure.fake_run import LowPrecision, Machine

IDS = rl.zeros(2, 3, dtype="int64")


def kinds(device):
    return [entry.kind for entry in device.log]


def test_work_queues_up_and_the_host_goes_on():
    device = FakeDevice()
    for work_ms in (10.0, 30.0):
        device.launch(work_ms, host_ms=2.0, label="a")
    first, second = device.log
    assert (second.at_ms - first.at_ms, first.end_ms - first.at_ms) == (2.0, 10.0)
    assert second.end_ms - first.at_ms == 40.0 and (second.work_ms, second.label) == (30.0, "a")
    device.synchronize()
    assert device.log[-1].at_ms - first.at_ms == 4.0 and device.log[-1].end_ms == second.end_ms
    device.launch(1.0)
    assert device.log[-1].at_ms == second.end_ms, "the host waited"


def test_work_of_a_slow_host_begins_when_it_is_launched():
    device = FakeDevice()
    for _ in range(2):
        device.launch(1.0, host_ms=5.0)
    device.synchronize()
    first, second, wait = device.log
    assert second.end_ms - first.at_ms == 6.0 and wait.at_ms == wait.end_ms == first.at_ms + 10.0


@pytest.mark.parametrize(
    ("clock", "to_ms"),
    [
        (lambda: time.perf_counter(), 1e3),
        (lambda: time.perf_counter_ns(), 1e-6),
        (lambda: time.monotonic(), 1e3),
        (lambda: time.monotonic_ns(), 1e-6),
        (lambda: time.time(), 1e3),
        (lambda: time.time_ns(), 1e-6),
        (lambda: timeit.default_timer(), 1e3),
        (lambda: imported_clock(), 1e3),
    ],
    ids=["perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "timeit", "by name"],
)
@pytest.mark.parametrize(
    "wait", [lambda: rl.synchronize(), lambda: rl.synchronize("cuda"), lambda: rl.cuda.synchronize(0)]
)
def test_every_clock_obeys_it(clock, to_ms, wait):
    device = FakeDevice()

    def measure():
        start = clock()
        device.launch(76.0, host_ms=2.0)
        wait()
        return (clock() - start) * to_ms

    with device.clocks(globals()):
        assert measure() == pytest.approx(76.0, abs=1e-3)
    assert kinds(device) == ["clock", "launch", "synchronize", "clock"]
    assert imported_clock is time.perf_counter and abs(time.time() - time.time_ns() * 1e-9) < 60


@pytest.mark.parametrize(
    "clock",
    [
        lambda: datetime.datetime.now(),
        lambda: datetime.datetime.now(datetime.UTC),
        lambda: datetime.datetime.today(),
        lambda: datetime.datetime.utcnow(),
        lambda: imported_datetime.now(),
    ],
    ids=["now", "now there", "today", "utcnow", "by name"],
)
def test_the_clock_of_dates_obeys_it(clock):
    device = FakeDevice()
    with device.clocks(globals()):
        start = clock()
        device.launch(76.0, host_ms=2.0)
        rl.synchronize()
        taken = clock() - start
        assert isinstance(start, datetime.datetime)
    assert 1e3 * taken.total_seconds() == pytest.approx(76.0, abs=2e-3), "it shows whole microseconds"
    assert imported_datetime is datetime.datetime and type(datetime.datetime.now()) is datetime.datetime


def test_timeit_obeys_it():
    device, before = FakeDevice(), timeit.timeit.__defaults__

    def step():
        device.launch(76.0, host_ms=2.0)
        rl.synchronize()

    with device.clocks():
        taken = [timeit.timeit(step, number=2), timeit.Timer(step).timeit(2), *timeit.repeat(step, number=2, repeat=1)]
    assert taken == pytest.approx([0.152] * 3, abs=1e-5)
    assert timeit.timeit.__defaults__ is before and timeit.timeit(number=1) < 60


def test_dates_of_before_go_on_as_dates():
    real, then = datetime.datetime, datetime.datetime(2026, 1, 31, 12, fold=1, tzinfo=datetime.UTC)
    with FakeDevice().clocks():
        assert datetime.datetime is not real and repr(datetime.datetime) == repr(real) == "<class 'datetime.datetime'>"
        now = datetime.datetime.now(datetime.UTC)
        assert isinstance(then, datetime.datetime) and issubclass(real, datetime.datetime) and type(now) is real
        assert not isinstance(then.date(), datetime.datetime) and not issubclass(datetime.date, datetime.datetime)
        assert isinstance(now - then, datetime.timedelta) and repr(now).startswith("datetime.datetime(")
        assert datetime.datetime(2026, 1, 31) + datetime.timedelta(1) == datetime.datetime.fromisoformat("2026-02-01")
        mine = type("Mine", (datetime.datetime,), {})
        assert type(mine.now()) is mine and not isinstance(then, mine) and not issubclass(real, mine)
        saved = [pickle.dumps(then, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
        assert all(pickle.loads(one) == copy.deepcopy(then) == then for one in saved)
    assert all(type(pickle.loads(one)) is real and pickle.loads(one).fold for one in saved)
    assert real not in copyreg.dispatch_table


def test_the_machines_clocks_come_back_after_an_error_too():
    before = time.perf_counter, time.sleep, timeit.default_timer, rl.synchronize, rl.cuda.Event, imported_clock
    with pytest.raises(ZeroDivisionError), FakeDevice().clocks(globals()):
        assert time.perf_counter is not before[0] and imported_clock is time.perf_counter
        _ = 1 / 0
    assert before == (
        time.perf_counter, time.sleep, timeit.default_timer, rl.synchronize, rl.cuda.Event, imported_clock
    )  # fmt: skip


def test_events_stand_in_the_queue():
    device = FakeDevice()
    with device.clocks():
        device.launch(50.0, host_ms=1.0)
        start, end = rl.cuda.Event(), rl.cuda.Event()
        start.record()
        device.launch(7.0, host_ms=1.0)
        end.record()
        assert start.elapsed_ms(end) == 7.0, "work that was queued before is not in it"
        assert device.read_ms() > device.log[0].at_ms + 57, "it waits for the later one"
        with pytest.raises(RuntimeError, match="that were recorded"):
            start.elapsed_ms(rl.cuda.Event())


def test_latency_measures_the_work():
    device = FakeDevice()
    run = device.work(5.0, host_ms=1.0, slow_ms=[500.0, 50.0])
    with device.clocks():
        timing = rl.latency(run, warmup=1, repeat=3)
    assert timing.samples_ms.tolist() == [50.0, 5.0, 5.0]
    assert len([entry for entry in device.log if entry.kind == "launch"]) == 4


def test_ranges_are_noted_and_opened():
    device = FakeDevice()
    with device.clocks(), rl.count() as counted:
        with rl.range("step"):
            device.launch(3.0, host_ms=1.0)
            rl.ones(4)
        rl.synchronize()
    assert kinds(device) == ["open", "launch", "close", "synchronize"]
    assert device.log[2].at_ms < device.log[1].end_ms and device.log[2].label == "step"
    assert list(counted.by_range) == ["step"]


def test_sleep_and_a_loop_that_waits_end():
    device = FakeDevice()
    with device.clocks():
        start = time.perf_counter()
        time.sleep(100.0)
        slept = time.perf_counter() - start
        while time.perf_counter() < start + 100.001:
            pass
    assert slept == pytest.approx(100.0, abs=1e-6)


def test_jitter_is_seeded():
    def times(seed):
        device = FakeDevice(jitter=0.01, seed=seed)
        for _ in range(50):
            device.launch(100.0)
        return [entry.work_ms for entry in device.log]

    assert times(1) == times(1) != times(2)
    assert 95 < min(times(1)) < 100 < max(times(1)) < 105


def model_on(machine, vocab_size=8):
    number = machine.answer("add")
    return FakeModel(lambda: machine.answer("forward", number), lambda one: machine.answer("backward", one), vocab_size)


def test_a_model_launches_its_passes():
    machine = Machine({"work_ms": 10.0, "backward_ms": 25.0, "host_ms": 1.0, "slow_ms": [70.0]})
    model = model_on(machine, vocab_size=5)
    logits = model(IDS)
    assert tuple(logits.shape) == (2, 3, 5)
    logits.mean().backward()
    with rl.no_grad():
        model(IDS)
    passes = [(one.label, one.work_ms) for one in machine.device.log]
    assert passes == [("forward", 70.0), ("backward", 25.0), ("forward", 10.0)]
    assert machine.device.log[1].at_ms - machine.device.log[0].at_ms == 1.0, "what the host takes"
    assert model.weight.grad.tolist() == pytest.approx([0.2] * 5)
    with pytest.raises(ValueError, match=r"expected \(B, L\)"):
        model(rl.zeros(3, dtype="int64"))


def test_a_model_tells_where_gradients_are_kept():
    told = []
    model = FakeModel(lambda: 0, lambda number: told.append("backward"), kept=lambda: told.append("kept"))
    for clear in (lambda: None, model.zero_grad, lambda: model.zero_grad(set_to_none=False), lambda: None):
        model(IDS).mean().backward()
        clear()
    assert told == ["backward", "kept", "backward", "backward", "backward"]


def test_a_device_gives_a_model():
    device = FakeDevice()
    model = device.model(10.0, 25.0, host_ms=1.0, slow_ms=[70.0])
    for _ in range(2):
        model(IDS).sum().backward()
    passes = [(one.label, one.work_ms) for one in device.log]
    assert passes == [("forward", 70.0), ("backward", 25.0), ("forward", 10.0), ("backward", 25.0)]
    assert [one.at_ms - device.log[0].at_ms for one in device.log] == [0.0, 1.0, 2.0, 3.0]


def test_a_model_in_low_precision_and_one_without_memory():
    machine = Machine({"work_ms": 10.0, "low_factor": 0.5})
    model, low = model_on(machine), LowPrecision(machine.answer)
    for _ in range(2):
        with low:
            logits = model(IDS)
        logits.sum().backward()
    assert not any(one.kind == "low backward" for one in machine.device.log)
    model(IDS)
    assert [one.work_ms for one in machine.device.log] == [5.0, 10.0, 5.0, 10.0, 10.0]
    full = Machine({"out_of_memory": True})
    with pytest.raises(rl.OutOfMemoryError):
        model_on(full)(IDS)
    assert full.device.log == []
    with pytest.raises(RuntimeError, match="the fake device has failed"):
        model_on(Machine({"fails": True}))(IDS)


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (("log",), "expected one of"),
        (("launch", 1.0), "expected one of"),
        (("sleep", 1), "expected one of"),
        (("sleep", -1.0), "non-negative"),
        (("sleep", float("inf")), "non-negative"),
        (("read_ms", 1.0), "expected one of"),
        (("note", "open"), "expected one of"),
        (("note", "launch", "run"), "kind: expected one of"),
        (("run", 0), "out of range"),
        (("backward", 0), "out of range"),
    ],
)
def test_a_program_can_ask_for_nothing_else(question, error):
    machine = Machine({})
    with pytest.raises((ValueError, IndexError), match=error):
        machine.answer(*question)
    assert machine.device.log == []


def test_a_log_has_an_end(monkeypatch):
    monkeypatch.setattr("rooflab.benchmark.fake_device._MAX_ENTRIES", 3)
    device = FakeDevice()
    with device.clocks(), pytest.raises(RuntimeError, match="more than 3 entries"):
        while True:
            time.perf_counter()
    assert len(device.log) == 3


def test_other_threads_keep_their_clocks():
    """Jupyter's kernel has threads that sleep. On this device's clock they would only move it forward."""
    device, seen = FakeDevice(), []

    def sleeps():
        before = time.monotonic()
        time.sleep(0.01)
        seen.append(time.monotonic() - before)

    with device.clocks():
        before = time.monotonic()
        thread = threading.Thread(target=sleeps)
        thread.start()
        thread.join()
        assert time.monotonic() - before < 0.001
    assert seen[0] >= 0.01 and [one.kind for one in device.log] == ["clock", "clock"]


KEPT = """
import copy, functools, pickle, threading, time
import rooflab as rl
from rooflab.benchmark import fake_clocks
from rooflab.benchmark.fake_device import FakeDevice

real = time.perf_counter
fake_clocks.install()

class Timer:
    start, rest = time.perf_counter, time.sleep
    now = staticmethod(time.perf_counter)
    wait, open = staticmethod(rl.synchronize), rl.range
    def __init__(self, clock=time.monotonic):
        self.clock = clock

def closed(clock):
    return lambda: clock()

timer, named = Timer(), {"s": time.time}
clocks = [timer.now, timer.clock, named["s"], functools.partial(time.perf_counter), closed(time.perf_counter)]
clocks += [functools.partial(time.clock_gettime, time.CLOCK_MONOTONIC), timer.start]
processor = functools.partial(time.clock_gettime, time.CLOCK_PROCESS_CPUTIME_ID)
device = FakeDevice()
for clock in clocks:
    before = clock()
    timer.wait()
    assert device.log == [] and 0 <= clock() - before < 60, "outside it is the machine's"
    with device.clocks(), timer.open("step"):
        start, busy = clock(), processor()
        device.launch(76e3, host_ms=2.0)
        timer.wait()
        taken = clock() - start
        other = []
        thread = threading.Thread(target=lambda: other.append(clock()))
        thread.start()
        thread.join()
    assert 76 <= taken < 76.001 and processor() - busy < 60
    assert [one.kind for one in device.log] == ["open", "clock", "launch", "synchronize", "clock", "close"]
    assert abs(other[0] - before) < 60, "another thread keeps the machine's"
    device.log.clear()

clock = time.perf_counter
assert clock is not real and (clock.__name__, clock.__module__, clock.__doc__) == ("perf_counter", "time", real.__doc__)
assert repr(clock) == repr(real)
timer.rest(0)
with device.clocks():
    timer.rest(100.0)
    for one in (clock, time.sleep, time.clock_gettime, rl.synchronize):
        assert pickle.loads(pickle.dumps(one)) is copy.deepcopy(one) is one
"""


def test_a_clock_that_a_program_keeps_anywhere_follows_once_it_is_installed(tmp_path):
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_range_that_is_made_inside_is_noted_wherever_its_class_is_kept():
    kept, device = rl.range, FakeDevice()
    outside, ended = rl.range("outside"), []

    def elsewhere():
        with kept("other"):
            pass
        ended.append(True)

    with device.clocks(), kept("a"), outside:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert [(one.kind, one.label) for one in device.log] == [("open", "a"), ("close", "a")] and ended
    with kept("after"):
        assert len(device.log) == 2


def test_a_clock_of_processor_time_stays_real():
    device = FakeDevice()
    with device.clocks():
        assert time.clock_gettime(time.CLOCK_REALTIME) == pytest.approx(4.096, abs=1e-3)
        assert time.clock_gettime_ns(time.CLOCK_MONOTONIC) == pytest.approx(4.096e9, rel=1e-3)
        before = len(device.log)
        assert time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID) > 0 < time.process_time()
    assert before == len(device.log) == 2
