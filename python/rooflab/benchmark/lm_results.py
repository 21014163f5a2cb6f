"""Results of `rooflab bench lm` as JSON, CSV, Markdown and text.

    {"machine": {"kind": "cuda", "name": "NVIDIA H200", ...}, "version": "0.1.0", "peer": null,
     "rows": [{"model_size": "small", "context_length": 128, ..., "status": "ok", "samples_ms": [...], ...}, ...]}

Results of `rooflab.benchmark.calls` may stand beside the rows, as "calls". One file holds rows of one machine and one
version of rooflab. A sweep that is cut short goes on with the rows that its file lacks; cases that ran out of memory
are rows like all others. Several processes may write into one file at the same time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rooflab as rl

from ..files import has_text, one_at_a_time, parsed, readable, replacing
from ..machine.identity import provenance, version
from ..profiler import CATEGORIES
from ..results import Table
from ..units import human, rounded
from .calls import Call, CallResult
from .lm import Case, Result
from .lm_case import COLUMNS

_CASE = [field.name for field in dataclasses.fields(Case)]
_CALL = [field.name for field in dataclasses.fields(Call)]
_NAMES = {"rows": _CASE, "calls": _CALL}  # what a row is of


@dataclass(frozen=True)
class Origin:
    """What all rows of a file share.

    Attributes
    ----------
    machine : dict
        As `rooflab.machine.identity.provenance` gives it; for a meta device `kind` "model" and `name`.
    version : str
        rooflab's version, with the commit in a checkout.
    peer : str or None
        Name and version of the library that was timed too.
    """

    machine: dict[str, Any]
    version: str
    peer: str | None = None

    def __post_init__(self) -> None:
        named = isinstance(self.machine, dict) and all(
            isinstance(self.machine.get(key), str) for key in ("kind", "name")
        )
        if not named:
            raise ValueError(f"[Origin] machine: expected its kind and name, got {self.machine!r}")
        if not isinstance(self.peer, str | None):
            raise ValueError(f"[Origin] peer: expected a name or None, got {self.peer!r}")

    @classmethod
    def of(cls, device: str, peer: str | None = None) -> Origin:
        """The origin of what this process measures on a device.

        Raises
        ------
        ValueError
            If there is no such device.
        """
        if device.startswith("meta"):
            name = rl.meta(device.partition(":")[2] or "cpu").partition(":")[2]
            return cls({"kind": "model", "name": name}, version(), peer)
        return cls(provenance(device), version(), peer)

    def __str__(self) -> str:
        kind = ", a model and not a measurement" if self.machine["kind"] == "model" else ""
        others = [f"{key} {value}" for key, value in self.machine.items() if key not in ("kind", "name")]
        return ", ".join([self.machine["name"] + kind, *others, f"rooflab {self.version}", *filter(None, [self.peer])])


def save(path: Path, results: Iterable[Result], origin: Origin) -> None:
    """Write results into a file of JSON, one row per line; if that fails, the file stays as it was.

    The rows of each case replace those that the file has of it. All its other rows, and its calls, are kept: other
    processes may write into the same file.

    Raises
    ------
    ValueError
        If the file is something else, or of another machine, version or peer.
    """
    _save(path, origin, rows=[_row(result) for result in results])


def save_calls(path: Path, calls: Iterable[CallResult], origin: Origin) -> None:
    """Write results of calls into the same file, in place of those that it has of the same calls."""
    _save(path, origin, calls=[_row_of_call(result) for result in calls])


def _has_rows(path: Path) -> bool:
    """Whether there is something to go on with. OSError for a pipe, which would be waited for for ever."""
    return has_text(path if path.is_char_device() else readable(path))


def _save(path: Path, origin: Origin, **lists: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(path):
        kept, _ = _read(path, origin) if _has_rows(path) else ({"rows": [], "calls": []}, origin)
        with _named_errors(path):
            merged = {name: _merged(rows, lists.get(name, []), _NAMES[name]) for name, rows in kept.items()}
        write(path, _text(origin, merged))


def _merged(old: list[dict[str, Any]], new: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Old rows and new ones, which replace all those with the same values under `names`."""
    of_case: list[dict[str, list[dict[str, Any]]]] = [{}, {}]
    for rows, found in zip((old, new), of_case, strict=True):
        for row in rows:
            found.setdefault(json.dumps([row[name] for name in names]), []).append(row)
    return list(itertools.chain.from_iterable((of_case[0] | of_case[1]).values()))


