"""Numbers with units as people read them: 1.94e11 FLOP/s is 194 GFLOP/s. GB is 1e9 bytes, GiB 2^30."""

from __future__ import annotations

import math

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
        Significant digits.

    Returns
    -------
    str
        The number, a space, and the unit with its prefix.

    Examples
    --------
    >>> human(0.0421, "TB/s")
    '42.1 GB/s'
    >>> human(38.7, "TFLOP/s")
    '38.7 TFLOP/s'
    >>> human(1500, "ms")
    '1.5 s'
    """
    scale, base = _SCALED.get(unit, (1.0, unit))
    number = value * scale
    if base not in ("FLOP/s", "B/s", "B", "s", "FLOP", "MAC"):
        return f"{number:.{digits}g} {base}"
    if number == 0 or not math.isfinite(number):
        return f"{number:g} {base}"
    top = 0 if base == "s" else 15
    bottom = 0 if base in ("B", "FLOP", "MAC") else -9
    # Rounding first, so that 999.9 becomes 1 k and not 1000.
    rounded = abs(float(f"{number:.{digits - 1}e}"))
    power = min(top, max(bottom, 3 * math.floor(math.log10(rounded) / 3 + 1e-12)))
    shown = number / 10.0**power
    text = f"{shown:.{digits}g}"
    if "e" in text:
        text = f"{shown:.0f}" if abs(shown) >= 1 else f"{shown:.{digits + 2}f}".rstrip("0").rstrip(".")
    return f"{text} {_PREFIXES[power]}{base}"


def binary(size: float, digits: int = 3) -> str:
    """Bytes with the binary prefix that leaves one to four digits before the point: a GiB is 2^30 bytes.

    Parameters
    ----------
    size : float
        Bytes.
    digits : int
        Significant digits. More are shown where there are four before the point.

    Returns
    -------
    str
        The number, a space, and the unit.

    Examples
    --------
    >>> binary(1536), binary(40e9), binary(1000 * 2**20), binary(12), binary(math.inf)
    ('1.5 KiB', '37.3 GiB', '1000 MiB', '12 B', 'inf B')
    """
    power = binary_power(size)
    shown = size / 1024.0**power
    text = f"{shown:.0f}" if abs(shown) >= 10 ** (digits - 1) else f"{shown:.{digits}g}"
    return f"{text} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


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
    >>> binary_power(40e9)
    3
    """
    power = 0
    while power < 4 and math.isfinite(size) and round(abs(size) / 1024.0**power) >= 1024:
        power += 1
    return power
