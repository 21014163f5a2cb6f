"""Kernels that were compiled together, by their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NoReturn, TypeVar

from .signature import instance_of_template

K = TypeVar("K")


class KernelTable(Generic[K]):
    """What a module of any backend is: ``module["name"]`` is a kernel.

    Attributes
    ----------
    architecture : str
        What the kernels were compiled for: ``sm_90a``, or ``simt`` for the CPU.
    log : str
        The compiler's warnings, "" when there are none.
    source : str
        The CUDA C++.
    """

    source: str

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
            is_there = any(kernel.partition("<")[0] == name for kernel in self._kernels)
            instance = "" if is_there else instance_of_template(self.source, str(name))
            how = f"; for an instance of the template write {instance}" if instance else ""
            raise KeyError(f"no kernel {name!r}; the source has {', '.join(self._kernels) or 'none'}{how}") from None

    def __getattr__(self, name: str) -> NoReturn:
        how = f"; module[{name!r}] is the kernel" if name in self.__dict__.get("_kernels", ()) else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{how}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"Module({', '.join(self._kernels)}; {self.architecture})"
