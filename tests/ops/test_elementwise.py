"""What the specs of the elementwise family do not reach: integers, numbers, fills, copies into views, refusals."""

import itertools

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs._tiles import LINES, around, tile
from rooflab.testing import to_float64

INT64_MIN = -(2**63)


def ints(values, dtype, device):
    return rl.tensor(np.array(values), dtype=dtype, device=device)


@pytest.mark.parametrize("variant", ["", "v0_reference"])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_integer_arithmetic(dtype, variant, device):
    values = np.random.default_rng(0).integers(-9, 9, (2, 33, 65))
    a, b = (ints(v, dtype, device) for v in values)
    x, y = values
    exact = {
        "add": x + y,
        "sub": x - y,
        "mul": x * y,
        "maximum": np.maximum(x, y),
        "minimum": np.minimum(x, y),
        "pow": x ** np.abs(y),
        "eq": x == y,
        "lt": x < y,
        "ge": x >= y,
    }
    for name, expected in exact.items():
        result = getattr(rl, name)(a, rl.abs(b) if name == "pow" else b, variant=variant)
        assert result.dtype == ("bool" if expected.dtype == bool else dtype)
        np.testing.assert_array_equal(result.cpu().numpy(), expected.astype(np.dtype(str(result.dtype))), err_msg=name)
    for name, expected in {"neg": -x, "abs": np.abs(x), "relu": np.maximum(x, 0)}.items():
        np.testing.assert_array_equal(getattr(rl, name)(a, variant=variant).cpu().numpy(), expected)


def test_integers_wrap_around_and_stay_exact(device):
    big = ints([INT64_MIN, 2**63 - 1, 2**53 + 1], "int64", device)
    assert (big - 1).tolist() == [2**63 - 1, 2**63 - 2, 2**53]
    assert (-big).tolist() == [INT64_MIN, -(2**63) + 1, -(2**53) - 1]
    assert rl.abs(big).tolist() == [INT64_MIN, 2**63 - 1, 2**53 + 1]
    assert (big == 2**53 + 1).tolist() == [False, False, True]
    assert (ints([3, -1, 1, 0], "int64", device) ** ints([39, -3, -2, -1], "int64", device)).tolist() == [
        3**39,
        -1,
        1,
        0,
    ]


def test_casts_saturate_and_turn_nan_into_zero(device):
    x = rl.tensor(np.array([np.nan, np.inf, -np.inf, 1e30, -2.9, 2.9, 0.0]), device=device)
    assert x.to("int32").tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -2, 2, 0]
    assert x.to("int64").tolist() == [0, 2**63 - 1, INT64_MIN, 2**63 - 1, -2, 2, 0]
    assert x.to("bool").tolist() == [True] * 6 + [False]
    assert ints([0, 7, -1], "int32", device).to("bool").to("float16").tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
def test_fill_and_copy_into_views(dtype, device):
    x = rl.zeros(5, 6, dtype=dtype, device=device)
    x[1:4, ::2] = 1
    expected = np.zeros((5, 6))
    expected[1:4, ::2] = 1
    np.testing.assert_array_equal(np.array(x.tolist()), expected)
    x[:, 1] = x[:, 0]
    expected[:, 1] = expected[:, 0]
    np.testing.assert_array_equal(np.array(x.tolist()), expected)
    x.T.copy_(rl.ones(1, device=device))
    np.testing.assert_array_equal(np.array(x.tolist()), np.ones((5, 6)))


def test_overlapping_copy_reads_before_it_writes(device):
    for move, expected in (
        (lambda x: x[1:].copy_(x[:-1]), np.arange(-1, 99_999).clip(0)),
        (lambda x: x[:-1].copy_(x[1:]), np.arange(1, 100_001).clip(None, 99_999)),
        (lambda x: x[3000:].copy_(x[:-3000]), np.concatenate([np.arange(3000), np.arange(97_000)])),
    ):
        x = rl.arange(100_000, device=device)
        move(x)
        np.testing.assert_array_equal(x.cpu().numpy(), expected)


