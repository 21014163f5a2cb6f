"""Which arrays a kernel's pointers take: the same rule on a GPU and on the CPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core

_TENSORS = {"float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"}
# The dtypes of the arrays that a pointer takes. An integer without a dtype of its own among those of tensors takes what
# has its bits.
_BITS_8, _BITS_16 = ("uint8", "int8", "bool"), ("uint16", "int16", "float16", "bfloat16")
_BITS_32, _BITS_64 = ("uint32", "int32"), ("uint64", "int64")
_ELEMENTS = {
    "float": ("float32",),
    "double": ("float64",),
    **dict.fromkeys(["__half", "half"], ("float16",)),
    **dict.fromkeys(["__nv_bfloat16", "nv_bfloat16"], ("bfloat16",)),
    **dict.fromkeys(["int", "int32_t"], ("int32",)),
    **dict.fromkeys(["long", "long long", "longlong", "int64_t"], ("int64",)),
    "bool": ("bool",),
    **dict.fromkeys(["char", "signed char", "unsigned char", "uchar", "int8_t", "uint8_t"], _BITS_8),
    **dict.fromkeys(["short", "unsigned short", "ushort", "int16_t", "uint16_t"], _BITS_16),
    **dict.fromkeys(["unsigned", "unsigned int", "uint", "uint32_t"], _BITS_32),
    **dict.fromkeys(["unsigned long", "unsigned long long", "ulong", "ulonglong", "uint64_t", "size_t"], _BITS_64),
}
_VECTOR = re.compile(r"((?:__)?half|(?:__)?nv_bfloat16|u?(?:char|short|int|long|longlong)|float|double)[1-4]")


def elements_of(kind: str) -> tuple[str, ...]:
    """The dtypes that a pointer to elements of this type takes; none if any will do.

    Parameters
    ----------
    kind : str
        ``float``, and ``float4`` too.
    """
    kind = " ".join(kind.split())
    vector = _VECTOR.fullmatch(kind)
    return _ELEMENTS.get(vector[1] if vector else kind, ())


def check_elements(
    kernel: str, parameters: Sequence[_core.cuda.Parameter], elements: Sequence[Sequence[str]], values: Sequence[Any]
) -> None:
    """Raise ValueError at an array or tensor whose dtype its parameter does not take."""
    for parameter, names, value in zip(parameters, elements, values, strict=False):
        if not names or not isinstance(value, (_core.Tensor, np.ndarray)) or str(value.dtype) in names:
            continue
        is_tensor = isinstance(value, _core.Tensor)
        shown = [name for name in names if not is_tensor or name in _TENSORS]
        what = f"a {' or '.join(shown)} {'tensor' if is_tensor else 'array'}"
        raise ValueError(f"[{kernel}] {parameter.label}: expected {what}, got {value.dtype}")
