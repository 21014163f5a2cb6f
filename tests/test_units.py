"""Numbers with units, as people write them."""

import pytest

from rooflab.units import binary, human


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
        (1e-16, "s", "0 ns"),
        (0.5, "MAC", "0.5 MAC"),
        (8.58e9, "MAC", "8.58 GMAC"),
        (1, "B", "1 B"),
        (917504, "B", "918 kB"),
        (8, "launches", "8 launches"),
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
