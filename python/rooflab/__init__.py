"""rooflab: counted kernels, measured rooflines and graded labs for making LLMs fast.

import rooflab as rl
a = rl.randn(512, 512)
with rl.count() as c:
    rl.matmul(a, a)
c.macs, c.bytes_read            # exact: 134217728, 1048576
print(rl.latency(rl.matmul, a, a))

Tensors, ops and gradients bear PyTorch's names. What rooflab adds:

rl.count, rl.profile            the launches, FLOPs and bytes of a piece of code; its kernels on a timeline
rl.latency, rl.benchmark_memory the time and the memory of one call
rl.variants, variant="..."      the kernels of an op, from the naive one to the fastest
rl.cost, rl.roofline            what an op or a model has to do, and how fast a machine can do it
rl.machine                      this machine's ceilings, measured
rl.memory, rl.cuda              memory over time; CUDA C++ that is compiled while the program runs
rl.nn, rl.optim, rl.training    models, optimisers, training
rl.labs, rl.grading             the labs

On the command line, `rooflab --help` lists the commands.
"""

import importlib as _importlib
import sysconfig as _sysconfig
from pathlib import Path as _Path
from typing import TYPE_CHECKING

from . import _check_interpreter, _core, _habits, autograd, benchmark, cuda, memory, units

# isort: off
from ._core import (
    Cost, Counts, CudaError, DType, Graph, OutOfMemoryError, ProfilerSession, Tensor, ValuesAndIndices, Variant, adamw,
    add, allclose, amax, amin, arange, argmax, argmin, argsort, attention, attention_backward, attention_mask, bfloat16,
    bitwise_and, bitwise_not, bitwise_or, bitwise_xor, bool_, cast, cat, chunk, clamp, copy, cos, count, cpu_isa,
    cross_entropy, cross_entropy_backward, cumsum, div, einsum, embedding, empty, empty_like, eq, exp, eye, flatten,
    float16, float32, float64, floor_divide, from_cuda_array, from_dlpack, full, full_like, gather, ge, geglu,
    geglu_backward, gelu, gelu_backward, get_rng_state, gt, index_select, int32, int64, is_grad_enabled, isclose,
    isfinite, isinf, isnan, kv_append, layer_norm, layer_norm_backward, le, linear, linspace, log, log_softmax, lt,
    manual_seed, masked_fill, matmul, matmul_float32, maximum, mean, meta, minimum, mul, ne, neg, num_threads, ones,
    ones_like, ops, rand, rand_like, randint, randn, randn_like, relu, remainder, repeat_interleave, rms_norm,
    rms_norm_add, rms_norm_backward, rms_norm_rope, rope, rsqrt, scatter_add, set_cpu_isa, set_num_threads,
    set_rng_state, sigmoid, silu, silu_backward, sin, softmax, softmax_backward, sort, split, sqrt, squeeze, stack, std,
    sub, swiglu, swiglu_backward, tanh, tensor, topk, tril, triu, unsqueeze, var, variants, where, zeros, zeros_like,
)  # fmt: skip

# These bear the names of Python's own functions. They are public, but not in `__all__`, because `from rooflab import *`
# would replace Python's.
from ._core import abs as abs, all as all, any as any, max as max, min as min, pow as pow, range as range, sum as sum
from .compiler import compile as compile

# isort: on
from .autocast import autocast
from .autograd import enable_grad, no_grad, set_grad_enabled
from .benchmark import Timing, latency, latency_one_time, synchronize
from .cuda import CompileError
from .grad_scaler import GradScaler
from .memory import MemoryUse, benchmark_memory
from .serialization import load, save

if TYPE_CHECKING:  # at run time these packages load when first used, because they import matplotlib or read files
    from . import cost, grading, labs, machine, nn, optim, plots, profiler, roofline, specs, testing, training
    from .profiler import profile

__all__ = [  # noqa: RUF022
    # tensors and how they are made
    "Tensor", "arange", "empty", "empty_like", "eye", "from_cuda_array", "from_dlpack", "full", "full_like", "linspace",
    "load", "meta", "ones", "ones_like", "save", "tensor", "zeros", "zeros_like",
    # random numbers
    "get_rng_state", "manual_seed", "rand", "rand_like", "randint", "randn", "randn_like", "set_rng_state",
    # dtypes
    "DType", "bfloat16", "bool_", "cast", "float16", "float32", "float64", "int32", "int64",
    # element by element
    "add", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "clamp", "copy", "cos", "div", "eq", "exp",
    "floor_divide", "ge", "gt", "isclose", "isfinite", "isinf", "isnan", "le", "log", "lt", "masked_fill", "maximum",
    "minimum", "mul", "ne", "neg", "remainder", "rsqrt", "sin", "sqrt", "sub", "tanh", "where",
    # over a dimension
    "ValuesAndIndices", "allclose", "amax", "amin", "argmax", "argmin", "argsort", "cumsum", "mean", "sort", "std",
    "topk", "var",
    # shapes and places
    "cat", "chunk", "flatten", "gather", "index_select", "repeat_interleave", "scatter_add", "split", "squeeze",
    "stack", "tril", "triu", "unsqueeze",
    # products
    "einsum", "linear", "matmul", "matmul_float32",
    # layers
    "attention", "attention_mask", "cross_entropy", "embedding", "geglu", "gelu", "kv_append", "layer_norm",
    "log_softmax", "relu", "rms_norm", "rms_norm_add", "rms_norm_rope", "rope", "sigmoid", "silu", "softmax", "swiglu",
    # gradients and training
    "GradScaler", "adamw", "attention_backward", "autocast", "cross_entropy_backward", "enable_grad", "geglu_backward",
    "gelu_backward", "is_grad_enabled", "layer_norm_backward", "no_grad", "rms_norm_backward", "set_grad_enabled",
    "silu_backward", "softmax_backward", "swiglu_backward",
    # counting, timing, profiling
    "Cost", "Counts", "MemoryUse", "ProfilerSession", "Timing", "benchmark_memory", "count", "latency",
    "latency_one_time", "profile", "synchronize",
    # kernels, graphs, the machine
    "CompileError", "CudaError", "Graph", "OutOfMemoryError", "Variant", "cpu_isa", "num_threads", "ops", "set_cpu_isa",
    "set_num_threads", "variants",
    # packages
    "autograd", "benchmark", "cost", "cuda", "grading", "labs", "machine", "memory", "nn", "optim", "plots", "profiler",
    "roofline", "specs", "testing", "training", "units",
]  # fmt: skip

__version__ = "0.2.0"  # the package takes its version from this line

# CUDA libraries of the nvidia-* wheels lie beside this package, where the loader does not look.
for _folder in sorted(_Path(_sysconfig.get_path("purelib")).glob("nvidia/*/lib")):
    _core.add_library_directory(str(_folder))

_LIKE_PYTHONS = ("abs", "all", "any", "compile", "max", "min", "pow", "range", "sum")
_LAZY = {"cost", "grading", "labs", "machine", "nn", "optim", "plots", "profiler", "roofline", "specs", "testing",
         "training"}  # fmt: skip

# PyTorch's other names of dtypes.
double, half, long = float64, float16, int64
float, int, bool = float32, int32, bool_

if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        if name == "profile":
            return _importlib.import_module(".profiler", __name__).profile
        if name in _LAZY:
            return _importlib.import_module(f".{name}", __name__)
        raise _habits.no_attribute(__name__, name, _habits.FUNCTIONS)


def __dir__() -> list[str]:
    return sorted((*__all__, *_LIKE_PYTHONS))
