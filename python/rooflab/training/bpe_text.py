"""A text as tokens that byte pair encoding makes of it (Sennrich et al., arxiv.org/abs/1508.07909).

The merges are learnt and applied by Hugging Face's tokenizers, which is imported only here. The text is split into
words as GPT-2 splits it. Each word begins as its bytes, so any text can be encoded, and decoding gives it back.
"""

from __future__ import annotations

import importlib
import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..files import readable
from ..serialization import load_metadata
from .token_text import TokenText

__all__ = ["BpeText", "tokenizer_of"]

_BYTES = 256
_PIECE = 1 << 16  # characters that are encoded at a time, by one thread
# Where a text may be cut without a change to its tokens: after one line break between two words.
_CUT = re.compile(r"(?<=[\w.,;:!?])\n(?=\w)")


class BpeText(TokenText):
    """A text in tokens that were learnt from it: the 256 bytes, and what the most frequent pairs were merged into.

    Parameters
    ----------
    data : bytes
        The text, in UTF-8.
    context_length : int
        L, tokens of a row.
    vocab_size : int
        V, more than 256.
    tokenizer : str, optional
        A tokenizer that was learnt before, as `tokenizer` gives it; learnt from the text when not given.
    name : str
        The text's name in errors.

    Attributes
    ----------
    tokenizer : str
        The vocabulary and its merges, as JSON that Hugging Face's tokenizers reads too.
    bytes : int
        Bytes of the text.

    Raises
    ------
    ImportError
        Where the package tokenizers is not installed.
    ValueError
        For a text that is not UTF-8, or of fewer than L + 1 tokens; for a vocabulary that is larger than the text gives
        pairs for, or another than the tokenizer's.

    Examples
    --------
    >>> from rooflab.training import BpeText
    >>> text = BpeText(b"to be or not to be, " * 9, context_length=8, vocab_size=260)  # doctest: +SKIP
    >>> len(text) < text.bytes, text.decode(text.batch(seed=0, step=1, batch_size=1)[0][0])  # doctest: +SKIP
    (True, ' to be, to be or not to')
    """

    def __init__(
        self, data: bytes, context_length: int, vocab_size: int, tokenizer: str | None = None, name: str = "text"
    ) -> None:
        if vocab_size <= _BYTES:
            raise ValueError(f"[BpeText] vocab_size: expected more than the {_BYTES} bytes, got {vocab_size}")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"[BpeText] {name}: expected UTF-8, got {data[error.start]:#04x} at byte {error.start}; "
                "with bytes as tokens any file will do"
            ) from error
        self._encoder = _learnt(text, vocab_size) if tokenizer is None else _read(tokenizer)
        found = self._encoder.get_vocab_size()
        if found != vocab_size:
            why = (
                f"at most {found}, as {name} has no more pairs to merge"
                if tokenizer is None
                else (f"{found}, as the tokenizer has that was learnt before")
            )
            raise ValueError(f"[BpeText] vocab_size: expected {why}, got {vocab_size}")
        self.tokenizer: str = self._encoder.to_str()
        self.bytes = len(data)
        super().__init__(_encoded(self._encoder, text), vocab_size, context_length, name)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike, context_length: int, vocab_size: int, tokenizer: str | None = None
    ) -> BpeText:
        """Read a file.

        Raises
        ------
        OSError
            When it cannot be read.
        ImportError, ValueError
            As when it is made from bytes.
        """
        return cls(readable(path).read_bytes(), context_length, vocab_size, tokenizer, os.fspath(path))

    def decode(self, tokens: Any) -> str:
        """The text of tokens, a sequence or a tensor (L,); an incomplete character becomes U+FFFD."""
        return self._encoder.decode([int(token) for token in tokens])


def tokenizer_of(checkpoint: str | os.PathLike) -> str:
    """The tokenizer that a checkpoint of a training on a `BpeText` holds.

    Parameters
    ----------
    checkpoint : path
        A file that a training wrote.

    Returns
    -------
    str
        JSON that the package tokenizers reads.

    Raises
    ------
    ValueError
        When it holds none, or is no checkpoint.
    OSError
        When it cannot be read.

    Examples
    --------
    >>> from rooflab.training import tokenizer_of
    >>> import rooflab as rl
    >>> rl.save({"weight": rl.ones(2)}, "weights.safetensors", metadata={"tokenizer": "{}"})
    >>> tokenizer_of("weights.safetensors")
    '{}'
    """
    tokenizer = load_metadata(checkpoint).get("tokenizer")
    if tokenizer is None:
        raise ValueError(f"[BpeText] {os.fspath(checkpoint)}: expected a checkpoint with a tokenizer, got one without")
    return tokenizer


def _library() -> Any:
    try:
        return importlib.import_module("tokenizers")
    except ImportError as error:
        raise ImportError("[BpeText] the package tokenizers is missing: pip install 'rooflab[bpe]'") from error


def _learnt(text: str, vocab_size: int) -> Any:
    library = _library()
    level = library.pre_tokenizers.ByteLevel
    encoder = library.Tokenizer(library.models.BPE())
    encoder.pre_tokenizer = level(add_prefix_space=False)
    encoder.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=sorted(level.alphabet()), show_progress=False
    )
    encoder.train_from_iterator(_pieces(text), trainer)
    return encoder


def _read(tokenizer: str) -> Any:
    library = _library()
    try:
        return library.Tokenizer.from_str(tokenizer)
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"[BpeText] tokenizer: expected what BpeText.tokenizer gives ({error})") from error


def _encoded(encoder: Any, text: str) -> np.ndarray:
    pieces, found = _pieces(text), [np.empty(0, np.int32)]
    while some := list(itertools.islice(pieces, 64)):  # their encodings take many times the memory of the tokens
        found += [np.array(one.ids, np.int32) for one in encoder.encode_batch_fast(some, add_special_tokens=False)]
    return np.concatenate(found)


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of some 65,000 characters; one piece where it has no place to cut."""
    start = 0
    while start < len(text):
        cut = _CUT.search(text, start + _PIECE)
        end = cut.end() if cut else len(text)
        yield text[start:end]
        start = end
