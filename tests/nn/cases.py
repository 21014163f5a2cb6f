"""Functions made of ops: for each of them, calls on NumPy arrays and the same in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import rooflab as rl


@dataclass(frozen=True)
class Case:
    """`call(*tensors)` must equal `reference(*arrays)`. Float64 arrays take the tested dtype, others keep their own."""

    name: str
    call: Callable
    reference: Callable
    arrays: tuple
    differentiable: bool = True
    result_dtype: str = ""  # if empty, that of the operands

    def tensors(self, dtype, device, requires_grad=False):
        made = []
        for array in self.arrays:
            is_operand = array.dtype == np.float64
            x = rl.tensor(array, dtype=dtype if is_operand else None, device=device)
            made.append(x.requires_grad_() if is_operand and requires_grad else x)
        return made


def log_softmax(x, dim):
    shifted = x - x.max(dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))


def losses(logits, target, ignore_index=-100):
    """(N,), by the definition."""
    counts = target != ignore_index
    rows = log_softmax(logits, 1)[np.arange(len(target)), np.where(counts, target, 0)]
    return np.where(counts, -rows, 0)


def pixel_losses(logits, target):
    chosen = np.take_along_axis(log_softmax(logits, 1), target[:, None], 1)
    return -chosen[:, 0].mean()


def cases():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 4, 6))
    weight, bias = rng.standard_normal((5, 6)), rng.standard_normal(5)
    logits, target = rng.standard_normal((9, 7)) * 4, rng.integers(0, 7, 9)
    some = target.copy()
    some[[1, 4]] = -100
    mask = rng.random((4, 6)) < 0.4
    images, labels = rng.standard_normal((2, 5, 3, 4)), rng.integers(0, 5, (2, 3, 4))

    yield Case("linear", rl.linear, lambda x, w, b: x @ w.T + b, (x, weight, bias))
    yield Case("linear-no-bias", rl.linear, lambda x, w: x @ w.T, (x[0, 0], weight))
    for dim in (-1, 0, 1):
        yield Case(
            f"log_softmax{dim}", lambda x, d=dim: rl.log_softmax(x, d), lambda x, d=dim: log_softmax(x, d), (5 * x,)
        )
    loss = rl.cross_entropy
    yield Case("cross_entropy", loss, lambda x, t: losses(x, t).mean(), (logits, target))
    yield Case("cross_entropy-int32", loss, lambda x, t: losses(x, t).mean(), (logits, target.astype(np.int32)))
    yield Case("cross_entropy-ignored", loss, lambda x, t: losses(x, t).sum() / 7, (logits, some))
    yield Case(
        "cross_entropy-index",
        lambda x, t: loss(x, t, ignore_index=3),
        lambda x, t: losses(x, t, 3).sum() / (t != 3).sum(),
        (logits, target),
    )
    yield Case(
        "cross_entropy-sum", lambda x, t: loss(x, t, reduction="sum"), lambda x, t: losses(x, t).sum(), (logits, some)
    )
    yield Case("cross_entropy-none", lambda x, t: loss(x, t, reduction="none"), losses, (logits, some))
    yield Case(
        "cross_entropy-one", loss, lambda x, t: losses(x[None], t[None])[0], (logits[0], target[0:1].reshape(()))
    )
    yield Case("cross_entropy-pixels", loss, pixel_losses, (images, labels))

    for name, fold in (("var", np.var), ("std", np.std)):
        of = getattr(rl, name)
        yield Case(name, of, lambda x, f=fold: f(x, ddof=1), (x,))
        yield Case(
            f"{name}-rows",
            lambda x, f=of: f(x, -1, correction=0, keepdim=True),
            lambda x, f=fold: f(x, -1, keepdims=True),
            (x + 30,),
        )
        yield Case(f"{name}-two-dims", lambda x, f=of: f(x, (0, 2)), lambda x, f=fold: f(x, (0, 2), ddof=1), (x,))
    bools = {"differentiable": False, "result_dtype": "bool"}
    some_zero = np.where(rng.random((3, 4, 6)) < 0.2, 0.0, 1.5)
    for name, fold in (("all", np.all), ("any", np.any)):
        of = getattr(rl, name)
        yield Case(name, of, lambda x, f=fold: f(x), (some_zero,), **bools)
        yield Case(f"{name}-rows", lambda x, f=of: f(x, (0, 1)), lambda x, f=fold: f(x, (0, 1)), (some_zero,), **bools)
        yield Case(
            f"{name}-bool",
            lambda x, f=of: f(x, -1, keepdim=True),
            lambda x, f=fold: f(x, -1, keepdims=True),
            (mask,),
            **bools,
        )
        yield Case(f"{name}-none", lambda x, f=of: f(x, 0), lambda x, f=fold: f(x, 0), (np.zeros((0, 3)),), **bools)
    special = np.array([1.0, -np.inf, np.nan, np.inf, 0.0])
    for name in ("isnan", "isinf", "isfinite"):
        yield Case(name, getattr(rl, name), getattr(np, name), (special,), **bools)
        yield Case(f"{name}-int", getattr(rl, name), getattr(np, name), (np.arange(3),), **bools)

    bounded = np.array([-2.0, -1.0, 0.25, 1.0, 3.0, np.nan])
    yield Case("clamp", lambda x: rl.clamp(x, -1.25, 1.5), lambda x: np.clip(x, -1.25, 1.5), (bounded[:5],))
    yield Case(
        "clamp-nan", lambda x: rl.clamp(x, min=0), lambda x: np.clip(x, 0, None), (bounded,), differentiable=False
    )
    yield Case("clamp-max", lambda x: x.clamp(max=0.5), lambda x: np.clip(x, None, 0.5), (x,))
    yield Case("masked_fill", lambda x, m: rl.masked_fill(x, m, -2.5), lambda x, m: np.where(m, -2.5, x), (x, mask))

    yield Case("stack", lambda a, b: rl.stack([a, b]), lambda a, b: np.stack([a, b]), (x, y))
    yield Case("stack-last", lambda a, b: rl.stack([a, b, a], -1), lambda a, b: np.stack([a, b, a], -1), (x, y))
    yield Case("split", lambda x: x.split(4, -1)[1], lambda x: x[..., 4:], (x,))
    yield Case("split-sizes", lambda x: rl.split(x, [1, 3, 2], 2)[1], lambda x: x[..., 1:4], (x,))
    yield Case("chunk", lambda x: rl.chunk(x, 2, 1)[0], lambda x: x[:, :2], (x,))
    yield Case("repeat_interleave", lambda x: rl.repeat_interleave(x, 3, 1), lambda x: np.repeat(x, 3, 1), (x,))
    yield Case("repeat_interleave-all", lambda x: x.repeat_interleave(2), lambda x: np.repeat(x, 2), (x,))
    for equation, *arrays in (
        ("ij,jk->ik", x[0], y[0].T),
        ("bij,bkj->bik", x, y),
        ("bij,bij->bij", x, y),
        ("bij,bij->b", x, y),
        ("ij,kl", x[0, :2], y[0, :3]),
        ("bij->jb", x),
        ("bij->", x),
        ("bij,jk,b->ki", x, weight.T, bias[:3]),
        ("i,i->", bias, bias),
        ("ij,k->i", x[0], bias),
        ("bhqd,bhkd->bhqk", x[None], y[None]),
    ):
        yield Case(
            f"einsum {equation}",
            lambda *t, e=equation: rl.einsum(e, *t),
            lambda *a, e=equation: np.einsum(e, *a),
            tuple(np.ascontiguousarray(a) for a in arrays),
        )


CASES = {case.name: case for case in cases()}
