// Docstrings of bind_autograd.cpp.
#pragma once

namespace rooflab {

constexpr const char* kRequiresGradDoc = R"doc(Whether ops on the tensor are recorded, so that it gets a gradient.

It can be set on a leaf.

Returns
-------
bool
    True as well for results of recorded ops.

Raises
------
ValueError
    When it is set on integers, or set to False on a result.

Examples
--------
>>> x = rl.ones(2)
>>> x.requires_grad = True
>>> (x * 2).requires_grad
True)doc";

constexpr const char* kSetRequiresGradDoc = R"doc(Set `requires_grad` of a leaf.

Parameters
----------
requires_grad : bool
    Whether ops on it are recorded from now on.

Returns
-------
Tensor
    The tensor itself.

Raises
------
ValueError
    For integers, and for False on a result of a recorded op.

Examples
--------
>>> rl.ones(2).requires_grad_().requires_grad
True)doc";

constexpr const char* kGradDoc = R"doc(The sum of the gradients that `backward` has computed for this tensor.

It can be set, and set to None.

Returns
-------
Tensor or None
    Of the shape, dtype and device of the tensor; None before the first `backward`.

Raises
------
ValueError
    When it is set to a tensor of another shape, dtype or device.

Examples
--------
>>> x = rl.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad.tolist()
[2.0, 4.0])doc";

constexpr const char* kIsLeafDoc = R"doc(Whether no recorded op made the tensor.

Returns
-------
bool
    Leaves are what users make; only they get a `grad` by themselves.

Examples
--------
>>> x = rl.ones(2, requires_grad=True)
>>> x.is_leaf, (x + 1).is_leaf
(True, False))doc";

constexpr const char* kGradFnDoc = R"doc(The recorded op that made the tensor.

Returns
-------
Node or None
    With the op's `name`; None for a leaf.

Examples
--------
>>> (rl.ones(2, requires_grad=True) + 1).grad_fn
<add>)doc";

constexpr const char* kRetainGradDoc =
    R"doc(Let `backward` keep the gradient of a result in `.grad`, as it does for a leaf.

Raises
------
ValueError
    When the tensor does not require grad.

Examples
--------
>>> x = rl.ones(2, requires_grad=True)
>>> y = x * 3
>>> y.retain_grad()
>>> y.sum().backward()
>>> y.grad.tolist()
[1.0, 1.0])doc";

constexpr const char* kDetachDoc = R"doc(The same memory, outside of any graph.

Returns
-------
Tensor
    A view that does not require grad.

Examples
--------
>>> x = rl.ones(2, requires_grad=True)
>>> x.detach().requires_grad
False)doc";

constexpr const char* kBackwardDoc =
    R"doc(Add gradients to the `.grad` of every leaf that this tensor was computed from.

Parameters
----------
gradient : Tensor, optional
    That of the final quantity with respect to this tensor, of its shape. By default 1, if it has one element.
retain_graph : bool
    Whether the graph keeps the tensors that it has saved, for another pass.

Raises
------
ValueError
    Without `gradient` for more elements than one; for one that does not fit; for a tensor that does not require grad;
    for a second pass through a graph that was not retained.

Examples
--------
>>> x = rl.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).backward(rl.tensor([1.0, 10.0]))
>>> x.grad.tolist()
[2.0, 40.0])doc";

}  // namespace rooflab
