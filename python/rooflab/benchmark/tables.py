"""The tables beside the rungs, made from committed results: `python -m rooflab.benchmark.tables` in a checkout.

A file of rungs (`csrc/kernels/<op>/<op>_ladder.cpp`) holds two marker lines; the first one names the ops whose figures
stand between them. Each file of `assets/bench` gives one table: its machine, date and versions, then one line per rung.
The ops' specs say which cases are shown (`OpSpec.tables`); `rooflab bench all --json assets/bench/MACHINE.json`
measures them, once the file of an older day is removed.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import rooflab as rl
from rooflab.specs import all_specs

from ..files import replacing
from ..results import Table
from .ladder import Row
from .results import Result, load

_BLOCK = re.compile(
    r"(?P<begin>^// \[measured (?P<ops>[\w, ]+)\][^\n]*\n)(?P<tables>(?://[^\n]*\n)*?)(?P<end>// \[end measured\]\n)",
    re.MULTILINE,
)
_COPY = "copy, GB/s"
_OVER_100 = "Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy."
_CASE_WIDTH = 12  # at which the name of a case is wrapped


def shown(text: str) -> list[str]:
    """The ops whose tables a file holds.

    Examples
    --------
    >>> shown("// [measured add, exp] by rooflab bench\\n// [end measured]\\n")
    ['add', 'exp']
    """
    return [op for block in _BLOCK.finditer(text) for op in block["ops"].split(", ")]


def rewritten(text: str, results: Iterable[Result]) -> str:
    """A file's text with new tables; all else stays.

    Raises
    ------
    ValueError
        If a result names a rung that the op does not have.
    """
    results = list(results)

    def tables(block: re.Match[str]) -> str:
        lines = [line for result in results for line in table(block["ops"].split(", "), result)]
        return block["begin"] + "".join(f"// {line}".rstrip() + "\n" for line in lines) + block["end"]

    return _BLOCK.sub(tables, text)


def table(ops: Sequence[str], result: Result) -> list[str]:
    """The lines of one machine's table: where it comes from, the cases as columns, then one line per rung.

    Parameters
    ----------
    ops : sequence of str
        Ops that share a ladder.
    result : Result
        What was measured. Cases in which copying competed are shown as a share of the copy's speed.

    Raises
    ------
    ValueError
        If the result names a rung that the op does not have.
    """
    kind = result.machine["kind"]
    columns = []
    for op in ops:
        for case in all_specs()[op].tables.get(kind, ()):
            rows = {r.contender: r for r in result.rows if r.op == op and f"{r.case} {r.dtype}" == case}
            if rows:
                columns.append(_column([op] if len(ops) > 1 else [], rows, kind))
    if not columns:
        return []
    rungs = sorted((v.name for v in rl.variants(ops[0], kind)), key=lambda name: (name == "library", name))
    measured = {name: None for _, cells in columns for name in cells}  # in the order of the rows
    peers = [name for name in measured if result.peer and name.split()[0] == result.peer.split()[0]]
    if unknown := measured.keys() - {*rungs, *peers, _COPY}:
        raise ValueError(
            f"[bench] {result.machine['name']}: {ops[0]} has no rung {', '.join(sorted(unknown))}; measure again"
        )
    names = [*rungs, *peers, *([_COPY] if _COPY in measured else [])]
    head = ["", *("\n".join(heading) for heading, _ in columns)]
    lines = [[name, *(cells.get(name, "-") for _, cells in columns)] for name in names]
    note = [_OVER_100] if _COPY in measured else []
    return [_origin(result) + ":", *(f"  {line}" for line in [*Table(head, lines).lines(), *note])]


def _column(prefix: list[str], rows: dict[str, Row], kind: str) -> tuple[list[str], dict[str, str]]:
    """One case: the lines of its heading, the last one its unit, and the figures by contender."""
    some = next(iter(rows.values()))
    contenders = {name: row for name, row in rows.items() if not name.endswith("copy")}
    if "copy" in rows:
        unit = "% of copy"
        figures = {name: 100 * row.ratios["copy"][0] for name, row in contenders.items()}
        figures[_COPY] = rows["copy"].gb_s
    else:
        unit, scale = ("GFLOP/s", 1000) if kind == "cpu" else ("TFLOP/s", 1)
        figures = {name: scale * row.tflop_s for name, row in contenders.items()}
    heading = [*prefix, *textwrap.wrap(some.case, _CASE_WIDTH), some.dtype, unit]
    return heading, {name: f"{v:.0f}" if v >= 9.95 else f"{v:.2g}" for name, v in figures.items()}


def _origin(result: Result) -> str:
    """The machine, the date and the versions in one line."""
    machine = result.machine
    if machine["kind"] == "cpu":
        where = [machine["name"], f"{machine['threads']} threads", machine["isa"]]
    else:
        where = [machine["name"], f"driver {machine['driver']}", f"CUDA {machine['cuda']}"]
    return ", ".join([*where, result.date, f"rooflab {result.version}", *([result.peer] if result.peer else [])])


def ladders(root: Path) -> list[Path]:
    """The files of a checkout that name rungs."""
    return sorted((root / "csrc" / "kernels").rglob("*_ladder.cpp"))


def committed(root: Path) -> list[Result]:
    """The results of a checkout, in the order of their files' names."""
    return [load(path) for path in sorted((root / "assets" / "bench").glob("*.json"))]


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrite the tables of a checkout and name the files that changed; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m rooflab.benchmark.tables", description=main.__doc__)
    parser.add_argument("root", type=Path, nargs="?", default=Path(), help="the checkout (default: here)")
    root = parser.parse_args(argv).root
    try:
        results = committed(root)
        if not results:
            raise ValueError(f"[bench] {root / 'assets' / 'bench'} holds no results")
        for path in ladders(root):
            old = path.read_text(encoding="utf-8")
            new = rewritten(old, results)
            if new != old:
                with replacing(path) as unfinished:
                    unfinished.write_text(new, encoding="utf-8")
                print(path)
    except (ValueError, OSError) as error:
        print(f"rooflab.benchmark.tables: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
