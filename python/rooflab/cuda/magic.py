"""``%%cuda_kernel``: a notebook's cell of CUDA C++.

%load_ext rooflab.cuda

%%cuda_kernel module -DTILE=16
__global__ void scale(float* x) { x[threadIdx.x] *= TILE; }
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from .module import CompileError, compile

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def register(shell: InteractiveShell) -> None:
    """Give a notebook the magic ``%%cuda_kernel [NAME] [--backend=auto|gpu|simt] [OPTIONS]``.

    The cell is compiled by `rooflab.cuda.compile`, with the options, and NAME (``module`` if there is none) becomes
    what that returns. Errors of the source are printed with the cell's lines, and NAME is left as it was.
    """

    def cuda_kernel(line: str, cell: str) -> None:
        words = shlex.split(line)
        name = words.pop(0) if words and not words[0].startswith("-") else "module"
        if not name.isidentifier():
            raise ValueError(f"%%cuda_kernel: expected a name for the module, got {name!r}")
        chosen = [word.removeprefix("--backend=") for word in words if word.startswith("--backend=")]
        options = [word for word in words if not word.startswith("--backend=")]
        try:
            # The magic's own line is the cell's first.
            made = compile("\n" + cell, options, backend=chosen[-1] if chosen else "auto")  # type: ignore[arg-type]
        except CompileError as error:
            print(error, file=sys.stderr)
            return
        shell.push({name: made})
        print(f"{name} = {made!r}")

    shell.register_magic_function(cuda_kernel, "cell")  # type: ignore[arg-type]
