"""Stand-ins: what the worker is given in place of a test's arguments when a call is counted."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.grading.judge.counting import FACTORS, _digests, stand_ins


def stand_in(value, seed=1):
    return stand_ins(value, np.random.default_rng(seed))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_a_tensor_is_like_the_tests_and_has_other_numbers(dtype):
    x = rl.randn(64, 3, dtype=dtype).requires_grad_()
    other = stand_in(x)
    ratio = other.detach().to("float64").numpy() / x.detach().to("float64").numpy()
    assert (other.shape, other.dtype, other.device, other.requires_grad) == (x.shape, x.dtype, x.device, True)
    assert FACTORS[0] * 0.99 < ratio.min() < ratio.max() < FACTORS[1] * 1.01 and len(set(ratio.ravel())) > 50


def test_an_array_keeps_its_zeros_signs_infinities_and_nan():
    x = np.array([0.0, -1.5, np.inf, -np.inf, np.nan, 2.5], np.float32)
    other = stand_in(x)
    assert other.dtype == x.dtype and other[0] == 0 and other[1] < 0 < other[5] and (other != x)[[1, 5]].all()
    assert np.array_equal(other[2:5], x[2:5], equal_nan=True)


def test_whole_numbers_are_drawn_from_among_them_and_marks_stay():
    x = np.arange(100.0).reshape(4, 25)
    other = stand_in(x)
    assert set(other.ravel()) < set(x.ravel()) and other.shape == x.shape and other.sum() != x.sum()
    mask = np.where(np.tri(5), 0.0, -np.inf)
    for kept in (mask, np.arange(9), np.tri(3, dtype=bool), rl.tensor([1, 2, 3]), rl.ones(2, 2)):
        assert np.array_equal(np.asarray(stand_in(kept)), np.asarray(kept))


def test_lists_tuples_and_dicts_keep_their_shape_and_one_object_has_one_stand_in():
    x = rl.randn(3)
    first, (second, text), more = stand_in([x, (x, "text"), {"y": x, "n": 2, "of": None}])
    assert first is second is more["y"] and first is not x and (text, more["n"], more["of"]) == ("text", 2, None)


def test_they_are_drawn_from_the_seed():
    x = np.random.default_rng(0).standard_normal(5)
    assert np.array_equal(stand_in(x), stand_in(x)) and not np.array_equal(stand_in(x), stand_in(x, 2))


def test_marks_are_told_from_drawn_numbers_wherever_they_lie(monkeypatch):
    late, sizes, unique = np.zeros(20_000), [], np.unique
    late[-3:] = 1, 2, np.nan
    for marks in (late[:-1], rl.ones(2, 2), rl.tensor(0.5), np.float32([[np.nan, -np.inf, 0, np.nan]]), np.zeros(0)):
        assert not [*_digests(marks)]
    whole = np.nan_to_num(late, nan=3)
    assert len([*_digests([late, rl.randn(4)])]) == 2 and (stand_in(whole) != whole).any()
    monkeypatch.setattr(np, "unique", lambda x: sizes.append(x.size) or unique(x))
    assert [*_digests(np.arange(1e6))] and sum(sizes) < 1e4, "all numbers were sorted"
