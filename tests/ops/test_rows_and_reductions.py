"""What the specs of softmax, the norms and the reductions leave out: other dimensions, copies, NaN, bad arguments."""

import itertools

import numpy as np
import pytest
from ops.samples import of_each_rung

import rooflab as rl
from rooflab.testing import assert_close


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("dim", [0, 1, 2, -3])
def test_softmax_over_any_dimension(device, dim):
    x = np.random.default_rng(0).standard_normal((4, 33, 16))
    y = rl.softmax(rl.tensor(x, dtype="float64", device=device), dim=dim)
    assert_close(y, softmax(x, dim), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("dim", [(0, 2), (0, 1), (1, 3), (3, 0), (-1, -4, 1), None])
def test_reductions_over_any_dimensions(device, op, dim):
    x = np.random.default_rng(0).standard_normal((3, 5, 4, 7))
    for tensor, array in (
        (rl.tensor(x, dtype="float64", device=device), x),
        (rl.tensor(x, dtype="float64", device=device).permute(2, 0, 3, 1), x.transpose(2, 0, 3, 1)),
    ):
        y = getattr(rl, op)(tensor, dim=dim, keepdim=True)
        assert_close(y, getattr(np, op)(array, axis=dim, keepdims=True), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("op", ["sum", "amax", "var"])
def test_many_columns_in_several_parts(device, op):
    """On a GPU three blocks share a column, and a thread for each column folds what they found."""
    x = np.random.default_rng(0).standard_normal((400, 8200))
    found = getattr(rl, op)(rl.tensor(x, dtype="float32", device=device), dim=0)
    right = x.var(axis=0, ddof=1) if op == "var" else getattr(x, {"sum": "sum", "amax": "max"}[op])(axis=0)
    assert_close(found, right, rtol=1e-5, atol=1e-4)


def test_integers_sum_in_int64_and_keep_their_maximum(device):
    x = rl.full((100000,), 2**30, dtype="int32", device=device)
    assert (x.sum().item(), x.sum().dtype) == (100000 * 2**30, "int64")
    assert (x.amax().item(), x.amax().dtype) == (2**30, "int32")
    flags = rl.tensor([True, False, True], dtype="bool", device=device)
    assert flags.sum().item() == 2
    assert flags.amax().item() is True
    assert flags.amin().item() is False


@pytest.mark.parametrize("op", [rl.amax, rl.amin])
def test_extremes_are_nan_wherever_there_is_one(device, op):
    x = np.random.default_rng(0).standard_normal((5, 70))
    x[0, 0] = x[1, 69] = x[2, 33] = np.nan
    for dtype in ("float64", "float32", "float16", "bfloat16"):
        tensor = rl.tensor(x, dtype=dtype, device=device)
        for variant in ("", "v0_reference"):
            found = op(tensor, dim=1, variant=variant).float().cpu().numpy()
            assert np.isnan(found).tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("op", ["sum", "mean"])
@pytest.mark.parametrize("n", [2, 3, 17, 1000, 40_000])
def test_a_sum_that_fits_is_finite_whatever_overflows_on_the_way(dtype, op, n, device):
    large = {"float32": 3e38, "float16": 6e4, "bfloat16": 3e38}[dtype]
    half = np.where(np.arange(n) < n // 2, large, -large)
    columns = itertools.product((half, -half, np.roll(half, 1), np.full(n, large)), (3, 8))
    for column, count in columns:  # 8: a thread has whole vectors of columns
        values = np.stack([column] * count, axis=1)
        tensors = (rl.tensor(layout, dtype=dtype, device=device) for layout in (values, values.T.copy()))
        for x, dim in zip(tensors, (0, 1), strict=True):
            exact = getattr(x.to("float64"), op)(dim=dim)
            for rung in rl.variants(op, device):
                try:
                    found = getattr(rl, op)(x, dim=dim, variant=rung.name)
                except ValueError as error:
                    assert "does not accept these operands" in str(error)
                    continue
                assert rl.isfinite(found).tolist() == rl.isfinite(exact.to(dtype)).tolist(), rung.name
                assert_close(found, exact.to(dtype), rtol=0.01, atol=1e-6 * n * large)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("n", [9, 33, 1000, 5000])
def test_a_row_that_overflows_on_the_way_leaves_the_others_as_they_are(dtype, n, device):
    rows = 1e-18 * np.random.default_rng(n).standard_normal((70, n))  # would vanish if they were scaled as well
    calm = rl.sum(rl.tensor(rows, dtype=dtype, device=device), dim=1).to("float64").cpu().numpy()
    rows[5] = np.where(np.arange(n) < n // 2, 3e38, -3e38)
    x = rl.tensor(rows, dtype=dtype, device=device)
    found = rl.sum(x, dim=1).to("float64").cpu().numpy()
    assert np.delete(found, 5).tolist() == np.delete(calm, 5).tolist()
    assert_close(found[5], x[5].to("float64").sum().item(), rtol=1e-2, atol=1e32)


@pytest.mark.parametrize("largest", [1e18, 1e20, 3e38, 1e-19, 1e-30, 1e-37])
@pytest.mark.parametrize("d", [4, 36, 1000, 20001, 32768])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_norms_of_huge_and_tiny_numbers_are_those_of_others(name, largest, d, device):
    x = np.random.default_rng(0).uniform(-1, 1, (3, d))
    centered = x - x.mean(axis=1, keepdims=True) * (name == "layer_norm")
    expected = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True))
    rows = rl.tensor([x[0] * largest, x[1], x[2] * largest], dtype="float32", device=device)  # row 1 is normal
    for rung, y in of_each_rung(name, device, lambda rung: getattr(rl, name)(rows, eps=0, variant=rung)):
        assert_close(y, expected, rtol=1e-5, atol=1e-5, name=rung)


def test_norms_of_subnormal_numbers():
    x = np.array([3.0, -1.0, 2.0, -4.0] * 9) * 2.0**-140
    cos, sin = rl.ones(1, 36), rl.zeros(1, 36)
    weight, calls = rl.ones(36), {
        "rms_norm": lambda x, **keywords: rl.rms_norm(x, **keywords),
        "layer_norm": lambda x, **keywords: rl.layer_norm(x, **keywords),
        "rms_norm_add": lambda x, **keywords: rl.rms_norm_add(x, rl.zeros(1, 36), weight, **keywords)[0],
        "rms_norm_rope": lambda x, **keywords: rl.rms_norm_rope(x.reshape(1, 1, 1, 36), weight, cos, sin, **keywords),
    }  # fmt: skip
    for name, call in calls.items():
        for rung in rl.variants(name, "cpu"):
            y = call(rl.tensor([x], dtype="float32"), eps=0.0, variant=rung.name)
            assert_close(y.reshape(36), x / np.sqrt((x * x).mean()), rtol=1e-6, atol=0)


@pytest.mark.parametrize("d", [8, 40000])
def test_a_constant_row_keeps_its_layer_norm(device, d):
    x = rl.full((1, d), 1e9, device=device)
    for rung, y in of_each_rung("layer_norm", device, lambda rung: rl.layer_norm(x, eps=1e-35, variant=rung)):
        assert_close(y, np.zeros((1, d)), rtol=0, atol=0, name=rung)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("d", [4096, 5000, 40001])
def test_a_constant_row_whose_sum_overflows_keeps_its_layer_norm(device, d, dtype):
    x = rl.full((3, d), 1e35, dtype=dtype, device=device)
    for rung, y in of_each_rung("layer_norm", device, lambda rung: rl.layer_norm(x, variant=rung)):
        assert_close(y, np.zeros((3, d)), rtol=0, atol=0, name=rung)


def test_layer_norm_of_an_infinity_is_nan(device):
    assert rl.isnan(rl.layer_norm(rl.tensor([[np.inf, 1.0]], device=device))).all().item()


def test_sums_are_the_same_on_every_run(device):
    x = rl.randn(3, 200003, device=device)
    first = [rl.sum(x).item(), rl.mean(x, dim=1).tolist(), rl.sum(x, dim=0).tolist()]
    for _ in range(3):
        assert [rl.sum(x).item(), rl.mean(x, dim=1).tolist(), rl.sum(x, dim=0).tolist()] == first


def test_expanded_rows_are_read_where_they_lie(device):
    row = rl.randn(1, 64, device=device)
    with rl.count() as counted:
        y = rl.softmax(row.expand(9, 64))
    assert (counted.launches, counted.bytes_read) == (1, 64 * 4)
    assert_close(y, np.repeat(rl.softmax(row).cpu().numpy(), 9, axis=0), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rl.rms_norm(rl.ones(2, 640), rl.ones(512)), r"\[rms_norm\] weight: expected \(D=640\), got \(512,\)"),
        (lambda: rl.layer_norm(rl.ones(2, 8), rl.ones(8), rl.ones(2, 8)), r"\[layer_norm\] bias: expected \(D=8\)"),
        (lambda: rl.rms_norm(rl.ones(2, 8), rl.ones(8, dtype="float16")), r"\[rms_norm\].*float32 and float16"),
        (lambda: rl.softmax(rl.ones(2, 8, dtype="int64")), r"\[softmax\] x: expected a floating-point dtype"),
        (lambda: rl.softmax(rl.ones(2, 8), dim=2), r"\[softmax\] dim: expected in \[-2, 1\], got 2"),
        (lambda: rl.sum(rl.ones(2, 8), dim=(0, -2)), r"\[sum\] dim: -2 appears twice"),
        (lambda: rl.mean(rl.ones(2, 8, dtype="int32")), r"\[mean\] x: expected a floating-point dtype"),
        (lambda: rl.amax(rl.ones(2, 0), dim=1), r"\[amax\] x: expected at least one element"),
        (lambda: rl.amax(rl.ones(0, 3, 0), dim=0), r"\[amax\] x: expected at least one .*, got \(0, 3, 0\)"),
        (lambda: rl.amin(rl.ones(0, 3, 0), dim=(1, 2)), r"\[amin\] x: expected at least one element"),
    ],
)
def test_bad_arguments_are_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
