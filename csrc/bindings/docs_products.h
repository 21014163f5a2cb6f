// Docstrings of products of matrices, for bind_ops.cpp.
#pragma once

namespace rooflab {

constexpr const char* kMatmulDoc = R"doc(The product of matrices, as torch.matmul: a @ b.

One launch; M N K MACs a matrix. Transposed operands cost no copy. Vectors count as matrices of one row or column.

Parameters
----------
a : Tensor
    (..., M, K) or (K,).
b : Tensor
    (..., K, N) or (K,), of the dtype of `a`. Leading dimensions broadcast.
variant : str
    A rung of rl.variants("matmul"); the fastest that fits when empty. One that does not take the operands raises
    ValueError.

Returns
-------
Tensor
    (..., M, N), of the operands' dtype; float16 and bfloat16 are added up in float32.

Raises
------
ValueError
    For shapes that do not fit, dtypes that differ, and integers.

Examples
--------
>>> rl.matmul(rl.ones(2, 3), rl.ones(3, 4)).shape
(2, 4))doc";

constexpr const char* kSetPrecisionDoc = R"doc(Sets how products of float32 on a GPU may be computed.

The setting is that of the whole process. With "high", and "medium", which is the same here, a Hopper GPU splits each
number into three of bfloat16, and its tensor cores multiply these: large products take down to two fifths of the time.
The error stays that of float32, which PyTorch's "high" does not promise; only numbers below 2^-110 lose bits. A product
is 3 launches in place of 1, and takes 6 bytes of scratch for each element of the operands. Small products, other
dtypes, other GPUs and CPUs are computed as before.

Parameters
----------
precision : str
    "highest", the default, "high" or "medium".

Raises
------
ValueError
    For any other.

Examples
--------
>>> rl.set_float32_matmul_precision("high")
>>> x = rl.empty(1024, 1024, device="meta:H200")
>>> with rl.count() as c:
...     y = x @ x
>>> c.launches
3
>>> rl.set_float32_matmul_precision("highest"))doc";

constexpr const char* kGetPrecisionDoc = R"doc(How products of float32 on a GPU may be computed.

See `set_float32_matmul_precision`.

Returns
-------
str
    "highest", "high" or "medium".

Examples
--------
>>> rl.get_float32_matmul_precision()
'highest')doc";

constexpr const char* kMatmulFloat32Doc = R"doc(A product of matrices of 16 bits, in float32.

The gradients of `linear` use it under autocast. One launch, M N K MACs; it has no gradient itself.

Parameters
----------
a : Tensor
    (M, K), float16 or bfloat16.
b : Tensor
    (K, N), of the dtype of `a`.
variant : str
    A rung of rl.variants("matmul_float32"); the fastest that fits when empty.

Returns
-------
Tensor
    (M, N), float32, not rounded to 16 bits in between.

Raises
------
ValueError
    For other dtypes, and shapes that do not fit.

Examples
--------
>>> rl.matmul_float32(rl.ones(2, 3).half(), rl.ones(3, 4).half()).dtype
rooflab.float32)doc";

constexpr const char* kMatmulBiasDoc = R"doc(A product of matrices plus a bias, rounded once where a kernel adds it.

`linear` uses it on a GPU: one launch, which writes the product once. On a CPU it is a product and a sum, which write it
twice and read it once. M N K MACs, and M N FLOPs for the bias; it has no gradient itself.

Parameters
----------
a : Tensor
    (M, K), floating.
b : Tensor
    (K, N), of the dtype of `a`.
bias : Tensor
    (N,), of the dtype of `a`.
variant : str
    A rung of rl.variants("matmul_bias"); the fastest that fits when empty.

Returns
-------
Tensor
    (M, N), of the operands' dtype.

Raises
------
ValueError
    For integers, dtypes that differ, and shapes that do not fit.

Examples
--------
>>> rl.matmul_bias(rl.ones(1, 3), rl.ones(3, 2), rl.tensor([0.0, 1.0])).tolist()
[[3.0, 4.0]])doc";

}  // namespace rooflab
