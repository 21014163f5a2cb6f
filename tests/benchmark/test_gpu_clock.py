"""Work is timed in whichever stream it runs: on a GPU of which each time is known, and on a real one."""

import functools

import pytest

import rooflab as rl
from rooflab.benchmark import gpu_clock, sampling

ASK_MS = 0.003  # what it takes to wait for a GPU that has nothing to do


class FakeGpu:
    """Streams that work side by side. Events lie in stream 0; a wait for the GPU is one for all streams."""

    def __init__(self):
        self.now_ms, self.free_ms, self.waits, self.hiccups = 0.0, {}, 0, {}

    def launch(self, work_ms, stream=0, host_ms=0.01):
        self.free_ms[stream] = max(self.now_ms, self.free_ms.get(stream, 0.0)) + work_ms
        self.now_ms += host_ms

    def wait(self, index=0):
        self.waits += 1
        self.now_ms = max(self.now_ms, *self.free_ms.values(), 0.0) + ASK_MS + self.hiccups.get(self.waits, 0.0)

    def event(self, device=0):
        return FakeEvent(self)

    def perf_counter_ns(self):
        return round(self.now_ms * 1e6)

    def sleep(self, seconds):
        self.now_ms += seconds * 1e3


class FakeEvent:
    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        self.at_ms = max(self.gpu.now_ms, self.gpu.free_ms.get(0, 0.0))

    def synchronize(self):
        self.gpu.now_ms = max(self.gpu.now_ms, self.at_ms)

    def elapsed_ms(self, later):
        return later.at_ms - self.at_ms


@pytest.fixture
def gpu(monkeypatch):
    made = FakeGpu()
    monkeypatch.setattr(rl._core.cuda, "Event", made.event)
    monkeypatch.setattr(rl._core.cuda, "synchronize", made.wait)
    monkeypatch.setattr(rl._core.cuda, "device_count", lambda: 1)
    for module in (gpu_clock, sampling):
        monkeypatch.setattr(module, "time", made)
    for measured in (sampling.overhead_ms, sampling.overhead_by_host_ms):
        measured.cache_clear()
    yield made
    for measured in (sampling.overhead_ms, sampling.overhead_by_host_ms):
        measured.cache_clear()


def counted(call):
    """The call, and a list that grows at each one."""
    calls = []

    def count():
        calls.append(None)
        call()

    return count, calls


latency = functools.partial(rl.latency, device="cuda")


@pytest.mark.parametrize("work_ms", [0.002, 0.5, 21.0])
def test_work_on_the_current_stream_is_timed_by_events_and_called_as_often_as_asked(gpu, work_ms):
    call, calls = counted(lambda: gpu.launch(work_ms))
    found = latency(call)
    assert found.median_ms == pytest.approx(max(work_ms, 0.01)) and len(calls) == 110 and found.rounds == 6
    assert found.overhead_ms == 0


@pytest.mark.parametrize("warmup", [0, 1, 10])
@pytest.mark.parametrize("work_ms", [0.015, 0.5, 21.0])
def test_work_on_another_stream_is_timed(gpu, work_ms, warmup):
    """0.015 ms hide no more than 0.005 ms a call, because the host takes the rest to launch it."""
    found = latency(lambda: gpu.launch(work_ms, stream=1), warmup=warmup)
    assert found.median_ms == pytest.approx(work_ms + ASK_MS) and len(found.samples_ms) == 100
    assert found.overhead_ms == pytest.approx(ASK_MS)


def test_the_longer_of_two_streams_counts(gpu):
    def both(first_ms, second_ms):
        gpu.launch(first_ms)
        gpu.launch(second_ms, stream=1)

    assert latency(both, 5.0, 21.0).median_ms == pytest.approx(21.0 + ASK_MS + 0.01)
    call, calls = counted(lambda: both(21.0, 5.0))
    assert latency(call).median_ms == pytest.approx(21.0) and len(calls) == 110


