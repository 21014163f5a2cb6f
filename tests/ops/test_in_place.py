"""Writing into tensors: x += y and its kin, overlapping copies, counts, and what the tape refuses."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import FLOATING, INTEGER


def iadd(x, y):
    x += y
    return x


def isub(x, y):
    x -= y
    return x


def imul(x, y):
    x *= y
    return x


def itruediv(x, y):
    x /= y
    return x


def ifloordiv(x, y):
    x //= y
    return x


def imod(x, y):
    x %= y
    return x


def ipow(x, y):
    x **= y
    return x


PLAIN = {
    iadd: lambda x, y: x + y,
    isub: lambda x, y: x - y,
    imul: lambda x, y: x * y,
    itruediv: lambda x, y: x / y,
}
OPERATORS = [iadd, isub, imul, itruediv, ifloordiv, imod, ipow]
METHODS = {"add_": iadd, "sub_": isub, "mul_": imul, "div_": itruediv}


@pytest.mark.parametrize("write", OPERATORS)
@pytest.mark.parametrize("other", [2.5, "tensor", "row", "self"])
def test_operators_write_into_the_tensor(write, other, device):
    start = np.random.default_rng(0).uniform(0.5, 3, (5, 7))
    x = rl.tensor(start, device=device)
    y = {"tensor": start[::-1].copy(), "row": start[0], "self": start}.get(other, other)
    operand = x if other == "self" else rl.tensor(y, device=device) if isinstance(y, np.ndarray) else y
    kept, at, view = x, x.data_ptr(), x[1:3]
    expected = write(start.copy(), y)
    x = write(x, operand)
    assert x is kept and x.data_ptr() == at
    np.testing.assert_allclose(x.cpu().numpy(), expected, rtol=1e-12)
    np.testing.assert_array_equal(view.cpu().numpy(), x.cpu().numpy()[1:3])


@pytest.mark.parametrize("write", [*OPERATORS, *METHODS], ids=lambda write: getattr(write, "__name__", write))
@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGER])
def test_operators_and_methods_write_into_views(write, dtype, device):
    operator = METHODS.get(write, write)
    base = rl.full((4, 6), 3, dtype=dtype, device=device)
    view = base.T[1:5:2]
    call = operator if write is operator else rl.Tensor.__dict__[write]
    if operator is itruediv and dtype in INTEGER:
        with pytest.raises(ValueError, match=r"the result is float32, which a tensor of int(32|64) cannot hold"):
            call(view, 2)
        return
    assert call(view, 2) is view
    expected = np.full((4, 6), 3.0)
    operator(expected.T[1:5:2], 2)
    np.testing.assert_array_equal(base.cpu().numpy().astype(np.float64), expected)


def test_bits_and_integers_in_place():
    x = rl.tensor([12, 10, -7])
    x &= 6
    x |= rl.tensor([1, 0, 8])
    x ^= 3
    x //= 2
    x %= 5
    expected = np.array([12, 10, -7])
    expected &= 6
    expected |= [1, 0, 8]
    expected ^= 3
    expected //= 2
    expected %= 5
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("device", ["cpu", "meta", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_it_is_one_launch_of_the_op_that_it_is(device):
    x, y = rl.ones(8, 4, device=device), rl.ones(4, device=device)
    with rl.count() as c:
        x += y
        x.mul_(2)
    assert {op: counts.launches for op, counts in c.by_op.items()} == {"add": 1, "mul": 1}
    assert (c.ops, c.flops, c.allocations) == (2, 2 * 32, 0)
    assert (c.bytes_read, c.bytes_written) == (2 * x.nbytes + y.nbytes, 2 * x.nbytes)


ORDER = np.random.default_rng(1).permutation(300)


def down(x, y):
    x[1:] = y[:-1]


def up(x, y):
    x[:-1] = y[1:]


def right(x, y):
    x[:, 2:] = y[:, :-2]


def mirrored(x, y):
    x[...] = y.T


def add_down(x, y):
    x[1:] += y[:-1]


def add_up(x, y):
    x[:-1] += y[1:]


def times_mirrored(x, y):
    x *= y.T


def minus_row(x, y):
    x -= y[3]


def minus_column(x, y):
    x -= y[:, 2:3]


def shuffled(x, y):
    x[ORDER] = y


MOVES = [down, up, right, mirrored, add_down, add_up, times_mirrored, minus_row, minus_column, shuffled]


@pytest.mark.parametrize("shared", [lambda x: x, rl.from_dlpack], ids=["one storage", "two storages"])
@pytest.mark.parametrize("move", MOVES)
def test_overlapping_memory_is_read_before_it_is_written(move, shared, device):
    expected = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    x = rl.tensor(expected, device=device)
    move(x, shared(x))
    move(expected, expected)  # NumPy copies first where memory overlaps
    np.testing.assert_array_equal(x.cpu().numpy(), expected)


def test_memory_that_others_share_twice_is_read_before_it_is_written():
    array = np.arange(10, dtype=np.float32)
    rl.from_dlpack(array).copy_(rl.from_dlpack(array[::-1]))
    assert array.tolist() == [*range(9, -1, -1)]
    bits = array.view(np.int32).astype(np.float32)
    rl.from_dlpack(array).copy_(rl.from_dlpack(array.view(np.int32)))
    np.testing.assert_array_equal(array, bits)
    mask = np.array([True, True, True, False])
    rl.from_dlpack(mask[1:])[rl.from_dlpack(mask[:-1])] = False
    assert mask.tolist() == [True, False, False, False]


def test_parts_that_do_not_overlap_are_not_copied():
    x = rl.ones(4, 100)
    y = rl.from_dlpack(x)
    with rl.count() as c:
        x[0] += x[1]
        x[2:] = x[:2]
        x[0] += y[1]
        x += y
    assert c.allocations == 0


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: iadd(rl.ones(3), rl.ones(2, 3)), r"\[add\] in place: \(2, 3\) does not broadcast to \(3,\)"),
        (lambda: iadd(rl.ones(1), rl.ones(3)), r"\[add\] in place: \(3,\) does not broadcast to \(1,\)"),
        (lambda: iadd(rl.arange(3), rl.ones(3)), r"\[add\] in place: the result is float32, which a tensor of int64"),
        (lambda: iadd(rl.ones(1).expand(3), 1), r"\[add\] destination: an expanded tensor"),
        (lambda: itruediv(rl.arange(3), 2), r"\[div\] in place: the result is float32, which a tensor of int64"),
        (lambda: iadd(rl.arange(3), 1.5), r"\[add\] in place: the result is float32, which a tensor of int64"),
        (lambda: ipow(rl.arange(3), -1), r"\[pow\] number: expected an exponent >= 0"),
        (lambda: iadd(rl.ones(3), rl.ones(3, device="meta")), r"\[add\] operands are on cpu and meta:cpu"),
    ],
)
def test_what_does_not_fit_is_refused(write, message):
    with pytest.raises(ValueError, match=message):
        write()


@pytest.mark.parametrize("other", ["a", None, [1.0, 2.0, 3.0]])
def test_other_kinds_are_type_errors(other):
    with pytest.raises(TypeError, match=r"unsupported operand|does not support"):
        iadd(rl.ones(3), other)
    with pytest.raises(TypeError, match=r"\[add_\] other: expected a tensor or a number, got "):
        rl.ones(3).add_(other)


def test_an_sgd_loop_learns():
    w = rl.zeros(3, requires_grad=True)
    target = rl.tensor([1.0, 2.0, 3.0])
    for _ in range(100):
        w.grad = None
        ((w - target) ** 2).sum().backward()
        with rl.no_grad():
            for p in [w]:
                p -= 0.1 * p.grad
    np.testing.assert_allclose(w.detach().numpy(), [1, 2, 3], rtol=1e-5)
    assert w.requires_grad and w.is_leaf


@pytest.mark.parametrize("write", [iadd, imul])
@pytest.mark.parametrize("other", [2.0, rl.ones(3)])
def test_a_leaf_that_requires_grad_refuses(write, other):
    leaf = rl.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match=r"in place: the tensor is a leaf that requires grad; .*no_grad"):
        write(leaf, other)
    assert leaf.tolist() == [1, 1, 1]


@pytest.mark.parametrize("through", [lambda x: x, lambda x: x[1:], lambda x: x.view(3, 1), lambda x: x.detach()])
@pytest.mark.parametrize(
    "write", [lambda x: iadd(x, 1), lambda x: imul(x, 2), lambda x: x.zero_(), lambda x: x.copy_(rl.ones(1))]
)
def test_backward_finds_what_was_saved_and_changed(through, write):
    x, w = rl.ones(3), rl.ones(3, requires_grad=True)
    y = (x * w).sum()
    write(through(x))
    with pytest.raises(ValueError, match=r"\[mul\] backward: .* was changed in place"):
        y.backward()


def test_a_recorded_result_is_changed_in_place():
    """h += y on a result that nobody else sees: values and gradients as for h = h + y."""
    for write in PLAIN:
        grads = []
        for in_place in (False, True):
            a, b = rl.tensor([1.0, 2.0], requires_grad=True), rl.tensor([3.0, 5.0], requires_grad=True)
            h = kept = a * 2
            h = write(h, b) if in_place else PLAIN[write](h, b)
            assert (h is kept) == in_place
            (h * h).sum().backward()
            grads.append((h.detach().tolist(), a.grad.tolist(), b.grad.tolist()))
        assert grads[0] == grads[1]


def test_a_constant_takes_the_gradient_of_what_is_added():
    total, w = rl.zeros(2), rl.ones(2, requires_grad=True)
    for _ in range(3):
        total += w
    total.sum().backward()
    assert w.grad.tolist() == [3, 3]


@pytest.mark.parametrize("alias", [lambda h: h[0], lambda h: h.detach(), lambda h: h.view(2, 1)])
def test_memory_that_is_shared_refuses_what_gradients_would_miss(alias):
    w = rl.ones(2, requires_grad=True)
    h = w * 2
    other = alias(h)
    with pytest.raises(ValueError, match=r"\[mul\] in place: .* shares its memory with another"):
        h *= 3
    base = rl.zeros(2)
    with pytest.raises(ValueError, match="shares its memory"):
        base[0] += w[0]
    assert other is not None and base.tolist() == [0, 0]


def test_a_result_that_backward_needs_refuses():
    w = rl.ones(2, requires_grad=True)
    h = rl.exp(w)
    with pytest.raises(ValueError, match="backward needs it as it is"):
        h += 1


def test_memory_of_others_is_written_and_never_left():
    array = np.ones(3, np.float32)
    shared = rl.from_dlpack(array)
    shared += 1
    assert array.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="shares its memory"):
        shared += rl.ones(3, requires_grad=True)


def test_a_value_may_have_more_dimensions_of_size_1(device):
    x = rl.zeros(3, 2, device=device)
    x[0] = rl.ones(1, 1, 2, device=device)
    x[rl.tensor([2])] = rl.full((1, 1, 1, 2), 5.0, device=device)
    assert x.tolist() == [[1, 1], [0, 0], [5, 5]]
    with pytest.raises(ValueError, match=r"\(2, 1, 2\) does not broadcast to \(2,\)"):
        x[0] = rl.ones(2, 1, 2, device=device)


def test_a_multiple_is_added_in_place(device):
    x = rl.ones(2, device=device)
    assert x.add_(x, alpha=2) is x and x.tolist() == [3.0, 3.0]
    assert x.sub_(rl.tensor([1.0, 2.0], device=device), alpha=0.5).tolist() == [2.5, 2.0]
    assert x.add_(3, alpha=-1).tolist() == [-0.5, -1.0]
    with rl.count() as c:
        x.add_(x, alpha=1)
    assert c.launches == 1
    with pytest.raises(TypeError, match=r"\[add_\] other: expected a tensor or a number, got str"):
        x.add_("1")


def test_a_tensor_is_filled_with_the_number_of_another(device):
    x = rl.zeros(2, dtype="float16", device=device)
    assert x.fill_(rl.tensor(3.0, device=device)).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match=r"\[fill_\] value: expected one number, got a tensor of shape \(1,\)"):
        x.fill_(rl.ones(1, device=device))
