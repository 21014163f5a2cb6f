"""For tests and test cells: arrays compared by shape, NaN positions and worst element; checks of single numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ._core import Tensor
from ._in_words import in_words


def to_float64(x) -> np.ndarray:
    """A tensor, array or number of any dtype and device as a float64 array.

    Parameters
    ----------
    x : Tensor, array or number
        On any device.

    Returns
    -------
    array
        A copy.

    Raises
    ------
    ValueError
        For anything but an array of numbers.

    Examples
    --------
    >>> from rooflab.testing import to_float64
    >>> to_float64([1, 2])
    array([1., 2.])
    """
    return _real_numbers(x).astype(np.float64)


def _real_numbers(x: Any) -> np.ndarray:
    """What `to_float64` converts, which is refused here. An array that repeats its elements takes no memory yet."""
    got = "None" if x is None else f"a {type(x).__name__}"
    try:
        array = x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)
        if np.iscomplexobj(array) and array.imag.any():  # which NumPy would drop
            got = "complex numbers"
        elif x is not None and array.dtype.kind not in "US":  # NumPy would make NaN of None, and a number of "1"
            # .real of an object that is no number is the object itself in some versions of NumPy
            array = array.real if np.iscomplexobj(array) else array
            (array if array.dtype.kind == "O" else np.zeros(1, array.dtype)).astype(np.float64)
            return array
    except OverflowError:
        got = "an integer beyond the range of float64"
    except (TypeError, ValueError):  # a dict, or lists of different lengths
        pass
    raise ValueError(f"expected a tensor, an array or numbers, got {got}")


@in_words
def assert_close(actual, expected, *, rtol: float = 1e-5, atol: Any = 1e-6, name: str = "result") -> None:
    """Assert `|actual - expected| <= atol + rtol |expected|`, element by element.

    NaN matches NaN only, infinities match themselves only. Shapes must be equal: nothing broadcasts.

    Parameters
    ----------
    actual, expected : Tensor, array or number
        Compared in float64.
    rtol : float
        Finite and not negative, as `atol`.
    atol : float or array
        An array of the shape of `expected` allows each element its own error.
    name : str
        What the message calls `actual`.

    Raises
    ------
    AssertionError
        One sentence: shapes; or where NaN or infinities differ; or the worst element with its index, which is the
        one furthest beyond what is allowed.
    ValueError
        For a tolerance that is negative, infinite, NaN or of another shape.

    Examples
    --------
    >>> from rooflab.testing import assert_close
    >>> assert_close([1.0, 2.0], [1.0, 2.0 + 1e-9])
    """
    y, atol = _real_numbers(expected), np.asarray(atol, dtype=np.float64)
    try:
        x = _real_numbers(actual)
    except ValueError as refusal:
        raise AssertionError(f"{name}: {refusal}") from None
    if not (0 <= rtol < np.inf and ((atol >= 0) & (atol < np.inf)).all()):
        raise ValueError(f"[assert_close] rtol and atol: expected finite and >= 0, got {rtol} and {atol}")
    if atol.shape not in ((), y.shape):
        raise ValueError(f"[assert_close] atol: expected a number or shape {y.shape}, got shape {atol.shape}")
    if x.shape != y.shape:
        raise AssertionError(f"{name}: expected shape {y.shape}, got {x.shape}")
    x, y = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        error, allowed = np.abs(x - y), atol + rtol * np.abs(y)
        right = (error <= allowed) & (error < np.inf) | (x == y) | (np.isnan(x) & np.isnan(y))
        if right.all():
            return
        excess = np.where(right, -np.inf, error - allowed)
    for what, test in (("NaN", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf)):
        differs = test(x) != test(y)
        if differs.any():
            wrong = np.argwhere(differs)
            at = tuple(int(i) for i in wrong[0])
            raise AssertionError(
                f"{name}: {what} differs in {len(wrong)} places, first at {at}: expected {y[at]}, got {x[at]}"
            )
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(excess), x.shape))
    raise AssertionError(
        f"{name}: {np.count_nonzero(~right)} of {x.size} elements are off; worst at {worst}: expected {y[worst]:.9g}, "
        f"got {x[worst]:.9g} (error {error[worst]:.3g}, allowed {allowed[worst]:.3g})"
    )


def is_number(value: Any) -> bool:
    """Whether `value` is a finite real number: an int, a float or a Fraction, a number of NumPy's, or an array or a
    tensor of no dimension that holds one. Bools, complex numbers, Decimals and texts are none.

    Parameters
    ----------
    value : object
        What a student wrote.

    Returns
    -------
    bool
        False for NaN and infinities, too.

    Examples
    --------
    >>> from rooflab.testing import is_number
    >>> is_number(3), is_number(True), is_number("3")
    (True, False, False)
    """
    return _number(value) is not None


def is_count(value: Any) -> bool:
    """Whether `value` is a whole number of an integer type.

    Parameters
    ----------
    value : object
        What a student wrote.

    Returns
    -------
    bool
        False for 3.0.

    Examples
    --------
    >>> from rooflab.testing import is_count
    >>> is_count(3), is_count(3.0)
    (True, False)
    """
    return isinstance(_number(value), int)


def _number(value: Any) -> int | float | Fraction | None:
    """A number (see `is_number`) as Python's own, since NumPy computes in the type of the number, where others become
    infinite or do not fit. None for anything else.
    """
    if isinstance(value, Tensor) and value.ndim == 0 and not value.device.startswith("meta"):
        value = value.item()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        value = float(value)
        return value if math.isfinite(value) else None
    return value if isinstance(value, Fraction) else None


def is_near(value: Any, expected: float, relative: float = 1e-6, *, absolute: float = 0.0) -> bool:
    """Whether `value` is a number (see `is_number`) within `relative` or `absolute` of `expected`. They are compared
    exactly, whatever their types.

    Parameters
    ----------
    value : object
        What a student wrote.
    expected : float
        The right number.
    relative : float
        The error that is allowed, as a share of `expected`.
    absolute : float
        An error that is allowed whatever `expected` is.

    Returns
    -------
    bool
        False for anything but a number, and where `expected` is none.

    Raises
    ------
    ValueError
        For a tolerance that is no finite number of 0 or more.

    Examples
    --------
    >>> from rooflab.testing import is_near
    >>> is_near(1 / 3, 0.33333333), is_near(0.33, 0.33333333)
    (True, False)
    """
    got, right, share, least = map(_number, (value, expected, relative, absolute))
    for name, given, tolerance in (("relative", relative, share), ("absolute", absolute, least)):
        if tolerance is None or tolerance < 0:
            raise ValueError(f"[is_near] {name}: expected a finite number of 0 or more, got {given!r}")
    if got is None or right is None or share is None or least is None:
        return False
    right = Fraction(right)
    return abs(Fraction(got) - right) <= max(Fraction(share) * abs(right), Fraction(least))


def assert_near(name: str, value: Any, expected: float, relative: float, hint: str) -> None:
    """Assert that the number `value` is within `relative` of `expected`. If it looks rounded, the message says so.

    Parameters
    ----------
    name : str
        What the message calls the number.
    value : object
        What a student wrote.
    expected : float
        The right number.
    relative : float
        The error that is allowed, as a share of `expected`.
    hint : str
        What the message says of a value that does not look rounded.

    Raises
    ------
    AssertionError
        The name, the value, and `hint`, or that the value looks rounded: it has at most four decimals and differs from
        `expected` by less than one unit of its last decimal, and by at most 5 %.

    Examples
    --------
    >>> from rooflab.testing import assert_near
    >>> assert_near("intensity", 2 / 3, 0.66666667, 1e-4, "divide FLOPs by bytes")
    """
    if is_near(value, expected, relative):
        return
    number = _number(value)
    rounded = (number is not None and is_near(number, expected, 0.05)) and any(
        round(number, digits) == number and abs(number - expected) < 10.0**-digits for digits in range(5)
    )
    told = "it looks rounded. Write the expression, and do not round it" if rounded else hint
    raise AssertionError(f"{name} is not {value}: {told}")


def assert_choice(answer: Any, right: str, **wrong: str) -> None:
    """Assert that `answer` is the letter `right`; `wrong` says of each other letter why it is wrong.

    Parameters
    ----------
    answer : object
        What a student wrote.
    right : str
        The right letter.
    **wrong : str
        For each other letter a sentence.

    Raises
    ------
    AssertionError
        The sentence of the chosen letter, or that no letter was chosen.

    Examples
    --------
    >>> from rooflab.testing import assert_choice
    >>> assert_choice("b", "b", a="The work is the same.")
    """
    if answer != right:
        known = isinstance(answer, str) and answer in wrong
        letters = ", ".join(f'"{letter}"' for letter in sorted({right, *wrong}))
        raise AssertionError(f'Not "{answer}": {wrong[answer]}' if known else f"Answer with one of {letters}.")
