"""rl.autocast: the policy on every device, gradients, nesting, threads, and what it leaves alone."""

import inspect
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
    """The ToyModel of CS336, by hand: fc1, relu, layer norm, fc2; all parameters float32."""

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
    "log2": rl.log2,
    "log10": rl.log10,
    "pow": lambda x: x**2,
    "rsqrt": rl.rsqrt,
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "cumsum": lambda x: x.cumsum(0),
}


def test_the_table_in_the_documentation_is_the_policy():
    policies = dict(rl._core._autocast.policies())
    assert policies.keys() == CALLS.keys()
    table = inspect.getdoc(rl.autocast)
    rows = re.findall(r"^(\S.*?)\s\s+(`dtype`|float32)$((?:\n(?!.*float32)\S[a-z0-9_, ]+$)*)", table, re.MULTILINE)
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
    assert (low + wide).dtype == "float32"


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
        """The product of x with itself."""
        return product(x, depth - 1) if depth else x @ x

    x = rl.ones(2, 2)
    assert product(x, 2).dtype == "float16" and (x @ x).dtype == "float32"
    assert product.__doc__ == "The product of x with itself."
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


@pytest.mark.parametrize("dtype", ["half", "fp16", np.float16, rl.float16])
def test_a_dtype_has_many_names(dtype):
    with rl.autocast(dtype):
        assert rl.linear(rl.ones(1, 2), rl.ones(1, 2)).dtype == rl.float16
    assert repr(rl.autocast(dtype)) == "autocast('float16', enabled=True)"


@pytest.mark.parametrize("dtype", ["float32", "int8", None, "tpu", "cpu:0"])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(ValueError, match=rf"dtype: expected float16 or bfloat16, got {dtype}; a device_type is 'cpu'"):
        rl.autocast(dtype)


def test_what_autocast_computes_is_near(device):
    """The policy for precise ops: a softmax over bfloat16 logits is computed in float32."""
    x = rl.randn(3, 2000, dtype="bfloat16", device=device)
    with rl.autocast("bfloat16"):
        y = rl.softmax(x)
    right = np.exp(x.float().cpu().numpy().astype(np.float64))
    assert_close(y, right / right.sum(1, keepdims=True), rtol=1e-5, atol=0)


def test_it_takes_pytorchs_device_type():
    x = rl.ones(2, 2)
    for context, dtype in (
        (rl.autocast("cuda", dtype="bfloat16"), "bfloat16"),
        (rl.autocast("cpu", rl.float16), "float16"),
        (rl.autocast(device_type="cpu"), "bfloat16"),
        (rl.autocast("cuda"), "float16"),
        (rl.autocast(dtype="float16"), "float16"),
        (rl.autocast("cuda", dtype="float16", enabled=False), "float32"),
    ):
        with context:
            assert (x @ x).dtype == dtype
    for wrong in (lambda: rl.autocast("tpu", dtype="float16"), lambda: rl.autocast("bfloat16", "float16")):
        with pytest.raises(ValueError, match="device_type: expected 'cpu' or 'cuda' beside a dtype"):
            wrong()
    with pytest.raises(ValueError, match="dtype: expected float16 or bfloat16"):
        rl.autocast("cuda", dtype="float32")
