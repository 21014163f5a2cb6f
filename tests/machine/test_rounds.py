"""Rounds on a clock that the tests set: which samples become a ceiling, and when a machine is called busy."""

import pytest

from rooflab.machine import rounds
from rooflab.machine.load import CpuTimes
from rooflab.machine.rounds import Probe, Probing, Round, settle

CPUS = 2


class Machine:
    """A machine whose speed and load over time are planted; a sample takes `seconds` of its own clock.

    `busy(now)` says how many CPUs other programs use, `slower(now)` by what factor everything is slowed then.
    """

    def __init__(self, busy=lambda now: 0.0, slower=lambda now: 1.0, seconds=0.2, stolen=0.0):
        self.now, self.others, self.busy, self.slower, self.seconds = 0.0, 0.0, busy, slower, seconds
        self.stolen, self.chosen, self.told = stolen, 0, []

    def clock(self):
        return self.now

    def read_load(self):
        return CpuTimes(self.now, self.others, self.stolen * self.now, 0.0, CPUS)

    def sample(self, value, unit="TB/s"):
        factor = self.slower(self.now)
        self.others += self.busy(self.now) * self.seconds
        self.now += self.seconds
        middle = value * factor if unit == "us" else value / factor
        return [middle * wiggle for wiggle in (0.99, 1.0, 1.01)]

    def choose(self):
        self.chosen += 1
        self.others += 2 * self.busy(self.now)
        self.now += 2.0
        return [
            Probe("bandwidth", "TB/s", "a copy", lambda: self.sample(0.02)),
            Probe("peak float32", "TFLOP/s", "a product", lambda: self.sample(0.1)),
            Probe("launch_overhead", "us", "calls", lambda: self.sample(0.5, "us")),
        ]

    def run(self, read_load=None):
        return rounds.run(self.choose, read_load or self.read_load, self.clock, self.told.append)


def check_ceilings(found: Probing):
    """Check for the planted ceilings, which are far from what any slowed round shows."""
    medians = {name: measured.median for name, measured in found.ceilings().items()}
    assert medians == pytest.approx({"bandwidth": 0.02, "peak float32": 0.1, "launch_overhead": 0.5}, rel=0.02)
    for measured in found.ceilings().values():
        assert measured.p20 <= measured.median <= measured.p80 and measured.n >= 6


def test_a_quiet_machine_takes_five_rounds():
    machine = Machine()
    found = machine.run()
    check_ceilings(found)
    assert len(found.rounds) == 5 and found.disturbance() == "" and machine.chosen == 1
    assert machine.told == ["choosing kernels", *(f"round {number}" for number in range(1, 6))]


def test_each_round_runs_every_probe_once():
    for one in Machine().run().rounds:
        assert [probe.name for probe in one.samples] == ["bandwidth", "peak float32", "launch_overhead"]


@pytest.mark.parametrize("begin, end", [(2.1, 3.3), (0.0, 4.0), (4.5, 5.0)])
def test_a_busy_spell_is_waited_out(begin, end):
    machine = Machine(busy=lambda now: 2.0 * (begin <= now < end), slower=lambda now: 1 + 99 * (begin <= now < end))
    found = machine.run()
    check_ceilings(found)
    assert found.disturbance() == ""


def test_kernels_are_chosen_again_when_the_choice_was_disturbed():
    machine = Machine(busy=lambda now: 1.0 * (now < 2))
    assert machine.run().disturbance() == "" and machine.chosen == 2


def test_a_choice_that_was_always_disturbed_is_not_trusted():
    machine = Machine(busy=lambda now: 1.0 * (now < 19))
    found = machine.run()
    assert machine.chosen == 10 and all(one.load.others == 0 for one in found.rounds)
    assert "other programs took 1.0 of its 2 CPUs" in found.disturbance()


@pytest.mark.parametrize("slower", [1.0, 200.0])
def test_a_busy_machine_is_called_busy_in_time(slower):
    machine = Machine(busy=lambda now: 1.9, slower=lambda now: slower)
    found = machine.run()
    assert found.disturbance() == (
        "The machine is busy: other programs took 1.9 of its 2 CPUs, so its ceilings may be far too low and are not "
        "kept."
    )
    assert 20 < machine.now < 23 and len(found.rounds) == 2


