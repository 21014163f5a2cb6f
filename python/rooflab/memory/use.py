"""Bytes that a device can still give, and what one call takes of them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import _core
from .._calls import check_function, check_keywords, check_result
from .._nothing import NO_MEMORY
from ..results import ReadableMixin, Table
from ..units import human


def available(device: str = "cpu") -> int:
    """Bytes that `device` can still give to tensors, including those that rooflab keeps for reuse.

    Parameters
    ----------
    device : str
        "cpu" or "cuda:0". On the CPU this is what Linux calls available, of the whole machine or of what a container
        is limited to. `set_limit` bounds it.

    Returns
    -------
    int
        Bytes now; other programs may take or give some at any time.

    Raises
    ------
    ValueError
        For another name of a device.
    CudaError
        When there is no such GPU.

    Examples
    --------
    >>> from rooflab.memory import available
    >>> available("cpu") > 0
    True
    """
    return _core.memory.available(device)


@dataclass(frozen=True)
class MemoryUse(ReadableMixin):
    """Memory in tensors around one call.

    Attributes
    ----------
    peak_bytes : int
        The most that was held during the call, above `resident_bytes`.
    resident_bytes : int
        Held when the call began: its inputs, weights, whatever else is alive.
    retained_bytes : int
        Held when it had returned, above `resident_bytes`: its result and what that keeps alive, such as what
        autograd saved for the backward pass.
    """

    peak_bytes: int
    resident_bytes: int
    retained_bytes: int

    @property
    def peak_gb(self) -> float:
        """`peak_bytes` in GB (1e9 bytes)."""
        return self.peak_bytes / 1e9

    @property
    def resident_gb(self) -> float:
        """`resident_bytes` in GB (1e9 bytes)."""
        return self.resident_bytes / 1e9

    @property
    def retained_gb(self) -> float:
        """`retained_bytes` in GB (1e9 bytes)."""
        return self.retained_bytes / 1e9

    def __str__(self) -> str:
        if not self.peak_bytes and not self.retained_bytes:
            return NO_MEMORY.format("call")
        peak, resident, retained = (
            human(value, "B") for value in (self.peak_bytes, self.resident_bytes, self.retained_bytes)
        )
        return f"peak {peak} above {resident} resident, {retained} retained"

    def _table(self) -> Table:
        if not self.peak_bytes and not self.retained_bytes:
            return Table((), (), note=str(self))
        head = ("peak, above resident", "resident before", "retained after")
        cells = [human(value, "B") for value in (self.peak_bytes, self.resident_bytes, self.retained_bytes)]
        return Table(head, [cells])


def benchmark_memory(fn: Callable, *args: Any, device: str | None = None, **kwargs: Any) -> MemoryUse:
    """Memory in tensors while ``fn(*args, **kwargs)`` runs, counted to the byte; one call is enough.

    It counts what all threads of the process do.

    Parameters
    ----------
    fn : callable
        Called once; its result is dropped after the count.
    device : str, optional
        "cpu" or "cuda:0"; all devices together when None.

    Returns
    -------
    MemoryUse
        `peak_bytes`, `resident_bytes`, `retained_bytes`, and each in GB.

    Raises
    ------
    ValueError
        If `fn` cannot be called, and for another name of a device; inside a function that `rl.compile` records.
    TypeError
        If `fn` is a generator or async function, or has a `device` of its own and one is given.
    OutOfMemoryError
        As `fn` raised it. What the call held is free again, and the next call can be smaller.

    Examples
    --------
    >>> import rooflab as rl
    >>> a = rl.ones(1000, 1000)
    >>> use = rl.benchmark_memory(lambda: rl.exp(a) + 1)
    >>> use.peak_bytes, use.retained_bytes
    (8000000, 4000000)
    """
    check_function("benchmark_memory", fn)
    check_keywords("benchmark_memory", fn, {} if device is None else {"device": device})
    gc.collect()  # tensors that only cycles hold are not resident
    recorder = _core.memory.Recorder(device)
    recorder.start()
    try:
        result = fn(*args, **kwargs)
        check_result("benchmark_memory", result)
    finally:
        recorder.stop()
    use = MemoryUse(recorder.peak_bytes, recorder.resident_bytes, recorder.live_bytes)
    del result
    return use
