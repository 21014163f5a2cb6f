"""The calls that tests of every op make: each sample of each op of rooflab.specs, as tensors of every layout."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import all_specs

SPECS = all_specs()
LAYOUTS = ("contiguous", "transposed", "strided")


def cases():
    for name, spec in SPECS.items():
        for dtype in spec.dtypes:
            for i, sample in enumerate(spec.samples(np.random.default_rng(0))):
                yield pytest.param(name, dtype, i, id=f"{name}-{dtype}-{sample.label}")


def nth_sample(spec, index):
    for i, sample in enumerate(spec.samples(np.random.default_rng(0))):
        if i == index:
            return sample


def lay_out(array, dtype, device, layout):
    """The array as a tensor whose memory is laid out as asked, with sentinels where no element lies."""
    if array.dtype != np.float64:
        dtype = str(array.dtype)
    with np.errstate(invalid="ignore"):  # NaN to an integer: some number
        tensor = rl.tensor(np.ascontiguousarray(array), dtype=dtype, device=device)
    if layout == "transposed" and array.ndim >= 2:
        axes = (*range(array.ndim - 2), array.ndim - 1, array.ndim - 2)
        return tensor.permute(*axes).clone().permute(*axes)
    if layout == "strided" and array.ndim >= 1:
        room = rl.full(
            (*array.shape[:-1], 2 * array.shape[-1]), 1 if dtype == "bool" else 77, dtype=dtype, device=device
        )
        view = room[..., ::2]
        view.copy_(tensor)
        return view
    return tensor


def rungs(spec, device):
    if spec.name in rl.ops():
        return [variant.name for variant in rl.variants(spec.name, device)]
    return [""]


def prepared(spec, tensors, sample):
    return spec.prepare(*tensors, **sample.kwargs) if spec.prepare else tensors


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def accepts_nothing(error):
    return "does not accept these operands" in str(error)
