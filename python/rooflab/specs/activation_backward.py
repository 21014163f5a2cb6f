"""gelu_backward, silu_backward, geglu_backward and swiglu_backward: gradients of activations, gated ones too."""

import functools

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, itemsize, unit_roundoff
from ._tiles import ACTIVATION_BACKWARD, around, tile
from .softmax import BENCH_SHAPES, SMALLEST, with_outliers

SHAPES = ((1,), (5, 3), (2, 3, 17), (37, 64), (3, 1000), (2, 4097), (0, 8), (4, 0))
_CUBIC = 0.044715
_SCALE = 2 * np.sqrt(2 / np.pi)
_LAST = 2.0**-117  # what may be left of a slope, for dy = 1, beyond the range in which rungs tell s from 0


def _sigmoid(u):
    with np.errstate(invalid="ignore"):
        return np.exp(-np.logaddexp(0, -u))


def _gelu_parts(a):
    """s, 1 - s and u'."""
    u = _SCALE * (a + _CUBIC * a**3)
    return _sigmoid(u), _sigmoid(-u), _SCALE * (1 + 3 * _CUBIC * a * a)


def _silu_parts(a):
    return _sigmoid(a), _sigmoid(-a), np.ones_like(a)


def _reference(dy, a, b=None, *, parts):
    s, rest, inner = parts(a)
    da = dy * s * (1 + a * rest * inner)
    return da if b is None else (da * b, dy * a * s)


def _samples(rng, *, operands):
    for shape in SHAPES:
        arrays = [rng.standard_normal(shape), with_outliers(rng, *shape), rng.standard_normal(shape)]
        yield Sample("x".join(map(str, shape)), tuple(arrays[:operands]))
    a = np.linspace(-100, 100, 72).reshape(3, 24)
    a[1, 5] = np.nan
    yield Sample("far-nan", (rng.standard_normal(a.shape), a, rng.standard_normal(a.shape))[:operands])


def _tails(rng, *, operands):
    for size in around(16, 32, tile(ACTIVATION_BACKWARD, "kChunk"), 128 * 8):
        yield Sample(str(size), tuple(rng.standard_normal((operands, size))))
    for size in around(tile(ACTIVATION_BACKWARD, "kChunk")):
        yield Sample(f"17x{size}", tuple(rng.standard_normal((operands, 17, size))))


def _tolerance(dtype, sample, *, parts, roundings=0):
    """s has the error of its exponential, whose argument u carries four roundings; the rest adds up.

    Rules made of ops also round the slope and dy b, and lose the digits of 1 - s where s is nearly 1.
    """
    dy, a, *b = sample.args
    u, small = accumulator_roundoff(dtype), max(SMALLEST[dtype], _LAST)
    s, rest, inner = parts(a)
    growth = np.minimum(np.abs(np.log(np.maximum(s, 1e-300)) - np.log(np.maximum(rest, 1e-300))), 110)
    terms = s * (1 + np.abs(a) * rest * inner)
    lost = s * np.minimum(np.abs(a), 12) * np.minimum(inner, 30) if roundings else 0.0
    slope = (12 + 4 * growth) * u * terms + 8 * u * lost + roundings * unit_roundoff(dtype) * terms
    of_a = np.abs(dy * b[0]) if b else np.abs(dy)
    atol = np.nan_to_num(of_a * slope) + small * (1 + of_a)
    if not b:
        return 2 * unit_roundoff(dtype), np.nan_to_num(atol)
    of_b = (12 + 4 * growth + (4 if roundings else 0)) * u * np.abs(dy * a) * s + small * (1 + np.abs(dy))
    return 2 * unit_roundoff(dtype), (np.nan_to_num(atol), np.nan_to_num(of_b))


def _cost(sample, dtype, *, flops):
    size, width, operands = sample.args[1].size, itemsize(dtype), len(sample.args)
    return _core.Cost(
        flops=flops * size, bytes_read=operands * size * width, bytes_written=(operands - 1) * size * width
    )


# The ladder is the same with and without a gate: its table shows one of each.
_TABLES = {"cuda": ("16384x4096 bfloat16", "16384x4096 float32")}


def _bench(*, operands):
    for rows, d in BENCH_SHAPES:
        for dtype in ("bfloat16", "float32"):
            yield f"{rows}x{d}", dtype, ((rows, d),) * operands, {}


def _spec(name, parts, flops, operands):
    return OpSpec(
        name=name,
        fn=getattr(_core, name),
        samples=functools.partial(_samples, operands=operands),
        reference=functools.partial(_reference, parts=parts),
        cost=functools.partial(_cost, flops=flops),
        tolerance=functools.partial(_tolerance, parts=parts),
        composed_tolerance=functools.partial(_tolerance, parts=parts, roundings=3),
        composed_dtypes=("float64",),
        tails=functools.partial(_tails, operands=operands),
        bench=functools.partial(_bench, operands=operands),
        tables=_TABLES if name in ("gelu_backward", "swiglu_backward") else {},
    )


SPECS = [
    _spec("gelu_backward", _gelu_parts, 13, 2),
    _spec("silu_backward", _silu_parts, 6, 2),
    _spec("geglu_backward", _gelu_parts, 16, 3),
    _spec("swiglu_backward", _silu_parts, 9, 3),
]