def _text(origin: Origin, lists: dict[str, list[dict[str, Any]]]) -> str:
    head = "".join(f" {json.dumps(name)}: {json.dumps(value)},\n" for name, value in dataclasses.asdict(origin).items())
    shown = {name: rows for name, rows in lists.items() if rows or name == "rows"}
    parts = (
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]" for name, rows in shown.items()
    )
    return f"{{\n{head}" + ",\n".join(parts) + "\n}\n"


def load(path: Path) -> tuple[list[Result], Origin]:
    """Read what `save` wrote. Of several rows of one case and contender the last one counts.

    Raises
    ------
    ValueError
        If the file is something else.
    """
    results, _, origin = _load(path)
    return results, origin


def load_calls(path: Path, origin: Origin) -> list[CallResult]:
    """The results of calls that a results file already holds; none if it is empty or not there.

    Raises
    ------
    ValueError
        If the file is something else, or of another machine, version or peer.
    """
    return _load(path, origin)[1] if _has_rows(path) else []


def _load(path: Path, expected: Origin | None = None) -> tuple[list[Result], list[CallResult], Origin]:
    lists, origin = _read(path, expected)
    with _named_errors(path):  # of two rows of one case and contender the last one counts
        results = {(result.case, result.contender): result for result in map(_result, lists["rows"])}
        calls = {result.call: result for result in map(_call_result, lists["calls"])}
        return list(results.values()), list(calls.values()), origin


def _read(path: Path, expected: Origin | None = None) -> tuple[dict[str, list[dict[str, Any]]], Origin]:
    """The rows and calls of a file as plain values."""
    with _named_errors(path):
        values = parsed(readable(path).read_text(encoding="utf-8"))
        lists = {"rows": values.pop("rows"), "calls": values.pop("calls", [])}
        origin = Origin(**values)
    if expected and origin != expected:
        raise ValueError(f"[bench] {path} holds rows of another run ({origin}); name another file for {expected}")
    return lists, origin


@contextlib.contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"[bench] {path} is not a result of rooflab bench lm: {error!r}") from error


def finished(path: Path, origin: Origin) -> list[Result]:
    """The rows that a results file already holds; none if it is empty or not there.

    Raises
    ------
    ValueError
        If the file is something else, or of another machine, version or peer.
    """
    if not _has_rows(path):
        return []
    return _load(path, origin)[0]


def _row(result: Result) -> dict[str, Any]:
    values = result.to_dict()
    return values.pop("case") | values


def _result(row: dict[str, Any]) -> Result:
    case = {name: row.pop(name) for name in _CASE}
    return Result.from_dict({"case": case, **row})


def _row_of_call(result: CallResult) -> dict[str, Any]:
    values = result.to_dict()
    return values.pop("call") | values


def _call_result(row: dict[str, Any]) -> CallResult:
    call = {name: row.pop(name) for name in _CALL}
    return CallResult.from_dict({"call": call, **row})


def to_csv(results: Iterable[Result]) -> str:
    """A header and one line per row, with the units in the names and empty cells for what is not known.

    Examples
    --------
    >>> to_csv([Result(Case(), samples_ms=(2.0, 4.0))]).splitlines()[0].split(",")[17:20]
    ['mean_ms', 'std_ms', 'median_ms']
    """
    return Table.of((result.figures() for result in results), COLUMNS).to_csv()


HEADINGS = ("size", "L", "B", "mode", "options", "by", "w", "n", "warm-up ms", "total ms", "mean ms", "std ms",
            "median ms", "TFLOP/s", "of peak", "tokens/s", "peak GiB", "launches")  # fmt: skip


