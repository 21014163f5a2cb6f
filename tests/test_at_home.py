"""Expressions that a PyTorch or NumPy user tries first, with what they give. Each line is checked as it stands.

A block starts from `x`, `m`, `i`, `b` as defined below; `->` means "prints as", `!!` "raises, and says".
"""

import copy
import math
import operator
import pickle

import ml_dtypes
import numpy as np
import pytest

import rooflab as rl

PAGE = r"""
# Making tensors
rl.tensor([1, 2, 3])                               -> tensor([1, 2, 3], dtype=int64)
rl.tensor([1.0, 2.5])                              -> tensor([1. , 2.5])
rl.tensor([[1, 2], [3, 4]]).shape                  -> (2, 2)
rl.tensor(3.5)                                     -> tensor(3.5)
rl.tensor([True, False])                           -> tensor([ True, False], dtype=bool)
rl.tensor([])                                      -> tensor([])
rl.tensor(np.arange(3))                            -> tensor([0, 1, 2], dtype=int64)
rl.tensor(np.ones(2))                              -> tensor([1., 1.], dtype=float64)
rl.tensor(range(3)).tolist()                       -> [0, 1, 2]
rl.tensor((1, 2)).tolist()                         -> [1, 2]
rl.tensor([1, 2], dtype=rl.float32)                -> tensor([1., 2.])
rl.tensor([1, 2], dtype="bf16").dtype              -> bfloat16
rl.tensor([1.9, -1.9], dtype="int").tolist()       -> [1, -1]
rl.tensor(rl.ones(2)).tolist()                     -> [1.0, 1.0]
rl.tensor([rl.tensor(1.0), rl.tensor(2.0)])        -> tensor([1., 2.])
rl.zeros(2, 3).shape                               -> (2, 3)
rl.zeros((2, 3)).shape                             -> (2, 3)
rl.zeros([2, 3]).shape                             -> (2, 3)
rl.zeros(3)                                        -> tensor([0., 0., 0.])
rl.zeros(0, 3)                                     -> tensor([], shape=(0, 3))
rl.ones(2, dtype="int64")                          -> tensor([1, 1], dtype=int64)
rl.ones(2, dtype=bool)                             -> tensor([ True,  True], dtype=bool)
rl.full((2,), 7.0)                                 -> tensor([7., 7.])
rl.empty(4, 5).shape                               -> (4, 5)
rl.arange(4)                                       -> tensor([0, 1, 2, 3], dtype=int64)
rl.arange(1, 10, 3).tolist()                       -> [1, 4, 7]
rl.rand(3, 3).shape                                -> (3, 3)
rl.randn(2).dtype                                  -> float32
bool((rl.rand(100) < 1).sum() == 100)              -> True
rl.randint(0, 5, (10,)).shape                      -> (10,)
rl.ones(2, requires_grad=True)                     -> tensor([1., 1.], requires_grad=True)
rl.tensor([2**40], dtype="int32")                  !! [tensor] data: expected numbers that int32 can hold
rl.tensor(["a"])                                   !! [tensor] data: expected
rl.tensor([[1, 2], [3]])                           !! inhomogeneous
rl.zeros(-1)                                       !! [tensor] shape: expected sizes >= 0
rl.zeros(2, dtype="float8")                        !! [dtype] expected float64, float32
rl.zeros(2, device="tpu")                          !! [device] expected
rl.zeros(2.5)                                      !! [zeros] expected integers, got 2.5

# What a tensor says of itself
x.shape                                            -> (3,)
x.dtype                                            -> float32
x.device                                           -> cpu
x.ndim                                             -> 1
x.size()                                           -> (3,)
m.size(0)                                          -> 2
m.size(-1)                                         -> 3
m.numel()                                          -> 6
m.dim()                                            -> 2
m.stride()                                         -> (3, 1)
m.T.stride()                                       -> (1, 3)
m.is_contiguous()                                  -> True
m.T.is_contiguous()                                -> False
m.nbytes                                           -> 24
m.itemsize                                         -> 4
m.element_size()                                   -> 4
x.requires_grad                                    -> False
x.grad                                             -> None
x.is_leaf                                          -> True
len(m)                                             -> 2
len(rl.tensor(1.0))                                !! [len] expected at least one dimension
x.foo                                              !! has no attribute 'foo'
hasattr(x, "T")                                    -> True
hasattr(rl.ones(2, 2, 2), "T")                     -> False
isinstance(x, rl.Tensor)                           -> True
callable(rl.matmul)                                -> True
hash(x) == hash(x)                                 -> True
x in {x: 1}                                        -> True

# dtypes
x.dtype == "float32"                               -> True
x.dtype == rl.float32                              -> True
x.dtype == np.float32                              -> True
x.dtype == np.dtype("float32")                     -> True
x.dtype == float                                   -> True
x.dtype != rl.float16                              -> True
i.dtype == int                                     -> True
b.dtype == bool                                    -> True
rl.bfloat16 == ml_dtypes.bfloat16                  -> True
rl.bfloat16 == "bf16"                              -> True
rl.float16 == "half"                               -> True
rl.float64 == "double"                             -> True
rl.int64 == "long"                                 -> True
str(rl.float16)                                    -> float16
rl.float16.itemsize                                -> 2
rl.int32.is_floating_point                         -> False
x.to("bfloat16").dtype                             -> bfloat16
x.to(rl.float64).dtype                             -> float64
x.to(np.float16).dtype                             -> float16
x.to("cpu") is not None                            -> True
x.to("cpu", "half").dtype                          -> float16
x.to(i).dtype                                      -> int64
x.half().dtype                                     -> float16
x.double().dtype                                   -> float64
x.bfloat16().dtype                                 -> bfloat16
i.float()                                          -> tensor([0., 1., 2.])
rl.tensor([1.7, -1.7]).long().tolist()             -> [1, -1]
rl.tensor([1.7]).int().dtype                       -> int32
rl.tensor([0.0, 2.0]).bool().tolist()              -> [False, True]
rl.tensor([math.nan, 1e30]).int().tolist()         -> [0, 2147483647]

# Arithmetic
x + 1                                              -> tensor([2., 3., 4.])
1 + x                                              -> tensor([2., 3., 4.])
x - x                                              -> tensor([0., 0., 0.])
10 - x                                             -> tensor([9., 8., 7.])
2 * x                                              -> tensor([2., 4., 6.])
x * x                                              -> tensor([1., 4., 9.])
x / 2                                              -> tensor([0.5, 1. , 1.5])
6 / x                                              -> tensor([6., 3., 2.])
x ** 2                                             -> tensor([1., 4., 9.])
2 ** x                                             -> tensor([2., 4., 8.])
-x                                                 -> tensor([-1., -2., -3.])
+x                                                 -> tensor([1., 2., 3.])
abs(-x)                                            -> tensor([1., 2., 3.])
x // 2                                             -> tensor([0., 1., 1.])
x % 2                                              -> tensor([1., 0., 1.])
-7 // rl.tensor([2, -2])                           -> tensor([-4,  3], dtype=int64)
rl.tensor([7, -7]) % 4                             -> tensor([3, 1], dtype=int64)
rl.tensor([7, -7]) // 2                            -> tensor([ 3, -4], dtype=int64)
i / 2                                              -> tensor([0. , 0.5, 1. ])
i / i.to("int64")                                  -> tensor([nan,  1.,  1.])
(i / 2).dtype                                      -> float32
i // 0                                             -> tensor([0, 0, 0], dtype=int64)
i + 1                                              -> tensor([1, 2, 3], dtype=int64)
i * 2.0                                            -> tensor([0, 2, 4], dtype=int64)
i + 0.5                                            !! [add] number: expected one that int64 can hold, got 0.5
x + i                                              !! [add] operands are float32 and int64; convert one with .to()
m + x                                              -> tensor([[1., 3., 5.],        [4., 6., 8.]])
m + rl.ones(2)                                     !! [add] shapes (2, 3) and (2,) do not broadcast
np.float64(2) * x                                  -> tensor([2., 4., 6.])
x * np.float32(2)                                  -> tensor([2., 4., 6.])
np.array(2.0) * x                                  -> tensor([2., 4., 6.])
x + "a"                                            !! unsupported operand
x + None                                           !! unsupported operand
x @ x                                              -> tensor(14.)
m @ x                                              -> tensor([ 8., 26.])
(m @ m.T).tolist()                                 -> [[5.0, 14.0], [14.0, 50.0]]
m @ m                                              !! [matmul] b: expected (K=3, N), got (2, 3)
rl.matmul(m, m.T).shape                            -> (2, 2)
m.matmul(x).tolist()                               -> [8.0, 26.0]
rl.zeros(0) @ rl.zeros(0)                          -> tensor(0.)
rl.ones(1, 0) @ rl.ones(0, 2)                      -> tensor([[0., 0.]])
divmod(7, 2) == (7 // 2, 7 % 2)                    -> True
sum(x)                                             -> tensor(6.)
max(x)                                             -> tensor(3.)
sorted(float(v) for v in -x)                       -> [-3.0, -2.0, -1.0]

# Comparisons and masks
x == 2                                             -> tensor([False,  True, False], dtype=bool)
x == x                                             -> tensor([ True,  True,  True], dtype=bool)
x == [1, 2, 4]                                     -> tensor([ True,  True, False], dtype=bool)
x == (1, 2, 3)                                     -> tensor([ True,  True,  True], dtype=bool)
x == np.array([1, 0, 3], "float32")                -> tensor([ True, False,  True], dtype=bool)
np.array([1, 0, 3], "float32") == x                -> tensor([ True, False,  True], dtype=bool)
i == np.arange(3)                                  -> tensor([ True,  True,  True], dtype=bool)
x != 2                                             -> tensor([ True, False,  True], dtype=bool)
x < 2                                              -> tensor([ True, False, False], dtype=bool)
2 < x                                              -> tensor([False, False,  True], dtype=bool)
x >= 2                                             -> tensor([False,  True,  True], dtype=bool)
(x > 1) & (x < 3)                                  -> tensor([False,  True, False], dtype=bool)
(x < 2) | (x > 2)                                  -> tensor([ True, False,  True], dtype=bool)
~(x > 1)                                           -> tensor([ True, False, False], dtype=bool)
b ^ True                                           -> tensor([False,  True, False], dtype=bool)
i & 1                                              -> tensor([0, 1, 0], dtype=int64)
i | 4                                              -> tensor([4, 5, 6], dtype=int64)
~i                                                 -> tensor([-1, -2, -3], dtype=int64)
x & 1                                              !! [bitwise_and] expected an integer or bool dtype, got float32
x == None                                          !! [eq] b: expected a tensor, a number or an array, got NoneType
x == "a"                                           !! [eq] b: expected a tensor, a number or an array, got str
x is None                                          -> False
x == np.ones(3)                                    !! [eq] operands are float32 and float64
(x == x).sum().item()                              -> 3
2.0 in x                                           -> True
5.0 in x                                           -> False
bool(rl.tensor(1.0))                               -> True
bool(x)                                            !! [bool] the truth of shape (3,) is ambiguous
not rl.tensor([0])                                 -> True
rl.where(x > 1, x, 0.0)                            -> tensor([0., 2., 3.])
rl.maximum(x, 2.0)                                 -> tensor([2., 2., 3.])
rl.minimum(x, rl.ones(3))                          -> tensor([1., 1., 1.])
rl.tensor([math.nan]) == math.nan                  -> tensor([False], dtype=bool)

# Functions
rl.exp(rl.zeros(2))                                -> tensor([1., 1.])
rl.log(rl.ones(2))                                 -> tensor([0., 0.])
rl.sqrt(x * x)                                     -> tensor([1., 2., 3.])
rl.tanh(rl.zeros(1))                               -> tensor([0.])
rl.sin(rl.zeros(1)) + rl.cos(rl.zeros(1))          -> tensor([1.])
rl.relu(x - 2)                                     -> tensor([0., 0., 1.])
rl.sigmoid(rl.zeros(1))                            -> tensor([0.5])
x.exp().log().tolist() == rl.log(rl.exp(x)).tolist() -> True
(x - 2).relu()                                     -> tensor([0., 0., 1.])
x.sqrt().shape                                     -> (3,)
rl.softmax(rl.zeros(1, 4), dim=-1)                 -> tensor([[0.25, 0.25, 0.25, 0.25]])
x.softmax(0).sum().item() == pytest.approx(1)      -> True
rl.gelu(rl.zeros(2))                               -> tensor([0., 0.])
rl.layer_norm(m).shape                             -> (2, 3)
rl.rms_norm(rl.full((1, 4), 1e20))                 -> tensor([[1., 1., 1., 1.]])
rl.softmax(x, axis=0)                              !! [softmax] axis: no such argument; did you mean dim?
rl.exp(i)                                          !! [exp] expected a floating-point dtype, got int64
rl.exp(3.0)                                        !! [exp] x: expected Tensor, got float
rl.gelu([1.0])                                     !! [gelu] x: expected Tensor, got list

# Reductions
x.sum()                                            -> tensor(6.)
m.sum(0)                                           -> tensor([3., 5., 7.])
m.sum(dim=1)                                       -> tensor([ 3., 12.])
m.sum(-1, keepdim=True).shape                      -> (2, 1)
m.sum((0, 1))                                      -> tensor(15.)
m.mean()                                           -> tensor(2.5)
m.mean(dim=0)                                      -> tensor([1.5, 2.5, 3.5])
m.max()                                            -> tensor(5.)
rl.sum(m, 1).tolist()                              -> [3.0, 12.0]
b.sum()                                            -> tensor(2, dtype=int64)
i.sum().dtype                                      -> int64
rl.full((4,), 3e38).mean().item() > 2.9e38         -> True
m.sum(axis=1)                                      !! [sum] axis: no such argument; did you mean dim?
m.sum(keepdims=True)                               !! [sum] keepdims: no such argument; did you mean keepdim?
m.sum(2)                                           !! [sum] dim: expected in [-2, 1], got 2

# Indexing
x[0]                                               -> tensor(1.)
x[-1]                                              -> tensor(3.)
x[1:]                                              -> tensor([2., 3.])
x[::2]                                             -> tensor([1., 3.])
x[::-1]                                            -> tensor([3., 2., 1.])
x[-1:0:-1]                                         -> tensor([3., 2.])
x[:: 2**63 - 1]                                    -> tensor([1.])
x[2:1]                                             -> tensor([])
x[None].shape                                      -> (1, 3)
x[:, None].shape                                   -> (3, 1)
x[...]                                             -> tensor([1., 2., 3.])
m[1]                                               -> tensor([3., 4., 5.])
m[1, 2]                                            -> tensor(5.)
m[1][2].item()                                     -> 5.0
m[:, 1]                                            -> tensor([1., 4.])
m[..., -1]                                         -> tensor([2., 5.])
m[0, ::-1]                                         -> tensor([2., 1., 0.])
m[::-1].tolist()                                   -> [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]
m[:0].shape                                        -> (0, 3)
x[[0, 2]]                                          -> tensor([1., 3.])
x[[-1, 0, 0]]                                      -> tensor([3., 1., 1.])
x[[True, False, True]]                             -> tensor([1., 3.])
x[x > 1]                                           -> tensor([2., 3.])
x[i]                                               -> tensor([1., 2., 3.])
x[rl.tensor([[0, 1], [2, 0]])].tolist()            -> [[1.0, 2.0], [3.0, 1.0]]
x[np.array([2, 0])]                                -> tensor([3., 1.])
x[rl.tensor(2)]                                    -> tensor(3.)
x[np.int64(1)]                                     -> tensor(2.)
x[[]].shape                                        -> (0,)
x[range(2)]                                        -> tensor([1., 2.])
m[[1, 0]].tolist()                                 -> [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]
m[:, [2, 0]].tolist()                              -> [[2.0, 0.0], [5.0, 3.0]]
m[[0, 1], [2, 0]]                                  -> tensor([2., 3.])
m[0, [2, 1]]                                       -> tensor([2., 1.])
m[m > 2]                                           -> tensor([3., 4., 5.])
m[rl.tensor([False, True])].tolist()               -> [[3.0, 4.0, 5.0]]
m[..., [0]].shape                                  -> (2, 1)
m[[[0], [1]], [0, 2]].tolist()                     -> [[0.0, 2.0], [3.0, 5.0]]
x[3]                                               !! out of bounds
x[2**70]                                           !! cannot fit 'int' into an index-sized integer
x[[0, 3]]                                          !! [index] 3 is out of bounds for dimension 0 of size 3
x[1.5]                                             !! [index] expected integers, slices
x["a"]                                             !! [index] expected integers, slices
x[x]                                               !! [index] expected integers, slices
x[0, 0]                                            !! [index] expected at most 1 for shape (3,), got 2
x[[True, False]]                                   !! [index] mask: expected (3,), got (2,)
x[::0]                                             !! slice step cannot be zero

# Shapes
m.view(3, 2).tolist()                              -> [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
m.view(-1).shape                                   -> (6,)
m.reshape(3, -1).shape                             -> (3, 2)
m.reshape((3, 2)).shape                            -> (3, 2)
m.T.reshape(6).tolist()                            -> [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
m.T.view(6)                                        !! [view] shape: (6,) needs a copy
m.view(4)                                          !! [view] shape: (4,) does not hold 6 elements
m.T.shape                                          -> (3, 2)
m.mT.shape                                         -> (3, 2)
m.transpose(0, 1).shape                            -> (3, 2)
m.permute(1, 0).shape                              -> (3, 2)
m.unsqueeze(0).shape                               -> (1, 2, 3)
m.unsqueeze(-1).squeeze(-1).shape                  -> (2, 3)
m.flatten().shape                                  -> (6,)
x.expand(2, 3).shape                               -> (2, 3)
x[:, None].expand(-1, 2).shape                     -> (3, 2)
m.T.contiguous().stride()                          -> (2, 1)
m.clone().data_ptr() != m.data_ptr()               -> True
m.view(6).data_ptr() == m.data_ptr()               -> True
m.transpose(0, 2)                                  !! [transpose] dim: expected in [-2, 1], got 2
m.transpose(0)                                     !! [transpose] dim1: missing; expected (dim0, dim1)

# Numbers, text, Python's own functions
x[0].item()                                        -> 1.0
i[1].item()                                        -> 1
x.item()                                           !! [item] expected a tensor of one element, got shape (3,)
x.tolist()                                         -> [1.0, 2.0, 3.0]
float(x[1])                                        -> 2.0
int(x[2])                                          -> 3
complex(x[0])                                      -> (1+0j)
operator.index(i[2])                               -> 2
[10, 20, 30][i[1]]                                 -> 20
list(range(i[2]))                                  -> [0, 1]
math.sqrt(rl.tensor(4.0))                          -> 2.0
f"{x[0]:.2f}"                                      -> 1.00
f"{x[0]}"                                          -> 1.0
f"{x}"                                             -> tensor([1., 2., 3.])
str(x)                                             -> tensor([1., 2., 3.])
f"{x:.2f}"                                         !! [format] ".2f" is for a tensor of one element
[v.item() for v in x]                              -> [1.0, 2.0, 3.0]
[row.tolist() for row in m]                        -> [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
list(zip(x.tolist(), i.tolist()))                  -> [(1.0, 0), (2.0, 1), (3.0, 2)]
copy.copy(x).data_ptr() == x.data_ptr()            -> True
copy.deepcopy(x).data_ptr() == x.data_ptr()        -> False
copy.deepcopy({"w": x})["w"].tolist()              -> [1.0, 2.0, 3.0]
pickle.loads(pickle.dumps(x))                      -> tensor([1., 2., 3.])
pickle.loads(pickle.dumps(rl.bfloat16))            -> bfloat16

# NumPy
x.numpy()                                          -> [1. 2. 3.]
np.asarray(x)                                      -> [1. 2. 3.]
np.asarray(x).dtype                                -> float32
np.array(x) is not x                               -> True
np.shares_memory(x.numpy(), np.asarray(x))         -> True
np.shares_memory(x.numpy(), np.array(x))           -> False
np.stack([x, x]).shape                             -> (2, 3)
np.concatenate([x, x]).tolist()                    -> [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]
np.allclose(x, [1, 2, 3])                          -> True
np.isclose(x.sum(), 6)                             -> True
np.from_dlpack(x).tolist()                         -> [1.0, 2.0, 3.0]
rl.from_dlpack(np.ones(2)).dtype                   -> float64
rl.tensor([1.0], dtype="bfloat16").numpy().dtype   -> bfloat16
rl.ones(1, requires_grad=True).numpy()             !! [numpy] the tensor requires grad; call .detach() first
rl.ones(1, device="meta").numpy()                  !! [numpy] a tensor on meta:cpu has no values

# Gradients
(x * 2).requires_grad                              -> False
rl.ones(1, requires_grad=True) * 2                 -> tensor([2.], grad_fn=<mul>)
rl.ones(2, requires_grad=True).detach()            -> tensor([1., 1.])
rl.ones(2, requires_grad=True).sum().is_leaf       -> False
rl.is_grad_enabled()                               -> True
rl.autograd.grad((w * w).sum(), w)                 -> (tensor([2., 4., 6.]),)
x.backward()                                       !! [backward] gradient: must be given for a tensor of shape (3,)
x.sum().backward()                                 !! [backward] the tensor does not require grad
w.add_(1)                                          !! [add] in place: the tensor is a leaf that requires grad
rl.ones(2, dtype="int64", requires_grad=True)      !! [requires_grad] expected a floating-point dtype

# In place
x.clone().add_(1)                                  -> tensor([2., 3., 4.])
x.clone().sub_(x)                                  -> tensor([0., 0., 0.])
x.clone().mul_(2).div_(4)                          -> tensor([0.5, 1. , 1.5])
x.clone().zero_()                                  -> tensor([0., 0., 0.])
x.clone().fill_(7)                                 -> tensor([7., 7., 7.])
x.clone().copy_(rl.ones(1))                        -> tensor([1., 1., 1.])
x.clone().add_("a")                                !! [add_] other: expected a tensor or a number, got str
rl.arange(3).div_(2)                               !! [div] expected a floating-point dtype, got int64
operator.iadd(x.clone(), 1)                        -> tensor([2., 3., 4.])
operator.ifloordiv(rl.tensor([7]), 2)              -> tensor([3], dtype=int64)

# Errors that say what to write
rl.tensr                                           !! has no attribute 'tensr'
rl.add(x)                                          !! [add] b: missing; expected (a, b, variant='')
rl.add(x, 1, 2, 3)                                 !! [add] expected at most 3 positional arguments, got 4
rl.matmul(x, 3)                                    !! [matmul] b: expected Tensor, got int
rl.variants("matmul", 3)                           !! [variants] device: expected str or None, got int
rl.variants("conv")                                !! [variants] op: expected one of
rl.matmul(m, m.T, variant="fastest")               !! [matmul] variant: expected one of
rl.Tensor([1, 2])                                  !! [Tensor] make one by rl.tensor(data)
rl.zeros(3, dtpye="int")                           !! [zeros] dtpye: no such argument; did you mean dtype?
"""

