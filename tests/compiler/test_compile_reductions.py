"""rl.compile: a reduction of rows runs in the launch of the chain before it, with what is made of its result."""

import math

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
    for function, args in ((loss, (x, y)), (rms_norm, (x, weight)), (softmax, (x,))):
        check_same(function, *args, dtype=dtype, steps=apart["steps"], variant=variant)
    check_same(statistics, x, weight, bias, dtype=dtype, variant=variant, **apart)  # its sum cancels


def test_launches_and_bytes():
    x, y, weight, bias = operands((300, 130), "float32")
    for function, args, eager, compiled in (
        (loss, (x, y), 3, 1),
        (rms_norm, (x, weight), 7, 2),
        (softmax, (x,), 6, 3),
        (statistics, (x, weight, bias), 8, 1),
    ):
        before, _ = counted(function, *args)
        after, _ = counted(rl.compile(function), *args)
        assert (before.launches, after.launches) == (eager, compiled), function.__name__
        assert after.flops == before.flops
    row_of_weights = 130 * 4
    after, results = counted(rl.compile(statistics), x, weight, bias)
    assert after.bytes_read == x.nbytes + row_of_weights + bias.nbytes
    assert after.bytes_written == sum(r.nbytes for r in results)


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


def test_what_is_made_of_a_row_and_its_elements_is_a_launch_of_its_own():
    """The elements would have to be read twice."""
    c, _ = counted(rl.compile(lambda x: (x * 2) - (x * 2).sum(-1, keepdim=True)), rl.ones(256, 128))
    assert c.launches == 2


def test_too_much_for_a_kernel_is_cut():
    def many(x):
        y = x * 2
        return [(y + i).sum(-1) for i in range(6)]

    def long(x):
        s = (x * 2).sum(-1)
        for i in range(20):
            s = rl.tanh(s + i)
        return s

    x = rl.randn(256, 128)
    for function in (many, long):
        check_same(function, x, **bounds(128))
    assert counted(rl.compile(long), x)[0].launches == 3


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


def test_the_cuda_source_compiles():
    x = rl.empty(256, 512, dtype="bfloat16", device=rl.meta("H200"))
    weight, bias = rl.empty(512, dtype="bfloat16", device=x.device), rl.empty(256, dtype="bfloat16", device=x.device)
    trace = _core._compiler.Trace(x.device)
    with trace:
        twins = [trace.argument(t) for t in (x, weight, bias)]
        views = [trace.view(t) for t in twins]
        results = [trace.view(y) for y in as_list(statistics(*twins))]
    calls = list(range(len(trace.calls)))
    program = _core._compiler.Program(trace, views, [(calls, [r.storage for r in results])], results)
    (source,) = program.cuda_sources(8)
    assert source.count("join_block<") == 4 and "join_block<Total>(total" in source
    try:
        log, image, ptx = _core.cuda.compile_source(
            source, [*_core._compiler.cuda_options(), "-arch=sm_90"], _core._compiler.cuda_headers()
        )
    except rl.CudaError as missing:
        pytest.skip(str(missing))
    assert image and not log, log
    assert "shfl.sync.bfly" in ptx and "ld.global.v4" in ptx.replace("ld.global.nc", "ld.global")
