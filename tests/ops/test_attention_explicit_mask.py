"""attention with an explicit mask in every rung: bool or added, any strides; beside causality, windows, kv_length."""

import functools

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import Sample, accumulator_roundoff
from rooflab.specs import attention as spec
from rooflab.testing import assert_close, to_float64

DTYPES = ("float64", "float32", "float16", "bfloat16")

# q's shape, k's and v's shape, keywords
SPLIT = {  # few queries: the keys are split into parts
    "one-query": ((1, 4, 1, 128), (1, 1, 2500, 128), {}),
    "one-query-odd": ((2, 2, 1, 80), (2, 2, 1037, 80), {}),
    "one-query-wide": ((1, 4, 1, 256), (1, 2, 1501, 256), {}),
    "one-part": ((2, 4, 1, 64), (2, 2, 45, 64), {}),
    "few-queries": ((2, 8, 4, 64), (2, 2, 700, 64), {}),
    "few-queries-causal": ((1, 4, 9, 64), (1, 1, 333, 64), {"is_causal": True}),
    "few-queries-window": ((1, 4, 5, 128), (1, 2, 777, 128), {"window": 301}),  # an odd key is the first
    "64-rows": ((1, 2, 32, 128), (1, 1, 515, 128), {}),
    "tiles-of-rows": ((1, 4, 35, 64), (1, 1, 2100, 64), {}),
    "tiles-of-rows-window": ((1, 2, 101, 80), (1, 2, 2151, 80), {"window": 700}),
}
WHOLE = {
    "aligned": ((1, 2, 130, 64), (1, 2, 192, 64), {}),
    "odd": ((1, 3, 133, 80), (1, 3, 277, 80), {}),
    "even": ((1, 4, 70, 128), (1, 2, 90, 128), {}),
    "many-blocks": ((80, 2, 20, 128), (80, 1, 70, 128), {}),  # more than there are multiprocessors
    "many-tiles": ((5, 7, 65, 80), (5, 7, 133, 80), {}),  # more than would be split
    "many-tiles-odd": ((3, 4, 257, 80), (3, 2, 171, 80), {}),  # enough pairs that a bool mask is packed
    "many-tiles-window": ((5, 4, 140, 128), (5, 2, 150, 128), {"is_causal": True, "window": 37}),
    "wide": ((1, 2, 67, 256), (1, 1, 131, 256), {}),
    "causal": ((1, 2, 150, 64), (1, 2, 203, 64), {"is_causal": True}),
    "causal-fewer-keys": ((1, 2, 140, 64), (1, 2, 71, 64), {"is_causal": True}),
    "causal-window": ((1, 2, 200, 128), (1, 1, 200, 128), {"is_causal": True, "window": 37}),
    "window": ((1, 2, 100, 40), (1, 2, 160, 40), {"window": 70}),
    "negative-scale": ((1, 2, 70, 64), (1, 2, 90, 64), {"scale": -0.3}),
}
SHAPES = SPLIT | WHOLE
# The mask's shape, from those of the scores.
BROADCAST = {
    "whole": lambda b, h, l_q, l_kv: (b, h, l_q, l_kv),
    "scores": lambda b, h, l_q, l_kv: (l_q, l_kv),
    "keys": lambda b, h, l_q, l_kv: (b, 1, 1, l_kv),
    "heads": lambda b, h, l_q, l_kv: (h, 1, l_kv),
    "queries": lambda b, h, l_q, l_kv: (l_q, 1),
}


def rungs(on_cpu, on_cuda):
    """(device, variant, dtype) of the CPU's default, and of every rung on a GPU that is there, as test parameters."""
    on_gpu = [*(rung.name for rung in rl.variants("attention") if rung.device == "cuda"), ""]
    return [
        pytest.param(device, variant, dtype, id=f"{device}-{variant or 'default'}-{dtype}", marks=marks)
        for device, variants, dtypes, marks in (("cpu", [""], on_cpu, []), ("cuda", on_gpu, on_cuda, [pytest.mark.gpu]))
        for variant in variants
        for dtype in dtypes
        if device == "cpu" or rl.cuda.is_available()
    ]


