// Docstrings of bind_tensor.cpp, bind_operators.cpp and others: a tensor's values elsewhere, and new values in place.
#pragma once

namespace rooflab {

constexpr const char* kToDoc = R"doc(The tensor in another dtype, on another device, or both.

Parameters
----------
*args : dtype, device or Tensor
    In any order. A tensor stands for its dtype and its device.
dtype : dtype or str, optional
    Such as rl.bfloat16 or "float16".
device : str, optional
    "cpu", "cuda", "cuda:1" or "meta".

Returns
-------
Tensor
    The tensor itself if it is that already. Otherwise a copy; gradients pass through it.

Raises
------
ValueError
    For what is neither dtype nor device.
CudaError
    For a GPU that is not there.

Examples
--------
>>> rl.ones(2).to("float16").dtype, rl.ones(2).to("cpu", rl.int64).tolist()
(rooflab.float16, [1, 1]))doc";

constexpr const char* kCpuDoc = R"doc(The tensor on the CPU.

Returns
-------
Tensor
    The tensor itself if it is there already; else a copy, which waits for the GPU.

Raises
------
ValueError
    On "meta", where there are no values to copy.

Examples
--------
>>> x = rl.ones(2)
>>> x.cpu().data_ptr() == x.data_ptr()
True)doc";

constexpr const char* kCudaDoc = R"doc(The tensor on the current GPU.

Returns
-------
Tensor
    The tensor itself if it is there already; else a copy.

Raises
------
CudaError
    When there is no GPU.
OutOfMemoryError
    When the copy does not fit.

Examples
--------
>>> if rl.cuda.is_available():
...     x = rl.ones(2).cuda())doc";

constexpr const char* kDoubleDoc = R"doc(The tensor in float64. One launch, unless it is that already.

Returns
-------
Tensor
    The tensor itself, or a copy; gradients pass through it.

Raises
------
OutOfMemoryError
    When the copy does not fit.

Examples
--------
>>> rl.ones(2).double().dtype
rooflab.float64)doc";

constexpr const char* kFloatDoc = R"doc(The tensor in float32. One launch, unless it is that already.

Returns
-------
Tensor
    The tensor itself, or a copy; gradients pass through it.

Raises
------
OutOfMemoryError
    When the copy does not fit.

Examples
--------
>>> rl.tensor([1, 2]).float().tolist()
[1.0, 2.0])doc";

constexpr const char* kHalfDoc = R"doc(The tensor in float16. One launch, unless it is that already.

Returns
-------
Tensor
    The tensor itself, or a copy, rounded to the nearest; infinite above 65504. Gradients pass through it.

Raises
------
OutOfMemoryError
    When the copy does not fit.

Examples
--------
>>> rl.tensor([1.0, 1e6]).half().tolist()
[1.0, inf])doc";

constexpr const char* kBFloat16Doc = R"doc(The tensor in bfloat16. One launch, unless it is that already.

Returns
-------
Tensor
    The tensor itself, or a copy, rounded to 8 significant bits. Gradients pass through it.

Raises
------
OutOfMemoryError
    When the copy does not fit.

Examples
--------
>>> rl.tensor([1.0, 257.0]).bfloat16().tolist()
[1.0, 256.0])doc";

constexpr const char* kLongDoc = R"doc(The tensor in int64. One launch, unless it is that already.

Returns
-------
Tensor
    The tensor itself, or a copy, rounded towards zero.

Raises
------
OutOfMemoryError
    When the copy does not fit.

Examples
--------
>>> rl.tensor([1.5, -1.5]).long().tolist()
[1, -1])doc";

constexpr const char* kIntDoc = R"doc(The tensor in int32. One launch, unless it is that already.

Returns
-------
Tensor
    The tensor itself, or a copy, rounded towards zero.

Raises
------
OutOfMemoryError
    When the copy does not fit.

Examples
--------
>>> rl.tensor([1.5, -1.5]).int().tolist()
[1, -1])doc";

