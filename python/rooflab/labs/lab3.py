"""What Lab 3 gives its students: attention in float64 to compare with, a sweep over sizes, and published numbers.

Shapes: Q (B, L_q, d), K and V (B, L_kv, d). Times are milliseconds, memory is in bytes or MiB (2^20 bytes).
"""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.testing import to_float64

__all__ = [
    "PUBLISHED_NAIVE",
    "PUBLISHED_SOURCE",
    "Sweep",
    "attention_float64",
    "attention_gradients_float64",
    "sweep",
]

PUBLISHED_SOURCE = (
    "a published solution of Stanford CS336 (2025), assignment 2: attention written out in PyTorch, fp32, "
    "B = 8, one head, NVIDIA A800 80 GB"
)
_LENGTHS, _HEAD_SIZES = (256, 1024, 4096, 8192, 16384), (16, 32, 64, 128)
_PUBLISHED = {
    "forward_ms": """
        0.61 0.61 0.62 0.61   0.85 0.87 0.91 0.98   7.29 7.53 7.99 8.98   26.4 27.3 29.3 33.3
        105.4 109.5 117.2 132.1""",
    "backward_ms": """
        1.03 0.97 0.96 0.97   1.85 1.87 1.92 2.03   19.8 20.0 20.5 21.6   72.8 73.6 75.7 79.9
        290.6 294.2 301.9 317.1""",
    "held_mib": """
        23.1 23.8 25.4 28.6   116.3 119.3 125.4 137.6   1580.5 1592.5 1616.6 1664.8   6248.8 6272.8 6320.8 6417.0
        24897.3 24945.3 25041.3 25233.5""",
}


def _published() -> dict[tuple[int, int], dict[str, float]]:
    columns = {name: iter(map(float, text.split())) for name, text in _PUBLISHED.items()}
    return {(L, d): {name: next(column) for name, column in columns.items()} for L in _LENGTHS for d in _HEAD_SIZES}


PUBLISHED_NAIVE = _published()
"""Published figures by (L, d): ``"forward_ms"``, ``"backward_ms"`` and ``"held_mib"``, MiB in use before backward."""


def _scores(Q: np.ndarray, K: np.ndarray, is_causal: bool) -> np.ndarray:
    scores = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])
    if is_causal:
        L_q, L_kv = scores.shape[-2:]
        scores[..., np.arange(L_kv) > np.arange(L_q)[:, None] + L_kv - L_q] = -np.inf
    return scores


