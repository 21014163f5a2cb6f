"""What rl.autocast casts only once: weights, for as long as a context lasts, and what several products read. Also the
gradients of products with cast operands.
"""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close

DEVICES = ["cpu", "meta:cpu", "meta:H200", pytest.param("cuda", marks=pytest.mark.gpu)]


def weight_casts(counted):
    return sum(c.launches for name, c in counted.by_range.items() if name.endswith("autocast_weights"))


@pytest.mark.parametrize("device", DEVICES)
def test_a_weight_is_cast_once_in_a_context(device):
    x = rl.ones(2, 8, device=device)
    weights = [rl.ones(8, 8, device=device, requires_grad=True) for _ in range(3)]
    held = rl.memory.allocated(device)
    with rl.count() as c, rl.autocast("bfloat16"):
        for _ in range(2):
            y = x
            for w in weights:
                y = rl.linear(y, w)
        del y
        assert weight_casts(c) == 3
        kept = rl.memory.allocated(device) - held
        assert kept >= sum(w.nbytes for w in weights) // 2
    assert c.by_op["cast"].launches == 3 + 2  # and x, at the first layer of each pass
    casts = [c.by_range["autocast_weights"]]
    assert sum(r.bytes_read + r.bytes_written for r in casts) == 6 * 3 * 64
    assert rl.memory.allocated(device) == held
    with rl.count() as c, rl.autocast("bfloat16"):
        rl.linear(x, weights[0])
    assert weight_casts(c) == 1


def test_a_transformer_casts_seven_weights_a_layer_and_its_head():
    """Lab 2's count: 7n + 1 casts, 6 bytes for each element; tables of embeddings and gains stay float32."""
    d, i, n, vocabulary, device = 64, 128, 3, 100, "meta:H200"
    made = lambda *shape: rl.empty(*shape, device=device, requires_grad=True)  # noqa: E731
    layers = [[made(d, d) for _ in range(4)] + [made(i, d), made(i, d), made(d, i), made(d)] for _ in range(n)]
    table, gain, head = made(vocabulary, d), made(d), made(vocabulary, d)
    tokens = rl.zeros(2, 8, dtype="int64", device=device)
    with rl.count() as c, rl.autocast("bfloat16"):
        x = rl.embedding(tokens, table)
        for *qkv, out, gate, up, down, norm in layers:
            h = rl.rms_norm(x, norm)
            q, k, v = (rl.linear(h, w).reshape(2, 8, 4, 16).transpose(1, 2) for w in qkv)
            x = x + rl.linear(rl.attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 8, d), out)
            h = rl.rms_norm(x, norm)
            x = x + rl.linear(rl.swiglu(rl.linear(h, gate), rl.linear(h, up)), down)
        loss = rl.cross_entropy(rl.linear(rl.rms_norm(x, gain), head).flatten(0, 1), tokens.flatten())
    casts = c.by_range["autocast_weights"]
    elements = n * (4 * d * d + 3 * d * i) + vocabulary * d
    assert (casts.launches, casts.bytes_read + casts.bytes_written) == (7 * n + 1, 6 * elements)
    loss.backward()
    grads = [p.grad for p in (table, gain, head, *(p for layer in layers for p in layer))]
    assert x.dtype == loss.dtype == "float32" and all(grad.dtype == "float32" for grad in grads)


def test_casts_are_kept_until_the_outermost_context_ends():
    w, x = rl.ones(4, 4, requires_grad=True), rl.ones(1, 4)
    with rl.count() as c, rl.autocast("bfloat16"):
        for _ in range(3):
            with rl.autocast("bfloat16"):
                rl.linear(x, w)
            with rl.autocast("bfloat16", enabled=False):
                assert rl.linear(x, w).dtype == "float32"
    assert weight_casts(c) == 1


@pytest.mark.parametrize("how", ["backward", "grad"])
def test_a_backward_in_the_context_computes_as_its_forward_pass_did_outside(how):
    """Products of float32 stay products of float32, though the context would have them in bfloat16."""
    x, w = rl.randn(4, 5), rl.randn(3, 5, requires_grad=True)
    y, dy = rl.linear(x, w), rl.randn(4, 3)
    with rl.count() as c, rl.autocast("bfloat16"):
        got = rl.autograd.grad(y, w, dy, retain_graph=True)[0] if how == "grad" else (y.backward(dy), w.grad)[1]
    assert "cast" not in c.by_op and got.dtype == "float32"
    assert got.numpy().tobytes() == (dy.T @ x).numpy().tobytes()


