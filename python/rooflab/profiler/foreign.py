"""What kind of work a kernel of another library does, as far as its name tells.

Names follow habits: PyTorch's own templates, the generated Triton kernels of torch.compile, cuBLAS, CUTLASS, cuDNN,
CuPy and XLA. `_BY_NAME` knows words; names that torch.compile generates say what they are made of and are read apart.
"""

from __future__ import annotations

import re

# The first row with a word that occurs in the lower-case name decides: fused attention comes before the GEMM it is made
# of, fills and copies before the elementwise templates that PyTorch writes them with.
_BY_NAME = (
    ("attention", ("flash", "fmha", "attention", "attn", "sdpa")),
    ("optimizer", ("adam", "fusedsgd", "fused_sgd")),
    ("embedding", ("embedding",)),
    ("softmax", ("softmax", "nll_loss", "cross_entropy")),
    (
        "layernorm",
        ("layer_norm", "layernorm", "rms_norm", "rmsnorm", "rowwisemoments", "gammabeta", "group_norm", "batch_norm"),
    ),
    ("gemm", ("nvjet", "gemm", "gemv", "matmul", "cutlass", "xmma", "wgmma", "splitk", "cublas", "dot_kernel")),
    (
        "memory",
        (
            "memcpy",
            "memset",
            "fill",
            "copy",
            "catarray",
            "indexselect",
            "index_select",
            "gather",
            "scatter",
            "nchwtonhwc",
            "nhwctonchw",
        ),
    ),
    ("elementwise", ("elementwise", "gelu", "silu", "cupy_", "loop_", "wrapped_", "dropout")),
)

# triton_poi_fused_add_relu_3: pointwise, (persistent) reduction, template of a product, or for each of a list.
_COMPILED = re.compile(r"triton_(?P<kind>poi|red|per|tem|for)_fused_(?P<ops>.*?)(?:_\d+)?$")
_MOVES = {"clone", "copy", "to", "cat", "t", "transpose", "permute", "view", "unsafe", "slice", "index", "select",
          "expand", "contiguous", "empty", "fill", "zeros", "full"}  # fmt: skip


def category_of_name(name: str) -> str:
    """One of `CATEGORIES`.

    Examples
    --------
    >>> category_of_name("triton_tem_fused_mm_0"), category_of_name("triton_poi_fused_add_relu_3")
    ('gemm', 'elementwise')
    """
    lower = name.lower()
    if compiled := _COMPILED.search(lower):
        return _of_compiled(compiled["kind"], compiled["ops"])
    return _by_word(lower)


def _of_compiled(kind: str, ops: str) -> str:
    known = _by_word(
        ops.replace("embedding", "") if kind in ("red", "per") else ops
    )  # a sum or norm is the larger part
    if kind == "tem":
        return "attention" if known == "attention" else "gemm"
    words = set(ops.strip("_").split("_"))
    if known in ("attention", "optimizer", "embedding", "softmax", "layernorm"):
        return known
    if kind in ("red", "per"):
        if "rsqrt" in words and words & {"mean", "var"}:
            return "layernorm"
        return "softmax" if {"exp", "sum"} <= words and words & {"amax", "max"} else "other"
    return "memory" if words <= _MOVES else "elementwise"


def _by_word(lower: str) -> str:
    return next((kind for kind, words in _BY_NAME if any(word in lower for word in words)), "other")
