"""rl.cost: what the counters of the same call show, for tensors, shapes and tensors without memory."""

import ml_dtypes
import numpy as np
import pytest
from ops.samples import SPECS, dtypes_of_ops, prepared, samples_of, tensors_of

import rooflab as rl
from rooflab.cost.stand_ins import stand_ins


def counted(call):
    with rl.count() as c:
        call()
    return rl.Cost(macs=c.macs, flops=c.flops, bytes_read=c.bytes_read, bytes_written=c.bytes_written)


@pytest.mark.parametrize(("name", "dtype"), dtypes_of_ops())
def test_cost_is_what_the_counters_show(name, dtype):
    spec = SPECS[name]
    for sample in samples_of(name):
        real, meta = (tensors_of(sample, dtype, device) for device in ("cpu", "meta"))
        operands = prepared(spec, real, sample)
        expected = counted(lambda: spec.fn(*operands, **sample.kwargs))  # noqa: B023
        assert rl.cost.of(name, *real, dtype=dtype, **sample.kwargs) == expected, sample.label
        assert rl.cost.of(name, *meta, dtype=dtype, **sample.kwargs) == expected, sample.label
        masked = name.startswith("attention") and len(sample.args) > (3 if name == "attention" else 4)
        if not (masked and sample.args[-1].dtype == bool):
            shapes = [a.shape if isinstance(a, np.ndarray) else a for a in sample.args]
            # Shapes of indices stand for int64.
            narrower = sum(4 * a.size for a in sample.args if isinstance(a, np.ndarray) and a.dtype == np.int32)
            more = rl.Cost(bytes_read=narrower if expected.bytes_written else 0)
            assert rl.cost.of(name, *shapes, dtype=dtype, **sample.kwargs) == expected + more, sample.label


X, D = (10, 100), (100,)


@pytest.mark.parametrize(
    ("words", "name", "operands", "options", "flops"),
    [
        ("elementwise op is 1 FLOP an element", "exp", (X,), {}, 1000),
        ("casts, copies, comparisons and `where`: none", "eq", (X, X), {}, 0),
        ("clamp: 1 for each bound", "clamp", (X, 0.0), {}, 1000),
        ("clamp: 1 for each bound", "clamp", (X, 0.0, 1.0), {}, 2000),
        ("fused gelu 8, and 1 more if gelu or silu is gated", "geglu", (X, X), {}, 9000),
        ("1 more if gelu or silu is gated", "swiglu", (X, X), {}, 2000),
        ("softmax and log_softmax 5", "log_softmax", (X,), {}, 5000),
        ("rms_norm 3 and 1 for a weight (2 if it is zero-centered)", "rms_norm", (X, D), {}, 4000),
        ("rms_norm 3 and 1 for a weight (2 if it is zero-centered)", "rms_norm", (X, D), {"zero_centered": True}, 5000),
        ("layer_norm 5 and 1 each for weight and bias", "layer_norm", (X, D, D), {}, 7000),
        ("rope 3", "rope", ((1, 2, 4, 8), (4, 8), (4, 8)), {}, 192),
        ("running sum is 1 per input element", "cumsum", (X, 1), {}, 1000),
        ("but var, std and logsumexp 4", "var", (X,), {}, 4000),
        ("but var, std and logsumexp 4", "std", (X,), {}, 4000),
        ("but var, std and logsumexp 4", "logsumexp", (X,), {}, 4000),
        ("cross_entropy is 4 per logit and 3 per token", "cross_entropy", (X, (10,)), {"reduction": "none"}, 4030),
        ("or 4 where the losses are added up", "cross_entropy", (X, (10,)), {}, 4040),
        ("moving, choosing and sorting: none", "sort", (X,), {}, 0),
        ("Backward: relu 1", "relu_backward", (X, X), {}, 1000),
        ("sigmoid 3", "sigmoid_backward", (X, X), {}, 3000),
        ("tanh 4", "tanh_backward", (X, X), {}, 4000),
        ("silu 6", "silu_backward", (X, X), {}, 6000),
        ("gelu 13, and 3 more if either is gated", "geglu_backward", (X, X, X), {}, 16000),
        ("softmax and log_softmax 4", "log_softmax_backward", (X, X), {}, 4000),
    ],
)
def test_what_the_documentation_says_is_what_counts(words, name, operands, options, flops):
    assert words in " ".join((rl.cost.__doc__ or "").split())
    assert rl.cost.of(name, *operands, **options).flops == flops


def test_what_is_read_once_costs_once():
    x, row = rl.ones(8, 64), rl.ones(1, 64)
    for op, operands in (("mul", (x, x)), ("add", (x, row.expand(8, 64))), ("matmul", (x, rl.ones(64, 3)))):
        assert rl.cost.of(op, *operands) == counted(lambda: getattr(rl, op)(*operands))  # noqa: B023
    assert rl.cost.mul(x, x).bytes_read == x.nbytes
    assert rl.cost.mul((8, 64), (8, 64)).bytes_read == 2 * x.nbytes


def views():
    """Pairs of tensors that share memory in many ways, or whose elements are not adjacent."""
    x, cube, line = rl.ones(6, 8), rl.ones(4, 6, 10), rl.ones(1000)
    yield "matmul", (x, x.T)
    yield "matmul", (x[:, 1:5], x[1:5].T[:, :4].T)
    yield "softmax", (x.T,)
    yield "rms_norm", (x.T, rl.ones(6))
    yield "add", (line, line[:])
    yield "add", (line[:500], line[250:750])
    yield "add", (line[:999:3], line[1::3])
    yield "add", (line[:100], line[500:600])
    yield "mul", (x[::2], x[1::2])
    yield "mul", (x[:, ::3], x[:, 1:4])
    yield "mul", (cube[:, :5:2, 3], cube[:, 1:4, 0].T[:1].T)
    yield "mul", (cube[1, :, 2:9:3], cube[::2, 1:4, 3][:1].expand(6, 3))
    yield "add", (cube.permute(2, 0, 1), cube.permute(2, 0, 1)[1:2])
    yield "add", (cube[:, 1:4], cube[:, 2:5])
    yield "exp", (cube[::3, ::2, ::4].permute(1, 2, 0),)
    yield "add", (x[0].reshape(1, 8, 1).expand(3, 8, 2), x[0, :1])
    yield "sum", (cube[:, :0],)
    yield "cat", ([x, x.T.T],)


