"""softmax and its gradient along other dimensions than the last: columns are processed as they lie in memory."""

import itertools

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close

DTYPES = ("float32", "bfloat16", "float16", "float64")
ALLOWED = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
FORMS = ("softmax", "log_softmax")


def expected(name, x, dim):
    shifted = x - x.max(dim, keepdims=True)
    total = np.exp(shifted).sum(dim, keepdims=True)
    return np.exp(shifted) / total if name == "softmax" else shifted - np.log(total)


def expected_gradient(name, y, dy, dim):
    if name == "softmax":
        return y * (dy - (dy * y).sum(dim, keepdims=True))
    return dy - np.exp(y) * dy.sum(dim, keepdims=True)


def check(name, dtype, device, x, dy, dim, label):
    own = rl.tensor(x, dtype=dtype, device=device)
    x = own.to("float64").cpu().numpy()  # as rounded
    slope = rl.tensor(dy, dtype=dtype, device=device)
    own.requires_grad = True
    y = getattr(rl, name)(own, dim)
    y.backward(slope)
    allowed = ALLOWED[dtype]
    assert_close(y.detach(), expected(name, x, dim), rtol=allowed, atol=allowed, name=f"{label} y")
    right = expected_gradient(name, y.detach().to("float64").cpu().numpy(), slope.to("float64").cpu().numpy(), dim)
    assert_close(own.grad, right, rtol=4 * allowed, atol=4 * allowed, name=f"{label} dx")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMS)
def test_every_width_and_length(name, dtype, device, instruction_sets):
    rng = np.random.default_rng(0)
    for inner, d in itertools.product((7, 8, 17, 31, 64, 65, 130), (1, 2, 5, 33)):
        x, dy = rng.standard_normal((2, 3, d, inner))
        for isa in instruction_sets() if device == "cpu" else ("",):
            check(name, dtype, device, x, dy, 1, f"{d} x {inner} {isa}")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("shape", [(700, 70), (3000, 300), (2, 1100, 64)])  # too long for the exponentials to be kept
def test_long_columns(name, dtype, shape, device):
    x, dy = np.random.default_rng(1).standard_normal((2, *shape))
    check(name, dtype, device, 4 * x, dy, -2, "long")


@pytest.mark.parametrize("name", FORMS)
def test_columns_take_one_launch_each_way(name, device):
    x = rl.randn(6, 20, 40, device=device, requires_grad=True)
    with rl.count() as c:
        y = getattr(rl, name)(x, 1)
    assert c.launches == 1
    assert (c.bytes_read, c.bytes_written) == (x.nbytes, x.nbytes)
    assert y.is_contiguous()
    dy = rl.ones_like(y)
    with rl.count() as c:
        y.backward(dy)
    assert c.launches == 1
    assert x.grad.is_contiguous()


@pytest.mark.parametrize("name", FORMS)
def test_views(name, device):
    whole = np.random.default_rng(2).standard_normal((5, 12, 90)).astype("float32")
    own = rl.tensor(whole, device=device)
    for view, right in (
        (own[1:, 2:9, 3:80], whole[1:, 2:9, 3:80]),
        (own[:, ::3], whole[:, ::3]),
        (own[:1].expand(4, 12, 90), np.broadcast_to(whole[:1], (4, 12, 90))),
    ):
        with rl.count() as c:
            y = getattr(rl, name)(view, 1)
        assert_close(y, expected(name, right.astype("float64"), 1), rtol=2e-6, atol=2e-6)
        assert c.launches == 1
    wide = rl.tensor(np.random.default_rng(5).standard_normal((5, 20, 99)).astype("float32"), device=device)
    part = own.detach().clone()
    part.requires_grad = True
    y = getattr(rl, name)(part, 1)
    slope = wide[:, 3:15, 4:94]  # lies in memory otherwise than y
    y.backward(slope)
    right = expected_gradient(name, y.detach().to("float64").cpu().numpy(), slope.to("float64").cpu().numpy(), 1)
    assert_close(part.grad, right, rtol=1e-5, atol=1e-5)
    turned = own.transpose(1, 2)  # its columns along dimension 1 are rows in memory
    y = getattr(rl, name)(turned, 1)
    assert_close(y, expected(name, whole.transpose(0, 2, 1).astype("float64"), 1), rtol=2e-6, atol=2e-6)


