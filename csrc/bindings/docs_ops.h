// Docstrings of bind_ops.cpp.
#pragma once

namespace rooflab {

constexpr const char* kVariantDoc = R"doc(
variant : str
    A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
    ValueError.
)doc";

constexpr const char* kWhereDoc = R"doc(

Parameters
----------
condition : Tensor
    bool.
a, b : Tensor or number
    Two numbers give float32, int64 or bool.)doc";

constexpr const char* kWhereResultDoc = R"doc(
Returns
-------
Tensor
    Of the shape that all three broadcast to and the common dtype of `a` and `b`.

Raises
------
ValueError
    For a condition that is not bool, and shapes that do not broadcast.

Examples
--------
>>> rl.where(rl.tensor([True, False]), rl.ones(2), 0.0).tolist()
[1.0, 0.0])doc";

constexpr const char* kClampDoc = R"doc(The elements, limited to the range from `min` to `max`.

One launch, 2 FLOPs per element; with one bound it is rl.maximum or rl.minimum, and counted as that. Only elements
between the bounds have a gradient: at a bound it is 0, as in PyTorch 2.15. For bounds that are tensors, use rl.maximum
and rl.minimum.

Parameters
----------
x : Tensor
    Of any numeric dtype; NaN stays.
min, max : float, optional
    At least one of them; where they cross, `max` wins.
variant : str
    A rung of rl.variants("clamp"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape of `x`, and of its dtype; float32 for integers with a bound that is a float.

Raises
------
ValueError
    Without a bound; for one that the dtype cannot hold.

Examples
--------
>>> rl.clamp(rl.tensor([-2.0, 0.5, 3.0]), 0, 1).tolist()
[0.0, 0.5, 1.0])doc";

constexpr const char* kNanToNumDoc = R"doc(x, but numbers in place of NaN and infinities, elementwise. One launch.

Parameters
----------
x : Tensor
    Of any shape, floating.
nan : float
    In place of NaN.
posinf, neginf : float, optional
    In place of the infinities; by default the largest and the smallest number of the dtype.
variant : str
    A rung of rl.variants("nan_to_num"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape and dtype of `x`. The gradient is 0 where a number was put.

Raises
------
ValueError
    For integers and bool.

Examples
--------
>>> rl.nan_to_num(rl.tensor([float("nan"), 1.0])).tolist()
[0.0, 1.0])doc";

constexpr const char* kLerpDoc =
    R"doc(start + weight (end - start), elementwise; shapes broadcast. One launch, 3 FLOPs per element.

From a weight of 0.5 on it is end + (weight - 1) (end - start), so that 1 gives end exactly. 16 bits are computed in
float32 and rounded once.

Parameters
----------
x, end : Tensor
    Where the weight is 0, and where it is 1.
weight : float or Tensor
    How far from `x` to `end`.
variant : str
    A rung of rl.variants("lerp"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape that all broadcast to and their common dtype; float32 for integers.

Raises
------
ValueError
    For shapes that do not broadcast, for a weight that is a tensor of bool, and where `x` and `end` are both bool.

Examples
--------
>>> rl.lerp(rl.zeros(1), rl.ones(1), 0.25).tolist()
[0.25])doc";

constexpr const char* kCastDoc =
    R"doc(x in another dtype; itself when it has it already. One launch otherwise, no FLOPs.

Parameters
----------
x : Tensor
    Of any dtype and shape.
dtype : dtype or str
    rl.float16, "float16" ...
variant : str
    A rung of rl.variants("cast"); the fastest that fits when empty.

Returns
-------
Tensor
    Rounded to the nearest for floating dtypes, towards zero for integers.

Raises
------
ValueError
    For what is no dtype.

Examples
--------
>>> rl.cast(rl.tensor([1.5, -1.5]), "int64").tolist()
[1, -1])doc";

constexpr const char* kCopyDoc = R"doc(A contiguous copy of x. One launch.

Parameters
----------
x : Tensor
    Of any dtype and layout.
variant : str
    A rung of rl.variants("copy"); the fastest that fits when empty.

Returns
-------
Tensor
    With memory of its own.

Raises
------
ValueError
    For a rung that does not take `x`.

Examples
--------
>>> rl.copy(rl.ones(2, 3).T).is_contiguous()
True)doc";

constexpr const char* kAmaxDoc = R"doc(The largest element over one, several or all dimensions.

One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first.

Parameters
----------
x : Tensor
    Of any dtype and shape.
dim : int, tuple of int or None
    What to reduce over; None is all.
keepdim : bool
    Whether reduced dimensions stay, with size 1.

Returns
-------
Tensor
    Of the dtype of `x`; NaN where there is one. Equal largest elements share the gradient evenly.

Raises
------
ValueError
    When there is no element to choose from; for a `dim` that `x` lacks or that appears twice.

