"""Figures of a GPU's rules: ridges by generation, the sawtooth of waves, bursts of a warp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from ..roofline import SPECS, MachineSpec, ridge
from .looks import legend, looks
from .style import COLORS, GREY, bare, caption, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_BURSTS, _LEAST_ROWS = 64, 32


def plot_ridges(machines: Sequence[MachineSpec | str], title: str | None = None) -> Figure:
    """The ridges of several GPUs, one row each in the order given: fp32 on the vector units, 16 bits on tensor cores.

    Parameters
    ----------
    machines : sequence of MachineSpec or str
        Datasheets, or names in `SPECS`, with a float16 and a float32 peak.
    title : str, optional
        Above the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        There is no machine, a name is unknown, or a machine lacks one of the two peaks.

    Examples
    --------
    >>> from rooflab.plots import plot_ridges
    >>> figure = plot_ridges(["T4", "A100", "H100"])
    """
    specs = [SPECS[one] if isinstance(one, str) else one for one in machines]
    if not specs:
        raise ValueError("[plots] machines: expected at least one, got none")
    rows = [(spec.name, ridge(spec, "float32"), ridge(spec, "float16")) for spec in specs]
    with figure(7.2, 1.1 + 0.33 * len(rows)) as made:
        axes = made.add_subplot()
        for place, (_, vector, tensor) in enumerate(rows):
            axes.plot([vector, tensor], [place, place], color=GREY, lw=1.2, zorder=2)
            axes.annotate(f"{vector:.0f}", (vector, place), (-9, 0), textcoords="offset points", va="center",
                          ha="right", fontsize=8.5, color=COLORS[0])  # fmt: skip
            axes.annotate(f"{tensor:.0f}", (tensor, place), (9, 0), textcoords="offset points", va="center",
                          fontsize=8.5, color=COLORS[1])  # fmt: skip
        places = range(len(rows))
        axes.plot([row[1] for row in rows], places, "s", color=COLORS[0], zorder=3, label="fp32, vector units")
        axes.plot([row[2] for row in rows], places, "o", color=COLORS[1], zorder=3, label="16 bits, tensor cores")
        axes.set_xscale("log")
        axes.set_xlim(min(row[1] for row in rows) / 1.8, max(row[2] for row in rows) * 1.8)
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0) if high / low < 300 else (1.0,), numticks=16))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("ridge: FLOPs for each byte that keep the units busy (dense peaks)")
        axes.set_yticks(places, [row[0] for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.set_title(title or "The ridge of each GPU")
        made.legend(loc="outside lower center", ncols=2)
    return made


def plot_waves(
    predicted: Mapping[str, Mapping[int, float]],
    measured: Mapping[str, Mapping[int, float]] | None = None,
    cliffs: Sequence[int] = (),
    title: str | None = None,
) -> Figure:
    """The sawtooth of products of N x N matrices: which share of a GPU's work is useful, predicted and measured.

    Parameters
    ----------
    predicted : mapping of str to mapping of int to float
        For each series, the share of the work that is useful, 0 to 1, at each N; drawn as lines.
    measured : mapping of str to mapping of int to float, optional
        For each series, FLOP/s over those of the best N, or over the peak; drawn as markers.
    cliffs : sequence of int
        Each N at which a further wave begins; marked.
    title : str, optional
        Above the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        There is nothing to draw, or a share is not between 0 and 1.5.

    Examples
    --------
    >>> from rooflab.plots import plot_waves
    >>> figure = plot_waves({"A100": {1792: 0.907, 1793: 0.556}}, cliffs=[1793])
    """
    drawn = {**predicted, **(measured or {})}
    if not drawn or not all(drawn.values()):
        raise ValueError("[plots] predicted: expected at least one series, with at least one N each")
    for name, shares in drawn.items():
        for size, share in shares.items():
            if not 0 < share < 1.5:  # a measured share may pass 1: the datasheet's clock is not the highest
                raise ValueError(f"[plots] {name!r} at N = {size}: expected a share, got {share!r}")
    with figure(7.6, 4.0) as made:
        axes = made.add_subplot()
        series = [*((name, "", shares) for name, shares in predicted.items()),
                  *((name, "measured", shares) for name, shares in (measured or {}).items())]  # fmt: skip
        styles = looks(map(str, range(len(series)))).values()
        for (name, kind, shares), look in zip(series, styles, strict=True):
            points = zip(*sorted(shares.items()), strict=True)
            if kind:
                axes.plot(*points, ls="", marker=look.marker, ms=3.5, label=name, color=look.color)
            else:
                marker = look.marker if len(shares) == 1 else None
                axes.plot(*points, color=look.color, ls=look.dash, lw=1.4, label=name, marker=marker)
        top = max(1.0, *(share for shares in drawn.values() for share in shares.values()))
        for cliff in cliffs:
            axes.axvline(cliff, color=GREY, lw=0.8, ls=":", zorder=1)
            axes.annotate(str(cliff), (cliff, 1.02 * top), (0, 2), textcoords="offset points", ha="center",
                          fontsize=8.5, color=GREY, annotation_clip=False)  # fmt: skip
        axes.set_ylim(0, 1.02 * top)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        axes.set_xlabel("N of a product of N x N matrices")
        axes.set_ylabel("share of the work that is useful" if not measured else "share of the best")
        if title:
            axes.set_title(title, pad=20 if cliffs else 6)
        if len(drawn) > 1 or measured:
            legend(made, *axes.get_legend_handles_labels(), "outside lower center", most=3)
    return made


def plot_bursts(
    accesses: Mapping[str, Sequence[int]], size: int = 4, burst: int = 128, title: str | None = None
) -> Figure:
    """What one access of a warp loads from memory: a row for each burst, dark where its bytes are used.

    Parameters
    ----------
    accesses : mapping of str to sequence of int
        For each access the byte address of every lane.
    size : int
        Bytes that a lane reads.
    burst : int
        Bytes of a burst; it begins at a multiple of that.
    title : str, optional
        Above the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        There is no access, an address is negative, a size is not positive, or more than 64 bursts are touched.

    Examples
    --------
    >>> from rooflab.plots import plot_bursts
    >>> figure = plot_bursts({"neighbours": range(0, 128, 4), "a row each": range(0, 32 * 4096, 4096)})
    """
    if not accesses or not all(len(addresses) for addresses in accesses.values()):
        raise ValueError("[plots] accesses: expected at least one, with an address each")
    if size < 1 or burst < 1 or min(min(addresses) for addresses in accesses.values()) < 0:
        raise ValueError("[plots] accesses: expected addresses of 0 or more, and positive sizes")
    touched: dict[str, dict[int, set[int]]] = {}
    for name, addresses in accesses.items():
        bursts = touched.setdefault(name, {})
        for byte in sorted({address + offset for address in addresses for offset in range(size)}):
            bursts.setdefault(byte // burst, set()).add(byte % burst)
        if len(bursts) > _MOST_BURSTS:
            raise ValueError(f"[plots] {name!r}: expected at most {_MOST_BURSTS} bursts, got {len(bursts)}")
    rows = max(max(map(len, touched.values())), _LEAST_ROWS)
    with figure(2.9 * len(touched) + 0.2, 3.5) as made:
        for place, (name, bursts) in enumerate(touched.items(), 1):
            axes = made.add_subplot(1, len(touched), place)
            bare(axes, None)
            for row, used in enumerate(bursts.values()):
                for color, first, last in _stretches(used, burst):
                    axes.add_patch(Rectangle((first, row + 0.08), last - first, 0.84, facecolor=color, lw=0))
            axes.set_xlim(0, burst)
            axes.set_ylim(rows, 0)
            share, plural = sum(map(len, bursts.values())) / (len(bursts) * burst), "" if len(bursts) == 1 else "s"
            axes.set_title(name, fontsize=9.5)
            axes.set_xlabel(f"{len(bursts)} burst{plural} of {burst} bytes,\n{share:.1%} of the bytes used", fontsize=9)
        caption(made, title)
    return made


def _stretches(used: set[int], burst: int) -> list[tuple[str, int, int]]:
    """(color, first byte, last byte + 1) of each stretch of a burst that is used, or loaded without being used."""
    edges = [byte for byte in range(1, burst) if (byte in used) != (byte - 1 in used)]
    return [(COLORS[0] if first in used else "#f3cfae", first, last) for first, last in pairwise([0, *edges, burst])]


__all__ = ["plot_bursts", "plot_ridges", "plot_waves"]
