"""What Lab 3 gives its students: a sweep over sizes, and published numbers.

L is a length, d a head size. Times are milliseconds, memory is in bytes or MiB (2^20 bytes).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rooflab import Tensor, attention
from rooflab.autograd import grad
from rooflab.grading.measure.kernel import replaced_by
from rooflab.results import ResultMixin, Table

__all__ = ["PUBLISHED_NAIVE", "PUBLISHED_SOURCE", "Sweep", "far_apart", "run_both_passes", "sweep", "without_kernel"]

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


@dataclass
class Sweep(ResultMixin):
    """What `sweep` measured, and what it predicts for sizes that it had no time for.

    Attributes
    ----------
    lengths, head_sizes : tuple of int
        L and d.
    rows : dict
        The figures of each (L, d) that was run; None where it ran out of memory.
    predicted : dict
        The figures of each (L, d) that was not run. Times are those of the longest length that was run, times
        (L ratio)^2. Bytes have a part that grows with L and one that grows with L^2, and both follow from the two
        longest lengths that were run.
    """

    lengths: tuple[int, ...]
    head_sizes: tuple[int, ...]
    rows: dict[tuple[int, int], Mapping[str, float] | None] = field(default_factory=dict)
    predicted: dict[tuple[int, int], Mapping[str, float]] = field(default_factory=dict)
    _seconds: dict[int, float] = field(default_factory=dict, repr=False)

    def values(self, name: str, d: int) -> dict[int, float | None]:
        """One figure by L at head size `d`, as measured; None where memory ran out: a line of a plot."""
        return {L: row[name] if row else None for (L, size), row in self.rows.items() if size == d}

    def predictions(self, name: str, d: int) -> dict[int, float]:
        """One figure by L at head size `d`, where it was not run."""
        return {L: row[name] for (L, size), row in self.predicted.items() if size == d}

    def _take(self, row: Callable[[int, int], Mapping[str, float | None]], L: int, d: int, end: float) -> None:
        """Run one size, or predict it from the longest of its head size that was run."""
        longest = max((length for length, size in self.rows if size == d), default=None)
        known = self.rows[longest, d] if longest else {}
        growth = (L / longest) ** 2 if longest else 0.0
        if known is None:
            self.rows[L, d] = None  # a longer one needs even more
        elif time.monotonic() + growth * self._seconds.get(d, 0.0) <= end:
            start = time.monotonic()
            figures = row(L, d)
            self._seconds[d] = time.monotonic() - start
            measured = {name: value for name, value in figures.items() if value is not None}
            self.rows[L, d] = measured if len(measured) == len(figures) else None
        elif known:
            self.predicted[L, d] = {name: self._predicted(name, L, d) for name in known}

    def _predicted(self, name: str, L: int, d: int) -> float:
        *shorter, longest = sorted(length for (length, size), row in self.rows.items() if size == d and row)
        per_token = {length: self.rows[length, d][name] / length for length in (*shorter[-1:], longest)}  # type: ignore[index]
        if not shorter or not name.endswith("bytes"):
            return per_token[longest] * L * L / longest
        slope = (per_token[longest] - per_token[shorter[-1]]) / (longest - shorter[-1])
        return L * (per_token[longest] + slope * (L - longest))

    def table(self) -> Table:
        """Measured figures beside the published ones; "~" stands before a prediction."""
        head = ["L", "d"]
        for what in ("forward ms", "backward ms", "held MiB"):
            head += [f"{what}, here", "A800"]
        lines = []
        for L in self.lengths:
            for d in self.head_sizes:
                there = PUBLISHED_NAIVE.get((L, d), {})
                cells = zip(self._here(L, d), _PUBLISHED, strict=True)
                lines.append([L, d, *(cell for here, name in cells for cell in (here, there.get(name, "")))])
        return Table(head, lines, note=f"A800: {PUBLISHED_SOURCE}.")

    def _here(self, L: int, d: int) -> list[str]:
        row, mark = self.rows.get((L, d)), ""
        if (L, d) in self.rows and row is None:
            return ["out of memory"] * 3
        if row is None:
            row, mark = self.predicted.get((L, d)), "~"
        if row is None:
            return [""] * 3
        figures = (row["forward_ms"], row["backward_ms"], row["held_bytes"] / 2**20)
        return [f"{mark}{figure:.{places}f}" for figure, places in zip(figures, (2, 2, 1), strict=True)]

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _table(self) -> Table:
        return self.table()

    def _figures(self) -> Table:
        """A row for each size that was run or predicted; without figures where memory ran out."""
        found = [(sizes, row, False) for sizes, row in self.rows.items()]
        found += [(sizes, row, True) for sizes, row in self.predicted.items()]
        return Table.of(
            {"L": L, "d": d, "is_predicted": is_predicted} | dict(row or {}) for (L, d), row, is_predicted in found
        )


def sweep(
    row: Callable[[int, int], Mapping[str, float | None]],
    lengths: Sequence[int] = _LENGTHS,
    head_sizes: Sequence[int] = _HEAD_SIZES,
    *,
    budget_s: float = 10.0,
) -> Sweep:
    """Call ``row(L, d)`` for every size that time allows, the short ones first.

    Parameters
    ----------
    row : callable
        Gives the figures of one size by name; a figure of None says that memory ran out.
    lengths, head_sizes : sequence of int
        L and d.
    budget_s : float
        Seconds for everything. A size is predicted and not run when the time that the next shorter one took, times
        (L ratio)^2, does not fit in what is left.

    Examples
    --------
    >>> from rooflab.labs.lab3 import sweep
    >>> made = sweep(lambda L, d: {"forward_ms": 1.0}, [256], [16])
    >>> made.values("forward_ms", 16)
    {256: 1.0}
    """
    made, end = Sweep(tuple(lengths), tuple(head_sizes)), time.monotonic() + budget_s
    for L in lengths:
        for d in head_sizes:
            made._take(row, L, d, end)
    return made


def far_apart(L_q: int, L_kv: int, batch: int = 2) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Inputs of causal attention whose scores are 2^22 apart, and the exact results, in fp64 with d = 4.

    Every weight is exactly 0 or 1. In one query all scores are positive and rise along the keys, in the next they are
    negative and fall: a mask of -10,000 is above what a query sees, or does not hide what it must not see.

    Returns
    -------
    (q, k, v, dO), (O, dQ, dK, dV)
        Arrays (B, L, d).

    Examples
    --------
    >>> from rooflab.labs.lab3 import far_apart
    >>> (q, k, v, dO), (O, dQ, dK, dV) = far_apart(2, 2)
    >>> scores = q[0] @ k[0].T / 2
    >>> scores.tolist()
    [[4194304.0, 8388608.0], [-4194304.0, -8388608.0]]
    """
    rows = np.arange(L_q)
    sign, chosen = 1.0 - 2.0 * (rows % 2), np.where(rows % 2 == 0, rows + L_kv - L_q, 0)
    q, k = np.zeros((batch, L_q, 4)), np.zeros((batch, L_kv, 4))
    q[..., 0], k[..., 0] = 2.0**11 * sign, 2.0**12 * (1.0 + np.arange(L_kv))
    v = (np.arange(batch * L_kv * 4) * 7 % 11 - 5.0).reshape(batch, L_kv, 4)
    dO = (np.arange(batch * L_q * 4) * 5 % 9 - 4.0).reshape(batch, L_q, 4)
    dV = np.zeros_like(v)
    for row, key in enumerate(chosen):
        dV[:, key] += dO[:, row]
    return (q, k, v, dO), (v[:, chosen], np.zeros_like(q), np.zeros_like(k), dV)


