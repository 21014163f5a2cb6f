"""Every op of rooflab.specs: device x dtype x variant x layout against the float64 reference, and its exact cost."""

import numpy as np
import pytest
from ops.samples import LAYOUTS, SPECS, Fence, accepts_nothing, as_tuple, cases, lay_out, nth_sample, prepared, rungs

import rooflab as rl
from rooflab.specs import itemsize
from rooflab.testing import assert_close, to_float64


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "dtype", "index"), list(cases()))
def test_matches_reference(name, dtype, index, layout, device):
    spec, sample = SPECS[name], nth_sample(SPECS[name], index)
    tensors = [lay_out(a, dtype, device, layout) if isinstance(a, np.ndarray) else a for a in sample.args]
    exact = [to_float64(t) if isinstance(t, rl.Tensor) else t for t in tensors]
    with np.errstate(all="ignore"):
        expected = as_tuple(spec.reference(*exact, **sample.kwargs))
    sizes = [np.size(right) * itemsize(spec.result_dtype(dtype)) for right in expected]
    operands = prepared(spec, tensors, sample)
    ran, fence = [], Fence(sizes, device)
    for variant in [*rungs(spec, device), ""]:
        options = {"variant": variant} if variant else {}
        label = f"{name} {variant or 'default'}"
        fence.open()
        try:
            results = list(as_tuple(spec.fn(*operands, **sample.kwargs, **options)))
        except ValueError as error:
            if not variant or not accepts_nothing(error):
                raise
            continue
        ran.append(variant)
        # The default is the first rung that takes the operands.
        for i, (right, (rtol, atol)) in enumerate(
            zip(expected, spec.allowed(dtype, sample, variant or ran[0]), strict=True)
        ):
            assert results[i].dtype == spec.result_dtype(dtype), variant
            assert results[i].device.startswith(device)
            assert_close(results[i], right, rtol=rtol, atol=atol, name=f"{label} result {i}")
        fence.check(results, label, "v0_composed" in (variant, ran[0]) or layout != "contiguous")
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
    assert seen == cost or dtype in spec.composed_dtypes
    assert counted.ops == 1
    assert (counted.launches > 0) == any(result.numel() for result in results)
    assert counted.host_calls >= counted.launches
    held = sum(result.nbytes for result in results)
    assert counted.bytes_allocated >= counted.peak_bytes >= held


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
