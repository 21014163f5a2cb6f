"""`rooflab bench OP`: every rung of an op against copy bandwidth, the library rung and a peer, as ratios of one run.

Contenders take turns, so that drift of the machine affects all alike; each turn is a few calls in a row over rotating
buffers, so that data comes from memory and not from a cache. A ratio is taken turn by turn and shown with its spread.
"""

from __future__ import annotations

import importlib
import itertools
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.specs import OpSpec, Places, Seen, Turned, itemsize

from ..results import ReadableMixin, Table
from ..units import human, rounded
from .gpu_clock import device_index

_CACHE_BYTES = 64_000_000  # what rotating buffers must exceed several times over
_SLOW_FLOPS = {"cpu": 2e9, "cuda": 2e10}  # above this the slow rungs (v0, v1) of a product wait for --all
_STREAMS = 16  # FLOP/byte; below this memory is what is measured: buffers rotate, and copies compete
_IDLE_S = 0.05  # between turns on the CPU: thread pools of other libraries go on spinning for about half of this
_SLOW_RATIO = 30  # contenders this many times slower than the fastest in one call wait for --all too, copies aside
_LONG_MS = 300  # a call; contenders that take longer get few turns, and no warm-up in them
_FEW_TURNS = 3


@dataclass
class Row(ReadableMixin):
    """One contender in one case. Times are medians over turns, in milliseconds a call."""

    op: str
    case: str
    dtype: str
    contender: str
    median_ms: float
    p20_ms: float
    p80_ms: float
    tflop_s: float
    gb_s: float
    ratios: dict[str, tuple[float, float, float]]  # speed against an opponent: median, p20, p80


def _operands(dtype: str, shapes: tuple, device: str) -> tuple:
    def operand(given: object) -> Any:
        if isinstance(given, Places):
            return rl.randint(0, given.below, given.shape, device=device)
        if isinstance(given, Turned):
            return operand(given.shape[::-1]).T
        if isinstance(given, Seen):
            return rl.rand(*given.shape, device=device) < 0.8
        return rl.randn(*given, dtype="float32", device=device).to(dtype) if isinstance(given, tuple) else given

    return tuple(map(operand, shapes))


def cost_of(spec: OpSpec, dtype: str, shapes: tuple, kwargs: dict) -> rl.Cost:
    """What one call of a bench case does."""
    operands = (
        rl.empty(*s.shape, dtype="bool", device="meta") if isinstance(s, Seen)
        else s.shape if isinstance(s, (Places, Turned)) else s
        for s in shapes
    )  # fmt: skip
    return rl.cost.of(spec.name, *operands, dtype=dtype, **kwargs)


def _turn(call: Callable[[], object], calls: int, device: str) -> float:
    """Milliseconds a call, over `calls` of them in a row."""
    if device == "cpu":
        began = time.perf_counter_ns()
        for _ in range(calls):
            call()
        return (time.perf_counter_ns() - began) * 1e-6 / calls
    start, end = (rl.cuda.Event(device=device_index(device)) for _ in range(2))
    start.record()
    for _ in range(calls):
        call()
    end.record()
    return start.elapsed_ms(end) / calls


def _rotating(fn: Callable, sets: list[tuple], kwargs: dict) -> Callable[[], object]:
    cycle = itertools.cycle(sets)
    return lambda: fn(*next(cycle), **kwargs)


def _rungs(spec, sets, cost, kwargs, device, every_rung, longest_s, progress) -> dict[str, Callable[[], object]]:
    """The rungs that take this case, fastest first, without the inherently slow ones below the fastest."""
    slow_flops = _SLOW_FLOPS[device.partition(":")[0]]
    found: dict[str, Callable[[], object]] = {}
    for rung in rl.variants(spec.name, device) if spec.name in rl.ops() else []:
        slow = rung.name.startswith(("v0_", "v1_")) and (cost.flops > slow_flops or cost.macs == 0)
        if found and slow and not every_rung:
            continue
        progress(f"first call of {rung.name}")
        call = _rotating(spec.fn, sets, {**kwargs, "variant": rung.name})
        start = time.perf_counter()
        try:
            call()
            rl.synchronize()
        except (ValueError, rl.OutOfMemoryError):
            continue  # this rung does not take this case
        if not found or time.perf_counter() - start <= longest_s:
            found[rung.name] = call
    return found


def _peers(spec, peer, sets, kwargs) -> dict[str, Callable[[], object]]:
    """The peer's functions that take this case."""
    module = importlib.import_module(peer)
    theirs = [tuple(module.from_dlpack(x) if isinstance(x, rl.Tensor) else x for x in s) for s in sets]
    functions = spec.peer(module)
    found = {}
    for name, function in functions.items() if isinstance(functions, dict) else [(peer, functions)]:
        call = _rotating(function, theirs, kwargs)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a backend's reasons for not taking a case
                call()
        except RuntimeError:
            continue
        found[name] = call
    return found


