"""Functions that are composed of others refuse what does not fit, in one sentence."""

import inspect
import re

import numpy as np
import pytest

import rooflab as rl
from rooflab import composed


def test_bad_input_is_one_sentence():
    x, F = rl.ones(2, 3), rl.nn.functional
    wrong = {
        r"\[mm\] b: expected 2 dimensions, got \(3,\)": lambda: rl.mm(x, x[0]),
        r"\[dot\] a: expected 1 dimension, got \(2, 3\)": lambda: rl.dot(x, x),
        r"\[bmm\] expected as many matrices": lambda: rl.bmm(rl.ones(2, 3, 3), rl.ones(1, 3, 3)),
        r"\[t\] x: expected at most 2": lambda: rl.t(rl.ones(1, 1, 1)),
        r"\[flip\] dim: expected one of the 2": lambda: x.flip(2),
        r"\[flip\] dims: expected each once": lambda: x.flip(0, -2),
        r"\[roll\] expected as many shifts as dims": lambda: x.roll((1, 2), 0),
        r"\[roll\] dim: expected one": lambda: x.roll(1, 5),
        r"\[repeat\] sizes: expected at least 2 numbers >= 0, got \(2,\)": lambda: x.repeat(2),
        r"\[repeat\] sizes: expected at least 2 numbers >= 0, got \(-1, 2\)": lambda: x.repeat(-1, 2),
        r"\[tile\] dims: expected numbers >= 0": lambda: x.tile(-1),
        r"\[lerp\] weight: expected numbers, got bool": lambda: rl.lerp(x, x, x > 2),
        r"\[lerp\] x, end: expected numbers, got bool": lambda: rl.lerp(x > 2, x > 3, 0.5),
        r"\[narrow\] expected slices": lambda: x.narrow(1, 2, 2),
        r"\[movedim\] expected as many": lambda: x.movedim((0, 1), 0),
        r"\[meshgrid\] indexing": lambda: rl.meshgrid(x[0], indexing="yx"),
        r"\[meshgrid\] tensors": lambda: rl.meshgrid(x),
        r"\[diag\] x: expected one or two": lambda: rl.diag(rl.ones(1, 1, 1)),
        r"\[diag\] diagonal: a result of shape": lambda: rl.diag(rl.ones(2), 1 << 40),
        r"\[index_add\] source: expected \(2, 3\)": lambda: x.index_add(0, rl.tensor([0, 1]), x[:1]),
        r"\[masked_select\] mask: expected bool": lambda: x.masked_select(x),
        r"\[median\] x: expected elements": lambda: rl.ones(0).median(),
        r"\[prod\] dim: expected one": lambda: x.prod(2),
        r"\[prod\] dim: expected one of the 1": lambda: rl.tensor(1.0).prod(1),
        r"\[prod\] keepdim: expected a dim": lambda: x.prod(keepdim=True),
        r"\[median\] keepdim: expected a dim": lambda: x.median(keepdim=True),
        r"\[median\] dim: expected one of the 1": lambda: rl.tensor(1.0).median(1),
        r"\[median\] x: expected a numeric dtype": lambda: (x > 0).median(),
        r"\[logsumexp\] dim: expected one of the 1": lambda: rl.tensor(1.0).logsumexp(1),
        r"\[round\] expected a numeric dtype, got bool": lambda: (x > 0).round(),
        r"\[round\] variant: expected none with decimals": lambda: rl.round(x, 1, variant="v0_reference"),
        r"\[masked_select\] mask: expected a shape that fits \(2, 3\), got \(4,\)": lambda: x.masked_select(
            rl.ones(4) > 0
        ),
        r"\[addmm\] x: expected a shape that broadcasts to \(2, 2\)": lambda: rl.addmm(rl.ones(1, 2, 2), x, x.T),
        r"\[finfo\] dtype: expected a floating one, got int64": lambda: rl.finfo("int64"),
        r"\[iinfo\] dtype: expected int64 or int32, got float32": lambda: rl.iinfo("float32"),
        r"\[iinfo\] dtype: expected int64 or int32, got bool": lambda: rl.iinfo("bool"),
        r"\[round\] decimals: expected 0": lambda: rl.tensor([1]).round(1),
        r"\[round\] decimals: expected -308 to 308, got 400": lambda: x.round(decimals=400),
        r"\[round\] decimals: expected -308 to 308, got -309": lambda: x.round(decimals=-309),
        r"\[bincount\] x: expected numbers >= 0": lambda: rl.bincount(rl.tensor([-1])),
        r"\[bincount\] expected integers": lambda: rl.bincount(x),
        r"\[glu\] x: expected an even size": lambda: F.glu(x),
        r"\[one_hot\] index: expected in \[0, 2\), got 2": lambda: F.one_hot(rl.tensor([2]), 2),
        r"\[one_hot\] index: expected int64": lambda: F.one_hot(x),
        r"\[pad\] mode": lambda: F.pad(x, (1, 1), mode="reflect"),
        r"\[pad\] pad: expected two sizes": lambda: F.pad(x, (1,)),
        r"\[pad\] pad: cuts more": lambda: F.pad(x, (-2, -2)),
        r"\[mse_loss\] target: expected the shape": lambda: F.mse_loss(x, x[0]),
        r"\[mse_loss\] reduction": lambda: F.mse_loss(x, x, reduction="average"),
        r"\[nll_loss\] expected \(N, V\)": lambda: F.nll_loss(x, rl.tensor([0])),
        r"\[layer_norm\] normalized_shape": lambda: F.layer_norm(x, (2, 3)),
        r"\[normalize\] p: expected 2": lambda: F.normalize(x, p=1),
        r"dropout_p: expected 0": lambda: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.1),
        r"is_causal: expected L_q = L_kv": lambda: F.scaled_dot_product_attention(
            x[None], rl.ones(1, 5, 3), rl.ones(1, 5, 3), is_causal=True
        ),
        r"expected H_kv = H": lambda: F.scaled_dot_product_attention(rl.ones(1, 4, 2, 3), *[rl.ones(1, 2, 2, 3)] * 2),
    }
    for says, call in wrong.items():
        with pytest.raises(ValueError, match=says):
            call()


