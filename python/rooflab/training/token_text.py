"""A text as a row of tokens, and rows of it to learn from."""

from __future__ import annotations

import hashlib

import numpy as np

from .. import _core
from .._core import Tensor

__all__ = ["TokenText"]


class TokenText:
    """A text as tokens; `ByteText` and `BpeText` make them.

    Parameters
    ----------
    tokens : ndarray of int
        All of them, in order.
    vocab_size : int
        V.
    context_length : int
        L, tokens of a row.

    Attributes
    ----------
    digest : str
        SHA-256 of the tokens.
    unit : str
        What a token is called.
    """

    unit = "token"

    def __init__(self, tokens: np.ndarray, vocab_size: int, context_length: int, name: str) -> None:
        if len(tokens) <= context_length:
            raise ValueError(
                f"[{type(self).__name__}] {name}: expected at least context_length + 1 = {context_length + 1} "
                f"{self.unit}s, got {len(tokens)}"
            )
        self._tokens = tokens
        self.vocab_size = vocab_size
        self.context_length = context_length
        self.digest = hashlib.sha256(tokens.tobytes()).hexdigest()

    def __len__(self) -> int:
        return len(self._tokens)

    def batch(self, seed: int, step: int, batch_size: int, device: str = "cpu") -> tuple[Tensor, Tensor]:
        """Tokens and the tokens after them, each int64 (B, L), from random places in the text.

        The seed and the step alone decide which places, so a training that resumes needs no other state.
        """
        first = np.random.default_rng((seed, step)).integers(0, len(self) - self.context_length, batch_size)
        rows = self._tokens[first[:, None] + np.arange(self.context_length + 1)].astype(np.int64)
        return _core.tensor(rows[:, :-1], device=device), _core.tensor(rows[:, 1:], device=device)
