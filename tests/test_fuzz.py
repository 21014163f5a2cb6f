"""Drawn calls against NumPy: shapes, views, dtypes, numbers, and writes that overlap what they read.

Each test draws the same calls every time; `--fuzz-minutes 2` draws new ones for two minutes a test. Hypothesis
shortens a call that fails, and prints what it drew.
"""

import hypothesis
import numpy as np
import pytest
from drawing import View, agree, axis, between, drawn, drawn_view, one_of, part_of, shape, values
from hypothesis import strategies as st

import rooflab as rl
from rooflab.specs import FLOATING, INTEGER, Sample, accumulator_roundoff, all_specs, elementwise, unit_roundoff

pytestmark = pytest.mark.filterwarnings("ignore:(Mean of empty slice|Degrees of freedom)")
SPECS = all_specs()
ONE_OPERAND = ("neg", "abs", "relu", "bitwise_not")
OF_INTEGERS = {  # NumPy's functions for arrays of integers, where the specs' are for float64
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
}


def check_op(name, dtype, *operands, **kwargs):
    """Every rung of an op that takes the operands, and the default one, against the reference of its spec."""
    spec = SPECS[name]
    arrays = [o.a if isinstance(o, View) else o for o in operands]
    tensors = [o.x if isinstance(o, View) else rl.tensor(o) if isinstance(o, np.ndarray) else o for o in operands]
    reference = OF_INTEGERS.get(name, spec.reference) if dtype in INTEGER else spec.reference
    expected = as_tuple(reference(*arrays, **kwargs))
    dtypes = as_tuple(spec.result_dtype(dtype)) * len(expected)
    allowed = [(0.0, 0.0)] if dtype in INTEGER else spec.allowed(dtype, Sample("", tuple(arrays), kwargs))
    for variant in ["", *(v.name for v in rl.variants(name, "cpu"))]:
        try:
            found = as_tuple(spec.fn(*tensors, **kwargs, variant=variant))
        except ValueError as error:
            if not variant or "does not accept these operands" not in str(error):
                raise
            continue
        hypothesis.note(f"rl.{name}({', '.join(map(str, operands))}, {kwargs}, variant={variant!r})")
        for i, right in enumerate(expected):
            rtol, atol = allowed[i % len(allowed)]
            agree(found[i], right, dtypes[i], f"{name} {variant}", rtol=rtol, atol=atol)
    for view in (o for o in operands if isinstance(o, View)):
        view.check(f"{name}: what it reads")


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def any_dtype(draw):
    return one_of(draw, *FLOATING, *INTEGER)


def number(draw, dtype):
    return one_of(draw, 2, -3, 0, 1, 7) if dtype in INTEGER else one_of(draw, 2, -3, 0, 0.5, 2.5, -0.25, 1024.0)


@drawn
def test_elementwise(draw):
    dtype = any_dtype(draw)
    if dtype in INTEGER:
        name = one_of(draw, *OF_INTEGERS, *elementwise.BITWISE, *elementwise.COMPARISONS, "maximum", "minimum")
    else:
        name = one_of(draw, *elementwise.UNARY, *elementwise.BINARY, *elementwise.COMPARISONS, "floor_divide",
                      "remainder", "gelu", "copy")  # fmt: skip
    whole = shape(draw)
    if name in (*elementwise.UNARY, "bitwise_not", "gelu", "copy"):
        return check_op(name, dtype, drawn_view(draw, whole, dtype))
    operands = [drawn_view(draw, part_of(draw, whole), dtype) for _ in range(2)]
    if between(draw, 0, 3) == 0:
        operands[between(draw, 0, 1)] = number(draw, dtype)
    if divides_by_zero(name, dtype, *(x.a if isinstance(x, View) else x for x in operands)):
        with pytest.raises(ZeroDivisionError):
            getattr(rl, name)(*(x.x if isinstance(x, View) else x for x in operands))
        return
    check_op(name, dtype, *operands)


def divides_by_zero(name, dtype, a, b):
    """Whether it is an error: an integer of the divisor is 0, and divides an element or is a number."""
    divides = name in ("floor_divide", "remainder") and dtype in INTEGER
    return divides and not np.all(b) and (np.isscalar(b) or np.broadcast(a, b).size > 0)


@pytest.mark.slow
@drawn
def test_where(draw):
    dtype, whole = any_dtype(draw), shape(draw)
    condition = drawn_view(draw, part_of(draw, whole), "bool")
    operands = [drawn_view(draw, part_of(draw, whole), dtype) for _ in range(2)]
    if between(draw, 0, 3) == 0:
        operands[between(draw, 0, 1)] = number(draw, dtype)
    check_op("where", dtype, condition, *operands)


