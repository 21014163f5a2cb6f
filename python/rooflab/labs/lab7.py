"""What Lab 7 gives its students: kernels run and counted, beside their counts on a GPU the values; tables of counts.

Letters: N sides of a matrix or numbers in all, L tokens, d head size, B blocks of a launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.cuda import Finding, KernelCounts, KernelError, Launch, Module, SimtModule
from rooflab.grading import measure
from rooflab.grading.measure.kernel import KernelRun, Source
from rooflab.labs.lab5 import assert_values, draws
from rooflab.results import Table
from rooflab.testing import to_float64

__all__ = [
    "assert_clean",
    "assert_place",
    "assert_values",
    "assert_warps",
    "compare",
    "counted",
    "draws",
    "floats",
    "whole",
]

Shape = int | Sequence[int]


def floats(*shape: int) -> np.ndarray:
    """Normal values in fp32, others in each call.

    Examples
    --------
    >>> from rooflab.labs.lab7 import floats
    >>> floats(2, 3).shape
    (2, 3)
    """
    return measure.rng().standard_normal(shape, dtype=np.float32)


def whole(*shape: int) -> np.ndarray:
    """Whole numbers from -8 to 8 in fp32: a sum of them is exact in any order.

    Examples
    --------
    >>> from rooflab.labs.lab7 import whole
    >>> bool((whole(100) % 1 == 0).all())
    True
    """
    return measure.rng().integers(-8, 8, shape, endpoint=True).astype(np.float32)


def counted(source: str | SimtModule | Module, name: str, grid: Shape, block: Shape, *args: Any) -> Launch:
    """Run the kernel `name` once with everything counted, and print what it does wrong.

    It runs on the CPU, and is stopped after 20 s. Where there is a GPU, and nothing was found, the same source runs
    there too, and a line says how far its values are from those of the CPU.

    Parameters
    ----------
    source : str or module
        CUDA C++, or what ``%%cuda_kernel`` made of it.
    grid, block : int or sequence of int
        Blocks of the grid, and threads of a block.
    *args
        NumPy arrays and numbers. Arrays hold afterwards what the kernel wrote.

    Raises
    ------
    ValueError
        The source is not written yet, or the launch or the arguments do not fit the kernel.
    CompileError
        The source has errors.
    """
    if not isinstance(source, (str, SimtModule, Module)):
        raise ValueError(f"[counted] {name}: expected the source of the kernel, got {source!r}; write it first")
    before = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    text, options = (source, ()) if isinstance(source, str) else (source.source, source.options)
    try:
        launch = rl.cuda.compile(text, options, backend="simt")[name](grid, block, *args, mode="count", seconds=20)
    except KernelError as error:
        print(f"{name}:", *_told(error.findings), sep="\n")
        return error.launch
    if rl.cuda.is_available():
        module = rl.cuda.compile(text, options, backend="gpu")
        print(_on_gpu(module[name], grid, block, before, args))
    return launch


def _told(findings: Sequence[Finding]) -> list[str]:
    """The first finding of each kind on each line, and how many others there are."""
    groups: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.kind, finding.line), []).append(finding)
    return [
        f"{first}{f' There are {len(others)} more like this.' if others else ''}" for first, *others in groups.values()
    ]


def _on_gpu(kernel: Any, grid: Shape, block: Shape, before: Sequence[Any], after: Sequence[Any]) -> str:
    given = [rl.tensor(arg, device="cuda") if isinstance(arg, np.ndarray) else arg for arg in before]
    kernel(grid, block, *given)
    rl.synchronize()
    pairs = [(to_float64(x), to_float64(y)) for x, y in zip(given, after, strict=True) if isinstance(y, np.ndarray)]
    apart = max(float(np.max(np.abs(x - y), initial=0.0)) for x, y in pairs)
    return f"{kernel.name} on {rl.cuda.properties().name}: at most {apart:.2g} from the values of the CPU"


def assert_clean(source: Any, name: str, grid: Shape, block: Shape, *args: Any, what: str = "") -> KernelRun:
    """Run the kernel `name` of a student's source for a test, and assert that nothing is wrong with what it did.

    `args` stay as they are; the run has them as the kernel left them, and the counts.

    Raises
    ------
    AssertionError
        The source is neither a text nor what ``%%cuda_kernel`` makes, or there are findings; the first one is named.
    """
    where = f"{name}{f' at {what}' if what else ''}"
    said = f"{where}: expected the source of the kernel, CUDA C++ as text, got a {type(source).__name__}"
    assert isinstance(source, (str, Source, SimtModule, Module)), said
    run = measure.cuda_kernel(source, name, grid=grid, block=block, args=args)
    others = len(run.findings) - 1
    more = f" (and {others} more finding{'s' * (others > 1)})" if others > 0 else ""
    assert not run.findings, f"{where}: {run.findings[0]}{more}"
    return run


def assert_place(
    source: Any, name: str, grid: Shape, block: Shape, *args: Any, place: tuple[int, int], warp: int | None = None
) -> None:
    """Assert who does which part of the work. `args` has arrays that end too early: of those that go beyond them, the
    first block has to be `place` (x, y), and its first warp has to be `warp`.

    Raises
    ------
    AssertionError
        Nobody goes beyond them, or another block or warp is the first.
    """
    found = _beyond(source, name, grid, block, args)
    whose = f"block {place}" if warp is None else f"warp {warp} of block {place}"
    said = f"{name}: a part of the work that belongs to {whose} is done by"
    assert found, f"{said} nobody"
    (row, column), first = min(found)
    good = (column, row) == place and warp in (None, first)
    assert good, f"{said} warp {first} of block {(column, row)}: each thread has to do its own share"


def assert_warps(source: Any, name: str, grid: Shape, block: Shape, *launches: tuple, what: str) -> None:
    """Assert that several warps do the work. `launches` are arguments with arrays that end too early, each in a part of
    the work that belongs to another warp. `what` says what the work is.

    Raises
    ------
    AssertionError
        Nobody goes beyond the arrays, or one warp only.
    """
    warps = {warp for args in launches for _, warp in _beyond(source, name, grid, block, args)}
    said = f"{name}: {what} by {f'warp {min(warps)} only' if warps else 'nobody'}"
    assert len(warps) > 1, f"{said}: each thread has to do its own share"


def _beyond(source: Any, name: str, grid: Shape, block: Shape, args: tuple) -> list[tuple[tuple[int, int], int]]:
    """The block (y, x) and the warp of those that go beyond an array."""
    run = measure.cuda_kernel(source, name, grid=grid, block=block, args=args)
    x, y, _ = run.block
    beyond = [one for one in run.findings if one.kind == "out of bounds"]
    return [(one.block[1::-1], (one.thread[0] + x * (one.thread[1] + y * one.thread[2])) // 32) for one in beyond]


def compare(launches: Mapping[str, Launch], *counts: str, title: str = "") -> Table:
    """A table with a row for each launch and a column for each count, such as ``"global_loads.sectors_per_request"``.

    Examples
    --------
    >>> from rooflab.cuda import Launch
    >>> from rooflab.labs.lab7 import compare
    >>> launch = Launch("copy", (1, 1, 1), (32, 1, 1), "count", "")
    >>> print(compare({"copy": launch}, "global_loads.requests", "barriers"))
    kernel  global loads: requests  barriers
    copy                         0         0
    """
    head = ("kernel", *(count.replace("_", " ").replace(".", ": ") for count in counts))
    rows = [(name, *(_shown(count, _value(launch.counts, count)) for count in counts))
            for name, launch in launches.items()]  # fmt: skip
    return Table(head, rows, title)


def _value(counts: KernelCounts, count: str) -> Any:
    return reduce(getattr, count.split("."), counts)


def _shown(count: str, value: int | float) -> str:
    if count.endswith("efficiency"):
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
