"""rooflab: counted kernels, measured rooflines and graded labs for making LLMs fast.

>>> import rooflab as rl
>>> a = rl.randn(512, 512)
>>> with rl.count() as c:
...     product = rl.matmul(a, a)
>>> c.macs, c.bytes_written  # exact, and the same on every machine
(134217728, 1048576)
>>> rl.latency(rl.matmul, a, a).median_ms > 0
True

Tensors, ops and gradients have PyTorch's names. What rooflab adds:

    rl.count, rl.profile            the launches, FLOPs and bytes of a piece of code; its kernels on a timeline
    rl.latency, rl.benchmark_memory the time and the memory of one call
    rl.variants, variant="..."      the kernels of an op, from the naive one to the fastest
    rl.cost, rl.roofline            what an op or a model has to do, and how fast a machine can do it
    rl.machine                      this machine's ceilings, measured
    rl.memory, rl.cuda              memory over time; CUDA C++ that is compiled while the program runs
    rl.nn, rl.optim, rl.training    models, optimizers, training
    rl.labs, rl.grading             the labs

On the command line, `rooflab --help` lists the commands, and `rooflab docs` writes the API reference as HTML pages.
"""

import importlib as _importlib
import math as _math
import sysconfig as _sysconfig
from pathlib import Path as _Path
from typing import TYPE_CHECKING

from . import _check_interpreter, _core, _habits, autograd, benchmark, cuda, memory, units

# isort: off
from ._core import (
    Cost, Counts, CudaError, DType, Graph, OutOfMemoryError, ProfilerSession, Tensor, ValuesAndIndices, Variant, adamw,
    add, allclose, amax, amin, arange, argmax, argmin, argsort, attention, attention_backward, attention_mask, bfloat16,
    bitwise_and, bitwise_not, bitwise_or, bitwise_xor, bool_, cast, cat, ceil, chunk, clamp, copy, cos, count, cpu_isa,
    cross_entropy, cross_entropy_backward, cumsum, div, einsum, elu, embedding, empty, empty_like, eq, exp, eye,
    flatten, float16, float32, float64, floor, floor_divide, from_cuda_array, from_dlpack, full, full_like, gather, ge,
    geglu, geglu_backward, gelu, gelu_backward, get_float32_matmul_precision, get_rng_state, gt, index_select, int32,
    int64, is_grad_enabled, isclose, isfinite, isinf, isnan, kv_append, layer_norm, layer_norm_backward, le, lerp,
    linear, linspace, log, log2, log10, log_softmax, log_softmax_backward, logsigmoid, lt, manual_seed, masked_fill,
    matmul, matmul_bias, matmul_float32, maximum, mean, meta, minimum, mul, ne, neg, nonzero, num_threads, ones,
    ones_like, ops, prelu, rand, rand_like, randint, randn, randn_like, relu, relu_backward, remainder,
    repeat_interleave, rms_norm, rms_norm_add, rms_norm_backward, rms_norm_rope, rope, rsqrt, scatter_add, set_cpu_isa,
    set_float32_matmul_precision, set_num_threads, set_rng_state, sigmoid, sigmoid_backward, silu, silu_backward, sin,
    softmax, softmax_backward, softplus, sort, split, sqrt, squeeze, stack, std, sub, swiglu, swiglu_backward, tanh,
    tanh_backward, tensor, topk, tril, triu, trunc, unsqueeze, var, variants, where, zeros, zeros_like,
)  # fmt: skip

# These have the names of Python's own functions. They are public, but not in `__all__`, because `from rooflab import *`
# would replace Python's.
from ._core import abs as abs, all as all, any as any, max as max, min as min, pow as pow, range as range, sum as sum
from .composed import round as round
from .compiler import compile as compile

# isort: on
from ._core import abs as absolute
from ._core import cat as concat
from ._core import cat as concatenate
from ._core import clamp as clip
from ._core import neg as negative
from ._device import device
from .autocast import autocast
from .autograd import enable_grad, no_grad, set_grad_enabled
from .benchmark import Timing, latency, latency_one_time, synchronize
from .composed import (
    Generator,
    addmm,
    as_tensor,
    bernoulli,
    bincount,
    bmm,
    broadcast_to,
    clone,
    count_nonzero,
    diag,
    dot,
    equal,
    exp2,
    finfo,
    flip,
    from_numpy,
    hstack,
    iinfo,
    index_add,
    is_tensor,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    logsumexp,
    masked_select,
    median,
    meshgrid,
    mm,
    movedim,
    multinomial,
    mv,
    nan_to_num,
    narrow,
    numel,
    outer,
    permute,
    prod,
    randperm,
    ravel,
    reciprocal,
    reshape,
    roll,
    scatter,
    select,
    sign,
    square,
    swapaxes,
    t,
    tile,
    trace,
    transpose,
    unbind,
    unique,
    vstack,
)  # fmt: skip
from .composed.methods import attach as _attach
from .cuda import CompileError
from .grad_scaler import GradScaler
from .memory import MemoryUse, benchmark_memory
from .results.counted import attach as _attach_results
from .serialization import load, save

