"""What Python's own functions and modules ask of a tensor."""

import copy
import operator
import pickle

import numpy as np
import pytest

import rooflab as rl


def test_length_and_iteration():
    x = rl.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert [list(map(float, row)) for row in x] == [[1, 2], [3, 4]]
    first, second = x
    first += 1
    assert x.tolist() == [[2, 3], [3, 4]] and second.tolist() == [3, 4]
    assert list(rl.zeros(0, 3)) == [] and next(reversed(rl.arange(3))).item() == 2
    for ask in (len, iter, list):
        with pytest.raises(TypeError, match=r"\[(len|iter)\] expected at least one dimension, got a number"):
            ask(rl.tensor(1.0))


def test_iteration_is_differentiable():
    x = rl.ones(3, 2, requires_grad=True)
    sum(i * row for i, row in enumerate(x)).sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_formats():
    x = rl.tensor(3.14159)
    assert f"{x:.2f}" == "3.14" and f"{rl.tensor([2.5]):6.1f}" == "   2.5" and f"{rl.tensor(7):04d}" == "0007"
    assert f"{rl.tensor(7)}" == "7" and f"{rl.ones(2)}" == "tensor([1., 1.])" == str(rl.ones(2))
    with pytest.raises(TypeError, match=r'\[format\] ".2f" is for a tensor of one element, got shape \(2,\)'):
        f"{rl.ones(2):.2f}"
    assert f"{rl.ones(1, device='meta')}".startswith("tensor(shape=")


def test_numbers():
    assert bool(rl.tensor([2])) and not rl.tensor(0.0)
    assert int(rl.tensor(2.9)) == 2 and float(rl.tensor([3])) == 3.0 and complex(rl.tensor(2.0)) == 2
    assert operator.index(rl.tensor(3)) == 3 and [10, 20][rl.tensor([1])] == 20
    assert list(range(rl.tensor(3))) == [0, 1, 2] and [0, 1, 2][: rl.tensor(2)] == [0, 1]
    assert round(float(rl.tensor(2.567)), 1) == 2.6
    with pytest.raises(ValueError, match=r"\[bool\] the truth of shape \(2,\) is ambiguous"):
        assert rl.ones(2)
    for wrong in (rl.tensor(1.0), rl.tensor([1, 2])):
        with pytest.raises(TypeError, match=r"\[index\] expected an integer tensor of one element"):
            operator.index(wrong)
    for ask in (int, float, rl.Tensor.item):
        with pytest.raises(ValueError, match=r"expected a tensor of one element, got shape \(2,\)"):
            ask(rl.ones(2))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("shape", [(), (0, 3), (4, 5)])
def test_deep_copies_and_pickles_are_equal_and_apart(dtype, again, shape, device):
    x = rl.tensor(np.arange(np.prod(shape)).reshape(shape), dtype=dtype, device=device)
    y = again(x)
    assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
    assert y.tolist() == x.tolist()
    x.fill_(1)
    assert shape == () or y.numel() == 0 or y.tolist() != x.tolist()


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_leaves_stay_leaves_and_views_stay_small(again):
    leaf = rl.ones(3, requires_grad=True)
    assert again(leaf).requires_grad and again(leaf).is_leaf
    view = rl.arange(100).reshape(10, 10).T[::2]
    assert again(view).tolist() == view.tolist()
    assert again(rl.ones(2, 3, dtype="int32", device="meta:H200")).device == "meta:H200"
    assert len(pickle.dumps(rl.zeros(1000)[:2])) < 1000
    with pytest.raises(ValueError, match=r"\[(deepcopy|pickle)\] the tensor is a result of mul"):
        again(leaf * 2)


def test_deep_copies_keep_gradients_and_shallow_ones_share():
    leaf = rl.ones(3, requires_grad=True)
    (leaf * 2).sum().backward()
    copied = copy.deepcopy({"w": leaf, "also": leaf})
    assert copied["w"].grad.tolist() == [2, 2, 2] and copied["w"].grad.data_ptr() != leaf.grad.data_ptr()
    assert copied["w"] is copied["also"]
    shallow = copy.copy(leaf)
    assert shallow.data_ptr() == leaf.data_ptr() and shallow.requires_grad and shallow.grad is None
    (shallow * 3).sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2] and shallow.grad.tolist() == [3, 3, 3]
    copy.copy(leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [4, 4, 4]


def test_a_bool_becomes_an_integer():
    for number in (rl.tensor(True).__int__(), rl.tensor(False).__index__(), int(rl.tensor(2.7))):
        assert type(number) is int


def test_dtypes_are_copied_and_pickled():
    assert copy.deepcopy(rl.bfloat16) is rl.bfloat16
    for dtype in (rl.float32, rl.bool_):
        assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_matplotlib_draws_tensors():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    (line,) = axes.plot(rl.arange(3), rl.tensor([1.0, 4.0, 9.0]))
    (other,) = axes.plot([rl.tensor(1.0), rl.tensor(2.0)])
    axes.imshow(rl.rand(4, 4))
    axes.hist(rl.rand(50))
    pyplot.close(figure)
    assert line.get_ydata().tolist() == [1, 4, 9] and list(other.get_ydata()) == [1, 2]


def test_copies_share_memory_as_the_tensors_do():
    x = rl.arange(12).float().reshape(3, 4)
    w = rl.ones(2, requires_grad=True)
    (w * 3).sum().backward()
    shared = rl.from_numpy(np.arange(6.0))
    views = {"turned": x.T[1:], "row": [x[1]], "expanded": rl.ones(3).expand(2, 3), "shared": shared[2:]}
    given = {"x": x, "w": w} | views
    made = copy.deepcopy(given)
    assert made["turned"].stride() == (1, 4) and made["expanded"].stride() == (0, 1)
    for name in ("x", "turned", "expanded", "w", "shared"):
        assert made[name].tolist() == given[name].tolist()
    made["x"].fill_(5)
    made["shared"].fill_(5)
    assert made["turned"].tolist() == [[5.0] * 3] * 3 and made["row"][0].tolist() == [5.0] * 4
    assert x[0].tolist() == [0.0, 1.0, 2.0, 3.0] and shared.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert made["w"].is_leaf and made["w"].requires_grad and made["w"].grad.tolist() == [3.0, 3.0]
    assert copy.deepcopy(rl.empty(0, 3)).shape == (0, 3)
    assert copy.deepcopy(rl.tensor([True, False])[1:]).tolist() == [False]
    assert copy.deepcopy(rl.empty(4, 5, device="meta")[1:]).shape == (3, 5)
