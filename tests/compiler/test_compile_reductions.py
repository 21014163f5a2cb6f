"""rl.compile: what reductions of rows in a chain compute, and what is computed from their results; their gradients."""

import math
import threading

import numpy as np
import pytest
from compiler.functions import chains, check_same, compiled, counted
from compiler.rows import (
    bounds,
    layer_norm,
    loss,
    normed_softmax,
    operands,
    plain_softmax,
    residual_norm,
    rms_norm,
    shifted,
    softmax,
    statistics,
)

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns

RUNGS = ["", "v0_reference"]


# Rows on both sides of the blocks of 512 that a CPU thread works on, and more than 512 of them.
SHAPES = [(300, 130), (2, 128, 512), (256, 513), (1300, 128), (256, 2000)]


@pytest.mark.slow(device=["cpu"], but_every=3)
@pytest.mark.parametrize("variant", RUNGS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_same_numbers(shape, dtype, variant, device):
    x, y, weight, bias = operands(shape, dtype, device)
    apart = bounds(shape[-1], dtype)
    for function, args in (
        (loss, (x, y)),
        (rms_norm, (x, weight)),
        (softmax, (x,)),
        (plain_softmax, (x,)),
        (residual_norm, (x, y, weight)),
        (shifted, (x,)),
    ):
        check_same(function, *args, dtype=dtype, steps=apart["steps"], variant=variant)
    columns = rl.tensor(np.linspace(-1, 1, shape[-1]), device=device).to(dtype)
    for function in (layer_norm, normed_softmax):
        check_same(function, x, weight, columns, dtype=dtype, variant=variant, **apart)
    check_same(statistics, x, weight, bias, dtype=dtype, variant=variant, **apart)  # its sum cancels


@pytest.mark.parametrize("variant", RUNGS)
@pytest.mark.parametrize("place", [0, 511, 512, 1030])
def test_a_nan_is_the_largest_the_smallest_and_the_sum(place, variant, device):
    x = np.random.default_rng(0).standard_normal((256, 1031))
    x[7, place] = math.nan
    x = rl.tensor(x, dtype="float32", device=device)
    results = rl.compile(lambda x: ((x * 2).amax(-1), (x * 2).amin(-1), (x * 2).sum(-1)), variant=variant)(x)
    for y in results:
        np.testing.assert_array_equal(np.isnan(y.cpu().numpy()), np.arange(256) == 7)


def test_sums_do_not_overflow_on_the_way():
    """On the CPU they are accumulated in double, as rl.sum's are."""
    x = rl.tensor(np.tile([3e38, -3e38, 3e38, 1.0], (256, 128)), dtype="float32")
    assert rl.compile(lambda x: (x * 1.0).mean(-1))(x).numpy() == pytest.approx(7.5e37)


def test_several_dimensions_are_one_row():
    function = rl.compile(lambda x, b: ((x + b) ** 2).sum((-2, -1), keepdim=True) / 2)
    x, b = rl.randn(16, 20, 8, 32), rl.randn(20, 1, 1)
    c, y = counted(function, x, b)
    assert c.launches == 1 and y.shape == (16, 20, 1, 1)
    np.testing.assert_allclose(y.numpy(), ((x.numpy() + b.numpy()) ** 2).sum((-2, -1), keepdims=True) / 2, rtol=2e-6)


def test_rows_of_any_layout():
    x = rl.randn(64, 300, 256).transpose(0, 1)[::2, :, 1:]
    check_same(lambda x: (x * 2 + 1).sum(-1), x, **bounds(255))
    c, _ = counted(rl.compile(lambda x: (x * 2 + 1).sum(-1)), x)
    assert c.launches == 1
    bias = rl.randn(64, 150).T  # an element a row, whose dimensions do not merge either
    check_same(lambda x, b: (x * 2 + 1).sum(-1) + 100 * b, x, bias, **bounds(255))
    c, _ = counted(rl.compile(lambda x, b: (x * 2 + 1).sum(-1) + 100 * b), x, bias)
    assert c.launches == 1


@pytest.mark.parametrize("variant", RUNGS)
def test_rows_with_infinities_and_nan(variant, device):
    """Softmax of a row that is -inf everywhere is NaN there alone, and of a row with an infinity as op by op."""
    x = np.random.default_rng(0).standard_normal((300, 600))
    x[3], x[4, 5], x[5, 550] = -math.inf, math.inf, math.nan
    x = rl.tensor(x, dtype="float32", device=device)
    y = rl.compile(plain_softmax, variant=variant)(x).cpu().numpy()
    assert np.isnan(y).any(-1).nonzero()[0].tolist() == [3, 4, 5]
    np.testing.assert_array_equal(np.isnan(y), np.isnan(plain_softmax(x).cpu().numpy()))


def test_a_thread_with_a_small_stack():
    """What a thread needs for its blocks is not on its stack."""
    x, weight = rl.randn(512, 300), rl.randn(300)
    compiled, found = rl.compile(residual_norm), []
    size = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=lambda: found.extend(compiled(x, x, weight)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
    np.testing.assert_array_equal(found[0].numpy(), compiled(x, x, weight)[0].numpy())


def test_gradients():
    def total(x, weight):
        return ((x * weight) ** 2).mean(-1).sum()

    x, _, weight, _ = operands((256, 130), "float64")
    for t in (x, weight):
        t.requires_grad = True
    wanted = rl.autograd.grad(total(x, weight), [x, weight])
    with rl.count() as c:
        y = rl.compile(total)(x, weight)
    assert c.launches == 2
    for found, expected in zip(rl.autograd.grad(y, [x, weight]), wanted, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def capped(x):
    return plain_softmax(rl.tanh(x / 30) * 30)


def extremes(x):
    """Of operands that are recomputed for the gradient."""
    return (
        rl.amax(x * 0.3, dim=-1)
        - rl.amin(rl.tanh(x), dim=-1)
        + (x * 0.3 - rl.amax(x * 0.7, dim=-1, keepdim=True)).sum(-1)
    )


@pytest.mark.parametrize("variant", RUNGS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("function", [softmax, capped, extremes], ids=lambda f: f.__name__)
def test_gradients_of_a_largest_element_that_was_rounded(function, dtype, variant, device):
    """Memory holds the largest of a row rounded to 16 bits, which none of the elements that are recomputed equals."""
    x, dy, *_ = operands((256, 130), dtype, device)
    x.requires_grad = True
    compiled = rl.compile(function, variant=variant)
    y, z = function(x), compiled(x)
    dy = dy if y.ndim == 2 else dy[:, 0].contiguous()
    wanted, found = (rl.autograd.grad(r, [x], dy)[0].to("float32").cpu().numpy() for r in (y, z))
    assert not np.isnan(found).any()
    # Where several elements are equal once they are rounded, they share the gradient.
    apart = abs(found - wanted) > 40 * unit_roundoff(dtype) * abs(wanted).max()
    assert apart.mean() < (0.01 if dtype != "float32" else 1e-9)
    np.testing.assert_allclose(found.sum(-1), wanted.sum(-1), atol=130 * unit_roundoff(dtype) * abs(wanted).max())


def of_products(x, w, b):
    """Elements that may be made by a fused multiply-add, or by a product, which another result needs, and a sum."""
    product = x * w
    return rl.amax(product + b, dim=-1) - rl.amin(1.0 - product, dim=-1) + (product * product).sum(-1)


def test_an_extreme_is_found_again_where_elements_are_made_anew(device):
    """Rows that are longer than registers hold are made once more for the gradient of their largest element."""
    rng = np.random.default_rng(0)
    x = rl.tensor(rng.standard_normal((256, 20000)), dtype="float32", device=device)
    w, b = (rl.tensor(rng.standard_normal(20000), dtype="float32", device=device, requires_grad=True) for _ in "wb")
    (found,) = rl.autograd.grad(rl.compile(of_products)(x, w, b).sum(), [b])
    marked = np.zeros(20000)
    np.add.at(marked, np.argmax((x * w + b).detach().cpu().numpy(), axis=1), 1)
    assert_close(found, marked, rtol=0, atol=0)


@pytest.mark.parametrize("variant", RUNGS)
def test_a_number_for_each_row_is_reduced_itself(variant, device):
    """The largest of a row that repeats one number is that number, in the pass after it is there."""
    x, w = (
        rl.tensor(np.random.default_rng(i).standard_normal((n, 128)), dtype="float32", device=device)
        for i, n in ((0, 256), (1, 128))
    )

    def repeated(x, w):
        y = x * 2
        total = y.sum(-1, keepdim=True)
        again = rl.amax(total.expand(256, 128), dim=-1, keepdim=True)
        return again + total, y @ w + again

    check_same(repeated, x, w, variant=variant, steps=300, atol=1e-4)


@pytest.mark.parametrize("function, launches", [(softmax, 1), (plain_softmax, 1), (rms_norm, 2), (layer_norm, 3)])
def test_gradients_of_rows_that_are_read_again(function, launches):
    """Those of weights and biases are sums along the other dimension: launches of their own."""
    x, dy, weight, _ = operands((256, 130), "float64")
    tensors = [x, weight, weight * 0.1][: function.__code__.co_argcount]
    for t in tensors:
        t.requires_grad = True
    wanted = rl.autograd.grad(function(*tensors), tensors, dy)
    y = rl.compile(function)(*tensors)
    with rl.count() as c:
        grads = rl.autograd.grad(y, tensors, dy)
    assert c.launches == launches
    for found, expected in zip(grads, wanted, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("tiling", [(8, 16, 4, True), (8, 512, 4, False), (1, 128, 16, True)], ids=str)
@pytest.mark.parametrize("function", [statistics, layer_norm], ids=lambda f: f.__name__)
def test_the_cuda_source_compiles(function, tiling):
    x = rl.empty(256, 512, dtype="bfloat16", device=rl.meta("H200"))
    columns = rl.empty(512, dtype="bfloat16", device=x.device)
    last = columns if function is layer_norm else rl.empty(256, dtype="bfloat16", device=x.device)
    (source,) = chains(
        function, x, columns, last, **dict(zip(("width", "threads", "packs", "keeps"), tiling, strict=True))
    )
    reads = source.count("launch.operands[0], row0,")
    assert "rounded_product(" in source  # a square, or a product with the weight, is reduced
    if function is statistics:  # one pass
        assert source.count("join_row<") == 4 and "join_row<Total, kThreads>(total" in source
        assert reads == (1 if tiling[-1] else 2)  # whole parts of a row, and the last one
        passes = 1
    else:  # a row that is kept is read once, another in each of three passes
        assert source.count("join_row<") == 2 and reads == (1 if tiling[-1] else 3 * 2)
        passes = 3
    whole_parts = source.count(f"bool is_there = pack < {tiling[2]} ||")
    assert whole_parts == (0 if tiling[-1] else passes)  # which ask for no end
    ptx = compiled(source)
    assert "shfl.sync.bfly" in ptx and ("ld.global.v4" in ptx.replace("ld.global.nc", "ld.global")) == (tiling[0] == 8)
    assert ("bar.sync" in ptx) == (tiling[1] > 32)  # a warp needs no barrier
