"""
Bytes held by tensors, exact and the same on every run.
"""
from __future__ import annotations
__all__: list[str] = ['Block', 'allocated', 'empty_cache', 'peak', 'reserved', 'reset_peak', 'snapshot']
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
