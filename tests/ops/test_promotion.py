"""Elementwise ops of operands that differ in dtype: one launch, which converts each operand on its way in."""

import itertools

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import unit_roundoff

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"]
PAIRS = [pair for pair in itertools.product(DTYPES, DTYPES) if pair[0] != pair[1]]
OPS = ["add", "mul", "sub", "div", "pow", "maximum", "floor_divide", "remainder", "lt", "where"]


def operand(rng, dtype, shape, device):
    """Numbers that need all digits of their dtype, none of them 0 and all small enough for every op."""
    values = rng.integers(1, 6, shape) * rng.choice([-1, 1], shape)
    if dtype.startswith(("float", "bfloat")):
        values = values + rng.uniform(0.1, 0.9, shape)
    if dtype == "bool":
        values = rng.random(shape) < 0.5
    return rl.tensor(values, dtype=dtype, device=device)


def laid_out(rng, layout, dtypes, device):
    """Two operands: long ones that several threads share, every other element, a row for all rows, or a column."""
    shapes = {"long": ((70001,), (70001,)), "strided": ((3, 1201), (3, 1201)), "row": ((37, 131), (131,))}
    shapes["column"] = ((37, 520), (37, 1))
    a, b = (operand(rng, dtype, shape, device) for dtype, shape in zip(dtypes, shapes[layout], strict=True))
    return (a[:, ::2], b.T[:601].T) if layout == "strided" else (a, b)


def call(op, a, b, variant=""):
    if op != "where":
        return getattr(rl, op)(a, b, variant=variant)
    shape = np.broadcast_shapes(a.shape, b.shape)
    condition = rl.tensor(np.arange(np.prod(shape)).reshape(shape) % 3 == 0, device=a.device)
    return rl.where(condition, a, b, variant=variant)


def same(x, y):
    """The same bits; on a GPU, where kernels may contract products and sums differently, one unit in the last place."""
    assert x.dtype == y.dtype
    if x.device != "cpu" and x.dtype.is_floating_point:
        rtol = 2 * unit_roundoff(str(x.dtype))
        x, y = (t.cpu().to("float64").numpy() for t in (x, y))
        return np.allclose(x, y, rtol=rtol, atol=0, equal_nan=True)
    x, y = (np.asarray(t.cpu().to("float64") if t.dtype == "bfloat16" else t.cpu()) for t in (x, y))
    return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")


def mixed_variants(device):
    return ["", "v0_reference", "v1_staged" if device == "cpu" else "v3_mixed"]


@pytest.mark.slow(device=["cpu"], layout=["strided", "column"])
@pytest.mark.parametrize("layout", ["long", "strided", "row", "column"])
@pytest.mark.parametrize("op", OPS)
def test_operands_are_converted_to_the_common_dtype_first(op, layout, device, two_threads):
    rng = np.random.default_rng(0)
    for dtypes in PAIRS if layout != "long" else PAIRS[::5]:
        divides = op in ("floor_divide", "remainder")
        if (op == "sub" and "bool" in dtypes) or (divides and dtypes[1] == "bool"):
            continue
        a, b = laid_out(rng, layout, dtypes, device)
        if op == "pow" and not any("float" in dtype for dtype in dtypes):
            b = rl.abs(b) if b.dtype != "bool" else b
        common = rl.add(a, b).dtype
        if op == "div" and not common.is_floating_point:
            common = rl.float32
        for variant in mixed_variants(device):
            expected = call(op, a.to(common), b.to(common), "v0_reference" if variant == "v0_reference" else "")
            assert same(call(op, a, b, variant), expected), (dtypes, variant)


