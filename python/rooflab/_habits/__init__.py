"""What to write instead of PyTorch names that rooflab does not have: the errors for such names say it.

One rule for every module of rooflab that PyTorch users look into: its `__getattr__` raises `no_attribute(...)`, which
looks into the module's table here. So `rl.norm`, `from rooflab import norm` and `x.norm` all get an answer. Tensors
and modules of rooflab.nn have a table for their methods.
"""

from __future__ import annotations

import dis
import importlib
import re
import sys
from collections.abc import Mapping
from typing import Any

from .functions import FUNCTIONS, TENSOR
from .modules import (
    AUTOGRAD,
    CUDA,
    FUNCTIONAL,
    METHODS,
    NN,
    OPTIM,
    OPTIMIZER,
    PROFILE,
    PROFILER,
    SCHEDULERS,
    UTILS,
)  # fmt: skip
from .options import OPTIONS as OPTIONS
from .options import changes_nothing as changes_nothing

TABLES = {
    "rooflab": FUNCTIONS,
    "rooflab.nn": NN,
    "rooflab.nn.functional": FUNCTIONAL,
    "rooflab.nn.utils": UTILS,
    "rooflab.optim": OPTIM,
    "rooflab.optim.lr_scheduler": SCHEDULERS,
    "rooflab.cuda": CUDA,
    "rooflab.autograd": AUTOGRAD,
    "rooflab.profiler": PROFILER,
}
# What PyTorch's names that match a pattern are about: rooflab has nothing of it, with these exceptions.
_FAMILIES = {
    r"layout|(memory|contiguous|preserve)_format|channels_last|^strided$": "layouts but strides",
    r"^(u?int\d+|short|byte|char|float[48]_\w+|(Byte|Char|Short)Tensor)$": (
        "dtypes but float64, float32, float16, bfloat16, int64, int32 and bool"
    ),
    r"^(cholesky|qr$|lu(_|$)|eig$|lstsq|s?logdet|matrix_(exp|power)|pinverse|triangular_solve|solve$)": (
        "decompositions of matrices; write np.linalg.qr(x.numpy())"
    ),
    r"[Cc]onv(Transpose|_|\d|olution)": "convolutions",
    r"(?i)(max|avg|lp)_?(un)?pool\d?d?": "pooling",
    r"(RNN|LSTM|GRU)|(^|_)(rnn|lstm|gru)(_|$)": "recurrent layers",
    r"(?i)(batch|group|instance|response)_?norm": "norms but LayerNorm and RMSNorm",
    r"(weight|spectral)_norm|parametriz": "parametrizations of weights",
    r"complex|^(cfloat|cdouble|chalf|conj|real|imag|polar|angle|adjoint)": "complex numbers",
    r"quant|^q(u?int|_|scheme)": "quantised tensors",
    r"sparse": "sparse tensors",
    r"distributed": "distributed training",
    r"^([Uu]psamp|interpolate|grid_sample|affine_grid|[Pp]ixel_?([SsU]|un)|([Uu]n)?[Ff]old$)": "operations on images",
    r"Pad\dd": "padding layers; write rl.nn.functional.pad(x, (1, 1))",
}


def advice(module: str, name: str) -> str:
    """What follows the error for a name that a module or "Tensor" lacks: what to write, or what rooflab leaves out.

    Parameters
    ----------
    module, name : str
        Where the name was looked for.

    Returns
    -------
    str
        For an unknown name, how to list the names that exist; empty for "Tensor".

    Examples
    --------
    >>> advice("rooflab.optim", "SGD"), advice("rooflab", "Linear")
    ('; write w.detach().sub_(0.1 * w.grad)', '; write rl.nn.Linear')
    >>> advice("rooflab.nn", "Conv2d")
    '; rooflab has no convolutions'
    """
    table = TENSOR if module == "Tensor" else TABLES[module]
    if name in table:
        return f"; write {table[name]}"
    for other in (*TABLES, "rooflab.memory"):
        if other != module and name in importlib.import_module(other).__all__:
            return f"; write {other.replace('rooflab', 'rl', 1)}.{name}"
    if module == "rooflab.optim" and name[0].isupper():
        return "; rooflab has no optimizers but AdamW"
    family = next((about for pattern, about in _FAMILIES.items() if re.search(pattern, name)), "")
    if family:
        return f"; rooflab has no {family}"
    return f"; dir({module.replace('rooflab', 'rl', 1)}) lists what there is" if module != "Tensor" else ""


def no_member(owner: object, name: str, table: Mapping[str, str]) -> Any:
    """Raise the error for an attribute that an object does not have; its class's `__getattr__` calls this.

    Parameters
    ----------
    owner : object
        What was asked.
    name : str
        For what.
    table : mapping of str to str
        What to write instead of some names.

    Raises
    ------
    AttributeError
        With what to write, if the table has it. Else what led here, which may come from a property.

    Examples
    --------
    >>> no_member(range(3), "begin", {"begin": "range(3).start"})
    Traceback (most recent call last):
    AttributeError: 'range' object has no attribute 'begin'; write range(3).start
    """
    if name not in table:
        return object.__getattribute__(owner, name)
    text = f"{type(owner).__name__!r} object has no attribute {name!r}; write {table[name]}"
    raise AttributeError(text, name=name, obj=owner)


def no_attribute(module: str, name: str) -> AttributeError | ImportError:
    """The error for a name that `module` does not have, for the module's `__getattr__` to raise.

    Python swallows the AttributeError of ``from rooflab import name``, so that gets an ImportError.

    Parameters
    ----------
    module, name : str
        Where the name was looked for.

    Returns
    -------
    AttributeError or ImportError
        With advice, if there is some.

    Examples
    --------
    >>> no_attribute("rooflab.optim", "Adam")
    AttributeError("module 'rooflab.optim' has no attribute 'Adam'; write rl.optim.AdamW([w], weight_decay=0)")
    """
    told = "" if name.startswith("__") else advice(module, name)
    caller = sys._getframe(1).f_back if sys._getframe(1).f_code.co_name == "__getattr__" else None
    if caller is not None and caller.f_lasti >= 0:
        code = caller.f_code.co_code
        if code[caller.f_lasti] == dis.opmap["IMPORT_FROM"]:
            return ImportError(f"cannot import name {name!r} from {module!r}{told}", name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}{told}", name=name)
