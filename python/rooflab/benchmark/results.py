"""Results of `rooflab bench` as a file, with the machine, the day and the versions that they hold for.

    {"machine": {"kind": "cpu", "name": "AMD EPYC 7J13", "threads": 2, "isa": "avx2"},
     "date": "2026-01-31", "version": "0.1.0", "peer": "torch 2.9.1",
     "rows": [{"op": "gelu", "case": "16384x4096", "dtype": "float32", "contender": "v1_simd", ...}, ...]}

`machine` is what `rooflab.machine.identity.provenance` says, `peer` may be null, rows are `ladder.Row`s, one a line.
One file holds what was measured on one day on one machine: figures of two days or two machines never stand in one
table. Several runs of that day may write into it, also at the same time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..files import has_text, one_at_a_time, readable, replacing
from ..results import ReadableMixin, Table, flat
from .ladder import Row

_DIGITS = 5  # significant digits saved; noise is larger


@dataclass(frozen=True)
class Result(ReadableMixin):
    """What was measured on one day on one machine.

    Attributes
    ----------
    machine : dict
        `kind` ("cpu" or "cuda") and `name`; `threads` and `isa`, or `driver` and `cuda`.
    date : str
        The ISO day.
    version : str
        rooflab's version, with the commit in a checkout.
    peer : str or None
        Name and version of the library that was timed too.
    rows : list of Row
        Contender by contender, case by case.
    """

    machine: dict[str, Any]
    date: str
    version: str
    peer: str | None
    rows: list[Row]

    def __str__(self) -> str:
        where = map(str, self.machine.values())
        return ", ".join([*where, self.date, f"rooflab {self.version}", *([self.peer] if self.peer else [])])

    def _figures(self) -> Table:
        return Table.of(flat(row.to_dict()) for row in self.rows)


def save(path: Path, result: Result) -> None:
    """Write a result, one row per line, so that a comparison of two files shows which rows differ.

    A row replaces that of the same case and contender, in its place. The file's other rows are kept, and what else was
    measured of one of its cases stands beside them.

    Raises
    ------
    ValueError
        If the file is something else, or of another machine, day, version or peer.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(path):
        cases: dict[tuple[str, str, str], dict[str, Row]] = {}
        for row in [*earlier(path, result), *result.rows]:
            cases.setdefault((row.op, row.case, row.dtype), {})[row.contender] = row
        _write(path, replace(result, rows=[row for case in cases.values() for row in case.values()]))


def earlier(path: Path, now: Result) -> list[Row]:
    """The rows that a file has of the machine, day, versions and peer of a result; none if it is empty or not there.

    Raises
    ------
    ValueError
        If the file is something else, or of another machine, day, version or peer.
    """
    if not has_text(path):
        return []
    found = load(path)
    if replace(found, rows=[]) != replace(now, rows=[]):
        raise ValueError(f"[bench] {path} holds rows of another run ({found}); name another file for {now}")
    return found.rows


def _write(path: Path, result: Result) -> None:
    head = {key: getattr(result, key) for key in ("machine", "date", "version", "peer")}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    rows = ",\n".join(f"  {json.dumps(_rounded(row.to_dict()))}" for row in result.rows)
    with replacing(path) as unfinished:
        unfinished.write_text("\n".join(["{", *lines, ' "rows": [', rows, " ]", "}", ""]), encoding="utf-8")


def load(path: Path) -> Result:
    """Read what `save` wrote.

    Raises
    ------
    ValueError
        If the file is not such a result.
    """
    try:
        return Result.from_json(readable(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"[bench] {path} is not a result of rooflab bench: {error!r}") from error


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value
