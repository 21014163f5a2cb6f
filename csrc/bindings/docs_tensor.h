// Docstrings of bind_tensor.cpp: what a tensor is, and other views of the same elements.
#pragma once

namespace rooflab {

constexpr const char* kShapeDoc = R"doc(The size of each dimension.

Returns
-------
tuple of int
    Empty for a tensor without dimensions, which has one element.

Examples
--------
>>> rl.ones(2, 3).shape
(2, 3))doc";

constexpr const char* kStridesDoc = R"doc(How far neighbours along each dimension lie apart in memory.

Returns
-------
tuple of int
    In elements, not in bytes; 0 along a dimension that `expand` repeats.

Examples
--------
>>> rl.ones(2, 3).strides, rl.ones(2, 3).T.strides
((3, 1), (1, 3)))doc";

constexpr const char* kStrideDoc = R"doc(How far neighbours along each dimension lie apart in memory, as `strides` says.

Returns
-------
tuple of int
    In elements, not in bytes.

Examples
--------
>>> rl.ones(2, 3).stride()
(3, 1))doc";

constexpr const char* kDTypeDoc = R"doc(The type of its elements.

Returns
-------
DType
    rl.float32, rl.bfloat16, rl.int64 ...

Examples
--------
>>> rl.ones(2).dtype, rl.tensor([1, 2]).dtype
(rooflab.float32, rooflab.int64))doc";

constexpr const char* kDeviceDoc = R"doc(Where its memory is.

Returns
-------
device
    A str, such as "cpu", "cuda:0" or "meta:H200", that has `type` and `index` too.

Examples
--------
>>> x = rl.ones(2)
>>> x.device == "cpu", x.device.type
(True, 'cpu'))doc";

constexpr const char* kNDimDoc = R"doc(How many dimensions it has.

Returns
-------
int
    0 for a tensor of one element without dimensions.

Examples
--------
>>> rl.ones(2, 3).ndim
2)doc";

constexpr const char* kDimDoc = R"doc(How many dimensions it has, as `ndim` says.

Returns
-------
int
    0 for a tensor of one element without dimensions.

Examples
--------
>>> rl.ones(2, 3).dim()
2)doc";

constexpr const char* kNBytesDoc = R"doc(How many bytes its elements have.

Returns
-------
int
    Bytes: the number of elements times the size of one. A view has as many as a copy of it would.

Examples
--------
>>> rl.ones(2, 3).nbytes
24)doc";

constexpr const char* kItemSizeDoc = R"doc(How many bytes an element has.

Returns
-------
int
    Bytes.

Examples
--------
>>> rl.ones(2).itemsize, rl.ones(2).half().itemsize
(4, 2))doc";

constexpr const char* kElementSizeDoc = R"doc(How many bytes an element has, as `itemsize` says.

Returns
-------
int
    Bytes.

Examples
--------
>>> rl.ones(2).element_size()
4)doc";

constexpr const char* kTDoc = R"doc(The transpose of a matrix (M, N). A view: nothing is launched.

Returns
-------
Tensor
    (N, M); a tensor of fewer than 2 dimensions as it is.

Raises
------
AttributeError
    For more than 2 dimensions.

Examples
--------
>>> rl.ones(2, 3).T.shape
(3, 2))doc";

constexpr const char* kMatrixTDoc =
    R"doc(The transpose of each matrix of a batch (..., M, N). A view: nothing is launched.

Returns
-------
Tensor
    (..., N, M).

Raises
------
AttributeError
    For fewer than 2 dimensions.

Examples
--------
>>> rl.ones(4, 2, 3).mT.shape
(4, 3, 2))doc";

constexpr const char* kSizeDoc = R"doc(The size of one dimension, or of all.

Parameters
----------
dim : int, optional
    Which dimension; a negative one is counted from the last.

Returns
-------
int or tuple of int
    The whole `shape` without `dim`.

Raises
------
ValueError
    For a dimension that the tensor lacks.

Examples
--------
>>> rl.ones(2, 3).size(-1), rl.ones(2, 3).size()
(3, (2, 3)))doc";

