"""Figures of a model's steps: times by size and length, memory by phase, time by class of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from ..units import binary, human
from .counts import plot_shares
from .looks import Look, legend, looks, row_names, size_axis
from .style import COLORS, GREY, caption, figure, memory_axis
from .timeline import CATEGORY_COLORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CLASS_COLORS = {
    "parameters": COLORS[0],
    "gradients": COLORS[5],
    "optimizer state": COLORS[2],
    "saved activations": COLORS[1],
    "weight copies": COLORS[3],
    "logits": COLORS[4],
    "loss": "#8a6d3b",
    "temporary": "#bdbdbd",
    "workspace": "#7a5195",
    "constants": "#5f5f5f",
    "held before": "#e3e3e3",
}


def plot_step_times(
    results: Iterable[Any],
    title: str | None = None,
    note: str | None = None,
    panel_titles: Mapping[str, str] | None = None,
) -> Figure:
    """Step time over context length, a line per model size and a panel per mode, with one standard deviation each way.

    Parameters
    ----------
    results : iterable of Result
        From `rooflab.benchmark.lm`. A cross at the top marks a result that ran out of memory.
    title, note : str, optional
        Above and below the plot.
    panel_titles : mapping of str to str, optional
        Titles of the modes' panels, such as "forward + backward" for "both"; the mode itself where there is none.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no result, none that has times, or two of the same size, length, mode and contender.

    Examples
    --------
    >>> from rooflab.plots import plot_step_times
    >>> import rooflab as rl
    >>> from rooflab.benchmark import lm
    >>> cases = [lm.Case("small", length, device=rl.meta("H200")) for length in (128, 256)]
    >>> figure = plot_step_times([lm.benchmark(case) for case in cases])
    """
    rows = list(results)
    if not any(row.samples_ms for row in rows):
        raise ValueError("[plots] results: expected at least one with times")
    modes = list(dict.fromkeys(row.case.mode for row in rows))
    lines: dict[str, dict[str, dict[int, Any]]] = {mode: {} for mode in modes}
    contenders = {row.contender for row in rows}
    for row in rows:
        name = row.case.model_size + (f", {row.contender}" if len(contenders) > 1 else "")
        line = lines[row.case.mode].setdefault(name, {})
        if row.case.context_length in line:
            raise ValueError(f"[plots] results: two of {row.case.label}")
        line[row.case.context_length] = row
    styles = looks(name for mode in modes for name in lines[mode])
    lengths = sorted({row.case.context_length for row in rows})
    with figure(2.2 + 3.1 * len(modes), 4.2) as made:
        panels = made.subplots(1, len(modes), sharey=True, squeeze=False)[0]
        for axes, mode in zip(panels, modes, strict=True):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            for name, line in lines[mode].items():
                _draw_line(axes, [line[length] for length in sorted(line)], styles[name], name)
            axes.set_title((panel_titles or {}).get(mode, mode), fontsize=9.5, fontweight="normal")
            axes.set_xlabel("tokens L")
            size_axis(axes, lengths, 2.4)
            axes.yaxis.set_major_locator(LogLocator(10, (1, 2, 5), numticks=12))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: human(seconds, "s")))
            axes.margins(x=0.09)
        modelled = any(row.case.device.startswith("meta") for row in rows)
        panels[0].set_ylabel("time a step (modelled, not measured)" if modelled else "time a step (mean, std)")
        entries = {
            label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        legend(made, list(entries.values()), list(entries), "outside right upper")
        caption(made, title, note)
    return made


def _draw_line(axes: Any, rows: Sequence[Any], look: Look, name: str) -> None:
    color, marker, dash = look.color, look.marker, look.dash
    timed = [row for row in rows if row.samples_ms]
    if timed:
        x = [row.case.context_length for row in timed]
        seconds = [row.mean_ms / 1e3 for row in timed]
        spread = [min(row.std_ms, 0.999 * row.mean_ms) / 1e3 for row in timed]  # a logarithmic axis has no zero
        if any(spread):
            axes.errorbar(
                x, seconds, spread, color=color, marker=marker, ls=dash, capsize=2.5, elinewidth=1, label=name
            )
        else:
            axes.plot(x, seconds, color=color, marker=marker, ls=dash, label=name)
    full = [row.case.context_length for row in rows if not row.samples_ms]
    if full:
        across = axes.get_xaxis_transform()
        axes.plot(full, [0.97] * len(full), ls="", marker="x", color=color, ms=8, mew=2, transform=across)
        axes.plot([], [], ls="", marker="x", color=GREY, ms=8, mew=2, label="out of memory")


def plot_memory_phases(
    memories: Mapping[str, Mapping[str, Mapping[str, int]]],
    title: str | None = None,
    levels: Mapping[str, float] | None = None,
    note: str | None = None,
) -> Figure:
    """What memory holds at the highest point of each phase of a step: a bar per phase, stacked by class.

    Parameters
    ----------
    memories : mapping of str to mapping of str to mapping of str to int
        For each step, by phase, bytes by class: `memory` of a `rooflab.benchmark.lm` result.
    title, note : str, optional
        Above and below the plot.
    levels : mapping of str to float, optional
        Bytes of the memory that should hold it, a line each: ``{"80 GB": 80e9}``.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no step, one has no phase, or a phase holds nothing.

    Examples
    --------
    >>> from rooflab.plots import plot_memory_phases
    >>> forward = {"parameters": 500, "saved activations": 300}
    >>> figure = plot_memory_phases({"small": {"forward": forward, "backward": forward | {"gradients": 90}}})
    """
    if not memories or not all(memories.values()):
        raise ValueError("[plots] memories: expected at least one, with at least one phase each")
    bars = [(name, phase, classes) for name, phases in memories.items() for phase, classes in phases.items()]
    for name, phase, classes in bars:
        if sum(classes.values()) <= 0 or min(classes.values()) < 0:
            raise ValueError(f"[plots] {name!r}, {phase}: expected bytes that are not negative and add up to something")
    known = [kind for kind in _CLASS_COLORS if any(classes.get(kind) for *_, classes in bars)]
    known += sorted({kind for *_, classes in bars for kind in classes} - set(_CLASS_COLORS))
    styles = looks(known, _CLASS_COLORS)
    longest = max(*(sum(classes.values()) for *_, classes in bars), *(levels or {"": 0}).values())
    with figure(8.4, 1.5 + 0.34 * len(bars) + 0.16 * len(memories)) as made:
        axes = made.add_subplot()
        places, place = [], 0.0
        for row, (name, _, classes) in enumerate(bars):
            place += 0 if row == 0 else 1.0 if bars[row - 1][0] == name else 1.5
            places.append(place)
            left = 0
            for kind in known:
                size = classes.get(kind, 0)
                color, hatch = styles[kind].color, styles[kind].hatch
                axes.barh(place, size, left=left, height=0.78, color=color, hatch=hatch, ec="white", lw=0.5)
                left += size
            axes.text(left + 0.008 * longest, place, binary(left), va="center", fontsize=8.5)
        for name, level in (levels or {}).items():
            axes.axvline(level, color=GREY, ls=(0, (5, 2.5)), lw=1.2)
            axes.annotate(name, (level, 1), (3, 2), xycoords=("data", "axes fraction"), textcoords="offset points",
                          fontsize=8.5, color=GREY)  # fmt: skip
        labels = [f"{name}: {phase}" if len(memories) > 1 or name else phase for name, phase, _ in bars]
        row_names(axes, places, labels)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.14 * longest)
        memory_axis(axes.xaxis, 0, 1.14 * longest, is_binary=True)
        axes.set_xlabel("memory in tensors at the phase's highest point")
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        seen = [kind for kind in known if max(classes.get(kind, 0) for *_, classes in bars) > longest / 500]
        swatches = [Patch(fc=styles[kind].color, hatch=styles[kind].hatch, ec="white", lw=0) for kind in seen]
        legend(made, swatches, seen, "outside lower left", most=5, title=note, title_fontsize=8, alignment="left")
        caption(made, title)
    return made


def plot_time_shares(results: Iterable[Any], title: str | None = None) -> Figure:
    """Which classes of kernels take the time of each pass: a bar of 100 % per pass.

    Parameters
    ----------
    results : iterable of Result
        From `rooflab.benchmark.lm`, profiled.
    title : str, optional
        Above the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If none is profiled, or two have the same size and length.

    Examples
    --------
    >>> from rooflab.plots import plot_time_shares
    >>> import rooflab as rl
    >>> from rooflab.benchmark import lm
    >>> result = lm.benchmark(lm.Case("small", mode="train", device=rl.meta("H200")), profile=True)
    >>> figure = plot_time_shares([result])
    """
    wholes: dict[str, dict[str, float]] = {}
    for result in results:
        for one in result.profile:
            name = f"{result.case.model_size} L{result.case.context_length}: {one.name}"
            if name in wholes:
                raise ValueError(f"[plots] results: two of {name}")
            wholes[name] = one.classes
    if not wholes:
        raise ValueError("[plots] results: expected at least one that is profiled")
    names = [name for name in CATEGORY_COLORS if any(classes.get(name) for classes in wholes.values())]
    ordered = {whole: {name: classes.get(name, 0.0) for name in names} for whole, classes in wholes.items()}
    return plot_shares(ordered, title=title, colors=CATEGORY_COLORS)
