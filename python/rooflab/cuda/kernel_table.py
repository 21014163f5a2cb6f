"""Kernels that were compiled together, by their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")


class KernelTable(Generic[K]):
    """What a module of any backend is: ``module["name"]`` is a kernel.

    Attributes
    ----------
    architecture : str
        What the kernels were compiled for: ``sm_90a``, or ``simt`` for the CPU.
    log : str
        The compiler's warnings, "" when there are none.
    """

    def __init__(self, kernels: dict[str, K], architecture: str, log: str) -> None:
        self._kernels = kernels
        self.architecture = architecture
        self.log = log

    @property
    def kernels(self) -> list[str]:
        """The names of its ``__global__`` functions, as they stand in the source."""
        return list(self._kernels)

    def __getitem__(self, name: str) -> K:
        try:
            return self._kernels[name]
        except KeyError:
            raise KeyError(f"no kernel {name!r}; the source has {', '.join(self._kernels) or 'none'}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"Module({', '.join(self._kernels)}; {self.architecture})"
