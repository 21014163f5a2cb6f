"""The elementwise family: arithmetic, functions, comparisons, where, casts and copies."""

from __future__ import annotations

import functools

import numpy as np

import rooflab as rl

from . import INTEGER, OpSpec, Sample, Turned, accumulator_roundoff, itemsize, unit_roundoff
from ._odd import odd_rows
from ._tiles import ELEMENTWISE, around, tile

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf)
# The range in which each function's result fits float16, where it is not the default.
RANGES = {
    "exp": (-20, 10),
    "pow": (0.1, 4),
    "div": (0.25, 150),
    "log": (1e-3, 6e4),
    "log2": (1e-3, 6e4),
    "log10": (1e-3, 6e4),
    "sqrt": (1e-3, 6e4),
    "rsqrt": (1e-3, 6e4),
    "relu_backward": (-1.5, 1.5),
    "tanh_backward": (-1.5, 1.5),
    "sigmoid_backward": (-1.5, 1.5),
}
SMALLEST = {"float64": 2.0**-1022, "float32": 2.0**-120, "float16": 2.0**-24, "bfloat16": 2.0**-120}


def numbers(rng: np.random.Generator, name: str, shape: tuple[int, ...], *, special: bool = True) -> np.ndarray:
    """Numbers the op takes, of all magnitudes down to its range's, with zeros, infinities and NaN strewn in."""
    low, high = RANGES.get(name, (-150, 150))
    x = rng.uniform(low, high, shape)
    x = np.where(rng.random(shape) < 0.5, x, np.clip(rng.standard_normal(shape), low, high))
    return np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), x) if special else x


def unary_samples(rng, name, special=True):
    for shape in ((37, 130), (3, 1, 65), (1,), (), (0, 3)):
        label = "x".join(map(str, shape)) or "scalar"
        yield Sample(label, (numbers(rng, name, shape, special=special),))


def binary_samples(rng, name, special=True):
    draw = functools.partial(numbers, rng, name, special=special)
    for a, b in (((37, 130), (37, 130)), ((33, 64), (64,)), ((2, 3, 1, 65), (4, 1)), ((1,), (1,)), ((0, 3), (3,))):
        yield Sample(f"{'x'.join(map(str, a))}_{'x'.join(map(str, b))}", (draw(a), draw(b)))
    if special:
        ties = rng.integers(0, 3, (2, 17, 19)).astype(np.float64)
        yield Sample("ties", (ties[0], ties[1]))
    for number in (2, 3, 0.5):
        yield Sample(f"number_{number}", (draw((17, 31)), number))
    yield Sample("number_first", (2.5, draw((17, 31))))


def unary_tails(rng, name):
    """Sizes around a block and around what is worth a thread, and blocks that end within a row or a column."""
    for n in around(tile(ELEMENTWISE, "kBlock"), tile(ELEMENTWISE, "kParallelGrain")):
        yield Sample(f"{n}", (numbers(rng, name, (n,)),))
    yield Sample("rows", (numbers(rng, name, (3, tile(ELEMENTWISE, "kBlock") + 1)),))


def binary_tails(rng, name):
    for sample in unary_tails(rng, name):
        (x,) = sample.args
        yield Sample(sample.label, (x, numbers(rng, name, x.shape)))
        yield Sample(f"{sample.label} beside a row", (x, numbers(rng, name, x.shape[-1:])))


def gated_tails(rng, name):
    return finite_b(binary_tails(rng, name))


def quotient_samples(rng, name, special=True):
    """As binary_samples, of both signs; no divisor is so small that the quotient leaves float16."""
    for sample in binary_samples(rng, name, special):
        a, b = sample.args
        if isinstance(b, np.ndarray):
            b = np.where(np.isfinite(b) & (b != 0), np.copysign(np.clip(np.abs(b), 0.53, None), b), b)
        yield Sample(sample.label, (a, b), sample.kwargs)
    yield Sample("number_negative", (numbers(rng, name, (17, 31), special=special), -0.75))


def finite_b(samples):
    """Samples without infinities in b, because a gate that underflows to 0 would make them NaN."""
    for sample in samples:
        a, b = sample.args
        yield Sample(sample.label, (a, np.where(np.isinf(b), 99.0, b) if isinstance(b, np.ndarray) else b))


def gated_samples(rng, name, special=True):
    return finite_b(binary_samples(rng, name, special))


