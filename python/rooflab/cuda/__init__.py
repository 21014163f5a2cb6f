"""The GPU: which there are, streams, events; and CUDA C++ that is compiled while the program runs.

module = rl.cuda.compile('''
__global__ void scale(const float* x, float* y, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}
''')
module["scale"]((n + 255) // 256, 256, x, y, 2.0, n)
"""

from .._core.cuda import (
    Event,
    Kernel,
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
from .module import CompileError, Module, compile

__all__ = [
    "CompileError", "Event", "Kernel", "Module", "Parameter", "Properties", "Stream", "compile", "device_count",
    "free_memory", "is_available", "launch_empty", "properties", "synchronize", "unavailable_reason",
]  # fmt: skip
