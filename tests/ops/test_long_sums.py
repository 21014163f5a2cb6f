"""Sums of long rows and of numbers that are large and alike: every rung is as exact as pairwise sums are.

The bound on every sum is that of the design, C log2(n) eps sum|x|.
"""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import sum_roundings, unit_roundoff
from rooflab.testing import assert_close, to_float64

U = unit_roundoff("float32")


def kinds_of_numbers(n, rng):
    """Numbers whose sums go wrong in different ways, by name."""
    return {
        "alike": np.full(n, 0.1),
        "large and alike": 1e4 + 0.01 * rng.uniform(size=n),
        "of both signs": rng.standard_normal(n),
        "small after large": np.where(np.arange(n) < n // 2, 1.0, 1e-4),
    }


def each_rung(name, *operands, **options):
    """What each rung returns that takes the operands, by its name."""
    found = {}
    for rung in rl.variants(name, operands[0].device):
        if rung.name == "v0_reference" and operands[0].dtype == "float64":
            continue  # it adds one number after another, in a type that is no wider than they are
        try:
            found[rung.name] = getattr(rl, name)(*operands, variant=rung.name, **options)
        except ValueError as error:
            assert "does not accept these operands" in str(error)
    assert found
    return found


def exact_sum(x, axis):
    return x.astype(np.longdouble).sum(axis=axis).astype(np.float64)


# ---- sums and means


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["row", "column", "columns", "strided", "two dims"])
@pytest.mark.parametrize("op", ["sum", "mean"])
def test_sums_are_as_exact_as_pairwise_ones(op, layout, dtype, device):
    n, u = 200_000, unit_roundoff("float64" if dtype == "float64" else "float32")
    for kind, numbers in kinds_of_numbers(n, np.random.default_rng(0)).items():
        tensor = rl.tensor(numbers, dtype=dtype, device=device)
        if op == "sum" and dtype == "float16":
            tensor = tensor * (1e-5 if kind == "large and alike" else 0.1)  # in the range of the result
        x, dim = {
            "row": (tensor, None),
            "column": (tensor.reshape(n, 1).expand(n, 3).contiguous()[:, 1:2], 0),
            "columns": (tensor.reshape(n // 80, 80), 0),
            "strided": (tensor.reshape(n // 2, 2).transpose(0, 1), 1),
            "two dims": (tensor.reshape(n // 1000, 10, 100), (0, 2)),
        }[layout]
        array = to_float64(x)
        count = n if dim is None else int(np.prod([array.shape[d] for d in np.atleast_1d(dim)]))
        size = exact_sum(np.abs(array), dim) / (count if op == "mean" else 1)
        expected = exact_sum(array, dim) / (count if op == "mean" else 1)
        for name, y in each_rung(op, x, dim=dim).items():
            off = sum_roundings(count) * u * size + 2 * unit_roundoff(dtype) * np.abs(expected)
            error = np.abs(to_float64(y) - expected)
            assert (error <= off + 1e-7 * (dtype == "float16")).all(), (kind, name, (error / off).max())


def test_a_million_tenths(device):
    assert (rl.ones(5, 68, 64, 64, device=device) * 0.1).sum().item() * 10 == pytest.approx(1392640.02, rel=2.5e-7)


def test_the_mean_of_equal_numbers_is_that_number(device):
    for x in (rl.full((2**20,), 10000.004, device=device), rl.full((2**20, 2), 10000.004, device=device)):
        assert rl.mean(x, dim=0).tolist() == x[0].tolist()


def test_thirty_million_tenths(device):
    x = rl.full((30_000_000,), 0.1, device=device)
    assert rl.sum(x).item() == pytest.approx(3e7 * float(np.float32(0.1)), rel=3e-7)


def test_running_sums_stay_near_the_exact_ones(device):
    n = 200_003
    for kind, numbers in kinds_of_numbers(n, np.random.default_rng(0)).items():
        for dtype in ("float32", "bfloat16"):
            x = rl.tensor(numbers, dtype=dtype, device=device)
            array = to_float64(x)
            exact, size = np.cumsum(array), np.cumsum(np.abs(array))
            bound = sum_roundings(n) * U * size + 2 * unit_roundoff(dtype) * np.abs(exact)
            for name, y in each_rung("cumsum", x, 0).items():
                assert (np.abs(to_float64(y) - exact) <= bound).all(), (kind, dtype, name)


# ---- variances and layer_norm


def test_the_variance_of_a_million_numbers_that_are_large_and_alike(device):
    x = rl.tensor((1e4 + 0.01 * np.random.default_rng(0).uniform(size=2**20)).astype("f4"), device=device)
    exact = to_float64(x).var(ddof=1)
    assert rl.var(x).item() == pytest.approx(exact, rel=1e-5)
    assert rl.std(x).item() == pytest.approx(np.sqrt(exact), rel=1e-5)
    of_rows = rl.var(x.reshape(4, -1), dim=1)
    assert_close(of_rows, to_float64(x).reshape(4, -1).var(axis=1, ddof=1), rtol=1e-5, atol=0)


def test_the_gradient_of_a_variance_far_from_zero(device):
    x = rl.tensor(
        (3e4 + np.random.default_rng(0).standard_normal(1000)).astype("f4"), device=device, requires_grad=True
    )
    rl.var(x).backward()
    array = to_float64(x.detach())
    assert_close(x.grad, 2 * (array - array.mean()) / 999, rtol=1e-5, atol=1e-7)


ROWS = {
    "steps of one rounding": lambda rng: 1e4 + np.tile(np.arange(16) * 1e-3, (3, 1)),
    "a hundred thousand": lambda rng: 1e5 + 0.1 * rng.standard_normal((3, 768)),
    "two": lambda rng: rng.standard_normal((4096, 2)),
    "two far from zero": lambda rng: 1e4 + rng.standard_normal((64, 2)),
    "three": lambda rng: 1e3 + rng.standard_normal((64, 3)),
    "four": lambda rng: 2000 + rng.standard_normal((64, 4)),
    "long": lambda rng: 100 + 0.01 * rng.standard_normal((2, 32768)),
    "longer than a tile": lambda rng: 100 + 0.01 * rng.standard_normal((1, 70001)),
    "one that differs": lambda rng: np.where(np.arange(1000) == 7, 1e7 + 1, np.full((3, 1000), 1e7)),
    "a mix": lambda rng: np.array([[0.0], [1e6], [-3e4], [5.0]]) + rng.standard_normal((4, 264)),
}


def normalised(x, eps):
    distance = x - x.mean(axis=-1, keepdims=True)
    distance = distance - distance.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((distance**2).mean(axis=-1, keepdims=True) + eps)
    return scale, distance * scale


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("rows", ROWS)
def test_layer_norm_does_not_lose_what_numbers_differ_by(rows, dtype, device):
    numbers = ROWS[rows](np.random.default_rng(0))
    if dtype == "float16" and np.abs(numbers).max() > 6e4:
        return
    x = rl.tensor(numbers, dtype=dtype, device=device)
    eps = 1e-9 if rows == "one that differs" else 1e-5
    _, expected = normalised(to_float64(x).astype(np.longdouble), eps)
    u = unit_roundoff("float64" if dtype == "float64" else "float32")
    rtol = 2 * unit_roundoff(dtype) + 2 * sum_roundings(x.shape[-1]) * u
    atol = 8 * u * np.abs(expected).max()
    for y in each_rung("layer_norm", x, eps=eps).values():
        assert_close(y, expected.astype(np.float64), rtol=rtol, atol=atol)


def test_layer_norm_of_sixteen_steps(device):
    x = rl.tensor((1e4 + np.arange(16) * 1e-3).astype("f4")[None], device=device)
    assert rl.layer_norm(x)[0, 0].item() == pytest.approx(-1.3313, abs=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rows", ROWS)
def test_gradients_of_layer_norm_do_not_either(rows, dtype, device):
    rng = np.random.default_rng(1)
    numbers = ROWS[rows](rng)
    if dtype == "float16" and np.abs(numbers).max() > 6e4:
        return
    n, d = numbers.shape
    eps = 1e-3  # rows of two that are nearly equal would have gradients of thousands, mostly cancelled
    x, dy, weight = (
        rl.tensor(array, dtype=dtype, device=device)
        for array in (numbers, rng.standard_normal((n, d)), rng.standard_normal(d))
    )
    scale, normal = normalised(to_float64(x), eps)
    slopes = to_float64(dy)
    dn = slopes * to_float64(weight)
    mean, along = dn.mean(axis=1, keepdims=True), (dn * normal).mean(axis=1, keepdims=True)
    sizes = np.abs(dn).mean(axis=1, keepdims=True), np.abs(dn * normal).mean(axis=1, keepdims=True)
    rounding, few = 2 * unit_roundoff(dtype), 2 * sum_roundings(d) * U
    dx = scale * (dn - mean - normal * along)
    smallest = 2.0**-24 if dtype == "float16" else 0.0
    dx_off = smallest + few * scale * (np.abs(dn) + sizes[0] + np.abs(normal) * sizes[1] + sizes[1])
    of_rows = smallest + (few + sum_roundings(n) * U) * np.abs(slopes * (np.abs(normal) + 1)).sum(axis=0)
    found = each_rung("layer_norm_backward", dy, x, weight, eps=eps, has_bias=True)
    for gradients in found.values():
        assert_close(gradients[0], dx, rtol=rounding, atol=dx_off)
        assert_close(gradients[1], (slopes * normal).sum(axis=0), rtol=rounding, atol=of_rows)
        assert_close(gradients[2], slopes.sum(axis=0), rtol=rounding, atol=of_rows)


# ---- sums over rows, and the other sums of rows


@pytest.mark.parametrize("d", [2, 8, 200, 1032])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
@pytest.mark.slow(id=["cpu-layer_norm-200"])
def test_sums_over_many_rows_of_alike_gradients(name, d, device):
    n = {2: 150_000, 8: 150_000, 200: 40_000, 1032: 40_000 if device != "cpu" else 3000}[d]
    dy, weight = rl.full((n, d), 0.1, device=device), rl.ones(d, device=device)
    x = (rl.arange(d, dtype="float32", device=device) + 1.0).reshape(1, d).expand(n, d)
    row = np.arange(d) + 1.0
    normal = row / np.sqrt((row**2).mean()) if name == "rms_norm" else normalised(row, 0.0)[1]
    off = sum_roundings(n) * U + 2 * sum_roundings(d) * U
    options = {"has_bias": True} if name == "layer_norm" else {}
    found = each_rung(f"{name}_backward", dy, x, weight, eps=0.0, **options)
    for _, dweight, *dbias in found.values():
        sums = n * float(np.float32(0.1))
        assert_close(dweight, sums * normal, rtol=off, atol=off * sums)
        for of_bias in dbias:
            assert_close(of_bias, np.full(d, sums), rtol=sum_roundings(n) * U, atol=0)


@pytest.mark.parametrize("n", [1000, 32768, 300_000])
def test_root_mean_squares_of_long_rows(n, device):
    for numbers in kinds_of_numbers(n, np.random.default_rng(0)).values():
        x = rl.tensor(numbers[None], dtype="float32", device=device)
        exact = to_float64(x) / np.sqrt((to_float64(x) ** 2).mean())
        weight, residual = rl.ones(n, device=device), rl.zeros(1, n, device=device)
        for y in each_rung("rms_norm", x, eps=0.0).values():
            assert_close(y, exact, rtol=(sum_roundings(n) + 4) * U, atol=0)
        for y in each_rung("rms_norm_add", x, residual, weight, eps=0.0).values():
            assert_close(y, exact, rtol=(sum_roundings(n) + 4) * U, atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1000, 32768, 262_144])
@pytest.mark.slow(id=["cpu-262144-float64"])
def test_softmax_over_a_long_vocabulary(n, dtype, device):
    numbers = np.full((2, n), -1.1)
    numbers[0, n // 3] = 0.0
    numbers[1] = np.linspace(0, 3, n)
    x = rl.tensor(numbers, dtype=dtype, device=device)
    array = to_float64(x).astype(np.longdouble)
    e = np.exp(array - array.max(axis=1, keepdims=True))
    sums = e.sum(axis=1, keepdims=True)
    rtol = (sum_roundings(n) + 20) * unit_roundoff(dtype)
    for y in each_rung("softmax", x).values():
        assert_close(y, (e / sums).astype(np.float64), rtol=rtol, atol=0)
    lse = (np.log(sums) + array.max(axis=1, keepdims=True)).astype(np.float64)
    targets = rl.tensor([0, 1], dtype="int64", device=device)
    losses = lse[:, 0] - np.array([numbers[0, 0], array[1, 1]], np.float64)
    for loss in each_rung("cross_entropy", x, targets, reduction="none").values():
        assert_close(loss, losses, rtol=0, atol=2 * rtol + 4 * unit_roundoff(dtype) * np.abs(lse).max())
    for y in each_rung("log_softmax", x).values():
        assert_close(y, array.astype(np.float64) - lse, rtol=0, atol=2 * rtol + 20 * unit_roundoff(dtype))


@pytest.mark.parametrize("n", [1000, 32768, 262_144])
def test_the_gradient_of_softmax_over_a_long_row(n, device):
    y = rl.softmax(rl.tensor(np.linspace(-1, 1, n)[None], dtype="float32", device=device))
    dy = rl.full((1, n), 0.1, device=device)
    probabilities, slopes = to_float64(y), to_float64(dy)
    exact = probabilities * (slopes - (probabilities * slopes).sum())
    bound = (sum_roundings(n) + 4) * U * probabilities * np.abs(slopes)
    for dx in each_rung("softmax_backward", dy, y).values():
        assert_close(dx, exact, rtol=0, atol=bound)
    y = rl.log_softmax(rl.tensor(np.linspace(-1, 1, n)[None], dtype="float32", device=device))
    probabilities = np.exp(to_float64(y))
    bound = (sum_roundings(n) + 40) * U * probabilities * slopes.sum() + U * slopes
    for dx in each_rung("log_softmax_backward", dy, y).values():
        assert_close(dx, slopes - probabilities * slopes.sum(), rtol=0, atol=bound)


def test_the_mean_of_many_alike_losses(device):
    n = 200_001
    logits, targets = rl.tensor([[0.3, 0.7]], device=device).expand(n, 2), rl.zeros(n, dtype="int64", device=device)
    row = to_float64(rl.tensor([0.3, 0.7], dtype="float32"))
    one = np.log(np.exp(row).sum()) - row[0]
    for reduction, expected in (("mean", one), ("sum", n * one)):
        for name, loss in each_rung("cross_entropy", logits, targets, reduction=reduction).items():
            assert loss.item() == pytest.approx(expected, rel=(sum_roundings(n) + 8) * U), (reduction, name)


@pytest.mark.parametrize("columns", [128, 1000, 65536])
def test_sums_in_compiled_functions(columns, device):
    x = rl.full((256, columns), 0.1, device=device)
    compiled = rl.compile(lambda x: ((x * 3.0).sum(-1), (x * x).mean(-1)))
    tenth = float(np.float32(0.1))
    for found, exact in zip(compiled(x), (columns * tenth * 3, tenth**2), strict=True):
        assert_close(found, np.full(256, exact), rtol=(sum_roundings(columns) / 2 + 3) * U, atol=0)


def test_the_gradient_of_layer_norm_of_float64_far_from_zero(device):
    rng = np.random.default_rng(0)
    distances, dy = np.round(rng.standard_normal((4, 1000)) * 64) / 64, rng.standard_normal((4, 1000))
    found = []
    for far in (0.0, 1e10):
        x = rl.tensor(far + distances, device=device, requires_grad=True)
        w, b = (rl.full((1000,), number, dtype="float64", device=device, requires_grad=True) for number in (1.0, 0.0))
        y = rl.layer_norm(x, w, b)
        y.backward(rl.tensor(dy, device=device))
        found.append((to_float64(y.detach()), to_float64(x.grad), to_float64(w.grad)))
    for near, far in zip(*found, strict=True):
        assert_close(far, near, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("layout", ["rows", "a vector", "a vector and columns"])
def test_products_of_alike_numbers_with_a_long_inner_dimension(layout):
    """Of few rows. One sum from the first product to the last would be off by a thousandth."""
    for k in (1000, 4099, 1 << 22):
        rows = rl.full((2, k), 0.1)
        a, b, rung = {
            "rows": (rows, rows.T, "v7_dots"),
            "a vector": (rows, rows[0], "v6_gemv"),
            "a vector and columns": (rows[0], rl.full((k, 3), 0.1), "v6_gemv"),
        }[layout]
        right = float(np.float64(np.float32(0.1)) ** 2 * k)
        allowed = 6e-6 if k < 10000 else 3e-5
        assert_close(rl.matmul(a, b, variant=rung), np.full(rl.matmul(a, b).shape, right), rtol=allowed, name=f"{k}")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attention_over_many_alike_scores(dtype, device):
    """One score is larger than all others, which are alike: one sum from key to key would be off by 1.4e-4."""
    n, queries = 16384, 32
    q, k, v = (rl.zeros(1, 1, rows, 8, dtype=dtype, device=device) for rows in (queries, n, n))
    q[..., 0] = 1.0
    k[:, :, 0, 0] = 2.25
    v[:, :, 1:17] = 1.0
    scores = np.zeros(n)
    scores[0] = 2.25 / 8**0.5
    weights = np.exp(scores)
    allowed = 1e-5 if dtype == "float32" else 4e-3
    for name, (out, lse) in each_rung("attention", q, k, v, return_lse=True).items():
        assert_close(lse, np.full((1, 1, queries), np.log(weights.sum())), rtol=0, atol=1e-5, name=name)
        right = np.full((1, 1, queries, 8), weights[1:17].sum() / weights.sum())
        assert_close(out, right, rtol=allowed, atol=0, name=name)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_many_alike_numbers_that_meet_in_few_places(dtype, device):
    n = 1 << 20
    src, places = rl.full((n,), 0.1, dtype=dtype, device=device), rl.zeros(n, dtype="int64", device=device)
    right = [n * src[0].item(), 0.0, 0.0]
    rtol = unit_roundoff(dtype) * 1.01
    start = rl.zeros(3, dtype=dtype, device=device)
    if dtype != "float16":  # whose largest number is 65504
        for name, found in each_rung("scatter_add", start, 0, places, src).items():
            assert_close(found, np.array(right), rtol=rtol, atol=0, name=name)
        for choose in (lambda x: x[places], lambda x: x.index_select(0, places), lambda x: x.gather(0, places)):
            x = start.clone()
            x.requires_grad = True
            choose(x).backward(src)
            assert_close(x.grad, np.array(right), rtol=rtol, atol=0)
    weights = rl.full((3, 4), 0.0, dtype=dtype, device=device, requires_grad=True)
    rl.embedding(places[: n // 2], weights).backward((src[: n // 2] * 0.001).unsqueeze(1).expand(n // 2, 4))
    each = (src[:1] * 0.001).item()
    assert_close(weights.grad, np.outer([n // 2 * each, 0, 0], np.ones(4)), rtol=rtol, atol=0)
    counted = rl.bincount(places, src, minlength=3)
    assert_close(counted, np.array(right), rtol=unit_roundoff("float32") * 1.01, atol=0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_few_sums_of_16_bits_round_once(dtype, device):
    """Where few places get something, only they are kept in float32: 600 ones reach 601, which 16 bits could not."""
    x, places = rl.ones(5000, dtype=dtype, device=device), rl.tensor([7] * 600 + [4999], device=device)
    ones = rl.ones(601, dtype=dtype, device=device)
    with rl.count() as counts:
        y = rl.scatter_add(x, 0, places, ones)
    expected = np.ones(5000)
    expected[[7, 4999]] = 601, 2
    np.testing.assert_array_equal(to_float64(y), to_float64(rl.tensor(expected, dtype=dtype)))
    assert counts.launches == (2 if device == "cpu" else 3)