STATEMENTS = {
    "x += 1; x": "tensor([2., 3., 4.])",
    "y = x; y *= 2; x": "tensor([2., 4., 6.])",
    "x[0] = 9; x": "tensor([9., 2., 3.])",
    "x[1:] = 0; x": "tensor([1., 0., 0.])",
    "x[1:] = x[:-1]; x": "tensor([1., 1., 2.])",
    "x[::-1] = x.clone(); x": "tensor([3., 2., 1.])",
    "x[[0, 2]] = 5; x": "tensor([5., 2., 5.])",
    "x[[0, 2]] = [7, 8]; x": "tensor([7., 2., 8.])",
    "x[x > 1] = 0; x": "tensor([1., 0., 0.])",
    "x[x > 1] *= 10; x": "tensor([ 1., 20., 30.])",
    "x[i] = -x; x": "tensor([-1., -2., -3.])",
    "m[:, 0] = x[:2]; m[:, 0]": "tensor([1., 2.])",
    "m[m > 2] = rl.tensor([7.0, 8.0, 9.0]); m[1]": "tensor([7., 8., 9.])",
    "m[1] += 1; m[1]": "tensor([4., 5., 6.])",
    "m[[1, 0]] = m.clone(); m[0]": "tensor([3., 4., 5.])",
    "x.numpy()[0] = 5; x": "tensor([5., 2., 3.])",
    "np.array(x)[0] = 5; x": "tensor([1., 2., 3.])",
    "a, c, d = x; c": "tensor(2.)",
    "y = x[1:]; y += 10; x": "tensor([ 1., 12., 13.])",
    "(w * x).sum().backward(); w.grad": "tensor([1., 2., 3.])",
    "w[1:].sum().backward(); w.grad": "tensor([0., 1., 1.])",
    "w[[0, 0, 2]].sum().backward(); w.grad": "tensor([2., 0., 1.])",
    "w[w > 1].sum().backward(); w.grad": "tensor([0., 1., 1.])",
    "h = w * 2; h += 1; (h * h).sum().backward(); w.grad": "tensor([12., 20., 28.])",
}