constexpr const char* kNumelDoc = R"doc(How many elements it has.

Returns
-------
int
    The product of the sizes of all dimensions.

Examples
--------
>>> rl.ones(2, 3).numel()
6)doc";

constexpr const char* kDataPtrDoc = R"doc(The address of its first element.

Returns
-------
int
    In the memory of its device; 0 where there is no element. On "meta" it is a number that stands for no memory.

Examples
--------
>>> x = rl.ones(4)
>>> x[1:].data_ptr() - x.data_ptr()
4)doc";

constexpr const char* kIsContiguousDoc = R"doc(Whether its elements lie in row-major order without gaps.

Returns
-------
bool
    True as well where there is no element.

Examples
--------
>>> x = rl.ones(2, 3)
>>> x.is_contiguous(), x.T.is_contiguous()
(True, False))doc";

constexpr const char* kContiguousDoc = R"doc(The same elements in row-major order without gaps.

Returns
-------
Tensor
    The tensor itself if it is contiguous. Otherwise a copy, which takes one launch.

Raises
------
OutOfMemoryError
    When a copy does not fit.

Examples
--------
>>> rl.ones(2, 3).T.contiguous().strides
(2, 1))doc";

constexpr const char* kCloneDoc = R"doc(A contiguous copy. One launch.

Returns
-------
Tensor
    With memory of its own. Gradients pass through it.

Raises
------
OutOfMemoryError
    When the copy does not fit.

Examples
--------
>>> x = rl.ones(2)
>>> y = x.clone().fill_(7)
>>> x.tolist()
[1.0, 1.0])doc";

constexpr const char* kViewDoc = R"doc(The same elements under another shape. Nothing is copied.

Parameters
----------
*args : int, or one sequence of int
    The new shape. One size may be -1; it follows from the others.

Returns
-------
Tensor
    A view.

Raises
------
ValueError
    For a shape of another number of elements, and for a layout that needs a copy; `reshape` makes one.

Examples
--------
>>> rl.arange(6).view(2, -1).tolist()
[[0, 1, 2], [3, 4, 5]])doc";

constexpr const char* kReshapeDoc = R"doc(The same elements under another shape, copied only if the layout needs it.

Parameters
----------
*args : int, or one sequence of int
    The new shape. One size may be -1; it follows from the others.

Returns
-------
Tensor
    A view where possible; else a copy, which takes one launch.

Raises
------
ValueError
    For a shape of another number of elements.

Examples
--------
>>> rl.arange(6).reshape(3, 2).T.reshape(6).tolist()
[0, 2, 4, 1, 3, 5])doc";

constexpr const char* kTransposeDoc = R"doc(Two dimensions change places. A view: nothing is launched.

Parameters
----------
dim0, dim1 : int
    Which dimensions; negative ones are counted from the last.

Returns
-------
Tensor
    A view.

Raises
------
ValueError
    For a dimension that the tensor lacks.

Examples
--------
>>> rl.ones(4, 2, 3).transpose(0, 2).shape
(3, 2, 4))doc";

constexpr const char* kPermuteDoc = R"doc(The dimensions in another order. A view: nothing is launched.

Parameters
----------
*args : int, or one sequence of int
    Each dimension once, in the order of the result.

Returns
-------
Tensor
    A view.

Raises
------
ValueError
    For a dimension that is missing, appears twice, or that the tensor lacks.

Examples
--------
>>> rl.ones(4, 2, 3).permute(2, 0, 1).shape
(3, 4, 2))doc";

constexpr const char* kExpandDoc = R"doc(Dimensions of size 1 repeated without a copy. A view: nothing is launched.

Parameters
----------
*args : int, or one sequence of int
    The new shape. -1 keeps a size; more sizes than the tensor has are new dimensions in front.

Returns
-------
Tensor
    A view, of which several elements share memory.

Raises
------
ValueError
    For another size of a dimension that is not 1, and for fewer sizes than the tensor has dimensions.

Examples
--------
>>> rl.tensor([[1], [2]]).expand(2, 3).tolist()
[[1, 1, 1], [2, 2, 2]])doc";

}  // namespace rooflab