def takers(annotation):
    """Each argument of a composed function that is annotated so."""
    for name in composed.__all__:
        function = getattr(composed, name)
        if not inspect.isclass(function):
            for argument, parameter in inspect.signature(function).parameters.items():
                if parameter.annotation == annotation:
                    yield name, argument


@pytest.mark.parametrize(("name", "argument"), list(takers("Tensor")))
def test_what_is_no_tensor_is_refused(name, argument):
    function = getattr(composed, name)
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    for wrong in (1.5, None, [1.0, 2.0], np.ones(2)):
        right = {p.name: 0 if p.annotation == "int" else rl.ones(2) for p in required if p.kind != p.VAR_POSITIONAL}
        with pytest.raises(TypeError, match=rf"^\[{name}\] {argument}: expected a tensor, got {type(wrong).__name__}$"):
            function(*(right | {argument: wrong}).values())


@pytest.mark.parametrize(("name", "argument"), list(takers("Sequence[Tensor]")))
def test_what_is_no_list_of_tensors_is_refused(name, argument):
    for wrong in (rl.ones(2), [1.0], None):
        with pytest.raises(TypeError, match=rf"^\[{name}\] {argument}: expected a list or tuple of tensors, got "):
            getattr(composed, name)(wrong)
    with pytest.raises(TypeError, match=r"^\[meshgrid\] tensors: expected tensors, got float$"):
        rl.meshgrid(1.5)


def test_dimensions_may_be_numbers_of_numpy():
    x, one = rl.ones(2, 3), np.int64(1)
    assert x.prod(one).shape == (2,) and x.flip(one).shape == (2, 3) and x.roll(one, one).shape == (2, 3)
    assert x.movedim(one, np.int32(0)).shape == (3, 2) and x.tile(np.int64(2)).shape == (2, 6)
    assert x.logsumexp(one).shape == (2,) and rl.reshape(x, np.int64(6)).shape == (6,)


