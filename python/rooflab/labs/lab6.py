"""Associative recall: rows of key-value pairs with questions, a model of attention layers alone, and its training.

A row lists `pairs` keys, each followed by its value, and then asks for every value by its key, in another order:
``k1 v1 k2 v2 ... q1 q2 ...``. Keys are the tokens below `keys`, values those above. What to answer is never shown.

Letters: B rows, L tokens of a row, D model, H heads, D_h head size, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.nn.utils import clip_grad_norm_
from rooflab.optim import AdamW, warmup_flat_linear

__all__ = [
    "RecallModel",
    "attention_maps",
    "fused_attention",
    "once",
    "recall_accuracy",
    "recall_rows",
    "training",
    "two_batches",
]

D, HEADS, EPS = 64, 2, 1e-5
STD = 0.1  # of random weights; with 0.02, which is usual, no number of layers learns the task in time
STEPS, ROWS = 400, 64


def recall_rows(
    rng: np.random.Generator, rows: int, pairs: int = 8, keys: int = 16, values: int = 16
) -> tuple[rl.Tensor, rl.Tensor]:
    """Tokens (rows, 3 pairs) and the value that answers each of the last `pairs` tokens, (rows, pairs), in int64.

    Keys, values and the order of the questions are drawn again for every row; no key and no value occurs twice.

    Examples
    --------
    >>> from rooflab.labs.lab6 import recall_rows
    >>> tokens, targets = recall_rows(np.random.default_rng(0), 2, pairs=2, keys=4, values=4)
    >>> tokens.shape, targets.shape
    ((2, 6), (2, 2))
    """

    def drawn(size: int, of: int) -> rl.Tensor:
        return rl.tensor(rng.random((rows, of))).argsort()[:, :size]

    key, value, order = drawn(pairs, keys), drawn(pairs, values) + keys, drawn(pairs, pairs)
    shown = rl.stack([key, value], dim=2).reshape(rows, 2 * pairs)
    return rl.cat([shown, key.gather(1, order)], dim=1), value.gather(1, order)


def two_batches(recall_batch: Callable[..., Any], seed: int, rows: int) -> tuple[Any, Any]:
    """What `recall_batch` returns when one generator is given to it twice, as `training` does.

    Examples
    --------
    >>> from rooflab.labs.lab6 import recall_rows, two_batches
    >>> first, second = two_batches(recall_rows, 0, 3)
    >>> bool((first[0] == second[0]).all())
    False
    """
    rng = np.random.default_rng(seed)
    return recall_batch(rng, rows), recall_batch(rng, rows)


def fused_attention(
    x: rl.Tensor, Wq: rl.Tensor, Wk: rl.Tensor, Wv: rl.Tensor, Wo: rl.Tensor, heads: int, is_causal: bool = True
) -> rl.Tensor:
    """Self-attention of x (B, L, D) through `rl.attention`, one launch for all heads: (B, L, D).

    Wq, Wk and Wv are (D, H D_h), Wo is (H D_h, D).
    """
    B, L, _ = x.shape
    q, k, v = ((x @ W).reshape(B, L, heads, -1).transpose(1, 2) for W in (Wq, Wk, Wv))
    return rl.attention(q, k, v, is_causal=is_causal).transpose(1, 2).reshape(B, L, -1) @ Wo


class _Layer(rl.nn.Module):
    """x + attention(RMSNorm(x))."""

    def __init__(self, weight: Callable[..., rl.Tensor], device: str) -> None:
        self.gain = rl.ones(D, device=device, requires_grad=True)
        self.Wq, self.Wk, self.Wv, self.Wo = (weight(D, D) for _ in range(4))


class RecallModel(rl.nn.Module):
    """Embedding and learned positions, `layers` times x + attention(RMSNorm(x)), RMSNorm, head; no MLP, no biases.

    Weights are normal with a standard deviation of 0.1, gains are 1; the same seed gives the same weights anywhere.

    Parameters
    ----------
    layers : int
        How many layers of attention.
    attention : callable
        ``attention(x, Wq, Wk, Wv, Wo, heads)`` of x (B, L, D), with weights (D, D).
    seed : int
        Seed of the random weights.
    pairs, keys, values : int
        Sizes of the task: a row has L = 3 pairs tokens, the vocabulary V = keys + values.
    positions : bool
        Whether positions are added to the embeddings.
    device : str
        Where the weights are.

    Examples
    --------
    >>> from rooflab.labs.lab6 import RecallModel, fused_attention, recall_rows
    >>> model = RecallModel(2, fused_attention)
    >>> model(recall_rows(np.random.default_rng(0), 5)[0]).shape, model.num_parameters()
    ((5, 24, 32), 38592)
    """

    def __init__(
        self, layers: int, attention: Callable[..., rl.Tensor], seed: int = 0, pairs: int = 8, keys: int = 16,
        values: int = 16, positions: bool = True, device: str = "cpu",
    ) -> None:  # fmt: skip
        rng = np.random.default_rng((seed, 0))

        def weight(*shape: int) -> rl.Tensor:
            normal = STD * rng.standard_normal(shape)
            return rl.tensor(normal, dtype="float32", device=device, requires_grad=True)

        self._attention = attention
        self.embedding = weight(keys + values, D)
        self.positions = weight(3 * pairs, D) if positions else None
        self.layers: Any = rl.nn.ModuleList(_Layer(weight, device) for _ in range(layers))
        self.gain = rl.ones(D, device=device, requires_grad=True)
        self.head = weight(D, keys + values)

    def forward(self, tokens: rl.Tensor) -> rl.Tensor:
        """Logits (B, L, V) of tokens (B, L)."""
        x = rl.embedding(tokens, self.embedding)
        if self.positions is not None:
            x = x + self.positions
        for layer in self.layers:
            h = rl.rms_norm(x, layer.gain, eps=EPS)
            x = x + self._attention(h, layer.Wq, layer.Wk, layer.Wv, layer.Wo, HEADS)
        return rl.rms_norm(x, self.gain, eps=EPS) @ self.head

    def placed(self, array: Any) -> rl.Tensor:
        """Token numbers as an int64 tensor on the device of the weights."""
        return rl.tensor(array, dtype="int64", device=str(self.embedding.device))


def training(
    model: RecallModel, batch: Callable[..., tuple[Any, Any]], seed: int = 0, steps: int = STEPS
) -> Iterator[tuple[int, float]]:
    """Train for up to `steps` steps of 64 fresh rows each, and give (step, loss) after each of them, from step 1.

    The loss is the mean cross-entropy of the answers. AdamW with betas (0.9, 0.98), no decay, gradients clipped to a
    norm of 1; the learning rate rises to 3e-3 over the first eighth, and falls to 2 % of that over the last quarter.

    Parameters
    ----------
    model : RecallModel
        Trained in place.
    batch : callable
        ``batch(rng, rows)`` gives tokens (rows, L) and targets (rows, pairs).
    seed : int
        Seed of the rows.
    steps : int
        The length of the schedule; stop earlier by leaving the loop.

    Examples
    --------
    >>> from rooflab.labs.lab6 import RecallModel, fused_attention, recall_rows, training
    >>> model = RecallModel(1, fused_attention)
    >>> for step, loss in training(model, recall_rows, steps=3):
    ...     print(step, 3 < loss < 4)
    1 True
    2 True
    3 True
    """
    rng = np.random.default_rng((seed, 1))
    optimizer = AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.0)
    for step in range(1, steps + 1):
        rate = warmup_flat_linear(step, high=3e-3, low=6e-5, warmup=steps // 8, fall=steps - steps // 4, end=steps)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        tokens, targets = map(model.placed, batch(rng, ROWS))
        asked = model(tokens)[:, -targets.shape[1] :]
        loss = rl.cross_entropy(asked.reshape(-1, asked.shape[-1]), targets.reshape(-1))
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield step, loss.item()


_results: dict[tuple[Any, ...], Any] = {}


def once(function: Callable[..., Any], *args: Any) -> Any:
    """Call ``function(*args)`` the first time only; later calls return the same result at once.

    A training that starts from a seed would take the same seconds again to give the same model. A function that was
    defined again is another function, so it is called.

    Examples
    --------
    >>> from rooflab.labs.lab6 import once
    >>> calls = []
    >>> once(calls.append, 3), once(calls.append, 3), once(calls.append, 4), calls
    (None, None, None, [3, 4])
    """
    key = (function, *args)
    if key not in _results:
        _results[key] = function(*args)
    return _results[key]


@rl.no_grad
def recall_accuracy(model: RecallModel, tokens: Any, targets: Any) -> float:
    """The share of `targets` (B, pairs) that are the most likely of all tokens after the last tokens of each row."""
    tokens, targets = model.placed(tokens), model.placed(targets)
    return (model(tokens)[:, -targets.shape[1] :].argmax(-1) == targets).float().mean().item()


@rl.no_grad
def attention_maps(model: RecallModel, tokens: Any) -> list[np.ndarray]:
    """The causal attention weights of each layer, (B, H, L, L): from each token (row) to each token (column)."""
    found, attention = [], model._attention

    def watched(x: rl.Tensor, Wq: rl.Tensor, Wk: rl.Tensor, *rest: Any) -> rl.Tensor:
        B, L, _ = x.shape
        q, k = ((x @ W).reshape(B, L, HEADS, -1).transpose(1, 2) for W in (Wq, Wk))
        hidden = rl.ones(L, L, dtype="bool", device=x.device).triu(1)
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(hidden, -math.inf)
        found.append(scores.softmax(-1).cpu().numpy())
        return attention(x, Wq, Wk, *rest)

    model._attention = watched
    try:
        model(model.placed(tokens))
    finally:
        model._attention = attention
    return found
