"""What kind of work a kernel does: from the op that launched it; for other libraries' and students' kernels by name."""

from __future__ import annotations

import functools

from .. import _core

CATEGORIES = ("gemm", "elementwise", "softmax", "layernorm", "memory", "other")

_BY_OP = {
    "matmul": "gemm",
    "softmax": "softmax",
    "rms_norm": "layernorm",
    "rms_norm_add": "layernorm",
    "rms_norm_rope": "layernorm",
    "layer_norm": "layernorm",
    "softmax_backward": "softmax",
    "rms_norm_backward": "layernorm",
    "layer_norm_backward": "layernorm",
    "rope": "elementwise",
    "kv_append": "memory",
    "gelu": "elementwise",
    **dict.fromkeys(("gelu_backward", "silu_backward", "geglu_backward", "swiglu_backward"), "elementwise"),
    "fused": "elementwise",
    **dict.fromkeys(
        ("copy", "cat", "gather", "index_select", "embedding", "tril", "triu", "fill", "memcpy", "memset"), "memory"
    ),
}

# The first row with a word that the lower-case name holds decides: fused attention before the GEMM it is made of,
# fills and copies before the elementwise templates that PyTorch writes them with.
_BY_NAME = (
    ("other", ("flash", "fmha", "attention")),
    ("softmax", ("softmax",)),
    ("layernorm", ("layer_norm", "layernorm", "rms_norm", "rmsnorm")),
    ("gemm", ("nvjet", "gemm", "gemv", "matmul", "cutlass", "xmma", "wgmma", "splitk")),
    ("memory", ("memcpy", "memset", "fill", "copy")),
    ("elementwise", ("elementwise", "gelu", "triton_poi", "cupy_")),
)


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
    lower = name.lower()
    return next((kind for kind, words in _BY_NAME if any(word in lower for word in words)), "other")


@functools.cache
def _of_op(op: str) -> str:
    """What is not named is elementwise when its kernels are those of that family."""
    kernels = [variant.kernel for variant in _core.variants(op)] if op in _core.ops() else []
    is_elementwise = any(kernel.startswith("elementwise_") for kernel in kernels)
    return _BY_OP.get(op) or ("elementwise" if is_elementwise else "other")
