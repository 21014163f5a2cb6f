"""rl.compile: reductions of rows run in the launch of the chain around them, and so does what is made of their results.

Where elements are made of a result, the row is read again in the same launch.
"""

import math
import threading

import numpy as np
import pytest
from compiler.functions import as_list, check_same, counted

import rooflab as rl
from rooflab import _core
from rooflab.specs import itemsize, unit_roundoff

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns

RUNGS = ["", "v0_reference"]


def loss(x, y):
    return ((x - y) ** 2).mean(-1)


def rms_norm(x, weight):
    return x * (1 / rl.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)) * weight


def softmax(x):
    scores = x * 0.125
    e = rl.exp(scores - scores.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def plain_softmax(x):
    """The largest is that of an operand: no chain makes what is reduced."""
    e = rl.exp(x - rl.amax(x, dim=-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def layer_norm(x, weight, bias):
    centered = x - x.mean(-1, keepdim=True)
    return centered * rl.rsqrt((centered**2).mean(-1, keepdim=True) + 1e-5) * weight + bias


def residual_norm(x, y, weight):
    """The sum is a result, too, and so are the rows' numbers."""
    total = x + y
    scale = rl.rsqrt((total * total).mean(-1, keepdim=True) + 1e-5)
    return total * scale * weight, total, scale


def normed_softmax(x, weight, bias):
    """Five passes over the rows."""
    return layer_norm(softmax(x) * 100, weight, bias)


def shifted(x):
    """Rows' numbers whose dimension was dropped and comes back, and one that is computed in another dtype."""
    low = x.amin(-1)
    return x - low[..., None], x * (low + 1).unsqueeze(-1), x.to("float64") - low.to("float64")[..., None]


def statistics(x, weight, bias):
    """Four reductions of a chain, with and without the dimension that they reduce, and work on rows."""
    y = x * weight
    return y.sum(-1) * 2 + bias, y.amin(-1, keepdim=True), y.amax(-1) - y.mean(-1), y


def operands(shape, dtype, device="cpu", seed=0):
    rng = np.random.default_rng(seed)
    x, y = (rl.tensor(rng.standard_normal(shape), device=device).to(dtype) for _ in range(2))
    weight, bias = (rl.tensor(rng.standard_normal(s), device=device).to(dtype) for s in (shape[-1:], shape[:-1]))
    return x, y, weight, bias


# Rows on both sides of the blocks of 512 that a CPU thread works on, and more than 512 of them.
SHAPES = [(300, 130), (2, 128, 512), (256, 513), (1300, 128), (256, 2000)]


def bounds(n, dtype="float32"):
    """How far sums of n terms may differ, in roundings of the result, and where they cancel.

    Where elements are rounded to 16 bits first, sqrt(n) such roundings add up. Otherwise those of partial sums do,
    whose size is sqrt(n); of terms that do not cancel they are sqrt(n) of the result.
    """
    atol = unit_roundoff(dtype) * (4 * math.sqrt(n) if itemsize(dtype) == 2 else 2 * n)
    return {"steps": 24 + math.sqrt(n), "atol": atol}


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


def test_launches_and_bytes():
    x, y, weight, bias = operands((300, 130), "float32")
    for function, args, eager, compiled in (
        (loss, (x, y), 3, 1),
        (rms_norm, (x, weight), 7, 1),
        (softmax, (x,), 6, 1),
        (plain_softmax, (x,), 5, 1),
        (layer_norm, (x, weight, weight), 9, 1),
        (residual_norm, (x, y, weight), 7, 1),
        (normed_softmax, (x, weight, weight), 16, 1),
        (shifted, (x,), 7, 1),
        (statistics, (x, weight, bias), 8, 1),
    ):
        before, _ = counted(function, *args)
        after, _ = counted(rl.compile(function), *args)
        assert (before.launches, after.launches) == (eager, compiled), function.__name__
        assert after.flops == before.flops
    for function, args in (
        (statistics, (x, weight, bias)),
        (layer_norm, (x, weight, y[0])),
        (residual_norm, (x, y, weight)),
    ):
        after, results = counted(rl.compile(function), *args)
        assert after.bytes_read == sum(operand.nbytes for operand in args), function.__name__
        assert after.bytes_written == sum(r.nbytes for r in as_list(results)), function.__name__


@pytest.mark.parametrize("target", ["cpu", "H200"])
def test_tensors_without_memory_count_the_same(target):
    real, _ = counted(rl.compile(statistics), *(operands((256, 200), "float32")[i] for i in (0, 2, 3)))
    device = rl.meta(target)
    meta, results = counted(
        rl.compile(statistics),
        rl.empty(256, 200, device=device),
        rl.empty(200, device=device),
        rl.empty(256, device=device),
    )
    for figure in ("launches", "flops", "bytes_read", "bytes_written", "ops"):
        assert getattr(real, figure) == getattr(meta, figure), figure
    assert [r.shape for r in results] == [(256,), (256, 1), (256,), (256, 200)]


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


@pytest.mark.parametrize("shape, dims", [((255, 512), -1), ((512, 127), -1), ((256, 70000), -1), ((512, 256), 0)])
def test_elsewhere_the_reduction_has_its_own_kernels(shape, dims):
    """Few rows, short rows, very long rows, and columns."""
    function = rl.compile(lambda x: (x * 2).sum(dims))
    x = rl.empty(*shape, device=rl.meta("cpu"))
    c, _ = counted(function, x)
    assert c.launches == 2 and c.by_op["sum"].launches == 1


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
def test_a_number_for_each_row_is_not_one_for_each_column(variant, device):
    """A square matrix less its rows' sums, which broadcast along its columns: (256,) beside (256, 256)."""
    x = rl.tensor(np.random.default_rng(0).standard_normal((256, 256)), dtype="float32", device=device)
    for function, launches in (
        (lambda x: x * 2 - (x * 2).sum(-1), 2),
        (lambda x: x * 2 - (x * 2).sum(-1)[None], 2),
        (lambda x: x * 2 - (x * 2).sum(-1, keepdim=True).T, 2),
        (lambda x: x * 2 - (x * 2).sum(-1)[:, None], 1),
        (lambda x: x * 2 - (x * 2).sum(-1).reshape(256, 1), 1),
        (lambda x: x * 2 - (x * 2).sum(-1, keepdim=True).flip(0), 3),
    ):
        check_same(function, x, variant=variant, **bounds(256))
        assert counted(rl.compile(function), x)[0].launches == launches


def test_rows_of_rows():
    """A number for each row is no number for a row of rows, and what is made of both reductions is not one chain."""
    x = rl.randn(256, 4, 128)

    def two_means(x):
        y = x * 2
        return y.mean(-1), y.mean((-2, -1))

    for function, launches in (
        (two_means, 2),
        (lambda x: x * 2 - (x * 2).mean(-1, keepdim=True) - (x * 2).mean((-2, -1), keepdim=True), 2),
        (lambda x: (x - x.amax(-1, keepdim=True)).sum((-2, -1)), 2),
        (lambda x: x - x.mean(-1, keepdim=True).mean(-2, keepdim=True), 3),
    ):
        check_same(function, x, **bounds(512))
        assert counted(rl.compile(function), x)[0].launches == launches


def test_a_reduction_alone_keeps_its_kernel():
    """Work on rows alone does not make it worth reducing in a chain; elements do."""
    x = rl.randn(256, 128)
    alone, _ = counted(rl.compile(lambda x: rl.exp(x.sum(-1, keepdim=True) * 0.01) + 1), x)
    assert alone.launches == 2 and alone.by_op["sum"].launches == 1
    fused, _ = counted(rl.compile(lambda x: x * (rl.exp(x.sum(-1, keepdim=True) * 0.01) + 1)), x)
    assert fused.launches == 1


def test_what_stands_between_two_passes_keeps_them_apart():
    """A product needs the rows whole, so what reads it cannot run in the same launch."""
    x, w = rl.randn(256, 128), rl.randn(128, 128)

    def between(x, w):
        centered = x - x.mean(-1, keepdim=True)
        return centered / (centered @ w).amax(-1, keepdim=True)

    def around(x, w):
        weights = softmax(x @ w)
        return rl.matmul(weights * 2 - weights.sum(-1, keepdim=True), w) - x

    for function, fused, launches in ((between, 2, 3), (around, 1, 4)):
        check_same(function, x, w, steps=300, atol=1e-5)
        c, _ = counted(rl.compile(function), x, w)
        assert (c.by_op["fused"].launches, c.launches) == (fused, launches)


@pytest.mark.parametrize("variant", RUNGS)
def test_the_largest_of_a_row_without_a_number(variant, device):
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


def test_too_much_for_a_kernel_is_cut():
    def many(x):
        y = x * 2
        return [(y + i).sum(-1) for i in range(6)]

    def long(x):
        s = (x * 2).sum(-1)
        for i in range(20):
            s = rl.tanh(s + i)
        return s

    def again(x):
        """Six reductions, elements of each of them, and more instructions on rows than a chain holds."""
        for _ in range(6):
            s = x.mean(-1, keepdim=True)
            for k in range(4):
                s = rl.tanh(s + k)
            x = x * 0.5 - s
        return x

    def late(x):
        """Many instructions on rows, and elements of the last: these are no chain without the reduction."""
        y = x * 2
        s = y.sum(-1, keepdim=True)
        for i in range(30):
            s = rl.tanh(s + i)
        return y - s

    x = rl.randn(256, 128)
    for function, launches in ((many, 3), (long, 2), (again, 3), (late, 3)):
        check_same(function, x, **bounds(128))
        c, _ = counted(rl.compile(function), x)
        assert c.launches == launches, function.__name__


def test_heads_that_share_a_mask():
    """They are joined by the mask only as far as one kernel takes their reductions."""

    def heads(mask, *scores):
        return [softmax(s + mask) for s in scores]

    mask = rl.empty(512, 512, device=rl.meta("H200"))
    for count, launches in ((1, 1), (2, 1), (3, 2), (8, 4)):
        scores = [rl.empty(512, 512, device=mask.device) for _ in range(count)]
        assert counted(rl.compile(heads), mask, *scores)[0].launches == launches


def test_norms_one_after_the_other():
    def norms(x, weight, bias, count):
        for _ in range(count):
            x = layer_norm(x, weight, bias)
        return x

    x, weight = rl.empty(512, 512, device=rl.meta("H200")), rl.empty(512, device=rl.meta("H200"))
    for count, launches in ((1, 1), (2, 1), (3, 2), (4, 2)):
        assert counted(rl.compile(norms), x, weight, weight, count)[0].launches == launches


def test_more_numbers_and_operands_than_a_kernel_takes():
    """They are cut, and nothing falls back."""

    def numbers(x):
        y = x
        for i in range(45):
            y = y + 0.1 * i
        s = y.mean(-1, keepdim=True)
        for i in range(12):
            s = s + 0.01 * i
        y = y - s
        for i in range(12):
            y = y + 0.001 * i
        return y

    def columns(x, c, *others):
        y = x
        for other in others:
            y = y + other
        return y.mean(-1) * c, y * c

    x = rl.randn(256, 128)
    check_same(numbers, x, steps=200, atol=1e-4)
    check_same(columns, x, rl.tensor(2.0), *(rl.randn(256, 1) for _ in range(14)), steps=200, atol=1e-4)


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
    trace = _core._compiler.Trace(x.device)
    with trace:
        twins = [trace.argument(t) for t in (x, columns, last)]
        views = [trace.view(t) for t in twins]
        results = [trace.view(y) for y in as_list(function(*twins))]
    calls = list(range(len(trace.calls)))
    program = _core._compiler.Program(trace, views, [(calls, [r.storage for r in results])], results)
    (source,) = program.cuda_sources(*tiling)
    reads = source.count("launch.operands[0], row0,")
    assert ("rounded_product(" in source) == (function is statistics)  # whose product is reduced
    if function is statistics:  # one pass
        assert source.count("join_row<") == 4 and "join_row<Total, kThreads>(total" in source and reads == 1
    else:  # a row that is kept is read once, another in each of three passes
        assert source.count("join_row<") == 2 and reads == (1 if tiling[-1] else 3)
    try:
        log, image, ptx = _core.cuda.compile_source(
            source, [*_core._compiler.cuda_options(), "-arch=sm_90"], _core._compiler.cuda_headers()
        )
    except rl.CudaError as missing:
        pytest.skip(str(missing))
    assert image and not log, log
    assert "shfl.sync.bfly" in ptx and ("ld.global.v4" in ptx.replace("ld.global.nc", "ld.global")) == (tiling[0] == 8)
    assert ("bar.sync" in ptx) == (tiling[1] > 32)  # a warp needs no barrier
