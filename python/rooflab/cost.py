"""What an op has to do, by formula: MACs, FLOPs (2 a MAC) and compulsory bytes.

`rl.cost.matmul((M, K), (K, N))` and so on for every op of `rooflab.specs`; shapes stand where tensors would. The
counters of a real call show the same numbers exactly (a test compares them), so these are what a kernel is held to.

Conventions: an elementwise op is 1 FLOP an element (casts, copies, comparisons and `where`: none), fused gelu 8,
softmax 5, rms_norm 3 and 1 for a weight, layer_norm 5 and 1 each for weight and bias, a reduction or running sum 1 per
input element, scatter_add 1 per element added; what is only moved, chosen or sorted: none.
Each distinct input element is read once and each output element written once; Python numbers are free. Of a table that
an index chooses from, as much is read as the result holds, at most all of it.
"""

from __future__ import annotations

import functools

import numpy as np

from . import specs
from ._core import Cost

__all__ = ["Cost", "of"]


def of(op: str, *operands, dtype: str = "float32", **kwargs) -> Cost:
    """The cost of `rl.<op>(*operands, **kwargs)`.

    Parameters
    ----------
    op : str
        A name of `rooflab.specs.all_specs()`.
    *operands : tuple of int, or anything else
        A shape stands for a tensor of that shape; other values are passed as they are.
    dtype : str
        Element type of the operands, which decides the bytes.

    Returns
    -------
    Cost
        macs, flops, bytes_read, bytes_written; `.bytes` and `.arithmetic_intensity` (FLOP/byte).

    Raises
    ------
    ValueError
        For an op or a dtype that it does not have.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.cost.of("matmul", (512, 512), (512, 512)).macs
    134217728
    >>> rl.cost.gelu((1000,), dtype="bfloat16").bytes
    4000
    """
    known = specs.all_specs()
    if op not in known:
        raise ValueError(f"[cost] op: expected one of {', '.join(sorted(known))}; got {op!r}")
    dtype = str(dtype)
    if dtype not in known[op].dtypes:
        raise ValueError(f"[cost] dtype: {op} takes {', '.join(known[op].dtypes)}; got {dtype!r}")
    # Arrays of stride 0: a shape of any size without memory behind it.
    stand_ins = tuple(np.broadcast_to(0.0, x) if isinstance(x, tuple) else x for x in operands)
    return known[op].cost(specs.Sample("", stand_ins, kwargs), dtype)


def __getattr__(name: str):
    if name in specs.all_specs():
        return functools.partial(of, name)
    raise AttributeError(f"module 'rooflab.cost' has no attribute {name!r}")
