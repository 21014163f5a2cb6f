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
    Bytes in live tensors. Each is counted once, whatever caches hold besides.
    
    Parameters
    ----------
    device : str
        "cpu", "cuda" or "cuda:0"; a meta device has the bytes that its tensors would take.
    
    Returns
    -------
    int
        Bytes.
    
    Raises
    ------
    ValueError
        For what is not a device.
    CudaError
        For a GPU that is not there.
    
    Examples
    --------
    >>> before = rl.memory.allocated()
    >>> x = rl.ones(1000)
    >>> rl.memory.allocated() - before
    4000
    """
def available(device: str = 'cpu') -> int:
    """
    Bytes that tensors can still get: free memory of the device, cached blocks, and no more than a limit leaves.
    
    Parameters
    ----------
    device : str
        "cpu", "cuda" or "cuda:0"; a meta device has the bytes that its tensors would take.
    
    Returns
    -------
    int
        Bytes.
    
    Raises
    ------
    ValueError
        For what is not a device.
    CudaError
        For a GPU that is not there.
    
    Examples
    --------
    >>> rl.memory.available() > 0
    True
    """
def empty_cache(device: str = 'cpu', keep_bytes: typing.SupportsIndex = 0) -> None:
    """
    Return memory that no tensor holds to the system.
    
    Parameters
    ----------
    device : str
        "cpu", "cuda" or "cuda:0"; a meta device has the bytes that its tensors would take.
    keep_bytes : int
        Stop when no more than this is `reserved`.
    
    Raises
    ------
    ValueError
        For what is not a device.
    CudaError
        For a GPU that is not there.
    
    Examples
    --------
    >>> rl.memory.empty_cache()
    """
def peak(device: str = 'cpu') -> int:
    """
    The most bytes in live tensors at once since `reset_peak`.
    
    Parameters
    ----------
    device : str
        "cpu", "cuda" or "cuda:0"; a meta device has the bytes that its tensors would take.
    
    Returns
    -------
    int
        Bytes.
    
    Raises
    ------
    ValueError
        For what is not a device.
    CudaError
        For a GPU that is not there.
    
    Examples
    --------
    >>> rl.memory.reset_peak()
    >>> before = rl.memory.allocated()
    >>> x = rl.ones(1000) + 1  # the ones live until the sum is computed
    >>> rl.memory.peak() - before
    8000
    """
def reserved(device: str = 'cpu') -> int:
    """
    Bytes taken from the system: those of live tensors, and cached blocks.
    
    Parameters
    ----------
    device : str
        "cpu", "cuda" or "cuda:0"; a meta device has the bytes that its tensors would take.
    
    Returns
    -------
    int
        Bytes.
    
    Raises
    ------
    ValueError
        For what is not a device.
    CudaError
        For a GPU that is not there.
    
    Examples
    --------
    >>> rl.memory.reserved() >= rl.memory.allocated()
    True
    """
def reset_peak(device: str = 'cpu') -> None:
    """
    Begin a new `peak` at what live tensors hold now.
    
    Parameters
    ----------
    device : str
        "cpu", "cuda" or "cuda:0"; a meta device has the bytes that its tensors would take.
    
    Raises
    ------
    ValueError
        For what is not a device.
    CudaError
        For a GPU that is not there.
    
    Examples
    --------
    >>> rl.memory.reset_peak()
    >>> rl.memory.peak() == rl.memory.allocated()
    True
    """
def set_limit(bytes: typing.SupportsIndex | None, device: str = 'cpu') -> None:
    """
    Let no allocation bring `allocated` above a number of bytes, as on a smaller device.
    
    One that would raises OutOfMemoryError, which names what was asked for and what is held. Tensors that are there stay.
    
    Parameters
    ----------
    bytes : int or None
        The limit, 0 or more; None removes it.
    device : str
        "cpu", "cuda" or "cuda:0"; a meta device has the bytes that its tensors would take.
    
    Raises
    ------
    ValueError
        For a limit below 0, and for what is not a device.
    CudaError
        For a GPU that is not there.
    
    Examples
    --------
    >>> rl.memory.set_limit(10**10)
    >>> rl.memory.set_limit(None)
    """
def snapshot(device: str = 'cpu') -> list[Block]:
    """
    Every live allocation, oldest first.
    
    Parameters
    ----------
    device : str
        "cpu", "cuda" or "cuda:0"; a meta device has the bytes that its tensors would take.
    
    Returns
    -------
    list of Block
        Each with `op`, the op that allocated it ("" for tensors made by the user), and `bytes`.
    
    Raises
    ------
    ValueError
        For what is not a device.
    CudaError
        For a GPU that is not there.
    
    Examples
    --------
    >>> y = rl.ones(4) + 1
    >>> rl.memory.snapshot()[-1]
    Block(op='add', bytes=16)
    """
