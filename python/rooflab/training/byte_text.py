"""A text as tokens, one a byte."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from .. import _core
from .._core import Tensor

__all__ = ["ByteText"]


class ByteText:
    """A text whose tokens are its bytes, so the vocabulary has 256.

    Parameters
    ----------
    data : bytes
        The text, in UTF-8 or anything else.
    context_length : int
        L, tokens of a row.
    name : str
        For errors.

    Attributes
    ----------
    digest : str
        SHA-256 of the text.

    Raises
    ------
    ValueError
        For a text of fewer than L + 1 bytes.

    Examples
    --------
    >>> text = ByteText(b"to be or not to be", context_length=8)
    >>> tokens, targets = text.batch(seed=0, step=1, batch_size=3)
    >>> tokens.shape, bytes(tokens[0].tolist()[1:]) == bytes(targets[0].tolist()[:-1])
    ((3, 8), True)
    """

    vocab_size = 256

    def __init__(self, data: bytes, context_length: int, name: str = "text") -> None:
        if len(data) <= context_length:
            raise ValueError(
                f"[ByteText] {name}: expected at least context_length + 1 = {context_length + 1} bytes, got {len(data)}"
            )
        self._tokens = np.frombuffer(data, np.uint8)
        self.context_length = context_length
        self.digest = hashlib.sha256(data).hexdigest()

    @classmethod
    def from_file(cls, path: str | os.PathLike, context_length: int) -> ByteText:
        """Read a file.

        Raises
        ------
        OSError
            When it cannot be read.
        ValueError
            When it is too short.
        """
        return cls(Path(path).read_bytes(), context_length, os.fspath(path))

    def __len__(self) -> int:
        return len(self._tokens)

    def batch(self, seed: int, step: int, batch_size: int, device: str = "cpu") -> tuple[Tensor, Tensor]:
        """Tokens and the tokens after them, each int64 (B, L), from random places in the text.

        The seed and the step alone decide which places, so a training that goes on needs no other state.
        """
        first = np.random.default_rng((seed, step)).integers(0, len(self) - self.context_length, batch_size)
        rows = self._tokens[first[:, None] + np.arange(self.context_length + 1)].astype(np.int64)
        return _core.tensor(rows[:, :-1], device=device), _core.tensor(rows[:, 1:], device=device)
