"""Learning rates by step: known answers, the floor, edges, and what is refused."""

import math
from itertools import pairwise

import pytest

from rooflab.optim import warmup_cosine, warmup_flat_linear

COSINE = {"high": 2.0, "low": 0.2, "warmup": 10, "end": 110}
FLAT = {"high": 3e-3, "low": 6e-5, "warmup": 50, "fall": 300, "end": 400}


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 0), (5, 1), (10, 2), (35, 1.7364), (60, 1.1), (110, 0.2), (111, 0.2), (9999, 0.2)]
)
def test_cosine(step, rate):
    assert warmup_cosine(step, **COSINE) == pytest.approx(rate, abs=1e-4)


@pytest.mark.parametrize(
    ("step", "share"), [(0, 0), (1, 0.02), (25, 0.5), (50, 1), (300, 1), (350, 0.51), (400, 0.02), (401, 0.02)]
)
def test_flat_and_linear(step, share):
    assert warmup_flat_linear(step, **FLAT) == pytest.approx(3e-3 * share, rel=1e-12)


@pytest.mark.parametrize(("schedule", "places"), [(warmup_cosine, COSINE), (warmup_flat_linear, FLAT)])
def test_it_rises_then_falls_without_jumps(schedule, places):
    rates = [schedule(step, **places) for step in range(places["end"] + 5)]
    top = places["warmup"]
    assert rates[: top + 1] == sorted(rates[: top + 1]) and max(rates) == rates[top] == places["high"]
    assert rates[top:] == sorted(rates[top:], reverse=True) and rates[-1] == places["low"]
    assert max(abs(a - b) for a, b in pairwise(rates)) <= places["high"] / min(top, 100) + 1e-12


def test_warm_up_and_fall_may_be_missing():
    assert warmup_cosine(0, high=1.0, low=0.0, warmup=0, end=10) == 1.0
    assert warmup_cosine(0, high=1.0, low=0.5, warmup=0, end=0) == 0.5
    assert warmup_flat_linear(5, high=1.0, low=0.5, warmup=0, fall=10, end=10) == 1.0
    assert warmup_flat_linear(10, high=1.0, low=0.5, warmup=0, fall=10, end=10) == 0.5


@pytest.mark.parametrize(("schedule", "places"), [(warmup_cosine, COSINE), (warmup_flat_linear, FLAT)])
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"low": 4.0}, "low, high: expected 0 <= low <= high"),
        ({"low": -0.1}, "low, high"),
        ({"high": math.inf}, "low, high"),
        ({"high": math.nan}, "low, high"),
        ({"high": 10**400}, "low, high"),
        ({"warmup": -1}, "expected 0 <= warmup <="),
        ({"end": 5}, "expected 0 <= warmup <= .*end"),
    ],
)
def test_what_is_refused(schedule, places, changed, says):
    with pytest.raises(ValueError, match=says):
        schedule(20, **places | changed)
    with pytest.raises(ValueError, match=rf"\[{schedule.__name__}\] step"):
        schedule(-1, **places)
    with pytest.raises(TypeError, match=rf"\[{schedule.__name__}\] expected numbers, got NoneType"):
        schedule(20, **places | {"high": None})
