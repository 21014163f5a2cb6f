"""Where a tensor lies: a text that also knows its parts."""

from __future__ import annotations


class device(str):
    """A device, "cpu", "cuda:0" or "meta:H200": a str, so that it equals that text, with PyTorch's attributes.

    Parameters
    ----------
    type : str
        "cpu", "cuda", "cuda:1", "meta" or "meta:NAME".
    index : int, optional
        The number of the GPU, if `type` is "cuda".

    Attributes
    ----------
    type : str
        What comes before the colon.
    index : int or None
        The number after it.

    Raises
    ------
    ValueError
        For another kind of device, or an index of what has none.
    TypeError
        For a type that is no text.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2)
    >>> x.device.type, x.device == "cpu", device("cuda", 1), device("cuda:1").index
    ('cpu', True, 'cuda:1', 1)
    """

    __slots__ = ()

    def __new__(cls, type: str, index: int | None = None) -> device:
        if not isinstance(type, str):
            raise TypeError(f"[device] type: expected a text, got {type!r}")
        kind, _, rest = type.partition(":")
        if index is not None:
            if kind != "cuda" or rest or not isinstance(index, int) or index < 0:
                raise ValueError(f"[device] index: expected the number of a GPU for 'cuda', got {index!r} for {type!r}")
            type = f"{type}:{index}"
        elif kind not in ("cpu", "cuda", "meta") or (kind == "cuda" and ":" in type and not rest.isdecimal()):
            raise ValueError(f"[device] expected 'cpu', 'cuda', 'cuda:N' or 'meta:NAME', got {type!r}")
        return super().__new__(cls, type)

    @property
    def type(self) -> str:
        """What comes before the colon."""
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number after the colon; None where there is none."""
        rest = self.partition(":")[2]
        return int(rest) if rest.isdecimal() else None
