"""``%%cuda_kernel``: a notebook's cell of CUDA C++.

%load_ext rooflab.cuda

%%cuda_kernel module -DTILE=16
__global__ void scale(float* x) { x[threadIdx.x] *= TILE; }
"""

from __future__ import annotations

import keyword
import shlex
import sys
from typing import TYPE_CHECKING

from .module import CompileError, Module, compile
from .simt.module import SimtModule

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def name_of(line: str) -> str:
    """The name that the magic's line gives the module.

    Raises
    ------
    ValueError
        If it is not a valid name.
    """
    first = shlex.split(line)[:1]
    name = first[0] if first and not first[0].startswith("-") else "module"
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"%%cuda_kernel: expected a name for the module, got {name!r}")
    return name


def compiled(line: str, cell: str) -> Module | SimtModule:
    """The module of a cell, with what the magic's line asks for."""
    words = shlex.split(line)
    words = words[1:] if words and not words[0].startswith("-") else words
    chosen = [word.removeprefix("--backend=") for word in words if word.startswith("--backend=")]
    options = [word for word in words if not word.startswith("--backend=")]
    # The magic's own line is the cell's first.
    return compile("\n" + cell, options, backend=chosen[-1] if chosen else "auto")  # type: ignore[call-overload]


def register(shell: InteractiveShell) -> None:
    """Give a notebook the magic ``%%cuda_kernel [NAME] [--backend=auto|gpu|simt] [OPTIONS]``.

    The cell is compiled by `rooflab.cuda.compile`, with the options, and NAME (``module`` if there is none) becomes
    what that returns. Errors of the source are printed with the cell's lines, and NAME is left as it was.
    """

    def cuda_kernel(line: str, cell: str) -> None:
        name = name_of(line)
        try:
            made = compiled(line, cell)
        except CompileError as error:
            print(error, file=sys.stderr)
            return
        shell.push({name: made})
        print(f"{name} = {made!r}")

    shell.register_magic_function(cuda_kernel, "cell")  # type: ignore[arg-type]