@pytest.mark.parametrize("dtype", ["bool", "float16", "int32", "float64"])  # of 1, 2, 4 and 8 bytes
@pytest.mark.parametrize(
    "shape",
    [(64, 512), (65, 1031), (9, 4100), (4100, 4), (1031, 37), (3, 170, 90), (2, 3, 131, 70), (2, 3, 4, 5, 6, 7)],
)
def test_rows_become_columns(shape, dtype, device):
    """Copies by the rung that runs on its own, and on a GPU by that for turned rows wherever it can."""
    x = (np.arange(np.prod(shape)) % 509 % (2 if dtype == "bool" else 512)).reshape(shape).astype(dtype)
    t = rl.tensor(x, dtype=dtype, device=device)
    by_tiles = 0
    for order in (*itertools.islice(itertools.permutations(range(len(shape))), 24), tuple(range(len(shape)))[::-1]):
        turned, expected = t.permute(*order), x.transpose(order)
        for copied, right in (
            (turned, expected),
            (turned[..., 1:, ::3], expected[..., 1:, ::3]),
            (turned[..., ::2, 2:], expected[..., ::2, 2:]),
        ):
            np.testing.assert_array_equal(copied.contiguous().cpu().numpy(), right, err_msg=str(order))
            if device == "cpu":
                continue
            try:
                found = rl.copy(copied, variant="v2b_tiles")
            except ValueError:
                continue
            by_tiles += 1
            np.testing.assert_array_equal(found.cpu().numpy(), right, err_msg=f"tiles {order}")
    assert device == "cpu" or by_tiles >= 2
    left = rl.zeros(*shape[:-2], shape[-1], shape[-2] + 3, dtype=dtype, device=device)
    left[..., 2:-1] = t.transpose(-2, -1)
    np.testing.assert_array_equal(left[..., 2:-1].cpu().numpy(), x.swapaxes(-2, -1))
    assert not left[..., :2].any().item() and not left[..., -1].any().item()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (2, 0, 1)])
@pytest.mark.parametrize("shape", [(3, 5, 4), (7, 1, 9), (1, 6, 1), (2, 0, 3)])
def test_what_is_turned_alike_stays_turned(shape, order, dtype, device):
    """Adjacent elements meet adjacent ones: the result lies in memory as its operands do."""
    rng = np.random.default_rng(0)
    a, b = (rl.tensor(rng.integers(1, 9, shape), dtype=dtype, device=device).permute(*order) for _ in range(2))
    x, y = (to_float64(t) for t in (a, b))
    row = b[:1]
    found = {"a + b": a + b, "a < b": a < b, "2 * a": 2 * a, "where": rl.where(a > b, a, 0.0), "clamp": a.clamp(2, 5),
             "cast": a.to("float64"), "row": a + row, "both": a + b.contiguous(), "relu": a.relu()}  # fmt: skip
    right = {"a + b": x + y, "a < b": x < y, "2 * a": 2 * x, "where": np.where(x > y, x, 0), "clamp": x.clip(2, 5),
             "cast": x, "row": x + y[:1], "both": x + y, "relu": x}  # fmt: skip
    for name, result in found.items():
        np.testing.assert_array_equal(to_float64(result), right[name], err_msg=name)
    if order[-1] != 2 and min(shape) > 1:  # along the last dimension, elements are far apart
        for name in ("a + b", "a < b", "2 * a", "where", "clamp", "cast", "row", "relu"):
            assert found[name].strides == a.strides, name
    assert a.contiguous().is_contiguous() and rl.copy(a).is_contiguous() and a.clone().is_contiguous()
    a += b
    a *= 2
    np.testing.assert_array_equal(to_float64(a), 2 * (x + y))