def mask_of(rng, shape, is_bool):
    """A mask that hides a third of the pairs; where it has rows of its own, some hide all or none."""
    seen = rng.random(shape) < 0.67
    if shape[-2:-1] not in ((), (1,)) and shape[-1] > 1:
        seen[..., 0, :] = False
        seen[..., shape[-2] // 2, :] = True
    if is_bool:
        return seen
    added = 2 * rng.standard_normal(shape)
    return np.where(seen, added, -np.inf)


@functools.cache
def operands_of(case, dtype):
    """q, k and v of a case in SHAPES, rounded to the dtype."""
    q_shape, kv_shape, _ = SHAPES[case]
    operands = spec.operands(np.random.default_rng(0), q_shape, kv_shape)
    return tuple(to_float64(rl.tensor(x, dtype=dtype)) for x in operands)


@functools.cache
def example(case, broadcast, dtype, is_bool):
    """A mask, and what it leads to."""
    q_shape, kv_shape, keywords = SHAPES[case]
    operands = operands_of(case, dtype)
    mask = mask_of(np.random.default_rng(1), BROADCAST[broadcast](*q_shape[:3], kv_shape[2]), is_bool)
    mask = mask if is_bool else to_float64(rl.tensor(mask, dtype=dtype))
    return mask, Expected(dtype, (*operands, mask), keywords)


class Expected:
    """The float64 reference of rounded operands, and how far results may be from it."""

    def __init__(self, dtype, operands, keywords):
        sample = Sample("", (*operands[:3], operands[3].astype(np.float64)), keywords)
        q, k, _, mask = sample.args
        self.out = spec.SPEC.reference(*sample.args, **keywords)
        self.tolerances = {v: spec.SPEC.allowed(dtype, sample, v)[0] for v in ("", "v0_composed")}
        lse = spec.weights(spec.scores(q, k, mask, **keywords))[1]
        self.blind = np.isneginf(lse)
        self.lse = np.where(self.blind, 0, lse)
        in_scores = spec.score_error(dtype, q, k, keywords.get("scale"))
        in_sums = 8 * k.shape[2] ** 0.5 * accumulator_roundoff(dtype)
        self.lse_error = in_scores + in_sums + 4 * accumulator_roundoff("float32") * (np.abs(self.lse) + 10)

    def check(self, variant, out, lse):
        rtol, atol = self.tolerances["v0_composed" if variant == "v0_composed" else ""]
        assert_close(out, self.out, rtol=rtol, atol=atol)
        out, lse = to_float64(out), to_float64(lse)
        assert not out[self.blind].any(), "a query that sees nothing gets exact zeros"
        assert np.isneginf(lse[self.blind]).all()
        if variant != "v0_composed":  # it rounds scores
            assert_close(np.where(self.blind, 0, lse), self.lse, rtol=0, atol=self.lse_error, name="lse")


def run(variant, *tensors, **keywords):
    try:
        return rl.attention(*tensors, variant=variant, return_lse=True, **keywords)
    except ValueError as error:
        if not variant or "does not accept these operands" not in str(error):
            raise
        pytest.skip(f"{variant} does not take this case")


def tensors_of(operands, dtype, device):
    return tuple(rl.tensor(x, dtype="bool" if x.dtype == bool else dtype, device=device) for x in operands)


@pytest.mark.slow(
    device=["cpu"], case=["64-rows", *(case for case in SHAPES if "tiles" in case), "many-blocks", "causal-window"]
)
@pytest.mark.parametrize("is_bool", [True, False], ids=["bool", "added"])
@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize(("device", "variant", "dtype"), rungs(("bfloat16",), DTYPES))
def test_a_mask_of_any_shape(device, variant, dtype, case, is_bool):
    tensors, keywords = tensors_of(operands_of(case, dtype), dtype, device), SHAPES[case][2]
    for broadcast in BROADCAST:
        mask, expected = example(case, broadcast, dtype, is_bool)
        mask = tensors_of((mask,), dtype, device)
        out, lse = run(variant, *tensors, *mask, **keywords)
        expected.check(variant, out, lse)
        if device == "cuda":
            again, _ = run(variant, *tensors, *mask, **keywords)
            assert_close(again, to_float64(out), rtol=0, atol=0, name="the second run")


# What part of a larger mask is taken: rows begin anywhere, and lie any number of elements apart.
VIEWS = {
    "offset": lambda m, l_q, l_kv: m[:l_q, 1 : l_kv + 1],
    "offset-of-16": lambda m, l_q, l_kv: m[1 : l_q + 1, 16 : l_kv + 16],
    "every-second-row": lambda m, l_q, l_kv: m[: 2 * l_q : 2, 3 : l_kv + 3],
    "every-second-key": lambda m, l_q, l_kv: m[:l_q, : 2 * l_kv : 2],
    "transposed": lambda m, l_q, l_kv: m.transpose(0, 1)[:l_q, :l_kv],
    "repeated-row": lambda m, l_q, l_kv: m[5:6, 7 : l_kv + 7].expand(l_q, l_kv),
}


@pytest.mark.parametrize("is_bool", [True, False], ids=["bool", "added"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("case", ["few-queries", "few-queries-window", "aligned", "odd", "causal", "wide"])
@pytest.mark.parametrize(("device", "variant", "dtype"), rungs((), ("float32", "bfloat16")))
def test_a_mask_that_is_a_view(device, variant, dtype, case, view, is_bool):
    q_shape, kv_shape, keywords = SHAPES[case]
    operands = operands_of(case, dtype)
    side = 2 * max(q_shape[2], kv_shape[2]) + 16
    whole = tensors_of((mask_of(np.random.default_rng(1), (side, side), is_bool),), dtype, device)[0]
    mask = VIEWS[view](whole, q_shape[2], kv_shape[2])
    assert tuple(mask.shape) == (q_shape[2], kv_shape[2])
    out, lse = run(variant, *tensors_of(operands, dtype, device), mask, **keywords)
    Expected(dtype, (*operands, to_float64(mask)), keywords).check(variant, out, lse)


@pytest.mark.parametrize("is_bool", [True, False], ids=["bool", "added"])
@pytest.mark.parametrize("case", ["one-query-odd", "few-queries", "odd"])
@pytest.mark.parametrize(("device", "variant", "dtype"), rungs(("bfloat16",), DTYPES))
def test_a_mask_ends_where_the_keys_that_are_held_end(device, variant, dtype, case, is_bool):
    operands = operands_of(case, dtype)
    tensors = tensors_of(operands, dtype, device)
    mask, _ = example(case, "scores", dtype, is_bool)
    for length in (0, 1, 63, 64, 200, mask.shape[1] - 1, 9999):
        held = rl.tensor([length], device=device)
        out, lse = run(variant, *tensors, *tensors_of((mask,), dtype, device), kv_length=held)
        if length == 0:
            assert not to_float64(out).any() and np.isneginf(to_float64(lse)).all()
            continue
        q, k, v = operands
        seen = (q, k[:, :, :length], v[:, :, :length], mask[:, :length])
        Expected(dtype, seen, {}).check(variant, out, lse)
