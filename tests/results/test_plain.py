"""Results as plain values and back."""

import dataclasses
import json

import numpy as np
import pytest
from machine.made_up import ceilings

import rooflab as rl
from rooflab.machine import Ceilings, Measured
from rooflab.profiler import KernelRecord
from rooflab.profiler.records import Step
from rooflab.results import ResultMixin, Table
from rooflab.results.plain import plain, same, to_json


def test_numbers_that_json_does_not_have_are_words():
    values = [float("inf"), float("-inf"), float("nan"), 0.1]
    assert json.loads(to_json({"a": values})) == {"a": ["Infinity", "-Infinity", "NaN", 0.1]}
    with pytest.raises(ValueError, match="got inf"):  # read as a number, which no time is
        rl.Timing.from_json('{"samples_ms": ["Infinity", 1], "overhead_ms": 0.0, "device": "cpu"}')
    assert Step.from_json('{"number": 0, "start_us": 0, "duration_us": "Infinity"}').duration_us == np.inf
    step = Step.from_json('{"number": 0, "start_us": "-Infinity", "duration_us": "NaN"}')
    assert step.start_us == -np.inf and np.isnan(step.duration_us)


def test_every_value_becomes_a_plain_one():
    values = {1: np.float32(0.5), "b": {3}, "c": (None, True), "d": range(2, 4), "e": rl.float32, "f": np.arange(2)}
    assert plain(values) == {"1": 0.5, "b": [3], "c": [None, True], "d": [2, 4], "e": "float32", "f": [0, 1]}
    assert to_json(plain(values)) and type(plain(np.int64(3))) is int


def test_a_tuple_has_its_length():
    with rl.profile() as profile:
        rl.ones(3)
    values = profile.kernels[0].to_dict()
    with pytest.raises(ValueError, match=r"\[KernelRecord.grid\] expected 3 values, got 2"):
        KernelRecord.from_dict({**values, "grid": [1, 1]})
    with pytest.raises(ValueError, match=r"\[KernelRecord.cost\] there is no field 'bytes'|\[Cost\] there is no field"):
        KernelRecord.from_dict({**values, "cost": {"bytes": 3}})


@dataclasses.dataclass
class _One(ResultMixin):
    x: int = 1


@dataclasses.dataclass
class _Other(ResultMixin):
    x: int = 1


@pytest.mark.parametrize("missing", [np.float32("nan"), np.complex64(complex(1, float("nan")))], ids=str)
def test_arrays_with_the_same_gaps_are_the_same(missing):
    gaps = np.array([1, missing])
    assert same({"x": gaps}, {"x": gaps.copy()}) and not same(gaps, gaps[::-1].copy())


def test_results_of_two_classes_are_not_equal():
    assert (_One() == _Other()) is False and (_One() == _One()) is True and (_One() != _One(2)) is True


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, True), (1, 1.0), ([1], [1, 2]), ({"a": 1}, {"b": 1}), (np.ones(2), np.ones(3)), (np.ones(1), np.ones(1, int))],
)
def test_other_values_are_not_the_same(a, b):
    assert same(a, b) is False and same(b, a) is False and same(a, a) is True


@pytest.mark.parametrize(
    "one",
    [
        rl.roofline.Point("a", 2, 1, np.float32(0.5), np.int64(1)),
        rl.Timing([1, 2], 0, "cpu"),
        rl.Timing(np.array([1, 2], np.float32), np.float32(0.5), "cpu", np.int64(2)),
        rl.MemoryUse(np.int64(3), np.int32(1), 0),
        Measured(np.float64(2), 1, 3, "us", np.int64(3), "how"),
        Step(np.int64(1), 0, np.float32(0.1)),
        rl.cost.Work(np.int64(1)),
    ],
)
def test_what_is_read_is_equal_whatever_numbers_it_was_made_of(one):
    again = type(one).from_json(one.to_json())
    assert again == one and again.to_json() == one.to_json() and str(again) == str(one)
    assert all(type(value) in (int, float, str, np.ndarray, type(None)) for value in vars_of(one))


def vars_of(one):
    return [getattr(one, field.name) for field in dataclasses.fields(one)]


def timing(**changes):
    return {"samples_ms": [1.0, 2.0], "overhead_ms": 0.5, "device": "cpu", "rounds": 2} | changes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"samples_ms": []}, "samples_ms: expected one or more, finite and none below 0, got none"),
        ({"samples_ms": [1.0, -2.0]}, "samples_ms: expected one or more, finite and none below 0, got -2.0"),
        ({"samples_ms": [1.0, float("nan")]}, "samples_ms: expected one or more, finite and none below 0, got nan"),
        ({"overhead_ms": float("nan")}, "overhead_ms: expected a finite number of 0 or more, got nan"),
        ({"samples_ms": ["1"]}, r"samples_ms\] expected float, got str"),
        ({"overhead_ms": -1.0}, "overhead_ms: expected a finite number of 0 or more, got -1.0"),
        ({"rounds": 0}, "rounds: expected 1 to 2 samples, got 0"),
        ({"rounds": -3}, "rounds: expected 1 to 2 samples, got -3"),
        ({"rounds": 3}, "rounds: expected 1 to 2 samples, got 3"),
    ],
)
def test_a_timing_that_cannot_be_is_refused(changes, said):
    with pytest.raises(ValueError, match=rf"\[Timing[\].].*{said}"):
        rl.Timing.from_dict(timing(**changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"copy_bandwidth": {"median": -1.0, "p20": -1.0}}, r"\[Ceilings.copy_bandwidth\] median: expected a finite"),
        (
            {"read_bandwidth": {"median": "NaN"}},
            r"\[Ceilings.read_bandwidth\] median: expected a finite number above 0",
        ),
        ({"copy_bandwidth": {"p20": 5.0}}, r"\[Ceilings.copy_bandwidth\] expected p20 <= median <= p80, got 5.0, "),
        ({"copy_bandwidth": {"unit": "furlongs"}}, r"\[Ceilings.copy_bandwidth\] unit: expected one of TB/s, "),
        ({"copy_bandwidth": {"unit": "us"}}, r"\[Ceilings\] copy_bandwidth: expected a figure in TB/s, got one in us"),
        ({"launch_overhead": {"n": 0}}, r"\[Ceilings.launch_overhead\] n: expected a whole number of at least 1"),
        ({"peak": {}}, r"\[Ceilings\] peak: expected the peak of one dtype or more, got none"),
        ({"threads": -1}, r"\[Ceilings\] expected threads and seconds of 0 or more, got -1 and 7.5"),
    ],
)
def test_ceilings_that_cannot_be_are_refused(changes, said):
    values = ceilings().to_dict()
    for name, change in changes.items():
        values[name] = {**values[name], **change} if change and isinstance(change, dict) else change
    with pytest.raises(ValueError, match=said):
        Ceilings.from_dict(values)


def test_json_that_is_nested_too_deep_is_one_sentence():
    for kind in (rl.Timing, rl.roofline.Point, Table):
        with pytest.raises(ValueError, match="nested too deep"):
            kind.from_json("[" * 100_000)