def test_a_call_that_waits_for_its_stream_is_seen_by_events(gpu):
    def waits():
        gpu.launch(21.0, stream=1)
        gpu.wait()

    call, calls = counted(waits)
    assert latency(call).median_ms == pytest.approx(21.0 + ASK_MS) and len(calls) == 110


def test_work_that_was_queued_before_is_not_the_calls(gpu):
    gpu.launch(500.0, stream=1)
    call, calls = counted(lambda: gpu.launch(0.5))
    assert latency(call, warmup=0).median_ms == pytest.approx(0.5) and len(calls) == 100


def test_one_call_is_one_call(gpu):
    call, calls = counted(lambda: gpu.launch(21.0, stream=1))
    assert latency(call, warmup=0, repeat=1).median_ms == pytest.approx(21.0) and len(calls) == 1
    assert latency(lambda: gpu.launch(21.0), warmup=0, repeat=1).median_ms == pytest.approx(21.0)


def test_a_host_that_is_held_up_once_changes_nothing(gpu):
    """An operating system may stop a program for 30 ms at any point, also while it waits for the GPU."""
    for wait in range(1, 30):
        gpu.hiccups, gpu.waits = {wait: 30.0}, 0
        found = latency(lambda: gpu.launch(0.5))
        assert found.samples_ms.tolist() == pytest.approx([0.5] * 100), wait
        gpu.waits = 0
        assert latency(lambda: gpu.launch(0.5, stream=1)).median_ms == pytest.approx(0.5 + ASK_MS), wait


@pytest.mark.parametrize("warmup", [0, 10])
def test_caches_are_overwritten_before_the_clock_starts(gpu, monkeypatch, warmup):
    monkeypatch.setattr(sampling, "evictor", lambda device: lambda: gpu.launch(0.3))
    for work_ms in (0.1, 21.0):  # the first is done before the caches are overwritten
        found = latency(lambda: gpu.launch(work_ms, stream=1), l2="cold", warmup=warmup)  # noqa: B023
        assert found.median_ms == pytest.approx(work_ms + ASK_MS)
    assert latency(lambda: gpu.launch(0.5), l2="cold", warmup=warmup).median_ms == pytest.approx(0.5)


def test_a_budget_holds_for_other_streams(gpu):
    found = latency(lambda: gpu.launch(21.0, stream=1), budget_s=1.0)
    assert found.median_ms == pytest.approx(21.0 + ASK_MS) and gpu.now_ms < 1000 + 60  # with the pauses


@pytest.mark.gpu
def test_a_stream_of_rooflab_is_timed():
    a = rl.randn(4096, 4096, device="cuda")
    stream = rl.cuda.Stream()

    def aside():
        with stream:
            rl.matmul(a, a)

    there, here = rl.latency(aside, device="cuda"), rl.latency(rl.matmul, a, a)
    with stream:
        inside = rl.latency(rl.matmul, a, a)
    slack_ms = 0.05  # what it takes to submit, and to wait for the GPU
    assert 0.8 * here.p20_ms < there.p20_ms < 1.3 * here.p20_ms + slack_ms
    assert 0.8 * here.p20_ms < inside.p20_ms < 1.3 * here.p20_ms + slack_ms


@pytest.mark.gpu
@pytest.mark.peer
def test_a_stream_of_pytorch_is_timed():
    torch = pytest.importorskip("torch")
    a = torch.randn(8192, 8192, device="cuda")
    stream = torch.cuda.Stream()

    def aside():
        with torch.cuda.stream(stream):
            torch.matmul(a, a)

    there, here = rl.latency(aside, repeat=20), rl.latency(torch.matmul, a, a, repeat=20)
    with torch.cuda.stream(stream):
        inside = rl.latency(torch.matmul, a, a, repeat=20)
    slack_ms = 0.05
    assert 0.8 * here.p20_ms < there.p20_ms < 1.3 * here.p20_ms + slack_ms
    assert 0.8 * here.p20_ms < inside.p20_ms < 1.3 * here.p20_ms + slack_ms