constexpr const char* kBoolDoc = R"doc(Whether each element is not 0. One launch, unless it is bool already.

Returns
-------
Tensor
    bool: the tensor itself, or a copy; NaN is true.

Raises
------
OutOfMemoryError
    When the copy does not fit.

Examples
--------
>>> rl.tensor([0.0, 0.5]).bool().tolist()
[False, True])doc";

constexpr const char* kToListDoc = R"doc(The elements as numbers of Python, in nested lists.

On a GPU this waits for the results.

Returns
-------
list or number
    Nested as deep as there are dimensions; a number without any.

Raises
------
ValueError
    On "meta", where there are no values, and while a graph is captured.

Examples
--------
>>> rl.tensor([[1, 2], [3, 4]]).tolist()
[[1, 2], [3, 4]])doc";

constexpr const char* kItemDoc = R"doc(The only element as a number of Python.

On a GPU this waits for the result.

Returns
-------
float, int or bool
    By its dtype.

Raises
------
ValueError
    For more or fewer elements than one; on "meta", where there are no values; while a graph is captured.

Examples
--------
>>> rl.tensor([2.5]).item()
2.5)doc";

constexpr const char* kNumpyDoc = R"doc(A NumPy array that shares the tensor's memory.

Returns
-------
numpy.ndarray
    Of the same shape, strides and dtype; ml_dtypes.bfloat16 for bfloat16. Read-only if the tensor is expanded.

Raises
------
ValueError
    For a tensor that is not on the CPU, one that requires grad, and while a graph is captured.

Examples
--------
>>> x = rl.ones(2)
>>> x.numpy()[0] = 5
>>> x.tolist()
[5.0, 1.0])doc";

constexpr const char* kFillDoc = R"doc(Write one number to all elements, in place. One launch.

Parameters
----------
value : float or Tensor
    A whole one for integers. A float that is too large for the dtype becomes infinite. A tensor has no dimensions, and
    is converted.

Returns
-------
Tensor
    The tensor itself.

Raises
------
ValueError
    For a number that integers cannot hold, and for a tensor that requires grad, unless under rl.no_grad().

Examples
--------
>>> rl.zeros(2).fill_(3).tolist()
[3.0, 3.0])doc";

constexpr const char* kZeroDoc = R"doc(Write 0 to all elements, in place. One launch.

Returns
-------
Tensor
    The tensor itself.

Raises
------
ValueError
    For a tensor that requires grad, unless under rl.no_grad().

Examples
--------
>>> rl.ones(2).zero_().tolist()
[0.0, 0.0])doc";

constexpr const char* kCopyIntoDoc =
    R"doc(Write the elements of another tensor to this one, in place. One launch on one device.

Parameters
----------
source : Tensor
    Of any dtype and device, and of a shape that broadcasts to this one's.

Returns
-------
Tensor
    The tensor itself.

Raises
------
ValueError
    For a shape that does not broadcast, and for a tensor that requires grad, unless under rl.no_grad().

Examples
--------
>>> rl.zeros(2, 2).copy_(rl.tensor([1, 2])).tolist()
[[1.0, 2.0], [1.0, 2.0]])doc";

constexpr const char* kWriteDoc = R"doc(

Parameters
----------
other : Tensor or number
    Of a shape that broadcasts to this one's. The result is rounded to this tensor's dtype.
)doc";

constexpr const char* kAlphaDoc = R"doc(alpha : number
    What `other` is multiplied by; if it is not 1, that takes one more launch.
)doc";

constexpr const char* kWrittenDoc = R"doc(
Returns
-------
Tensor
    The tensor itself.

Raises
------
ValueError
    For a shape that does not broadcast, a dtype that cannot hold the result, and a leaf that requires grad, unless
    under rl.no_grad().
TypeError
    For what is neither tensor nor number.

Examples
--------
>>> rl.tensor([3.0, 6.0]).)doc";

}  // namespace rooflab
