"""What the page of an op holds beside its docstring: its ladder, its cost and what was measured."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import rooflab as rl
from rooflab.benchmark.ladder import cost_of
from rooflab.benchmark.results import Result, load
from rooflab.benchmark.tables import table
from rooflab.specs import ODD, all_specs
from rooflab.units import human

MEASURED = Path(__file__).parent / "measured"  # where the package is installed
CHECKOUT = Path(rl.__file__).parents[2]


@dataclass(frozen=True)
class Case:
    """What one call of a bench case does."""

    name: str
    dtype: str
    cost: rl.Cost

    def cells(self) -> list[str]:
        """The row of a table: case, dtype, MACs, FLOPs, bytes read and written, FLOP per byte.

        Examples
        --------
        >>> Case("64", "float32", rl.Cost(flops=64, bytes_read=256, bytes_written=256)).cells()
        ['64', 'float32', '0 MAC', '64 FLOP', '256 B', '256 B', '0.125']
        """
        counts = [human(self.cost.macs, "MAC"), human(self.cost.flops, "FLOP")]
        sizes = [human(self.cost.bytes_read, "B"), human(self.cost.bytes_written, "B")]
        return [self.name, self.dtype, *counts, *sizes, f"{self.cost.arithmetic_intensity:.3g}"]


def ladder(op: str) -> dict[str, list[rl.Variant]]:
    """The rungs of an op by kind of device, fastest first; devices without a rung are left out.

    Examples
    --------
    >>> ladder("gelu")["cpu"][-1].name
    'v0_reference'
    """
    rungs = {device: rl.variants(op, device) for device in ("cpu", "cuda")}
    return {device: found for device, found in rungs.items() if found}


def cases(op: str) -> list[Case]:
    """The cost of each bench case of an op; none without a description in `rooflab.specs`.

    Examples
    --------
    >>> cases("matmul")[0].cost.macs == 512**3
    True
    """
    spec = all_specs().get(op)
    if spec is None or spec.bench is None:
        return []
    return [
        Case(name, dtype, cost_of(spec, dtype, shapes, options))
        for name, dtype, shapes, options in spec.bench()
        if not name.startswith(ODD)
    ]


def formula(op: str) -> tuple[str, dict[str, float]]:
    """The function that the counters are compared with, as source text, and the numbers that it is used with.

    Functions of `rooflab.specs` that it calls follow.

    Examples
    --------
    >>> text, numbers = formula("softmax")
    >>> numbers
    {'flops': 5}
    >>> "flops=(flops + len(arrays) - 1) * size" in text
    True
    """
    spec = all_specs().get(op)
    if spec is None:
        return "", {}
    function: Callable = spec.cost
    given: dict[str, object] = {}
    if isinstance(function, functools.partial):
        given = dict(inspect.signature(function.func).bind_partial(*function.args, **function.keywords).arguments)
        function = function.func
    given |= inspect.getclosurevars(function).nonlocals
    numbers = {name: value for name, value in given.items() if isinstance(value, int | float)}
    return "\n\n".join(textwrap.dedent(inspect.getsource(each)) for each in _with_called(function)), numbers


def measured(op: str) -> list[str]:
    """The lines of the op's measured tables, those of ops with the same kernels among them."""
    kernels = _kernels(op)
    shown = [other for other in rl.ops() if other in all_specs() and all_specs()[other].tables]
    family = [other for other in shown if _kernels(other) == kernels]
    return [line for result in results() for line in table(family, result)] if family else []


@functools.cache
def results() -> list[Result]:
    """The results of `rooflab bench all` that come with the package, or lie in the checkout that it runs from."""
    folder = MEASURED if MEASURED.is_dir() else CHECKOUT / "assets" / "bench"
    return [load(path) for path in sorted(folder.glob("*.json"))]


def _with_called(function: Callable) -> list[Callable]:
    """A function, and those that it calls of the modules that describe ops."""
    found = [function]
    for one in found:
        called = inspect.getclosurevars(one).globals.values()
        found += [
            f for f in called if inspect.isfunction(f) and f.__module__.startswith("rooflab.specs.") and f not in found
        ]
    return found


def _kernels(op: str) -> list[str]:
    return [rung.kernel for rung in rl.variants(op)]
