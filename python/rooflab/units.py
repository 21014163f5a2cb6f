"""Numbers with units as people read them: 1.94e11 FLOP/s is 194 GFLOP/s. GB is 1e9 bytes, GiB 2^30."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable

_PREFIXES = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
_SCALED = {
    "TB/s": (1e12, "B/s"),
    "GB/s": (1e9, "B/s"),
    "TFLOP/s": (1e12, "FLOP/s"),
    "GFLOP/s": (1e9, "FLOP/s"),
    "us": (1e-6, "s"),
    "ms": (1e-3, "s"),
}


def human(value: float, unit: str, digits: int = 3) -> str:
    """`value` in `unit`, written with the decimal prefix that leaves one to three digits before the point.

    Parameters
    ----------
    value : float
        The number, in `unit`.
    unit : str
        A base unit (``FLOP/s``, ``B/s``, ``B``, ``s``) or a scaled one (``TB/s``, ``TFLOP/s``, ``us``,
        ``ms``). Times never get a prefix above the second. Any other unit is left as it is.
    digits : int
        Significant digits, 1 or more. All digits before the point are shown, however many there are.

    Returns
    -------
    str
        The number, a space, and the unit with its prefix. From 10,000 on there are commas between thousands,
        whatever `digits` is.

    Raises
    ------
    ValueError
        If `digits` is not positive.

    Examples
    --------
    >>> from rooflab.units import human
    >>> human(0.0421, "TB/s")
    '42.1 GB/s'
    >>> human(38.7, "TFLOP/s")
    '38.7 TFLOP/s'
    >>> human(1500, "ms")
    '1.5 s'
    >>> human(12345, "launches")
    '12,345 launches'
    """
    scale, base = _SCALED.get(unit, (1, unit))
    number = _exact(value) * scale
    _check(digits)
    has_prefixes = base in ("FLOP/s", "B/s", "B", "s", "FLOP", "MAC")
    if not has_prefixes or number == 0 or not math.isfinite(number):
        return f"{rounded(number, digits)} {base}"
    top = 0 if base == "s" else 15
    bottom = 0 if base in ("B", "FLOP", "MAC") else -9
    # Rounding first, so that 999.9 becomes 1 k and not 1000.
    size = abs(float(f"{number:.{digits - 1}e}"))
    power = min(top, max(bottom, 3 * math.floor(math.log10(size) / 3 + 1e-12)))
    return f"{rounded(number / 10.0**power, digits)} {_PREFIXES[power]}{base}"


def distinct(values: Iterable[float], write: Callable[..., str]) -> list[str]:
    """Numbers of one figure or column, each with as many digits as tell it from the others.

    Parameters
    ----------
    values : iterable of float
        The numbers.
    write : callable
        Writes a number, and takes `digits`: `binary`, or `human` of a unit.

    Returns
    -------
    list of str
        Whole numbers below 1e15 that are not equal have texts that are not equal. Others have the same text where
        they differ by less than a millionth, as by rounding.

    Examples
    --------
    >>> from rooflab.units import distinct, human
    >>> import functools
    >>> distinct([72.12e6, 72.11e6, 8e6], functools.partial(human, unit="B"))
    ['72.12 MB', '72.11 MB', '8 MB']
    >>> distinct([3 * 1.1, 3.3, 3.31], functools.partial(human, unit="s"))
    ['3.3 s', '3.3 s', '3.31 s']
    """
    numbers = [_exact(value) for value in values]
    shown: dict[float, float] = {}  # by number; of numbers that differ by rounding, the least
    last = math.nan
    for number in sorted(numbers):
        counts = all(one == round(one, 0) and abs(one) < 1e15 for one in (number, last))
        last = shown[number] = last if math.isclose(number, last, rel_tol=0 if counts else 1e-6) else number
    texts: dict[float, str] = {}
    for digits in range(3, 18):  # 17 digits tell all numbers apart
        texts |= {number: write(number, digits=digits) for number in shown.values() if number not in texts}
        often = Counter(texts.values())
        if digits < 17:
            texts = {number: text for number, text in texts.items() if often[text] == 1}
    return [texts[shown[number]] for number in numbers]


def _exact(value: float) -> float:
    """A number of NumPy as Python's, which does not overflow."""
    found = value.item() if hasattr(value, "item") else value
    try:
        float(found)
    except OverflowError:
        raise ValueError("[units] expected a number that a float can hold, got an integer above 1.8e308") from None
    return found


def rounded(number: float, digits: int = 3) -> str:
    """A number without a unit: so many significant digits, and all that stand before its point.

    Parameters
    ----------
    number : float
        Any number.
    digits : int
        Significant digits, 1 or more.

    Returns
    -------
    str
        From 10,000 on there are commas between thousands, whatever `digits` is. From 1e18 on there is an exponent
        where `digits` are too few for all that stand before the point.

    Raises
    ------
    ValueError
        If `digits` is not positive.

    Examples
    --------
    >>> from rooflab.units import rounded
    >>> rounded(50.39), rounded(1234.5), rounded(12345)
    ('50.4', '1234', '12,345')
    >>> rounded(12345.67, 6)
    '12,345.7'
    """
    _check(digits)
    number = _exact(number)
    text = f"{number:.{digits}g}"
    if "e+" in text and abs(number) < 1e18:
        text = f"{round(number)}"
    whole, point, rest = text.partition(".")
    sign, size = whole[: whole.startswith("-")], whole.removeprefix("-")
    return f"{sign}{int(size):,}{point}{rest}" if size.isdigit() and len(size) > 4 else text


def _check(digits: int) -> None:
    if digits < 1:
        raise ValueError(f"[units] digits: expected 1 or more, got {digits}")


def binary(size: float, digits: int = 3, power: int | None = None) -> str:
    """Bytes with the binary prefix that leaves one to four digits before the point: a GiB is 2^30 bytes.

    Parameters
    ----------
    size : float
        Bytes.
    digits : int
        Significant digits, 1 or more. More are shown where there are four before the point.
    power : int, optional
        Of 1024, 0 to 4: 3 for GiB. That of `size` if not given.

    Returns
    -------
    str
        The number, a space, and the unit.

    Raises
    ------
    ValueError
        If `digits` is not positive.

    Examples
    --------
    >>> import math
    >>> from rooflab.units import binary
    >>> binary(1536), binary(40e9), binary(1000 * 2**20), binary(12), binary(math.inf)
    ('1.5 KiB', '37.3 GiB', '1000 MiB', '12 B', 'inf B')
    """
    size = _exact(size)
    power = binary_power(size) if power is None else power
    return f"{rounded(size / 1024.0**power, digits)} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def binary_power(size: float) -> int:
    """The power of 1024 in whose unit a number of bytes is written, 0 to 4.

    Parameters
    ----------
    size : float
        Bytes.

    Returns
    -------
    int
        0 for bytes, 3 for GiB.

    Examples
    --------
    >>> from rooflab.units import binary_power
    >>> binary_power(40e9)
    3
    """
    size, power = _exact(size), 0
    while power < 4 and math.isfinite(size) and round(abs(size) / 1024.0**power) >= 1024:
        power += 1
    return power
