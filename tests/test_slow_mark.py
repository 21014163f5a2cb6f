"""The mark `slow` of tests/conftest.py: which cases of a test run without --all-tests."""

import importlib.util
import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

spec = importlib.util.spec_from_file_location("marks", Path(__file__).with_name("conftest.py"))
marks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(marks)

DTYPES, LAYOUTS = ["float32", "float64", "bfloat16"], ["rows", "columns", "strided", "one", "none"]


def case(mark, places, together=()):
    """An item of pytest with this mark; each parameter has (place among its values, value)."""
    callspec = SimpleNamespace(
        params={name: value for name, (_, value) in places.items()},
        indices={name: place for name, (place, _) in places.items()},
        id="-".join(value for _, value in places.values()),
    )
    found = {"slow": [mark.mark], "parametrize": [pytest.mark.parametrize(names, []).mark for names in together]}
    return SimpleNamespace(callspec=callspec, iter_markers=found.__getitem__)


def spared(mark):
    cases = itertools.product(enumerate(DTYPES), enumerate(LAYOUTS))
    return [(d[1], n[1]) for d, n in cases if not marks.is_slow(case(mark, {"dtype": d, "layout": n}))]


@pytest.mark.parametrize(("every", "count"), [(2, 8), (3, 5)])
def test_each_value_is_in_one_of_so_many_cases(every, count):
    left = spared(pytest.mark.slow(but_every=every))
    assert len(left) == count
    assert {dtype for dtype, _ in left} == set(DTYPES) and {layout for _, layout in left} == set(LAYOUTS)


@pytest.mark.parametrize("names", ["name, dtype", ("name", "dtype")])
def test_values_that_are_given_together_have_one_place(names):
    pairs = [{"name": (i, str(i)), "dtype": (i, str(i))} for i in range(6)]
    found = [marks.is_slow(case(pytest.mark.slow(but_every=2), pair, [names])) for pair in pairs]
    assert found == [False, True] * 3


def test_values_that_are_named():
    assert ("float64", "rows") not in spared(pytest.mark.slow(dtype=["float64"]))
    assert len(spared(pytest.mark.slow(dtype=["float64"]))) == 10
    left = spared(pytest.mark.slow(dtype=["float64"], but_every=2))
    assert len(left) == 12 and {dtype for dtype, _ in left} == set(DTYPES)


def test_a_test_without_cases():
    alone = SimpleNamespace(iter_markers=lambda name: [pytest.mark.slow.mark])
    assert marks.is_slow(alone)
