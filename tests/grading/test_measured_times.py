"""Times that a test cell measures of student code: on the virtual clock, on a fake device, and processor time."""

import time

import pytest

import rooflab as rl
from rooflab.grading import measure
from rooflab.grading.measure.results import Timed


def scaled(x):
    return x * 2


def timings(n, repeat=3):
    x = rl.randn(n)
    first = rl.latency(scaled, x, warmup=2, repeat=repeat)
    second = rl.latency_one_time(rl.exp, x)
    return first.median_ms, float(second.samples_ms[0])


def test_a_virtual_clock_tells_what_was_timed():
    seen = measure.timed(timings, 50, watch=["scaled"])
    first, second = seen.calls
    assert (first.warmup, len(first.samples_ms), second.warmup, len(second.samples_ms)) == (2, 3, 0, 1)
    assert first.ran == (("scaled", (((50,), "float32", False),)),) and second.ran == ()
    assert (first.by_op, second.by_op) == ({"mul": 1}, {"exp": 1})
    assert first.moved_bytes == 400
    assert measure.is_median(seen.value[0], [first]) and not measure.is_median(seen.value[0], [second])
    assert measure.is_steady(seen.value[0], [first]) and not measure.is_steady(seen.value[0], [first], samples=4)
    assert not measure.is_steady(seen.value[1], [second], samples=1), "without a call to warm up"
    assert not measure.is_median(1, seen.calls) and not measure.is_median(seen.value[0] * 1000, seen.calls)


def test_a_timed_call_is_compared_with_what_was_counted():
    def both(x):
        rl.latency(scaled, x, warmup=1, repeat=3)
        rl.latency(lambda: rl.exp(scaled(x)), warmup=1, repeat=3)

    x = rl.randn(50)
    seen, once = measure.timed(both, x), measure.count(scaled, x)
    assert seen.calls_of(once) == [seen.calls[0]]
    assert seen.beside(once) == " (A timed call also ran exp: do not time that.)"
    assert not seen.calls_of(measure.count(scaled, rl.randn(51)))
    assert Timed(None, seen.calls[:1]).beside(once) == ""


def test_a_fake_device_gives_models_and_processes():
    ids = rl.zeros(2, 3, dtype="int64")

    def step(model, fresh, low):
        model(ids).sum().backward()
        for _ in range(2):
            own = fresh()
            with low:
                own(ids)
            own(ids)
        return type(low).__name__

    times = {"work_ms": 10.0, "slow_ms": [40.0], "low_factor": 0.5}
    seen = measure.faked(step, "<model>", "<fresh model>", low="<low precision>", device=times)
    kinds = [(entry.kind, entry.label, entry.work_ms) for entry in seen.log]
    fresh = [("process", "", 0.0), ("launch", "forward", 20.0), ("launch", "forward", 10.0)]
    assert kinds == [("launch", "forward", 40.0), ("launch", "backward", 20.0), *fresh, *fresh]
    assert seen.launches("backward") == [seen.log[1]] and seen.value == "LowPrecision"
    with pytest.raises(rl.OutOfMemoryError):
        measure.faked(lambda model: model(ids), "<model>", device={"out_of_memory": True})
    with pytest.raises(TypeError):
        measure.faked(step, device={"word_ms": 1.0})


def test_its_samples_are_new_each_time_and_the_machines_clock_comes_back():
    times = {measure.timed(timings, 5).value for _ in range(5)}
    assert len(times) == 5

    def calls_made():
        """How often a call is really made when five calls warm up and seven are measured."""
        made = []
        rl.latency(lambda: made.append(1), warmup=5, repeat=7, device="cpu")
        return len(made)

    assert measure.timed(calls_made).value == 1 and calls_made() == 12

    def fails():
        rl.latency(lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        measure.timed(fails)
    assert calls_made() == 12


def test_memory_beside_a_call_and_too_little_of_it(no_garbage):
    device = "cuda" if rl.cuda.is_available() else "cpu"

    def takes(n):
        held = rl.memory.allocated(device)
        try:
            return held, rl.ones(n, device=device).shape
        except rl.OutOfMemoryError:
            return held, None

    before = rl.memory.allocated(device)
    assert measure.timed(takes, 1000).value == (before, (1000,))
    assert measure.timed(takes, 1000, beside_bytes=2**20).value == (before + 2**20, (1000,))
    assert measure.timed(takes, 1000, spare_bytes=3000).value == (before, None)
    assert measure.timed(takes, 1000, spare_bytes=2**20).value == (before, (1000,))
    assert rl.memory.allocated(device) == before, "all is given back"
    assert rl.ones(10**6, device=device).shape == (10**6,), "the limit is gone"


def test_processor_time_is_that_of_the_call():
    def loop(seconds):
        start = time.process_time()
        while time.process_time() < start + seconds:
            pass
        time.sleep(0.1)
        return "done"

    spent = measure.cpu_seconds(loop, 0.05)
    assert spent.value == "done" and 0.05 <= spent.seconds < 0.1


def test_a_backward_pass_in_low_precision_is_noted():
    ids = rl.zeros(2, 3, dtype="int64")

    def step(model, low, whole):
        with low:
            loss = model(ids).sum()
            if whole:
                loss.backward()
        if not whole:
            loss.backward()

    for whole in (False, True):
        seen = measure.faked(step, "<model>", "<low precision>", whole, device={})
        assert seen.backwards_in_low_precision == whole


def test_an_event_of_the_fake_device_has_pytorchs_names_too():
    def timed():
        start, end = (rl.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        end.record()
        return start.elapsed_time(end)

    assert measure.faked(timed, device={}).value == 0