def test_a_diagonal_that_fits_no_memory_is_refused_before_its_parts_are_made():
    with rl.count() as c, pytest.raises(rl.OutOfMemoryError):
        rl.diag(rl.ones(1, dtype="bool"), 2 * 10**7)
    assert c.bytes_allocated < 10**6


def test_a_bool_of_numpy_is_a_number_where_one_of_python_is():
    x, index = rl.tensor([1.0, 2.0]), rl.tensor([0, 1])
    for yes in (True, np.True_):
        assert rl.lerp(x, x + 1, yes).tolist() == [2.0, 3.0] and x.clip(yes).tolist() == [1.0, 2.0]
        assert x.scatter(0, index, yes).tolist() == x.new_full((2,), yes).tolist() == [1.0, 1.0]
        assert x.index_add(0, index, x, alpha=yes).tolist() == x.add(x, alpha=yes).tolist() == [2.0, 4.0]


X, V = rl.ones(2, 3), rl.ones(3)


def without_values():
    """Made when it is needed, because other tests count what a meta device holds."""
    return rl.ones(2, 3, device="meta:H200")


RAISED = {  # what a docstring names, and a call that raises it
    "addmm": (ValueError, lambda: rl.addmm(V[:2], X, X)),
    "bernoulli": (ValueError, lambda: rl.bernoulli(V * 2)),
    "bincount": (ValueError, lambda: rl.bincount(X.long())),
    "bmm": (ValueError, lambda: rl.bmm(X[None], X[None])),
    "broadcast_to": (ValueError, lambda: rl.broadcast_to(X, (3, 2))),
    "count_nonzero": (ValueError, lambda: rl.count_nonzero(X, 2)),
    "diag": (ValueError, lambda: rl.diag(X[None])),
    "dot": (ValueError, lambda: rl.dot(V, V[:2])),
    "equal": (ValueError, lambda: rl.equal(without_values(), without_values())),
    "finfo": (ValueError, lambda: rl.finfo("bool")),
    "flip": (ValueError, lambda: rl.flip(X, 2)),
    "Generator": (ValueError, lambda: rl.Generator("tpu")),
    "hstack": (ValueError, lambda: rl.hstack([X, X.T])),
    "iinfo": (ValueError, lambda: rl.iinfo("half")),
    "index_add": (ValueError, lambda: rl.index_add(X, 0, rl.tensor([7]), X[:1])),
    "logical_and": (ValueError, lambda: rl.logical_and(V, V[:2])),
    "logical_or": (ValueError, lambda: rl.logical_or(V, V[:2])),
    "logical_xor": (ValueError, lambda: rl.logical_xor(V, V[:2])),
    "logsumexp": (ValueError, lambda: rl.logsumexp(X, 2)),
    "masked_select": (ValueError, lambda: rl.masked_select(without_values(), without_values() > 0)),
    "median": (ValueError, lambda: rl.median(X, 2)),
    "mm": (ValueError, lambda: rl.mm(X, X)),
    "movedim": (ValueError, lambda: rl.movedim(X, 0, 2)),
    "multinomial": (ValueError, lambda: rl.multinomial(-V, 1)),
    "mv": (ValueError, lambda: rl.mv(X, V[:2])),
    "narrow": (ValueError, lambda: rl.narrow(X, 1, 2, 2)),
    "outer": (ValueError, lambda: rl.outer(X, V)),
    "permute": (ValueError, lambda: rl.permute(X, (0, 0))),
    "prod": (ValueError, lambda: rl.prod(X, 2)),
    "randperm": (ValueError, lambda: rl.randperm(-1)),
    "repeat": (ValueError, lambda: X.repeat(-1, 1)),
    "reshape": (ValueError, lambda: rl.reshape(X, 4)),
    "roll": (ValueError, lambda: rl.roll(X, 1, 2)),
    "round": (ValueError, lambda: rl.round(X > 0)),
    "scatter": (ValueError, lambda: rl.scatter(X, 0, rl.tensor([[0], [5]]), X)),
    "select": (IndexError, lambda: rl.select(X, 0, 5)),
    "swapaxes": (ValueError, lambda: rl.swapaxes(X, 0, 2)),
    "t": (ValueError, lambda: rl.t(X[None])),
    "tile": (ValueError, lambda: rl.tile(X, -1)),
    "trace": (ValueError, lambda: rl.trace(V)),
    "transpose": (ValueError, lambda: rl.transpose(X, 0, 2)),
    "unbind": (ValueError, lambda: rl.unbind(X, 2)),
    "unique": (ValueError, lambda: rl.unique(without_values())),
    "vstack": (ValueError, lambda: rl.vstack([X, V[:2]])),
}
ELSEWHERE = {"as_tensor", "from_numpy", "meshgrid"}  # other tests raise what these name


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: X.flip(dims=(0,)), "[flip] dims: no such argument; did you mean *dims? expected (x, *dims)"),
        (lambda: rl.dot(V, other=V), "[dot] other: no such argument; did you mean b? expected (a, b)"),
        (lambda: rl.randperm(3, seed=1), "[randperm] seed: no such argument; expected (n, *, generator=None, device='"),
        (
            lambda: X.new_zeros(2, out=X),
            "[new_zeros] out: no such argument; write y.copy_(x + 1)",
        ),
        (
            lambda: X.var(unbiased=False),
            "[var] unbiased: no such argument; write x.var(correction=0)",
        ),
    ],
)
def test_an_argument_that_is_not_there_is_named(call, text):
    with pytest.raises(TypeError, match=f"^{re.escape(text)}"):
        call()


