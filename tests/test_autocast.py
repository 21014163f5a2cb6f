"""rl.autocast: the policy on every device, casts of weights, gradients, nesting, threads, and what it leaves alone."""

import re
import threading

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close

DEVICES = ["cpu", "meta:cpu", "meta:H200", pytest.param("cuda", marks=pytest.mark.gpu)]
LOW = ["float16", "bfloat16"]


class ToyModel:
    """CS336's, by hand: fc1, relu, layer norm, fc2; all parameters float32."""

    def __init__(self, in_features, out_features, device):
        shapes = {"fc1": (10, in_features), "gain": (10,), "bias": (10,), "fc2": (out_features, 10)}
        self.parameters = {name: rl.randn(*shape, device=device).requires_grad_() for name, shape in shapes.items()}

    def __call__(self, x):
        p = self.parameters
        self.seen = {"fc1": rl.linear(x, p["fc1"])}
        self.seen["relu"] = rl.relu(self.seen["fc1"])
        self.seen["ln"] = rl.layer_norm(self.seen["relu"], p["gain"], p["bias"])
        self.seen["logits"] = rl.linear(self.seen["ln"], p["fc2"])
        return self.seen["logits"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("low", LOW)
def test_the_toy_model_of_the_sheet(low, device):
    model = ToyModel(20, 5, device)
    x, target = rl.randn(4, 20, device=device), rl.zeros(4, dtype="int64", device=device)
    with rl.autocast(low):
        loss = rl.cross_entropy(model(x), target)
    loss.backward()
    assert {name: str(y.dtype) for name, y in model.seen.items()} == {
        "fc1": low, "relu": low, "ln": "float32", "logits": low
    }  # fmt: skip
    assert loss.dtype == "float32"
    for name, p in model.parameters.items():
        assert (p.dtype, p.grad.dtype) == ("float32", "float32"), name


CALLS = {
    "matmul": lambda x: x @ x,
    "linear": lambda x: rl.linear(x, x, x[0]),
    "attention": lambda x: rl.attention(x[None], x[None], x[None], rl.zeros(4, 4, dtype=x.dtype, device=x.device)),
    "softmax": lambda x: rl.softmax(x),
    "log_softmax": lambda x: rl.log_softmax(x),
    "cross_entropy": lambda x: rl.cross_entropy(x, rl.zeros(4, dtype="int64", device=x.device)),
    "rms_norm": lambda x: rl.rms_norm(x, x[0]),
    "rms_norm_add": lambda x: rl.rms_norm_add(x, x, x[0]),
    "rms_norm_rope": lambda x: rl.rms_norm_rope(x[None], x[0], x, x),
    "layer_norm": lambda x: rl.layer_norm(x, x[0], x[0]),
    "exp": rl.exp,
    "log": rl.log,
    "pow": lambda x: x**2,
    "rsqrt": rl.rsqrt,
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "cumsum": lambda x: x.cumsum(0),
}


def test_the_table_in_the_documentation_is_the_policy():
    policies = dict(rl._core._autocast.policies())
    assert policies.keys() == CALLS.keys()
    rows = re.findall(
        r"^    (\S.*?)\s\s+(`dtype`|float32)$((?:\n    \S[a-z_, ]+$)*)", rl.autocast.__doc__, re.MULTILINE
    )
    named = {word: kind for first, kind, rest in rows for word in re.findall(r"\w+", first + rest)}
    assert {op: "low" if kind == "`dtype`" else kind for op, kind in named.items()} == policies


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", CALLS)
def test_each_op_computes_as_the_policy_says(op, device):
    policy = dict(rl._core._autocast.policies())[op]
    for low in LOW:
        for given in ("float32", *LOW):
            x = rl.ones(4, 4, dtype=given, device=device)
            expected = getattr(rl, low) if policy == "low" else rl.float32
            with rl.autocast(low), rl.count() as c:
                y = CALLS[op](x)
            y = y[0] if isinstance(y, tuple) else y
            assert y.dtype == expected, f"{given} under {low}"
            assert ("cast" in c.by_op) == (given != expected and op != "cross_entropy")


@pytest.mark.parametrize("op", sorted(CALLS))
def test_float64_is_left_alone(op):
    x = rl.ones(4, 4, dtype="float64")
    with rl.autocast("float16"):
        y = CALLS[op](x)
    assert (y[0] if isinstance(y, tuple) else y).dtype == "float64"


@pytest.mark.parametrize("device", DEVICES)
def test_mixed_operands_meet_in_the_widest(device):
    low, other, wide, widest = (
        rl.ones(3, dtype=d, device=device) for d in ("bfloat16", "float16", "float32", "float64")
    )
    with rl.autocast("bfloat16"):
        assert (low + low).dtype == (low * 2).dtype == rl.silu(low).dtype == rl.gelu(low).dtype == "bfloat16"
        assert (low + wide).dtype == (wide * low).dtype == (low - other).dtype == rl.cat([low, wide]).dtype == "float32"
        assert rl.where(low > wide, low, wide).dtype == "float32" and (low / widest).dtype == "float64"
        assert rl.rope(low.expand(1, 1, 1, 3)[..., :2], wide[None, :2], wide[None, :2]).dtype == "float32"
        wide += low
        low *= wide
    assert wide.dtype == "float32" and low.dtype == "bfloat16"
    with pytest.raises(ValueError, match="bfloat16 and float32"):
        low + wide


def test_values_are_those_of_the_casts_by_hand(device):
    x, w = rl.randn(5, 33, device=device), rl.randn(7, 33, device=device, requires_grad=True)
    own = w.detach().clone().requires_grad_()
    with rl.autocast("bfloat16"):
        loss = (rl.linear(x, w) * 3.0).sum()
    by_hand = (rl.linear(x.bfloat16(), own.bfloat16()) * 3.0).float().sum()
    assert loss.item() == by_hand.item() and loss.dtype == by_hand.dtype
    loss.backward()
    by_hand.backward()
    # By hand the gradient is rounded to 16 bits. Under autocast on a GPU it is not.
    roundings = 0 if device == "cpu" else unit_roundoff("bfloat16")
    assert_close(w.grad, own.grad, atol=0, rtol=roundings)
    assert str(w.grad.dtype) == "float32"


# Casts of weights


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
    """The cast that was made while nothing was recorded serves a pass that records."""
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
    """And each of them has a gradient in float32: they add up to what casts of their own give, bit by bit."""
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


def test_gradients_of_linear_come_out_of_their_products():
    """In the dtypes of x and weight, with no casts: a launch a gradient on a GPU, and one to add up what x gets."""
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
    x, w = rl.ones(1, 4, requires_grad=True), rl.ones(1, 4)
    with rl.autocast("bfloat16"):
        y = x * 1.0
        first = rl.linear(y, w)
        with rl.no_grad():
            y.mul_(2)
        assert rl.linear(y, w).item() == 2 * first.item() == 8


def test_a_cast_that_nobody_holds_is_made_again():
    """It serves while backward keeps it: memory is never held for the sake of a cast."""
    x, w = rl.ones(4, 4, requires_grad=True), rl.ones(4, 4)
    with rl.count() as c, rl.autocast("bfloat16"):
        y = x * 1.0
        for _ in range(2):
            rl.linear(y, w)  # whose graph is gone with it
    assert casts(c) == 2 * 2  # y and w


def test_a_graph_does_not_use_a_cast_from_outside(device):
    w, x = rl.ones(1, 4, device=device), rl.ones(1, 4, device=device, requires_grad=True)
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


# Contexts


def test_contexts_nest_and_end_with_an_exception():
    x = rl.ones(2, 2)
    with rl.autocast("bfloat16"):
        with rl.autocast("float16"):
            assert (x @ x).dtype == "float16"
            with rl.autocast("float16", enabled=False):
                assert (x @ x).dtype == "float32"
        assert (x @ x).dtype == "bfloat16"
        with pytest.raises(ZeroDivisionError), rl.autocast("float16"):
            raise ZeroDivisionError
        assert (x @ x).dtype == "bfloat16"
    assert (x @ x).dtype == "float32"


def test_one_context_may_be_entered_twice_at_once():
    x, context = rl.ones(2, 2), rl.autocast("float16")
    with context, context:
        pass
    assert (x @ x).dtype == "float32"
    with context:
        assert (x @ x).dtype == "float16"


def test_a_function_is_decorated():
    @rl.autocast("float16")
    def product(x, depth):
        """Of x with itself."""
        return product(x, depth - 1) if depth else x @ x

    x = rl.ones(2, 2)
    assert product(x, 2).dtype == "float16" and (x @ x).dtype == "float32"
    assert product.__doc__ == "Of x with itself."
    with pytest.raises(TypeError, match=r"\[autocast\] expected a function, and no generator"):
        rl.autocast("float16")(lambda: (yield))


def test_other_threads_compute_as_they_did():
    x, found = rl.ones(2, 2), []
    with rl.autocast("bfloat16"):
        thread = threading.Thread(target=lambda: found.append((x @ x).dtype))
        thread.start()
        thread.join()
    assert found == ["float32"]


def test_a_compiled_function_knows_the_context():
    compiled = rl.compile(lambda x: (x @ x) * 2.0)
    x = rl.ones(4, 4)
    found = []
    for low in (None, "bfloat16", "float16", None):
        with rl.autocast(low or "bfloat16", enabled=low is not None):
            found.append(str(compiled(x).dtype))
    assert found == ["float32", "bfloat16", "float16", "float32"]


def test_a_captured_graph_casts_its_weights_at_each_replay(device):
    w, x = rl.ones(1, 4, device=device, requires_grad=True), rl.ones(1, 4, device=device)
    graph = rl.Graph(device=device)
    with rl.no_grad(), rl.autocast("bfloat16"):
        rl.linear(x, w)
        with graph.capture():
            y = rl.linear(x, w)
        w.mul_(3)
        graph.replay()
    assert y.item() == 12


@pytest.mark.parametrize("dtype", ["float32", "int8", None])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(ValueError, match=r"\[autocast\] dtype: expected float16 or bfloat16, got"):
        rl.autocast(dtype)


def test_what_autocast_computes_is_near(device):
    """One policy for what is precise: a softmax over bfloat16 logits is that of float32."""
    x = rl.randn(3, 2000, dtype="bfloat16", device=device)
    with rl.autocast("bfloat16"):
        y = rl.softmax(x)
    right = np.exp(x.float().cpu().numpy().astype(np.float64))
    assert_close(y, right / right.sum(1, keepdims=True), rtol=1e-5, atol=0)
