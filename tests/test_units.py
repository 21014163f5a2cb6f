"""Numbers with units, as people write them."""

import functools

import pytest

from rooflab.units import binary, distinct, human


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (38.7, "TFLOP/s", "38.7 TFLOP/s"),
        (989.5, "TFLOP/s", "990 TFLOP/s"),
        (0.9999, "TB/s", "1 TB/s"),
        (0.0142, "TB/s", "14.2 GB/s"),
        (999.96, "GB/s", "1 TB/s"),
        (0.6, "us", "600 ns"),
        (1.0, "us", "1 µs"),
        (100, "us", "100 µs"),
        (12345, "ms", "12.3 s"),
        (4000, "s", "4000 s"),
        (0, "s", "0 s"),
        (1e-15, "s", "1e-06 ns"),
        (1e6, "s", "1,000,000 s"),
        (1e20, "FLOP", "100,000 PFLOP"),
        (0.5, "MAC", "0.5 MAC"),
        (8.58e9, "MAC", "8.58 GMAC"),
        (1, "B", "1 B"),
        (917504, "B", "918 kB"),
        (8, "launches", "8 launches"),
        (1234, "launches", "1234 launches"),
        (12345, "launches", "12,345 launches"),
        (2**53 + 1, "tokens", "9,007,199,254,740,993 tokens"),
        (9999.9, "launches", "10,000 launches"),
        (1e6, "tokens/s", "1,000,000 tokens/s"),
        (1e300, "tokens/s", "1e+300 tokens/s"),
        (50.39, "FLOP/byte", "50.4 FLOP/byte"),
        (float("nan"), "s", "nan s"),
        (-2e-3, "s", "-2 ms"),
    ],
)
def test_human(value, unit, text):
    assert human(value, unit) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (2**20 - 1, "1 MiB"), (2**30, "1 GiB"), (1.5 * 2**40, "1.5 TiB"),
     (2**50, "1024 TiB"), (-1536, "-1.5 KiB"), (123.456 * 2**20, "123 MiB")],
)  # fmt: skip
def test_bytes_in_binary_units(size, text):
    assert binary(size) == text


@pytest.mark.parametrize("write", [functools.partial(human, unit="B"), binary, functools.partial(human, unit="tokens")])
def test_digits_are_a_positive_number(write):
    assert "1" in write(1000.0, digits=1)
    with pytest.raises(ValueError, match=r"^\[units\] digits: expected 1 or more, got 0$"):
        write(1000.0, digits=0)


def test_numbers_that_are_not_equal_do_not_look_alike():
    write = functools.partial(human, unit="B")
    assert distinct([12_345_000, 8e6, 12_312_000, 12_345_000], write) == ["12.35 MB", "8 MB", "12.31 MB", "12.35 MB"]
    assert distinct([0.1 + 0.2, 0.3], write) == ["0.30000000000000004 B", "0.29999999999999999 B"]
    assert distinct([2**30, 2**30 + 1], binary) == ["1 GiB", "1.000000001 GiB"]
    assert distinct([], write) == []
