"""Ops along rows whose length is no multiple of a vector, and that begin anywhere: narrow, wide and very long ones."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close

# Some roundings of numbers of up to four or so; in float32 also those of sums over 12,001 elements.
ALLOWED = {"float64": 1e-11, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
EPS = 1e-5
# A few lanes of a warp have a row, a block has it with 8 or 16 elements for each thread, or several blocks share it.
SHAPES = ((70, 3), (9, 33), (150, 1001), (3, 4099), (5, 8193), (40, 12001))


def normalised(x, weight, bias, centred):
    """The normal form of each row, the same with weight and bias, and the scale that makes it."""
    x = x - x.mean(1, keepdims=True) if centred else x
    scale = 1 / np.sqrt((x * x).mean(1, keepdims=True) + EPS)
    return x * scale, x * scale * weight + bias, scale


def operands(shape, left_out, dtype, device, seed=0):
    """Rows that begin `left_out` elements after the one before has ended, in `dtype` and exactly."""
    rng = np.random.default_rng(seed)
    own = [
        rl.tensor(rng.standard_normal(size) + 0.5, dtype=dtype, device=device)
        for size in ((shape[0], shape[1] + left_out), (shape[0], shape[1] + left_out), shape[1:], shape[1:])
    ]
    own[:2] = [rows[:, left_out:] for rows in own[:2]]
    return own, [given.to("float64").cpu().numpy() for given in own]


@pytest.mark.parametrize("dtype", ALLOWED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("left_out", [0, 1])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_norms(name, shape, left_out, dtype, device):
    (x, _, weight, bias), (exact, _, gain, offset) = operands(shape, left_out, dtype, device)
    centred = name == "layer_norm"
    y = rl.layer_norm(x, weight, bias, EPS) if centred else rl.rms_norm(x, weight, EPS)
    right = normalised(exact, gain, offset if centred else 0, centred)[1]
    assert_close(y, right, rtol=ALLOWED[dtype], atol=ALLOWED[dtype])
    plain = rl.layer_norm(x, eps=EPS) if centred else rl.rms_norm(x, eps=EPS)
    assert_close(plain, normalised(exact, 1, 0, centred)[1], rtol=ALLOWED[dtype], atol=ALLOWED[dtype])


# A thread has 8, 12, 16, 24 or 32 elements of a warp's row, or 16 of a block's; of few rows, 8 of a block's.
DIVIDED = ((1536, 200), (1536, 333), (1536, 501), (1536, 700), (1536, 1001), (1536, 1537), (40, 700), (40, 4097))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", DIVIDED, ids=str)
def test_how_elements_of_rows_are_divided(shape, dtype):
    (x, slopes, weight, bias), (exact, dy, gain, offset) = operands(shape, 0, dtype, "cuda")
    rung, allowed = "v2a_any_alignment", ALLOWED[dtype]
    found = rl.rms_norm(x, weight, EPS, variant=rung), rl.layer_norm(x, weight, bias, EPS, variant=rung)
    for y, centred in zip(found, (False, True), strict=True):
        right = normalised(exact, gain, offset if centred else 0, centred)[1]
        assert_close(y, right, rtol=allowed, atol=allowed)
    y = rl.softmax(x, variant=rung)
    powers = np.exp(exact)
    assert_close(y, powers / powers.sum(1, keepdims=True), rtol=allowed, atol=allowed / shape[1])
    of_y = y.to("float64").cpu().numpy()
    right = of_y * (dy - (dy * of_y).sum(1, keepdims=True))
    dx = rl.softmax_backward(slopes, y, variant=rung)
    assert_close(dx, right, rtol=allowed, atol=4 * allowed * of_y.max() + 6e-8 * (dtype == "float16"))


@pytest.mark.parametrize("dtype", ALLOWED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("left_out", [0, 1])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_gradients_of_norms(name, shape, left_out, dtype, device):
    given, exact = operands(shape, left_out, dtype, device)
    (x, slopes, weight, bias), (x_, dy, gain, offset) = given, exact
    centred = name == "layer_norm"
    leaves = [x.detach(), weight, bias] if centred else [x.detach(), weight]
    for leaf in leaves:
        leaf.requires_grad = True
    (rl.layer_norm(*leaves, EPS) if centred else rl.rms_norm(*leaves, EPS)).backward(slopes)
    normal, _, scale = normalised(x_, gain, offset, centred)
    dn = dy * gain
    along = (dn * normal).mean(1, keepdims=True)
    dx = (dn - normal * along - (dn.mean(1, keepdims=True) if centred else 0)) * scale
    allowed = ALLOWED[dtype]
    # What is subtracted is as large as dn, and the difference is multiplied by the scale.
    assert_close(leaves[0].grad, dx, rtol=allowed, atol=allowed * max(1, scale.max()))
    rows = shape[0] ** 0.5
    assert_close(leaves[1].grad, (dy * normal).sum(0), rtol=allowed, atol=allowed * rows)
    if centred:
        assert_close(leaves[2].grad, dy.sum(0), rtol=allowed, atol=allowed * rows)


@pytest.mark.parametrize("dtype", ALLOWED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("left_out", [0, 1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradient_of_softmax(name, shape, left_out, dtype, device):
    (x, slopes, _, _), _ = operands(shape, left_out, dtype, device)
    x = x.detach()
    x.requires_grad = True
    y = getattr(rl, name)(x, 1)
    y.backward(slopes)
    result, dy = (given.detach().to("float64").cpu().numpy() for given in (y, slopes))
    summed = dy.sum(1, keepdims=True) if name == "log_softmax" else (dy * result).sum(1, keepdims=True)
    right = dy - np.exp(result) * summed if name == "log_softmax" else result * (dy - summed)
    # Nearly equal numbers are subtracted, and then multiplied by a probability; float16 has few digits of a small one.
    largest, smallest = (1, 0) if name == "log_softmax" else (result.max(), 6e-8 * (dtype == "float16"))
    assert_close(x.grad, right, rtol=ALLOWED[dtype], atol=4 * ALLOWED[dtype] * largest + smallest)