if TYPE_CHECKING:  # at run time these packages load when first used, because they import matplotlib or read files
    from . import cost, grading, labs, machine, nn, optim, plots, profiler, roofline, specs, testing, training
    from .profiler import profile

__all__ = [  # noqa: RUF022
    # tensors and how they are made
    "Tensor", "arange", "as_tensor", "device", "empty", "empty_like", "eye", "from_cuda_array", "from_dlpack",
    "from_numpy", "full", "full_like", "is_tensor", "linspace", "load", "meta", "ones", "ones_like", "save", "tensor",
    "zeros", "zeros_like",
    # random numbers
    "Generator", "bernoulli", "get_rng_state", "manual_seed", "multinomial", "rand", "rand_like", "randint", "randn",
    "randn_like", "randperm", "set_rng_state",
    # dtypes
    "DType", "bfloat16", "bool_", "cast", "finfo", "float16", "float32", "float64", "iinfo", "int32", "int64",
    # element by element
    "absolute", "add", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "ceil", "clamp", "clip", "copy",
    "cos", "div", "eq", "exp", "exp2", "floor", "floor_divide", "ge", "gt", "isclose", "isfinite", "isinf", "isnan",
    "le", "lerp", "log", "log10", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "lt",
    "masked_fill", "maximum", "minimum", "mul", "nan_to_num", "ne", "neg", "negative", "reciprocal", "remainder",
    "rsqrt", "sign", "sin", "sqrt", "square", "sub", "tanh", "trunc", "where",
    # over a dimension
    "ValuesAndIndices", "allclose", "amax", "amin", "argmax", "argmin", "argsort", "bincount", "count_nonzero",
    "cumsum", "equal", "logsumexp", "mean", "median", "prod", "sort", "std", "topk", "unique", "var",
    # shapes and places
    "broadcast_to", "cat", "chunk", "clone", "concat", "concatenate", "diag", "flatten", "flip", "gather", "hstack",
    "index_add", "index_select", "masked_select", "meshgrid", "movedim", "narrow", "nonzero", "numel", "permute",
    "ravel", "repeat_interleave", "reshape", "roll", "scatter", "scatter_add", "select", "split", "squeeze", "stack",
    "swapaxes", "t", "tile", "trace", "transpose", "tril", "triu", "unbind", "unsqueeze", "vstack",
    # products
    "addmm", "bmm", "dot", "einsum", "linear", "matmul", "matmul_bias", "matmul_float32", "mm", "mv", "outer",
    # layers
    "attention", "attention_mask", "cross_entropy", "elu", "embedding", "geglu", "gelu", "kv_append", "layer_norm",
    "log_softmax", "logsigmoid", "prelu", "relu", "rms_norm", "rms_norm_add", "rms_norm_rope", "rope", "sigmoid",
    "silu", "softmax", "softplus", "swiglu",
    # gradients and training
    "GradScaler", "adamw", "attention_backward", "autocast", "cross_entropy_backward", "enable_grad", "geglu_backward",
    "gelu_backward", "is_grad_enabled", "layer_norm_backward", "log_softmax_backward", "no_grad", "relu_backward",
    "rms_norm_backward", "set_grad_enabled", "sigmoid_backward", "silu_backward", "softmax_backward", "swiglu_backward",
    "tanh_backward",
    # counting, timing, profiling
    "Cost", "Counts", "MemoryUse", "ProfilerSession", "Timing", "benchmark_memory", "count", "latency",
    "latency_one_time", "profile", "synchronize",
    # kernels, graphs, the machine
    "CompileError", "CudaError", "Graph", "OutOfMemoryError", "Variant", "cpu_isa", "get_float32_matmul_precision",
    "num_threads", "ops", "set_cpu_isa", "set_float32_matmul_precision", "set_num_threads", "variants",
    # packages
    "autograd", "benchmark", "cost", "cuda", "grading", "labs", "machine", "memory", "nn", "optim", "plots", "profiler",
    "results", "roofline", "specs", "testing", "training", "units",
]  # fmt: skip

__version__ = "0.2.0"  # the package takes its version from this line

_attach()  # gives tensors the methods that are composed of others
_attach_results()  # and counts those of all results

# CUDA libraries of the nvidia-* wheels lie beside this package, where the loader does not look.
for _folder in sorted(_Path(_sysconfig.get_path("purelib")).glob("nvidia/*/lib")):
    _core.add_library_directory(str(_folder))

_LIKE_PYTHONS = ("abs", "all", "any", "compile", "max", "min", "pow", "range", "round", "sum")
_LAZY = {"cost", "grading", "labs", "machine", "nn", "optim", "plots", "profiler", "roofline", "specs", "testing",
         "training"}  # fmt: skip

# PyTorch's other names of dtypes.
double, half, long = float64, float16, int64
float, int, bool = float32, int32, bool_
inf, nan, pi = _math.inf, _math.nan, _math.pi

if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        if name == "profile":
            return _importlib.import_module(".profiler", __name__).profile
        if name in _LAZY:
            return _importlib.import_module(f".{name}", __name__)
        raise _habits.no_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted((*__all__, *_LIKE_PYTHONS))