@pytest.mark.parametrize("shape", [(3, 5, 4), (7, 1, 9), (1, 6, 1), (2, 0, 3)])
@pytest.mark.parametrize("order", [(2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_activations_and_their_gradients_stay_turned(order, shape, device):
    rng = np.random.default_rng(0)
    dy, a, b = (rl.tensor(rng.standard_normal(shape), dtype="float32", device=device).permute(*order) for _ in range(3))
    for op, operands in (
        (rl.gelu, (a,)), (rl.gelu_backward, (dy, a)), (rl.silu_backward, (dy, a)),
        (rl.geglu_backward, (dy, a, b)), (rl.swiglu_backward, (dy, a, b)),
    ):  # fmt: skip
        for turned in (operands, (*operands[:-1], operands[-1].contiguous())):
            found, right = op(*turned), op(*(x.contiguous() for x in operands))
            pairs = zip(found, right, strict=True) if isinstance(found, tuple) else [(found, right)]
            for y, expected in pairs:
                np.testing.assert_allclose(to_float64(y), to_float64(expected), rtol=1e-6, atol=1e-7)
                if turned is operands and order[-1] != 2 and min(shape) > 1:
                    assert y.strides == a.strides


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid"])
def test_the_gradient_of_an_activation_is_one_launch_that_reads_its_result(name, dtype, device):
    x = rl.randn(33, 65, dtype=dtype, device=device, requires_grad=True)
    y, dy = getattr(rl, name)(x), rl.randn(33, 65, dtype=dtype, device=device)
    with rl.count() as counted:
        y.backward(dy)
    assert counted.by_op[f"{name}_backward"].launches == counted.launches == 1
    assert (counted.bytes_read, counted.bytes_written) == (2 * x.nbytes, x.nbytes)
    assert rl.allclose(x.grad, getattr(rl, f"{name}_backward")(dy, y.detach()), rtol=0, atol=0)


def test_numbers_take_the_dtype_of_the_tensor(device):
    x = rl.full((3,), 0.1, dtype="float16", device=device)
    for dtype in ("float16", "bfloat16", "float32"):
        y = rl.full((3,), 0.1, dtype=dtype, device=device)
        assert (y == 0.1).tolist() == [True] * 3
        assert (y * 2).dtype == dtype
    assert (1 - x).dtype == "float16"
    assert rl.where(x > 1, x, 2.0).tolist() == [2.0] * 3


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0, 65504.0, 2.0**-24])
def test_copies_keep_every_bit(value, device):
    x = rl.full((4, 5), value, dtype="float16", device=device)
    assert x.T.clone().cpu().numpy().tobytes() == np.full(20, value, dtype=np.float16).tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int32"])
def test_operands_and_results_begin_anywhere(dtype, device):
    numbers, others = np.arange(1.0, 72.0), np.arange(1.0, 71.0) % 7
    one, other = (rl.tensor(x, dtype=dtype, device=device) for x in (numbers, others))
    chosen = rl.tensor(numbers % 3 == 0, device=device)
    assert (one[1:] + other).tolist() == (numbers[1:] + others).tolist()
    assert (other - one[1:]).tolist() == (others - numbers[1:]).tolist()
    assert (one[1:] < other * 9).tolist() == (numbers[1:] < others * 9).tolist()
    right = np.where(numbers[1:] % 3 == 0, numbers[1:], others).tolist()
    assert rl.where(chosen[1:], one[1:], other).tolist() == right
    assert rl.where(chosen[1:], rl.copy(one[1:]), other).tolist() == right
    one[1:] += other
    assert one.tolist() == [1.0, *(numbers[1:] + others)]


def test_one_operand_twice_is_read_once(device):
    x = rl.ones(8, 4, device=device)
    with rl.count() as counted:
        rl.mul(x, x)
        rl.add(x, x[0].expand(8, 4))
    assert counted.bytes_read == 2 * x.nbytes  # its first row is part of it
    assert counted.by_op["mul"].launches == counted.by_op["add"].launches == 1


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("lines", [1, *around(2 * tile(LINES, "kWalks") * tile(LINES, "kChunkLines"))])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_streaming_kernels_agree_with_the_others(dtype, lines, two_threads):
    """Arrays larger than the caches use other stores on the CPU, a cache line at a time. The sizes here do not divide
    evenly among threads, their walks or the chunks of a walk, and end with a part of a line."""
    width = 4 if dtype == "float32" else 2
    n = (2**19 + 2**10 + lines) * (64 // width) + lines % 4
    x = rl.randn(n, dtype=dtype)
    expected = rl.gelu(x, variant="v1_simd")
    for variant in ("v2_streaming", ""):
        rl.full((n,), np.nan, dtype=dtype)  # the memory that a result gets: an element left out is not right by chance
        assert rl.gelu(x, variant=variant).numpy().tobytes() == expected.numpy().tobytes()
    expected = rl.add(x, 1, variant="v1_staged")
    rl.full((n,), np.nan, dtype=dtype)
    assert (x + 1).numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rl.ones(2) + rl.ones(2, device="meta"), r"\[add\] operands are on cpu and meta"),
        (lambda: rl.ones(2, 3) * rl.ones(2), r"\[mul\] shapes \(2, 3\) and \(2,\) do not broadcast"),
        (lambda: rl.ones(2) & 1, r"\[bitwise_and\] expected an integer or bool dtype, got float32"),
        (lambda: -rl.ones(2, dtype="bool"), r"\[neg\] expected a numeric dtype, got bool"),
        (lambda: rl.ones(2, dtype="int32") & 0.5, r"\[bitwise_and\] expected an integer or bool dtype, got float32"),
        (lambda: rl.ones(2, dtype="int32") * 2**40, r"\[mul\] number: expected one that int32 can hold"),
        (lambda: rl.ones(2, dtype="int64") ** -1, r"\[pow\] number: expected an exponent >= 0 for int64, got -1"),
        (lambda: rl.where(rl.ones(2), rl.ones(2), 0.0), r"\[where\] condition: expected bool, got float32"),
        (lambda: rl.ones(1).expand(3).fill_(2), r"\[fill\] destination: an expanded tensor"),
        (lambda: rl.ones(2).copy_(rl.ones(3)), r"\[copy\]"),
        (lambda: rl.ones(1, 2).copy_(rl.ones(3, 2)), r"\[copy\] source: \(3, 2\) does not broadcast to \(1, 2\)"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_masks_of_any_length_are_bits():
    """A vector holds many; the last elements do not fill one."""
    rng = np.random.default_rng(3)
    for n in (1, 63, 64, 65, 511, 4097, 16384 + 70):
        a, b = rng.random((2, n)) < 0.5
        x, y = rl.tensor(a), rl.tensor(b)
        for ours, theirs in (
            (x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (x == y, a == b), (x != y, a != b),
            (x < y, a < b), (x <= y, a <= b), (x > y, a > b), (x >= y, a >= b),
        ):  # fmt: skip
            assert np.array_equal(ours.numpy(), theirs)
        assert (x.sum().item(), x.any().item(), x.all().item()) == (a.sum(), a.any(), a.all())
        assert (rl.ones(n, dtype="bool").sum().item(), rl.ones(n, dtype="bool").all().item()) == (n, True)
