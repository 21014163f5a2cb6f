"""Every op of rooflab.specs: device x dtype x variant x layout against the float64 reference, and its exact cost."""

import numpy as np
import pytest
from ops.samples import LAYOUTS, SPECS, accepts_nothing, as_tuple, cases, lay_out, nth_sample, prepared, rungs

import rooflab as rl
from rooflab.testing import assert_close, to_float64


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "dtype", "index"), list(cases()))
def test_matches_reference(name, dtype, index, layout, device):
    spec, sample = SPECS[name], nth_sample(SPECS[name], index)
    tensors = [lay_out(a, dtype, device, layout) if isinstance(a, np.ndarray) else a for a in sample.args]
    exact = [to_float64(t) if isinstance(t, rl.Tensor) else t for t in tensors]
    with np.errstate(all="ignore"):
        expected = spec.reference(*exact, **sample.kwargs)
    rtol, atol = spec.tolerance(dtype, sample)
    operands = prepared(spec, tensors, sample)
    ran = 0
    for variant in ["", *rungs(spec, device)]:
        options = {"variant": variant} if variant else {}
        try:
            results = as_tuple(spec.fn(*operands, **sample.kwargs, **options))
        except ValueError as error:
            if not variant or not accepts_nothing(error):
                raise
            continue
        ran += 1
        dtypes = as_tuple(spec.result_dtype(dtype)) * len(results)
        for i, (result, right) in enumerate(zip(results, as_tuple(expected), strict=True)):
            assert result.dtype == dtypes[i], variant
            assert result.device.startswith(device)
            assert_close(result, right, rtol=rtol, atol=atol, name=f"{name} {variant or 'default'} result {i}")
    assert ran >= 1
    for tensor, before in zip(tensors, exact, strict=True):
        if isinstance(tensor, rl.Tensor):
            assert_close(tensor, before, rtol=0, atol=0, name=f"{name} wrote into its input:")


@pytest.mark.parametrize(("name", "dtype", "index"), list(cases()))
def test_cost_is_counted_exactly(name, dtype, index, device):
    spec, sample = SPECS[name], nth_sample(SPECS[name], index)
    tensors = [lay_out(a, dtype, device, "contiguous") if isinstance(a, np.ndarray) else a for a in sample.args]
    operands = prepared(spec, tensors, sample)
    with rl.count() as counted:
        results = as_tuple(spec.fn(*operands, **sample.kwargs))
    cost = spec.cost(sample, dtype)
    seen = rl.Cost(
        macs=counted.macs,
        flops=counted.flops,
        bytes_read=counted.bytes_read,
        bytes_written=counted.bytes_written,
    )
    assert seen == cost
    assert counted.ops == 1
    assert (counted.launches > 0) == any(result.numel() for result in results)
    assert counted.host_calls >= counted.launches
    held = sum(result.nbytes for result in results)
    assert counted.bytes_allocated >= counted.peak_bytes >= held


@pytest.mark.parametrize("name", SPECS)
def test_samples_tell_right_from_wrong(name):
    """A result that is off by twice the tolerance everywhere, or shuffled, must be noticed."""
    spec = SPECS[name]
    dtype = spec.dtypes[0]
    seen = False
    for sample in spec.samples(np.random.default_rng(0)):
        with np.errstate(all="ignore"):
            references = as_tuple(spec.reference(*sample.args, **sample.kwargs))
        expected = np.concatenate([np.asarray(r, dtype=np.float64).ravel() for r in references])
        finite = np.isfinite(expected)
        if not finite.any():
            continue
        seen = True
        rtol, atol = spec.tolerance(dtype, sample)
        wrong = expected.copy()
        wrong[finite] += 2 * (atol + rtol * np.abs(expected[finite])) + np.spacing(np.abs(expected[finite]))
        if spec.result_dtype(dtype) == "bool":
            wrong = 1 - expected
        with pytest.raises(AssertionError):
            assert_close(wrong, expected, rtol=rtol, atol=atol)
    assert seen


def test_every_ladder_is_described():
    assert set(rl.ops()) <= set(SPECS) | {"random", "attention_mask"}


@pytest.mark.parametrize("op", rl.ops())
def test_ladder_ends_with_its_reference(op):
    for device in {variant.device for variant in rl.variants(op)}:
        names = [variant.name for variant in rl.variants(op, device)]
        assert names[-1].startswith("v0_")
        assert len(set(names)) == len(names)
        assert all(variant.idea for variant in rl.variants(op, device))


def test_unknown_variant_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"\[gelu\] variant: expected one of .*v0_reference.*got \"fastest\""):
        rl.gelu(rl.ones(3), variant="fastest")
