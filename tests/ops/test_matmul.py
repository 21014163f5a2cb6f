"""What the spec of matmul does not reach: views as operands, leading dimensions folded into rows, bad input, rungs."""

import itertools

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close, to_float64


def rungs(device):
    return ["", *(variant.name for variant in rl.variants("matmul", device))]


def multiply(a, b, variant):
    """The product, or None where the rung does not take these operands."""
    try:
        return rl.matmul(a, b, variant=variant)
    except ValueError as error:
        if variant and "does not accept these operands" in str(error):
            return None
        raise


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_views_are_operands(dtype, device):
    """Transposed, sliced, stepped and expanded views give what their copies give."""
    rl.manual_seed(1)
    big = rl.randn(75, 90, dtype=dtype, device=device)
    views = {
        "transposed": big.T,
        "sliced": big[3:70, 5:84],
        "stepped": big[::2, ::3],
        "one row for all": big[4:5].expand(40, 90),
        "one column for all": big[:, 4:5].expand(75, 33),
        "a column": big[:, 7:8],
        "a row": big[7:8, :],
    }
    for name, a in views.items():
        b = rl.randn(33, a.shape[1], dtype=dtype, device=device).T
        expected = to_float64(a) @ to_float64(b)
        tolerance = {"float64": 1e-12, "float32": 1e-4, "float16": 5e-3, "bfloat16": 4e-2}[dtype]
        for variant in rungs(device):
            for x, y, want in ((a, b, expected), (b.T, a.T, expected.T)):
                result = multiply(x, y, variant)
                if result is not None:
                    assert_close(result, want, rtol=tolerance, atol=10 * tolerance, name=f"{name} {variant}")


def test_leading_dimensions_broadcast(device):
    rng = np.random.default_rng(0)
    for a_shape, b_shape in (
        ((2, 1, 5, 6), (3, 6, 4)),
        ((4, 1, 6), (6, 5)),
        ((2, 3, 1, 6), (2, 1, 6, 5)),
        ((6,), (2, 3, 6, 5)),
        ((2, 3, 5, 6), (6,)),
    ):
        a, b = rng.standard_normal(a_shape), rng.standard_normal(b_shape)
        result = rl.matmul(rl.tensor(a, device=device), rl.tensor(b, device=device))
        assert_close(result, a @ b, rtol=1e-12, atol=1e-12, name=f"{a_shape} @ {b_shape}")


def test_no_copy_for_batches_and_transposes(device):
    a, b = rl.randn(3, 20, 30, device=device), rl.randn(25, 30, device=device)
    with rl.count() as c:
        rl.matmul(a, b.T)
        rl.matmul(a.transpose(0, 1), b.T)
    assert c.ops == 2 and set(c.by_op) == {"matmul"}
    assert c.macs == 2 * 3 * 20 * 30 * 25


def test_library_agrees(device):
    a, b = rl.randn(130, 70, device=device), rl.randn(90, 70, device=device).T
    expected = to_float64(a) @ to_float64(b)
    if device == "cpu":
        pytest.importorskip("scipy")
    assert_close(rl.matmul(a, b, variant="library"), expected, rtol=1e-5, atol=1e-4, name="library")


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (rl.ones((2, 3)), rl.ones((4, 5)), ["[matmul]", "K=3", "(4, 5)"]),
        (rl.ones((2, 3)), rl.ones((3, 5), dtype="float64"), ["[matmul]", "float32", "float64"]),
        (rl.ones((2, 3), dtype="int64"), rl.ones((3, 5), dtype="int64"), ["[matmul]", "int64"]),
        (rl.ones((2, 2, 3)), rl.ones((3, 3, 5)), ["[matmul]", "(2,)", "(3,)"]),
        (rl.ones(()), rl.ones((3,)), ["[matmul]", "dimension"]),
    ],
)
def test_bad_operands_are_named(a, b, words):
    with pytest.raises(ValueError) as error:
        rl.matmul(a, b)
    for word in words:
        assert word in str(error.value)


