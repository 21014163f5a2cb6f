"""Values of tensors that a function reads while it is recorded: a program would repeat the first of them."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .. import _core
from .._core import Tensor

__all__ = ["refused"]

_READS = ("item", "tolist", "numpy", "__array__", "__dlpack__", "__float__", "__int__", "__bool__", "__index__")
_lock = threading.Lock()
_recordings = 0
_as_they_were: dict[str, Any] = {}


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """Methods that read values raise ValueError in the thread that records, inside a `with` block.

    Tensors without memory have no values: their own methods say so.
    """
    global _recordings
    with _lock:
        if _recordings == 0:
            _as_they_were.update({name: vars(Tensor)[name] for name in _READS})
            for name, method in _as_they_were.items():
                setattr(Tensor, name, _refusing(method))
        _recordings += 1
    try:
        yield
    finally:
        with _lock:
            _recordings -= 1
            if _recordings == 0:
                for name, method in _as_they_were.items():
                    setattr(Tensor, name, method)


def _refusing(method: Callable) -> Callable:
    @functools.wraps(method)
    def read(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if _core._compiler.is_tracing() and not self.device.startswith("meta"):
            name = method.__name__.strip("_")
            raise ValueError(
                f"[{name}] reads the value of a tensor, which a program would not read again; read it "
                "before, and pass the number as an argument"
            )
        return method(self, *args, **kwargs)

    return read
