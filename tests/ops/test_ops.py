"""Every op of rooflab.specs: device x dtype x variant x layout against the float64 reference, and its exact cost."""

import numpy as np
import pytest
from ops.samples import LAYOUTS, SPECS, as_tuple, cases, check_rungs, lay_out, nth_sample, prepared

import rooflab as rl


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "dtype", "index"), list(cases()))
def test_matches_reference(name, dtype, index, layout, device):
    spec, sample = SPECS[name], nth_sample(SPECS[name], index)
    check_rungs(spec, dtype, sample, device, layout)


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