@drawn
def test_casts(draw):
    dtypes = (*FLOATING, *INTEGER, "bool")
    dtype, to = one_of(draw, *dtypes), one_of(draw, *dtypes)
    view = drawn_view(draw, shape(draw), dtype)
    expected = view.a
    if to in INTEGER and dtype in FLOATING:  # towards zero, and no further than the type goes
        limits = np.iinfo(to)
        whole = np.trunc(np.nan_to_num(view.a, nan=0.0, posinf=2.0**63, neginf=-(2.0**63)))
        inside = np.where((whole >= limits.max) | (whole <= limits.min), 0, whole).astype(to)
        expected = np.where(whole >= limits.max, limits.max, np.where(whole <= limits.min, limits.min, inside))
    elif to in (*INTEGER, "bool"):
        expected = view.a.astype(to)
    exact = to not in FLOATING or dtype == to
    agree(view.x.to(to), expected, to, f"{dtype} to {to}", rtol=0.0 if exact else unit_roundoff(to),
          atol=0.0 if exact else elementwise.SMALLEST[to])  # fmt: skip


@drawn
def test_shapes_that_do_not_broadcast_are_refused(draw):
    a, b = shape(draw), shape(draw)
    x, y = rl.ones(*a), rl.ones(*b)
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        for call in (lambda: rl.add(x, y), lambda: rl.where(x > 0, x, y)):
            with pytest.raises(ValueError, match="do not broadcast"):
                call()
    else:
        assert rl.add(x, y).shape == rl.where(x > 0, x, y).shape == expected


OPERATORS = {
    "add": lambda x, y: x.__iadd__(y),
    "sub": lambda x, y: x.__isub__(y),
    "mul": lambda x, y: x.__imul__(y),
    "div": lambda x, y: x.__itruediv__(y),
    "floor_divide": lambda x, y: x.__ifloordiv__(y),
    "remainder": lambda x, y: x.__imod__(y),
    "copy": lambda x, y: x.copy_(y) if isinstance(y, rl.Tensor) else x.fill_(y),
}


def cut(draw, size, length, steps):
    """A slice that takes `length` of `size` elements."""
    step = one_of(draw, *steps)
    if (length - 1) * abs(step) >= size:
        step = step // 2 or step
    reach = (length - 1) * abs(step)
    first = between(draw, 0, size - 1 - reach)
    if step > 0:
        return slice(first, first + reach + 1, step)
    return slice(first + reach, first - 1 if first else None, step)


@drawn
def test_writes_in_place(draw):
    """The memory read may overlap the memory written; all of it is read first."""
    dtype = any_dtype(draw)
    name = one_of(draw, *(name for name in OPERATORS if name != "div" or dtype in FLOATING))
    sizes = shape(draw, least=1, most=3, sizes=(1, 2, 3, 5, 8, 33, 130, 1030))
    if is_square := len(sizes) > 1 and one_of(draw, True, False):
        sizes = (min(*sizes, 60),) * len(sizes)
    room = drawn_view(draw, sizes, dtype, to_write=True)
    lengths = [between(draw, 1, size) for size in sizes]
    to = tuple(cut(draw, *pair, steps=(1, 1, 2)) for pair in zip(sizes, lengths, strict=True))
    target, target_a = room.x[to], room.a[to]
    kind = one_of(draw, "overlapping", "transposed", "apart", "number", "itself")
    if kind == "number":
        other = other_a = number(draw, dtype)
    elif kind == "apart":
        view = drawn_view(draw, part_of(draw, target_a.shape), dtype)
        other, other_a = view.x, view.a
    elif kind == "itself":
        other, other_a = target, target_a
    else:
        order = draw(st.permutations(range(len(sizes)))) if is_square else range(len(sizes))
        read = [length if between(draw, 0, 3) else 1 for length in lengths]
        where = tuple(cut(draw, *pair, steps=(1, 1, 2, -1, -2)) for pair in zip(sizes, read, strict=True))
        other, other_a = room.x.permute(*order)[where], room.a.transpose(*order)[where]
    if divides_by_zero(name, dtype, target_a, other_a):
        with pytest.raises(ZeroDivisionError):
            OPERATORS[name](target, other)
        return room.check(name, rtol=0.0, atol=0.0)  # nothing was written
    reference = OF_INTEGERS.get(name, SPECS[name].reference) if dtype in INTEGER else SPECS[name].reference
    if name == "copy":
        target_a[...] = np.array(other_a)
    else:
        target_a[...] = reference(target_a.copy(), np.array(other_a, target_a.dtype))
    OPERATORS[name](target, other)
    rtol, atol = (0.0, 0.0) if name == "copy" or dtype in INTEGER else SPECS[name].tolerance(dtype, None)
    agree(target, target_a, dtype, name, rtol=rtol, atol=atol)
    room.check(name, rtol=rtol, atol=atol)


