"""The mark `slow` of tests/conftest.py: which cases of a test run without --all-tests."""

import importlib.util
import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

spec = importlib.util.spec_from_file_location("marks", Path(__file__).with_name("conftest.py"))
marks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(marks)

DTYPES, SHAPES = (
    ["float32", "float64", "bfloat16"],
    [f"{rows}x{columns}" for rows in range(10) for columns in range(10)],
)


def case(mark, **values):
    """An item of pytest with this mark and these parameters."""
    callspec = SimpleNamespace(params=values, id="-".join(values.values()))
    return SimpleNamespace(callspec=callspec, iter_markers={"slow": [mark.mark]}.__getitem__)


def spared(mark):
    cases = itertools.product(DTYPES, SHAPES)
    return [(dtype, shape) for dtype, shape in cases if not marks.is_slow(case(mark, dtype=dtype, shape=shape))]


@pytest.mark.parametrize("every", [2, 3, 4])
def test_each_value_is_in_about_one_of_so_many_cases(every):
    left = spared(pytest.mark.slow(but_every=every))
    for dtype in DTYPES:
        assert 0.5 * len(SHAPES) / every < sum(one == dtype for one, _ in left) < 1.5 * len(SHAPES) / every


def test_values_that_are_named():
    left = spared(pytest.mark.slow(dtype=["float64"]))
    assert {dtype for dtype, _ in left} == {"float32", "bfloat16"} and len(left) == 2 * len(SHAPES)
    sampled = spared(pytest.mark.slow(dtype=["float64"], but_every=2))
    assert set(left) < set(sampled) and len(left) + 25 < len(sampled) < len(left) + 75


def test_a_test_without_cases():
    assert marks.is_slow(SimpleNamespace(iter_markers=lambda name: [pytest.mark.slow.mark]))
    assert not marks.is_slow(SimpleNamespace(iter_markers=lambda name: []))
