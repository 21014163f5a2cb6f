"""The cost of one op, read from its counters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, specs
from .._core import Cost, DType, Tensor
from ..autograd import no_grad
from .stand_ins import stand_ins

_DTYPES = [kind for kind in vars(_core).values() if isinstance(kind, DType)]


def of(op: str, *operands, dtype: str = "float32", **kwargs) -> Cost:
    """The cost of `rl.<op>(*operands, **kwargs)`.

    Parameters
    ----------
    op : str
        A name of `rooflab.specs.all_specs()`.
    *operands : tuple of int, Tensor, or anything else
        A tuple stands for a tensor of that shape and of `dtype`, or bool for the condition of `where`. A tensor
        keeps its own dtype and strides and is not touched; use one without memory (`rl.empty(40, 70, dtype="bool",
        device="meta")`) for a mask. What tensors share is read once; shapes are contiguous and share nothing. `cat`
        takes a list of shapes or tensors. Other values are passed as they are.
    dtype : dtype or str
        Element type of the shapes, which decides the bytes.

    Returns
    -------
    Cost
        macs, flops, bytes_read, bytes_written; `.bytes` and `.arithmetic_intensity` (FLOP/byte).

    Raises
    ------
    ValueError
        For an unknown op or dtype, and for operands that the op itself refuses.

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
    spec, named = known[op], next((kind for kind in _DTYPES if kind == dtype), None)
    if named is None:
        raise ValueError(f"[cost] dtype: expected one of {', '.join(map(str, _DTYPES))}; got {dtype!r}")
    given = [x for operand in operands for x in (operand if _is_several(operand) else [operand])]
    with _core._PrivateCount(), no_grad():
        of_tensors = iter(stand_ins([x for x in given if isinstance(x, Tensor)]))
        tensors: list[Any] = [
            next(of_tensors)
            if isinstance(x, Tensor)
            else _of_shape(spec, place, x, named)
            if isinstance(x, tuple)
            else x
            for place, x in enumerate(given)
        ]
        if spec.prepare:
            tensors = [*spec.prepare(*tensors, **kwargs)]
        with _core._PrivateCount() as counted:
            spec.fn(*tensors, **kwargs)
    total = counted.total
    return Cost(macs=total.macs, flops=total.flops, bytes_read=total.bytes_read, bytes_written=total.bytes_written)


def _is_several(operand: object) -> bool:
    """Whether it is a list of shapes or tensors; a list of dimensions is not."""
    return isinstance(operand, list) and all(isinstance(x, (tuple, Tensor)) for x in operand)


def _of_shape(spec: specs.OpSpec, place: int, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A contiguous tensor without memory."""
    example = next(iter(spec.samples(np.random.default_rng(0)))).args
    given = example[place] if place < len(example) else None
    own = str(given.dtype) if isinstance(given, np.ndarray) else "float64"  # of masks and indices
    return _core.empty(*shape, dtype=dtype if own == "float64" else own, device="meta")