Examples
--------
>>> rl.amax(rl.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
[5.0, 7.0])doc";

constexpr const char* kAminDoc = R"doc(The smallest element over one, several or all dimensions.

One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first.

Parameters
----------
x : Tensor
    Of any dtype and shape.
dim : int, tuple of int or None
    What to reduce over; None is all.
keepdim : bool
    Whether reduced dimensions stay, with size 1.

Returns
-------
Tensor
    Of the dtype of `x`; NaN where there is one. Equal smallest elements share the gradient evenly.

Raises
------
ValueError
    When there is no element to choose from; for a `dim` that `x` lacks or that appears twice.

Examples
--------
>>> rl.amin(rl.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
[1.0, 2.0])doc";

constexpr const char* kGeluDoc = R"doc(GeLU in its tanh form, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), fused.

One launch, 8 FLOPs per element. Source: Hendrycks and Gimpel, arXiv:1606.08415.

Parameters
----------
x : Tensor
    Of any shape, in a floating dtype.
variant : str
    A rung of rl.variants("gelu"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape and dtype of `x`.

Raises
------
ValueError
    For integers.

Examples
--------
>>> rl.gelu(rl.tensor([0.0, 10.0])).tolist()
[0.0, 10.0])doc";

constexpr const char* kSoftmaxDoc = R"doc(exp(x - max) / sum(exp(x - max)) along a dimension.

5 FLOPs per element; one launch, or two for few long rows on a GPU. Along another dimension than the last, columns that
are many enough are read as they lie; otherwise a copy comes first.

Parameters
----------
x : Tensor
    Of any shape, in a floating dtype.
dim : int
    Along which dimension the results add up to 1.
variant : str
    A rung of rl.variants("softmax"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape and dtype of `x`.

Raises
------
ValueError
    For integers, and for a `dim` that `x` lacks.

Examples
--------
>>> rl.softmax(rl.zeros(2, 4))[0].tolist()
[0.25, 0.25, 0.25, 0.25])doc";

constexpr const char* kLogSoftmaxDoc = R"doc(The logarithm of softmax: x - log(sum(exp(x))) along a dimension.

The maximum is subtracted first, so nothing overflows. 5 FLOPs per element; one launch, or two for few long rows on a
GPU. Along another dimension than the last, columns that are many enough are read as they lie; otherwise a copy comes
first. The graph keeps only the result.

Parameters
----------
x : Tensor
    Of any shape, in a floating dtype.
dim : int
    Along which dimension.
variant : str
    A rung of rl.variants("log_softmax"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape and dtype of `x`.

Raises
------
ValueError
    For integers; for a `dim` that `x` lacks.

Examples
--------
>>> rl.log_softmax(rl.zeros(4)).exp().tolist()
[0.25, 0.25, 0.25, 0.25])doc";

constexpr const char* kRmsNormDoc = R"doc(x / sqrt(mean(x^2) + eps) * weight over the last dimension.

One launch, or two for long rows on a GPU; 3 FLOPs per element, 1 for the weight and 1 for the offset. Rows of huge or
tiny numbers are scaled first, so that no square overflows or vanishes, except in float64. Source: Zhang and Sennrich,
arXiv:1910.07467.

Parameters
----------
x : Tensor
    (..., D), in a floating dtype.
weight : Tensor, optional
    (D,), of the dtype of `x`.
eps : float
    Keeps the root away from zero.
zero_centered : bool
    Whether the gain is 1 + weight, as in Gemma.
variant : str
    A rung of rl.variants("rms_norm"); the fastest that fits when empty.

Returns
-------
Tensor
    (..., D), of the dtype of `x`.

Raises
------
ValueError
    For a weight of another shape or dtype, and for integers.

Examples
--------
>>> rl.rms_norm(rl.tensor([3.0, -3.0]), eps=0.0).tolist()
[1.0, -1.0])doc";

constexpr const char* kLayerNormDoc = R"doc((x - mean) / sqrt(var + eps) * weight + bias over the last dimension.

One launch, or two for long rows on a GPU; 5 FLOPs per element and 1 each for weight and bias. Rows of huge or tiny
numbers are scaled first, so that no square overflows or vanishes, except in float64. Source: Ba, Kiros and Hinton,
arXiv:1607.06450.

Parameters
----------
x : Tensor
    (..., D), in a floating dtype.
weight, bias : Tensor, optional
    (D,), of the dtype of `x`.
eps : float
    Keeps the root away from zero.
variant : str
    A rung of rl.variants("layer_norm"); the fastest that fits when empty.

Returns
-------
Tensor
    (..., D), of the dtype of `x`.

Raises
------
ValueError
    For a weight or bias of another shape or dtype, and for integers.

Examples
--------
>>> rl.layer_norm(rl.tensor([1.0, 3.0]), eps=0.0).tolist()
[-1.0, 1.0])doc";

}  // namespace rooflab
