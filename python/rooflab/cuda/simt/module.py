"""Kernels that run on the CPU, thread by thread, checked and counted."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _core
from ..._core import Cost
from ..elements import check_elements, elements_of
from ..kernel_table import KernelTable
from ..signature import no_kernel, written_parameters
from . import process, toolchain
from .findings import Finding, Words
from .front_end import Translation, translate
from .memory import Arguments, Place
from .result import Access, KernelCounts, Launch
from .tokens import Refused
from .warp_request import warp_request

_ACCESSES = (
    ("global_loads", "global_stores", "global_atomics"),
    ("shared_loads", "shared_stores", "shared_atomics"),
)
# What pointers point to, by the letters of `rl_pointee` in runtime/device/rooflab_cuda.h.
_POINTEES = {"f": "float", "d": "double", "h": "half", "b": "nv_bfloat16", "i": "int", "l": "long", "1": "bool",
             "B": "char", "S": "short", "U": "unsigned", "L": "size_t"}  # fmt: skip
_IGNORED = re.compile(
    r"(-arch|--gpu-architecture|-std|--std|-O\d|-lineinfo|--generate-line-info|--?use_fast_math|-w|-g|-G|--device-debug"
    r"|--?maxrregcount|--?fmad|--?ftz|--?prec-div|--?prec-sqrt|-Xptxas|--ptxas-options)\b.*"
)
_MAX_SHARED = 227 << 10
_MOST_SECONDS = 1e6  # that poll can wait


class KernelError(RuntimeError):
    """A launch that did something wrong.

    Attributes
    ----------
    findings : list of Finding
        What.
    launch : Launch
        The whole result. The arrays hold what the kernel wrote until it was stopped.
    """

    def __init__(self, launch: Launch) -> None:
        super().__init__(f"[{launch.kernel}] " + "\n".join(str(finding) for finding in launch.findings))
        self.launch = launch
        self.findings = launch.findings

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.launch,), self.__dict__


@dataclass(frozen=True)
class Settings:
    """What a launch is given beside its shape, its mode and its arguments."""

    shared_bytes: int
    blocks: int | None
    schedule: str
    seed: int
    seconds: float


class SimtKernel:
    """A ``__global__`` function on the CPU: ``kernel(grid, block, *args)`` runs it."""

    def __init__(self, module: SimtModule, number: int, name: str, described: str) -> None:
        """`described` is what `rl_describe` wrote: the most threads of a block, then each parameter."""
        self._module = module
        self._number = number
        self.name = name
        self._most_threads = int(described[:4])
        self.parameters, self._elements = _parameters(module.source, name, described[4:])

    def __call__(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *args: Any,
        shared_bytes: int = 0,
        cost: Cost | None = None,
        mode: str = "check",
        blocks: int | None = None,
        schedule: str = "in order",
        seed: int = 0,
        seconds: float = 60.0,
    ) -> Launch:
        """Run every thread of a launch, in a process of its own.

        Parameters
        ----------
        grid, block : int or sequence of int
            One to three numbers.
        *args
            A tensor on the CPU or a NumPy array (its address), None (a null pointer) or a number for each parameter.
        shared_bytes : int
            Bytes of dynamic shared memory a block.
        cost : Cost, optional
            The work that the launch is said to do, for `rooflab.count` and `rooflab.profile`.
        mode : str
            "functional": values only. "check": each access is checked before it happens. "count": checked and counted.
        blocks : int, optional
            Record only so many blocks, spread over the grid. All blocks run, and all of their addresses are checked.
        schedule : str
            The order of blocks and threads: "in order", "reversed" or "seeded" (by `seed`).
        seconds : float
            After which a kernel is stopped.

        Returns
        -------
        Launch
            Counts and findings. It states no time: how long this takes says nothing about a GPU.

        Raises
        ------
        KernelError
            When there are findings.
        ValueError
            At arguments that do not fit.
        """
        if _watching:
            mode, blocks = "count", None
        if not isinstance(cost, (Cost, type(None))):
            raise ValueError(f"[{self.name}] cost: expected rl.Cost(...) or None, got {cost!r}")
        launch = self._checked(grid, block, shared_bytes, mode, blocks, schedule, seed, seconds)
        check_elements(self.name, self.parameters, self._elements, args)
        arguments = Arguments(self.name, self.parameters, args)
        settings = Settings(shared_bytes, blocks, schedule, seed, float(min(seconds, _MOST_SECONDS)))

        def run() -> None:
            self._run(launch, arguments, settings)

        _core.cuda.launch_on_cpu(self.name, run, arguments.written, cost or Cost())
        for watch in _watching:
            watch(launch, args)
        if launch.findings:
            raise KernelError(launch)
        return launch

    def __repr__(self) -> str:
        return f"Kernel {self.name}({', '.join(parameter.label for parameter in self.parameters)})"

    def _checked(
        self,
        grid: Any,
        block: Any,
        shared_bytes: int,
        mode: str,
        blocks: int | None,
        schedule: str,
        seed: int,
        seconds: float,
    ) -> Launch:
        shapes = self._three("grid", grid), self._three("block", block)
        if max(shapes[0][1:]) > 65535:
            shown = " x ".join(map(str, shapes[0]))
            raise ValueError(f"[{self.name}] grid: {shown} blocks, where a grid has at most 65535 in y and in z")
        threads = shapes[1][0] * shapes[1][1] * shapes[1][2]
        if threads > 1024 or shapes[1][2] > 64:
            shown = " x ".join(map(str, shapes[1]))
            raise ValueError(f"[{self.name}] block: {shown} threads, where a block has at most 1024, and 64 in z")
        if threads > self._most_threads:
            shown = " x ".join(map(str, shapes[1]))
            bounds = f"where its __launch_bounds__ allow {self._most_threads}"
            raise ValueError(f"[{self.name}] block: {shown} threads, {bounds}")
        for name, number in (("shared_bytes", shared_bytes), ("blocks", blocks or 1), ("seed", seed)):
            if not hasattr(number, "__index__"):
                raise ValueError(f"[{self.name}] {name}: expected an integer, got {number!r}")
        if not 0 <= shared_bytes <= _MAX_SHARED:
            raise ValueError(f"[{self.name}] shared_bytes: expected >= 0 and <= {_MAX_SHARED}, got {shared_bytes}")
        static = self._module.library(is_checked=True).shared[self._number]
        if static + shared_bytes > _MAX_SHARED:
            both = f"{shared_bytes} bytes of dynamic and {static} of static shared memory"
            raise ValueError(f"[{self.name}] shared_bytes: {both}, where a block has at most {_MAX_SHARED}")
        for name, value, known in (("mode", mode, process.MODES), ("schedule", schedule, process.SCHEDULES)):
            if value not in known:
                raise ValueError(f"[{self.name}] {name}: expected one of {', '.join(known)}, got {value!r}")
        if blocks is not None and blocks < 1:
            raise ValueError(f"[{self.name}] blocks: expected >= 1, got {blocks}")
        if not isinstance(seconds, (int, float, np.integer, np.floating)) or not seconds > 0:
            raise ValueError(f"[{self.name}] seconds: expected a number > 0, got {seconds!r}")
        return Launch(self.name, shapes[0], shapes[1], mode, self._module.source)

    def _three(self, what: str, value: Any) -> tuple[int, int, int]:
        try:
            numbers = [operator.index(each) for each in (value if isinstance(value, (tuple, list)) else [value])]
        except TypeError:
            numbers = []
        if not 1 <= len(numbers) <= 3 or min(numbers) < 1 or max(numbers) >= 1 << 31:
            raise ValueError(f"[{self.name}] {what}: expected one to three integers >= 1, got {value!r}")
        x, y, z = (*numbers, 1, 1)[:3]
        return x, y, z

    def _run(self, launch: Launch, arguments: Arguments, settings: Settings) -> None:
        library = self._module.library(is_checked=launch.mode != "functional")
        total = launch.grid[0] * launch.grid[1] * launch.grid[2]
        blocks, seconds = settings.blocks, settings.seconds
        request = process.Request(
            launch.grid, launch.block, settings.shared_bytes, launch.mode,
            0 if blocks is None or blocks >= total else blocks, settings.schedule, settings.seed & (1 << 63) - 1,
            arguments.arena_bytes, arguments.buffers, arguments.words,
        )  # fmt: skip
        with arguments.alone(), process.shared_file(arguments.arena_bytes) as arena:
            arguments.copy_in(arena[1])
            report = process.run(library.path, len(library.sites), self._number, request, arena, seconds)
            arguments.copy_back(arena[1])
        print(report.printed, end="")
        lines = {i: site.line for i, site in enumerate(library.sites)}
        lines |= {site: line for word, (site, line) in report.of("line")}
        words = Words(launch.grid, launch.block, lines, arguments.places, seconds, launch.text)
        launch.findings = words.findings(numbers for _, numbers in report.of("finding"))
        self._count(launch, report, lines, [site.flops for site in library.sites], arguments.places)
        if not report.is_whole and not launch.findings:
            ended = Finding("crash", "The kernel's process ended before it was done.")
            endless = Finding("endless", f"The kernel was not done after {seconds:g} s: a loop may have no end.")
            launch.findings.append(endless if report.was_killed else ended)
        wrote_nothing = launch.mode != "functional" and not request.blocks and not report.global_writes
        has_output = any(size and is_written for _, size, is_written in arguments.buffers)
        if wrote_nothing and not launch.findings and has_output:
            launch.wrote_nothing = True
            if not library.storing[self._number]:  # else it was guarded, or stored what was there before
                launch.findings.append(Finding("nothing written", "No thread wrote to global memory."))

    def _count(
        self, launch: Launch, report: process.Report, lines: dict[int, int], flops: list[int], places: list[Place]
    ) -> None:
        launch.blocks, launch.counts.block_barriers = report.blocks, report.block_barriers
        if launch.mode != "count":
            return
        for word, (site, *numbers) in report.of("access", "barrier", "warp", "block"):
            counts = KernelCounts()
            if word == "access":
                space, operation, *rest = numbers
                setattr(counts, _ACCESSES[space][operation], Access(*rest))
            elif word == "barrier":
                counts.barriers = numbers[0]
            elif word == "warp":
                counts.warp_operations, counts.tensor_flops = numbers[0], numbers[1] * flops[site]
            else:
                counts.branches, counts.branch_threads = numbers
                counts.flops = numbers[1] * flops[site]
            launch.counts.add(counts)
            launch.lines.setdefault(lines[site], KernelCounts()).add(counts)
        for _, (site, *numbers) in report.of("request"):
            launch.requests.append(warp_request(lines[site], numbers, places))
        launch.requests.sort(key=lambda request: request.line)


class SimtModule(KernelTable[SimtKernel]):
    """Kernels that were compiled together, for the CPU.

    Attributes
    ----------
    architecture : str
        "simt".
    log : str
        The compiler's warnings, "" when there are none.
    source : str
        The CUDA C++.
    options : tuple of str
        What it was compiled with.
    """

    _kernel_type = SimtKernel

    def __init__(self, source: str, options: Sequence[str], translation: Translation) -> None:
        self.source = source
        self.options = tuple(options)
        self._translation = translation
        self._libraries: dict[bool, toolchain.Library] = {}
        checked = self.library(is_checked=True)
        kernels: dict[str, SimtKernel] = {}
        for i, (name, line) in enumerate(zip(translation.kernels, translation.lines, strict=True)):
            if checked.parameters[i] == "-":  # left out by an #if
                continue
            if name in kernels:
                raise Refused(line, f"the kernel {name} is there twice; overloads are not supported")
            kernels[name] = kernel = self._kernel_type(self, i, name, checked.parameters[i])
            if (count := len(kernel.parameters)) > process.MAX_ARGUMENTS:
                most = f"{process.MAX_ARGUMENTS} parameters are supported"
                raise Refused(line, f"the kernel {name} has {count} parameters, and at most {most}")
        if not kernels:
            raise SourceError(no_kernel(source))
        super().__init__(kernels, "simt", checked.log)

    def library(self, *, is_checked: bool) -> toolchain.Library:
        """Its machine code, with or without the checks."""
        if is_checked not in self._libraries:
            self._libraries[is_checked] = toolchain.library(self._translation, is_checked=is_checked)
        return self._libraries[is_checked]


@contextlib.contextmanager
def watching(watch: Callable[[Launch, Sequence[Any]], None]) -> Iterator[None]:
    """Until the context ends, call `watch` with each launch on the CPU and its arguments as it left them. Meanwhile all
    launches are counted, whatever mode they ask for.
    """
    _watching.append(watch)
    try:
        yield
    finally:
        _watching.remove(watch)


_watching: list[Callable[[Launch, Sequence[Any]], None]] = []


class SourceError(Exception):
    """What is wrong with a source, as NVRTC's log would say it."""


