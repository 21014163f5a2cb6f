"""assert_close: what it refuses, in which order, and what it names."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close, assert_near, is_count, is_near, is_number

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([1.0, NAN, INF, -INF], [1.0, NAN, INF, -INF]),
        ([], []),
        (3, 3.0),
        (np.array([2.0 + 0.0j]), [2.0]),
        (rl.ones(2, 3, dtype="bfloat16"), np.ones((2, 3))),
        ([1.0 + 1.0e-5 + 1e-6], [1.0]),  # what rtol and atol allow together
    ],
)
def test_accepts(actual, expected):
    assert_close(actual, expected)


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (None, [1.0], r"expected a tensor, an array or numbers, got None$"),
        ({"a": 1.0}, 1.0, r"got a dict$"),
        ("1.0", 1.0, r"got a str$"),
        ([[1.0], 2.0], [1.0], r"numbers, got a list$"),
        ([1.0 + 2.0j], [1.0], r"numbers, got complex numbers$"),
        ([1.0, 2.0], [1.0], r"expected shape \(1,\), got \(2,\)"),
        ([[1.0]], [1.0], r"expected shape \(1,\), got \(1, 1\)"),
        ([NAN, 9.0], [1.0, 1.0], r"NaN differs in 1 places, first at \(0,\): expected 1.0, got nan"),
        ([1.0, 2.0], [1.0, NAN], r"NaN differs in 1 places, first at \(1,\): expected nan, got 2.0"),
        ([NAN, 1.0], [1.0, NAN], r"NaN differs in 2 places"),
        ([INF], [-INF], r"\+inf differs"),
        ([-INF], [1.0], r"-inf differs"),
        ([1e308], [INF], r"\+inf differs"),
        ([1.0, 1.1, 3.0, 4.2], [1.0, 1.0, 3.0, 4.0], r"2 of 4 elements are off; worst at \(3,\): expected 4, got 4.2"),
        ([[0.0, 0.0], [5.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], r"worst at \(1, 0\)"),
        ([-1.0], [1.0], "error 2"),
        ([1.0 + 1.2e-5], [1.0], "1 of 1 elements"),
        ([0.0], [1.1e-6], "1 of 1 elements"),
    ],
)
def test_refuses(actual, expected, words):
    with pytest.raises(AssertionError, match=f"^thing: .*{words}"):
        assert_close(actual, expected, name="thing")


@pytest.mark.parametrize("other", [np.zeros(2, "V8"), [10**400, 0], np.zeros(2, "f8, f8")])
def test_what_is_no_float64_is_refused_in_one_sentence(other):
    with pytest.raises(AssertionError, match=r"^result: expected a tensor, an array or numbers, got an? "):
        assert_close(other, np.zeros(2))
    with pytest.raises(ValueError, match=r"^expected a tensor, an array or numbers, got an? "):
        assert_close(np.zeros(2), other)


def test_a_wrong_shape_costs_no_memory():
    """An array that repeats one number is as long as it says only where it is converted."""
    long = np.broadcast_to(np.float16(1), (1 << 44,))
    for pair in ((long, [1.0]), ([1.0], long)):
        with pytest.raises(AssertionError, match=r"expected shape .*17592186044416"):
            assert_close(*pair)


def test_relative_tolerance_is_of_the_expected_value():
    assert_close([90.0], [100.0], rtol=0.1, atol=0)
    with pytest.raises(AssertionError):
        assert_close([100.0], [90.0], rtol=0.1, atol=0)


def test_each_element_may_have_its_own_tolerance():
    assert_close([1.0, 2.5], [1.0, 2.0], rtol=0, atol=[0.0, 0.5])
    with pytest.raises(AssertionError, match=r"worst at \(0,\)"):
        assert_close([1.5, 2.0], [1.0, 2.0], rtol=0, atol=[0.0, 0.5])
    with pytest.raises(AssertionError, match=r"1 of 2 .*worst at \(0,\).*error 0.5, allowed 0.1"):
        assert_close([1.5, 3.0], [1.0, 2.0], rtol=0, atol=[0.1, 9.0])  # beyond what is allowed, not the largest error


@pytest.mark.parametrize(("rtol", "atol"), [(-1, 0), (0, -1), (NAN, 0), (0, NAN), (INF, 0), (0, INF), (0, [1.0, 1.0])])
def test_impossible_tolerances(rtol, atol):
    with pytest.raises(ValueError, match=r"\[assert_close\]"):
        assert_close([1.0], [2.0], rtol=rtol, atol=atol)


@pytest.mark.parametrize("value", [84.87, 84.9, 85, 84.8, 84, np.float32(85), np.int64(84), 84.866])
def test_a_rounded_number_is_called_rounded(value):
    with pytest.raises(AssertionError, match=r"^intensity is not .*: it looks rounded.* do not round it$"):
        assert_near("intensity", value, 84.86598, 1e-7, "divide")


@pytest.mark.parametrize("value", [84.88, 84.7, 86, 83, 85.123, 169.73, -84.9, 0, NAN, INF, None, "85", True, [85]])
def test_a_wrong_number_gets_the_hint(value):
    with pytest.raises(AssertionError, match=r"^intensity is not .*: divide$"):
        assert_near("intensity", value, 84.86598, 1e-4, "divide")


def test_numbers_of_numpy_are_compared_exactly_whatever_their_own_types():
    """NumPy would compute in 16 bits, where 1e12 is infinite, and would refuse 303 beside an int8."""
    for zero in (np.float16(0), np.array(0, np.float16), rl.tensor(0.0, dtype="float16"), np.int8(0), Fraction(0)):
        assert is_number(zero) and not any(is_near(zero, right) for right in (1e12, 303, 2**70, 1e300))
    assert is_near(np.int8(3), 3) and is_near(np.float16(0.5), 0.5, 0) and not is_near(np.float16(0.333), 1 / 3)
    assert is_near(10**400, 10**400) and not is_near(10**400, 1.0) and not is_near(1.0, INF)
    for none in (
        np.longdouble("1e4000"),
        np.bool_(True),
        True,
        1j,
        np.complex64(1),
        Decimal(1),
        np.timedelta64(1, "s"),
    ):
        assert not is_number(none) and not is_count(none) and not is_near(none, 1)
    assert is_near(1.5, 1, 0, absolute=0.5) and not is_near(1.6, 1, 0.1, absolute=0.5)
    with pytest.raises(AssertionError, match="n is not 5: divide"):
        assert_near("n", np.int8(5), 303, 1e-4, "divide")


def test_tolerances_are_numbers_of_any_type_and_others_are_refused():
    for share in (np.float32(0.01), np.array(0.01), rl.tensor(0.01), Fraction(1, 100)):
        assert is_near(1.009, 1, share) and not is_near(1.011, 1, share)
        assert is_near(1.009, 1, 0, absolute=share) and not is_near(1.011, 1, 0, absolute=share)
    for wrong in (INF, NAN, -1e-6, None, "1e-6", True):
        for name in ("relative", "absolute"):
            with pytest.raises(ValueError, match=rf"\[is_near\] {name}: expected a finite number of 0 or more, got"):
                is_near("no number", 1, **{name: wrong})


def test_a_number_that_is_near_enough():
    assert_near("intensity", 84.87, 84.86598, 1e-4, "divide")
    assert_near("share", np.float64(0.1 + 0.2), 0.3, 1e-12, "divide")


def test_numbers_and_counts():
    assert is_number(1) and is_number(np.float32(0.5)) and not any(map(is_number, (True, NAN, INF, "1", None, [1])))
    assert is_count(3) and is_count(np.int64(3)) and not is_count(3.0) and not is_count(True)
    assert is_count(2**80) and is_near(2**80, 2.0**80) and not is_near(2**80 + 2**79, 2.0**80)
    assert is_number(Fraction(1, 3)) and is_near(Fraction(1, 2), 0.5) and not is_count(Fraction(6, 2))
    assert is_count(np.array(3)) and is_near(np.array(0.5), 0.5) and not is_number(np.array([3]))
    assert is_count(rl.tensor(3)) and is_near(rl.tensor(0.1), 0.1) and not is_count(rl.tensor(3.0))
    assert not any(map(is_number, (rl.tensor([3]), rl.tensor(True), rl.tensor(NAN), rl.tensor(3.0, device="meta"))))
    with pytest.raises(AssertionError, match=r"share is not .*0\.33.*rounded"):
        assert_near("share", rl.tensor(0.33, dtype="float64"), 1 / 3, 1e-6, "divide")
    assert is_near(1.0005, 1, relative=1e-3) and not is_near(1.002, 1, relative=1e-3) and not is_near("1", 1)
    assert is_near(-100.05, -100, relative=1e-3) and not is_near(100, -100)
