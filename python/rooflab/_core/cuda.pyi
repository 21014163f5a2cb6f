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
    A queue of work; `with rl.cuda.Stream():` submits to it.
    """
    def __enter__(self) -> typing.Any:
        ...
    def __exit__(self, *args) -> None:
        ...
    def __init__(self, device: typing.SupportsInt | typing.SupportsIndex = 0) -> None:
        ...
    def synchronize(self) -> None:
        ...
    @property
    def cuda_stream(self) -> int:
        ...
    @property
    def device(self) -> int:
        """
        The number of its GPU.
        """
class Event:
    """
    A point in time on a stream of one GPU. Each is timed, with enable_timing or without.
    """
    def __init__(self, device: typing.SupportsInt | typing.SupportsIndex = 0, enable_timing: bool = True) -> None:
        ...
    def elapsed_ms(self, later: Event) -> float:
        """
        Milliseconds from this event to `later`.
        """
    def elapsed_time(self, end_event: Event) -> float:
        """
        PyTorch's name of elapsed_ms.
        """
    def record(self, stream: Stream | None = None) -> None:
        """
        Records it in the current stream of its GPU, or in `stream`.
        """
    def synchronize(self) -> None:
        ...
    @property
    def device(self) -> int:
        """
        The number of its GPU.
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
    def __init__(self, label: str, kind: str, bytes: typing.SupportsInt | typing.SupportsIndex, is_signed: bool = True, dtype: typing.Any = None, is_written: bool = True) -> None:
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
    def __call__(self, grid: typing.Any, block: typing.Any, *args, shared_bytes: typing.SupportsInt | typing.SupportsIndex = 0, cost: rooflab._core.Cost | None = None) -> None:
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
def free_memory(device: typing.SupportsInt | typing.SupportsIndex = 0) -> int:
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
def launch_empty(device: typing.SupportsInt | typing.SupportsIndex = 0) -> None:
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
def properties(device: typing.SupportsInt | typing.SupportsIndex = 0) -> Properties:
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
def synchronize(device: typing.SupportsInt | typing.SupportsIndex = 0) -> None:
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
