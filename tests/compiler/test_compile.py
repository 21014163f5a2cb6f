"""rl.compile: the same numbers as the function, one recording per key, and fallbacks with a reason."""

import threading
import warnings
from collections import namedtuple

import numpy as np
import pytest
from compiler.functions import check_same, counted, gelu_of_eight, swish_with_bias

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns

FLOATING = ("float64", "float32", "float16", "bfloat16")
RUNGS = ("v0_reference", "v1_blocks")


# --- the same numbers ---


@pytest.mark.parametrize("variant", RUNGS)
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (7, 5), (3, 1, 65), (40, 1031)])
def test_same_numbers(shape, dtype, variant):
    x = (3 * rl.randn(*shape)).to(dtype)
    bias = rl.rand(*shape[-1:]).to(dtype) + 1
    check_same(lambda x: (x * 2 + 1) * 0.5, x, dtype=dtype, variant=variant)
    check_same(lambda x, b: rl.where(x * 2 > b, rl.exp(rl.minimum(x, 1.0)), b / 3), x, bias, dtype=dtype)
    wide = np.float64
    sum_of = to_float64(x).astype(wide) * 1.5 + to_float64(bias)
    y, kept = rl.compile(swish_with_bias, variant=variant)(x, bias)
    exact = sum_of / (1 + np.exp(-sum_of))
    assert_close(y, exact, rtol=8 * unit_roundoff(dtype), atol=8 * unit_roundoff("float32"))
    assert_close(
        kept, np.where(sum_of > 0, sum_of, 0), rtol=4 * unit_roundoff(dtype), atol=4 * unit_roundoff("float32")
    )


