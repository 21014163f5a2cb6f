"""Kernels of `rooflab.cuda.compile` that run on a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsIndex, SupportsInt

from .. import _core
from .._core import Cost


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
        source: str,
        options: Sequence[str],
    ) -> None:
        super().__init__(code, symbol, name, parameters)
        self.source = source
        self.options = tuple(options)

    def __call__(
        self,
        grid: Any,
        block: Any,
        *args: Any,
        shared_bytes: SupportsInt | SupportsIndex = 0,
        cost: Cost | None = None,
    ) -> None:
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

        Raises
        ------
        ValueError
            At arguments that do not fit.
        CudaError
            When there is no GPU, or it cannot launch the kernel.
        """
        if _instead:
            _instead[-1](self, grid, block, args, int(shared_bytes))
        else:
            super().__call__(grid, block, *args, shared_bytes=shared_bytes, cost=cost)


@contextlib.contextmanager
def replaced(launch: Callable[[Kernel, Any, Any, Sequence[Any], int], None]) -> Iterator[None]:
    """Until the context ends, call ``launch(kernel, grid, block, args, shared_bytes)`` instead of each launch."""
    _instead.append(launch)
    try:
        yield
    finally:
        _instead.remove(launch)


_instead: list[Callable[[Kernel, Any, Any, Sequence[Any], int], None]] = []
