"""Language models for Lab 4 that are trained in seconds: transformers over characters, and a text for them to learn.

Everything is float32 on the CPU, and the same seed gives the same numbers. Shapes: B sequences, L tokens, D width, V
characters.
"""

from __future__ import annotations

import random

import numpy as np

import rooflab as rl
from rooflab.nn import Embedding, Linear, Module, ModuleList, RMSNorm, RotaryEmbedding
from rooflab.optim import AdamW, warmup_cosine

__all__ = ["ALPHABET", "CONTEXT", "TinyCache", "TinyLM", "encode", "story", "train"]

ALPHABET = " ,.abcdefghijklmnopqrstuvwxyz"
"""The characters that a text may have; a token is an index into it."""

CONTEXT = 128
"""The longest text that a `TinyLM` reads and writes, in characters."""

_ADJECTIVES = ["old", "small", "quiet", "green", "happy", "clever"]
_NOUNS = ["fox", "owl", "miller", "river", "baker", "child", "king"]
_VERBS = ["sees", "follows", "likes", "hears", "helps"]
_PLACES = ["in the garden", "near the mill", "under the bridge", "by the sea", "at night"]


def story(sentences: int, seed: int = 0) -> str:
    """Simple sentences made at random from thirty words.

    Examples
    --------
    >>> story(1)
    'the green king sees the river under the bridge. '
    """
    draw, parts = random.Random(seed), []
    for _ in range(sentences):
        first, second = draw.sample(_NOUNS, 2)
        doing = f"the {draw.choice(_ADJECTIVES)} {first} {draw.choice(_VERBS)} the {second} {draw.choice(_PLACES)}"
        answer = f", and the {second} {draw.choice(_VERBS)} the {first}" if draw.random() < 0.5 else ""
        parts.append(f"{doing}{answer}. ")
    return "".join(parts)


def encode(text: str) -> list[int]:
    """The tokens of a text.

    Examples
    --------
    >>> encode("a fox.")
    [3, 0, 8, 17, 26, 2]
    """
    return [ALPHABET.index(character) for character in text]


class TinyCache:
    """Keys and values (1, H, CONTEXT, D_h) of one text in each layer of a model, for use under `rl.no_grad()`.

    Attributes
    ----------
    length : int
        How many tokens are known. Setting a smaller number forgets the last ones.

    Examples
    --------
    >>> model = TinyLM(width=8, layers=1, heads=1)
    >>> cache = TinyCache(model)
    >>> with rl.no_grad():
    ...     scores = model(rl.tensor([[1, 2, 3]]), cache)
    >>> cache.length
    3
    """

    def __init__(self, model: TinyLM) -> None:
        shape = (1, model.heads, CONTEXT, model.width // model.heads)
        self.layers = [(rl.zeros(*shape), rl.zeros(*shape)) for _ in model.layers]
        self.length = 0

    def extend(self, layer: int, k: rl.Tensor, v: rl.Tensor) -> list[rl.Tensor]:
        """Write k and v of new tokens behind the known ones, and return those of all."""
        end = self.length + k.shape[2]
        for held, new in zip(self.layers[layer], (k, v), strict=True):
            held[:, :, self.length : end] = new
        return [held[:, :, :end] for held in self.layers[layer]]


class _Layer(Module):
    def __init__(self, width: int, heads: int) -> None:
        self._heads = heads
        self.attention_norm, self.mlp_norm = RMSNorm(width, 1e-6), RMSNorm(width, 1e-6)
        self.qkv, self.output = Linear(width, 3 * width, bias=False), Linear(width, width, bias=False)
        self.up, self.down = Linear(width, 4 * width), Linear(4 * width, width)

    def forward(self, x: rl.Tensor, positions: tuple, cache: TinyCache | None, layer: int) -> rl.Tensor:
        B, L, D = x.shape
        heads = self.qkv(self.attention_norm(x)).reshape(B, L, 3, self._heads, D // self._heads)
        q, k, v = (heads[:, :, one].transpose(1, 2) for one in range(3))
        q, k = (rl.rope(one, *positions) for one in (q, k))
        if cache is not None:
            k, v = cache.extend(layer, k, v)
        seen = rl.attention(q, k, v, is_causal=True)
        x = x + self.output(seen.transpose(1, 2).reshape(B, L, D))
        return x + self.down(rl.gelu(self.up(self.mlp_norm(x))))


class TinyLM(Module):
    """A transformer over characters, with rotary positions and an output head that is its embedding.

    Parameters
    ----------
    width, layers, heads : int
        D, how many layers, and H. The weights are drawn from rooflab's generator: see `rl.manual_seed`.

    Examples
    --------
    >>> TinyLM(width=8, layers=1, heads=1)(rl.tensor([[1, 2, 3]])).shape
    (1, 3, 29)
    """

    def __init__(self, width: int, layers: int, heads: int) -> None:
        self.width, self.heads = width, heads
        self.embedding, self.norm = Embedding(len(ALPHABET), width), RMSNorm(width, 1e-6)
        self.layers = ModuleList([_Layer(width, heads) for _ in range(layers)])
        self._positions = RotaryEmbedding(10000.0, width // heads, dtype="float32")

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return sum(weight.nbytes for weight in self.parameters())

    def forward(self, tokens: rl.Tensor, cache: TinyCache | None = None) -> rl.Tensor:
        """Scores (B, L, V) of what follows each token of (B, L); a cache holds what came before them."""
        begin, L = cache.length if cache else 0, tokens.shape[1]
        x, positions = self.embedding(tokens), self._positions(begin, L)
        for index, layer in enumerate(self.layers):
            x = layer(x, positions, cache, index)
        if cache:
            cache.length += L
        return rl.linear(self.norm(x), self.embedding.weight)


def train(
    text: str, *, width: int, layers: int, heads: int, steps: int = 300, batch: int = 8, seed: int = 0
) -> tuple[TinyLM, list[float]]:
    """A new `TinyLM` that has learned `text`, by Adam on stretches of `CONTEXT` characters.

    Returns
    -------
    TinyLM, list of float
        The model, and the cross-entropy of each step in nats a character.

    Examples
    --------
    >>> model, losses = train(story(20), width=8, layers=1, heads=1, steps=2)
    >>> len(losses), 3 < losses[0] < 4  # log(29) at first
    (2, True)
    """
    rl.manual_seed(seed)
    model, draw, tokens = TinyLM(width, layers, heads), np.random.default_rng(seed), np.array(encode(text))
    optimizer, losses = AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=0.0), []
    for t in range(1, steps + 1):
        starts = draw.integers(0, len(tokens) - CONTEXT, batch)
        known, following = (np.stack([tokens[start + shift :][:CONTEXT] for start in starts]) for shift in (0, 1))
        loss = rl.cross_entropy(model(rl.tensor(known)).flatten(0, 1), rl.tensor(following.reshape(-1)))
        loss.backward()
        losses.append(loss.item())
        rate = warmup_cosine(t, high=3e-3, low=0.0, warmup=min(20, steps), end=steps + 1)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        optimizer.zero_grad()
    return model, losses