def _contenders(
    spec, cost, dtype, shapes, kwargs, device, peer, every_rung, longest_s, progress
) -> dict[str, Callable[[], object]]:
    """The rungs, the peer's functions, and copies where memory is what is measured."""
    streams = cost.arithmetic_intensity < _STREAMS
    copies = min(8, max(1, math.ceil(3 * _CACHE_BYTES / max(cost.bytes, 1)))) if streams else 1
    sets = [_operands(dtype, shapes, device) for _ in range(copies)]
    if spec.prepare:
        sets = [spec.prepare(*operands, **kwargs) for operands in sets]
    found = _rungs(spec, sets, cost, kwargs, device, every_rung, longest_s, progress)
    if peer and spec.peer:
        found |= _peers(spec, peer, sets, kwargs)
    if streams:
        elements = max(1, cost.bytes // 2 // itemsize(dtype))
        buffers = [(rl.randn(elements, dtype="float32", device=device).to(dtype),) for _ in range(copies)]
        found["copy"] = _rotating(rl.copy, buffers, {})
        if peer and spec.peer:
            module = importlib.import_module(peer)
            found[f"{peer} copy"] = _rotating(lambda x: x.clone(), [(module.from_dlpack(b[0]),) for b in buffers], {})
    return found


def bench_case(
    spec: OpSpec,
    label: str,
    dtype: str,
    shapes: tuple,
    kwargs: dict,
    device: str,
    *,
    peer: str | None = None,
    every_rung: bool = False,
    longest_s: float = math.inf,
    turns: int = 20,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Measure all contenders of one case, turn by turn.

    Parameters
    ----------
    spec, label, dtype, shapes, kwargs
        The op, and one case of its `bench`.
    device : str
        "cpu", "cuda" or "cuda:N".
    peer : str, optional
        The library whose functions compete; imported here.
    every_rung : bool
        Run the slow rungs too, except those below the fastest whose first call takes more than `longest_s` seconds.
    turns : int
        Turns for each contender; fewer if its calls take long.
    progress : callable
        Called with a few words before each step.

    Returns
    -------
    list of Row
        Times in ms a call; TFLOP/s and GB/s from the op's cost (not for copies: their bytes are the same).
    """
    cost = cost_of(spec, dtype, shapes, kwargs)
    progress("making operands")
    contenders = _contenders(spec, cost, dtype, shapes, kwargs, device, peer, every_rung, longest_s, progress)
    return race(
        (spec.name, label, dtype), contenders, cost, device,
        peer=peer, slow_too=every_rung, turns=turns, progress=progress,
    )  # fmt: skip


def race(
    case: tuple[str, str, str],
    contenders: dict[str, Callable[[], object]],
    cost: rl.Cost,
    device: str,
    *,
    peer: str | None = None,
    slow_too: bool = True,
    turns: int = 20,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Time calls that do the same work, turn by turn.

    Parameters
    ----------
    case : tuple of str
        Op, label and dtype: what the rows say.
    contenders : dict
        Calls by name. The others are compared with "copy", "library" and those of the peer.
    cost : Cost
        The cost of one call.
    slow_too : bool
        Time also those that take more than 30 times as long as the fastest.
    device, peer, turns, progress
        As in `bench_case`.

    Returns
    -------
    list of Row
        As `bench_case` gives.
    """
    first_ms = {}
    for name, call in contenders.items():
        progress(f"warming up {name}")
        first_ms[name] = max(_turn(call, 1, device), 1e-3)
        if first_ms[name] < _LONG_MS:  # the first call may have paid for one-time work
            first_ms[name] = max(_turn(call, 1, device), 1e-3)
    if not slow_too:
        limit_ms = _SLOW_RATIO * min(ms for name, ms in first_ms.items() if not name.endswith("copy"))
        contenders = {name: call for name, call in contenders.items() if first_ms[name] <= limit_ms}
    calls = {name: int(np.clip(10.0 / first_ms[name], 1, 20)) for name in contenders}
    turns_of = {name: min(turns, _FEW_TURNS) if first_ms[name] > _LONG_MS else turns for name in contenders}
    samples = {name: np.empty(n) for name, n in turns_of.items()}
    for turn in range(turns):
        for name, call in contenders.items():
            if turn >= turns_of[name]:
                continue
            progress(f"turn {turn + 1} of {turns_of[name]}, {name}")
            if device == "cpu":
                time.sleep(_IDLE_S)
            if first_ms[name] <= _LONG_MS:
                call()
            samples[name][turn] = _turn(call, calls[name], device)
    opponents = [n for n in samples if n in ("copy", "library") or (peer and n.startswith(peer))]
    rows = []
    for name, ms in samples.items():
        ratios = {o: _ratio(samples[o], ms) for o in opponents if o != name}
        p20, median, p80 = (float(v) for v in np.percentile(ms, [20, 50, 80]))
        rows.append(
            Row(
                *case,
                name,
                median,
                p20,
                p80,
                cost.flops / median / 1e9,
                cost.bytes / median / 1e6,
                ratios,
            )
        )
    return rows


def _ratio(theirs: np.ndarray, ours: np.ndarray) -> tuple[float, float, float]:
    """How many times as fast `ours` is as `theirs`, over the turns that both had: median, p20, p80."""
    turns = min(len(theirs), len(ours))
    median, p20, p80 = (float(v) for v in np.percentile(theirs[:turns] / ours[:turns], [50, 20, 80]))
    return median, p20, p80


def table(rows: list[Row]) -> str:
    """The rows as text, one case after another."""
    lines = []
    for (case, dtype), group in itertools.groupby(rows, key=lambda row: (row.case, row.dtype)):
        lines.append(f"{rows[0].op}  {case}  {dtype}")
        cells = [_cells(row) for row in group]
        lines += [f"  {line}" for line in Table([""] * len(cells[0]), cells, labels=1).lines()[1:]]
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    times = f"{rounded(row.median_ms, 4)} ms ({rounded(row.p20_ms, 4)}-{rounded(row.p80_ms, 4)})"
    rates = (human(row.tflop_s, "TFLOP/s") if row.tflop_s else "-", human(row.gb_s, "GB/s"))
    versus = "  ".join(f"{m:.2f}x {o} ({lo:.2f}-{hi:.2f})" for o, (m, lo, hi) in row.ratios.items())
    return row.contender, times, *rates, versus
