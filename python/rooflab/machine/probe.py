"""The probes of a device: which calls show its ceilings, timed by the runtime's clock, their work counted by it.

`rooflab.machine.measure` says how each figure is measured and keeps the result.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import rooflab as rl

from .. import Timing, latency
from ..host import cpu_cache_bytes
from . import load, rounds
from .rounds import Probe

_DTYPES = ("float32", "bfloat16", "float16", "float64")
_BUDGET_MS = 40.0  # of calls, for each probe in each round
_BURST = 100  # calls in a row, to time what one costs
_MIB = 2**20

# Operands are made for each sample and dropped after it: all probes' together could fill a small GPU.
_Make = Callable[[], Callable[[], object]]


def measure_now(device: str, progress: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Measures every figure of `Ceilings` on `device`, as its constructor takes them.

    Parameters
    ----------
    device : str
        ``"cpu"`` or ``"cuda:0"``.
    progress : callable
        Called with a line of text now and then.
    """
    start = time.perf_counter()
    # Other programs on the CPUs hardly slow a GPU's kernels; the spread between rounds tells when something does.
    read_load = load.read if device == "cpu" else lambda: None
    found = rounds.run(partial(_choose, device, progress), read_load, progress=progress)
    rl.memory.empty_cache(device)
    figures = found.ceilings()
    return {
        **{name: figure for name, figure in figures.items() if not name.startswith("peak ")},
        "peak": {name.removeprefix("peak "): one for name, one in figures.items() if name.startswith("peak ")},
        "busy": found.disturbance(),
        "measured_on": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": round(time.perf_counter() - start, 2),
    }


def _choose(device: str, progress: Callable[[str], None] = lambda text: None) -> list[Probe]:
    """The probes that two choices, one after the other, find best: a short disturbance spoils only one of them."""
    probes = {}
    for choice in (1, 2):
        for probe in _probes(device):
            probes[probe.name, probe.how] = probe
            progress(f"choosing kernels, {choice} of 2: {probe.name.replace('_', ' ')} by {probe.how}")
    return list(probes.values())


def _probes(device: str) -> Iterator[Probe]:
    """Every figure's probe, with the kernel and the size that show it best now."""
    room = rl.memory.available(device) // 4
    if device == "cpu":
        cache = cpu_cache_bytes()
        wanted = 4 * cache
    else:
        cache = rl.cuda.properties(int(device.partition(":")[2])).l2_bytes
        wanted = max(16 * cache, 1024 * _MIB)
    # Under 128 MiB the cost of starting threads would show.
    large = max(4 * _MIB, min(room, max(wanted, 128 * _MIB), 2048 * _MIB))

    def copy() -> Callable[[], object]:
        return partial(rl.copy, _buffer(large, device))

    _warm_up(device, copy())
    yield _stream("copy_bandwidth", device, [("copy", copy)])
    yield _stream("read_bandwidth", device, _readers(large, device))
    yield _cache_bandwidth(device, cache)
    yield from filter(None, (_peak(device, dtype) for dtype in _DTYPES))
    yield _launch_overhead(device)