@pytest.mark.parametrize("name", ["exp", "sqrt", "sigmoid", "sin", "silu"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_functions_of_integers_are_computed_in_float32(name, dtype, device):
    x = rl.tensor(np.arange(-3, 1500) % 7, dtype=dtype, device=device)
    for variant in mixed_variants(device):
        expected = getattr(rl, name)(x.to("float32"), variant="v0_reference" if variant == "v0_reference" else "")
        assert same(getattr(rl, name)(x, variant=variant), expected)


def test_large_integers_are_rounded_once(device):
    numbers = [2**60 + 2**36 + 1, -(2**60) - 2**36 - 1, 2**24 + 1, 2049, 65519, 65520]
    x, zero = rl.tensor(numbers, device=device), rl.zeros(1, dtype="float32", device=device)
    for variant in mixed_variants(device):
        assert same(rl.add(x, zero, variant=variant), x.to("float32"))
        for dtype in ("float16", "bfloat16"):
            assert same(rl.add(x, zero.to(dtype), variant=variant), x.to(dtype))


def test_bools_are_added_and_multiplied_as_pytorch_does(device):
    a, b = rl.tensor([True, True, False, False], device=device), rl.tensor([True, False, True, False], device=device)
    for variant in mixed_variants(device):
        assert rl.add(a, b, variant=variant).tolist() == [True, True, True, False]
        assert rl.mul(a, b, variant=variant).tolist() == [True, False, False, False]
        assert rl.maximum(a, b, variant=variant).tolist() == [True, True, True, False]
        assert rl.minimum(a, b, variant=variant).dtype == rl.bool_
    with pytest.raises(ValueError, match="sub"):
        a - b


@pytest.mark.parametrize("device", [*("cpu", "meta", "meta:H200"), pytest.param("cuda", marks=pytest.mark.gpu)])
def test_one_launch_reads_each_operand_at_its_own_size(device):
    x, mask = rl.ones(40, 50, device=device), rl.zeros(40, 50, dtype="bool", device=device)
    half, row = rl.ones(40, 50, dtype="float16", device=device), rl.ones(50, dtype="int64", device=device)
    int_row = rl.ones(50, dtype="int32", device=device)
    cases = [
        (lambda: x * mask, 2000 * (4 + 1), 2000 * 4, 2000),
        (lambda: half + x, 2000 * (2 + 4), 2000 * 4, 2000),
        (lambda: half + row, 2000 * 2 + 50 * 8, 2000 * 2, 2000),
        (lambda: row / int_row, 50 * (8 + 4), 50 * 4, 50),
        (lambda: mask + mask, 2000, 2000, 2000),
        (lambda: row < 1.5, 50 * 8, 50, 0),
        (lambda: row * 0.5, 50 * 8, 50 * 4, 50),
        (lambda: rl.where(mask, half, row), 2000 * (1 + 2) + 50 * 8, 2000 * 2, 0),
        (lambda: rl.exp(row), 50 * 8, 50 * 4, 50),
    ]
    for function, read, written, flops in cases:
        with rl.count() as c:
            function()
        assert (c.ops, c.launches) == (1, 1)
        assert (c.bytes_read, c.bytes_written, c.flops) == (read, written, flops)


def test_cat_converts_each_part_in_its_own_launch(device):
    parts = [rl.ones(3, device=device), rl.tensor([2, 5], device=device), rl.tensor([True], device=device)]
    with rl.count() as c:
        y = rl.cat(parts)
    assert y.dtype == "float32" and y.tolist() == [1, 1, 1, 2, 5, 1]
    assert (c.ops, c.launches, c.bytes_read, c.bytes_written) == (1, 3, 3 * 4 + 2 * 8 + 1, 6 * 4)


def test_rungs_take_operands_that_differ_or_those_that_do_not():
    f, m = rl.ones(64, device="meta:H200"), rl.ones(64, dtype="bool", device="meta:H200")
    rl.mul(f, m, variant="v3_mixed")
    for operands, variant in (((f, f), "v3_mixed"), ((f, m), "v2_vectorised"), ((f, m), "v1_strided")):
        with pytest.raises(ValueError, match=variant):
            rl.mul(*operands, variant=variant)
    with pytest.raises(ValueError, match="v2_contiguous"):
        rl.mul(rl.ones(64), rl.ones(64, dtype="bool"), variant="v2_contiguous")


def test_writes_in_place_compute_in_the_common_dtype(device):
    half = rl.tensor([1.0, 2.0], dtype="float16", device=device)
    exact = half.to("float32")
    added = rl.tensor([2.0**-11 + 2.0**-20, 1.0], device=device)
    with rl.count() as c:
        half += added
    assert (c.launches, c.bytes_read, c.bytes_written) == (1, 2 * 2 + 2 * 4, 2 * 2)
    assert half.dtype == "float16" and half.tolist() == [1 + 2.0**-10, 3.0]  # one rounding, of the sum
    exact += rl.tensor([1e-9, 1.0], dtype="float64", device=device)
    assert exact.dtype == "float32" and exact.tolist() == [1.0, 3.0]
    whole = rl.tensor([1, 2], dtype="int32", device=device)
    whole += rl.tensor([2**32 + 1, 3], device=device)
    assert whole.dtype == "int32" and whole.tolist() == [2, 5]
    true = rl.tensor([True, False], device=device)
    true += rl.tensor([True, True], device=device)
    assert true.dtype == "bool" and true.tolist() == [True, True]


@pytest.mark.parametrize(
    "write, why",
    [
        (lambda i, f, m: i.__iadd__(f), "the result is float32, which a tensor of int64 cannot hold"),
        (lambda i, f, m: i.__iadd__(2.0), "the result is float32, which a tensor of int64 cannot hold"),
        (lambda i, f, m: i.__itruediv__(2), "the result is float32, which a tensor of int64 cannot hold"),
        (lambda i, f, m: m.__iadd__(i), "the result is int64, which a tensor of bool cannot hold"),
        (lambda i, f, m: i.__setitem__(0, 2.7), "number: expected one that int64 can hold, got 2.7"),
        (lambda i, f, m: m.__setitem__(0, 2), "number: expected one that bool can hold, got 2"),
    ],
)
def test_a_tensor_keeps_its_dtype_and_says_what_it_cannot_hold(write, why, device):
    i, f, m = rl.tensor([1, 2], device=device), rl.ones(2, device=device), rl.ones(2, dtype="bool", device=device)
    with pytest.raises(ValueError, match=why):
        write(i, f, m)
    assert i.tolist() == [1, 2] and m.tolist() == [True, True]


def test_gradients_have_the_dtypes_of_their_operands(device):
    half = rl.tensor([1.0, 2.0], dtype="float16", device=device, requires_grad=True)
    single = rl.tensor([3.0, 5.0], device=device, requires_grad=True)
    for function in (rl.mul, rl.add, rl.div, rl.sub, rl.maximum, lambda a, b: rl.where(a < b, a, b)):
        half.grad = single.grad = None
        function(half, single).sum().backward()
        assert half.grad.dtype == "float16" and single.grad.dtype == "float32"
    rl.cat([half, single]).sum().backward()
    assert half.grad.dtype == "float16"
    with rl.no_grad():
        mask = rl.tensor([True, False], device=device)
    half.grad = None
    (half * mask * rl.tensor(2, device=device)).sum().backward()
    assert half.grad.tolist() == [2.0, 0.0]


def test_an_integer_divided_by_zero_is_an_error():
    a, zeros = rl.tensor([5, 6, 7]), rl.tensor([1, 0, 2])
    for divide in (lambda x, y: x // y, lambda x, y: x % y):
        for divisor in (0, zeros, zeros.to("int32"), zeros > 0, zeros[1:2]):
            with pytest.raises(ZeroDivisionError, match="an integer divided by zero"):
                divide(a, divisor)
        with pytest.raises(ZeroDivisionError):
            divide(3, zeros)
        for variant in ("v0_reference", "v1_staged"):
            with pytest.raises(ZeroDivisionError):
                rl.floor_divide(a, zeros, variant=variant)
    with pytest.raises(ZeroDivisionError):
        a //= zeros
    assert a.tolist() == [5, 6, 7]  # nothing was written
    assert (a // zeros.to("float32")).tolist() == [5, float("inf"), 3]
    assert (a[:0] // zeros[:0]).shape == (0,)


def test_a_zero_far_from_the_beginning_is_seen(two_threads):
    divisor = rl.ones(100_003, dtype="int32")
    assert (rl.ones(100_003, dtype="int32") // divisor).sum().item() == 100_003
    divisor[77_777] = 0
    with pytest.raises(ZeroDivisionError):
        rl.ones(100_003, dtype="int32") // divisor
    grid = rl.ones(40, 60, dtype="int64")
    grid[3, 7] = 0
    with pytest.raises(ZeroDivisionError):
        rl.ones(60, 40, dtype="int64") % grid.T


def test_a_number_that_is_zero_is_refused_on_every_device(device):
    for where in (device, "meta", "meta:H200"):
        x = rl.ones(3, dtype="int64", device=where)
        for divide in (lambda: x // 0, lambda: x % 0, lambda: x.__ifloordiv__(0), lambda: x % False):  # noqa: B023
            with pytest.raises(ZeroDivisionError):
                divide()


def test_a_graph_that_is_replayed_looks_for_zeros_again():
    a, b = rl.tensor([6, 8]), rl.tensor([2, 4])
    graph = rl.Graph("cpu")
    with graph.capture():
        y = a // b
    graph.replay()
    assert y.tolist() == [3, 2]
    b[0] = 0
    with pytest.raises(ZeroDivisionError):
        graph.replay()
    b[0] = 3
    graph.replay()
    assert y.tolist() == [2, 2]


def test_compiled_chains_convert_too(device):
    def chain(x, h, m, i):
        return (x * m + h * i) * 0.5 + (i < 1.5) + (m + m)

    operands = [
        rl.tensor([1.5, 2.5, -3.0], device=device),
        rl.tensor([0.1, 0.2, 0.3], dtype="float16", device=device),
        rl.tensor([True, False, True], device=device),
        rl.tensor([1, 2049, 3], device=device),
    ]
    compiled = rl.compile(chain)
    expected = chain(*operands)
    made = compiled(*operands)
    assert made.dtype == expected.dtype
    assert rl.allclose(made, expected, atol=2e-3)
    with rl.count() as c:
        compiled(*operands)
    assert c.launches == 1 and c.bytes_read == 3 * (4 + 2 + 1 + 8)


def test_compiled_functions_look_for_zeros_too():
    compiled = rl.compile(lambda a, b: (a + 1) // b * 2)
    assert compiled(rl.tensor([5, 7]), rl.tensor([2, 4])).tolist() == [6, 4]
    with pytest.raises(ZeroDivisionError):
        compiled(rl.tensor([5, 7]), rl.tensor([2, 0]))


def test_none_equals_no_tensor():
    x = rl.ones(2)
    assert (x == None) is False and (x != None) is True  # noqa: E711
    for compare in (lambda: x < None, lambda: x == "a", lambda: None in x):
        with pytest.raises(TypeError):
            compare()


def test_gated_activations_still_need_one_dtype():
    with pytest.raises(ValueError, match=r"\[geglu\] operands are float32 and float16"):
        rl.geglu(rl.ones(2), rl.ones(2, dtype="float16"))
