// Docstrings of bind_factories.cpp.
#pragma once

namespace rooflab {

constexpr const char* kFullDoc = R"doc(A tensor of one value.

Parameters
----------
shape : tuple of int or int
    Its sizes.
value : float or Tensor
    Of every element. A tensor has no dimensions, and is converted.
dtype : dtype or str, optional
    That of the value when absent: bool, int64 or float32.
device : str
    "cpu", "cuda:N" or "meta:NAME".
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    Contiguous.

Raises
------
ValueError
    For a value that the dtype cannot hold, for a tensor with dimensions or one that requires grad, and a negative size.
TypeError
    For a value that is neither a number nor a tensor.

Examples
--------
>>> rl.full((2,), 7).dtype, rl.full((2,), 0.5).tolist()
(rooflab.int64, [0.5, 0.5]))doc";

constexpr const char* kRandintDoc =
    R"doc(Integers drawn uniformly from [low, high); the same on every device for a seed.

Parameters
----------
low, high : int
    The least, and one more than the largest.
shape : tuple of int or int
    Sizes of the result.
dtype : dtype or str
    Of the result.
device : str
    "cpu", "cuda:N" or "meta:NAME".

Returns
-------
Tensor
    Contiguous.

Raises
------
ValueError
    Unless `high` is more than `low`.

Examples
--------
>>> rl.randint(3, 4, (2,)).tolist()
[3, 3])doc";

constexpr const char* kMetaDoc = R"doc(The device of tensors without memory that stand for a machine.

Every op runs on such tensors and is counted as on that machine: ops, launches, work and memory. A vendor's library, which
runs products on a GPU, counts as one launch without workspace.

Parameters
----------
name : str
    "cpu", this machine's CPU; "cuda:0", its GPU; or a GPU of rl.roofline's table, such as "H200".

Returns
-------
str
    The device's name.

Raises
------
ValueError
    For another name; it lists those that there are.

Examples
--------
>>> rl.meta("H200"), rl.ones(2, device=rl.meta("H200")).device
('meta:H200', 'meta:H200'))doc";

constexpr const char* kSeedDoc = R"doc(Restarts the random sequence.

Parameters
----------
seed : int
    Of 64 bits, from 0 on.

Raises
------
TypeError
    For another number.

Examples
--------
>>> rl.manual_seed(7)
>>> first = rl.rand(3)
>>> rl.manual_seed(7)
>>> rl.allclose(first, rl.rand(3))
True)doc";

constexpr const char* kGetStateDoc = R"doc(The state of the random sequence, for `set_rng_state`.

Returns
-------
tuple of int
    The seed, and how many calls have drawn since.

Examples
--------
>>> rl.manual_seed(7)
>>> rl.get_rng_state()
(7, 0))doc";

constexpr const char* kSetStateDoc = R"doc(Continues the random sequence from where `get_rng_state` was called.

Parameters
----------
state : tuple of int
    What that returned.

Raises
------
TypeError
    For anything else.

Examples
--------
>>> state = rl.get_rng_state()
>>> first = rl.rand(3)
>>> rl.set_rng_state(state)
>>> rl.allclose(first, rl.rand(3))
True)doc";

constexpr const char* kFullLikeDoc = R"doc(A tensor of the shape, dtype and device of another, of one value.

Parameters
----------
x : Tensor
    Whose shape is taken.
value : float or Tensor
    Of every element. A tensor has no dimensions, and is converted.
dtype, device : optional
    Used instead of those of `x`.
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    Contiguous.

Raises
------
ValueError
    For a value that the dtype cannot hold, and for a tensor with dimensions or one that requires grad.

Examples
--------
>>> rl.full_like(rl.ones(2), 0.5).tolist()
[0.5, 0.5])doc";

constexpr const char* kLinspaceDoc = R"doc(Numbers at equal distances from `start` to `end`, both included.

One launch. Computed in float64, as NumPy does, and rounded once.

Parameters
----------
start, end : float
    The first and the last number.
steps : int
    How many.
dtype, device : optional
    Of the result.
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    (steps,).

Raises
------
ValueError
    When `steps` is negative, and for ends that are not finite or whose distance is not.

Examples
--------
>>> rl.linspace(0, 1, 5).tolist()
[0.0, 0.25, 0.5, 0.75, 1.0])doc";

constexpr const char* kEyeDoc = R"doc(A matrix with ones on the diagonal and zeros elsewhere. Two launches, of fill.

Parameters
----------
n : int
    Rows.
m : int, optional
    Columns; as many as rows when absent.
dtype, device : optional
    Of the result.
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    (n, m).

Raises
------
ValueError
    For negative sizes.

Examples
--------
>>> rl.eye(2).tolist()
[[1.0, 0.0], [0.0, 1.0]])doc";

constexpr const char* kArangeDoc = R"doc(Numbers from `start` up to, but not including, `end`, in steps of `step`.

Computed in float64, as NumPy does, and in int64 where all are integers. One launch.

Parameters
----------
start, end, step : int or float
    A single number is the end, and the start is 0. `step` may be negative.
dtype, device : optional
    Of the result: int64 when all are integers, else float32.
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    (N,), with N = ceil((end - start) / step).

Raises
------
ValueError
    For a step of 0, numbers that are not finite, and fractions with a dtype of integers.

Examples
--------
>>> rl.arange(3).tolist(), rl.arange(0, 1, 0.25).tolist()
([0, 1, 2], [0.0, 0.25, 0.5, 0.75]))doc";

}  // namespace rooflab