def bit_samples(rng, name, arity):
    for sample in binary_samples(rng, name, special=False):
        operands = sample.args[:arity]
        if all(isinstance(x, np.ndarray) for x in operands):
            yield Sample(sample.label, tuple(np.round(x * 1e6) for x in operands))
    if arity == 2:
        yield Sample("number", (np.arange(-20.0, 20.0), 6))
        yield Sample("number_first", (-3, np.arange(-20.0, 20.0)))


def where_samples(rng, name, special=True):
    draw = functools.partial(numbers, rng, name, special=special)
    yield Sample("37x130", (rng.random((37, 130)) < 0.5, draw((37, 130)), draw((37, 130))))
    yield Sample("broadcast", (rng.random((5, 1, 64)) < 0.5, draw((64,)), draw((3, 1))))
    yield Sample("number", (rng.random((33, 65)) < 0.5, draw((33, 65)), -1.5))
    yield Sample("number_first", (rng.random(7) < 0.5, 2.0, draw((33, 7))))
    yield Sample("0x3", (rng.random((0, 3)) < 0.5, draw((0, 3)), draw((3,))))
    yield Sample("beside a row", (rng.random((33, 65)) < 0.5, draw((33, 65)), draw((65,))))


def lerp_samples(rng, name, special=True):
    draw = functools.partial(numbers, rng, name, special=special)
    for weight in (0, 0.25, -0.75, 1):
        yield Sample(f"37x130 {weight}", (draw((37, 130)), draw((37, 130)), weight))
    share = rng.uniform(-0.5, 1.5, (33, 64))
    yield Sample("a weight each", (draw((33, 64)), draw((33, 64)), share))
    yield Sample("broadcast", (draw((5, 1, 64)), draw((64,)), share[:3, :1]))
    yield Sample("0x3", (draw((0, 3)), draw((3,)), 0.5))


def lerp_tails(rng, name):
    for sample in binary_tails(rng, name):
        yield Sample(sample.label, (*sample.args, 0.25))


def lerp(start, end, weight):
    is_near = np.abs(weight) < 0.5
    return np.where(is_near, start, end) + np.where(is_near, weight, np.subtract(weight, 1)) * (end - start)


def lerp_rounding(dtype: str, sample: Sample) -> tuple[float, np.ndarray]:
    """The ends are rounded with their own size, which the result may lack."""
    rtol, atol = rounding(4, dtype, sample)
    size = sum(np.abs(np.nan_to_num(end, posinf=0, neginf=0)) for end in sample.args[:2])
    shape = np.broadcast_shapes(*map(shape_of, sample.args))
    return rtol, np.broadcast_to(atol + 4 * accumulator_roundoff(dtype) * size, shape)


def clamp_samples(rng, name, special=True):
    for sample in unary_samples(rng, name, special):
        for low, high in ((-1.5, 2.0), (3, -3)):
            yield Sample(f"{sample.label} {low} {high}", (*sample.args, low, high))


def clamp_tails(rng, name):
    for sample in unary_tails(rng, name):
        yield Sample(sample.label, (*sample.args, -0.5, 0.5))


def nan_to_num_samples(rng, name, special=True):
    for sample in unary_samples(rng, name, special):
        for figures in ((-3.0, 5.0, 7.0), (0.0, 2.5, -2.5)):
            yield Sample(f"{sample.label} {figures[0]}", (*sample.args, *figures))


def nan_to_num_tails(rng, name):
    for sample in unary_tails(rng, name):
        yield Sample(sample.label, (*sample.args, -3.0, 5.0, 7.0))


def nan_to_num(x, nan, posinf, neginf):
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def shape_of(operand) -> tuple[int, ...]:
    return operand.shape if isinstance(operand, np.ndarray) else ()


def cost(flops: int, result_size, condition: bool, sample: Sample, dtype: str) -> rl.Cost:
    """`flops` an element of the result; each operand read once, Python numbers never."""
    size = itemsize(dtype)
    count = int(np.prod(np.broadcast_shapes(*map(shape_of, sample.args)), dtype=np.int64))
    if count == 0:
        return rl.Cost()
    read = 0
    for position, operand in enumerate(sample.args):
        if isinstance(operand, np.ndarray):
            read += operand.size * (1 if condition and position == 0 else size)
    return rl.Cost(flops=flops * count, bytes_read=read, bytes_written=count * result_size(dtype))


