"""Results as plain values and back."""

import dataclasses
import json

import numpy as np
import pytest

import rooflab as rl
from rooflab.profiler import KernelRecord
from rooflab.results import ResultMixin
from rooflab.results.plain import plain, same, to_json


def test_numbers_that_json_does_not_have_are_words():
    values = [float("inf"), float("-inf"), float("nan"), 0.1]
    assert json.loads(to_json({"a": values})) == {"a": ["Infinity", "-Infinity", "NaN", 0.1]}
    read = rl.Timing.from_json('{"samples_ms": ["-Infinity", "NaN", 1], "overhead_ms": "Infinity", "device": "cpu"}')
    assert read.samples_ms[0] == -np.inf and np.isnan(read.samples_ms[1]) and read.overhead_ms == np.inf


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


def test_results_of_two_classes_are_not_equal():
    assert (_One() == _Other()) is False and (_One() == _One()) is True and (_One() != _One(2)) is True


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, True), (1, 1.0), ([1], [1, 2]), ({"a": 1}, {"b": 1}), (np.ones(2), np.ones(3)), (np.ones(1), np.ones(1, int))],
)
def test_other_values_are_not_the_same(a, b):
    assert same(a, b) is False and same(b, a) is False and same(a, a) is True