def attention_float64(Q: Any, K: Any, V: Any, is_causal: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Attention as the formula stands, in NumPy and float64.

    Parameters
    ----------
    Q, K, V : Tensor or array
        (B, L_q, d), (B, L_kv, d), (B, L_kv, d).
    is_causal : bool
        Whether query i sees only the keys j <= i + L_kv - L_q. Needs L_q <= L_kv.

    Returns
    -------
    O, L : numpy.ndarray
        (B, L_q, d), and the log-sum-exp of each row of scores, (B, L_q).

    Examples
    --------
    >>> O, L = attention_float64(np.zeros((1, 2, 4)), np.zeros((1, 3, 4)), np.ones((1, 3, 4)))
    >>> float(O[0, 0, 0]), round(float(L[0, 0]), 3)
    (1.0, 1.099)
    """
    Q, K, V = map(to_float64, (Q, K, V))
    L = np.logaddexp.reduce(scores := _scores(Q, K, is_causal), axis=-1)
    return np.exp(scores - L[..., None]) @ V, L


def attention_gradients_float64(
    Q: Any, K: Any, V: Any, dO: Any, is_causal: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gradients of ``sum(O * dO)`` with respect to Q, K and V, in NumPy and float64.

    Parameters
    ----------
    Q, K, V, is_causal
        As in `attention_float64`.
    dO : Tensor or array
        What comes from above, (B, L_q, d).

    Returns
    -------
    dQ, dK, dV : numpy.ndarray
        Shaped as Q, K, V.

    Examples
    --------
    >>> x = np.ones((1, 2, 4))
    >>> dQ, dK, dV = attention_gradients_float64(x, x, x, x)
    >>> abs(float(dQ[0, 0, 0])) < 1e-12, round(float(dV[0, 0, 0]), 12)
    (True, 1.0)
    """
    Q, K, V, dO = map(to_float64, (Q, K, V, dO))
    scores = _scores(Q, K, is_causal)
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    dP = dO @ V.swapaxes(-1, -2)
    dS = weights * (dP - (weights * dP).sum(-1, keepdims=True)) / math.sqrt(Q.shape[-1])
    return dS @ K, dS.swapaxes(-1, -2) @ Q, weights.swapaxes(-1, -2) @ dO


@dataclass
class Sweep:
    """What `sweep` measured: the figures of each (L, d), or in words why there are none."""

    rows: dict[tuple[int, int], Mapping[str, float] | str] = field(default_factory=dict)

    def values(self, name: str, d: int) -> dict[int, float | None]:
        """One figure by L at head size `d`, None where it was not measured: a line of a plot."""
        cells = {L: row for (L, size), row in self.rows.items() if size == d}
        return {L: None if isinstance(row, str) else row[name] for L, row in cells.items()}

    def __str__(self) -> str:
        lines = [f"{'':11}  {'forward ms':^17}  {'backward ms':^17}  {'MiB before backward':^19}"]
        lines.append(f"{'L':>6} {'d':>4} " + 2 * f" {'here':>9} {'A800':>8}" + f" {'here':>9} {'A800':>10}")
        for (L, d), row in self.rows.items():
            here = ["-"] * 3
            if not isinstance(row, str):
                here = [f"{row['forward_ms']:.2f}", f"{row['backward_ms']:.2f}", f"{row['held_bytes'] / 2**20:.1f}"]
            there = PUBLISHED_NAIVE.get((L, d), dict.fromkeys(_PUBLISHED, ""))
            pairs = zip(here, there.values(), (8, 8, 10), strict=True)
            line = f"{L:6} {d:4} " + "".join(f" {ours:>9} {theirs:>{width}}" for ours, theirs, width in pairs)
            lines.append(f"{line}  {row}" if isinstance(row, str) else line)
        return "\n".join([*lines, *textwrap.wrap(f"A800: {PUBLISHED_SOURCE}.", 96)])


def sweep(
    row: Callable[[int, int], Mapping[str, float | None]],
    lengths: Sequence[int] = _LENGTHS,
    head_sizes: Sequence[int] = _HEAD_SIZES,
    *,
    needs: Callable[[int, int], int],
    device: str = "cpu",
    budget_s: float = 10.0,
) -> Sweep:
    """Call ``row(L, d)`` for every size that memory and time allow, the small ones first.

    Parameters
    ----------
    row : callable
        Gives the figures of one size by name; None for a figure says that memory ran out.
    lengths, head_sizes : sequence of int
        L and d.
    needs : callable
        ``needs(L, d)``: bytes that it takes at its peak. What does not fit in 90 % of the free memory is left out.
    device : str
        Whose memory counts.
    budget_s : float
        Seconds for everything. A size is left out when, by (L ratio)^2, the time that the next smaller one took says
        that it would not fit in what is left.

    Examples
    --------
    >>> made = sweep(lambda L, d: {"forward_ms": 1.0}, [256], [16], needs=lambda L, d: 0)
    >>> made.values("forward_ms", 16)
    {256: 1.0}
    """
    made, took, end = Sweep(), {}, time.monotonic() + budget_s
    for L in lengths:
        for d in head_sizes:
            shorter = [(length, seconds) for (length, size), seconds in took.items() if size == d]
            expected_s = max((seconds * (L / length) ** 2 for length, seconds in shorter[-1:]), default=0.0)
            if needs(L, d) > 0.9 * rl.memory.available(device):
                made.rows[L, d] = f"does not fit: needs {needs(L, d) / 2**30:.1f} GiB at its peak"
            elif (shorter or min(lengths) == L) and time.monotonic() + expected_s <= end:
                start = time.monotonic()
                figures = row(L, d)
                full = any(value is None for value in figures.values())
                made.rows[L, d] = "out of memory" if full else figures
                took[L, d] = time.monotonic() - start
            else:
                made.rows[L, d] = f"left out: more than the budget of {budget_s:g} s"
    return made