def rounding(roundings: int, dtype: str, sample: Sample) -> tuple[float, float]:
    """One rounding to the dtype, and `roundings` half units of the type computed in; then what underflow loses."""
    return unit_roundoff(dtype) + roundings * accumulator_roundoff(dtype), SMALLEST[dtype]


def cast_rounding(dtype: str, sample: Sample) -> tuple[float, float]:
    return (unit_roundoff("float32"), SMALLEST["float32"]) if dtype == "float64" else (0.0, 0.0)


def cast_target(dtype: str) -> str:
    """A dtype to cast to that can hold the values of `dtype`."""
    return "float32" if dtype == "float64" else "float64"


def cast(x, dtype=None, variant: str = ""):
    return rl.cast(x, dtype or cast_target(str(x.dtype)), variant=variant)


def describe(name, samples, reference, *, roundings=0, flops=1, result_dtype=lambda dtype: dtype, **fields):
    """An OpSpec of the family. `roundings`: how far off it may be, in roundoffs of the type computed in."""
    operands = {unary_samples: 1, binary_samples: 2, gated_samples: 2}.get(samples)
    described = {
        "name": name,
        "fn": getattr(rl, name),
        "samples": functools.partial(samples, name=name),
        "reference": reference,
        "cost": functools.partial(cost, flops, lambda dtype: itemsize(result_dtype(dtype)), name == "where"),
        "tolerance": functools.partial(rounding, roundings),
        "result_dtype": result_dtype,
        "tails": functools.partial(TAILS[samples], name=name) if samples in TAILS else None,
        "differentiable": functools.partial(samples, name=name, special=False),
        "bench": functools.partial(bench, operands) if operands else None,
        "tables": TABLES if name in ("add", "exp") else {},
        "peer": peer_of(name),
    }
    return OpSpec(**(described | fields))


def peer_of(name):
    return lambda torch: getattr(torch, name, None) or getattr(torch.nn.functional, name)


def bench(operands, *numbers):
    for dtype in ("bfloat16", "float32"):
        yield "16384x4096", dtype, (*((16384, 4096),) * operands, *numbers), {}
    if operands == 2:  # the second is a row that all rows of the first share
        yield from odd_rows(None, over=" and a row")


def clamp_bench():
    yield from bench(1, -1.0, 1.0)
    yield from odd_rows(-1.0, 1.0)


def lerp_bench():
    for dtype in ("bfloat16", "float32"):
        yield "16384x4096", dtype, ((16384, 4096), (16384, 4096), 0.25), {}


def nan_to_num_bench():
    yield from bench(1, 0.0, 1.0, -1.0)


def copy_bench():
    yield from bench(1)
    for label, dtype, (shape,), kwargs in odd_rows(over=" turned"):
        if shape[0] > 1:
            yield label, dtype, (Turned(shape[::-1]),), kwargs


def power(a, b):
    """As C defines it for every number: NumPy takes the square root when b is the number 0.5."""
    a, b = np.broadcast_arrays(a, b)
    return np.power(a, b.copy())


def on_integers(function):
    """A function of integers for the float64 arrays that references get."""
    return lambda *operands: function(*(np.asarray(x).astype(np.int64) for x in operands))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def sigmoid_linear(x, exponent):
    """x sigmoid(exponent), whose limit at -inf is 0."""
    return np.where(np.isneginf(x), 0.0, x * sigmoid(exponent))


def silu(x):
    return sigmoid_linear(x, x)