def test_a_backward_in_the_context_does_not_end_it_or_its_casts():
    """Its rules compute in the dtypes of the forward pass: a bias's gradient is a sum of bfloat16."""
    w, b, x = rl.ones(4, 4, requires_grad=True), rl.zeros(4, requires_grad=True), rl.ones(3, 4)
    with rl.count() as c, rl.autocast("bfloat16"):
        for passes in (1, 2):
            y = rl.linear(x, w, b)
            y.sum().backward()
            assert w.grad.tolist() == [[3 * passes] * 4] * 4 and b.grad.tolist() == [3 * passes] * 4
            assert y.dtype == "bfloat16"
    assert weight_casts(c) == 2


def test_without_gradients_first():
    """A cast that was made without recording is used again by a pass that records."""
    w, x = rl.ones(4, 4, requires_grad=True), rl.ones(1, 4)
    with rl.autocast("bfloat16"):
        with rl.no_grad():
            assert not rl.linear(x, w).requires_grad
        rl.linear(x, w).sum().backward()
    assert w.grad.tolist() == [[1] * 4] * 4


def test_a_weight_that_was_written_to_is_cast_anew():
    w, x = rl.ones(1, 4, requires_grad=True), rl.ones(1, 4)
    with rl.autocast("bfloat16"):
        assert rl.linear(x, w).item() == 4
        with rl.no_grad():
            w.mul_(2)
        assert rl.linear(x, w).item() == 8


def test_activations_and_frozen_tensors_are_not_kept():
    x, frozen = rl.ones(4, 4), rl.ones(4, 4)
    with rl.count() as c, rl.autocast("bfloat16"):
        for _ in range(2):
            rl.matmul(x, frozen)
    assert c.by_op["cast"].launches == 4 and weight_casts(c) == 0


def casts(counted):
    return counted.by_op["cast"].launches if "cast" in counted.by_op else 0


@pytest.mark.parametrize("device", DEVICES)
def test_what_several_products_read_is_cast_once(device):
    """And each product gives a gradient in float32. They add up to what separate casts would give, bit by bit."""
    weights = [rl.randn(8, 8, dtype="bfloat16", device=device, requires_grad=True) for _ in range(3)]
    given = rl.randn(4, 8, device=device)
    gradients = []
    for is_shared in (True, False):
        x = given.clone().requires_grad_()
        with rl.autocast("bfloat16"):
            norm = rl.rms_norm(x)
            with rl.count() as c:
                read = [norm if is_shared else norm * 1.0 for _ in weights]
                products = [rl.linear(one, w) for one, w in zip(read, weights, strict=True)]
            assert casts(c) == (1 if is_shared else 3)
        sum(y.float().sum() for y in products).backward()
        gradients.append(x.grad)
    if not device.startswith("meta"):
        assert_close(*gradients, atol=0, rtol=0)


def test_a_turned_tensor_that_is_cast_once_is_read_turned(device):
    weights = [rl.randn(8, 8, dtype="bfloat16", device=device, requires_grad=True) for _ in range(2)]
    turned = (rl.randn(4, 8, device=device, requires_grad=True) * 1.0).T
    with rl.autocast("bfloat16"), rl.count() as c:
        products = [rl.matmul(weight, turned) for weight in weights]
    assert casts(c) == 1
    for weight, product in zip(weights, products, strict=True):
        assert_close(product, weight @ turned.contiguous().to("bfloat16"), rtol=2**-7, atol=2**-7)


def test_gradients_of_linear_come_out_of_their_products():
    """In the dtypes of x and weight, without casts: on a GPU one launch per gradient, and one to add up those of x."""
    x, weights = (
        rl.empty(4, 64, device="meta:H200", requires_grad=True),
        [rl.empty(32, 64, device="meta:H200", requires_grad=True) for _ in range(2)],
    )
    with rl.autocast("bfloat16"):
        norm = rl.rms_norm(x)
        y = rl.linear(norm, weights[0]) + rl.linear(norm, weights[1])
    with rl.count() as c:
        y.backward(rl.empty_like(y))
    assert {op: one.launches for op, one in c.by_op.items() if op != "rms_norm_backward"} == {
        "matmul_float32": 4, "add": 1
    }  # fmt: skip
    assert [g.dtype for g in (x.grad, *(w.grad for w in weights))] == ["float32"] * 3


@pytest.mark.gpu
def test_gradients_of_linear_are_not_rounded_to_16_bits():
    device = "cuda"
    x, w = rl.randn(300, 40, device=device, requires_grad=True), rl.randn(50, 40, device=device, requires_grad=True)
    dy = rl.randn(300, 50, dtype="bfloat16", device=device)
    with rl.autocast("bfloat16"):
        rl.linear(x, w).backward(dy)
    low = {"x": x.bfloat16(), "w": w.bfloat16(), "dy": dy}
    wide = {name: t.detach().float().cpu().numpy().astype(np.float64) for name, t in low.items()}
    assert_close(w.grad, wide["dy"].T @ wide["x"], rtol=1e-5, atol=1e-4)
    assert_close(x.grad, wide["dy"] @ wide["w"], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 5, 3), (2, 0)])
