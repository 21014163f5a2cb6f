"""A text as tokens, one a byte."""

from __future__ import annotations

import os

import numpy as np

from ..files import readable
from .token_text import TokenText

__all__ = ["ByteText"]


class ByteText(TokenText):
    """A text whose tokens are its bytes, so the vocabulary has 256.

    Parameters
    ----------
    data : bytes
        The text, in UTF-8 or anything else.
    context_length : int
        L, tokens of a row.
    name : str
        The text's name in errors.

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
    >>> from rooflab.training import ByteText
    >>> text = ByteText(b"to be or not to be", context_length=8)
    >>> tokens, targets = text.batch(seed=0, step=1, batch_size=3)
    >>> tokens.shape, bytes(tokens[0].tolist()[1:]) == bytes(targets[0].tolist()[:-1])
    ((3, 8), True)
    """

    unit = "byte"

    def __init__(self, data: bytes, context_length: int, name: str = "text") -> None:
        super().__init__(np.frombuffer(data, np.uint8), 256, context_length, name)

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
        return cls(readable(path).read_bytes(), context_length, os.fspath(path))
