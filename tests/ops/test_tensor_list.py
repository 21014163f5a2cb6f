"""_sum_squares and _scale_tensors, which take many tensors in one launch: every rung, cost, launches and refusals."""

import numpy as np
import pytest

import rooflab as rl
from rooflab._core import _scale_tensors, _sum_squares
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

SIZES = [1, 17, 4096, 4097, 16385, 70001]
FLOATS = ["float64", "float32", "float16", "bfloat16"]


def drawn(sizes, dtype, device):
    rng = np.random.default_rng(0)
    return [rl.tensor(rng.standard_normal(size), dtype=dtype, device=device) for size in sizes]


def rungs(op, device):
    return ["", *(rung.name for rung in rl.variants(op, device))]


def number(x, device="cpu"):
    return rl.tensor(x, dtype="float64", device=device)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_rung_sums_the_squares(dtype, device):
    tensors = drawn(SIZES, dtype, device)
    right = sum((to_float64(x) ** 2).sum() for x in tensors)
    for variant in rungs("sum_squares", device):
        found = _sum_squares(tensors, variant)
        assert found.dtype == "float64" and found.shape == ()
        assert_close(found, right, rtol=1e-12, name=variant)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_rung_scales(dtype, device):
    for variant in rungs("scale_tensors", device):
        tensors = drawn(SIZES, dtype, device)
        right = [to_float64(x) * 0.3 for x in tensors]
        _scale_tensors(tensors, number(0.3, device), variant)
        for x, exact in zip(tensors, right, strict=True):
            assert_close(x, exact, rtol=3 * unit_roundoff(dtype), name=variant)


@pytest.mark.parametrize("count", [192, 193, 500])
def test_launches_take_192_tensors(count, device):
    tensors = drawn([1 + i % 7 for i in range(count)], "float32", device)
    right = sum((to_float64(x) ** 2).sum() for x in tensors)
    launches = -(-count // 192)
    with rl.count() as summed:
        found = _sum_squares(tensors)
    assert summed.launches == launches * (1 if device == "cpu" else 2)
    assert_close(found, right, rtol=1e-12)
    factor = number(2.0, device)
    with rl.count() as scaled:
        _scale_tensors(tensors, factor)
    assert scaled.launches == launches
    assert_close(_sum_squares(tensors), 4 * right, rtol=1e-12)


def test_cost(device):
    tensors = drawn([10, 30], "float32", device)
    with rl.count() as summed:
        _sum_squares(tensors)
    assert (summed.flops, summed.bytes_read, summed.bytes_written) == (80, 160, 8)
    factor = number(2.0, device)
    with rl.count() as scaled:
        _scale_tensors(tensors, factor)
    assert (scaled.flops, scaled.bytes_read, scaled.bytes_written) == (40, 168, 160)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scratch_is_counted_without_numbers(dtype):
    tensors = [rl.empty(size, dtype=dtype, device="meta:H200") for size in (1, 100_000)]
    with rl.count() as c:
        _sum_squares(tensors)
    pieces = 1 + -(-100_000 * tensors[0].itemsize // 32768)
    assert c.launches == 2 and c.peak_bytes == 8 + 8 * pieces


VIEWS = {
    "transposed": lambda x: x.reshape(4, 6).T,
    "every other column": lambda x: x.reshape(4, 6)[:, ::2],
    "rows": lambda x: x.reshape(4, 6)[1:3],
    "unaligned": lambda x: x[1:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_of_any_layout(view, device):
    x = drawn([24], "float32", device)[0]
    before = to_float64(x)
    assert_close(_sum_squares([view(x)]), (view(before) ** 2).sum(), rtol=1e-12)
    right = before.copy()
    view(right)[...] *= 2
    _scale_tensors([view(x)], number(2.0, device))
    assert to_float64(x).tolist() == right.tolist()


def test_tensors_that_share_elements_are_scaled_one_after_the_other(device):
    x = rl.ones(100_000, device=device)
    _scale_tensors([x, x[50_000:]], number(3.0, device))
    assert x[:50_000].tolist() == [3.0] * 50_000 and x[50_000:].tolist() == [9.0] * 50_000


def test_empty_tensors_change_nothing(device):
    none, one = rl.zeros(0, device=device), rl.full((1,), 3.0, device=device)
    assert _sum_squares([none]).item() == 0 and _sum_squares([none, one, none]).item() == 9
    _scale_tensors([none], number(2.0, device))
    _scale_tensors([none, one], number(2.0, device))
    assert one.tolist() == [6.0]


def test_a_write_is_noticed(device):
    x = rl.ones(3, device=device, requires_grad=True)
    y = x * 1.0
    z = (y * y).sum()
    with rl.no_grad():
        _scale_tensors([y.detach()], number(2.0, device))
    with pytest.raises(ValueError, match="changed in place"):
        z.backward()


def test_refusals(device):
    x, half = rl.ones(3, device=device), rl.ones(3, dtype="bfloat16", device=device)
    with pytest.raises(ValueError, match=r"\[sum_squares\] tensors: expected at least one"):
        _sum_squares([])
    with pytest.raises(ValueError, match=r"\[sum_squares\] .*float32.*bfloat16"):
        _sum_squares([x, half])
    with pytest.raises(ValueError, match=r"\[sum_squares\] tensors: .*int64"):
        _sum_squares([rl.ones(2, dtype="int64", device=device)])
    with pytest.raises(ValueError, match=r"\[scale_tensors\] factor: expected float64 \(\), got float32 \(\)"):
        _scale_tensors([x], rl.tensor(2.0, device=device))
    with pytest.raises(ValueError, match=r"\[scale_tensors\] destination: an expanded tensor"):
        _scale_tensors([rl.ones(1, device=device).expand(3)], number(2.0, device))
    with pytest.raises(ValueError, match=r"\[scale_tensors\]"):
        _scale_tensors([rl.ones(3, requires_grad=True, device=device)], number(2.0, device))