def gelu(x):
    return sigmoid_linear(x, 2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def gated_rounding(dtype: str, sample: Sample) -> tuple[float, np.ndarray]:
    """Besides the roundings, the error of the exponent, as in gelu: less than a few roundoffs of b."""
    a, b = sample.args
    size = np.abs(np.nan_to_num(b, posinf=0, neginf=0))
    shape = np.broadcast_shapes(shape_of(a), shape_of(b))
    rtol, atol = rounding(14, dtype, sample)
    return rtol, np.broadcast_to(atol + 4 * accumulator_roundoff(dtype) * size, shape)


TAILS = {
    unary_samples: unary_tails,
    binary_samples: binary_tails,
    gated_samples: gated_tails,
    clamp_samples: clamp_tails,
    lerp_samples: lerp_tails,
    nan_to_num_samples: nan_to_num_tails,
}
TABLES = {"cpu": ("16384x4096 float32",), "cuda": ("16384x4096 bfloat16", "16384x4096 float32")}

# NumPy's function, and how many units of roundoff the least exact backend is off (CUDA C++ Programming Guide,
# "Mathematical Functions", and csrc/kernels/common/simd.h).
UNARY = {
    "neg": (np.negative, 0),
    "abs": (np.abs, 0),
    "relu": (lambda x: np.where(x < 0, 0, x), 0),
    "exp": (np.exp, 4),
    "log": (np.log, 4),
    "log2": (np.log2, 4),
    "log10": (np.log10, 4),
    "tanh": (np.tanh, 4),
    "sqrt": (np.sqrt, 1),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 4),
    "sin": (np.sin, 4),
    "cos": (np.cos, 4),
    "sigmoid": (sigmoid, 10),
    "silu": (silu, 10),
    "softplus": (lambda x: np.logaddexp(x, 0), 8),
    "logsigmoid": (lambda x: -np.logaddexp(-x, 0), 8),
}
STEPS = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "sign": lambda x: np.where(np.isnan(x), 0, np.sign(x)),
}
BINARY = {
    "add": (np.add, 1),
    "sub": (np.subtract, 1),
    "mul": (np.multiply, 1),
    "div": (np.divide, 2),
    "pow": (power, 8),
    "maximum": (np.maximum, 0),
    "minimum": (np.minimum, 0),
    "prelu": (lambda a, b: np.where(a > 0, a, a * b), 1),
    "elu": (lambda a, b: np.where(a > 0, a, b * np.expm1(np.minimum(a, 0))), 12),
}
BITWISE = {
    "bitwise_and": (np.bitwise_and, 2),
    "bitwise_or": (np.bitwise_or, 2),
    "bitwise_xor": (np.bitwise_xor, 2),
    "bitwise_not": (np.bitwise_not, 1),
}
COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

SPECS = [
    *(describe(name, unary_samples, function, roundings=k) for name, (function, k) in UNARY.items()),
    *(describe(name, unary_samples, function, differentiable=None) for name, function in STEPS.items()),
    *(describe(name, binary_samples, function, roundings=k) for name, (function, k) in BINARY.items()),
    *(
        describe(name, binary_samples, function, flops=0, result_dtype=lambda dtype: "bool", differentiable=None)
        for name, function in COMPARISONS.items()
    ),
    describe(
        "geglu", gated_samples, lambda a, b: gelu(a) * b, roundings=14, flops=9, tolerance=gated_rounding, peer=None
    ),
    describe("swiglu", gated_samples, lambda a, b: silu(a) * b, roundings=12, flops=2, peer=None),
    *(
        describe(name, binary_samples, function, roundings=flops + 1, flops=flops, peer=None)
        for name, function, flops in (
            ("relu_backward", lambda dy, y: np.where(y <= 0, 0, dy), 1),
            ("tanh_backward", lambda dy, y: dy * ((1 - y) * (1 + y)), 4),
            ("sigmoid_backward", lambda dy, y: dy * (y * (1 - y)), 3),
        )
    ),
    describe("floor_divide", quotient_samples, np.floor_divide, roundings=2, differentiable=None),
    describe("remainder", quotient_samples, np.remainder, roundings=2),
    *(
        describe(
            name,
            functools.partial(bit_samples, arity=arity),
            on_integers(function),
            dtypes=INTEGER,
            tolerance=lambda dtype, sample: (0.0, 0.25),
            differentiable=None,
        )
        for name, (function, arity) in BITWISE.items()
    ),
    describe(
        "clamp", clamp_samples, lambda x, low, high: np.minimum(np.maximum(x, low), high), flops=2, bench=clamp_bench
    ),
    describe("lerp", lerp_samples, lerp, roundings=4, flops=3, tolerance=lerp_rounding, bench=lerp_bench),
    describe("nan_to_num", nan_to_num_samples, nan_to_num, flops=0, bench=nan_to_num_bench),
    describe("where", where_samples, np.where, flops=0),
    describe(
        "copy",
        unary_samples,
        np.array,
        flops=0,
        bench=copy_bench,
        peer=lambda torch: functools.partial(torch.clone, memory_format=torch.contiguous_format),
    ),
    describe(
        "cast", unary_samples, np.array, flops=0, result_dtype=cast_target, fn=cast, tolerance=cast_rounding, peer=None
    ),
]
