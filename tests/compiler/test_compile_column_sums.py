"""rl.compile: sums of columns, made by the chain of rows that makes or reads the elements."""

import numpy as np
import pytest
from compiler.functions import chains, check_same, compiled, counted
from compiler.rows import bounds, layer_norm, operands, rms_norm, softmax

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns

RUNGS = ["", "v0_reference"]


def normed(x, dy):
    """Numbers of rows, elements and two sums of columns, as the gradients of a norm are."""
    scaled = x * rl.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
    rows = tuple(range(x.ndim - 1))
    return scaled, (scaled * dy).sum(rows), dy.sum(rows, keepdim=True)


def gradients(function, tensors, dy, **keywords):
    """Counts of one forward and backward, and the gradients."""
    leaves = [x.detach() for x in tensors]
    for x in leaves:
        x.requires_grad = True
    made = rl.compile(function, **keywords)
    return counted(lambda: rl.autograd.grad(made(*leaves), leaves, dy))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("variant", RUNGS)
@pytest.mark.parametrize(
    "shape", [(1024, 129), (1030, 128), (5, 211, 250), (1025, 1001), (1100, 2052), (3, 200, 2, 130)]
)
def test_same_numbers(shape, variant, dtype, device):
    """Rows of a few threads, of a warp, of a block; a last block of rows that is not full; two dimensions of rows."""
    x, dy, *_ = operands(shape, dtype, device)
    results = rl.compile(normed, variant=variant)(x, dy)
    wide = [y.to("float64") for y in (x, dy)]
    rows = shape[0] if len(shape) == 2 else int(np.prod(shape[:-1]))
    # Only results are rounded to 16 bits. Sums are in float or double, whose roundings grow with the rows.
    atol = 4 * rows * unit_roundoff("float64" if dtype == "float64" else "float32")
    for found, right in zip(results, normed(*wide), strict=True):
        assert_close(found, to_float64(right), rtol=2 * unit_roundoff(dtype), atol=atol)


def test_a_norm_goes_back_in_one_launch():
    """What is read and written: x and the result forward; dy, x and dx backward. Numbers of rows come on top."""
    rows, columns = 1500, 300
    x, dy, weight, _ = operands((rows, columns), "float32")
    elements, row, column = 4 * rows * columns, 4 * rows, 4 * columns
    c, _ = gradients(layer_norm, (x, weight, dy[0]), dy)
    assert c.launches == 2
    assert c.bytes_read == 3 * elements + 3 * column + 2 * row
    assert c.bytes_written == 2 * elements + 2 * column + 2 * row
    c, _ = gradients(rms_norm, (x, weight), dy)
    assert c.launches == 2
    assert c.bytes_read == 3 * elements + 2 * column + row
    assert c.bytes_written == 2 * elements + column + row


def test_what_memory_would_round_is_computed_again():
    """In 16 bits backward finds mean and variance from x, which it reads anyway: forward writes its result alone."""
    x, dy, weight, _ = operands((1500, 300), "bfloat16")
    c, _ = gradients(layer_norm, (x, weight, dy[0]), dy)
    assert c.launches == 2 and c.bytes_written == 2 * x.nbytes + 2 * weight.nbytes


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_mean_with_a_kernel_of_its_own_is_kept(dtype):
    """Few rows: its launch has written it."""
    x, dy, weight, _ = operands((200, 300), dtype)
    c, _ = gradients(lambda x, w: rl.tanh(x - x.mean(-1, keepdim=True)) * w, (x, weight), dy)
    assert c.by_op["mean"].launches == 1


def test_flops_are_those_of_the_calls():
    x, dy, *_ = operands((1024, 128), "float32")
    before, _ = counted(normed, x, dy)
    after, _ = counted(rl.compile(normed), x, dy)
    assert after.flops == before.flops and after.launches == 1
    assert after.bytes_written == x.nbytes + 2 * 4 * 128


