"""The roofline model against numbers worked out by hand."""

import math
from types import SimpleNamespace

import pytest

from rooflab.roofline import (
    SPECS,
    Point,
    attainable,
    bound,
    fraction_of_roof,
    gemm_intensity,
    gemv_intensity,
    measured_point,
    peak,
    ridge,
    smallest_compute_bound_n,
)


def test_a6000_ridge_and_the_n_that_crosses_it():
    assert ridge("A6000", "float32") == pytest.approx(38.7 / 0.768)
    assert ridge("A6000", "fp32") == pytest.approx(50.390625)
    assert smallest_compute_bound_n("A6000", "float32") == 303
    assert bound("A6000", gemm_intensity(302, 302, 302)) == "memory"
    assert bound("A6000", gemm_intensity(303, 303, 303)) == "compute"


@pytest.mark.parametrize("name", list(SPECS))
def test_smallest_compute_bound_n_is_the_smallest(name):
    for dtype in SPECS[name].peak_tflop_s:
        n = smallest_compute_bound_n(name, dtype)
        assert gemm_intensity(n, n, n, dtype) >= ridge(name, dtype)
        assert n == 1 or gemm_intensity(n - 1, n - 1, n - 1, dtype) < ridge(name, dtype)


@pytest.mark.parametrize("n", [1024, 2048, 4096, 8192])
def test_intensities(n):
    assert gemm_intensity(n, n, n) == pytest.approx(n / 6)
    assert gemm_intensity(n, n, n, "bfloat16") == pytest.approx(n / 3)
    assert gemv_intensity(n) == pytest.approx(2 * n * n / (4 * (n * n + 2 * n)))
    assert gemv_intensity(n) < 0.5


def test_roof_is_the_lower_of_both():
    assert attainable("A6000", 0.5) == pytest.approx(0.384)
    assert attainable("A6000", 1e6) == 38.7
    at_ridge = ridge("A6000", "bf16")
    assert attainable("A6000", at_ridge, "bf16") == pytest.approx(peak("A6000", "bf16"))
    assert bound("A6000", at_ridge, "bf16") == "compute"
    assert bound("A6000", math.nextafter(at_ridge, 0), "bf16") == "memory"


def test_measured_point():
    cost = SimpleNamespace(flops=2 * 512**3, bytes_read=2 * 512 * 512 * 4, bytes_written=512 * 512 * 4)
    timing = SimpleNamespace(median_ms=2.0, p20_ms=1.6, p80_ms=4.0)
    point = measured_point("N=512", cost, timing, series="matmul")
    assert point.intensity == pytest.approx(512 / 6)
    assert point.tflop_s == pytest.approx(2 * 512**3 / 2e-3 / 1e12)
    # A long latency means a low speed.
    assert point.p20_tflop_s == pytest.approx(point.tflop_s / 2)
    assert point.p80_tflop_s == pytest.approx(point.tflop_s * 2 / 1.6)
    assert fraction_of_roof("A6000", point) == pytest.approx(point.tflop_s / 38.7)
    assert fraction_of_roof("A6000", Point("under the bandwidth's roof", 1.0, 0.384)) == pytest.approx(0.5)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), None, "many"])
def test_bad_intensities_name_the_point(bad):
    with pytest.raises(ValueError, match="'bad one'"):
        Point("bad one", bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_speeds_name_the_point(bad):
    with pytest.raises(ValueError, match="'bad one': tflop_s"):
        Point("bad one", 1.0, bad)


def test_bad_points():
    with pytest.raises(ValueError, match="without tflop_s"):
        Point("p", 1.0, None, 0.5, 0.7)
    with pytest.raises(ValueError, match="p20 <= median <= p80"):
        Point("p", 1.0, 1.0, 1.2, 1.4)
    with pytest.raises(ValueError, match="was not measured"):
        fraction_of_roof("A6000", Point("p", 1.0))
    copy = SimpleNamespace(flops=0, bytes_read=8, bytes_written=8)
    with pytest.raises(ValueError, match="'copy': flops"):
        measured_point("copy", copy, SimpleNamespace(median_ms=1.0, p20_ms=1.0, p80_ms=1.0))
    work = SimpleNamespace(flops=8, bytes_read=8, bytes_written=8)
    with pytest.raises(ValueError, match="'work': latency"):
        measured_point("work", work, SimpleNamespace(median_ms=0.0, p20_ms=1.0, p80_ms=1.0))


def test_bad_arguments():
    with pytest.raises(ValueError, match="no bfloat16 peak; it has float32"):
        ridge("T4", "bfloat16")
    with pytest.raises(ValueError, match="expected one of float32"):
        ridge("A6000", "int7")
    with pytest.raises(ValueError, match="known: A6000"):
        ridge("B5000")
    with pytest.raises(ValueError, match="intensity"):
        bound("A6000", -1)
    with pytest.raises(ValueError, match="K: expected"):
        gemm_intensity(1, 1, 0)
