"""Every function made of ops, against NumPy: values in every dtype, gradients, counts on tensors without memory."""

from dataclasses import replace

import numpy as np
import pytest
from nn.cases import CASES

import rooflab as rl
from rooflab.specs import FLOATING, INTEGER, unit_roundoff
from rooflab.testing import assert_close, to_float64


def scale_of(*arrays):
    """The largest finite magnitude, for errors of sums whose terms cancel."""
    return max(float(np.abs(np.where(np.isfinite(a), a, 0)).max(initial=1.0)) for a in arrays)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("name", CASES)
def test_values(name, dtype, device):
    case = CASES[name]
    tensors = case.tensors(dtype, device)
    exact = [to_float64(t) if a.dtype == np.float64 else a for t, a in zip(tensors, case.arrays, strict=True)]
    with np.errstate(all="ignore"):
        expected = np.asarray(case.reference(*exact))
    result = case.call(*tensors)
    assert result.dtype == (case.result_dtype or dtype)
    if result.dtype == "bool":
        return assert_close(result, expected, rtol=0, atol=0)
    # One rounding to the dtype, and one before it where two ops round. Sums err in the dtype of the computation.
    steps = unit_roundoff(dtype) if name.startswith(("linear", "einsum")) else 0.0
    wide = unit_roundoff("float64" if dtype == "float64" else "float32")
    atol = steps * scale_of(expected) + 64 * wide * scale_of(expected, *exact)
    assert_close(result, expected, rtol=1.01 * unit_roundoff(dtype), atol=atol)


TAKE_INTEGERS = ("all", "any", "is", "clamp", "stack", "split", "chunk", "repeat_interleave")
# No product of matrices is part of these.
TAKE_INTEGERS += ("einsum bij,bij->bij", "einsum ij,kl", "einsum bij->", "einsum ij,k->i")


@pytest.mark.parametrize("dtype", INTEGER)
@pytest.mark.parametrize("name", CASES)
def test_integers_are_exact_or_refused(name, dtype, device):
    case = CASES[name]
    whole = [np.round(9 * np.where(np.isfinite(a), a, 0)) if a.dtype == np.float64 else a for a in case.arrays]
    case = replace(case, arrays=tuple(whole))
    if not name.startswith(TAKE_INTEGERS):
        with pytest.raises(ValueError, match=f"expected (a floating-point dtype, got|one that) {dtype}"):
            case.call(*case.tensors(dtype, device))
        return
    result = case.call(*case.tensors(dtype, device))
    expected = "float32" if name in ("clamp", "clamp-max") else case.result_dtype or dtype  # their bounds are floats
    assert result.dtype in (expected, "int64")
    assert_close(result, case.reference(*whole), rtol=0, atol=0)


def gradients(case, dtype, device, dy):
    leaves = case.tensors(dtype, device, requires_grad=True)
    y = case.call(*leaves)
    y.backward(rl.tensor(dy, dtype=y.dtype, device=device))
    return [leaf.grad for leaf in leaves if leaf.requires_grad]


DIFFERENTIABLE = [name for name, case in CASES.items() if case.differentiable]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_agree_with_central_differences(name, device):
    case, rng, step = CASES[name], np.random.default_rng(1), 1e-6
    dy = rng.uniform(-1, 1, np.shape(case.reference(*case.arrays)))
    found = iter(gradients(case, "float64", device, dy))
    for position, array in enumerate(case.arrays):
        if array.dtype != np.float64:
            continue
        gradient = to_float64(next(found))
        assert gradient.shape == array.shape
        for _ in range(3):
            v = rng.uniform(-1, 1, array.shape)
            ends = []
            for sign in (1, -1):
                moved = [a + sign * step * v if i == position else a for i, a in enumerate(case.arrays)]
                ends.append((dy * case.reference(*moved)).sum())
            assert (gradient * v).sum() == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_in_other_dtypes(name, dtype, device):
    case = CASES[name]
    rounded = [to_float64(rl.tensor(a, dtype=dtype)) if a.dtype == np.float64 else a for a in case.arrays]
    exact = type(case)(case.name, case.call, case.reference, tuple(rounded))
    dy = np.random.default_rng(1).uniform(-1, 1, np.shape(case.reference(*case.arrays)))
    dy = to_float64(rl.tensor(dy, dtype=dtype))
    for found, right in zip(gradients(exact, dtype, device, dy), gradients(exact, "float64", device, dy), strict=True):
        assert found.dtype == dtype
        right = to_float64(right)
        tolerance = 8 * unit_roundoff(dtype)
        assert_close(found, right, rtol=tolerance, atol=tolerance * scale_of(right), name=name)


@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_the_ops_on_every_device(name, device):
    """Each is made of ops, which do the counting: the same with memory and without, forward and backward."""
    case = CASES[name]

    def counts(on):
        leaves = case.tensors("float32", on, requires_grad=case.differentiable)
        with rl.count() as c:
            y = case.call(*leaves)
            if case.differentiable:
                y.backward(rl.ones(*y.shape, device=on))
        return {
            field: getattr(c, field)
            for field in (
                "ops",
                "launches",
                "flops",
                "macs",
                "bytes_read",
                "bytes_written",
                "allocations",
                "peak_bytes",
            )
            if device == "cpu" or not {"launches", "allocations", "peak_bytes"} & {field} or "matmul" not in c.by_op
        } | {"by_op": sorted(c.by_op)}

    assert counts("meta:cpu" if device == "cpu" else "meta:cuda:0") == counts(device)