@drawn
def test_reductions(draw):
    name = one_of(draw, "sum", "mean", "amax", "amin", "argmax", "argmin", "max", "min")
    dtype = one_of(draw, *FLOATING) if name == "mean" else any_dtype(draw)
    view = drawn_view(draw, shape(draw, least=1), dtype)
    dim = axis(draw, view.a.ndim)
    if name not in ("max", "min") and between(draw, 0, 3) == 0:
        dim = None
    elif name in ("sum", "mean", "amax", "amin") and one_of(draw, True, False):
        dim = tuple(draw(st.lists(st.integers(0, view.a.ndim - 1), unique=True, min_size=1)))
    keepdim = {"keepdim": one_of(draw, True, False)}
    over = view.a.shape if dim is None else [view.a.shape[d] for d in np.atleast_1d(dim)]
    if 0 in over and name not in ("sum", "mean"):
        if view.a.sum(axis=dim).size:
            with pytest.raises(ValueError, match="at least one element"):
                getattr(rl, name)(view.x, dim=dim, **keepdim)
        return
    check_op(name, dtype, view, dim=dim, **keepdim)


@pytest.mark.slow
@drawn
def test_lines(draw):
    """Ops along one dimension."""
    name = one_of(draw, "softmax", "cumsum", "sort", "topk", "tril", "triu")
    dtype = one_of(draw, *FLOATING) if name == "softmax" else any_dtype(draw)
    view = drawn_view(draw, shape(draw, least=2 if name in ("tril", "triu") else 1), dtype)
    if name in ("tril", "triu"):
        return check_op(name, dtype, view, diagonal=between(draw, -200, 200))
    dim = axis(draw, view.a.ndim)
    if name == "topk":
        k = between(draw, 0, view.a.shape[dim])
        return check_op(name, dtype, view, k, dim=dim, largest=one_of(draw, True, False))
    options = {"descending": one_of(draw, True, False)} if name == "sort" else {}
    check_op(name, dtype, view, dim=dim, **options)


@drawn
def test_spread_and_truth(draw):
    name, dtype = one_of(draw, "var", "std", "all", "any"), one_of(draw, *FLOATING)
    is_truth = name in ("all", "any")
    view = drawn_view(draw, shape(draw, least=1), dtype, special=is_truth)
    dim, keepdim = axis(draw, view.a.ndim), one_of(draw, True, False)
    found = getattr(rl, name)(view.x, dim, keepdim=keepdim)
    if is_truth:
        return agree(found, getattr(np, name)(view.a, axis=dim, keepdims=keepdim), "bool", name)
    expected = getattr(np, name)(view.a, axis=dim, keepdims=keepdim, ddof=1)
    error = 64 * accumulator_roundoff(dtype) * np.abs(view.a).max(initial=0) ** (2 if name == "var" else 1)
    agree(found, expected, dtype, name, rtol=2 * unit_roundoff(dtype), atol=error)


def places(draw, size, shape):
    """Indices into a dimension, some from its end."""
    rng = np.random.default_rng(between(draw, 0, 2**16))
    return rng.integers(-size, size, shape) if size else np.zeros((0,), np.int64)


@pytest.mark.slow
@drawn
def test_choices(draw):
    name, dtype = one_of(draw, "gather", "index_select", "embedding", "scatter_add"), any_dtype(draw)
    sizes = shape(draw, least=1, most=3, sizes=(1, 2, 3, 8, 33, 130))
    x, dim = drawn_view(draw, sizes, dtype, special=name != "scatter_add"), axis(draw, len(sizes))
    rng = np.random.default_rng(between(draw, 0, 2**16))
    kind = one_of(draw, np.int64, np.int32)
    if name == "embedding":
        table = drawn_view(draw, shape(draw, least=2, most=2, sizes=(1, 2, 5, 33, 64)), dtype)
        index = rng.integers(0, table.a.shape[0], shape(draw, most=3, sizes=(0, 1, 3, 8))).astype(kind)
        return check_op(name, dtype, View(draw, index, str(index.dtype)), table)
    if name == "index_select":
        index = rng.integers(0, sizes[dim], between(draw, 0, 40)).astype(kind)
        return check_op(name, dtype, x, dim, View(draw, index, str(index.dtype)))
    chosen = [between(draw, 0, size) for size in sizes]
    chosen[dim] = between(draw, 0, 40)
    index = View(draw, rng.integers(0, sizes[dim], chosen).astype(kind), np.dtype(kind).name)
    if name == "gather":
        return check_op(name, dtype, x, dim, index)
    check_op(name, dtype, x, dim, index, drawn_view(draw, tuple(chosen), dtype, special=False))


