"""
The GPU: what there is, streams, events.
"""
from __future__ import annotations
import collections.abc
import rooflab._core
import typing
__all__: list[str] = ['Code', 'Event', 'Kernel', 'Parameter', 'Properties', 'Stream', 'compile_source', 'demangle', 'device_count', 'free_memory', 'is_available', 'launch_empty', 'launch_on_cpu', 'properties', 'synchronize', 'unavailable_reason']
class Properties:
    @property
    def compute_capability(self) -> int:
        """
        90 for sm_90.
        """
    @property
    def driver_version(self) -> str:
        ...
    @property
    def l2_bytes(self) -> int:
        ...
    @property
    def memory_bytes(self) -> int:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def runtime_version(self) -> str:
        ...
    @property
    def shared_memory_per_block_optin(self) -> int:
        ...
    @property
    def sm_count(self) -> int:
        ...
class Stream:
    """
    A queue of work on one GPU. Streams run side by side.
    
    `with stream:` makes it the one to which this thread submits; the one before comes back at the end.
    
    Parameters
    ----------
    device : int
        The number of the GPU.
    
    Raises
    ------
    CudaError
        Where there is no such GPU.
    
    Examples
    --------
    >>> if rl.cuda.is_available():
    ...     with rl.cuda.Stream() as stream:
    ...         y = rl.ones(4, device="cuda") + 1
    ...     stream.synchronize()
    """
    def __enter__(self) -> typing.Any:
        ...
    def __exit__(self, *args) -> None:
        ...
    def __init__(self, device: typing.SupportsIndex = 0) -> None:
        ...
    def synchronize(self) -> None:
        """
        Wait until all work that was submitted to this stream is done.
        
        Raises
        ------
        CudaError
            For an error of earlier work, which may only be found now.
        ValueError, IndexError
            For a number that earlier work found out of range (see rl.cuda.synchronize).
        
        Examples
        --------
        >>> if rl.cuda.is_available():
        ...     rl.cuda.Stream().synchronize()
        """
    @property
    def cuda_stream(self) -> int:
        """
        The stream's handle in CUDA, which other libraries take.
        
        Returns
        -------
        int
            The address of a cudaStream_t, as in PyTorch. It is valid as long as this object lives.
        
        Examples
        --------
        >>> not rl.cuda.is_available() or rl.cuda.Stream().cuda_stream > 0
        True
        """
    @property
    def device(self) -> int:
        """
        The number of its GPU.
        
        Returns
        -------
        int
            0 or more.
        
        Examples
        --------
        >>> not rl.cuda.is_available() or rl.cuda.Stream().device == 0
        True
        """
class Event:
    """
    A point in time on a stream of one GPU, which the GPU notes when it gets there.
    
    Parameters
    ----------
    device : int
        The number of the GPU.
    enable_timing : bool
        For programs written for PyTorch: each event is timed, with it or without.
    
    Raises
    ------
    CudaError
        Where there is no such GPU.
    
    Examples
    --------
    >>> if rl.cuda.is_available():
    ...     start, end = rl.cuda.Event(), rl.cuda.Event()
    ...     start.record()
    ...     y = rl.ones(4, device="cuda") + 1
    ...     end.record()
    ...     assert start.elapsed_ms(end) > 0
    """
    def __init__(self, device: typing.SupportsIndex = 0, enable_timing: bool = True) -> None:
        ...
    def elapsed_ms(self, later: Event) -> float:
        """
        The time from this event to a later one. It waits for the later one.
        
        Parameters
        ----------
        later : Event
            Of the same GPU, and recorded.
        
        Returns
        -------
        float
            Milliseconds, in steps of about half a microsecond.
        
        Raises
        ------
        CudaError
            For an event that was not recorded, and for one of another GPU.
        ValueError, IndexError
            For a number that earlier work found out of range (see rl.cuda.synchronize).
        
        Examples
        --------
        >>> if rl.cuda.is_available():
        ...     start, end = rl.cuda.Event(), rl.cuda.Event()
        ...     start.record()
        ...     end.record()
        ...     assert start.elapsed_ms(end) >= 0
        """
    def elapsed_time(self, end_event: Event) -> float:
        """
        The time from this event to a later one: PyTorch's name of `elapsed_ms`.
        
        Parameters
        ----------
        end_event : Event
            Of the same GPU, and recorded.
        
        Returns
        -------
        float
            Milliseconds.
        
        Raises
        ------
        CudaError
            For an event that was not recorded, and for one of another GPU.
        ValueError, IndexError
            For a number that earlier work found out of range (see rl.cuda.synchronize).
        
        Examples
        --------
        >>> if rl.cuda.is_available():
        ...     start, end = rl.cuda.Event(enable_timing=True), rl.cuda.Event(enable_timing=True)
        ...     start.record()
        ...     end.record()
        ...     assert start.elapsed_time(end) >= 0
        """
    def record(self, stream: Stream | None = None) -> None:
        """
        Put the event into a stream: its time is when the work before it is done.
        
        Parameters
        ----------
        stream : Stream, optional
            One of the event's GPU; by default that GPU's current stream.
        
        Raises
        ------
        ValueError
            For a stream of another GPU.
        CudaError
            When CUDA refuses it.
        
        Examples
        --------
        >>> if rl.cuda.is_available():
        ...     rl.cuda.Event().record()
        """
    def synchronize(self) -> None:
        """
        Wait until the GPU has reached the event. One that was never recorded is not waited for.
        
        Raises
        ------
        CudaError
            For an error of earlier work, which may only be found now.
        ValueError, IndexError
            For a number that earlier work found out of range (see rl.cuda.synchronize).
        
        Examples
        --------
        >>> if rl.cuda.is_available():
        ...     end = rl.cuda.Event()
        ...     end.record()
        ...     end.synchronize()
        """
    @property
    def device(self) -> int:
        """
        The number of its GPU.
        
        Returns
        -------
        int
            0 or more.
        
        Examples
        --------
        >>> not rl.cuda.is_available() or rl.cuda.Event().device == 0
        True
        """
