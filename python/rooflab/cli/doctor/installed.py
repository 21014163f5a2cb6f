"""What rooflab itself says, where it can be imported: its kernels, GPUs, compiler for cells and jail."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import rooflab as rl
from rooflab.cuda import compile as compile_cuda
from rooflab.grading.jail import jail, sandbox
from rooflab.machine.identity import cpu_name, gpu_driver, version

KERNEL = "__global__ void one(float* y) { *y = 1; }"


@dataclass
class Installed:
    """Texts for the page. `gpus` holds each GPU with the architecture whose code it runs, "" if this build has none for
    it. `no_gpu` and `no_jail` say why there is none, and `shut_gpus` why code in the jail cannot use the GPUs.
    `no_cpu_kernels` and `no_gpu_kernels` say why kernels of cells do not run there. They are "" where nothing is
    missing; without a GPU its kernels are not tried.
    """

    version: str
    isa: str
    threads: int
    cpu: str
    gpus: tuple[tuple[str, str], ...]
    driver: str
    no_gpu: str
    no_cpu_kernels: str
    no_gpu_kernels: str
    no_jail: str
    shut_gpus: str


def look() -> Installed:
    """Ask rooflab."""
    return Installed(
        version(),
        rl.cpu_isa(),
        rl.num_threads(),
        cpu_name(),
        tuple(map(_gpu, range(rl.cuda.device_count()))) if rl.cuda.is_available() else (),
        gpu_driver(),
        rl.cuda.unavailable_reason(),
        _no_cpu_kernels(),
        _no_gpu_kernels() if rl.cuda.is_available() else "",
        jail.refusal() or "",
        sandbox.gpu_refusal() or "",
    )


def _gpu(index: int) -> tuple[str, str]:
    gpu = rl.cuda.properties(index)
    name = f"{gpu.name} (sm_{gpu.compute_capability}, {gpu.memory_bytes / 2**30:.0f} GiB)"
    try:
        code = rl._core._target.of(f"cuda:{index}").code
    except rl.CudaError:
        return name, ""
    return name, f"sm_{code.number}{'a' * code.is_sm90a}"


def _no_cpu_kernels() -> str:
    """A launch too: the program that kernels run in is built at the first one."""
    try:
        compile_cuda(KERNEL, backend="simt")["one"](1, 1, rl.zeros(1, device="cpu"))
    except Exception as error:  # no g++, one that lacks a part, or no folder for what it builds
        return _shortened(error)
    return ""


def _no_gpu_kernels() -> str:
    try:
        compile_cuda(KERNEL, backend="gpu")
    except Exception as error:  # no NVRTC, one that does not know the GPU, or no folder for what it builds
        return _shortened(error)
    return ""


def _shortened(error: Exception) -> str:
    return textwrap.shorten(str(error), 200, placeholder=" ...")
