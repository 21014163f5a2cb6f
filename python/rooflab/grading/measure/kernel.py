"""A student's CUDA kernels, compiled and run on the CPU, where each access is checked and counted.

This is the same with and without a GPU: what a kernel does wrong is named, and the counts are equal everywhere. When
graded, source and launch come here as plain values. The kernel is compiled and run in a jail of its own, which the
student's Python never enters, and what it counted is believed from there alone.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any
from unittest.mock import patch

import numpy as np

import rooflab as rl
from rooflab.cuda import Access, Finding, KernelCounts, KernelError, Launch, Module, SimtKernel, SimtModule
from rooflab.cuda.gpu_kernel import Kernel, replaced
from rooflab.cuda.simt import toolchain
from rooflab.grading.measure.kernel_arguments import packed, take_back, unpacked
from rooflab.grading.measure.results import Implausible, check

SECONDS = 30.0
_ACCESSES = tuple(each.name for each in fields(KernelCounts) if each.default_factory is Access)


class CannotRun(Exception):
    """No kernel can be run on this machine's CPU; a sentence says why. A test that meets it is pending."""


@dataclass(frozen=True)
class Source:
    """A module of kernels as `cuda_kernel` takes it: its CUDA C++, and what it was compiled with."""

    source: str
    options: tuple = ()


@dataclass(frozen=True)
class KernelRun:
    """One launch of `kernel`: `args` are its arguments as the kernel left them, tensors on the CPU and arrays, each a
    copy.

    `counts` is a `rooflab.cuda.KernelCounts`, and `lines` has the same by line of the source. `findings` are what the
    kernel did wrong, each a `rooflab.cuda.Finding`. `said` has them as text, empty if there are none.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple
    counts: KernelCounts
    lines: dict[int, KernelCounts]
    findings: tuple[Finding, ...]

    @property
    def said(self) -> str:
        return "\n".join(map(str, self.findings))


@dataclass(frozen=True)
class Launched:
    """One call of a student's function: its value, and the launches on the CPU that it made, in their order.

    The value is what the function says. Look for the result in the `args` of a launch: no function can change these.
    When graded, arguments of the student's launches are arrays, tensors too.
    """

    value: Any
    launches: tuple[KernelRun, ...]


def cuda_kernel(
    source: str | Source | SimtModule | Module,
    name: str,
    *,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    schedule: str = "in order",
    blocks: int | None = None,
    seconds: float = SECONDS,
) -> KernelRun:
    """Compile CUDA C++ and run the kernel `name` once on the CPU, checked and counted, wherever this is.

    Parameters
    ----------
    source : str or module
        CUDA C++, or what ``rl.cuda.compile`` or ``%%cuda_kernel`` made.
    args : sequence
        Tensors, arrays, None and numbers, as a launch takes them. They stay as they are: see `KernelRun.args`.
    schedule : str
        The order of blocks and threads, "in order" or "reversed". A right kernel gives the same in both.
    blocks : int, optional
        Count only so many blocks, from block 0 on and evenly spread. All of them run. So a test sees whether each block
        does its own share.
    seconds : float
        After which a kernel that has not ended is stopped, which is a finding.

    Raises
    ------
    RuntimeError
        The compiler's errors with their lines.
    KeyError, ValueError
        The source has no such kernel; the launch or the arguments do not fit it.
    CannotRun
        This machine has no compiler.

    Examples
    --------
    A test of values, findings and counts::

        run = measure.cuda_kernel(SCALE_CUDA, "scale", grid=4, block=256, args=(x, y, n))
        assert not run.findings, run.said
        assert_close(run.args[1], expected, name="y")
        assert run.counts.global_loads.sectors_per_request <= 4, "neighbours have to read neighbours"
    """
    if not isinstance(source, (str, Source, SimtModule, Module)):
        raise TypeError(f"the source of a kernel has to be a text, not {type(source).__name__}")
    given = Source(source) if isinstance(source, str) else source
    settings = {
        "shared_bytes": shared_bytes,
        "mode": "count",
        "schedule": schedule,
        "blocks": blocks,
        "seconds": seconds,
    }
    pieces, words = packed(args)
    pieces, launch = _run(given.source, given.options, name, grid, block, pieces, words, settings)
    after = [copied(arg) for arg in args]
    take_back(pieces, words, after)
    return run_of(launch_of(launch, given.source), after)


def run_of(launch: Launch, args: Iterable[Any]) -> KernelRun:
    """A launch with its arguments as it left them."""
    shape = launch.kernel, launch.grid, launch.block
    return KernelRun(*shape, tuple(args), launch.counts, launch.lines, tuple(launch.findings))


def copied(value: Any) -> Any:
    """A tensor on the CPU, an array, or a number, that nothing else changes."""
    if isinstance(value, rl.Tensor):
        return value.detach().cpu().clone()
    return value.copy() if isinstance(value, np.ndarray) else value


def can_run() -> bool:
    """Whether kernels can be run on this machine."""
    try:
        return bool(toolchain.compiler())
    except toolchain.NoCompiler:
        return False


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Until the context ends, launches of kernels that were compiled for a GPU run on the CPU, on copies of their
    tensors, which are copied back.
    """

    def launch(kernel: Kernel, grid: Any, block: Any, args: Sequence[Any], shared_bytes: int) -> None:
        given, words = packed(args)
        pieces, values = unpacked(given, words)
        try:
            compile_here(kernel.source, kernel.options)[kernel.name](grid, block, *values, shared_bytes=shared_bytes)
        finally:
            take_back(pieces, words, args)

    with replaced(launch):
        yield


