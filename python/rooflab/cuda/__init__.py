"""The GPU: which there are, streams, events; and CUDA C++ that is compiled while the program runs, on the CPU too.

    module = rl.cuda.compile('''
    __global__ void scale(const float* x, float* y, float factor, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = factor * x[i];
    }
    ''')
    module["scale"]((n + 255) // 256, 256, x, y, 2.0, n)

Without a GPU the same lines run on the CPU, each access is checked, and mode="count" counts what the kernel asks of the
memory: requests, sectors, bank conflicts. On a GPU, mode="count" has Nsight Compute count the same.
"""

from typing import TYPE_CHECKING

from .. import _habits
from .._core.cuda import (
    Event,
    Parameter,
    Properties,
    Stream,
    device_count,
    free_memory,
    is_available,
    launch_empty,
    properties,
    synchronize,
    unavailable_reason,
)  # fmt: skip
from .gpu_kernel import Kernel
from .module import CompileError, Module, compile
from .simt.findings import Finding
from .simt.module import KernelError, SimtKernel, SimtModule
from .simt.result import Access, KernelCounts, Launch
from .simt.warp_request import WarpRequest

__all__ = [
    "Access", "CompileError", "Event", "Finding", "Kernel", "KernelCounts", "KernelError", "Launch", "Module",
    "Parameter", "Properties", "SimtKernel", "SimtModule", "Stream", "WarpRequest", "compile", "device_count",
    "free_memory", "is_available", "launch_empty", "properties", "synchronize", "unavailable_reason",
]  # fmt: skip


def load_ipython_extension(shell: object) -> None:
    """What ``%load_ext rooflab.cuda`` calls: the notebook gets the magic ``%%cuda_kernel``."""
    from .magic import register

    register(shell)  # type: ignore[arg-type]


if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