@pytest.mark.parametrize("variant", RUNGS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_integers_and_bools(dtype, variant):
    a, b = (rl.randint(0, 2 if dtype == "bool" else 1000, (33, 70)).to(dtype) for _ in range(2))

    def bits(a, b):
        return (a & b) | ~(a ^ b), a == b

    check_same(bits, a, b, variant=variant)
    if dtype != "bool":
        check_same(lambda a, b: (a * 3 - b) // 7 + a % 5, a, b, variant=variant)
        check_same(lambda a, b: (a * 1000003 * 1000003 + b, (a / 3).to("int32")), a, b, variant=variant)


@pytest.mark.parametrize("variant", RUNGS)
def test_casts_in_a_chain_round(variant):
    x = rl.randn(1000)
    rounded = rl.compile(lambda x: (x * 3).to("bfloat16").to("float32") + 0.0, variant=variant)(x)
    assert rounded.tolist() == (x * 3).to("bfloat16").to("float32").tolist()
    assert rounded.tolist() != (x * 3).tolist()
    wide = rl.randn(1000, dtype="float64") * 1e5
    for dtype in ("float16", "bfloat16", "float32", "int32", "bool"):
        check_same(lambda x, dtype=dtype: (x * 3).to(dtype), wide, variant=variant)


def test_values_inside_a_chain_are_not_rounded_to_16_bits():
    x = rl.full(64, 1.0, dtype="bfloat16")

    def difference(x):
        return (x + 2.0**-10) - x

    assert difference(x).tolist() == [0.0] * 64
    assert rl.compile(difference)(x).tolist() == [2.0**-10] * 64


@pytest.mark.parametrize("variant", RUNGS)
def test_numbers_beside_a_tensor_are_compared_as_its_dtype_holds_them(variant):
    x = rl.full(4, 0.1, dtype="bfloat16")
    assert (x == 0.1).tolist() == [True] * 4
    check_same(lambda x: rl.where(x == 0.1, x * 2, 0.3), x, dtype="bfloat16", variant=variant)


@pytest.mark.parametrize("variant", RUNGS)
def test_specials(variant):
    x = rl.tensor([np.nan, np.inf, -np.inf, 0.0, -0.0, 88.0, -104.0, 1e-40])
    for function in (rl.gelu, rl.silu, rl.relu, rl.exp, lambda x: rl.maximum(x, 1.0), lambda x: x // 2, lambda x: x**3):
        check_same(lambda x, f=function: f(x) * 1.0, x, variant=variant)


@pytest.mark.parametrize("variant", RUNGS)
def test_views_and_broadcasts(variant):
    x = rl.randn(24, 60)

    def function(x, row, column):
        return (x.T[1:41:2, :20] * column + row).view(10, 40) * 2 - x[:10, 5:45]

    check_same(function, x, rl.randn(20), rl.randn(20, 1), variant=variant, atol=1e-6)
    check_same(lambda x: x.T.expand(3, 60, 24) * x.T + x.sum(), x, variant=variant)
    check_same(lambda x: x[::2] + x[1::2].T.T * 2, x.T, variant=variant)


def test_large_arrays_and_many_threads():
    x = rl.randn(3000, 2049)
    check_same(gelu_of_eight, x, steps=40)


def test_gelu_joins_a_chain():
    x = rl.randn(100, 33)
    c, y = counted(rl.compile(lambda x: rl.gelu(x + 1) * 2), x)
    assert (c.launches, c.flops) == (1, 10 * x.numel())
    assert_close(y, to_float64(rl.gelu(x + 1) * 2), rtol=1e-6, atol=1e-6)


# --- one recording per key ---


def recordings(function):
    """The function, and a list that grows by one whenever it runs as Python."""
    runs = []

    def noting(*args, **kwargs):
        runs.append(len(args))
        return function(*args, **kwargs)

    return rl.compile(noting), runs


def test_recorded_once_a_key():
    compiled, runs = recordings(lambda x, scale=1.0, mode=None: x * scale + 1)
    x = rl.randn(4, 6)
    compiled(x), compiled(x), compiled(rl.randn(4, 6))
    assert len(runs) == 1
    for i, (args, kwargs) in enumerate([
        ((rl.randn(4, 7),), {}),
        ((rl.randn(6, 4).T,), {}),
        ((x.to("float64"),), {}),
        ((x,), {"scale": 2.0}),
        ((x,), {"scale": 2}),
        ((x,), {"mode": "a"}),
        ((rl.randn(4, 6, requires_grad=True),), {}),
    ]):  # fmt: skip
        compiled(*args, **kwargs), compiled(*args, **kwargs)
        assert len(runs) == i + 2, (args, kwargs)
    assert compiled(x, 0.0).tolist() == compiled(x, -0.0).tolist() and len(runs) == 10
    assert_close(compiled(x, scale=2.0), to_float64(x * 2 + 1))


def test_arguments_that_share_memory_are_a_key_of_their_own():
    compiled, runs = recordings(lambda x, y: x * 2 + y)
    x = rl.randn(8)
    for a, b in ((x, rl.randn(8)), (x, x), (x[:4], x[4:]), (x[4:], x[:4])):
        assert_close(compiled(a, b), to_float64(a * 2 + b))
    assert len(runs) == 4


def test_nested_arguments_and_results():
    Pair = namedtuple("Pair", "first second")

    @rl.compile
    def step(state, pair, *, names):
        a, b = state["a"], state["inner"][0]
        return {"sum": a + b, names[0]: (pair.first, Pair(a * pair.second, None))}

    a, b, c = rl.randn(5), rl.randn(5), rl.randn(5)
    made = step({"a": a, "inner": [b]}, Pair(b, c), names=("out",))
    assert list(made) == ["sum", "out"] and made["out"][0] is b
    assert isinstance(made["out"][1], Pair) and made["out"][1].second is None
    assert made["out"][1].first.tolist() == (a * c).tolist() and made["sum"].tolist() == (a + b).tolist()


def test_as_a_decorator_of_functions_and_methods():
    class Layer:
        @rl.compile
        def forward(self, x):
            """Doubles."""
            return x * 2 + 1

    @rl.compile(variant="v0_reference")
    def double(x):
        """Doubles."""
        return x * 2 + 1

    x = rl.randn(3)
    c, y = counted(Layer().forward, x)
    assert c.launches == 1 and y.tolist() == double(x).tolist() == (x * 2 + 1).tolist()
    assert double.__name__ == "double" and double.__doc__ == Layer.forward.__doc__ == "Doubles."
    assert repr(double).startswith("compile(<function test_as_a_decorator")
    with pytest.raises(TypeError, match=r"\[compile\] expected a function, and no generator or async function, got 3"):
        rl.compile(3)
    with pytest.raises(TypeError, match="expected a function, and no generator"):
        rl.compile(lambda x: (yield x))
    with pytest.raises(
        ValueError, match=r"\[compile\] variant: expected one of v1_nvrtc, v0_reference, v1_blocks; got"
    ):
        rl.compile(double, variant="fastest")
    with pytest.raises(ValueError, match=r"\[fused\] variant: expected one of v1_blocks, v0_reference on cpu"):
        rl.compile(double.__wrapped__, variant="v1_nvrtc")(x)


def test_a_compiled_function_inside_of_another():
    inner = rl.compile(lambda x: x * 2 + 1)
    c, y = counted(rl.compile(lambda x: rl.exp(inner(x))), x := rl.randn(9))
    assert c.launches == 1 and y.tolist() == rl.exp(x * 2 + 1).tolist()


def test_results_are_new_each_time():
    compiled = rl.compile(lambda x: (x + 1, x.T, x))
    x = rl.randn(3, 4)
    first, view, same = compiled(x)
    again, *_ = compiled(x * 2)
    assert first.tolist() == (x + 1).tolist() and again.tolist() == (x * 2 + 1).tolist()
    assert same is x and view.shape == (4, 3)
    view[0, 0] = 7.0
    assert x[0, 0].item() == 7.0


def test_writes_into_own_tensors():
    def function(x):
        y = x * 2
        y += 1
        z = rl.zeros(*x.shape)
        z += y
        return z, y

    def own(x):
        y = x * 2
        y += 1
        y *= x
        return y

    def parts(x):
        y = x * 2
        before = y + 1
        y[0] = 1.0
        y[1:3] *= x[1:3]
        z = y * before
        y[4].copy_(z[4] + 1)
        return z, y, y + z

    def read_before(x, w):
        y = x * 2
        old = y[1:] + 1  # whose chain ends after y is written
        y[1] = 0.0
        return old * (x[1:] @ w), y

    check_same(read_before, rl.randn(5, 6), rl.randn(6, 6), atol=1e-6)
    check_same(own, rl.randn(5, 6))
    check_same(parts, rl.randn(5, 6), atol=1e-6)
    check_same(function, rl.randn(5, 6))


# --- falling back ---


def branch(x):
    return x * 2 if x.sum().item() > 0 else x


def outside(x):
    return x + OUTSIDE


OUTSIDE = rl.ones(3)


class Box:
    def __init__(self, x):
        self.tolist = x.tolist


def write_into(x):
    x += 1
    return x * 2


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (branch, r"\[numpy\] a tensor on meta:cpu has no values|\[to\]"),
        (lambda x: x + rl.rand(3), r"\[rand\] random numbers differ"),
        (outside, r"on meta:cpu and cpu.*a tensor from elsewhere must be passed too"),
        (lambda x: OUTSIDE * 2, r"neither an argument nor made"),
        (lambda x: x + rl.tensor([1.0, 2.0, 3.0], device=x.device), r"\[add\] operands are on meta:cpu and cpu"),
        (lambda x: Box(x * 2), r"\[compile\] a result of type Box may hold tensors"),
        (write_into, r"\[add\] writes into an argument"),
        (lambda x: rl.empty(3, device=x.device)[:2].copy_(x[:2]), r"whose rest no op has written"),
    ],
)
def test_falls_back_with_a_warning_that_says_why(function, reason):
    compiled = rl.compile(function)
    x = rl.tensor([1.0, 2.0, 3.0])
    with pytest.warns(UserWarning, match=rf"\[compile\] .* runs as it is written, op by op: .*({reason})") as noted:
        rl.manual_seed(1)
        found = compiled(x.clone())
    assert len(noted) == 1 and noted[0].filename == __file__
    rl.manual_seed(1)
    assert found.tolist() == function(x.clone()).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(x.clone()), compiled(rl.tensor([4.0, 5.0, 6.0]))


def test_arguments_that_cannot_be_a_key():
    with pytest.warns(UserWarning, match="an argument of type set cannot be compared"):
        assert rl.compile(lambda x, s: x * len(s))(rl.ones(2), {1, 2}).tolist() == [2.0, 2.0]
    with pytest.warns(UserWarning, match="expected tensors on one device, got no tensor"):
        assert rl.compile(lambda n: rl.ones(n))(2).tolist() == [1.0, 1.0]


def test_errors_of_the_function_are_its_own():
    compiled = rl.compile(lambda x, y: x @ y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"\[matmul\]"):
            compiled(rl.ones(2, 3), rl.ones(2, 3))


# --- beside the rest of the runtime ---


def test_in_a_graph():
    x, w = rl.randn(8, 8), rl.randn(8, 8)
    compiled = rl.compile(lambda x, w: rl.relu((x * 2 + 1) @ w) * 3)
    for warm in (True, False):
        if warm:
            compiled(x, w)
        graph = rl.Graph(device="cpu")
        with graph.capture():
            y = compiled(x, w)
        assert graph.launches == 3
        x.copy_(rl.randn(8, 8))
        graph.replay()
        assert_close(y, to_float64(rl.relu((x * 2 + 1) @ w) * 3), rtol=1e-5, atol=1e-5)
        compiled = rl.compile(compiled.__wrapped__)


def test_in_several_threads():
    compiled = rl.compile(gelu_of_eight)
    shapes = [(n, 7) for n in range(1, 25)]
    found = {}

    def work(part):
        for shape in shapes[part::2] + shapes:
            found[part, shape] = compiled(rl.full(shape, 0.5)).tolist()

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 4 * len(shapes)
    value = found[0, (1, 7)][0][0]
    assert all(row == [value] * 7 for rows in found.values() for row in rows)


def test_recording_leaves_nothing_behind():
    x = rl.randn(128, 128)
    held = rl.memory.allocated()
    with rl.count() as c:
        result = rl.compile(lambda x: rl.softmax(x * 2, -1) + 1)(x)
    assert rl.memory.allocated() == held + result.nbytes
    assert c.peak_bytes <= 2 * x.nbytes


@pytest.mark.gpu
@pytest.mark.parametrize("variant", ["v0_reference", "v1_nvrtc"])
@pytest.mark.parametrize("dtype", FLOATING)
def test_on_the_gpu(dtype, variant):
    for shape in ((), (0, 3), (7, 5), (40, 1031), (300, 1024)):
        x = (3 * rl.randn(*shape)).to(dtype)
        bias = rl.rand(*shape[-1:]).to(dtype) + 1
        c, found = counted(rl.compile(swish_with_bias, variant=variant), x.to("cuda"), bias.to("cuda"))
        assert c.launches == (x.numel() > 0)
        total = to_float64(x) * 1.5 + to_float64(bias)
        assert_close(found[0], total / (1 + np.exp(-total)), rtol=8 * unit_roundoff(dtype), atol=1e-6)
        assert_close(found[1], np.where(total > 0, total, 0), rtol=4 * unit_roundoff(dtype), atol=1e-6)
        check_same(lambda x, b: x.T * 2 + 1, x.to("cuda"), bias.to("cuda"), dtype=dtype, variant=variant)


@pytest.mark.gpu
def test_on_the_gpu_in_a_graph_and_on_views():
    x = rl.randn(64, 96, device="cuda")
    compiled = rl.compile(lambda x: (x.T[::2, 1:] * 2, x.to("int32") // 3, (x > 0) & (x < 1)))
    expected = compiled.__wrapped__(x)
    for y, wanted in zip(compiled(x), expected, strict=True):
        assert_close(y, to_float64(wanted))
    graph = rl.Graph()
    with graph.capture():
        results = compiled(x)
    graph.replay()
    for y, wanted in zip(results, expected, strict=True):
        assert_close(y, to_float64(wanted))