@pytest.mark.parametrize("target", ["cpu", "H200"])
def test_tensors_without_memory_count_the_same(target):
    shape = (1024, 257)
    real, _ = counted(rl.compile(normed), *operands(shape, "float32")[:2])
    device = rl.meta(target)
    meta, results = counted(rl.compile(normed), *(rl.empty(*shape, device=device) for _ in range(2)))
    for figure in ("flops", "bytes_read", "bytes_written", "ops"):
        assert getattr(real, figure) == getattr(meta, figure), figure
    assert meta.launches == (2 if target == "H200" else 1)  # on a GPU another adds what blocks leave
    assert [r.shape for r in results] == [shape, (257,), (1, 257)]


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1024, 257), (4096, 4096), (1500, 5000)])
@pytest.mark.parametrize("variant", RUNGS)
def test_launches_and_scratch_of_a_gpu(variant, shape):
    """They are those of the device without memory."""
    x, dy, *_ = operands(shape, "bfloat16", "cuda")
    real, _ = counted(rl.compile(normed, variant=variant), x, dy)
    like = rl.meta("cuda:0")
    meta, _ = counted(
        rl.compile(normed, variant=variant), *(rl.empty(*shape, dtype=x.dtype, device=like) for _ in "xy")
    )
    assert (real.launches, real.flops, real.bytes_written) == (meta.launches, meta.flops, meta.bytes_written)
    assert real.launches == 2


def three(x, dy):
    scaled, total, plain = normed(x, dy)
    return scaled, total, plain, scaled.sum(0)


@pytest.mark.parametrize(
    "function, shape, launches",
    [
        (normed, (511, 256), 3),  # few rows
        (normed, (1024, 127), 6),  # short rows, which are not reduced in the chain either
        (normed, (1024, 9000), 3),  # more than registers hold
        (three, (1024, 256), 2),  # more sums than a chain has
        (lambda x, dy: (x * dy).sum(0), (1024, 256), 2),  # no rows are reduced
        (lambda x, dy: normed(x, dy)[0] * (x * dy).sum(0), (1024, 256), 3),  # an element is made from the sum
        (lambda x, dy: (x * x.mean(-1, keepdim=True)).sum(-2), (4, 256, 128), 2),  # not over all rows
        (lambda x, dy: (x * x.mean(-1, keepdim=True)).sum(0), (600, 4, 128), 2),  # neither
        (lambda x, dy: (x * x.mean(-1, keepdim=True)).reshape(2048, 128).sum(0), (1024, 256), 2),  # parts of rows
    ],
)
def test_elsewhere_a_sum_has_its_own_kernel(function, shape, launches):
    like = rl.meta("cpu")
    x, dy = (rl.empty(*shape, device=like) for _ in range(2))
    c, _ = counted(rl.compile(function), x, dy)
    assert c.launches == launches and c.by_op["sum"].launches >= 1


@pytest.mark.parametrize("variant", RUNGS)
def test_a_sum_of_columns_is_no_number_of_a_row(variant, device):
    """In a square matrix the two have one shape."""
    x = rl.tensor(np.random.default_rng(0).standard_normal((1024, 1024)), dtype="float32", device=device)

    def square(x):
        scaled = x - x.mean(-1, keepdim=True)
        return scaled, scaled.sum(0) * 2, scaled * scaled.sum(0), scaled + x.sum(-1)

    check_same(square, x, variant=variant, **bounds(1024))

    def product(x):
        means = x.mean(-1)
        return x - means[:, None], x.sum(0) * means

    check_same(product, x, variant=variant, **bounds(1024))


@pytest.mark.parametrize("variant", RUNGS)
def test_what_is_summed_may_be_any_view(variant, device):
    x = rl.tensor(np.random.default_rng(0).standard_normal((256, 1100)), dtype="float32", device=device)
    for function in (
        lambda x: (softmax(x.T), x.T.sum(0)),
        lambda x: (softmax(x.T[:, ::2]), (x.T[:, ::2] * 3).sum(0)),
        lambda x: (softmax(x.T), (x.T * x[:, :1].T).sum(0), x[:, 5:6].T.expand(1100, 256).sum(0)),
    ):
        check_same(function, x, variant=variant, **bounds(1100))


