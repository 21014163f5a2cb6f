"""What Python's operators mean for tensors."""

import operator

import numpy as np
import pytest

import rooflab as rl


@pytest.mark.parametrize("kind", [list, tuple, np.array, rl.tensor])
@pytest.mark.parametrize("data", [[1, 2, 3], [1.0, 0.5, 3.0], [True, False, True]])
def test_comparisons_are_elementwise_with_whatever_holds_numbers(kind, data):
    other = [data[0], data[0], data[2]]
    x, y = rl.tensor(data), kind(other)
    if kind is np.array and isinstance(data[0], float):
        y = y.astype(np.float32)
    for compare in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
        result = getattr(x, compare)(y)
        assert result.dtype == "bool"
        assert result.tolist() == getattr(np.array(data), compare)(np.array(other)).tolist()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "floordiv", "mod", "matmul"])
def test_arrays_are_operands_on_either_side(name):
    operate = getattr(operator, name)
    a, b = np.array([[4.0, 2.0], [9.0, 7.0]], np.float32), np.array([[3.0, 2.0], [2.0, 4.0]], np.float32)
    for found in (operate(rl.tensor(a), b), operate(a, rl.tensor(b))):
        assert isinstance(found, rl.Tensor)
        assert found.tolist() == operate(a, b).tolist()
    if name == "matmul":
        with pytest.raises(ValueError, match="operands are float32 and int64"):
            operate(rl.tensor(a), b.astype(np.int64))
    else:
        assert operate(rl.tensor(a), b.astype(np.int64)).tolist() == operate(a, b).tolist()
    x = rl.tensor(a)
    if name not in ("matmul", "pow"):
        assert getattr(operator, "i" + name)(x, b) is x
        assert x.tolist() == operate(a, b).tolist()


def test_comparisons_reflect():
    x = rl.tensor([1, 2, 3])
    assert (2 < x).tolist() == [False, False, True]  # noqa: SIM300
    assert (np.array([1, 5, 3]) == x).tolist() == [True, False, True]
    assert ([1, 5, 3] == x).tolist() == [True, False, True]  # noqa: SIM300
    assert (np.int64(2) == x).tolist() == (x == np.array(2)).tolist() == [False, True, False]
    assert (x == [[1], [2]]).shape == (2, 3)


@pytest.mark.parametrize("other", ["a", object(), {1}, print])
def test_what_cannot_be_compared_raises(other):
    for compare in (lambda: rl.ones(2) == other, lambda: rl.ones(2) != other, lambda: rl.ones(2) < other):
        with pytest.raises(TypeError, match=r"\[(eq|ne|lt)\] b: expected a tensor, a number or an array, got "):
            compare()


def test_equal_data_is_never_plainly_unequal():
    assert (rl.ones(3) == np.ones(3)).tolist() == [True, True, True]
    assert (rl.arange(3) == 1.5).tolist() == [False, False, False]
    assert (rl.arange(3) == [0.0, 1.5, 2.0]).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="do not broadcast"):
        _ = rl.arange(3) == [1, 2]


def test_division_of_integers_is_of_floats():
    a, b = rl.tensor([7, -7, 0]), rl.tensor([2, 2, 5])
    for quotient, expected in ((a / b, [3.5, -3.5, 0]), (a / 4, [1.75, -1.75, 0]), (10 / b, [5, 5, 2])):
        assert quotient.dtype == "float32"
        assert quotient.tolist() == expected
    assert (rl.tensor([True]) / 2).tolist() == [0.5]
    with rl.count() as c:
        a / b
    assert c.launches == 1 and set(c.by_op) == {"div"}


@pytest.mark.parametrize("dtype", ["int64", "int32", "float64", "float32"])
@pytest.mark.parametrize("variant", ["", "v0_reference"])
def test_quotients_and_remainders_are_those_of_python(dtype, variant, device):
    a, b = np.meshgrid([7, -7, 6, -6, 0, 1], [2, -2, 3, -3, 7, -1])
    if dtype.startswith("float"):
        a, b = a * 0.5, b * 0.25
    x, y = (rl.tensor(z, dtype=dtype, device=device) for z in (a, b))
    assert rl.floor_divide(x, y, variant=variant).tolist() == (a // b).tolist()
    assert rl.remainder(x, y, variant=variant).tolist() == (a % b).tolist()


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("variant", ["", "v0_reference"])
def test_integers_divide_without_a_trap(dtype, variant, device):
    low = np.iinfo(dtype).min
    x, y = (
        rl.tensor([low, 5, low, 0], dtype=dtype, device=device),
        rl.tensor([-1, -1, 1, -1], dtype=dtype, device=device),
    )
    assert rl.floor_divide(x, y, variant=variant).tolist() == [low, -5, low, 0]
    assert rl.remainder(x, y, variant=variant).tolist() == [0, 0, 0, 0]


def test_floats_divide_as_numpys():
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5.5, -5.5, 1e-3]
    a, b = np.meshgrid(special, special)
    x, y = rl.tensor(a), rl.tensor(b)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((x // y).numpy(), a // b)
        np.testing.assert_array_equal((x % y).numpy(), a % b)
    assert (1 // rl.tensor(0.1, dtype="float64")).item() == 1 // 0.1


@pytest.mark.parametrize("variant", ["", "v0_reference"])
def test_masks_combine(variant, device):
    a = rl.tensor([True, True, False, False], device=device)
    b = rl.tensor([True, False, True, False], device=device)
    assert rl.bitwise_and(a, b, variant=variant).tolist() == [True, False, False, False]
    assert rl.bitwise_or(a, b, variant=variant).tolist() == [True, True, True, False]
    assert rl.bitwise_xor(a, b, variant=variant).tolist() == [False, True, True, False]
    assert rl.bitwise_not(a, variant=variant).tolist() == [False, False, True, True]
    assert (~a & b | (a ^ True)).tolist() == [False, False, True, True]
    assert (~rl.tensor([0, 5, -1], dtype="int32")).tolist() == [-1, -6, 0]
    x = rl.tensor([-2.0, 0.5, 3.0], device=device)
    assert ((x > 0) & (x < 1)).tolist() == [False, True, False]


def test_operators_with_other_kinds_are_type_errors():
    for operate in (lambda: rl.ones(2) + "a", lambda: None * rl.ones(2), lambda: rl.ones(2) & [1, 2]):
        with pytest.raises(TypeError, match="unsupported operand"):
            operate()


def test_membership():
    x = rl.tensor([1.0, 2.5])
    assert 2.5 in x and 3 not in x and rl.tensor(1.0) in x
    with pytest.raises(TypeError):
        assert None in x
