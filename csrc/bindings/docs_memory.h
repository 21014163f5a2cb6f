// Docstrings of bind_memory.cpp.
#pragma once

namespace rooflab {

constexpr const char* kAllocatedDoc = R"doc(Bytes in live tensors. Each is counted once, whatever caches hold besides.

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
4000)doc";

constexpr const char* kPeakDoc = R"doc(The most bytes in live tensors at once since `reset_peak`.

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
8000)doc";

constexpr const char* kResetPeakDoc = R"doc(Begin a new `peak` at what live tensors hold now.

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
True)doc";

constexpr const char* kReservedDoc = R"doc(Bytes taken from the system: those of live tensors, and cached blocks.

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
True)doc";

constexpr const char* kAvailableDoc =
    R"doc(Bytes that tensors can still get: free memory of the device, cached blocks, and no more than a limit leaves.

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
True)doc";

constexpr const char* kEmptyCacheDoc = R"doc(Return memory that no tensor holds to the system.

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
>>> rl.memory.empty_cache())doc";

constexpr const char* kSetLimitDoc =
    R"doc(Let no allocation bring `allocated` above a number of bytes, as on a smaller device.

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
>>> rl.memory.set_limit(None))doc";

constexpr const char* kSnapshotDoc = R"doc(Every live allocation, oldest first.

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
Block(op='add', bytes=16))doc";

}  // namespace rooflab
