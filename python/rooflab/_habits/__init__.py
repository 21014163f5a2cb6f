"""What to write instead of PyTorch names that rooflab does not have: the errors for such names say it.

One rule for every module of rooflab that PyTorch users look into: its `__getattr__` raises `no_attribute(...)`, which
looks into the module's table here. So `rl.norm`, `from rooflab import norm` and `x.norm` all get an answer.
"""

from __future__ import annotations

import dis
import importlib
import sys

from .functions import FUNCTIONS, TENSOR
from .modules import AUTOGRAD, CUDA, FUNCTIONAL, NN, OPTIM, SCHEDULERS

TABLES = {
    "rooflab": FUNCTIONS,
    "rooflab.nn": NN,
    "rooflab.nn.functional": FUNCTIONAL,
    "rooflab.optim": OPTIM,
    "rooflab.optim.lr_scheduler": SCHEDULERS,
    "rooflab.cuda": CUDA,
    "rooflab.autograd": AUTOGRAD,
}
_FAMILIES = {  # what names of PyTorch that begin or end so are about
    "layout": "layouts but strides",
    "Conv": "convolutions",
    "conv": "convolutions",
    "Pool": "pooling",
    "pool": "pooling",
    "RNN": "recurrent layers",
    "LSTM": "recurrent layers",
    "GRU": "recurrent layers",
    "Norm": "norms but LayerNorm and RMSNorm",
    "_norm": "norms but layer_norm and rms_norm",
    "complex": "complex numbers",
    "quant": "quantised tensors",
    "sparse": "sparse tensors",
    "distributed": "several processes",
    "interpolate": "images",
    "Upsample": "images",
    "Pad": "padding layers; write rl.nn.functional.pad(x, (1, 1))",
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
        Where nothing is known about a name, how to list those that there are; for "Tensor" nothing.

    Raises
    ------
    Nothing.

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
    if module != "Tensor":
        for other in (*TABLES, "rooflab.memory"):
            if other != module and name in getattr(importlib.import_module(other), "__all__", ()):
                return f"; write {other.replace('rooflab', 'rl', 1)}.{name}"
    family = next((about for part, about in _FAMILIES.items() if part in name), "")
    if family:
        return f"; rooflab has no {family}"
    return f"; dir({module.replace('rooflab', 'rl', 1)}) lists what there is" if module != "Tensor" else ""


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

    Raises
    ------
    Nothing.

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