def build(source: str, options: Sequence[str], made: type[SimtModule] = SimtModule) -> SimtModule:
    """Compile CUDA C++ for the CPU, as a module of the type `made`.

    Parameters
    ----------
    source : str
        With at least one ``__global__`` function.
    options : sequence of str
        ``-DNAME=value`` counts; options about GPUs, optimisation and the language's version change nothing here.

    Raises
    ------
    SourceError
        When it does not compile, or has something that is not supported.
    ValueError
        At other options.
    NoCompiler
        When this machine has no C++ compiler.
    """
    defines = [option[2:].strip() for option in options if option.startswith("-D")]
    for option in options:
        known = re.fullmatch(r"-D\s*[A-Za-z_]\w*(=[^\n]*)?", option) or _IGNORED.fullmatch(option)
        if not known:
            raise ValueError(f"[compile] options: backend='simt' knows -DNAME=value, and not {option}")
    try:
        translation = translate(source, defines)
        if not translation.kernels:
            raise SourceError(no_kernel(source))
        return made(source, options, translation)
    except Refused as refused:
        line, what = refused.args
        raise SourceError(f"source{f'({line})' if line > 0 else ''}: error: {what}") from None
    except toolchain.CompilerError as error:
        raise SourceError(str(error)) from None


def _parameters(source: str, name: str, described: str) -> tuple[list[_core.cuda.Parameter], list[tuple[str, ...]]]:
    """The parameters, and the dtypes that each takes, from four letters for each: kind, pointee, sign and size."""
    count = len(described) // 4
    written = written_parameters(source, name, count)
    made, elements = [], []
    for place in range(count):
        kind, pointee, sign, size = list(described[4 * place : 4 * place + 4])
        shown, label = written[place]
        label = f"{label or f'argument {place + 1}'}{f' ({shown})' if shown else ''}"
        names = {"p": "pointer", "c": "pointer", "i": "integer", "r": "real", "s": shown or "structures"}
        dtypes = elements_of(_POINTEES.get(pointee, ""))
        dtype = dtypes[0] if len(dtypes) == 1 else None
        made.append(_core.cuda.Parameter(label, names[kind], ord(size) - ord("a"), sign == "1", dtype, kind == "p"))
        elements.append(dtypes if names[kind] == "pointer" else ())
    return made, elements