@contextlib.contextmanager
def replaced_by(launch: Callable[..., None]) -> Iterator[None]:
    """Until the context ends, call ``launch(*args)`` instead of each launch of a kernel of ``rl.cuda.compile``."""

    def on_gpu(kernel: Kernel, grid: Any, block: Any, args: Sequence[Any], shared_bytes: int) -> None:
        launch(*args)

    def on_cpu(kernel: SimtKernel, grid: Any, block: Any, *args: Any, **options: Any) -> None:
        launch(*args)

    with replaced(on_gpu), patch.object(SimtKernel, "__call__", on_cpu):
        yield


def run_here(
    source: str,
    options: Sequence[str],
    name: str,
    grid: Any,
    block: Any,
    pieces: list[np.ndarray],
    words: list[Any],
    settings: dict[str, Any],
) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Compile, unless this process has done so before, and launch. Returns the memory that the kernel left, and the
    launch as a dict.
    """
    kernel = compile_here(source, tuple(options))[name]
    pieces, values = unpacked(pieces, words)
    try:
        launch = kernel(grid, block, *values, **settings)
    except KernelError as error:
        launch = error.launch
    plain = asdict(launch)
    del plain["text"], plain["requests"]  # the caller has the one, and the other is for figures
    return pieces, plain


@functools.lru_cache(maxsize=64)
def compile_here(source: str, options: tuple[str, ...]) -> SimtModule:
    """The module of a source, for the CPU.

    Raises
    ------
    CannotRun
        There is no compiler.
    """
    if type(source) is not str:
        raise TypeError(f"the source of a kernel has to be a text, not {type(source).__name__}")
    try:
        return rl.cuda.compile(source, options, backend="simt")
    except rl.CudaError as error:
        raise CannotRun(str(error)) from None


def launch_of(plain: Any, text: str) -> Launch:
    """The launch that `run_here` wrote as a dict, checked, because a process that ran a student's kernel sent it."""
    check(type(plain) is dict, "a launch is not a dict")
    values = dict(plain)
    values["counts"] = _counts(values.get("counts"))
    check(type(values.get("lines")) is dict, "a launch has no lines")
    values["lines"] = {_number(line): _counts(counts) for line, counts in values["lines"].items()}
    check(type(values.get("findings")) in (list, tuple), "a launch has no findings")
    try:
        values["findings"] = [Finding(**one) for one in values["findings"]]
        return Launch(**values, text=text)
    except TypeError as error:
        raise Implausible(f"The measurement is not plausible: {error}.") from None


def _counts(plain: Any) -> KernelCounts:
    check(type(plain) is dict, "counts are not a dict")
    numbers: dict[str, Any] = {
        name: _access(value) if name in _ACCESSES else _number(value) for name, value in plain.items()
    }
    check(numbers.keys() == {each.name for each in fields(KernelCounts)}, "counts are missing")
    return KernelCounts(**numbers)


def _access(plain: Any) -> Access:
    check(type(plain) is dict and plain.keys() == {each.name for each in fields(Access)}, "counts are missing")
    return Access(**{name: _number(value) for name, value in plain.items()})


def _number(value: Any) -> int:
    check(type(value) is int and value >= 0, "a counter is not a whole number")
    return value


_run: Callable[..., tuple[list[np.ndarray], Any]] = run_here  # the judge sets this while it grades