def test_a_machine_that_becomes_busy_is_called_busy():
    found = Machine(busy=lambda now: 1.0 * (now > 2.5)).run()
    assert "other programs took 1.0 of its 2 CPUs" in found.disturbance()


def test_time_that_the_host_takes_counts():
    assert "took 0.0 and its host 0.6 of its 2 CPUs" in Machine(stolen=0.6).run().disturbance()


def test_slow_rounds_still_number_two():
    found = Machine(seconds=10.0).run()
    assert len(found.rounds) == 2 and found.disturbance() == ""


# Where the system does not tell the load, only the rounds do.


def test_two_rounds_that_agree_are_a_ceiling_however_slow_the_others_were():
    """More rounds follow while the machine is not steady; the figures say how far rounds lie apart."""
    found = Machine(slower=lambda now: 1 + 9 * (now > 3.4)).run(read_load=lambda: None)
    check_ceilings(found)
    assert found.disturbance() == "" and not found.is_steady() and len(found.rounds) > 20
    assert max(measured.apart for measured in found.ceilings().values()) == pytest.approx(10, rel=0.03)


def test_a_machine_that_becomes_steady_takes_no_more_rounds_than_that_needs():
    found = Machine(slower=lambda now: 1.5 if 3.2 < now < 6 else 1.0).run(read_load=lambda: None)
    check_ceilings(found)
    assert found.disturbance() == "" and found.is_steady() and 8 <= len(found.rounds) < 14


def test_one_fast_round_among_slow_ones_tells_of_a_busy_machine():
    found = Machine(slower=lambda now: 1 + 9 * (now > 2.7)).run(read_load=lambda: None)
    assert "one round alone was 10.0x as fast in" in found.disturbance() and found.disturbance().count(".") == 2


def test_rounds_of_which_no_two_agree_tell_of_a_busy_machine():
    found = Machine(slower=lambda now: 1.3**now).run(read_load=lambda: None)
    assert "no two rounds agree" in found.disturbance()


# Which rounds count


def settled(medians, unit="TFLOP/s"):
    probe = Probe("peak", unit, "planted", list)
    return settle(probe, [Round({probe: [median] * 3}) for median in medians])


@pytest.mark.parametrize(
    "medians, expected",
    [
        ([100, 99, 101, 100, 98], 100),
        ([10, 100, 99, 12, 11], 99.5),  # neither the slowest, nor a mean, nor the median
        ([100, 100_000, 99, 101, 100], 100),  # an error of the clock does not repeat
        ([1, 100, 90, 80, 79], 79.5),
        ([50, 100], 75),  # none repeats
    ],
)
def test_the_best_that_repeats_is_the_ceiling(medians, expected):
    assert settled(medians)[0].median == pytest.approx(expected)


def test_the_least_microseconds_are_the_best():
    measured, alone = settled([5.0, 0.5, 0.51, 80.0, 0.5], "us")
    assert measured.median == pytest.approx(0.5) and measured.apart == pytest.approx(1.02) and alone == 1


def test_it_is_said_how_far_rounds_lie_apart_and_whether_one_was_alone():
    for medians, apart, alone in [
        ([100, 100, 99, 50, 20], 100 / 99, 1),
        ([100, 100, 50, 50, 20], 2, 1),
        ([1000, 100, 100, 100, 100], 1, 10),
        ([1000, 100, 99, 50, 50], 100 / 99, 10),
        ([100, 50], 2, float("inf")),
    ]:
        measured, found = settled(medians)
        assert measured.apart == pytest.approx(apart, abs=1e-3) and found == pytest.approx(alone)


def test_of_rivals_the_fastest_counts():
    slow, fast = (Probe("peak float32", "TFLOP/s", how, list) for how in ("v1", "v4"))
    overhead = [Probe("launch_overhead", "us", how, list) for how in ("long", "short")]
    samples = {slow: [0.01] * 3, fast: [0.4] * 3, overhead[0]: [2.0] * 3, overhead[1]: [0.5] * 3}
    found = Probing([slow, fast, *overhead], None, [Round(samples)] * 5)
    assert {name: one.how for name, one in found.ceilings().items()} == {
        "peak float32": "v4",
        "launch_overhead": "short",
    }