def test_linear_has_gradients_for_rows_of_any_shape(shape, device):
    x, w = rl.randn(*shape, device=device, requires_grad=True), rl.randn(4, shape[-1], device=device)
    with rl.autocast("bfloat16"):
        y = rl.linear(x, w.requires_grad_())
    dy = rl.randn(*y.shape, device=device).to("bfloat16")
    y.backward(dy)
    by_hand = [(dy.float() @ w.bfloat16().float()).detach()]
    rows, given = (t.detach().bfloat16().float().reshape(-1, t.shape[-1]) if t.numel() else None for t in (dy, x))
    by_hand.append(rows.transpose(0, 1) @ given if rows is not None and given is not None else rl.zeros_like(w))
    for found, right in zip((x.grad, w.grad), by_hand, strict=True):
        assert_close(found, right, rtol=2e-2, atol=2e-2)


def test_a_result_that_was_written_to_is_cast_anew():
    x, w = rl.ones(1, 4, requires_grad=True), rl.ones(1, 4, requires_grad=True)
    with rl.autocast("bfloat16"):
        y = x * 1.0
        first = rl.linear(y, w)  # its graph holds the cast of y, for the gradient of w
        with rl.no_grad():
            y.mul_(2)
        assert rl.linear(y, w).item() == 2 * first.item() == 8


def test_a_cast_that_nobody_holds_is_made_again():
    """It is used again only while backward keeps it: memory is never held just for a cast."""
    x, w = rl.ones(4, 4, requires_grad=True), rl.ones(4, 4)
    with rl.count() as c, rl.autocast("bfloat16"):
        y = x * 1.0
        for _ in range(2):
            rl.linear(y, w)  # whose graph is gone with it
    assert casts(c) == 2 * 2  # y and w


def test_a_graph_does_not_use_a_cast_from_outside(device):
    w, x = (rl.ones(1, 4, device=device, requires_grad=True) for _ in "wx")  # for the gradient of w a cast is held
    y = x * 1.0
    graph = rl.Graph(device=device)
    with rl.autocast("bfloat16"):
        before = rl.linear(y, w)
        with graph.capture():
            after = rl.linear(y, w)
        with rl.no_grad():
            y.mul_(3)
        graph.replay()
    assert (before.item(), after.item()) == (4, 12)


def test_a_graph_does_not_use_a_cast_of_one_that_is_gone(device):
    """The new one may lie where the old one lay."""
    w, x = (rl.ones(1, 4, device=device, requires_grad=True) for _ in "wx")
    y = x * 1.0
    for _ in range(2):
        graph = rl.Graph(device=device)
        with rl.autocast("bfloat16"):
            with graph.capture():
                held = rl.linear(y, w)
            launches = graph.launches  # two casts and the product, which may be several
            del graph
            graph = rl.Graph(device=device)
            with graph.capture():
                product = rl.linear(y, w)
        graph.replay()
        assert (product.item(), graph.launches, held.shape) == (4, launches, (1, 1))


def test_what_a_replay_wrote_to_is_cast_anew(device):
    """A leaf and a result that were there before, and a result of the capture."""
    leaf, w, x = (rl.ones(1, 4, device=device, requires_grad=True) for _ in range(3))
    before, given, graph = x * 1.0, rl.ones(1, 4, device=device), rl.Graph(device=device)
    with rl.no_grad(), graph.capture():
        given.mul_(2)
        for written in (leaf, before):
            written.copy_(given)
    refilled = rl.Graph(device=device)
    with refilled.capture():
        made = x * given
    refilled.replay()
    with rl.autocast("bfloat16"):
        for x, y in ((given, leaf), (before, w), (made, w)):
            held = rl.linear(x, y)  # and with it its cast
            graph.replay()
            refilled.replay()
            product = rl.linear(x, y).item()
            assert product == 4 * x[0, 0].item() * y[0, 0].item() != held.item()


def test_a_replay_costs_others_no_casts(device):
    w, x = rl.ones(4, 4, device=device, requires_grad=True), rl.ones(1, 4, device=device)
    graph = rl.Graph(device=device)
    with rl.autocast("bfloat16"), rl.count() as c:
        with rl.no_grad(), graph.capture():
            rl.linear(x, w)
        for _ in range(3):
            graph.replay()
            rl.linear(x, w)
    assert weight_casts(c) == 1