class Code:
    """
    Machine code that was compiled at run time.
    """
    def __init__(self, image: bytes) -> None:
        ...
class Parameter:
    """
    One parameter of a kernel.
    """
    def __init__(self, label: str, kind: str, bytes: typing.SupportsIndex, is_signed: bool = True, dtype: typing.Any = None, is_written: bool = True) -> None:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def bytes(self) -> int:
        ...
    @property
    def dtype(self) -> typing.Any:
        ...
    @property
    def is_signed(self) -> bool:
        ...
    @property
    def is_written(self) -> bool:
        """
        Whether the kernel may write where it points: it is no pointer to const.
        """
    @property
    def kind(self) -> str:
        ...
    @property
    def label(self) -> str:
        ...
class Kernel:
    """
    A __global__ function: kernel(grid, block, *args) launches it.
    """
    def __call__(self, grid: typing.Any, block: typing.Any, *args, shared_bytes: typing.SupportsIndex = 0, cost: rooflab._core.Cost | None = None) -> None:
        """
        Launches on the current stream of the GPU that the tensors are on; counted as one launch of op "custom".
        
        grid and block are one to three numbers. A tensor is passed as the address of its first element, None as a
        null pointer; the caller passes strides. The dynamic shared memory, shared_bytes, may exceed 48 KB.
        """
    def __init__(self, code: Code, symbol: str, name: str, parameters: collections.abc.Sequence[Parameter]) -> None:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def parameters(self) -> list[Parameter]:
        ...
def compile_source(source: str, options: collections.abc.Sequence[str], headers: collections.abc.Sequence[tuple[str, str]] = []) -> tuple[str, bytes, str]:
    """
    (log, machine code, PTX) of CUDA C++, by NVRTC; no machine code when the source has errors. headers: what it may
    include besides files, as (name, text).
    """
def demangle(symbol: str) -> str:
    """
    The source form of a mangled C++ symbol.
    """
def device_count() -> int:
    """
    How many GPUs this process can use.
    
    Returns
    -------
    int
        0 where CUDA is not available.
    
    Examples
    --------
    >>> rl.cuda.device_count() >= 0
    True
    """
def free_memory(device: typing.SupportsIndex = 0) -> int:
    """
    Bytes of a GPU's memory that nobody holds. What rl.memory caches is not among them.
    
    Parameters
    ----------
    device : int
        The number of the GPU.
    
    Returns
    -------
    int
        Bytes.
    
    Raises
    ------
    CudaError
        Where there is no such GPU.
    
    Examples
    --------
    >>> not rl.cuda.is_available() or rl.cuda.free_memory() > 0
    True
    """
def is_available() -> bool:
    """
    Whether this build has CUDA, and the machine a driver and a GPU.
    
    Returns
    -------
    bool
        Never an error; where it is False, `unavailable_reason` says why.
    
    Examples
    --------
    >>> rl.cuda.is_available() == (rl.cuda.device_count() > 0)
    True
    """
def launch_empty(device: typing.SupportsIndex = 0) -> None:
    """
    Launch a kernel that does nothing, to measure what a launch costs.
    
    Parameters
    ----------
    device : int
        The number of the GPU.
    
    Raises
    ------
    CudaError
        Where there is no such GPU.
    
    Examples
    --------
    >>> if rl.cuda.is_available():
    ...     rl.cuda.launch_empty()
    """
def launch_on_cpu(kernel: str, run: collections.abc.Callable, written: collections.abc.Sequence[rooflab._core.Tensor], cost: rooflab._core.Cost) -> None:
    """
    Calls run(), which runs a kernel that may write those tensors, and counts one launch of op "custom".
    """
def properties(device: typing.SupportsIndex = 0) -> Properties:
    """
    What a GPU is: its name, size and versions.
    
    Parameters
    ----------
    device : int
        The number of the GPU.
    
    Returns
    -------
    Properties
        `name`, `compute_capability` (90 for sm_90), `sm_count`, `memory_bytes`, `l2_bytes`,
        `shared_memory_per_block_optin` (bytes), `driver_version`, `runtime_version`.
    
    Raises
    ------
    CudaError
        Where there is no such GPU.
    
    Examples
    --------
    >>> not rl.cuda.is_available() or rl.cuda.properties().sm_count > 0
    True
    """
def synchronize(device: typing.SupportsIndex = 0) -> None:
    """
    Wait until all work that was queued on a GPU is done, on every stream.
    
    Parameters
    ----------
    device : int
        The number of the GPU.
    
    Raises
    ------
    CudaError
        Where there is no such GPU; and an error of earlier work, which may only be found now.
    ValueError, IndexError
        For a number that earlier work found out of range: an index, a target of cross_entropy, a position of kv_append.
        The host does not see what lies in a GPU's memory, so a kernel reports it, and the next wait raises it once: this
        one, those of streams and events, and every copy to or from the GPU (``numpy()``, ``item()``).
    
    Examples
    --------
    >>> if rl.cuda.is_available():
    ...     rl.cuda.synchronize()
    """
def unavailable_reason() -> str:
    """
    Why no GPU can be used.
    
    Returns
    -------
    str
        A sentence; "" where one can be used.
    
    Examples
    --------
    >>> rl.cuda.is_available() == (rl.cuda.unavailable_reason() == "")
    True
    """
