"""Where a tensor lies: a text that also knows its parts."""

from __future__ import annotations

import re

from . import _core
from ._arguments import is_integer

_TEXT = re.compile(r"cpu(:0)?|cuda(:(0|[1-9][0-9]{0,2}))?|meta(:.+)?")  # the CPU and GPUs as csrc/bindings reads them


class device(str):
    """A device, "cpu", "cuda:0" or "meta:H200": a str, so that it equals that text, with PyTorch's attributes.

    Parameters
    ----------
    type : str
        "cpu", "cuda", "cuda:1", "meta" or "meta:NAME", with a name that `rl.meta` takes. "cpu:0" is the CPU as well.
    index : int, optional
        The number of the GPU if `type` is "cuda"; 0 if it is "cpu".

    Attributes
    ----------
    type : str
        What comes before the colon.
    index : int or None
        The number after it.

    Raises
    ------
    ValueError
        For another kind of device, and for an index that the kind does not have.
    TypeError
        For a type that is not a text, and an index that is not an integer.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2)
    >>> x.device.type, x.device == "cpu", rl.device("cuda", 1), rl.device("cuda:1").index
    ('cpu', True, 'cuda:1', 1)
    """

    __slots__ = ()

    def __new__(cls, type: str, index: int | None = None) -> device:
        if not isinstance(type, str):
            raise TypeError(f"[device] type: expected a text such as 'cuda:0', got {type!r}")
        if index is not None:
            if not is_integer(index):
                raise TypeError(f"[device] index: expected an integer, got {index!r}")
            index = int(index)
            if type not in ("cpu", "cuda") or not 0 <= index <= (0 if type == "cpu" else 999):
                raise ValueError(
                    f"[device] index: expected a GPU's number with 'cuda', or 0 with 'cpu'; got {index} with {type!r}"
                )
            type = f"{type}:{index}"
        if not _TEXT.fullmatch(type):
            raise ValueError(f"[device] expected 'cpu', 'cuda', 'cuda:N' or 'meta:NAME', got {type!r}")
        if type.startswith("meta:"):
            _core.meta(type.removeprefix("meta:"))  # refuses an unknown name
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