def cells(result: Result) -> tuple[str, ...]:
    """A row of the table that people read, under `HEADINGS`: w steps of warm-up and n measured ones, their totals, then
    figures of one step; std has ddof 0.
    """
    case = result.case
    names = (case.model_size, str(case.context_length), str(case.batch_size), case.mode, case.options)
    values = result.figures()

    def known(name: str, write: Callable[[Any], str]) -> str:
        return "-" if values[name] is None else write(values[name])

    before = (*names, result.contender, known("warmup_steps", str))
    if result.status != "ok":
        return (*before, result.status, *[""] * (len(HEADINGS) - len(before) - 1))
    times = ("warmup_total_ms", "total_ms", "mean_ms", "std_ms", "median_ms")
    ms = [known(name, milliseconds) for name in times]
    rates = (known("tflop_s", rounded), known("share_of_peak", "{:.1%}".format))
    counts = (f"{result.tokens_per_s:.0f}", f"{result.peak_bytes / 2**30:.2f}", str(result.launches or "-"))
    return (*before, str(values["steps"]), *ms, *rates, *counts)


def milliseconds(value: float) -> str:
    """Four digits, or whole milliseconds from ten seconds on.

    Examples
    --------
    >>> milliseconds(2.34567), milliseconds(12345.6)
    ('2.346', '12346')
    """
    return f"{value:.4g}" if value < 9999.5 else f"{value:.0f}"


_RECOMPUTED = (
    "of peak: what the hardware does, a forward that is run again included; model FLOPs utilization (MFU) is less"
)


def _of_recomputed(results: Iterable[Result]) -> str:
    """What has to be said of shares of a peak where forwards run again."""
    return _RECOMPUTED if any(result.case.recompute and result.peak_tflop_s for result in results) else ""


def to_text(results: Sequence[Result]) -> str:
    """The table as aligned text."""
    return str(Table(HEADINGS, list(map(cells, results)), note=_of_recomputed(results)))


def to_markdown(results: Sequence[Result], origin: Origin) -> str:
    """The table in Markdown, with a line that says where it comes from; then profiles and memory, if there are any."""
    peaks = {result.peak_source: result.peak_tflop_s for result in results if result.peak_tflop_s}
    sources = "; ".join(f"{source} {human(peak, 'TFLOP/s')}" for source, peak in sorted(peaks.items()))
    steps = "w steps of warm-up, then n measured ones; standard deviations with ddof 0"
    note = f"{origin}. {steps}; TFLOP/s of the products, 2 for each MAC that was counted"
    parts = [
        Table(HEADINGS, list(map(cells, results))).to_markdown(),
        f"{note}; of peak: {sources}." if sources else f"{note}.",
    ]
    if recomputed := _of_recomputed(results):
        parts.append(f"{recomputed}.")
    if any(result.profile for result in results):
        parts += [_profiles(results), "Shares of the kernels' summed time; the loss is in the forward."]
    if any(result.memory for result in results):
        parts += [_memories(results), "GiB (2^30 bytes) in tensors at the highest point of each phase, by class."]
    return "\n\n".join(parts) + "\n"


def _profiles(results: Iterable[Result]) -> str:
    """A row per pass: what launches, what is busy, and the share of each class."""
    passes = [(result.case.label, one) for result in results for one in result.profile]
    kinds = [kind for kind in CATEGORIES if any(kind in one.classes for _, one in passes)]
    rows = [
        (label, one.name, str(one.launches), f"{one.busy_ms:.4g}", f"{one.range_ms:.4g}",
         *(f"{one.share(kind):.1%}" for kind in kinds), f"{one.instances} x {one.kernel}")
        for label, one in passes
    ]  # fmt: skip
    return Table(("case", "pass", "launches", "busy ms", "of ms", *kinds, "most in"), rows).to_markdown()


def _memories(results: Iterable[Result]) -> str:
    """A row per phase, a column per class."""
    phases = [(result.case.label, *phase) for result in results for phase in result.memory.items()]
    kinds = list(dict.fromkeys(kind for *_, classes in phases for kind in classes))
    rows = [
        (
            label,
            phase,
            f"{sum(classes.values()) / 2**30:.3f}",
            *(f"{classes.get(kind, 0) / 2**30:.3f}" for kind in kinds),
        )
        for label, phase, classes in phases
    ]
    return Table(("case", "phase", "peak", *kinds), rows).to_markdown()


def write(path: Path, text: str) -> None:
    """Write a text file and make its folder; if that fails, the file stays as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
