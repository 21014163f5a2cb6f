"""CUDA C++ that is compiled while the program runs."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

from .. import _core
from .._arguments import is_text
from .._core import CudaError
from .._core.cuda import is_available, properties
from .gpu_kernel import Kernel
from .kernel_table import KernelTable
from .signature import kernels as _kernels
from .signature import no_kernel
from .simt.module import SimtModule, SourceError, build
from .simt.toolchain import NoCompiler

_WITHOUT_GPU = "sm_80"


class CompileError(RuntimeError):
    """CUDA C++ that does not compile. `log` is what the compiler says, with the source's own line numbers."""

    def __init__(self, log: str, hint: str = "") -> None:
        super().__init__(f"the source does not compile\n{log}" + (f"\n{hint}" if hint else ""))
        self.log = log
        self._hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.log, self._hint), self.__dict__


class Module(KernelTable[Kernel]):
    """Kernels that were compiled together for a GPU; made by `compile`.

    Attributes
    ----------
    architecture : str
        What the machine code is for: ``sm_90a``.
    log : str
        The compiler's warnings, "" when there are none.
    source : str
        The CUDA C++.
    options : tuple of str
        What it was compiled with.
    """

    def __init__(self, kernels: dict[str, Kernel], architecture: str, log: str, source: str, options: Sequence[str]):
        super().__init__(kernels, architecture, log)
        self.source = source
        self.options = tuple(options)


@overload
def compile(source: str, options: Sequence[str] = (), *, backend: Literal["simt"]) -> SimtModule: ...
@overload
def compile(source: str, options: Sequence[str] = (), *, backend: Literal["gpu"]) -> Module: ...
@overload
def compile(
    source: str, options: Sequence[str] = (), *, backend: Literal["auto", "gpu", "simt"] = "auto"
) -> Module | SimtModule: ...
def compile(
    source: str, options: Sequence[str] = (), *, backend: Literal["auto", "gpu", "simt"] = "auto"
) -> Module | SimtModule:
    """Compile CUDA C++: for the GPU of this machine, or for its CPU, where each thread is checked and counted.

    Kernels need no ``extern "C"``. A template has the instances that the source asks for:
    ``template __global__ void flash<64>(const float*, int);`` makes ``module["flash<64>"]``.

    Parameters
    ----------
    source : str
        CUDA C++ with at least one ``__global__`` function.
    options : sequence of str
        For NVRTC: ``("--use_fast_math", "-DTILE=64")``. An ``-arch`` among them replaces the GPU's own. For "simt" only
        ``-D`` says something.
    backend : str
        "gpu" compiles with NVRTC. Without a GPU it compiles for sm_80, which still finds every error of the source; a
        launch then raises. Headers of CUDA (``cuda_fp16.h``, ``cuda_bf16.h``, ``mma.h``) are found in the nvidia
        wheels, in CUDA_HOME and in /usr/local/cuda.
        "simt" compiles with g++ and runs on the CPU, thread by thread, in a process of its own. It needs neither a GPU
        nor CUDA's toolkit. Inline PTX, TMA, clusters, textures, launches from kernels and the C++ library (but for
        functions such as std::sqrt) are refused by name.
        "auto" is "gpu" where there is a GPU, and "simt" where there is none.

    Returns
    -------
    Module or SimtModule
        ``module["name"]`` is a kernel, and ``module["name"](grid, block, *args, shared_bytes=0, cost=None)``
        launches it. `grid` and `block` are one to three numbers; arguments are tensors (their addresses), None (a null
        pointer) and numbers, checked against the parameters' types. It counts as one launch, of op "custom" in counters
        and under its name in profiles, with the work that ``cost=rl.Cost(...)`` states. On a GPU it runs on the current
        stream of its tensors' device. With "simt" tensors are on the CPU, NumPy arrays are taken too, and a launch
        returns what it counted (`rooflab.cuda.SimtKernel.__call__`).

    Raises
    ------
    CompileError
        With the compiler's log, when the source has errors, no kernel, or something that "simt" does not support.
    ValueError
        When the source is not a text, or an option is not known.
    CudaError
        When NVRTC, or g++ for "simt", is missing.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.cuda.compile("__global__ void fill(float* y, float value) { y[threadIdx.x] = value; }")  # doctest: +SKIP
    Module(fill; simt)
    """
    if not is_text(source) or "\0" in source:
        found = "a NUL in it" if is_text(source) else "characters that UTF-8 cannot hold"
        got = found if isinstance(source, str) else type(source).__name__
        raise ValueError(f"[compile] source: expected CUDA C++ as text, got {got}")
    if not isinstance(options, (list, tuple)) or not all(is_text(one) and "\0" not in one for one in options):
        raise ValueError(f"[compile] options: expected a sequence of strings, got {options!r}")
    if backend not in ("auto", "gpu", "simt"):
        raise ValueError(f"[compile] backend: expected auto, gpu or simt, got {backend!r}")
    if backend == "gpu" or (backend == "auto" and is_available()):
        return _for_gpu(source, options)
    try:
        return build(source, options)
    except SourceError as error:
        raise CompileError(str(error)) from None
    except NoCompiler as error:
        raise CudaError(f"{error}; backend='gpu' compiles without running, with NVRTC") from None


def _for_gpu(source: str, options: Sequence[str]) -> Module:
    given = re.search(r"(?:-arch|--gpu-architecture|-gpu-architecture)[= ](\S+)", " ".join(options))
    architecture = given[1] if given else _architecture()
    folders = _include_folders()
    log, image, ptx = _core.cuda.compile_source(
        source,
        [*([] if given else [f"-arch={architecture}"]), *options, *(f"-I{folder}" for folder in folders)],
    )
    if not image:
        missing = "could not open source file" in log and not folders
        hint = "CUDA's headers were not found: pip install nvidia-cuda-runtime nvidia-cuda-crt brings them."
        raise CompileError(log, hint if missing else "")
    kernels = _kernels(source, options, ptx, _core.cuda.Code(image))
    if not kernels:
        raise CompileError(no_kernel(source))
    return Module(kernels, architecture, log, source, options)


def _architecture() -> str:
    if not is_available():
        return _WITHOUT_GPU
    capability = properties(0).compute_capability
    # From Hopper on, "a" gives what only this architecture has, such as wgmma.
    return f"sm_{capability}{'a' if capability >= 90 else ''}"


def _include_folders() -> list[Path]:
    """CUDA's headers, from the first place that has them; in the order in which NVRTC itself is looked for."""
    wheels = sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/*/include"))
    homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for folder in [*wheels, *(home / "include" for home in (*homes, Path("/usr/local/cuda")))]:
        if (folder / "cuda_fp16.h").is_file():
            return [folder, *(extra for extra in [folder / "cccl"] if extra.is_dir())]
    return []
