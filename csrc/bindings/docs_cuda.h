// Docstrings of bind_cuda.cpp.
#pragma once

namespace rooflab {

constexpr const char* kIsAvailableDoc = R"doc(Whether this build has CUDA, and the machine a driver and a GPU.

Returns
-------
bool
    Never an error; where it is False, `unavailable_reason` says why.

Examples
--------
>>> rl.cuda.is_available() == (rl.cuda.device_count() > 0)
True)doc";

constexpr const char* kUnavailableReasonDoc = R"doc(Why no GPU can be used.

Returns
-------
str
    A sentence; "" where one can be used.

Examples
--------
>>> rl.cuda.is_available() == (rl.cuda.unavailable_reason() == "")
True)doc";

constexpr const char* kDeviceCountDoc = R"doc(How many GPUs this process can use.

Returns
-------
int
    0 where CUDA is not available.

Examples
--------
>>> rl.cuda.device_count() >= 0
True)doc";

constexpr const char* kSynchronizeDoc = R"doc(Wait until all work that was queued on a GPU is done, on every stream.

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
...     rl.cuda.synchronize())doc";

constexpr const char* kFreeMemoryDoc =
    R"doc(Bytes of a GPU's memory that nobody holds. What rl.memory caches is not among them.

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
True)doc";

constexpr const char* kLaunchEmptyDoc = R"doc(Launch a kernel that does nothing, to measure what a launch costs.

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
...     rl.cuda.launch_empty())doc";

constexpr const char* kPropertiesDoc = R"doc(What a GPU is: its name, size and versions.

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
True)doc";

constexpr const char* kStreamDoc = R"doc(A queue of work on one GPU. Streams run side by side.

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
...     stream.synchronize())doc";

constexpr const char* kStreamDeviceDoc = R"doc(The number of its GPU.

Returns
-------
int
    0 or more.

Examples
--------
>>> not rl.cuda.is_available() or rl.cuda.Stream().device == 0
True)doc";

constexpr const char* kCudaStreamDoc = R"doc(The stream's handle in CUDA, which other libraries take.

Returns
-------
int
    The address of a cudaStream_t, as in PyTorch. It is valid as long as this object lives.

Examples
--------
>>> not rl.cuda.is_available() or rl.cuda.Stream().cuda_stream > 0
True)doc";

constexpr const char* kStreamSynchronizeDoc = R"doc(Wait until all work that was submitted to this stream is done.

Raises
------
CudaError
    For an error of earlier work, which may only be found now.
ValueError, IndexError
    For a number that earlier work found out of range (see rl.cuda.synchronize).

Examples
--------
>>> if rl.cuda.is_available():
...     rl.cuda.Stream().synchronize())doc";

constexpr const char* kEventDoc = R"doc(A point in time on a stream of one GPU, which the GPU notes when it gets there.

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
...     assert start.elapsed_ms(end) > 0)doc";

constexpr const char* kEventDeviceDoc = R"doc(The number of its GPU.

Returns
-------
int
    0 or more.

Examples
--------
>>> not rl.cuda.is_available() or rl.cuda.Event().device == 0
True)doc";

constexpr const char* kRecordDoc = R"doc(Put the event into a stream: its time is when the work before it is done.

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
...     rl.cuda.Event().record())doc";

constexpr const char* kEventSynchronizeDoc =
    R"doc(Wait until the GPU has reached the event. One that was never recorded is not waited for.

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
...     end.synchronize())doc";

constexpr const char* kElapsedDoc = R"doc(The time from this event to a later one. It waits for the later one.

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
...     assert start.elapsed_ms(end) >= 0)doc";

constexpr const char* kElapsedTimeDoc = R"doc(The time from this event to a later one: PyTorch's name of `elapsed_ms`.

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
...     assert start.elapsed_time(end) >= 0)doc";

}  // namespace rooflab