def names():
    return {
        "x": rl.tensor([1.0, 2.0, 3.0]),
        "m": rl.arange(6).to("float32").reshape(2, 3),
        "i": rl.arange(3),
        "b": rl.tensor([True, False, True]),
        "w": rl.tensor([1.0, 2.0, 3.0], requires_grad=True),
        **{module.__name__: module for module in (copy, math, ml_dtypes, operator, pickle, pytest)},
        "np": np,
        "rl": rl,
    }


def lines(mark):
    found = []
    for line in PAGE.splitlines():
        if line and not line.startswith("#") and f" {mark} " in line:
            found.append(tuple(part.strip() for part in line.split(f" {mark} ", 1)))
    return found


def printed(value):
    return str(value).replace("\n", "")


@pytest.mark.parametrize(("expression", "expected"), lines("->"))
def test_it_prints(expression, expected):
    assert printed(eval(expression, names())) == expected


@pytest.mark.parametrize(("expression", "says"), lines("!!"))
def test_it_says(expression, says):
    with pytest.raises((ValueError, TypeError, IndexError, AttributeError)) as raised:
        eval(expression, names())
    text = str(raised.value)
    assert says in text
    assert "Invoked with" not in text and "incompatible" not in text and len(text) < 1000


@pytest.mark.parametrize(("statements", "expected"), list(STATEMENTS.items()))
def test_it_leaves(statements, expected):
    *before, last = statements.split("; ")
    space = names()
    for statement in before:
        exec(statement, space)
    assert printed(eval(last, space)) == expected


def test_it_is_a_page_of_its_size():
    assert len(lines("->")) + len(lines("!!")) + len(STATEMENTS) >= 300
