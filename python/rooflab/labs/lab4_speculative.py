"""Speculative decoding for Lab 4: the loop in which a small model proposes tokens and a large one checks them.

Shapes: V tokens, gamma drafts for a pass of the large model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import rooflab as rl
from rooflab.labs.lab4_tiny_lm import ALPHABET, CONTEXT, TinyCache, TinyLM, encode
from rooflab.results import ResultMixin, Table, flat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Speculation", "greedy_step", "plot_speedup", "speculate"]

Step = Callable[[np.ndarray, np.ndarray, list[int], np.ndarray], Sequence[int]]


def greedy_step(p: np.ndarray, q: np.ndarray, drafts: list[int], uniforms: np.ndarray) -> list[int]:
    """Accept drafts as long as each is the target's most likely token, then add the target's own.

    Parameters
    ----------
    p : array
        (gamma + 1, V): the target's probabilities at the place of each draft and after the last one.
    q : array
        (gamma, V): the draft model's probabilities. Not used here.
    drafts : list of int
        The gamma tokens that the draft model proposes.
    uniforms : array
        (gamma + 1,): random numbers in [0, 1). Not used here.

    Returns
    -------
    list of int
        1 to gamma + 1 tokens: those that plain greedy decoding gives.

    Examples
    --------
    >>> p = np.eye(5)[[1, 2, 3]]
    >>> greedy_step(p, p, [1, 4], np.zeros(3)), greedy_step(p, p, [1, 2], np.zeros(3))
    ([1, 2], [1, 2, 3])
    """
    best = [int(token) for token in p.argmax(-1)]
    accepted = next((place for place, token in enumerate(drafts) if token != best[place]), len(drafts))
    return best[: accepted + 1]


@dataclass
class Speculation(ResultMixin):
    """What `speculate` wrote, and what that cost.

    Attributes
    ----------
    texts : list of str
        Each prompt with what follows it.
    written : int
        Characters, without those of the prompts.
    passes : int
        Passes of the target, each of which reads all of its weights.
    accepted : int
        Drafts that became part of a text.
    tested : list of (array, array)
        For each draft that was looked at (what follows a rejected one is not), the probabilities (V,) that the target
        and the draft model gave in its place.
    bytes_read : dict of str to int
        By ``"target"`` and ``"draft"``, as the runtime counted them.
    """

    texts: list[str] = field(default_factory=list)
    written: int = 0
    passes: int = 0
    accepted: int = 0
    tested: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    bytes_read: dict[str, int] = field(default_factory=lambda: {"target": 0, "draft": 0})

    @property
    def acceptance(self) -> float:
        """The share of tested drafts that was accepted; NaN without drafts."""
        return self.accepted / len(self.tested) if self.tested else float("nan")

    @property
    def tokens_per_pass(self) -> float:
        """Characters written in a pass of the target."""
        return self.written / self.passes

    @property
    def bytes_per_token(self) -> float:
        """Bytes that both models read for a character."""
        return sum(self.bytes_read.values()) / self.written

    def _figures(self) -> Table:
        counts = {name: getattr(self, name) for name in ("written", "passes", "accepted")}
        return Table.of([counts | {"tested": len(self.tested)} | flat({"bytes_read": self.bytes_read})])


def _probabilities(scores: rl.Tensor, temperature: float) -> np.ndarray:
    """Probabilities (L, V) of scores (1, L, V); at temperature 0 the most likely token has probability 1."""
    rows = scores[0].numpy().astype(np.float64)
    if temperature == 0:
        return np.eye(rows.shape[-1])[rows.argmax(-1)]
    exponentials = np.exp((rows - rows.max(-1, keepdims=True)) / temperature)
    return exponentials / exponentials.sum(-1, keepdims=True)


class _Reader:
    """A model with the cache of what it has read."""

    def __init__(self, name: str, model: TinyLM, temperature: float) -> None:
        self.name, self.model, self.temperature = name, model, temperature
        self.cache, self.read = TinyCache(model), 0

    def probabilities(self, tokens: list[int], places: int) -> np.ndarray:
        """Probabilities (places, V) after each of the last tokens; it reads only tokens that it has not read yet."""
        with rl.count() as counted, rl.range(self.name):
            scores = self.model(rl.tensor([tokens[self.cache.length :]]), self.cache)
        self.read += counted.bytes_read
        return _probabilities(scores[:, -places:], self.temperature)


def speculate(
    target: TinyLM,
    draft: TinyLM,
    prompts: Sequence[str],
    length: int,
    gamma: int,
    step: Step = greedy_step,
    *,
    temperature: float = 0.0,
    seed: int = 0,
) -> Speculation:
    """Continue each prompt by at least `length` characters, with `gamma` drafts for a pass of the target.

    Parameters
    ----------
    target, draft : TinyLM
        The model whose text is wanted, and the one that proposes.
    prompts : sequence of str
        Each is continued alone. Prompt, `length` and `gamma` together must fit in `CONTEXT`.
    gamma : int
        Drafts for a pass; 0 writes without drafts.
    step : callable
        ``step(p, q, drafts, uniforms)`` gives the next tokens, as `greedy_step` does.
    temperature : float
        Both models' probabilities are softmax(scores / temperature); 0 puts all on the most likely token.
    seed : int
        Seed of the drafts and of `uniforms`.

    Raises
    ------
    ValueError
        If a text does not fit in `CONTEXT`, or `step` returns no tokens or too many.

    Examples
    --------
    >>> model = TinyLM(width=8, layers=1, heads=1)
    >>> made = speculate(model, model, ["the "], 6, gamma=2)
    >>> made.passes, made.tokens_per_pass, made.acceptance
    (2, 3.0, 1.0)
    """
    made, draw = Speculation(), np.random.default_rng(seed)
    for prompt in prompts:
        if len(prompt) + length + gamma > CONTEXT:
            raise ValueError(f"[speculate] prompt, length and gamma: expected at most {CONTEXT} together")
        tokens, end = encode(prompt), len(prompt) + length
        readers = _Reader("target", target, temperature), _Reader("draft", draft, temperature)
        with rl.no_grad():
            while len(tokens) < end:
                _advance(made, readers[0], readers[1], tokens, gamma, step, draw)
        for reader in readers:
            made.bytes_read[reader.name] += reader.read
        made.texts.append("".join(ALPHABET[token] for token in tokens))
        made.written += len(tokens) - len(prompt)
    return made


def _advance(
    made: Speculation, target: _Reader, draft: _Reader, tokens: list[int], gamma: int, step: Step, draw: Any
) -> None:
    """Draft `gamma` tokens, check them in one pass, and append what `step` makes of them."""
    drafts: list[int] = []
    q = np.empty((gamma, len(ALPHABET)))
    for place in range(gamma):
        q[place] = draft.probabilities(tokens + drafts, 1)[0]
        drafts.append(int(draw.choice(len(ALPHABET), p=q[place])))
    p = target.probabilities(tokens + drafts, gamma + 1)
    new = [int(token) for token in step(p, q, drafts, draw.random(gamma + 1))]
    if not 1 <= len(new) <= gamma + 1:
        raise ValueError(f"[speculate] step: expected 1 to {gamma + 1} tokens, got {len(new)}")
    made.passes += 1
    made.accepted += len(new) - 1
    made.tested += list(zip(p, q, strict=False))[: len(new)]
    tokens += new
    for reader in (target, draft):  # forget what followed a rejected draft
        reader.cache.length = min(reader.cache.length, len(tokens) - 1)


def plot_speedup(curves: Mapping[str, Mapping[int, float]], title: str | None = None) -> Figure:
    """Speedup over the number of drafts, one line per series, its best value marked; 1 is plain decoding.

    Parameters
    ----------
    curves : mapping of str to mapping of int to float
        For each series, the speedup by gamma.
    title : str, optional
        Above the plot.

    Examples
    --------
    >>> figure = plot_speedup({"alpha = 0.8": {1: 1.7, 2: 2.2, 3: 2.1}})
    """
    from rooflab.plots.looks import legend, looks
    from rooflab.plots.style import GREY, figure

    with figure(7.2, 4.0) as made:
        axes = made.add_subplot()
        axes.axhline(1, color=GREY, ls=(0, (5, 2.5)), lw=1.2, label="plain decoding")
        for (name, values), look in zip(curves.items(), looks(curves).values(), strict=True):
            color, best = look.color, max(values, key=values.__getitem__)
            axes.plot(*zip(*sorted(values.items()), strict=True), color=color, ls=look.dash, label=name)
            axes.plot(best, values[best], look.marker, color=color)
            axes.annotate(f"{values[best]:.2f}x at {best}", (best, values[best]), (0, 7), color=color,
                          textcoords="offset points", ha="center", fontsize=8.5)  # fmt: skip
        axes.set_ylim(0, 1.12 * max(max(values.values()) for values in curves.values()))
        axes.set_xlabel("drafts a pass")
        axes.set_ylabel("speedup")
        if title:
            axes.set_title(title)
        legend(made, *axes.get_legend_handles_labels(), "outside right upper")
    return made
