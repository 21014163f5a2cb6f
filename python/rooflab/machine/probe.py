"""Measures the ceilings of a device with the runtime's own kernels, clock and counters.

`rooflab.machine.measure` says how each figure is measured and keeps the result.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import rooflab as rl

from ..benchmark import Timing, latency
from .ceilings import Measured

_DTYPES = ("float32", "bfloat16", "float16", "float64")
_BUDGET_MS = 300.0  # of sampling, for each figure
_MIB = 2**20


def identify(device: object) -> dict[str, Any]:
    """What a cached result depends on: ``device``, ``name``, ``threads`` and ``version``.

    Raises
    ------
    ValueError
        If the device is not ``cpu``, ``cuda`` or ``cuda:N``, or the machine has no such GPU.
    """
    found = re.fullmatch(r"(cpu)|cuda(?::(\d+))?", str(device))
    if found is None:
        raise ValueError(f"[machine] device: expected cpu, cuda or cuda:N, got {str(device)!r}")
    if found[1]:
        return {"device": "cpu", "name": cpu_name(), "threads": rl.num_threads(), "version": rl.__version__}
    if not rl.cuda.is_available():
        raise ValueError(f"[machine] no GPU: {rl.cuda.unavailable_reason()}")
    index, count = int(found[2] or 0), rl.cuda.device_count()
    if index >= count:
        raise ValueError(f"[machine] device: expected cuda:0 .. cuda:{count - 1}, got {str(device)!r}")
    name = rl.cuda.properties(index).name
    return {"device": f"cuda:{index}", "name": name, "threads": 0, "version": rl.__version__}


def cpu_name() -> str:
    """The CPU's name as the system gives it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def cpu_cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Size of the CPU's last-level cache; 32 MiB where the system does not tell."""
    sizes: dict[int, int] = {}
    for index in root.glob("index*"):
        try:
            level = int((index / "level").read_text())
            size = re.fullmatch(r"(\d+)([KMG]?)", (index / "size").read_text().strip())
        except (OSError, ValueError):
            continue
        if size:
            sizes[level] = int(size[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[size[2]]
    return sizes[max(sizes)] if sizes and max(sizes) > 1 else 32 * _MIB


def probe(device: str) -> dict[str, Any]:
    """Measures every figure of `Ceilings` on `device`, as its constructor takes them."""
    start = time.perf_counter()
    best: dict[str, Measured] = {}
    rounds = 0
    # A disturbance of some seconds spoils one round, not both. On a slow or busy machine one must do.
    while rounds == 0 or (rounds == 1 and time.perf_counter() - start < 9):
        rounds += 1
        for name, figure in _figures(device):
            known = best.get(name)
            if known is None or (figure.median > known.median) != (name == "launch_overhead"):
                best[name] = figure
    rl.memory.empty_cache(device)
    peaks = {name.removeprefix("peak "): figure for name, figure in best.items() if name.startswith("peak ")}
    return {
        **{name: figure for name, figure in best.items() if not name.startswith("peak ")},
        "peak": peaks,
        "measured_on": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": round(time.perf_counter() - start, 2),
    }


def _figures(device: str) -> Iterator[tuple[str, Measured]]:
    """One round of measurements, each with its name."""
    if device == "cpu":
        cache = cpu_cache_bytes()
        room = _free_host_bytes() // 4
        wanted = 4 * cache
    else:
        index = int(device.partition(":")[2])
        cache = rl.cuda.properties(index).l2_bytes
        room = rl.cuda.free_memory(index) // 4
        wanted = max(16 * cache, 1024 * _MIB)
    # Under 128 MiB the cost of starting threads would show.
    large = _buffer(max(4 * _MIB, min(room, max(wanted, 128 * _MIB), 2048 * _MIB)), device)
    copy = partial(rl.copy, large)
    _warm_up(device, copy)
    yield "copy_bandwidth", _best(device, [("copy", copy)])
    yield "read_bandwidth", _best(device, _readers(large))
    del large, copy
    yield "cache_bandwidth", _cache_bandwidth(device, cache)
    for dtype in _DTYPES:
        peak = _peak(device, dtype)
        if peak is not None:
            yield f"peak {dtype}", peak
    yield "launch_overhead", _launch_overhead(device)


def _warm_up(device: str, call: Callable[[], object], seconds: float = 0.2) -> None:
    """Keeps the device busy until its clocks have risen."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()
        rl.synchronize(device)


def _free_host_bytes() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 1024 * _MIB


