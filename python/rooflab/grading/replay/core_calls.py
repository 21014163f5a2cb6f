"""The parts of rooflab's core that a trace may name: calls that `recorder` writes down and `replay` makes again.

A name is that of a function of `rooflab._core`, or of a class there and a method. Every op and every method of a tensor
is in one of these lists, in `REFUSED` or in `UNRECORDED`; a test checks this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import rooflab as rl
from rooflab import _core
from rooflab.compiler.program import FunctionProgram

_FUNCTIONS = """
_rebuild tensor add sub mul div pow maximum minimum floor_divide remainder prelu elu geglu swiglu relu_backward
tanh_backward sigmoid_backward bitwise_and bitwise_or bitwise_xor neg abs relu exp log log2 log10 tanh sqrt rsqrt sin
cos sigmoid silu softplus logsigmoid floor ceil trunc round sign bitwise_not eq ne lt le gt ge where cast copy sum mean
amax amin prod matmul matmul_bias matmul_float32 gelu softmax rms_norm layer_norm cat embedding gather index_select
scatter_add tril triu nonzero argmax argmin sort argsort topk cumsum max min logsumexp _sort_values _searchsorted
_scatter _one_hot _pad median linear log_softmax flatten squeeze unsqueeze stack split chunk repeat_interleave einsum
cross_entropy cross_entropy_backward adamw var std all any isnan isinf isfinite isclose allclose clamp lerp nan_to_num
masked_fill empty zeros ones randn rand full randint arange manual_seed set_rng_state empty_like zeros_like ones_like
rand_like randn_like full_like linspace eye attention attention_backward attention_mask rms_norm_backward
layer_norm_backward softmax_backward log_softmax_backward gelu_backward silu_backward geglu_backward swiglu_backward
rope rms_norm_rope rms_norm_add kv_append _autograd.set_grad_enabled _autograd.checkpoint _autograd.record_function
_autograd.grad _autocast.begin _autocast.end _gemma3.forward _gemma3.decode _gemma3.rms_norm_rope_append
cuda.synchronize cuda.launch_empty _rand_at _apart_from_earlier _unbind _sum_squares _scale_tensors"""
_METHODS = """
contiguous clone tolist to cpu cuda double float half bfloat16 long int bool view reshape transpose permute expand
unsqueeze squeeze flatten fill_ zero_ copy_ __getitem__ __setitem__ __repr__ __add__ __radd__ __iadd__ __sub__ __rsub__
__isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __itruediv__ __pow__ __rpow__ __ipow__ __floordiv__
__rfloordiv__ __ifloordiv__ __mod__ __rmod__ __imod__ __and__ __rand__ __iand__ __or__ __ror__ __ior__ __xor__ __rxor__
__ixor__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ add_ sub_ mul_ div_ __neg__ __pos__ __abs__ __invert__ matmul
__matmul__ __rmatmul__ __contains__ item __iter__ __bool__ __float__ __int__ __index__ __format__ __copy__ __deepcopy__
requires_grad_ retain_grad detach backward numpy __array__ neg abs relu exp log log2 log10 tanh sqrt rsqrt sin cos
sigmoid silu softplus logsigmoid lerp floor ceil trunc bitwise_not sum mean amax amin softmax gather index_select
scatter_add tril triu nonzero argmax argmin sort argsort topk cumsum max min log_softmax split chunk repeat_interleave
var std all any isnan isinf isfinite clamp masked_fill"""
_UNRECORDED = """
is_grad_enabled set_cpu_blas meta get_rng_state variants ops add_library_directory take_stacks cpu_isa
set_cpu_isa num_threads set_num_threads get_float32_matmul_precision set_float32_matmul_precision _strided
_overlaps_itself _check_adamw _kinds _autograd.saved_tensors _autograd.draws_again _autograd.mark_parameter
_autograd.is_marked _autograd.remove_hook _autocast.low_dtype _autocast.policies
cuda.is_available cuda.unavailable_reason cuda.device_count cuda.free_memory cuda.properties cuda.compile_source
cuda.demangle
Tensor.__init__ Tensor.__hash__ Tensor._pybind11_conduit_v1_ Tensor.size Tensor.stride Tensor.dim Tensor.numel
Tensor.element_size Tensor.data_ptr Tensor.is_contiguous Tensor.__len__ Tensor.__reduce__
Tensor.__dlpack_device__ Tensor.shape Tensor.strides Tensor.dtype Tensor.device Tensor.ndim Tensor.nbytes
Tensor.itemsize Tensor.is_leaf Tensor.grad_fn"""
_IMPORTS = "which shares memory with another library, so what is written there is not seen. Use rl.tensor(x)"
_EXPORTS = "which lets another library read and write the tensor unseen. Use x.numpy()"
REFUSED = {  # what cannot be made again, why, and what to write instead
    "from_dlpack": f"the function called rl.from_numpy, rl.as_tensor or rl.from_dlpack, {_IMPORTS}",
    "from_cuda_array": f"the function called rl.from_cuda_array, {_IMPORTS}",
    "Tensor.__dlpack__": f"the function used x.__dlpack__(), {_EXPORTS}",
    "Tensor.__cuda_array_interface__": f"the function used x.__cuda_array_interface__, {_EXPORTS}",
    "cuda.Kernel.__call__": "the function launched a kernel of rl.cuda.compile, and what such a kernel does is not "
    "seen. Write it with rooflab's operations",
    "cuda.launch_on_cpu": "the function launched a kernel of rl.cuda.compile, and what such a kernel does is not seen. "
    "Write it with rooflab's operations",
    "_autograd.add_hook": "the function called x.register_hook, and what a hook does in backward is not seen. Compute "
    "with the gradient after backward",
    "_autograd.set_data": "the function set x.data, and whose memory it then has is not followed. Write x.copy_(y)",
    "memory.set_limit": "the function called rl.memory.set_limit, and its work is counted without a limit. Leave that "
    "call out",
}
GETTERS = ("T", "mT", "grad")
SETTERS = ("grad", "requires_grad")
CLASSES: dict[str, type] = {
    "Graph": _core.Graph,
    "_Capture": _core._Capture,
    "_gemma3.Attention": _core._gemma3.Attention,
    "_gemma3.DecodeStep": _core._gemma3.DecodeStep,
    "_gemma3.KvCache": _core._gemma3.KvCache,
    "_gemma3.Layer": _core._gemma3.Layer,
    "_gemma3.Mlp": _core._gemma3.Mlp,
    "cuda.Event": _core.cuda.Event,
    "cuda.Stream": _core.cuda.Stream,
    "memory.Recorder": _core.memory.Recorder,
    "range": _core.range,
    "Program": FunctionProgram,
}
MADE = tuple(name for name in CLASSES if name not in ("_Capture", "Program"))  # by a call of the class
_OTHERS = """
Graph.capture Graph.replay _Capture.__enter__ _Capture.__exit__ _gemma3.Attention.forward _gemma3.Layer.forward
_gemma3.Mlp.forward cuda.Event.record cuda.Event.synchronize cuda.Event.elapsed_ms
cuda.Stream.__enter__ cuda.Stream.__exit__ cuda.Stream.synchronize memory.Recorder.start memory.Recorder.stop
range.__enter__ range.__exit__ Program.__call__"""
FUNCTIONS, UNRECORDED = _FUNCTIONS.split(), frozenset(_UNRECORDED.split())
METHODS, OTHERS = [f"Tensor.{name}" for name in _METHODS.split()], _OTHERS.split()
TREES = frozenset(["_autograd.checkpoint", "_autograd.grad", "Tensor.backward", "Program"])
_DOWNLOADS = "item tolist numpy __array__ __float__ __int__ __bool__ __index__ __repr__ __format__"
UNFILLED = frozenset(["empty", "empty_like"])
DOWNLOADS = frozenset(f"Tensor.{name}" for name in _DOWNLOADS.split())
HELD = (rl.Tensor, *CLASSES.values())


def owner_of(name: str) -> tuple[Any, str]:
    """What holds a name, and the last part of the name."""
    path, _, last = name.rpartition(".")
    if path == "Tensor":
        return rl.Tensor, last
    return CLASSES.get(path) or (operator.attrgetter(path)(_core) if path else _core), last


def shown(name: str) -> str:
    """A name as it is written in Python: ``rl.matmul``, ``Tensor.sum``."""
    public = name.replace("_autograd.", "autograd.").replace("_autocast.", "autocast.").replace("_gemma3.", "nn.")
    return name if name.startswith("Tensor.") else f"rl.{public}"


def held_by(name: str) -> Any:
    """What stands under a name: a function, a method, or a property of a class."""
    owner, last = owner_of(name)
    return vars(owner)[last] if isinstance(owner, type) else getattr(owner, last)


def _program(function: Callable, tensors: list, variant: str) -> FunctionProgram:
    return FunctionProgram(function, (tuple(tensors), {}), tensors, variant)


def table() -> dict[str, Callable]:
    """Each name that a trace may hold, and what it calls."""
    found: dict[str, Callable] = {}
    for name in (*FUNCTIONS, *METHODS, *OTHERS):
        found[name] = held_by(name)
    for name in GETTERS:
        found[f"Tensor.{name}"] = vars(rl.Tensor)[name].fget
    for name in SETTERS:
        found[f"Tensor.{name}="] = vars(rl.Tensor)[name].fset
    return found | {name: CLASSES[name] for name in MADE} | {"Program": _program}
