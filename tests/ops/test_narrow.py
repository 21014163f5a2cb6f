"""Narrow rows, of every width up to a few vectors; one row; and lines along dimension 0: every instruction set, and the
rung that takes them by default, agrees with the reference.
"""

import numpy as np
import pytest
from ops.samples import SPECS, Expected, allowed_of, as_tuple, tensors_of

import rooflab as rl
from rooflab.specs import FLOATING, INTEGER, Sample
from rooflab.specs.softmax import with_outliers
from rooflab.testing import assert_close

WIDTHS = range(1, 71)
ROWS = ("softmax", "rms_norm", "layer_norm")
LINES = ("sum", "mean", "amax", "amin", "argmax", "argmin", "max", "min", "cumsum", "sort", "topk")


def cases():
    for name in ROWS + LINES:
        for dtype in SPECS[name].dtypes:
            yield pytest.param(name, dtype, id=f"{name}-{dtype}")


def samples(name, rng):
    """Many rows and one row of every width, along the last dimension and, where an op has a choice, along the first."""
    parameters = {"rms_norm": 1, "layer_norm": 2}.get(name, 0)
    for n in WIDTHS:
        vectors = tuple(rng.standard_normal(n) for _ in range(parameters))
        for shape, dim in (((67, n), -1), ((1, n), -1), ((n, 67), 0), ((1, n), 0)):
            x = 0.5 + with_outliers(rng, *shape)
            if name in ("rms_norm", "layer_norm"):
                if dim == 0:
                    continue
                yield Sample(f"{shape}", (x, *vectors))
            elif name == "topk":
                yield Sample(f"{shape} {dim}", (x, min(3, shape[dim])), {"dim": dim, "largest": n % 2 == 0})
            else:
                yield Sample(f"{shape} {dim}", (x,), {"dim": dim})


@pytest.mark.slow(dtype=["float16", "float64"])
@pytest.mark.parametrize(("name", "dtype"), list(cases()))
def test_every_width(name, dtype, instruction_sets):
    spec = SPECS[name]
    for sample in samples(name, np.random.default_rng(0)):
        expected = Expected(spec, dtype, sample)
        tensors = tensors_of(sample, dtype, "cpu")
        allowed = allowed_of(spec, dtype, sample, "", expected.results)
        for isa in instruction_sets():
            found = as_tuple(spec.fn(*tensors, **sample.kwargs))
            for result, right, (rtol, atol) in zip(found, expected.results, allowed, strict=True):
                assert_close(result, right, rtol=rtol, atol=atol, name=f"{name} {sample.label} {isa}")


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17, 31, 33, 64])
def test_not_a_number_in_a_narrow_row(n, dtype, instruction_sets):
    """A NaN stays in its row, wherever it is, and it is found."""
    x = np.zeros((2 * n, n))
    x[np.arange(n) * 2, np.arange(n)] = np.nan
    x[1::2] = -np.inf
    tensor = rl.tensor(x, dtype=dtype)
    for _ in instruction_sets():
        for fold in (rl.sum, rl.amax, rl.amin):
            assert np.isnan(fold(tensor, 1)[::2].numpy().astype(float)).all()
            assert np.isneginf(fold(tensor, 1)[1::2].numpy().astype(float)).all()
        for place in (rl.argmax, rl.argmin):
            assert place(tensor, 1)[::2].tolist() == list(range(n))
            assert place(tensor, 1)[1::2].tolist() == [0] * n


@pytest.mark.parametrize(("dtype", "largest"), [("float32", 3e38), ("float16", 6e4), ("bfloat16", 3e38)])
def test_sums_of_narrow_rows_that_overflow_float_on_the_way(dtype, largest, instruction_sets):
    for n in (3, 9, 40):
        x = np.zeros((70, n))
        x[:, 0], x[:, 1], x[:, -1] = largest, largest, -largest
        tensor = rl.tensor(x, dtype=dtype)
        for _ in instruction_sets():
            assert (rl.sum(tensor, 1) == tensor[:, 0]).all().item()


@pytest.mark.parametrize("dtype", FLOATING + INTEGER)
@pytest.mark.parametrize("descending", [False, True])
def test_long_lines_are_sorted_in_the_order_of_the_reference(dtype, descending):
    """Around the length from which digits are counted; ties, zeros of both signs and NaN keep their order."""
    rng = np.random.default_rng(0)
    for n in (2, 15, 511, 512, 513, 5000):
        x = np.round(rng.standard_normal((2, n)) * 20) / 4
        if dtype in FLOATING:
            x[0, ::3] *= -0.0
            x[1, ::7], x[1, 1::11], x[1, 1::13] = np.nan, np.inf, -np.inf
        tensor = rl.tensor(np.trunc(x) if dtype in INTEGER else x, dtype=dtype)
        right = rl.sort(tensor, -1, descending, variant="v0_reference")
        for rung in rl.variants("sort", "cpu"):
            try:
                found = rl.sort(tensor, -1, descending, variant=rung.name)
            except ValueError as error:
                assert "does not accept these operands" in str(error)
                continue
            assert found.indices.tolist() == right.indices.tolist(), rung.name
            assert_close(found.values, right.values, rtol=0, atol=0, name=rung.name)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int32", "bool"])
def test_copies_that_turn_rows_into_columns(dtype):
    for shape in ((1, 70), (3, 65), (64, 64), (70, 1), (100, 33), (2, 17, 40), (3, 2, 70, 66)):
        x = rl.tensor(np.random.default_rng(0).standard_normal(shape) > 0, dtype=dtype)
        turned = x.transpose(-1, -2)
        assert turned.contiguous().tolist() == np.swapaxes(np.asarray(x.tolist()), -1, -2).tolist()


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("width", [1, 2, 3, 5, 33, 64, 511, 512, 513, 700])
def test_rows_and_columns_that_repeat(width, dtype, instruction_sets):
    """Operands that are one row, or one column, over and over, contiguous or not."""
    rng = np.random.default_rng(0)
    rows = 3 * 512 // width + 2
    x, row, column = (rl.tensor(rng.integers(-8, 8, s), dtype=dtype) for s in ((rows, width), (2 * width,), (rows, 1)))
    exact = np.asarray(x.tolist())
    for _ in instruction_sets():
        assert ((x + row[:width]).tolist() == exact + np.asarray(row[:width].tolist())).all()
        assert ((row[::2] - x).tolist() == np.asarray(row[::2].tolist()) - exact).all()
        assert ((x + column).tolist() == exact + np.asarray(column.tolist())).all()
        assert ((x[:, ::2] + 1.0).tolist() == exact[:, ::2] + 1).all()


@pytest.mark.parametrize("dtype", [*FLOATING, "int64", "int32"])
def test_triangles_whose_rows_are_kept_or_cleared_whole(dtype):
    for shape in ((1, 70), (70, 1), (70, 4), (4, 70), (3, 40, 5), (2, 3, 5, 40)):
        x = rl.tensor(1 + np.arange(np.prod(shape)).reshape(shape) % 97, dtype=dtype)
        for view in (x, x.transpose(-1, -2).contiguous().transpose(-1, -2)):
            for diagonal in (-41, -5, -1, 0, 1, 3, 39, 71):
                for cut, right in ((rl.tril, np.tril), (rl.triu, np.triu)):
                    assert cut(view, diagonal).tolist() == right(np.asarray(x.tolist()), diagonal).tolist()