def _warm_up(device: str, call: Callable[[], object], seconds: float = 0.2) -> None:
    """Keeps the device busy until its clocks have risen."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()
        rl.synchronize(device)


def _buffer(size: int, device: str) -> rl.Tensor:
    """About `size` bytes of float32 ones, in rows of 4096."""
    return rl.ones(max(1, size // 4 // 4096), 4096, device=device)


def _readers(size: int, device: str) -> list[tuple[str, _Make]]:
    """Calls that read every row of a buffer once and write next to nothing."""

    def product() -> Callable[[], object]:
        return partial(rl.matmul, _buffer(size, device), rl.ones(4096, 1, device=device))

    return [
        ("sum", lambda: _buffer(size, device).sum),
        ("amax", lambda: _buffer(size, device).amax),
        ("matrix-vector product", product),
    ]


def _work(call: Callable[[], object]) -> Any:
    """Counters around one call."""
    with rl.count() as counted:
        call()
    return counted


def _timed(device: str, make: _Make, budget_ms: float = _BUDGET_MS) -> Timing:
    """As many calls as the budget holds, 3 to 100, after two that warm up."""
    call = make()
    once = latency(call, warmup=1, repeat=1, device=device).min_ms
    return latency(call, warmup=0, repeat=int(min(100, max(3, budget_ms / max(once, 1e-4)))), device=device)


def _rates(device: str, make: _Make, amount: float) -> list[float]:
    """TB/s or TFLOP/s of each call, which moves `amount` bytes or does `amount` FLOPs."""
    return [amount / ms / 1e9 for ms in _timed(device, make).samples_ms]


def _fastest(device: str, makes: Iterable[tuple[str, _Make]]) -> list[tuple[float, str, _Make]]:
    """(milliseconds, name, make), fastest first, of the calls that this build and machine can make."""
    timed = []
    for name, make in makes:
        try:
            timed.append((_timed(device, make, budget_ms=20.0).min_ms, name, make))
        except (ValueError, rl.CudaError):
            continue
    return sorted(timed, key=lambda entry: entry[0])


def _stream(name: str, device: str, makes: Sequence[tuple[str, _Make]]) -> Probe:
    _, kernel, make = _fastest(device, makes)[0]
    counted = _work(make())
    moved = counted.bytes_read + counted.bytes_written
    how = f"{kernel} of {counted.bytes_read / _MIB:.0f} MiB"
    return Probe(name, "TB/s", how, lambda: _rates(device, make, moved))


def _cache_bandwidth(device: str, cache: int) -> Probe:
    whole = _stream("cache_bandwidth", device, _readers(cache * 3 // 8, device))
    if device == "cpu":
        return whole
    _, name, make = _fastest(device, _readers(cache * 3 // 8, device))[0]
    less_make = dict(_readers(cache // 8, device))[name]
    moved, less_moved = _work(make()).bytes_read, _work(less_make()).bytes_read

    def slope() -> list[float]:
        more_ms, less_ms = _middle_ms(_timed(device, make)), _middle_ms(_timed(device, less_make))
        return [(moved - less_moved) / max(more_ms - less_ms, 1e-6) / 1e9]

    # The fixed cost of a launch drops out of the difference.
    how = f"{name} of {moved / _MIB:.0f} MiB, less one of {less_moved / _MIB:.0f} MiB"
    return Probe("cache_bandwidth", "TB/s", how, slope)


def _middle_ms(timing: Timing) -> float:
    """Mean of the samples from the 20th to the 80th percentile: finer than a median of ticks of the GPU's clock."""
    samples = timing.samples_ms
    return float(samples[(samples >= timing.p20_ms) & (samples <= timing.p80_ms)].mean())


def _peak(device: str, dtype: str) -> Probe | None:
    """The fastest matmul rung; None when only the reference takes this dtype."""
    kind = device.partition(":")[0]
    rungs = [
        rung.name
        for rung in rl.variants("matmul")
        if str(rung.device).partition(":")[0] == kind and not rung.name.startswith("v0")
    ]

    def product(size: int, variant: str) -> Callable[[], object]:
        a, b = (rl.randn(size, size, dtype=dtype, device=device) for _ in range(2))
        return partial(rl.matmul, a, b, variant=variant)

    def products(size: int, names: Iterable[str]) -> list[tuple[str, _Make]]:
        return [(name, partial(product, size, name)) for name in names]

    # The limit keeps a round short.
    size, top, limit_ms = (256, 2048, 130.0) if device == "cpu" else (1024, 8192, 20.0)
    timed = _fastest(device, products(size, rungs))
    if not timed:
        return None
    while size < top and timed[0][0] * 8 < limit_ms:
        size *= 2
        # A rung at less than half the best one's speed will not catch up, and would take long.
        timed = _fastest(device, products(size, [name for ms, name, _ in timed if ms < 2 * timed[0][0]]))
    _, name, make = timed[0]
    flops = _work(make()).flops
    return Probe(f"peak {dtype}", "TFLOP/s", f"matmul {name}, N={size}", lambda: _rates(device, make, flops))


def _launch_overhead(device: str) -> Probe:
    def burst() -> None:
        for _ in range(_BURST):
            x.exp()
        rl.synchronize(device)

    x = rl.ones(1, device=device)
    return Probe(
        "launch_overhead",
        "us",
        f"exp of one element, {_BURST} in a row",
        lambda: [ms * 1e3 / _BURST for ms in latency(burst, warmup=2, repeat=10, device="cpu").samples_ms],
    )
