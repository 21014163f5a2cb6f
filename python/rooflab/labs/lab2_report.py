"""The report that Lab 2 ends in, and its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflab.results import Report

if TYPE_CHECKING:
    from rooflab.benchmark.report import Rows

__all__ = ["Report", "timing_rows"]


def timing_rows(rows: Rows) -> list[dict[str, Any]]:
    """What `rooflab.benchmark.report.run` found of the part "step", as rows of a table of times.

    Parameters
    ----------
    rows : Rows
        Measured and modelled.

    Returns
    -------
    list of dict
        "size", "length", "warmup" (steps of it; a model needs none), "mode", "source" ("measured" or "modelled"),
        "status" ("ok" or "OOM"), "mean_ms" and "std_ms" with ddof 0, in ms a step. Times are None where there are none.

    Examples
    --------
    >>> from rooflab.benchmark import report
    >>> settings = report.Settings("meta:A100 SXM 40GB", model_sizes=["2.7B"], context_lengths=[128])
    >>> [(row["mode"], row["source"], row["status"]) for row in timing_rows(report.run(settings, ["step"]))]
    [('forward', 'modelled', 'ok'), ('both', 'modelled', 'ok'), ('train', 'modelled', 'OOM')]
    """
    from rooflab.benchmark.report import cases

    return [_row(result) for result in rows.of(cases(rows.settings, ["step"]))]


def _row(result: Any) -> dict[str, Any]:
    case, is_ok = result.case, result.status == "ok"
    return {
        "size": case.model_size,
        "length": case.context_length,
        "warmup": 0 if case.is_model else case.warmup_steps,
        "mode": case.mode,
        "source": "modelled" if case.is_model else "measured",
        "status": "ok" if is_ok else "OOM",
        "mean_ms": result.mean_ms if is_ok else None,
        "std_ms": result.std_ms if is_ok and not case.is_model else None,
    }
