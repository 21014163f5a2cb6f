"""Mixed precision: `rl.autocast`, under which ops choose the dtype that they compute in."""

from __future__ import annotations

from typing import Any

from . import _core
from ._decorated import F, decorated
from ._entered import Entered
from ._in_words import in_words

__all__ = ["autocast"]


class autocast:
    """Let each op choose its dtype inside `with rl.autocast("bfloat16"):`, or in a function decorated with it.

    ===============================================================  =============================================
    op                                                               computes in, and returns
    ===============================================================  =============================================
    matmul, linear, attention                                        `dtype`
    softmax, log_softmax, cross_entropy, rms_norm, rms_norm_add,     float32
    rms_norm_rope, layer_norm, exp, log, log2, log10, pow, rsqrt,
    sum, mean, cumsum
    all others                                                       their operands' dtype; the widest of several
    ===============================================================  =============================================

    Ops built from these follow the same rule: einsum as matmul. Operands in float16 and bfloat16 together are widened
    to float32. Ops of the table do not cast float64. The policy is the same on every device; its casts are counted as
    `cast`. `cross_entropy` does not cast logits of 16 bits, because it computes in float32 internally.

    Parameters and their gradients keep their dtype: the cast is recorded, so backward casts the gradient back. The
    weight gradients of `linear` are computed in the weight's dtype, by `matmul_float32`: on a GPU they are neither
    rounded to 16 bits nor cast. All other backward passes compute in the dtypes that their forward pass chose.

    A leaf that requires grad is cast once. The cast stays in memory beside the leaf until the outermost context ends; a
    captured graph and a compiled function cast a leaf at every use. These casts have the range "autocast_weights". A
    tensor that several products in a row read, such as the result of a norm, is cast once if backward keeps the cast;
    each product then has a gradient in the dtype that the tensor had. A tensor that was written to, by an op or by the
    replay of a graph, is cast again. Writes through memory that another library shares, as of ``x.numpy()``, are not
    seen: products go on with the old cast, and backward uses what it saved as it is then.

    Contexts nest, and belong to the thread that entered them.

    Parameters
    ----------
    device_type : str or dtype
        The dtype, or "cpu" or "cuda" as PyTorch has it. That does not limit the context to tensors of that device.
    dtype : str or dtype, optional
        "float16" or "bfloat16", by default the latter, and after "cuda" the former, as in PyTorch. In float16 gradients
        below 6e-8 vanish: scale the loss with a `rl.GradScaler`.
    enabled : bool
        False turns autocast off, inside another context too.

    Raises
    ------
    ValueError
        For another dtype.

    Examples
    --------
    >>> import rooflab as rl
    >>> x, w = rl.ones(2, 3), rl.ones(4, 3, requires_grad=True)
    >>> with rl.autocast("bfloat16"):
    ...     y = rl.linear(x, w)
    ...     p = y.softmax()
    >>> print(y.dtype, p.dtype, w.dtype)
    bfloat16 float32 float32
    """

    @in_words
    def __init__(self, device_type: Any = "cpu", dtype: Any = None, enabled: bool = True):
        if not isinstance(device_type, str) or device_type not in ("cpu", "cuda"):
            if dtype is not None:
                raise ValueError(f"[autocast] device_type: expected 'cpu' or 'cuda' beside a dtype, got {device_type}")
            dtype = device_type
        elif dtype is None:
            dtype = "float16" if device_type == "cuda" else "bfloat16"
        if dtype != _core.float16 and dtype != _core.bfloat16:
            raise ValueError(
                f"[autocast] dtype: expected float16 or bfloat16, got {dtype}; a device_type is 'cpu' or 'cuda'"
            )
        self.dtype = _core.float16 if dtype == _core.float16 else _core.bfloat16
        self.enabled = bool(enabled)
        self._before: Entered[Any] = Entered("autocast")

    def __enter__(self) -> autocast:
        self._before.push(_core._autocast.begin(self.dtype if self.enabled else None))
        return self

    def __exit__(self, *exception: object) -> None:
        _core._autocast.end(self._before.pop())

    def __call__(self, function: F) -> F:
        return decorated(function, lambda: autocast(self.dtype, enabled=self.enabled), "autocast", "rl.autocast(dtype)")

    def __repr__(self) -> str:
        return f"autocast({str(self.dtype)!r}, enabled={self.enabled})"