NANS = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800000, 0xFF800000], np.uint32).view(np.float32)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 17])
@pytest.mark.parametrize("depth", [1, 33, 1000])
def test_products_with_a_vector_keep_nan_of_any_bits_and_infinities_at_the_ends(dtype, rows, depth, device):
    generator = np.random.default_rng(rows * depth)
    matrix, vector = generator.standard_normal((rows, depth)), generator.standard_normal((depth, 1))
    matrix = matrix.astype(np.float32)
    for place in (0, -1):
        matrix[generator.integers(rows), place] = generator.choice(NANS)
    vector[depth // 2] = 0
    by_rows = rl.tensor(matrix, dtype=dtype, device=device)
    v = rl.tensor(vector, dtype=dtype, device=device)
    for m in (by_rows, by_rows.T.contiguous().T):
        for a, b in ((m, v), (v.T, m.T)):
            expected = rl.matmul(a, b, variant=rungs(device)[-1]).double().cpu().numpy()
            for rung in rungs(device):
                product = multiply(a, b, rung)
                if product is None:
                    continue
                found = product.double().cpu().numpy()
                assert (np.isnan(found) == np.isnan(expected)).all(), rung
                assert (found[np.isinf(expected)] == expected[np.isinf(expected)]).all(), rung


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_few_rows_of_which_no_copy_is_made(dtype, instruction_sets):
    """The larger operand is contiguous along k: it is not packed. The smaller one is turned where it is not."""
    rng = np.random.default_rng(3)
    tolerance = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    for few, many, depth, batch in [
        (2, 3, 2, 1),
        (2, 2, 3, 3),
        (3, 9, 15, 2),
        (5, 17, 16, 1),
        (4, 6, 33, 5),
        (8, 67, 100, 2),
        (3, 70, 2000, 3),
    ]:
        x = rl.tensor(rng.standard_normal((batch, few, depth)), dtype=dtype)
        w = rl.tensor(rng.standard_normal((batch, many, depth)), dtype=dtype)
        right = to_float64(x) @ to_float64(w).transpose(0, 2, 1)
        for isa in instruction_sets():
            turned = x.mT.contiguous().mT
            for a, b, want in (
                (x, w, right),
                (w, x, right.transpose(0, 2, 1)),
                (x[:1], w, to_float64(x)[:1] @ to_float64(w).transpose(0, 2, 1)),
                (turned, w, right),
                (turned[:1], w, to_float64(x)[:1] @ to_float64(w).transpose(0, 2, 1)),
                (w, turned, right.transpose(0, 2, 1)),
                (w, turned[:1], to_float64(w) @ to_float64(x)[:1].transpose(0, 2, 1)),
            ):
                found = rl.matmul(a, b.mT, variant="v7_dots")
                assert_close(
                    found, want, rtol=tolerance, atol=tolerance * max(depth, 1) ** 0.5, name=f"{few} {many} {isa}"
                )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("depth", [1, 31, 600, pytest.param(1100, marks=pytest.mark.slow)])
def test_tiles_that_are_not_full(dtype, depth, instruction_sets):
    """Operands are read in place where few elements of the other meet them, in every layout."""
    rng = np.random.default_rng(4)
    tolerance = {"float64": 1e-13, "float32": 1e-5, "bfloat16": 2e-2}[dtype] * depth**0.5
    for rows in (1, 2, 3, 4, 5, 8, 9, 13, 14, 15, 29):
        a = rl.tensor(rng.standard_normal((rows, depth)), dtype=dtype)
        for columns in (1, 4, 8, 9, 15, 16, 17, 32, 33, 48, 50, 64, 100):
            b = rl.tensor(rng.standard_normal((depth, columns)), dtype=dtype)
            right = to_float64(a) @ to_float64(b)
            for isa in instruction_sets():
                for own, other in itertools.product((a, a.T.contiguous().T), (b, b.T.contiguous().T)):
                    found = rl.matmul(own, other, variant="v3_packed_simd")
                    assert_close(found, right, rtol=tolerance, atol=tolerance, name=f"{rows} x {columns} {isa}")


def test_few_rows_and_small_matrices_take_the_rungs_that_pack_less():
    x, w = rl.ones(8, 64), rl.ones(40, 64)
    for a, b, rung in (
        (x, w.T, "v7_dots"),
        (w, x.T, "v7_dots"),
        (x.T.contiguous().T, w.T, "v7_dots"),
        (w, x.T.contiguous(), "v7_dots"),
        (rl.ones(9, 64), w.T, "v3_packed_simd"),
        (x, rl.ones(64, 40), "v3_packed_simd"),
        (rl.ones(700, 8), rl.ones(8, 8), "v8_small"),
        (rl.ones(5, 2, 4), rl.ones(5, 4, 100), "v8_small"),
    ):
        with rl.profile() as prof:
            rl.matmul(a, b)
        assert prof.kernels[0].kernel == f"matmul_cpu_{rung}"
