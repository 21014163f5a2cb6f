"""How a model learns, and where its attention looks: curves over steps, accuracy by layers, maps of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from .looks import legend, looks
from .style import COLORS, GREY, caption, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_learning(
    losses: Mapping[str, Sequence[float]], accuracies: Mapping[str, Mapping[int, float]],
    guess: tuple[float, float] | None = None, title: str | None = None, note: str | None = None,
) -> Figure:  # fmt: skip
    """Loss and accuracy over the training steps, side by side, one colour per run.

    Parameters
    ----------
    losses : mapping of str to sequence of float
        For each run, the loss of every step from step 1. Averages of 10 steps are drawn, and single steps faintly.
    accuracies : mapping of str to mapping of int to float
        For the same runs, the accuracy (0 to 1) at some steps.
    guess : (float, float), optional
        Loss and accuracy of guessing, drawn as dashed lines.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no run, the two do not hold the same runs, one is empty, or a number is not finite.

    Examples
    --------
    >>> from rooflab.plots import plot_learning
    >>> figure = plot_learning({"1 layer": [3.0, 2.5]}, {"1 layer": {1: 0.1, 2: 0.12}}, guess=(2.08, 0.125))
    """
    if not losses or losses.keys() != accuracies.keys():
        names = f"{', '.join(losses) or 'none'} and {', '.join(accuracies) or 'none'}"
        raise ValueError(f"[plots] losses, accuracies: expected the same runs, at least one, got {names}")
    for name in losses:
        for what, numbers in (("losses", list(losses[name])), ("accuracies", list(accuracies[name].values()))):
            if not numbers or not np.isfinite(numbers).all():
                raise ValueError(f"[plots] {what} of {name!r}: expected finite numbers, at least one")
    with figure(9.2, 3.8) as made:
        left, right = made.subplots(1, 2)
        for name, look in looks(losses).items():
            color, marker, dash = look.color, look.marker, look.dash
            steps, values = np.arange(1, len(losses[name]) + 1), np.asarray(losses[name], dtype=float)
            left.plot(steps, values, color=color, lw=0.6, alpha=0.3)
            mark = "o" if len(values) == 1 else None  # a line of one point would not be seen
            left.plot(*_averaged(steps, values), color=color, ls=dash, label=name, marker=mark)
            points = sorted(accuracies[name].items())
            right.plot(*zip(*points, strict=True), color=color, ls=dash, marker=marker, ms=5, label=name)
        if guess:
            for axes, level, text in ((left, guess[0], f"{guess[0]:.2f}"), (right, guess[1], f"{guess[1]:.1%}")):
                _level(axes, level, f"guessing, {text}")
        left.set_ylabel("loss")
        _from_zero(left, losses)
        _share_axis(right)
        for axes in (left, right):
            axes.set_xlabel("training step")
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        handles, labels = right.get_legend_handles_labels()
        legend(made, handles, labels, "outside right upper")
        _head_and_foot(made, left, title, note)
    return made


def _from_zero(axes: Any, losses: Mapping[str, Sequence[float]]) -> None:
    """Let the y axis begin at 0 unless there is a negative loss, which would lie outside."""
    if min(map(min, losses.values())) >= 0:
        axes.set_ylim(bottom=0)


def plot_losses(
    losses: Mapping[str, Sequence[float]], guess: float | None = None, title: str | None = None, note: str | None = None
) -> Figure:
    """Loss over the training steps, one colour per run.

    Parameters
    ----------
    losses : mapping of str to sequence of float
        For each run, the loss of every step from step 1, in nats a token. Averages of 10 steps are drawn, and single
        steps faintly.
    guess : float, optional
        The loss of guessing, drawn as a dashed line.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no run, or one is empty or holds a number that is not finite.

    Examples
    --------
    >>> from rooflab.plots import plot_losses
    >>> figure = plot_losses({"composed": [5.6, 5.1, 4.8]}, guess=5.55)
    """
    if not losses:
        raise ValueError("[plots] losses: expected at least one run, got none")
    with figure(5.6, 3.8) as made:
        axes = made.add_subplot()
        for (name, values), look in zip(losses.items(), looks(losses).values(), strict=True):
            if not len(values) or not np.isfinite(values).all():
                raise ValueError(f"[plots] losses of {name!r}: expected finite numbers, at least one")
            color, steps = look.color, np.arange(1, len(values) + 1)
            axes.plot(steps, values, color=color, lw=0.6, alpha=0.3)
            marker = "o" if len(values) == 1 else None  # a line of one point would not be seen
            points = _averaged(steps, np.asarray(values, dtype=float))
            axes.plot(*points, color=color, ls=look.dash, label=name, marker=marker)
        if guess is not None:
            _level(axes, guess, f"guessing, {guess:.2f}")
        axes.set_xlabel("training step")
        axes.set_ylabel("loss (nats a token)")
        axes.set_xlim(left=0)
        _from_zero(axes, losses)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        legend(made, *axes.get_legend_handles_labels(), "outside right upper")
        _head_and_foot(made, axes, title, note)
    return made


def plot_accuracy_by_layers(
    accuracies: Mapping[int, float | Sequence[float]], guess: float | None = None, bar: float | None = None,
    title: str | None = None, note: str | None = None,
) -> Figure:  # fmt: skip
    """Accuracy over the number of layers; the line goes through the means.

    Parameters
    ----------
    accuracies : mapping of int to float or sequence of float
        Layers -> accuracy (0 to 1), or one for each seed.
    guess, bar : float, optional
        Accuracy of guessing, and the one that counts as solved: dashed lines.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is nothing to draw, or an accuracy is not between 0 and 1.

    Examples
    --------
    >>> from rooflab.plots import plot_accuracy_by_layers
    >>> figure = plot_accuracy_by_layers({1: [0.12, 0.13], 2: 1.0}, guess=0.125, bar=0.9)
    """
    rows = {layers: np.atleast_1d(np.asarray(values, dtype=float)) for layers, values in sorted(accuracies.items())}
    if not rows:
        raise ValueError("[plots] accuracies: expected at least one, got none")
    for layers, values in rows.items():
        if not len(values) or not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"[plots] accuracy with {layers} layers: expected 0 to 1, got {values.tolist()}")
    with figure(5.6, 3.8) as made:
        axes = made.add_subplot()
        axes.plot(list(rows), [values.mean() for values in rows.values()], color=COLORS[0], lw=1.2, zorder=2)
        for layers, values in rows.items():
            axes.plot([layers] * len(values), values, "o", color=COLORS[0], zorder=3)
            aside = 0 if values.mean() > 0.5 else -16  # out of the way of the line that rises from a low one
            axes.annotate(f"{values.mean():.1%}", (layers, values.max()), (aside, 8), textcoords="offset points",
                          ha="center", fontweight="bold")  # fmt: skip
        if guess is not None:
            _level(axes, guess, f"guessing, {guess:.1%}")
        if bar is not None:
            _level(axes, bar, f"solved, {bar:.0%}", above=False)
        _share_axis(axes)
        axes.set_ylim(0, 1.14)
        axes.set_xlabel("layers of attention")
        span, ticks = max(rows) - min(rows), [min(rows)]
        for layers in rows:
            if layers - ticks[-1] > 0.06 * span:  # "1" and "2" beside each other would be twelve
                ticks.append(layers)
        axes.set_xticks(ticks)
        around = max(0.5, 0.14 * span)  # room for the labels of the first and the last point
        axes.set_xlim(min(rows) - around, max(rows) + around)
        _head_and_foot(made, axes, title, note)
    return made


def plot_accuracy_grid(
    accuracies: Mapping[tuple[int, int], float], title: str | None = None, note: str | None = None
) -> Figure:
    """Accuracy by layers and by pairs to recall, as a heat map with the numbers in it.

    Parameters
    ----------
    accuracies : mapping of (int, int) to float
        (layers, pairs) -> accuracy (0 to 1); a cell that is not there stays empty.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is nothing to draw, or an accuracy is not between 0 and 1.

    Examples
    --------
    >>> from rooflab.plots import plot_accuracy_grid
    >>> figure = plot_accuracy_grid({(1, 8): 0.125, (2, 8): 1.0})
    """
    if not accuracies:
        raise ValueError("[plots] accuracies: expected at least one, got none")
    layers, pairs = (sorted({place[axis] for place in accuracies}) for axis in (0, 1))
    array = np.full((len(layers), len(pairs)), np.nan)
    for (row, column), value in accuracies.items():
        if not 0 <= value <= 1:
            raise ValueError(f"[plots] accuracy with {row} layers, {column} pairs: expected 0 to 1, got {value}")
        array[layers.index(row), pairs.index(column)] = value
    with figure(2.4 + 1.0 * len(pairs), 1.7 + 0.55 * len(layers)) as made:
        axes = made.add_subplot()
        image = axes.imshow(array, cmap="Blues", vmin=0, vmax=1, origin="lower", aspect="auto")
        axes.grid(visible=False)
        for row, column in np.argwhere(np.isfinite(array)):
            value = array[row, column]
            axes.text(column, row, f"{value:.1%}", ha="center", va="center", color="white" if value > 0.5 else "black")
        axes.set_xticks(range(len(pairs)), [str(number) for number in pairs])
        axes.set_yticks(range(len(layers)), [str(number) for number in layers])
        axes.tick_params(length=0)
        axes.set_xlabel("pairs in a row")
        axes.set_ylabel("layers of attention")
        made.colorbar(image, ax=axes, format=PercentFormatter(1.0, decimals=0))
        _head_and_foot(made, axes, title, note)
    return made


def plot_attention_maps(
    maps: Mapping[str, Any], labels: Sequence[str], kinds: Sequence[str],
    marks: Mapping[str, Sequence[tuple[int, int]]] | None = None, title: str | None = None, note: str | None = None,
) -> Figure:  # fmt: skip
    """Attention weights of one row of tokens, a panel per map, with the kinds of tokens marked by colour.

    Parameters
    ----------
    maps : mapping of str to (L, L) array
        Title -> weights between 0 and 1, from each token (row) to each token (column).
    labels, kinds : sequence of str
        The tokens as they are shown, and what each is: "key", "value", "query" ...
    marks : mapping of str to sequence of (int, int), optional
        For some of the maps, (row, column) pairs to be ringed; say in `note` what they are.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no map, sizes differ, or there are more than seven kinds of tokens.

    Examples
    --------
    >>> from rooflab.plots import plot_attention_maps
    >>> figure = plot_attention_maps({"layer 1": np.eye(3)}, ["a", "3", "a"], ["key", "value", "query"])
    """
    arrays = {name: np.asarray(array, dtype=float) for name, array in maps.items()}
    L = len(labels)
    if not arrays or len(kinds) != L:
        raise ValueError(f"[plots] maps, kinds: expected at least one map, and {L} kinds, got {len(kinds)}")
    for name, array in arrays.items():
        if array.shape != (L, L):
            raise ValueError(f"[plots] map {name!r}: expected {(L, L)} for {L} labels, got {array.shape}")
    color_of = dict(zip(dict.fromkeys(kinds), COLORS, strict=False))
    if len(set(kinds)) > len(COLORS):
        raise ValueError(f"[plots] kinds: expected at most {len(COLORS)}, got {len(set(kinds))}")
    with figure(1.6 + 4.3 * len(arrays), 5.1) as made:
        panels = made.subplots(1, len(arrays), squeeze=False)[0]
        for axes, (name, array) in zip(panels, arrays.items(), strict=True):
            image = axes.imshow(array, cmap="Greys", vmin=0, vmax=1)
            axes.grid(visible=False)
            for row, column in (marks or {}).get(name, ()):
                axes.plot(column, row, "o", mfc="none", mec=COLORS[1], mew=1.4, ms=9)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_ticks(range(L), labels, fontsize=7.5)
                axis.set_tick_params(length=0)
                for text, kind in zip(axis.get_ticklabels(), kinds, strict=True):
                    text.set_color(color_of[kind])
            for first in {list(kinds).index(kind) for kind in color_of} - {0, 1}:  # a kind that begins later
                axes.axhline(first - 0.5, color=GREY, lw=0.6)
                axes.axvline(first - 0.5, color=GREY, lw=0.6)
            axes.set_title(name)
            axes.set_xlabel("looks at")
        panels[0].set_ylabel("token")
        made.colorbar(image, ax=list(panels), label="attention weight", shrink=0.8)
        swatches = [Line2D([], [], color=color, marker="s", ls="") for color in color_of.values()]
        legend(made, swatches, list(color_of), "outside upper right")
        caption(made, title, note)
    return made


def _averaged(steps: np.ndarray, values: np.ndarray, window: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Means of `window` steps, placed at their middle; a short run stays as it is."""
    if len(values) < 2 * window:
        return steps, values
    kernel = np.ones(window) / window
    return np.convolve(steps, kernel, "valid"), np.convolve(values, kernel, "valid")


def _level(axes: Any, level: float, text: str, above: bool = True) -> None:
    axes.axhline(level, color=GREY, ls=(0, (4, 3)), lw=1, zorder=1)
    axes.annotate(text, (1, level), (-2, 3 if above else -3), xycoords=axes.get_yaxis_transform(), ha="right",
                  va="bottom" if above else "top", textcoords="offset points", fontsize=8, color=GREY)  # fmt: skip


def _share_axis(axes: Any) -> None:
    axes.set_ylabel("accuracy")
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _head_and_foot(made: Figure, axes: Any, title: str | None, note: str | None) -> None:
    if title:
        axes.set_title(title)
    caption(made, None, note)
