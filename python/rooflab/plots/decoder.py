"""A drawing of the decoder layer that the labs count and measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.colors import to_rgba
from matplotlib.patches import FancyBboxPatch, Patch

from .style import COLORS, GREY, bare, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KINDS = {
    "product with a weight": COLORS[0],
    "attention": COLORS[2],
    "RMSNorm": COLORS[3],
    "elementwise": COLORS[1],
    "keys and values kept": COLORS[4],
}
_SIZES = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim")
_TALL, _TOP, _MIDDLE, _LOW, _MLP = 0.62, 3.7, 2.8, 1.9, -0.1


def plot_decoder_layer(config: Mapping[str, int], title: str | None = "A decoder layer of Gemma 3") -> Figure:
    """The operations of a decoder layer of Gemma 3 and what flows between them, with the sizes of a model.

    Parameters
    ----------
    config : mapping of str to int
        With ``hidden_size``, ``intermediate_size``, ``num_attention_heads``, ``num_key_value_heads`` and ``head_dim``,
        as a Hugging Face configuration names them.
    title : str, optional
        Above the drawing.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If a size is missing or not positive.

    Examples
    --------
    >>> from rooflab.plots import plot_decoder_layer
    >>> from rooflab.labs.lab1 import GEMMA3_270M_CONFIG
    >>> figure = plot_decoder_layer(GEMMA3_270M_CONFIG)
    """
    for name in _SIZES:
        if not config.get(name, 0) > 0:
            raise ValueError(f"[plots] config: expected a positive {name!r}, got {config.get(name)!r}")
    D, I, H, H_kv, D_h = (config[name] for name in _SIZES)  # noqa: E741
    with figure(9.6, 4.9) as made:
        axes = made.add_subplot()
        _attention(axes, D, H, H_kv, D_h)
        _mlp(axes, D, I)
        swatches = [Patch(fc=to_rgba(color, 0.35), ec=color, label=kind) for kind, color in _KINDS.items()]
        made.legend(handles=swatches, loc="outside lower center", ncols=len(swatches))
        axes.set_xlim(-0.75, 11.6)
        axes.set_ylim(-1.1, 4.75)
        bare(axes, title)
    return made


def _attention(axes: Any, D: int, H: int, H_kv: int, D_h: int) -> None:
    _ends(axes, _MIDDLE, D, "input\nnorm", "post-attn\nnorm")
    for y, name, heads in ((_TOP, "q_proj", H), (_MIDDLE, "k_proj", H_kv), (_LOW, "v_proj", H_kv)):
        _arrow(axes, (1.65, _MIDDLE), (1.8, _MIDDLE), (1.8, y), (2.05, y))
        _box(axes, 2.7, y, 1.3, f"{name}\n{D} to {heads} x {D_h}", "product with a weight")
    for y in (_TOP, _MIDDLE):
        _arrow(axes, (3.35, y), (3.65, y))
        _box(axes, 4.2, y, 1.1, "norm,\nrotary", "RMSNorm")
    _arrow(axes, (4.75, _MIDDLE), (5.05, _MIDDLE))
    _arrow(axes, (3.35, _LOW), (5.05, _LOW))
    _box(axes, 5.5, (_MIDDLE + _LOW) / 2, 0.9, "KV\ncache", "keys and values kept", tall=_TALL + _MIDDLE - _LOW)
    _arrow(axes, (4.75, _TOP), (6.25, _TOP))
    _arrow(axes, (5.95, _MIDDLE), (6.25, _MIDDLE))
    _arrow(axes, (5.95, _LOW), (6.25, _LOW))
    text = f"attention\n{H} query heads,\n{H_kv} key/value head{'s' * (H_kv > 1)}"
    _box(axes, 6.95, _MIDDLE, 1.4, text, "attention", tall=_TALL + _TOP - _LOW)
    _arrow(axes, (7.65, _MIDDLE), (7.95, _MIDDLE))
    _box(axes, 8.55, _MIDDLE, 1.2, f"o_proj\n{H * D_h} to {D}", "product with a weight")


def _mlp(axes: Any, D: int, I: int) -> None:  # noqa: E741
    gate, up = _MLP + 0.45, _MLP - 0.45
    _ends(axes, _MLP, D, "pre-ffn\nnorm", "post-ffn\nnorm")
    for y, name in ((gate, "gate_proj"), (up, "up_proj")):
        _arrow(axes, (1.65, _MLP), (1.8, _MLP), (1.8, y), (2.05, y))
        _box(axes, 2.7, y, 1.3, f"{name}\n{D} to {I}", "product with a weight")
    _arrow(axes, (3.35, gate), (3.65, gate))
    _box(axes, 4.2, gate, 1.1, "GeLU", "elementwise")
    _arrow(axes, (4.75, gate), (6.95, gate), (6.95, _MLP + 0.2))
    _arrow(axes, (3.35, up), (6.95, up), (6.95, _MLP - 0.2))
    _node(axes, 6.95, _MLP, "\u00d7")
    _arrow(axes, (7.15, _MLP), (7.95, _MLP))
    _box(axes, 8.55, _MLP, 1.2, f"down_proj\n{I} to {D}", "product with a weight")


def _ends(axes: Any, y: float, D: int, first: str, last: str) -> None:
    """What both halves share: x comes in, a norm is first and last, and x is added to the result."""
    axes.text(-0.35, y, f"x\nB x L x {D}", ha="center", va="center", fontsize=8.5, linespacing=1.2)
    _arrow(axes, (0.25, y), (0.75, y))
    _box(axes, 1.2, y, 0.9, first, "RMSNorm")
    _arrow(axes, (9.15, y), (9.4, y))
    _box(axes, 9.85, y, 0.9, last, "RMSNorm")
    _arrow(axes, (10.3, y), (10.6, y))
    _node(axes, 10.8, y, "+")
    _arrow(axes, (11.0, y), (11.5, y))
    bow = _TOP + 0.62 if y == _MIDDLE else _MLP + 1.15
    _arrow(axes, (0.5, y), (0.5, bow), (10.8, bow), (10.8, y + 0.2))


def _box(axes: Any, x: float, y: float, wide: float, text: str, kind: str, tall: float = _TALL) -> None:
    color = _KINDS[kind]
    axes.add_patch(
        FancyBboxPatch((x - wide / 2, y - tall / 2), wide, tall, boxstyle="round,pad=0,rounding_size=0.08",
                       fc=to_rgba(color, 0.35), ec=color, lw=1, zorder=3)
    )  # fmt: skip
    axes.text(x, y, text, ha="center", va="center", fontsize=8, linespacing=1.2, zorder=4)


def _node(axes: Any, x: float, y: float, sign: str) -> None:
    color = _KINDS["elementwise"]
    axes.plot(x, y, marker="o", ms=15, mfc=to_rgba(color, 0.35), mec=color, mew=1, zorder=3)
    axes.text(x, y, sign, ha="center", va="center_baseline", fontsize=11, zorder=4)


def _arrow(axes: Any, *corners: Sequence[float]) -> None:
    """A line through the corners, with a head at its end."""
    xs, ys = zip(*corners, strict=True)
    axes.plot(xs, ys, color=GREY, lw=1, zorder=2)
    axes.annotate("", corners[-1], corners[-2], zorder=2,
                  arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": 1, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
