"""Gradients of every op of rooflab.specs: central differences in float64, and the other dtypes against float64."""

import functools

import numpy as np
import pytest
from ops.samples import as_tuple, read_only

import rooflab as rl
from rooflab.specs import all_specs, unit_roundoff
from rooflab.testing import assert_close, to_float64

SPECS = {name: spec for name, spec in all_specs().items() if spec.differentiable}
STEP = 1e-6
# By how many roundings of the dtype a rule may be off. In 16 bits each op rounds once, and the longest rule, softmax's,
# has five ops after the result that it reads, whose terms cancel. In float32 exponentials and sums add several more.
ROUNDINGS = {"float64": 24, "float32": 24, "float16": 12, "bfloat16": 12}
SMALLEST = {"float64": 0.0, "float32": 2.0**-126, "float16": 2.0**-24, "bfloat16": 2.0**-126}


@functools.cache
def samples_of(name):
    """The samples of an op that has gradients, made once."""
    return read_only(SPECS[name].differentiable(np.random.default_rng(0)))


def cases(dtypes):
    for name, spec in SPECS.items():
        for dtype in dtypes(spec):
            for i, sample in enumerate(samples_of(name)):
                yield pytest.param(name, dtype, i, id=f"{name}-{dtype}-{sample.label}")


def best_dtype(spec):
    return "float64" if "float64" in spec.dtypes else "float32"


def is_differentiable(operand):
    return isinstance(operand, np.ndarray) and operand.dtype == np.float64


def to_tensors(sample, dtype, device, layout="contiguous"):
    """The sample's operands; floating-point ones are leaves that require grad."""
    operands = []
    for operand in sample.args:
        if is_differentiable(operand):
            leaf = rl.tensor(operand, dtype=dtype, device=device)
            if layout == "transposed" and leaf.ndim >= 2:
                leaf = leaf.transpose(-1, -2).clone().transpose(-1, -2)
            operand = leaf.requires_grad_(leaf.dtype.is_floating_point)
        elif isinstance(operand, np.ndarray):
            operand = rl.tensor(operand, device=device)
        operands.append(operand)
    return operands


def gradients(spec, sample, operands, dy):
    """The result, and the gradient of each operand that requires one."""
    result = as_tuple(spec.fn(*operands, **sample.kwargs))[0]
    result.backward(rl.tensor(dy, dtype=result.dtype, device=result.device))
    return to_float64(result), [x.grad for x in operands if isinstance(x, rl.Tensor) and x.requires_grad]


def cotangent(spec, sample, rng):
    with np.errstate(all="ignore"):
        shape = np.shape(as_tuple(spec.reference(*sample.args, **sample.kwargs))[0])
    return rng.uniform(-1, 1, shape)


def largest_term(x, y, dy, gradient):
    """The largest gradient, or the one that y proportional to x would have, because terms of that size may cancel."""
    terms = np.abs(dy * y) / (np.abs(x) + 0.1) if x.shape == y.shape else gradient
    return max(np.abs(gradient).max(initial=0), np.abs(terms).max(initial=0))


def directions(x, rng):
    """Ways to move x, in proportion to its elements: all of them at once, then a few at a time."""
    scale = np.where(np.isfinite(x), np.abs(x) + 0.1, 0) * rng.choice((-1.0, 1.0), x.shape)
    yield scale
    for _ in range(4):
        few = np.zeros(x.size)
        few[rng.integers(0, x.size, 5)] = 1
        yield scale * few.reshape(x.shape)


def check_by_differences(spec, sample, exact, gradient, dy, position, dtype, rng):
    """Compare the gradient along each direction with differences of the reference."""
    for v in directions(exact[position], rng):
        moved = []
        for sign in (1, -1):
            operands = [x + sign * STEP * v if i == position else x for i, x in enumerate(exact)]
            with np.errstate(all="ignore"):
                moved.append(np.nan_to_num(as_tuple(spec.reference(*operands, **sample.kwargs))[0]))
        change = dy * (moved[0] - moved[1])
        expected = change.sum() / (2 * STEP)
        lost = 4 * unit_roundoff("float64") * np.abs(dy * moved[0])[change != 0].sum() / STEP
        terms = np.abs(gradient * v).sum()
        rounding = ROUNDINGS[dtype] * unit_roundoff(dtype) * (terms + np.abs(dy).max(initial=0) * np.abs(v).sum())
        assert abs((gradient * v).sum() - expected) <= lost + 1e-6 * terms + rounding


