"""
The GPU: what there is, streams, events.
"""
from __future__ import annotations
import typing
__all__: list[str] = ['Event', 'Properties', 'Stream', 'device_count', 'free_memory', 'is_available', 'launch_empty', 'properties', 'synchronize', 'unavailable_reason']
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
    def __enter__(self) -> Stream:
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
class Event:
    """
    A point in a stream's time.
    """
    def __init__(self) -> None:
        ...
    def elapsed_ms(self, later: Event) -> float:
        """
        Milliseconds from this event to `later`.
        """
    def record(self, stream: Stream = None) -> None:
        ...
    def synchronize(self) -> None:
        ...
def device_count() -> int:
    ...
def free_memory(device: typing.SupportsInt | typing.SupportsIndex = 0) -> int:
    """
    Bytes that the GPU can still give.
    """
def is_available() -> bool:
    """
    Whether this build has CUDA and the machine a driver and a GPU.
    """
def launch_empty(device: typing.SupportsInt | typing.SupportsIndex = 0) -> None:
    """
    Launches a kernel that does nothing, for measuring what a launch costs.
    """
def properties(device: typing.SupportsInt | typing.SupportsIndex = 0) -> Properties:
    ...
def synchronize(device: typing.SupportsInt | typing.SupportsIndex = 0) -> None:
    """
    Waits for all work queued on the GPU.
    """
def unavailable_reason() -> str:
    """
    Why not, in a sentence; '' when available.
    """