def run_both_passes(
    function: Callable[..., Tensor], dO: Tensor, q: Tensor, k: Tensor, v: Tensor, *flags: bool
) -> tuple[Tensor, Tensor]:
    """A call of `function` and its backward pass from dO, on the memory of these tensors: the result before the
    backward pass, and after it. `measure.call` gets it as `through`, to see what a pass writes into.

    Examples
    --------
    >>> from rooflab.labs.lab3 import run_both_passes
    >>> import rooflab as rl
    >>> before, after = run_both_passes(rl.attention, *[rl.ones(1, 2, 3)] * 4)
    >>> bool((before == after).all())
    True
    """
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    result = function(*inputs, *flags)
    before = result.detach().clone()
    grad(result, inputs, dO)
    return before, result.detach()


def without_kernel(function: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
    """A call of `function` in which no kernel is launched: `rooflab.attention` computes what a launch of the kernel of
    6.2 would write. `measure.gradients` gets it as `through`, because what a kernel does is not counted.

    Examples
    --------
    >>> from rooflab.labs.lab3 import without_kernel
    >>> import rooflab as rl
    >>> without_kernel(lambda q, k, v, is_causal: rl.attention(q, k, v), *[rl.ones(1, 2, 3)] * 3).shape
    (1, 2, 3)
    """

    def launch(*args: Any) -> None:
        if len(args) != 9:
            raise TypeError(f"the kernel of 6.2 has nine parameters, and is launched with {len(args)} arguments")
        inputs = (x.detach().to("float32") for x in args[:3])
        results = attention(*inputs, is_causal=bool(args[8]), return_lse=True)
        for given, result in zip(args[3:5], results, strict=True):
            given.copy_(result.to(given.dtype))

    with replaced_by(launch):
        return function(q, k, v, is_causal)