@pytest.mark.slow
@drawn
def test_products(draw):
    dtype = one_of(draw, *FLOATING)
    m, k, n = (one_of(draw, 0, 1, 2, 5, 17, 40, 130) for _ in range(3))
    batch = shape(draw, most=2, sizes=(0, 1, 2, 3))
    a = (*part_of(draw, batch), m, k) if between(draw, 0, 4) else (k,)
    b = (*part_of(draw, batch), k, n) if between(draw, 0, 4) else (k,)
    check_op("matmul", dtype, drawn_view(draw, a, dtype), drawn_view(draw, b, dtype))


@pytest.mark.slow
@drawn
def test_parts_put_together(draw):
    dtype, sizes = any_dtype(draw), shape(draw, least=1)
    dim = axis(draw, len(sizes))
    parts = []
    for _ in range(between(draw, 1, 4)):
        own = list(sizes)
        own[dim] = one_of(draw, 0, 1, 2, 5, 33)
        parts.append(drawn_view(draw, tuple(own), dtype))
    check_op("cat", dtype, *parts, dim=dim)


def an_index(draw, sizes):
    """Something that NumPy takes between brackets, for an array and for a tensor."""
    items, d = [], 0
    arrays_shape = shape(draw, least=1, most=2, sizes=(0, 1, 2, 5))
    while d < len(sizes) and between(draw, 0, 5):
        kind, size = one_of(draw, "slice", "slice", "number", "new", "places", "mask"), sizes[d]
        if kind == "slice":
            ends = st.one_of(st.none(), st.integers(-size - 2, size + 2))
            items.append(slice(draw(ends), draw(ends), one_of(draw, None, 1, 2, -1, -2, 7)))
        elif kind == "number" and size:
            items.append(between(draw, -size, size - 1))
        elif kind == "new":
            items.append(None)
            d -= 1
        elif kind == "places" and size:
            items.append(places(draw, size, part_of(draw, arrays_shape) or (1,)))
        elif kind == "mask" and not any(isinstance(item, np.ndarray) for item in items):
            items.append(values(draw, sizes[d : d + 1], "bool"))
        else:
            items.append(slice(None))
        d += 1
    if one_of(draw, True, False):
        items.insert(between(draw, 0, len(items)) if d == len(sizes) else len(items), ...)
    return tuple(items)


def numbers_first(index):
    """Split an index into two that are applied in turn: as in PyTorch, numbers beside arrays do not act as arrays."""
    numbers = tuple(i if isinstance(i, int) or i is ... else slice(None) for i in index if i is not None)
    return numbers if ... in numbers else (*numbers, ...), tuple(i for i in index if not isinstance(i, int))


@pytest.mark.slow
@drawn
def test_indices(draw):
    """Elements are read and written where NumPy reads and writes them."""
    dtype = one_of(draw, *FLOATING, *INTEGER, "bool")
    view = drawn_view(draw, shape(draw, least=1, sizes=(0, 1, 2, 3, 5, 33)), dtype, to_write=True)
    index = an_index(draw, view.a.shape)
    numbers, others = numbers_first(index)
    a = view.a[numbers]
    try:
        expected = a[others]
    except IndexError:
        with pytest.raises((IndexError, ValueError)):
            view.x[index]
        return
    as_tensors = one_of(draw, True, False)
    ours = tuple(rl.tensor(i) if as_tensors and isinstance(i, np.ndarray) else i for i in index)
    agree(view.x[ours], expected, dtype, "read")
    if dtype != "bool" and one_of(draw, True, False):
        new = number(draw, dtype)
        view.x[ours], a[others] = new, new
    else:
        new = drawn_view(draw, part_of(draw, np.shape(expected)), dtype)
        view.x[ours], a[others] = new.x, new.a
    view.check("written")
