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

}  // namespace rooflab
