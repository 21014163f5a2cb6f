"""Kernels of `rooflab.cuda.compile` that run on a GPU."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _core
from .._core import Cost
from . import hardware
from .elements import check_elements
from .simt.result import Launch


class Kernel(_core.cuda.Kernel):
    """A ``__global__`` function on a GPU: ``kernel(grid, block, *args)`` launches it.

    Attributes
    ----------
    source : str
        The CUDA C++ that it was compiled from.
    options : tuple of str
        What it was compiled with.
    """

    def __init__(
        self,
        code: _core.cuda.Code,
        symbol: str,
        name: str,
        parameters: Sequence[_core.cuda.Parameter],
        elements: Sequence[Sequence[str]],
        source: str,
        options: Sequence[str],
    ) -> None:
        super().__init__(code, symbol, name, parameters)
        self._elements = elements
        self.source = source
        self.options = tuple(options)

    def __call__(  # type: ignore[override]
        self,
        grid: Any,
        block: Any,
        *args: Any,
        shared_bytes: int = 0,
        cost: Cost | None = None,
        mode: str | None = None,
    ) -> Launch | None:
        """Launch on the current stream of the GPU that the tensors are on; counted as one launch of op "custom".

        Parameters
        ----------
        grid, block : int or sequence of int
            One to three numbers.
        *args
            For each parameter a tensor, which is passed as the address of its first element; None, a null pointer; or a
            number. The caller passes strides.
        shared_bytes : int
            Bytes of dynamic shared memory a block. They may exceed 48 KB.
        cost : Cost, optional
            The work that the launch is said to do, for `rooflab.count` and `rooflab.profile`.
        mode : str, optional
            "count": Nsight Compute (ncu) repeats the launch in a process of its own, on copies of its tensors, and
            reads the GPU's counters. They are those of the optimised build.

        Returns
        -------
        Launch or None
            In mode "count" what the GPU counted, with ``source="hardware"``; nothing is known by line.

        Raises
        ------
        ValueError
            At arguments that do not fit.
        CudaError
            When there is no GPU, or it cannot launch the kernel; in mode "count" also without ncu, or where it may not
            read the counters.
        """
        check_elements(self.name, self.parameters, self._elements, args)
        if _instead:
            _instead[-1](self, grid, block, args, shared_bytes)
            return None
        if mode not in (None, "count"):
            raise ValueError(f"[{self.name}] mode: expected count, or none, on a GPU, got {mode!r}")
        if mode is None:
            super().__call__(grid, block, *args, shared_bytes=shared_bytes, cost=cost)
            return None
        shape = {"grid": grid, "block": block, "shared_bytes": shared_bytes}
        with hardware.copied(
            {"name": self.name, "source": self.source, "options": self.options, **shape}, args
        ) as file:
            super().__call__(grid, block, *args, shared_bytes=shared_bytes, cost=cost)
            counts = hardware.counts(self.name, file)
        launch = Launch(self.name, _three(grid), _three(block), mode, self.source, counts, source="hardware")
        launch.blocks = math.prod(launch.grid)
        return launch


def _three(value: Any) -> tuple[int, int, int]:
    x, y, z = (*(value if isinstance(value, (tuple, list)) else [value]), 1, 1)[:3]
    return int(x), int(y), int(z)


@contextlib.contextmanager
def replaced(launch: Callable[[Kernel, Any, Any, Sequence[Any], int], None]) -> Iterator[None]:
    """Until the context ends, call ``launch(kernel, grid, block, args, shared_bytes)`` instead of each launch."""
    _instead.append(launch)
    try:
        yield
    finally:
        _instead.remove(launch)


_instead: list[Callable[[Kernel, Any, Any, Sequence[Any], int], None]] = []
