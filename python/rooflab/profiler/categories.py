"""What kind of work a kernel does: from the op that launched it; for other libraries' and students' kernels by name."""

from __future__ import annotations

import functools

from .. import _core
from .foreign import category_of_name

CATEGORIES = (
    "gemm", "attention", "elementwise", "softmax", "layernorm", "embedding", "optimizer", "memory", "other"
)  # fmt: skip
"""Fused attention is "attention"; composed attention is the products, the softmax and the copies that it is made of.
"softmax" includes the cross-entropy, "memory" is copies and fills."""

_BY_OP = {
    **dict.fromkeys(("matmul", "matmul_bias", "matmul_float32"), "gemm"),
    **dict.fromkeys(("attention", "gemma3_decode"), "attention"),
    **dict.fromkeys(("softmax", "log_softmax", "cross_entropy"), "softmax"),
    **dict.fromkeys(("rms_norm", "rms_norm_add", "rms_norm_rope", "rms_norm_rope_append", "layer_norm"), "layernorm"),
    **dict.fromkeys(("rope", "gelu", "fused"), "elementwise"),
    "embedding": "embedding",
    **dict.fromkeys(("adamw", "sum_squares", "scale_tensors"), "optimizer"),
    **dict.fromkeys(("copy", "kv_append", "cat", "nonzero", "tril", "triu", "fill", "memcpy", "memset"), "memory"),
    **dict.fromkeys(("arange", "linspace", "gather", "index_select", "index_put", "ravel_index", "scatter"), "memory"),
    **dict.fromkeys(("one_hot", "pad"), "memory"),
}


def category(name: str, op: str) -> str:
    """One of `CATEGORIES` for a kernel of this name, launched by this op ("" when not by rooflab,
    "custom" when it was compiled by `rooflab.cuda.compile`).

    Examples
    --------
    >>> category("nvjet_hsh_128x64_64x8_1x2_h_bz_NNT", op=""), category("anything", op="rms_norm")
    ('gemm', 'layernorm')
    """
    if op not in ("", "custom"):
        return "memory" if name.startswith(("memcpy", "memset")) else _of_op(op)
    return category_of_name(name)


@functools.cache
def _of_op(op: str) -> str:
    """A backward is of its forward's kind. An op without an entry is elementwise if its kernels are of that family."""
    op = op.removesuffix("_backward")
    kernels = [variant.kernel for variant in _core.variants(op)] if op in _core.ops() else []
    is_elementwise = any(kernel.startswith("elementwise_") for kernel in kernels)
    return _BY_OP.get(op) or ("elementwise" if is_elementwise else "other")
