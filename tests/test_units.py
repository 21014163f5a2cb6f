"""Numbers with units, as people write them."""

import functools
import math

import numpy as np
import pytest

from rooflab.units import binary, distinct, human, rounded


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
    assert distinct([2**30, 2**30 + 1], binary) == ["1 GiB", "1.000000001 GiB"]
    assert distinct([], write) == []
    counts = [10**15 - 1, 10**15 - 2, 10**14 + 1, 10**14]
    for each in (write, binary, functools.partial(human, unit="launches")):
        assert len(set(distinct(counts, each))) == 4
    assert distinct([0.5, 2**40, 2**40 + 1, math.nan], write)[1:3] == ["1.099511627776 TB", "1.099511627777 TB"]


def test_numbers_that_differ_by_rounding_look_alike():
    write = functools.partial(human, unit="s")
    assert distinct([0.1 + 0.2, 0.3], write) == ["300 ms", "300 ms"]
    assert distinct([3.0, 10 * 0.3 * (1 + 1e-15), 3.001], write) == ["3 s", "3 s", "3.001 s"]
    assert distinct([1 + 8e-7 * i for i in range(4)], write) == ["1 s", "1 s", "1.000002 s", "1.000002 s"]
    assert distinct([1.5e16, 1.5e16 * (1 + 1e-15)], functools.partial(human, unit="FLOP")) == ["15 PFLOP"] * 2


@pytest.mark.parametrize("digits", range(1, 20))
def test_commas_do_not_depend_on_the_digits(digits):
    assert human(12345, "launches", digits) == "12,345 launches"
    assert human(-1234, "launches", digits) == "-1234 launches"
    assert rounded(123456.5, digits).replace(",", "").startswith("12345") and rounded(123456.5, digits)[3] == ","
    assert human(10**20, "launches", digits) == "1e+20 launches"


def test_numbers_of_numpy_do_not_overflow():
    assert human(np.float16(60000), "GB/s") == "60 TB/s"
    assert rounded(np.float16(60000)) == "60,000" and binary(np.float16(60000)) == "58.6 KiB"
    assert human(np.int64(2**53 + 1), "tokens") == "9,007,199,254,740,993 tokens"
    assert binary(np.int8(-128)) == "-128 B" and human(np.int8(-128), "B") == "-128 B"
    assert distinct([np.int8(-128), np.uint8(200)], binary) == ["-128 B", "200 B"]


@pytest.mark.parametrize(
    "write",
    [lambda n: human(n, "B"), lambda n: human(n, "launches"), binary, rounded, lambda n: distinct([n], rounded)],
)
def test_an_integer_that_no_float_can_hold_is_refused(write):
    with pytest.raises(ValueError, match=r"\[units\] expected a number that a float can hold"):
        write(10**400)
