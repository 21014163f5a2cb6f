"""Infinities, numbers at the end of a type, and an eps that no norm can use."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import FLOATING
from rooflab.testing import assert_close

INF, NAN = float("inf"), float("nan")
FAR = [-INF, -1e4, INF, 1e4, NAN]
TIMES = 16  # so that vectorised rungs take them


def rungs_of(op, device):
    return ["", *(rung.name for rung in rl.variants(op, device))]


def far(dtype, device):
    return rl.tensor(np.tile(FAR, TIMES), dtype=dtype, device=device)


def ran(call, rung):
    """The result by a rung; None where the rung does not take the operands."""
    try:
        return call(rung)
    except ValueError as error:
        assert "does not accept these operands" in str(error)
        return None


def check(found, expected, name, atol=0.0):
    if found is not None:
        assert_close(found, np.tile(expected, TIMES), rtol=2**-7, atol=atol, name=name)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_activations_have_their_limits(name, dtype, device):
    x = far(dtype, device)
    for rung in rungs_of(name, device):
        check(ran(lambda rung: getattr(rl, name)(x, variant=rung), rung), [0, 0, INF, 1e4, NAN], rung)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("name", ["geglu", "swiglu"])
def test_gated_activations_have_their_limits(name, dtype, device):
    x = far(dtype, device)
    twos = rl.full_like(x, 2.0)
    for rung in rungs_of(name, device):
        check(ran(lambda rung: getattr(rl, name)(x, twos, variant=rung), rung), [0, 0, INF, 2e4, NAN], rung)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_slopes_of_activations_have_their_limits(name, dtype, device):
    x = far(dtype, device)
    dy = rl.full_like(x, 3.0)
    for rung in rungs_of(f"{name}_backward", device):
        found = ran(lambda rung: getattr(rl, f"{name}_backward")(dy, x, variant=rung), rung)
        check(found, [0, 0, 3, 3, NAN], rung, atol=1e-34)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("name", ["geglu", "swiglu"])
def test_slopes_of_gated_activations_have_their_limits(name, dtype, device):
    x = far(dtype, device)
    dy, b = rl.full_like(x, 3.0), rl.full_like(x, 2.0)
    for rung in rungs_of(f"{name}_backward", device):
        found = ran(lambda rung: getattr(rl, f"{name}_backward")(dy, x, b, variant=rung), rung)
        if found is not None:
            check(found[0], [0, 0, 6, 6, NAN], rung, atol=1e-34)
            check(found[1], [0, 0, INF, 3e4, NAN], rung, atol=1e-34)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_compiled_activations_have_their_limits(name, dtype, device):
    x = far(dtype, device).requires_grad_()
    y = rl.compile(lambda x: getattr(rl, name)(x) * 2)(x)
    y.backward(rl.ones(*y.shape, dtype=dtype, device=device))
    check(y.detach(), [0, 0, INF, 2e4, NAN], "value")
    check(x.grad, [0, 0, 2, 2, NAN], "slope", atol=1e-34)


@pytest.mark.parametrize("x", [-8.0, -5.0, -1.0, 1e-3, 3.0])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gelu_keeps_its_digits_where_it_is_small(x, dtype, device):
    expected = x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    assert x != -8 or expected == pytest.approx(-3.1e-21, rel=0.02)
    for rung in rungs_of("gelu", device):
        full = rl.full((64,), x, dtype=dtype, device=device)
        found = ran(lambda rung, full=full: rl.gelu(full, variant=rung), rung)
        if found is not None:
            assert_close(found, np.full(64, expected), rtol=1e-5 if dtype == "float32" else 1e-12, name=rung)


@pytest.mark.parametrize("dtype", FLOATING)
def test_other_functions_have_their_limits(dtype, device):
    x = far(dtype, device)
    limits = {
        "sigmoid": [0, 0, 1, 1, NAN],
        "tanh": [-1, -1, 1, 1, NAN],
        "relu": [0, 0, INF, 1e4, NAN],
        "exp": [0, 0, INF, INF, NAN],
    }
    for name, expected in limits.items():
        for rung in rungs_of(name, device):
            check(ran(lambda rung, name=name: getattr(rl, name)(x, variant=rung), rung), expected, f"{name} {rung}")


@pytest.mark.parametrize("eps", [-2.0, -1e-30, NAN, INF])
def test_an_eps_that_no_norm_can_use_is_refused(eps, device):
    x, weight = rl.ones(2, 3, 4, device=device), rl.ones(4, device=device)
    table = rl.ones(3, 4, device=device)
    calls = {
        "rms_norm": lambda: rl.rms_norm(x, eps=eps),
        "layer_norm": lambda: rl.layer_norm(x, eps=eps),
        "rms_norm_add": lambda: rl.rms_norm_add(x, x, weight, eps=eps),
        "rms_norm_rope": lambda: rl.rms_norm_rope(x, weight, table, table, eps=eps),
        "rms_norm_backward": lambda: rl.rms_norm_backward(x, x, eps=eps),
        "layer_norm_backward": lambda: rl.layer_norm_backward(x, x, eps=eps),
        "adamw": lambda: rl.adamw([weight], [weight], [weight], [weight], step=1, eps=eps),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"\[{name}\] eps: expected a number that is finite and not negative"):
            call()


@pytest.mark.parametrize("number", [2.0**63 - 1024, -(2.0**63)])
def test_a_float_that_int64_holds_is_written_as_it_is(number, device):
    x = rl.zeros(3, dtype="int64", device=device)
    assert x.fill_(number).tolist() == [int(number)] * 3
    assert (x * 0).masked_fill(x == int(number), number).tolist() == [int(number)] * 3


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_every_number_that_int64_holds_is_taken(number, device):
    x = rl.zeros(3, dtype="int64", device=device)
    assert (x + number).tolist() == [int(number)] * 3
    assert (x == number).tolist() == [False] * 3
    assert x.fill_(number).tolist() == [int(number)] * 3
    assert rl.where(rl.full((3,), True, dtype="bool", device=device), number, x * 0).tolist() == [int(number)] * 3
    assert (x * 0).masked_fill(x == number, number).tolist() == [int(number)] * 3
    assert (x * 0).clamp(min=number, max=number).tolist() == [int(number)] * 3


@pytest.mark.parametrize("number", [2.0**63, -(2.0**63) - 2048, 2**63, -(2**63) - 1, 2**70, INF, NAN])
def test_a_number_beyond_int64_is_refused(number):
    x = rl.zeros(3, dtype="int64")
    calls = [lambda: x.fill_(number), lambda: x.masked_fill(x == 0, number), lambda: x.__setitem__(0, number)]
    if isinstance(number, int):  # a float meets integers in float32
        calls += [lambda: x + number, lambda: x < number, lambda: x.clamp(max=number)]
    for call in calls:
        with pytest.raises(ValueError, match=r"number: expected one that int64 can hold, got "):
            call()