def test_a_gradient_that_repeats_is_laid_out_first(device):
    x = np.random.default_rng(3).standard_normal((4, 9, 33)).astype("float32")
    own = rl.tensor(x, device=device, requires_grad=True)
    (rl.softmax(own, 1) * rl.tensor(x, device=device)).sum().backward()
    y = expected("softmax", x.astype("float64"), 1)
    assert_close(own.grad, expected_gradient("softmax", y, x.astype("float64"), 1), rtol=1e-5, atol=1e-6)
    own.grad = None
    rl.log_softmax(own, 1).sum().backward()  # dy repeats one number
    assert_close(own.grad, 1 - 9 * y, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", FORMS)
def test_values_that_are_not_finite_stay_in_their_column(name, device):
    x = np.zeros((5, 24), "float32")
    x[1, 0], x[2, 1], x[3, 2], x[:, 3] = np.nan, np.inf, -np.inf, -np.inf
    y = getattr(rl, name)(rl.tensor(x, device=device), 0).cpu().numpy()
    assert np.isnan(y[:, [0, 1, 3]]).all()
    quarter = np.where(np.arange(5) == 3, 0, 0.25)
    with np.errstate(divide="ignore"):
        assert_close(y[:, 2], quarter if name == "softmax" else np.log(quarter), rtol=1e-6, atol=0)
    assert np.isfinite(y[:, 4:]).all()


def test_long_columns_of_alike_numbers_keep_their_digits(device):
    n = 1 << 16 if device == "cpu" else 1 << 13
    x = rl.full((n, 16), 0.1, device=device)
    x[0] = 0.4
    weights = np.exp(x.to("float64").cpu().numpy()[:, 0])
    assert_close(rl.softmax(x, 0)[1], np.full(16, weights[1] / weights.sum()), rtol=2e-6, atol=0)
    dy = rl.full((n, 16), 0.1, device=device)
    y = rl.log_softmax(x.detach(), 0)
    own = x.detach().clone()
    own.requires_grad = True
    rl.log_softmax(own, 0).backward(dy)
    right = 0.1 - np.exp(y.to("float64").cpu().numpy()[0]) * np.float64(np.float32(0.1)) * n
    assert_close(own.grad[0], right, rtol=0, atol=3e-7)


def test_rungs_by_name(device):
    x = np.random.default_rng(4).standard_normal((32, 40)).astype("float32")
    own, right = rl.tensor(x, device=device), expected("softmax", x.astype("float64"), 0)
    for rung in rl.variants("softmax", device.split(":")[0]):
        if rung.name not in ("v2b_long_rows", "v3_split_rows", "v4a_short_columns"):
            assert_close(rl.softmax(own, 0, variant=rung.name), right, rtol=2e-6, atol=2e-6, name=rung.name)
    with pytest.raises(ValueError, match="v4_columns"):
        rl.softmax(own, 1, variant="v4_columns")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    "shape, dim",
    [((1, 4099), 0), ((4099, 1), 1), ((2, 1600), 0), ((4, 72), 0), ((8, 264), 0), ((5, 3, 16), 1), ((3, 7, 2, 8), 1)],
)
def test_short_columns(shape, dim, op, dtype, device):
    x = (3 * np.random.default_rng(5).standard_normal(shape)).astype("float32")
    x[..., -1], x[(0,) * len(shape)] = -np.inf, np.nan
    own = rl.tensor(x, device=device).to(dtype)
    with np.errstate(all="ignore"):
        right = expected(op, own.to("float64").cpu().numpy(), dim)
    tolerance = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    with rl.count() as counted:
        result = getattr(rl, op)(own, dim)
    assert_close(result.to("float64"), right, rtol=tolerance, atol=tolerance)
    assert result.shape == shape and (device == "cpu" or counted.launches == 1)


@pytest.mark.gpu
def test_short_columns_take_whole_vectors_alone():
    wide = rl.ones(8, 1024, device="cuda")
    for x in (wide[:, 1:1021], wide[:, :1022], rl.ones(9, 16, device="cuda"), wide.double()):
        with pytest.raises(ValueError, match="v4a_short_columns"):
            rl.softmax(x, 0, variant="v4a_short_columns")
    assert_close(rl.softmax(wide[:, 4:1024], 0, variant="v4a_short_columns"), np.full((8, 1020), 0.125))
    assert_close(rl.softmax(wide[::2], 0, variant="v4a_short_columns"), np.full((4, 1024), 0.25))


def kernels_of(fn, x):
    with rl.profile() as prof:
        fn(x)
    return [kernel.name for kernel in prof.kernels]


@pytest.mark.parametrize("shape", [(64, 6, 4), (1000, 8, 4), (8, 512)])
def test_a_recorded_call_takes_columns_that_begin_anywhere(shape):
    memory, count = rl.zeros(int(np.prod(shape)) + 8, device=rl.meta("H200")), int(np.prod(shape))
    aligned, other = memory[:count].view(*shape), memory[1 : count + 1].view(*shape)
    compiled = rl.compile(lambda x: rl.softmax(x, len(shape) - 2))
    assert kernels_of(compiled, aligned) == ["softmax_cuda_v4a_short_columns"]
    assert kernels_of(compiled, other) == ["softmax_cuda_v4_columns"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_that_are_turned_first_are_aligned(dtype):
    memory = rl.zeros(40008, dtype=dtype, device=rl.meta("H200"))
    for begin in (0, 1):
        x = memory[begin : begin + 40000].view(1000, 40)
        assert kernels_of(lambda x: rl.softmax(x, 0), x)[-1] == "softmax_cuda_v2_one_pass"
        rl.softmax(x, 0, variant="v1b_staged")


@pytest.mark.gpu
def test_a_recorded_call_computes_columns_that_begin_anywhere():
    memory = rl.randn(64 * 6 * 4 + 1, device="cuda")
    compiled = rl.compile(lambda x: rl.softmax(x, 1))
    for begin in (0, 1):
        x = memory[begin : begin + 64 * 6 * 4].view(64, 6, 4)
        assert_close(compiled(x), expected("softmax", x.cpu().numpy(), 1), rtol=1e-5, atol=1e-6)
