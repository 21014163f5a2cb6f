"""A budget of time is kept: by calls that become slower, by evicting, and it is a number above nothing."""

import pytest

import rooflab as rl
from rooflab.benchmark import sampling


class SlowClock:
    """A clock that only calls move, by what they take."""

    def __init__(self):
        self.now = 0

    def perf_counter_ns(self):
        return self.now

    def sleep(self, seconds):
        self.now += int(seconds * 1e9)

    def call(self, seconds):
        return lambda: self.sleep(seconds)


@pytest.fixture
def clock(monkeypatch):
    clock = SlowClock()
    monkeypatch.setattr(sampling, "time", clock)
    monkeypatch.setattr(sampling, "overhead_ms", lambda device: 0.0)
    return clock


@pytest.mark.parametrize(
    ("seconds", "budget", "warmup", "repeat", "samples", "spent"),
    [
        (1.0, 20.0, 10, 100, 10, 20.0),  # ten unmeasured calls take half of it
        (1.0, 8.0, 10, 100, 4, 8.0),
        (1.0, 200.0, 10, 100, 100, 115.05),  # room for all, in six rounds with an unmeasured call and a pause each
        (1.0, 5.0, 0, 100, 4, 5.0),
        (1.0, 0.5, 10, 100, 1, 2.0),  # one at least, and one before it
        (1.0, 1e9, 10, 3, 3, 13.0),
        (1.0, 100.0, 10, 100, 85, 100.05),  # 5 unmeasured calls in the rounds
    ],
)
def test_a_time_budget_is_kept(clock, seconds, budget, warmup, repeat, samples, spent):
    found = rl.latency(clock.call(seconds), warmup=warmup, repeat=repeat, budget_s=budget)
    assert found.samples_ms.tolist() == [1e3 * seconds] * samples
    assert clock.now / 1e9 == pytest.approx(spent, abs=1e-9)


def test_calls_that_become_slower_end_the_rounds(clock):
    calls = []

    def slower():
        calls.append(None)
        clock.sleep(0.1 if len(calls) < 20 else 1.0)

    found = rl.latency(slower, budget_s=12)
    assert (found.rounds, len(found.samples_ms)) == (1, 17) and len(calls) == 27


def test_a_budget_counts_what_evicting_takes(clock, monkeypatch):
    monkeypatch.setattr(sampling, "evictor", lambda device: clock.call(9.0))
    found = rl.latency(clock.call(1.0), budget_s=100, warmup=2, l2="cold")
    assert found.samples_ms.tolist() == [1e3] * 8


@pytest.mark.parametrize("budget", [0, -1.0, float("nan")])
def test_a_budget_is_more_than_nothing(budget):
    with pytest.raises(ValueError, match=r"\[latency\] budget_s: expected more than 0 seconds"):
        rl.latency(abs, 1, budget_s=budget)


@pytest.mark.parametrize("budget", ["3", True, [1]])
def test_a_budget_is_a_number(budget):
    with pytest.raises(TypeError, match=r"\[latency\] budget_s: expected seconds, got"):
        rl.latency(abs, 1, budget_s=budget)
    with pytest.raises(TypeError, match="budget_s: slow has a parameter of that name too"):

        def slow(budget_s):
            pass

        rl.latency(slow, budget_s=1.0)
