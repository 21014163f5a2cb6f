"""A language model of Lab 2 with norms and SwiGLU in single operations, and what it costs.

A function of tensors alone, so that `rl.compile` can record it. Letters as in `lab2`. `run_lm`, `run_comparison` and
`run_report` call a student's function; `measure` gets them as `through`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rooflab as rl

__all__ = [
    "WrittenOutLM", "as_written", "run_comparison", "run_lm", "run_report", "score_tensors", "steady",
]  # fmt: skip


class WrittenOutLM:
    """Norms and SwiGLU in single operations, attention from products and a softmax, two heads with D_h = 16; V = 100.

    Parameters
    ----------
    num_layers : int
        n.
    length : int
        L.
    weights : sequence of Tensor, optional
        Weights of another model of these sizes. Default: random ones, the same every time.

    Attributes
    ----------
    tensors : list of Tensor
        Mask, angles, and the weights, which require grad.

    Examples
    --------
    >>> lm = WrittenOutLM(num_layers=1, length=4)
    >>> lm(rl.zeros(2, 4, dtype="int64"), *lm.tensors).shape
    (2, 4, 100)
    """

    def __init__(self, num_layers: int = 2, length: int = 16, weights: Sequence[rl.Tensor] = ()) -> None:
        self.heads, self.layers = 2, num_layers
        mask = rl.triu(rl.full((length, length), float("-inf")), 1)
        angles = rl.nn.RotaryEmbedding(1e4, 32 // self.heads, dtype="float32")(0, length)
        self.weights = list(weights) or _random_weights(num_layers)
        self.tensors = [mask, *angles, *self.weights]

    def __call__(self, ids: rl.Tensor, mask: rl.Tensor, cos: rl.Tensor, sin: rl.Tensor, *weights: rl.Tensor) -> Any:
        """Logits (B, L, V) of ids (B, L)."""
        x = rl.embedding(ids, weights[0])
        for layer in range(self.layers):
            x = self._block(x, mask, cos, sin, weights[1 + 9 * layer : 10 + 9 * layer])
        return _rms_norm(x, weights[-2]) @ weights[-1].mT

    def _block(
        self, x: rl.Tensor, mask: rl.Tensor, cos: rl.Tensor, sin: rl.Tensor, weights: Sequence[Any]
    ) -> rl.Tensor:
        ln1, wq, wk, wv, wo, ln2, w1, w3, w2 = weights
        B, L, D = x.shape
        h = _rms_norm(x, ln1)
        q, k, v = ((h @ w.mT).reshape(B, L, self.heads, D // self.heads).transpose(1, 2) for w in (wq, wk, wv))
        scores = rl.rope(q, cos, sin) @ rl.rope(k, cos, sin).mT * (D // self.heads) ** -0.5
        out = rl.softmax(scores + mask) @ v
        x = x + out.transpose(1, 2).reshape(B, L, D) @ wo.mT
        h = _rms_norm(x, ln2)
        gate = h @ w1.mT
        return x + (gate * rl.sigmoid(gate) * (h @ w3.mT)) @ w2.mT


def _random_weights(num_layers: int) -> list[rl.Tensor]:
    D, inner, V = 32, 64, 100
    rl.manual_seed(0)
    layer = [(D,), (D, D), (D, D), (D, D), (D, D), (D,), (inner, D), (inner, D), (D, inner)]
    shapes: list[tuple[int, ...]] = [(V, D), *(layer * num_layers), (D,), (V, D)]
    weights = [rl.ones(*s) if len(s) == 1 else rl.randn(*s) * s[-1] ** -0.5 for s in shapes]
    return [weight.requires_grad_() for weight in weights]


def _rms_norm(x: rl.Tensor, gain: rl.Tensor) -> rl.Tensor:
    return x * rl.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * gain


def as_written(lm: WrittenOutLM) -> WrittenOutLM:
    """The model itself, in place of a compiled function."""
    return lm


def run_lm(
    compile_lm: Callable[..., Any], calls: int, num_layers: int, ids: rl.Tensor, *weights: rl.Tensor
) -> rl.Tensor:
    """Call what `compile_lm` makes of a model with these weights `calls` times; returns the last logits.

    Examples
    --------
    >>> lm, ids = WrittenOutLM(1, 4), rl.zeros(2, 4, dtype="int64")
    >>> run_lm(as_written, 2, 1, ids, *lm.weights).shape
    (2, 4, 100)
    """
    lm = WrittenOutLM(num_layers, ids.shape[-1], weights)
    function = compile_lm(lm)
    if not callable(function):
        raise TypeError(f"compile_lm has to return a function, not a {type(function).__name__}")
    for _ in range(calls - 1):
        function(ids, *lm.tensors)
    return function(ids, *lm.tensors)


def steady(once: Any, twice: Any) -> dict[str, int]:
    """Counts from the gradients of one and of two calls in `run_lm`: the products and MACs of the second forward pass
    with its backward pass, and all launches of two calls and of their backward pass. For launches no difference is
    taken, because useless ones in the one call would make it small.
    """
    forward, backward = (once.forward, twice.forward), twice.backward
    products = [one.by_op.get("matmul", 0) for one in (*forward, backward)]
    return {
        "launches": forward[1].launches + backward.launches,
        "launches of the backward pass": backward.launches,
        "products": products[1] - products[0] + products[2],
        "MACs": forward[1].macs - forward[0].macs + backward.macs,
    }


def run_comparison(compare_lm: Callable[..., Any], num_layers: int, B: int, L: int) -> Any:
    """What `compare_lm` says of a written-out model."""
    return compare_lm(WrittenOutLM(num_layers, L), rl.zeros(B, L, dtype="int64"))


def score_tensors(attention: Callable[..., Any], B: int, L: int, d: int) -> int:
    """How many tensors of B L^2 numbers the second forward pass of `attention` allocates.

    Examples
    --------
    >>> score_tensors(lambda q, k, v, mask: rl.softmax(q @ k.mT) @ v, 1, 32, 4)
    2
    """
    rl.manual_seed(1)
    q, k, v = (rl.randn(B, L, d) for _ in "qkv")
    mask = rl.triu(rl.full((L, L), float("-inf")), 1)
    attention(q, k, v, mask)
    with rl.memory.record() as timeline:
        out = attention(q, k, v, mask)
    del out
    taken = (one for one in timeline.allocations if one.start_us is not None and not one.is_scratch)
    return sum(one.bytes >= 4 * B * L * L for one in taken)


def run_report(timing_report: Callable[..., Any], rows: list[dict[str, Any]], *about: Any) -> dict[str, Any]:
    """The table that `timing_report` adds to a report: head, rows and caption as text, and the page's HTML."""
    from rooflab.labs.lab2_report import Report

    report = timing_report(Report("a report"), rows, *about)
    if not isinstance(report, Report):
        raise TypeError(f"timing_report has to return the report, not a {type(report).__name__}")
    lines = [line for line in report.markdown().split("\n") if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    caption = next((line for line in report.markdown().split("\n") if line.startswith("*")), "")
    return {"head": cells[0] if cells else [], "rows": cells[1:], "caption": caption, "html": report.html()}