@pytest.mark.parametrize("variant", RUNGS)
def test_a_number_of_a_row_that_is_expanded_is_summed(variant, device):
    """The gradient of a bias that all elements of a row have in common, and the same forward."""
    x, dy, bias, _ = operands((1024, 256), "float32", device)
    bias.requires_grad = True

    def gate(x, b):
        return rl.mean(x + b, -1, keepdim=True) * x

    wanted, found = (
        rl.autograd.grad(function(x, bias), [bias], dy)[0] for function in (gate, rl.compile(gate, variant=variant))
    )
    assert_close(found, to_float64(wanted), rtol=1e-5, atol=1e-5)

    def total(x):
        return (rl.sum(x * 1.5, -1, keepdim=True) * 2).expand(1024, 256).sum(0)

    check_same(total, x, variant=variant, **bounds(1024 * 256))


@pytest.mark.parametrize("variant", RUNGS)
def test_as_many_passes_as_a_chain_can_have(variant, device):
    """Elements are made from numbers of rows, then reduced four times, one after another."""
    x, _, _, row = operands((1024, 256), "float32", device)

    def chain(x, row):
        a = x * (row * 0.5 + 1)[:, None]
        for _ in range(4):
            a = a - a.mean(-1, keepdim=True)
            a = rl.tanh(a)
        return a, a.sum(0)

    check_same(chain, x, row, variant=variant, steps=200, atol=1e-3)
    twice = rl.compile(lambda x, w: layer_norm(layer_norm(x, w, w), w, w), variant=variant)
    weight = x[0].detach().contiguous()
    weight.requires_grad = True
    (found,) = rl.autograd.grad(twice(x, weight), [weight], x)
    (wanted,) = rl.autograd.grad(layer_norm(layer_norm(x, weight, weight), weight, weight), [weight], x)
    assert_close(found, to_float64(wanted), rtol=1e-3, atol=1e-2)


def test_the_same_with_any_number_of_threads():
    x, dy, *_ = operands((1700, 300), "float32")
    function, threads = rl.compile(normed), rl.num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            rl.set_num_threads(count)
            found.append([y.numpy() for y in function(x, dy)])
    finally:
        rl.set_num_threads(threads)
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("variant", RUNGS)
def test_a_nan_and_an_infinity_reach_their_columns_alone(variant, device):
    x, dy, *_ = operands((1024, 200), "float32")
    marked = dy.numpy().copy()
    marked[1000, 7], marked[3, 9], marked[1023, 199] = np.nan, np.inf, -np.inf
    *_, plain = rl.compile(normed, variant=variant)(x.to(device), rl.tensor(marked, device=device))
    plain = to_float64(plain)[0]
    assert np.flatnonzero(~np.isfinite(plain)).tolist() == [7, 9, 199]
    assert np.isnan(plain[7]) and plain[9] == np.inf and plain[199] == -np.inf


@pytest.mark.parametrize("tiling", [(8, 16, 4, True), (4, 128, 2, True), (1, 512, 16, True)], ids=str)
def test_the_cuda_source_compiles(tiling):
    x, dy = (rl.empty(1024, 512, dtype="bfloat16", device=rl.meta("H200")) for _ in "xy")
    (source,) = chains(normed, x, dy, **dict(zip(("width", "threads", "packs", "keeps"), tiling, strict=True)))
    assert source.count("store_column_sums<") == source.count("add_blocks<BFloat16>") == 2
    assert ".entry fused_cuda_v1_nvrtc_sums_kernel" in compiled(source)


def test_a_chain_that_writes_no_elements_compiles_without_a_warning():
    x, dy = (rl.empty(1024, 512, device=rl.meta("H200")) for _ in "xy")
    (source,) = chains(lambda x, dy: normed(x, dy)[1:], x, dy, width=4, threads=128)
    assert "store(" not in source and compiled(source)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_gpu_gives_the_same_on_every_run(dtype):
    x, dy, *_ = operands((5000, 700), dtype, "cuda")
    function = rl.compile(normed)
    first = [to_float64(y) for y in function(x, dy)]
    for _ in range(3):
        assert all(np.array_equal(a, to_float64(b)) for a, b in zip(first, function(x, dy), strict=True))
