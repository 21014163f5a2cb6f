"""
Bytes held by tensors, exact and the same on every run.
"""
from __future__ import annotations
import typing
__all__: list[str] = ['Block', 'Recorder', 'allocated', 'empty_cache', 'peak', 'reserved', 'reset_peak', 'snapshot']
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
    What rooflab.memory.record() stands on: every allocation and free.
    """
    def __init__(self, device: str | None = None) -> None:
        ...
    def blocks(self) -> list:
        """
        (op, range, device, bytes) of each block.
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
        Above `resident_bytes`, now or at the stop.
        """
    @property
    def peak_bytes(self) -> int:
        """
        The highest that `live_bytes` was.
        """
    @property
    def resident_bytes(self) -> int:
        """
        In tensors at the start.
        """
def allocated(device: str = 'cpu') -> int:
    """
    Bytes in live tensors.
    """
def empty_cache(device: str = 'cpu') -> None:
    """
    Gives cached blocks back to the system.
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
def snapshot(device: str = 'cpu') -> list[Block]:
    """
    Every live allocation, oldest first.
    """
