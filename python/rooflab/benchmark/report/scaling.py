"""How time grows with one size: products of N x N matrices, also where a further wave begins, and an MLP."""

from __future__ import annotations

from collections.abc import Sequence

from ...results import Report
from ..calls import Call
from ..lm_results import milliseconds
from .settings import Rows, Settings, source

PRODUCTS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
WAVES = (1024, 1025, 1536, 1537, 1792, 1793, 2048, 2049, 2304, 2560, 2561, 2816, 3072, 3073, 3328, 3584, 3585)
BASE = {"dim": 256, "layers": 4, "batch": 256, "steps": 2}
FACTORS = (1, 2, 3, 4, 5)


def calls(settings: Settings) -> list[Call]:
    """Products of all N, and the MLP with each size once, twice ... five times as large."""
    products = [Call("product", "", (("N", N),), settings.device) for N in sorted({*PRODUCTS, *WAVES})]
    sizes = dict.fromkeys(_grown(name, factor) for name in BASE for factor in FACTORS)
    return [*products, *(Call("mlp", "", size, settings.device) for size in sizes)]


def _grown(name: str, factor: int) -> tuple[tuple[str, int], ...]:
    return tuple((BASE | {name: factor * BASE[name]}).items())


def write(report: Report, rows: Rows) -> None:
    """Products over N, products around sizes that tile a GPU well, and the MLP, in absolute numbers."""
    _write_products(report, rows, PRODUCTS, "each N twice the one before")
    waves = (
        "multiples of 256, and one more. On a GPU a size that needs one tile more may need one wave more of all its "
        "multiprocessors; a model of one knows no waves"
    )
    _write_products(report, rows, WAVES, waves)
    _write_mlp(report, rows)


def _write_products(report: Report, rows: Rows, sizes: Sequence[int], what: str) -> None:
    found = rows.each_call(Call("product", "", (("N", N),), rows.settings.device) for N in sizes)
    lines = []
    for result in found:
        N, ms = result.call.size["N"], result.figures.get("ms")
        cells = (milliseconds(ms), f"{2 * N**3 / ms / 1e9:.4g}") if ms else (result.status, "")
        lines.append((str(N), source(result.call), *cells))
    machines = rows.machines(result.call for result in found)
    said = f"{machines}, float32. Median ms of a product of two N x N matrices, and 2 N^3 FLOPs over it: {what}."
    report.table(("N", "times", "ms", "TFLOP/s"), lines, said)


def _write_mlp(report: Report, rows: Rows) -> None:
    lines, found = [], []
    for name in BASE:
        for factor in FACTORS:
            base, grown = (Call("mlp", "", _grown(name, times), rows.settings.device) for times in (1, factor))
            pair = rows.calls_of([base, grown])
            if len(pair) == 2 and all(result.figures for result in pair):
                found.append(pair[1].call)
                first, ms = (result.figures["ms"] for result in pair)
                cells = (name, str(factor), str(grown.size[name]), source(pair[1].call))
                lines.append((*cells, milliseconds(ms), f"{ms / first:.2f}"))
    base_text = ", ".join(f"{name} = {value}" for name, value in BASE.items())
    said = (
        f"{rows.machines(found)}, float32. An MLP of linear layers and GeLU, forward and backward, of {base_text}; one "
        "of the sizes grows. Median ms of all steps, and its ratio to the base case."
    )
    report.table(("grows", "x", "to", "times", "ms", "ratio"), lines, said)