def terms_of_softmax(y, dy):
    """What y (dy - sum(dy y)) is a difference of, by element: where a weight is nearly 1 they cancel, whatever x is."""
    return np.abs(y) * (np.abs(dy) + np.abs(dy * y).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize(("name", "dtype", "index"), list(cases(lambda spec: (best_dtype(spec),))))
def test_agrees_with_central_differences(name, dtype, index, device):
    spec, rng = SPECS[name], np.random.default_rng(1)
    sample = samples_of(name)[index]
    operands = to_tensors(sample, dtype, device)
    exact = [
        to_float64(x) if isinstance(x, rl.Tensor) and x.requires_grad else a
        for x, a in zip(operands, sample.args, strict=True)
    ]
    dy = to_float64(rl.tensor(cotangent(spec, sample, rng), dtype=dtype))
    found = iter(gradients(spec, sample, operands, dy)[1])
    for position, operand in enumerate(operands):
        if not (isinstance(operand, rl.Tensor) and operand.requires_grad):
            continue
        gradient = next(found)
        assert (gradient.shape, gradient.dtype, gradient.device) == (operand.shape, operand.dtype, operand.device)
        if operand.numel():
            check_by_differences(spec, sample, exact, to_float64(gradient), dy, position, dtype, rng)


@pytest.mark.slow(device=["cpu"], but_every=3)
@pytest.mark.slow(device=["cpu"], dtype=["float16"])
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
@pytest.mark.parametrize(
    ("name", "dtype", "index"),
    list(cases(lambda spec: [d for d in ("float32", "float16", "bfloat16") if d in spec.dtypes])),
)
def test_other_dtypes_agree_with_the_best(name, dtype, index, layout, device):
    spec = SPECS[name]
    sample = samples_of(name)[index]
    operands = to_tensors(sample, dtype, device, layout)
    exact = type(sample)(
        sample.label,
        tuple(to_float64(x) if is_differentiable(a) else a for x, a in zip(operands, sample.args, strict=True)),
        sample.kwargs,
    )
    dy = cotangent(spec, sample, np.random.default_rng(1))
    dy = to_float64(rl.tensor(dy, dtype=as_tuple(spec.result_dtype(dtype))[0]))
    y, expected = gradients(spec, exact, to_tensors(exact, best_dtype(spec), device), dy)
    _, found = gradients(spec, sample, operands, dy)
    leaves = [a for a in exact.args if is_differentiable(a)]
    for x, right, gradient in zip(leaves, expected, found, strict=True):
        tolerance = ROUNDINGS[dtype] * unit_roundoff(dtype)
        terms = largest_term(x, y, dy, to_float64(right))
        if name == "softmax":
            terms = np.maximum(terms, terms_of_softmax(y, dy))
        atol = SMALLEST[dtype] + tolerance * terms
        assert gradient.dtype == dtype
        assert_close(gradient, right, rtol=tolerance, atol=atol, name=f"gradient of {name}")


@pytest.mark.parametrize("name", sorted(set(all_specs()) - set(SPECS)))
def test_the_others_record_nothing(name):
    spec = all_specs()[name]
    sample = next(iter(spec.samples(np.random.default_rng(0))))
    dtype = next(d for d in spec.dtypes if d not in spec.composed_dtypes)
    operands = to_tensors(sample, dtype, "cpu")
    if spec.prepare:
        operands = spec.prepare(*operands, **sample.kwargs)
    assert not any(y.requires_grad for y in as_tuple(spec.fn(*operands, **sample.kwargs)))