@pytest.mark.parametrize(("op", "operands"), list(views()))
def test_views_cost_what_the_counters_show(op, operands):
    real = counted(lambda: getattr(rl, op)(*operands))
    assert rl.cost.of(op, *operands) == real
    there = stand_ins([x for x in operands if isinstance(x, rl.Tensor)])
    for x, y in zip(operands, there, strict=False):
        moving = [dim for dim, size in enumerate(x.shape) if size > 1 and y.numel()]
        assert y.shape == x.shape and [y.strides[dim] for dim in moving] == [x.strides[dim] for dim in moving]


@pytest.mark.parametrize("strides", [(-4,), (8, 12)])
def test_strides_that_no_slice_of_a_tensor_has_are_to_be_counted(strides):
    memory = np.zeros(20, np.float32)
    x = rl.from_numpy(np.lib.stride_tricks.as_strided(memory[9:], (3,) * len(strides), strides))
    with pytest.raises(ValueError, match=r"slices with positive steps have; count the call with rl.count\(\)"):
        rl.cost.exp(x)


def test_dtypes_of_masks_and_results_count():
    n = 1000
    assert rl.cost.sum((n,), dtype="int32").bytes_written == 8
    assert rl.cost.cast((n,), dtype="float64").bytes_written == 4 * n
    assert rl.cost.where((n,), (n,), (n,), dtype="float64").bytes_read == 17 * n
    assert rl.cost.eq((n,), (n,)).bytes_written == n
    mask = rl.empty(40, 70, dtype="bool", device="meta")
    q, k = (2, 4, 40, 64), (2, 4, 70, 64)
    assert rl.cost.attention(q, k, k, mask).bytes_read == rl.cost.attention(q, k, k).bytes_read + 40 * 70
    assert rl.cost.gelu(rl.ones(n, requires_grad=True)).flops == 8 * n


def test_operands_are_written_as_for_the_op():
    assert rl.cost.cat([(2, 3), (4, 3)]) == rl.cost.cat((2, 3), (4, 3)) == rl.cost.cat([(2, 3), (4, 3)], 0)
    assert rl.cost.cat([(2, 3), (2, 4)], 1) == rl.cost.cat([(2, 3), (2, 4)], dim=1)
    assert rl.cost.sum((2, 3, 4), [0, 1]).bytes_written == 16
    x = rl.ones(2, 3)
    assert rl.cost.cat([x, x], dim=1) == counted(lambda: rl.cat([x, x], dim=1))
    for dtype in ("int64", "bool", "float32"):
        x = rl.ones(5, dtype=dtype)
        assert rl.cost.cast((5,), "half", dtype=dtype) == rl.cost.cast(x, "half") == counted(lambda: rl.cast(x, "half"))  # noqa: B023


@pytest.mark.parametrize("dtype", ["bf16", "bfloat16", rl.bfloat16, ml_dtypes.bfloat16])
def test_a_dtype_has_many_names(dtype):
    assert rl.cost.exp((10,), dtype=dtype).bytes == 40


def test_what_has_no_cost_of_its_own_is_to_be_counted():
    with pytest.raises(AttributeError, match=r"no attribute 'linear'; count a call .* with rl\.count\(\)$"):
        rl.cost.linear((2, 3), (4, 3))
    with pytest.raises(AttributeError, match=r"no attribute 'lineer'$"):
        rl.cost.lineer((2, 3), (4, 3))


def test_costs_add_up_and_compare():
    one = rl.Cost(macs=2**62, flops=1)
    assert one != 1 and (one == one) is True and one + rl.Cost(flops=1) == rl.Cost(macs=2**62, flops=2)
    for too_much in (lambda: one * 2, lambda: 4 * one, lambda: one + one):
        with pytest.raises(ValueError, match=r"\[Cost\] expected counts below 2\^63"):
            too_much()
    with pytest.raises(TypeError, match="unsupported operand"):
        one + 1


def test_sizes_beyond_32_bits_and_no_memory(no_garbage):
    before = rl.memory.allocated()
    assert rl.cost.exp((2**20, 2**20)).flops == 2**40
    assert rl.memory.allocated() == before and rl.memory.allocated("meta") == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: rl.cost.matmul((2, 3), (4, 5)),
        lambda: rl.cost.add((2, 3), (4, 3)),
        lambda: rl.cost.softmax((2, 3), dim=2),
        lambda: rl.cost.sum((2, 3), dim=(0, 0)),
        lambda: rl.cost.attention((1, 3, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8)),
        lambda: rl.cost.rms_norm((4, 8), (7,)),
        lambda: rl.cost.exp((-1, 2)),
        lambda: rl.cost.max((3, 0), dim=1),
        lambda: rl.cost.gelu((2, 3), dtype="int32"),
        lambda: rl.cost.exp((2, 3), dtype="int8"),
        lambda: rl.cost.gelu(rl.ones(3, dtype="int32")),
    ],
)
def test_what_the_op_refuses_has_no_cost(call):
    with pytest.raises(ValueError, match=r"^\["):
        call()
