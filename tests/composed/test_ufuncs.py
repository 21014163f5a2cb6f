"""NumPy's functions of tensors."""

import numpy as np
import pytest

import rooflab as rl


def test_numpy_is_refused_what_is_not_counted():
    x = rl.ones(2, requires_grad=True)
    with rl.count() as c:
        np.exp(x).sum().backward()
    assert c.launches > 1 and x.grad.tolist() == [np.exp(np.float32(1))] * 2
    with pytest.raises(ValueError, match="requires grad"):
        np.arctan(x)
    for wrong in (lambda: np.add.reduce(x), lambda: np.exp(rl.ones(2), out=np.ones(2))):
        with pytest.raises(TypeError, match=r"\[numpy\] np\."):
            wrong()


OURS = {  # functions of NumPy that rooflab computes, and by how many launches
    "exp": 1, "log": 1, "sqrt": 1, "sin": 1, "cos": 1, "tanh": 1, "exp2": 1, "log2": 1, "log10": 1, "reciprocal": 1,
    "floor": 1, "ceil": 1, "trunc": 1, "rint": 1, "fabs": 1, "absolute": 1, "negative": 1, "square": 1, "positive": 1,
    "maximum": 1, "minimum": 1, "logical_and": 3, "logical_or": 3, "logical_xor": 3, "logical_not": 1, "isnan": 1,
    "isinf": 2, "isfinite": 2, "add": 1, "subtract": 1, "multiply": 1, "divide": 1, "power": 1, "remainder": 1,
    "floor_divide": 1, "equal": 1, "not_equal": 1, "less": 1, "less_equal": 1, "greater": 1, "greater_equal": 1,
}  # fmt: skip
ALL = sorted({each for each in vars(np).values() if isinstance(each, np.ufunc)}, key=lambda each: each.__name__)
HELD = {np.floating: [1.5, -2.5, 0.25], np.integer: [3, -1, 2], np.bool_: [True, False, True]}


def of(ufunc, dtype):
    """The result of a function of NumPy of tensors and of arrays, or None where NumPy refuses it."""
    kind = next(kind for kind in HELD if np.issubdtype(dtype, kind))
    array = np.array(HELD[kind], dtype)
    with np.errstate(all="ignore"):
        try:
            expected = ufunc(*[array] * ufunc.nin)
        except TypeError:
            return None
        with rl.count() as c:
            found = ufunc(*[rl.tensor(array)] * ufunc.nin)
    return found, expected, c.launches


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "bool"])
@pytest.mark.parametrize("ufunc", ALL, ids=lambda each: each.__name__)
def test_a_function_of_numpy_gives_what_it_gives_of_arrays(ufunc, dtype):
    if ufunc.__name__ in ("matmul", "vecdot", "matvec", "vecmat"):
        pytest.skip("a product, which rooflab has of floating dtypes alone")
    if dtype == "int64" and ufunc.__name__ in ("power", "divide"):
        pytest.skip("as rooflab's operator: an error for 2 ** -1, float32 for 1 / 2")
    try:
        together = of(ufunc, dtype)
    except ValueError as error:
        says = str(error)
        assert "expected a numeric dtype, got bool" in says or "power" in says
        return
    if together is None:
        return
    found, expected, launches = together
    for one, other in zip(*([x] if not isinstance(x, tuple) else x for x in (found, expected)), strict=True):
        assert isinstance(one, rl.Tensor) and one.shape == other.shape
        np.testing.assert_allclose(one.numpy().astype(float), other.astype(float), rtol=2e-3 if "16" in dtype else 1e-6)
        held = "int64" if other.dtype.itemsize == 1 and other.dtype != bool else str(other.dtype)  # no tensor is int8
        assert str(one.dtype) == held or ufunc.__name__ == "divide"
    if dtype == "float32":
        assert launches == OURS.get(ufunc.__name__, 0)


@pytest.mark.parametrize(
    "name", ["absolute", "negative", "square", "log2", "maximum", "positive", "reciprocal", "exp2"]
)
def test_what_rooflab_has_keeps_the_graph(name):
    w = rl.tensor([1.0, 2.0], requires_grad=True)
    ufunc = getattr(np, name)
    ufunc(*[w] * ufunc.nin).sum().backward()
    assert w.grad is not None


def test_numbers_and_arrays_may_stand_beside_a_tensor():
    x, i = rl.tensor([1.0, -2.0, float("nan")]), rl.tensor([3, -1, 0])
    np.testing.assert_equal(np.maximum(x, 0.5).numpy(), np.float32([1.0, 0.5, np.nan]))
    np.testing.assert_equal(np.maximum(0.5, x).numpy(), np.float32([1.0, 0.5, np.nan]))
    assert np.minimum(np.zeros(3), x.nan_to_num()).dtype == "float64" and np.maximum(i, 1).dtype == "int64"
    assert np.maximum(i, 1.5).tolist() == [3.0, 1.5, 1.5] and np.maximum(x.half(), 0.5).dtype == "float16"
    assert np.logical_and(True, i).tolist() == [True, True, False]
    assert np.maximum(i, [1, 2, 3]).tolist() == [3, 2, 3]
    with pytest.raises(ValueError, match=r"\[tensor\] data: expected numbers"):
        np.maximum(x, "a")
    with pytest.raises(ValueError, match=r"\[maximum\] shapes \(3,\) and \(2,\)"):
        np.maximum(x, np.ones(2))
