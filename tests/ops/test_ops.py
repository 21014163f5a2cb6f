"""Every op of rooflab.specs: device x dtype x variant x layout against the float64 reference, and the exact cost."""

import pytest
from ops.samples import LAYOUTS, SPECS, Expected, as_tuple, cases, dtypes_of_ops, prepared, samples_of, tensors_of

import rooflab as rl


@pytest.mark.slow(device=["cpu"], dtype=["float16"])
@pytest.mark.parametrize(("name", "dtype", "index"), list(cases()))
def test_matches_reference(name, dtype, index, device):
    expected = Expected(SPECS[name], dtype, samples_of(name)[index])
    for layout in LAYOUTS:
        expected.check(device, layout)


@pytest.mark.parametrize(("name", "dtype"), dtypes_of_ops())
def test_cost_is_counted_exactly(name, dtype, device):
    spec = SPECS[name]
    for sample in samples_of(name):
        operands = prepared(spec, tensors_of(sample, dtype, device), sample)
        with rl.count() as counted:
            results = as_tuple(spec.fn(*operands, **sample.kwargs))
        cost = spec.cost(sample, dtype)
        seen = rl.Cost(
            macs=counted.macs,
            flops=counted.flops,
            bytes_read=counted.bytes_read,
            bytes_written=counted.bytes_written,
        )
        assert seen == cost or dtype in spec.composed_dtypes, sample.label
        assert counted.ops == 1, sample.label
        assert (counted.launches > 0) == any(result.numel() for result in results), sample.label
        assert counted.host_calls >= counted.launches, sample.label
        held = sum(result.nbytes for result in results)
        assert counted.bytes_allocated >= counted.peak_bytes >= held, sample.label


def test_every_ladder_is_described():
    with_tests_of_their_own = (
        "arange linspace random attention_mask attention_repair kv_append gemma3_decode rms_norm_rope_append adamw "
        "matmul_bias matmul_float32 nonzero index_put scatter searchsorted ravel_index sum_squares scale_tensors"
    )
    assert set(rl.ops()) <= set(SPECS) | set(with_tests_of_their_own.split())


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
