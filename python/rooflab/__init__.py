"""rooflab: counted kernels, measured rooflines and graded labs for making LLMs fast.

import rooflab as rl
a = rl.randn(512, 512)
with rl.count() as c:
    rl.matmul(a, a)
c.macs, c.bytes_read            # exact: 134217728, 1048576
print(rl.latency(rl.matmul, a, a))
"""

import importlib as _importlib
import sysconfig as _sysconfig
from pathlib import Path as _Path

from . import _check_interpreter, _core, _habits
from ._core import *  # noqa: F403
from ._core import CudaError, OutOfMemoryError, Tensor
from .autocast import autocast
from .autograd import enable_grad, no_grad, set_grad_enabled
from .benchmark import Timing, latency, latency_one_time, synchronize
from .compiler import compile
from .cuda import CompileError
from .grad_scaler import GradScaler
from .memory import MemoryUse, benchmark_memory
from .serialization import load, save

__version__ = "0.2.0"  # the package takes its version from this line

# CUDA libraries of the nvidia-* wheels lie beside this package, where the loader does not look.
for _folder in sorted(_Path(_sysconfig.get_path("purelib")).glob("nvidia/*/lib")):
    _core.add_library_directory(str(_folder))

# PyTorch's other names of dtypes. As names of this module they would hide Python's float, int and bool.
_DTYPES = {"double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "bool": "bool_"}

# Modules that import matplotlib or read files load when first used.
_LAZY = {
    "cost", "grading", "labs", "machine", "nn", "optim", "plots", "profiler", "roofline", "specs", "testing",
    "training",
}  # fmt: skip


def __getattr__(name):
    if name == "profile":
        return _importlib.import_module(".profiler", __name__).profile
    if name in _LAZY:
        return _importlib.import_module(f".{name}", __name__)
    if name in _DTYPES:
        return getattr(_core, _DTYPES[name])
    raise _habits.no_attribute(__name__, name, _habits.FUNCTIONS)


def __dir__():
    inner = {"add_library_directory", "set_cpu_blas", "annotations", "compiler", "files", "html", "serialization"}
    return sorted({name for name in (*globals(), *_LAZY, "profile") if not name.startswith("_")} - inner)
