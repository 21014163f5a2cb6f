"""adamw, which is in place, unlike ops with a spec: every rung against the formula, cost, launches and errors."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

SIZES = [1, 17, 4095, 4097, 16385, 40000]
ROUNDINGS = 24  # of p: fourteen operations, of which none cancels but the update itself


def reference(p, g, m, v, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=1e-2, decay="before"):
    """The step as the paper writes it, without decay if decay comes after the update."""
    if decay == "before":
        p = p - lr * weight_decay * p
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    p = p - lr * (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + eps)
    if decay == "after":
        p = p - lr * weight_decay * p
    return p, m, v


def drawn(sizes, dtype, device):
    """p, g, m and v for each size; v is that of gradients, so not negative."""
    rng = np.random.default_rng(0)
    made = [[rng.standard_normal(n) for n in sizes] for _ in "pgm"] + [[rng.random(n) + 0.01 for n in sizes]]
    return [[rl.tensor(x, dtype=dtype, device=device) for x in arrays] for arrays in made]


OPTIONS = [
    {"step": 1},
    {"step": 7, "lr": 0.1, "weight_decay": 0.5},
    {"step": 7, "lr": 0.1, "weight_decay": 0.5, "decay": "after"},
    {"step": 1000, "lr": 0.03, "beta1": 0.5, "beta2": 0.8, "eps": 1e-2, "weight_decay": 0.0},
    {"step": 2, "lr": 0.0, "beta1": 0.0, "beta2": 0.0, "eps": 1e-3},
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_moment_without_memory_is_the_gradient_however_small(dtype, device):
    for variant in [*(rung.name for rung in rl.variants("adamw", device)), ""]:
        p, g, m, v = ([rl.full((70,), x, dtype=dtype, device=device)] for x in (1.0, 1e-20, 1e5, 1.0))
        rl.adamw(p, g, m, v, step=2, lr=0.1, beta1=0.0, beta2=0.0, eps=1e-30, weight_decay=0.0, variant=variant)
        assert m[0].tolist() == g[0].tolist(), variant
        assert_close(p[0], np.full(70, 0.9), atol=1e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_every_rung_is_the_formula(options, dtype, device):
    for variant in [*(rung.name for rung in rl.variants("adamw", device)), ""]:
        tensors = drawn(SIZES, dtype, device)
        exact = [[to_float64(x) for x in of] for of in tensors]
        rl.adamw(*tensors, **options, variant=variant)
        for i, size in enumerate(SIZES):
            p, g, m, v = (of[i] for of in exact)
            right = reference(p, g, m, v, **options)
            # The composed rule rounds what passes between its ops to the dtype.
            u = unit_roundoff(dtype) * (ROUNDINGS if variant == "v0_composed" or dtype in ("float64", "float32") else 2)
            u += ROUNDINGS * unit_roundoff("float32" if dtype != "float64" else dtype)
            update = np.abs(right[0] - p) + np.abs(p) + options.get("lr", 1e-3)
            terms = (update, np.abs(m) + np.abs(g), v + g * g)
            written = (tensors[k][i] for k in (0, 2, 3))
            for name, found, expected, scale in zip("pmv", written, right, terms, strict=True):
                assert_close(found, expected, atol=u * scale, name=f"{name} of {size} by {variant or 'default'}")
            assert_close(tensors[1][i], g, atol=0, name="the gradient")


def test_all_instruction_sets_compute_alike(instruction_sets):
    for isa in instruction_sets():
        tensors = drawn(SIZES, "float32", "cpu")
        exact = [[to_float64(x) for x in of] for of in tensors]
        rl.adamw(*tensors, step=3, lr=0.01)
        for i, size in enumerate(SIZES):
            right = reference(*(of[i] for of in exact), step=3, lr=0.01)[0]
            u = ROUNDINGS * unit_roundoff("float32")  # of p, and of an update, which is a few times lr
            assert_close(tensors[0][i], right, rtol=u, atol=u * 0.1, name=f"{size} {isa}")


def test_twenty_eight_bytes_a_parameter():
    params, grads, means, squares = drawn([1000, 24], "float32", "cpu")
    with rl.count() as c:
        rl.adamw(params, grads, means, squares, step=1)
    assert (c.bytes_read + c.bytes_written, c.flops, c.ops) == (28 * 1024, 14 * 1024, 1)
    with rl.count() as c:
        rl.adamw(params, grads, means, squares, step=1, weight_decay=0.0)
    assert c.flops == 13 * 1024
    assert c.allocations == 0


@pytest.mark.parametrize(
    ("device", "variant", "launches"),
    [
        ("meta:cpu", "", 3),
        ("meta:H200", "", 3),
        ("meta:H200", "v1_fused", 130),
        ("meta:H200", "v0_composed", 14 * 130),
        ("meta:cpu", "v0_composed", 14 * 130),
    ],
)
def test_launches_for_130_tensors(device, variant, launches):
    tensors = [[rl.empty(33, device=device) for _ in range(130)] for _ in range(4)]
    with rl.count() as c:
        rl.adamw(*tensors, step=1, variant=variant)
    assert c.launches == launches


def test_more_tensors_than_a_launch_takes(device):
    """Each of 150 has its own numbers, and none is left out."""
    tensors = [[rl.full((5,), float(i + k), device=device) for i in range(150)] for k in range(1, 5)]
    rl.adamw(*tensors, step=1, lr=0.5, weight_decay=0.0)
    for i in range(150):
        right = reference(*(np.full(5, float(i + k)) for k in range(1, 5)), step=1, lr=0.5, weight_decay=0.0)
        for found, expected in zip((tensors[k][i] for k in (0, 2, 3)), right, strict=True):
            assert_close(found, expected, rtol=ROUNDINGS * unit_roundoff("float32"), name=f"tensor {i}")


def test_views_and_empty_tensors(device):
    room = rl.ones(4, 6, device=device)
    p, rest = room[:, 1:3], rl.ones(0, device=device)
    like = [rl.ones(4, 2, device=device), rl.zeros(4, 2, device=device), rl.zeros(4, 2, device=device)]
    rl.adamw([rest, p], [rest, like[0]], [rest, like[1]], [rest, like[2]], step=1, lr=0.25, weight_decay=0.0)
    assert_close(p, np.full((4, 2), 0.75), rtol=1e-6)
    assert (room[:, [0, 3, 4, 5]].cpu().numpy() == 1).all()
    with pytest.raises(ValueError, match="v1_fused does not accept these operands"):
        rl.adamw([p], [like[0]], [like[1]], [like[2]], step=1, variant="v1_fused")
    rl.adamw([], [], [], [], step=1)


def test_a_write_is_noticed_by_graphs_that_saved_the_parameter():
    p = rl.ones(3, requires_grad=True)
    y = (p * p).sum()
    with rl.no_grad():
        rl.adamw([p], [rl.ones(3)], [rl.zeros(3)], [rl.zeros(3)], step=1)
    with pytest.raises(ValueError, match="changed in place"):
        y.backward()


X = rl.ones(3)


@pytest.mark.parametrize(
    ("tensors", "options", "says"),
    [
        (([X], [X, X], [X], [X]), {}, "grads: expected 1 tensors, got 2"),
        (([X], [X], [rl.ones(4)], [X]), {}, r"exp_avgs\[0\]: expected \(3,\), got \(4,\)"),
        (([X], [X], [X], [X.double()]), {}, "operands are float32 and float64"),
        (([X, X.double()], [X, X.double()], [X, X], [X, X]), {}, "operands are float32 and float64"),
        (([rl.arange(3)], [X], [X], [X]), {}, "params: expected a floating-point dtype, got int64"),
        (([X], [X], [X], [X]), {"step": 0}, "step: expected >= 1, got 0"),
        (([X], [X], [X], [X]), {"lr": float("nan")}, "lr: expected a number that is finite and not negative, got"),
        (([X], [X], [X], [X]), {"beta2": 1.0}, "beta2: expected a number that is at least 0 and below 1, got 1"),
        (([X], [X], [X], [X]), {"decay": "never"}, r"decay: expected \"before\" or \"after\", got \"never\""),
        (([rl.ones(3, requires_grad=True)], [X], [X], [X]), {}, "write under rl.no_grad"),
    ],
)
def test_what_does_not_fit_is_one_sentence(tensors, options, says):
    with pytest.raises(ValueError, match=says):
        rl.adamw(*tensors, **({"step": 1} | options))
    assert X.tolist() == [1.0, 1.0, 1.0]


def test_a_rung_that_a_later_tensor_does_not_suit_is_refused_before_the_first_launch():
    device = rl.meta("H200")
    tensors = [[rl.empty(8, device=device) for _ in range(64)] + [rl.empty(9, device=device)[1:]] for _ in range(4)]
    with rl.count() as count, pytest.raises(ValueError, match="v2_many does not accept"):
        rl.adamw(*tensors, step=1, lr=1e-3, variant="v2_many")
    assert count.launches == 0
