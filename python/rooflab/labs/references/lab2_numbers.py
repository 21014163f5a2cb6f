"""What Lab 2's tests on kernels, rounding and AdamW compare with. Letters as in `rooflab.labs.lab2`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import rooflab as rl

__all__ = ["adamw_float64", "added_up", "class_of", "dtypes_of"]


_OPS = {
    "matmul": "gemm", "linear": "gemm", "softmax": "softmax", "rms_norm": "norm", "layer_norm": "norm",
    "embedding": "embedding", "copy": "copy", "cat": "copy", "fill": "copy", "adamw": "optimizer",
}  # fmt: skip
_NAMES = {
    "gemm": ("gemm", "cutlass", "nvjet"), "softmax": ("softmax",), "norm": ("norm",), "embedding": ("embedding",),
    "copy": ("memcpy", "memset", "copy", "fill"), "optimizer": ("adam",),
}  # fmt: skip


def class_of(kernel: dict[str, Any]) -> str:
    """The class of a kernel by its op, or by its name where it has none.

    Examples
    --------
    >>> class_of({"op": "rope", "name": ""}), class_of({"op": "", "name": "nvjet_sst"})
    ('elementwise', 'gemm')
    """
    if kernel["op"]:
        return _OPS.get(kernel["op"].removesuffix("_backward"), "elementwise")
    name = kernel["name"].lower()
    return next((one for one, words in _NAMES.items() if any(word in name for word in words)), "elementwise")


def added_up(value: float, steps: int, total_dtype: str, term_dtype: str, start: float = 0.0) -> float:
    """`value` in one dtype, added `steps` times to a sum in another, which is rounded each time.

    Examples
    --------
    >>> added_up(0.01, 1000, "float16", "float16"), added_up(0.01, 1000, "bfloat16", "bfloat16")
    (9.953125, 4.0)
    """
    total_type, term_type = (np.dtype(getattr(ml_dtypes, name, name)) for name in (total_dtype, term_dtype))
    term = np.array(value).astype(term_type).astype(total_type)
    total = np.array(start).astype(total_type)
    for _ in range(steps):
        total = (total + term).astype(total_type)
    return float(total)


def dtypes_of(model: Any, x: rl.Tensor, targets: rl.Tensor, low: str) -> dict[str, str]:
    """The dtype of each tensor that ``model(x)`` returns, of its parameters, the loss and the gradients.

    Examples
    --------
    >>> from rooflab.labs.lab2_looks import run_dtypes
    >>> run_dtypes(dtypes_of, ["exp"], "float32", "bfloat16")["exp_0"]
    'float32'
    """
    with rl.autocast(low):
        tensors = model(x)
        loss = rl.cross_entropy(tensors["logits"], targets)
    loss.backward()
    (dtype,) = {str(one.dtype) for one in model.parameters()}
    (gradient,) = {str(one.grad.dtype) for one in model.parameters() if one.grad is not None}
    named = {name: str(one.dtype) for name, one in tensors.items()}
    return named | {"parameters": dtype, "loss": str(loss.dtype), "gradients": gradient}


def adamw_float64(
    p: Any,
    g: Any,
    m: Any,
    v: Any,
    t: int,
    lr: float,
    betas: Sequence[float],
    eps: float,
    weight_decay: float,
    decay: str = "before",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(p, m, v) after step t of AdamW, in float64; its weight decay comes before the update or after it.

    Examples
    --------
    >>> p, m, v = adamw_float64([1.0], [2.0], [0.0], [0.0], 1, 0.1, (0.9, 0.999), 1e-8, 0.0)
    >>> round(float(p[0]), 6), round(float(m[0]), 6)
    (0.9, 0.2)
    """  # fmt: skip
    p, g, m, v = (np.asarray(array, np.float64) for array in (p, g, m, v))
    m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g**2
    update = lr * m / (1 - betas[0] ** t) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    kept = 1 - lr * weight_decay
    return (p * kept - update if decay == "before" else (p - update) * kept), m, v