@pytest.mark.parametrize("name", RAISED)
def test_what_a_docstring_names_is_raised(name):
    error, call = RAISED[name]
    assert error.__name__ in inspect.getdoc(getattr(composed, name, rl.Tensor.repeat)).partition("Raises")[2]
    with pytest.raises(error):
        call()


def test_every_docstring_that_names_an_error_of_its_own_has_a_call():
    docs = {name: inspect.getdoc(getattr(composed, name)).partition("Raises\n")[2] for name in composed.__all__}
    assert {name for name, text in docs.items() if "ValueError" in text} - ELSEWHERE == set(RAISED)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rl.diag(X, "a"), lambda: rl.diag(X, 1.5), lambda: rl.round(X, decimals=1.5), lambda: rl.roll(X, 1.5),
        lambda: rl.roll(X, 1, "a"), lambda: rl.tile(X, 2.5), lambda: X.repeat("a", 1), lambda: rl.flip(X, 1.5),
        lambda: rl.narrow(X, 0, 0.5, 1), lambda: rl.select(X, 0, "a"), lambda: rl.movedim(X, "a", 0),
        lambda: rl.lerp(X, X, "a"), lambda: rl.index_add(X, 0, V.long(), X, alpha="a"), lambda: rl.prod(X, 1.0),
        lambda: rl.addmm(X, X, X.T, beta=None), lambda: rl.bincount(V.long(), minlength=1.5), lambda: X.median((0,)),
        lambda: rl.bincount(V.long(), [1, 2, 3]), lambda: rl.logsumexp(X, None), lambda: rl.count_nonzero(X, "a"),
        lambda: rl.scatter(X, 0, V.long()[None], "a"), lambda: rl.multinomial(V, 1.5), lambda: rl.randperm(2.5),
        lambda: rl.broadcast_to(X, 3), lambda: rl.permute(X, 3), lambda: rl.reshape(X, "a"), lambda: X.view_as(3),
        lambda: X.expand_as([1]), lambda: X.new_full(3, 1), lambda: X.clip("a"), lambda: rl.nan_to_num(X, "a"),
    ],
)  # fmt: skip
def test_an_argument_of_another_kind_is_named(call):
    with pytest.raises(TypeError, match=r"^\[\w+\] (\w+: )?expected "):
        call()
