"""A student's CUDA kernel, compiled and launched in a process of its own.

What a faulty kernel does to the GPU's state ends with that process, so neither a grade nor a notebook is lost because
of it. The process runs nothing else of the student's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KernelRun:
    """If `ran`, the kernel was launched, and `args` are its arguments as it left them. Otherwise `why` is a sentence
    that says how far it came, and what the machine lacks.
    """

    ran: bool
    why: str
    args: tuple


def cuda_kernel(
    source: str, name: str, *, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], seconds: float = 60.0
) -> KernelRun:
    """Compile CUDA C++, and on a machine with a GPU launch the kernel `name` once.

    Raises
    ------
    RuntimeError
        The compiler's errors with their lines, a fault on the GPU, or no end within `seconds`.
    KeyError, ValueError
        The source has no such kernel; the launch or the arguments do not fit it.
    LabError
        The process did not start, which is no fault of the kernel's.
    """
    from rooflab.grading.jail.link import Link, WorkerLost
    from rooflab.grading.lab.model import Limits

    try:
        with Link(Limits(seconds=seconds), isolated=_isolated) as link:
            return KernelRun(*link.ask("kernel", source, name, tuple(grid), tuple(block), tuple(args)))
    except WorkerLost as lost:
        raise RuntimeError(f"The kernel's process was lost: {lost}") from None


def emulated_kernel(
    source: str, name: str, *, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]
) -> KernelRun:
    """Run the kernel `name` without a GPU, one thread after the other, if the emulator knows all that it uses.

    Tensors among the arguments come back as arrays. Nothing is timed.

    Raises
    ------
    RuntimeError
        A thread accessed something outside of an array, or did not end.
    KeyError, ValueError
        The source has no such kernel; the arguments do not fit it.
    """
    from rooflab.grading.emulator.emulate import Unsupported, emulate

    arrays = tuple(arg.detach().cpu().numpy() if hasattr(arg, "detach") else arg for arg in args)
    try:
        return KernelRun(True, "", emulate(source, name, grid, block, arrays))
    except Unsupported as reason:
        return KernelRun(False, f"The emulator cannot run this kernel: {reason}.", ())


def compile_and_launch(source: str, name: str, grid: tuple, block: tuple, args: tuple) -> tuple[bool, str, tuple]:
    """What the worker does: returns the fields of a `KernelRun`. Without a GPU the launch is refused only after the
    arguments have been checked against the kernel's parameters.
    """
    import rooflab as rl

    try:
        kernel = rl.cuda.compile(source, backend="gpu")[name]
    except rl.CudaError as error:  # the source's own errors are of another type
        return False, f"The kernel was not compiled: {error}.", ()
    try:
        kernel(grid, block, *args)
        rl.synchronize()
    except rl.CudaError:
        if rl.cuda.is_available():
            raise
        return False, f"The kernel was compiled but not run: {rl.cuda.unavailable_reason()}.", ()
    return True, "", args


# Whether kernels run in the jail. The judge sets this while it grades; in a student's own notebook they do not.
_isolated = False
