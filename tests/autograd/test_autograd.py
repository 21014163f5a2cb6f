"""The tape: what is recorded, what backward does with it, what it holds, and every way of getting it wrong."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close


def leaf(*shape, device="cpu", dtype="float32"):
    return rl.randn(*shape, dtype=dtype, device=device, requires_grad=True)


def exactly(actual, expected):
    assert_close(actual, expected, rtol=0, atol=0)


def test_only_what_requires_grad_is_recorded():
    x, c = leaf(3), rl.randn(3)
    assert (x.requires_grad, x.is_leaf, x.grad_fn, x.grad) == (True, True, None, None)
    assert (c.requires_grad, c.is_leaf, c.grad_fn) == (False, True, None)
    y = c * x
    assert (y.requires_grad, y.is_leaf, y.grad_fn.name) == (True, False, "mul")
    assert not (c * c).requires_grad
    assert not (x > c).requires_grad
    assert not rl.cast(x, "int64").requires_grad
    assert not rl.tensor(x).requires_grad
    assert "requires_grad=True" in repr(x)
    assert "grad_fn=<mul>" in repr(y)


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: rl.tensor([1.0, 2.0], **options),
        lambda **options: rl.zeros(2, **options),
        lambda **options: rl.ones(2, **options),
        lambda **options: rl.empty(2, **options),
        lambda **options: rl.randn(2, **options),
        lambda **options: rl.rand(2, **options),
        lambda **options: rl.full((2,), 3.0, **options),
    ],
)
def test_factories_make_leaves(make, device):
    x = make(requires_grad=True, device=device)
    assert x.requires_grad
    assert x.is_leaf
    assert not make(device=device).requires_grad


def test_requires_grad_can_be_set_on_leaves_of_floating_point():
    x = rl.ones(2)
    assert x.requires_grad_() is x
    x.requires_grad = False
    assert not (x * 2).requires_grad
    assert x.requires_grad_(True).requires_grad
    with pytest.raises(ValueError, match=r"\[requires_grad\].*int64"):
        rl.arange(3).requires_grad_()
    with pytest.raises(ValueError, match=r"\[requires_grad\].*result of mul.*detach"):
        (x * 2).requires_grad_(False)


def test_a_tensor_used_twice_gets_both_gradients(device):
    x = rl.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    (x * x + x).sum().backward()
    exactly(x.grad, [3, 5, 7])


def test_a_result_used_twice_is_passed_once():
    x = rl.tensor([2.0], requires_grad=True)
    y = x * 3
    with rl.count() as c:
        (y * y).backward()
    exactly(x.grad, [36])
    assert c.by_range["backward/mul"].launches == 2 + 1 + 1  # both operands and their sum, then the number's


def test_gradients_add_up_over_calls_until_cleared():
    x = rl.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        (x * 2).sum().backward()
    exactly(x.grad, [6, 6])
    x.grad = None
    assert x.grad is None
    (x * 2).sum().backward()
    exactly(x.grad, [2, 2])
    x.grad = rl.tensor([10.0, 20.0])
    (x * 2).sum().backward()
    exactly(x.grad, [12, 22])
    with pytest.raises(ValueError, match=r"\[grad\].*\(2,\) float32 on cpu, got \(3,\) float32"):
        x.grad = rl.ones(3)


def test_gradients_add_up_in_the_memory_of_the_first():
    x = rl.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    first, place = x.grad, x.grad.data_ptr()
    with rl.count() as c:
        (x * 3).sum().backward()
    assert x.grad.data_ptr() == place
    assert_close(first, [5, 5, 5])
    assert c.by_op["add"].ops == 1
    given = rl.ones(3)
    x.grad = given
    (x * 2).sum().backward()
    assert_close(given, [3, 3, 3])
    x.grad = rl.ones(1).expand(3)  # one element in three places
    (x * 2).sum().backward()
    assert_close(x.grad, [3, 3, 3])


def test_gradients_that_add_up_on_the_way_leave_others_alone():
    x, given = rl.ones(3, requires_grad=True), rl.ones(3)
    h = x * 2
    y = h + h + rl.exp(h - h)  # the given gradient reaches h more than once
    y.backward(given)
    assert_close(given, [1, 1, 1])
    assert_close(x.grad, [4, 4, 4])
    x = rl.ones(3, requires_grad=True)
    kept = []

    class Kept(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            kept.append(dy)
            return dy

    h = x * 2
    (Kept.apply(h) * 3 + rl.sin(h * 0)).sum().backward()
    assert_close(kept[0], [3, 3, 3])


def test_a_leaf_owns_its_gradient():
    a, b, dy = leaf(2, 3), leaf(2, 3), rl.ones(2, 3)
    (a + b).backward(dy)
    a.grad.zero_()
    exactly(b.grad, np.ones((2, 3)))
    exactly(dy, np.ones((2, 3)))
    a.grad = None
    a.sum().backward()
    assert a.grad.is_contiguous()
    a.grad.fill_(2)


def test_backward_frees_what_was_saved_unless_told_otherwise():
    x = leaf(4)
    y = rl.exp(x).sum()
    y.backward(retain_graph=True)
    once = x.grad.clone()
    y.backward()
    assert_close(x.grad, 2 * once)
    with pytest.raises(ValueError, match=r"\[exp\] backward: what it saved was freed.*retain_graph=True"):
        y.backward()


def test_gradients_given_must_match():
    x = leaf(2, 3)
    y = x * 2
    with pytest.raises(ValueError, match=r"\[backward\] gradient: must be given for a tensor of shape \(2, 3\)"):
        y.backward()
    with pytest.raises(ValueError, match=r"expected \(2, 3\) float32 on cpu, got \(3,\) float32 on cpu"):
        y.backward(rl.ones(3))
    with pytest.raises(ValueError, match=r"got .* float64 on cpu"):
        y.backward(rl.ones(2, 3, dtype="float64"))
    with pytest.raises(ValueError, match=r"\[backward\].*does not require grad"):
        rl.ones(1).backward()
    y.backward(rl.ones(2, 3))
    exactly(x.grad, np.full((2, 3), 2))


@pytest.mark.gpu
def test_gradients_cross_devices():
    x = leaf(2, 3)
    y = (x.cuda() * 2).cpu().cuda()
    with pytest.raises(ValueError, match=r"on cuda:0, got .* on cpu"):
        y.backward(rl.ones(2, 3))
    y.backward(rl.ones(2, 3, device="cuda"))
    assert x.grad.device == "cpu"
    exactly(x.grad, np.full((2, 3), 2))


def test_no_grad_and_enable_grad():
    x = leaf(2)

    @rl.no_grad()
    def in_parentheses():
        return rl.is_grad_enabled(), (x * 2).requires_grad

    @rl.no_grad
    def bare():
        return rl.is_grad_enabled()

    @rl.enable_grad()
    def on():
        return rl.is_grad_enabled()

    assert in_parentheses() == (False, False)
    assert bare() is False
    with rl.no_grad():
        assert on() is True
        with rl.enable_grad():
            assert (x * 2).requires_grad
        assert not rl.is_grad_enabled()
    assert rl.is_grad_enabled()
    with pytest.raises(KeyError), rl.no_grad():
        raise KeyError
    assert rl.is_grad_enabled()


def test_detach_leaves_the_graph_and_shares_memory():
    x = leaf(3)
    d = (x * 2).detach()
    assert not d.requires_grad
    assert x.detach().data_ptr() == x.data_ptr()
    (x * d).sum().backward()
    exactly(x.grad, d)


def test_other_libraries_see_detached_tensors_only():
    x = leaf(2, 2)
    for read in (lambda: x.numpy(), lambda: np.asarray(x), lambda: x.__dlpack__()):
        with pytest.raises(ValueError, match=r"requires grad; call \.detach"):
            read()
    assert x.detach().numpy().shape == (2, 2)
    assert float(x[0, 0]) == x[0, 0].item() == x.tolist()[0][0]


VIEWS = {
    "view": lambda x: x.reshape(4, 6) if isinstance(x, np.ndarray) else x.view(4, 6),
    "reshape": lambda x: x.reshape(6, -1),
    "reshape-copy": lambda x: (
        x.swapaxes(0, 2).reshape(-1) if isinstance(x, np.ndarray) else x.transpose(0, 2).reshape(-1)
    ),
    "flatten": lambda x: x.reshape(2, 12) if isinstance(x, np.ndarray) else x.flatten(1),
    "transpose": lambda x: x.swapaxes(0, -1) if isinstance(x, np.ndarray) else x.transpose(0, -1),
    "mT": lambda x: x.mT,
    "T": lambda x: x[0].T,
    "permute": lambda x: x.transpose(2, 0, 1) if isinstance(x, np.ndarray) else x.permute(2, 0, -2),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "unsqueeze": lambda x: x[:, None] if isinstance(x, np.ndarray) else x.unsqueeze(1),
    "expand": lambda x: (
        np.broadcast_to(x[:, :1], (5, 2, 3, 4)) if isinstance(x, np.ndarray) else x[:, :1].expand(5, 2, 3, 4)
    ),
    "index": lambda x: x[1, ..., 1:4:2, None],
    "negative": lambda x: x[-1, -2:, 0],
    "ellipsis": lambda x: x[...],
    "nothing": lambda x: x[2:],
    "of-view": lambda x: x[0].T[1:3][:, 1],
    "contiguous": lambda x: np.ascontiguousarray(x.mT) if isinstance(x, np.ndarray) else x.mT.contiguous(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_go_through_views(name, device):
    view = VIEWS[name]
    x = leaf(2, 3, 4, device=device)
    y = view(x)
    places = view(np.arange(24).reshape(2, 3, 4))
    dy = np.random.default_rng(0).integers(-9, 9, places.shape).astype(np.float64)
    expected = np.zeros(24)
    np.add.at(expected, places, dy)
    exactly(y.detach(), x.detach().cpu().numpy().ravel()[places])
    y.backward(rl.tensor(dy, dtype="float32", device=device))
    exactly(x.grad, expected.reshape(2, 3, 4))


def test_views_take_part_in_graphs():
    x = leaf(4, 4)
    (x[0] * x.T[:, 1] + x[0]).sum().backward()
    before = x.detach().numpy()
    expected = np.zeros((4, 4))
    expected[0] += before[1] + 1
    expected[1] += before[0]
    assert_close(x.grad, expected)


def test_broadcast_operands_get_sums(device):
    a, b = leaf(4, 1, device=device), leaf(2, 1, 3, device=device)
    (a * b).sum().backward()
    assert_close(a.grad, np.full((4, 1), b.detach().sum().item()), rtol=1e-5)
    assert_close(b.grad, np.full((2, 1, 3), a.detach().sum().item()), rtol=1e-5)


@pytest.mark.parametrize("largest", [rl.maximum, rl.minimum])
def test_equals_share_the_gradient(largest):
    a = rl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    largest(a, rl.tensor([2.0, 2.0, 2.0])).sum().backward()
    assert sorted(a.grad.tolist()) == [0, 0.5, 1]
    assert a.grad.tolist()[1] == 0.5
    x = rl.tensor([[3.0, 1.0, 3.0], [0.0, 5.0, 2.0]], requires_grad=True)
    x.amax(dim=1).sum().backward()
    exactly(x.grad, [[0.5, 0, 0.5], [0, 1, 0]])


def test_kinks_and_poles_have_the_usual_values():
    x = rl.tensor([-2.0, 0.0, 3.0], requires_grad=True)
    (rl.relu(x) + rl.abs(x)).sum().backward()
    exactly(x.grad, [-1, 0, 2])
    for power, expected in ((0, 0), (1, 1), (2, 0)):
        z = rl.zeros(1, requires_grad=True)
        (z**power).sum().backward()
        exactly(z.grad, [expected])
    b = rl.tensor([2.0], requires_grad=True)
    (0.0**b).sum().backward()
    exactly(b.grad, [0])


def test_empty_tensors_have_empty_gradients(device):
    x, w = leaf(0, 3, device=device), leaf(3, 2, device=device)
    (rl.gelu(x) @ w).sum().backward()
    assert x.grad.shape == (0, 3)
    exactly(w.grad, np.zeros((3, 2)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])  # float64 is composed of other ops
@pytest.mark.parametrize(("L_q", "L_kv"), [(3, 0), (0, 5)])
def test_attention_of_nothing_has_zero_gradients(L_q, L_kv, dtype, device):
    q, k, v = (leaf(2, 4, L, 8, dtype=dtype, device=device) for L in (L_q, L_kv, L_kv))
    rl.attention(q, k, v).sum().backward()
    for x in (q, k, v):
        exactly(x.grad, np.zeros(x.shape))


def test_a_mask_that_requires_grad_runs_composed():
    q, k, v, mask = (leaf(*shape, dtype="float64") for shape in ((1, 5, 8), (1, 7, 8), (1, 7, 8), (5, 7)))
    rl.attention(q, k, v, mask, variant="v0_composed").sum().backward()
    expected = mask.grad
    mask = mask.detach().float().requires_grad_()
    q, k, v = (x.detach().float() for x in (q, k, v))
    rl.attention(q, k, v, mask).sum().backward()
    assert_close(mask.grad, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="attn_mask: requires grad, and only v0_composed has a gradient for it"):
        rl.attention(q, k, v, mask, variant="v1_flash")


def test_a_step_of_gradient_descent():
    w = rl.tensor([1.0, -2.0], requires_grad=True)
    for _ in range(50):
        (w * w).sum().backward()
        with rl.no_grad():
            w.copy_(w - 0.1 * w.grad)
        w.grad = None
    assert_close(w.detach(), [0, 0], atol=1e-4)
    assert w.is_leaf


def test_backward_is_counted_and_named():
    x, w = leaf(8, 4), leaf(4, 5)
    y = (x @ w).sum()
    with rl.count() as c, rl.range("step"):
        y.backward()
    assert c.macs == 2 * 8 * 4 * 5
    assert c.by_range["step/backward/matmul"].launches == 2


def test_only_wanted_gradients_are_computed():
    x, w = rl.randn(8, 4), leaf(4, 5)
    with rl.count() as c:
        (x @ w).sum().backward()
    assert c.macs == 2 * 8 * 4 * 5
    a, b = leaf(8, 4), leaf(4, 5)
    y = (a @ b).sum()
    with rl.count() as c:
        rl.autograd.grad(y, b)
    assert c.macs == 8 * 4 * 5


def test_grad_of_inputs_on_the_way_leaves_grad_alone():
    x, other = rl.tensor([1.0, 2.0], requires_grad=True), leaf(2)
    y = x * 3
    z = (y * y).sum()
    dy, dx = rl.autograd.grad(z, [y, x], retain_graph=True)
    exactly(dy, [6, 12])
    exactly(dx, [18, 36])
    assert x.grad is None
    (dx,) = rl.autograd.grad([z, y], x, [None, rl.ones(2)])
    exactly(dx, [21, 39])
    with pytest.raises(ValueError, match=r"\[grad\] inputs\[0\]: the outputs do not depend on it"):
        rl.autograd.grad((x * x).sum(), other)
    with pytest.raises(ValueError, match=r"\[grad\] inputs\[1\]: the outputs do not depend on it"):
        rl.autograd.grad((x * x).sum(), [x, other])
    with pytest.raises(ValueError, match=r"\[grad\] inputs: expected tensors that require grad"):
        rl.autograd.grad((x * x).sum(), rl.ones(2))


def test_the_gradient_of_a_square_is_a_product():
    """2 x dy, which needs no power of 1. A square of inf or of 0 has the slope that it should."""
    x = rl.tensor([0.0, -3.0, np.inf, np.nan], requires_grad=True)
    y = x**2
    with rl.count() as c:
        y.backward(rl.ones(4))
    assert "pow" not in c.by_op and c.by_op["mul"].launches == 2
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, -6.0, np.inf, np.nan])