def _buffer(size: int, device: str) -> rl.Tensor:
    """About `size` bytes of float32 ones, in rows of 4096."""
    return rl.ones(max(1, size // 4 // 4096), 4096, device=device)


def _readers(x: rl.Tensor) -> list[tuple[str, Callable[[], object]]]:
    """Calls that read every row of `x` once and write next to nothing."""
    vector = rl.ones(4096, 1, device=str(x.device))
    return [("sum", x.sum), ("max", x.max), ("matrix-vector product", partial(rl.matmul, x, vector))]


def _work(call: Callable[[], object]) -> Any:
    """Counters around one call."""
    with rl.count() as counted:
        call()
    return counted


def _sample(device: str, call: Callable[[], object], budget_ms: float = _BUDGET_MS, least: int = 5) -> Timing:
    """As many timed calls as the budget holds, `least` to 100."""
    once = latency(call, warmup=1, repeat=1, device=device).min_ms
    repeat = int(min(100, max(least, budget_ms / max(once, 1e-4))))
    return latency(call, warmup=1, repeat=repeat, device=device)


def _rate(amount: float, timing: Timing, unit: str, how: str) -> Measured:
    """`amount` (bytes or FLOPs) a call as TB/s or TFLOP/s. The slow calls make the low percentile."""
    median, p20, p80 = (amount / ms / 1e9 for ms in (timing.median_ms, timing.p80_ms, timing.p20_ms))
    return Measured(median, p20, p80, unit, len(timing.samples_ms), how)


def _fastest(device: str, calls: Iterable[tuple[str, Callable[[], object]]]) -> list[tuple[float, str, Callable]]:
    """(milliseconds, name, call), fastest first, of the calls that this build and machine can make."""
    timed = []
    for name, call in calls:
        try:
            timed.append((_sample(device, call, budget_ms=30.0, least=3).min_ms, name, call))
        except (ValueError, rl.CudaError):
            continue
    return sorted(timed, key=lambda entry: entry[0])


def _best(device: str, calls: Iterable[tuple[str, Callable[[], object]]]) -> Measured:
    _, name, call = _fastest(device, calls)[0]
    counted = _work(call)
    moved = counted.bytes_read + counted.bytes_written
    size = counted.bytes_read / _MIB
    return _rate(moved, _sample(device, call), "TB/s", f"{name} of {size:.0f} MiB")


def _cache_bandwidth(device: str, cache: int) -> Measured:
    def reader(size: int) -> tuple[float, str, Timing]:
        _, name, call = _fastest(device, _readers(_buffer(size, device)))[0]
        counted = _work(call)
        return counted.bytes_read + counted.bytes_written, name, _sample(device, call)

    moved, name, timing = reader(cache * 3 // 8)
    how = f"{name} of {moved / _MIB:.0f} MiB"
    if device == "cpu":
        return _rate(moved, timing, "TB/s", how)
    less_moved, _, less = reader(cache // 8)
    # The fixed cost of a launch drops out of the difference; the spread is the longer read's.
    extra = moved - less_moved
    waits = [ms - less.median_ms for ms in (timing.median_ms, timing.p80_ms, timing.p20_ms)]
    if min(waits) <= 0:
        return _rate(moved, timing, "TB/s", f"{how}, launch included")
    how += f", less one of {less_moved / _MIB:.0f} MiB"
    median, p20, p80 = (extra / wait / 1e9 for wait in waits)
    return Measured(median, p20, p80, "TB/s", len(timing.samples_ms), how)


def _peak(device: str, dtype: str) -> Measured | None:
    """The fastest matmul rung; None when only the reference takes this dtype."""
    kind = device.partition(":")[0]
    rungs = [
        rung.name
        for rung in rl.variants("matmul")
        if str(rung.device).partition(":")[0] == kind and not rung.name.startswith("v0")
    ]

    def products(size: int, names: Iterable[str]) -> list[tuple[str, Callable[[], object]]]:
        a, b = (rl.randn(size, size, dtype=dtype, device=device) for _ in range(2))
        return [(name, partial(rl.matmul, a, b, variant=name)) for name in names]

    # The limit keeps a sample of the largest product well inside the budget.
    size, top, limit_ms = (256, 2048, 130.0) if device == "cpu" else (1024, 8192, 20.0)
    timed = _fastest(device, products(size, rungs))
    if not timed:
        return None
    while size < top and timed[0][0] * 8 < limit_ms:
        size *= 2
        # A rung at less than half the best one's speed will not catch up, and would take long.
        timed = _fastest(device, products(size, [name for ms, name, _ in timed if ms < 2 * timed[0][0]]))
    _, name, call = timed[0]
    return _rate(_work(call).flops, _sample(device, call), "TFLOP/s", f"matmul {name}, N={size}")


def _launch_overhead(device: str) -> Measured:
    x, calls = rl.ones(1, device=device), 100

    def burst() -> None:
        for _ in range(calls):
            x.exp()
        rl.synchronize(device)

    timing = latency(burst, warmup=3, repeat=50, device="cpu")
    median, p20, p80 = (ms * 1e3 / calls for ms in (timing.median_ms, timing.p20_ms, timing.p80_ms))
    return Measured(median, p20, p80, "us", 50, f"exp of one element, {calls} in a row")
