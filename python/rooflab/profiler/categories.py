"""What kind of work a kernel does: from the op that launched it; for other libraries' and students' kernels by name."""

from __future__ import annotations

CATEGORIES = ("gemm", "elementwise", "softmax", "layernorm", "memory", "other")

_ELEMENTWISE = (
    "add sub mul div pow maximum minimum neg abs relu exp log tanh sqrt rsqrt sin cos sigmoid silu "
    "floor_divide remainder bitwise_and bitwise_or bitwise_xor bitwise_not eq ne lt le gt ge where cast gelu"
)
_BY_OP = {
    "matmul": "gemm",
    "softmax": "softmax",
    "rms_norm": "layernorm",
    "layer_norm": "layernorm",
    **dict.fromkeys(_ELEMENTWISE.split(), "elementwise"),
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
        return "memory" if name.startswith(("memcpy", "memset")) else _BY_OP.get(op, "other")
    lower = name.lower()
    return next((kind for kind, words in _BY_NAME if any(word in lower for word in words)), "other")
