"""
Bytes held by tensors, exact and the same on every run.
"""
from __future__ import annotations
import typing
__all__: list[str] = ['Block', 'Recorder', 'allocated', 'available', 'empty_cache', 'peak', 'reserved', 'reset_peak', 'set_limit', 'snapshot']
class Block:
    """
    One live allocation.
    """
    def __repr__(self) -> str:
        ...
    @property
    def bytes(self) -> int:
        ...
    @property
    def op(self) -> str:
        """
        The op that allocated it; '' for tensors made by the user.
        """
class Recorder:
    """
    Records every allocation and free; rooflab.memory.record() is built on it.
    """
    def __init__(self, device: str | None = None) -> None:
        ...
    def blocks(self) -> list:
        """
        (op, range, device, bytes, is_scratch, stack) of each block.
        """
    def events(self) -> list:
        """
        (time_ns, block, freed) of each event, in order.
        """
    def start(self) -> None:
        ...
    def stop(self) -> None:
        ...
    @property
    def dropped(self) -> int:
        ...
    @property
    def duration_ns(self) -> int:
        ...
    @property
    def live_bytes(self) -> int:
        """
        Bytes held above `resident_bytes`, now or at the stop.
        """
    @property
    def peak_bytes(self) -> int:
        """
        The highest value of `live_bytes`.
        """
    @property
    def resident_bytes(self) -> int:
        """
        Bytes in tensors at the start.
        """
def allocated(device: str = 'cpu') -> int:
    """
    Bytes in live tensors.
    """
def available(device: str = 'cpu') -> int:
    """
    Bytes that tensors can still get.
    """
def empty_cache(device: str = 'cpu', keep_bytes: typing.SupportsInt | typing.SupportsIndex = 0) -> None:
    """
    Returns memory that no tensor holds to the system, until at most `keep_bytes` are `reserved`.
    """
def peak(device: str = 'cpu') -> int:
    """
    Highest `allocated` since `reset_peak`.
    """
def reserved(device: str = 'cpu') -> int:
    """
    Bytes taken from the system, cached blocks included.
    """
def reset_peak(device: str = 'cpu') -> None:
    ...
def set_limit(bytes: typing.SupportsInt | typing.SupportsIndex | None, device: str = 'cpu') -> None:
    """
    From here on an allocation that would bring `allocated` above `bytes` raises OutOfMemoryError, as on a device with no more memory; None removes the limit.
    """
def snapshot(device: str = 'cpu') -> list[Block]:
    """
    Every live allocation, oldest first.
    """
