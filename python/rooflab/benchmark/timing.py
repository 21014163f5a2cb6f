"""How long a call takes: every sample kept, the unit in every name."""

from __future__ import annotations

import functools
import numbers
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _core, html
from ..units import human
from .touched import device_of

stand_in: Callable[[Callable[[], object], int, int], np.ndarray] | None = None
"""A test's clock in place of the machine's: takes the call, `warmup` and `repeat`, and gives the samples in ms."""

_COLD_BYTES = 256_000_000  # more than any last-level cache of a GPU; several times that of most CPUs


@dataclass(frozen=True)
class Timing:
    """Samples of one call, in milliseconds.

    Attributes
    ----------
    samples_ms : numpy.ndarray
        One entry per call, float64, in the order of the calls.
    overhead_ms : float
        Median of the same measurement around a function that does nothing; it is *not* subtracted.
    device : str
        "cpu" (monotonic clock) or "cuda:N" (events on that GPU's current stream).
    """

    samples_ms: np.ndarray
    overhead_ms: float
    device: str

    @property
    def median_ms(self) -> float:
        return float(np.median(self.samples_ms))

    @property
    def mean_ms(self) -> float:
        return float(np.mean(self.samples_ms))

    @property
    def std_ms(self) -> float:
        return float(np.std(self.samples_ms))

    @property
    def min_ms(self) -> float:
        return float(np.min(self.samples_ms))

    @property
    def max_ms(self) -> float:
        return float(np.max(self.samples_ms))

    @property
    def p20_ms(self) -> float:
        return float(np.percentile(self.samples_ms, 20))

    @property
    def p80_ms(self) -> float:
        return float(np.percentile(self.samples_ms, 80))

    def __str__(self) -> str:
        unit, scale = ("us", 1e3) if self.median_ms < 0.1 else ("ms", 1.0)
        if len(self.samples_ms) == 1:
            return f"{self.median_ms * scale:.4g} {unit} (one call)"
        return (
            f"{self.median_ms * scale:.4g} {unit} (p20 {self.p20_ms * scale:.4g}, "
            f"p80 {self.p80_ms * scale:.4g}, n={len(self.samples_ms)})"
        )

    def __repr__(self) -> str:
        return f"Timing({self}, on {self.device})"

    def _repr_html_(self) -> str:
        figures = {"median": self.median_ms, "p20": self.p20_ms, "p80": self.p80_ms, "mean": self.mean_ms,
                   "std": self.std_ms, "least": self.min_ms, "most": self.max_ms}  # fmt: skip
        shown = figures if len(self.samples_ms) > 1 else {"time": self.median_ms}
        cells = [len(self.samples_ms), *(human(ms, "ms") for ms in shown.values())]
        clock = "" if not self.overhead_ms else f" A call that does nothing takes {human(self.overhead_ms, 'ms')}."
        return html.table(["calls", *shown], [cells], f"On {self.device}.{clock}")


def synchronize(device: str | None = None) -> None:
    """Wait for the GPU's queued work; on the CPU there is never any.

    Parameters
    ----------
    device : str, optional
        "cpu" or "cuda:N"; every GPU when None.

    Raises
    ------
    ValueError
        For another name of a device.
    """
    if device is None:
        for index in range(_core.cuda.device_count()):
            _core.cuda.synchronize(index)
    elif named := re.fullmatch(r"cuda(?::(\d+))?", device):
        _core.cuda.synchronize(int(named[1] or 0))
    elif device != "cpu":
        raise ValueError(f'[synchronize] device: expected "cpu", "cuda" or "cuda:N", got "{device}"')


def device_index(device: str) -> int:
    """The number of the GPU that "cuda" or "cuda:N" names.

    Examples
    --------
    >>> device_index("cuda"), device_index("cuda:1")
    (0, 1)
    """
    return int(device.partition(":")[2] or 0)


def _sample(device: str, call: Callable[[], object], repeat: int, evict: Callable[[], object]) -> np.ndarray:
    if device == "cpu":
        return _sample_cpu(call, repeat, evict)
    return _sample_cuda(device_index(device), call, repeat, evict)


def _sample_cpu(call: Callable[[], object], repeat: int, evict: Callable[[], object]) -> np.ndarray:
    samples = np.empty(repeat)
    for i in range(repeat):
        evict()
        start = time.perf_counter_ns()
        call()
        samples[i] = (time.perf_counter_ns() - start) * 1e-6
    return samples


def _sample_cuda(index: int, call: Callable[[], object], repeat: int, evict: Callable[[], object]) -> np.ndarray:
    events = [(_core.cuda.Event(device=index), _core.cuda.Event(device=index)) for _ in range(repeat)]
    for start, end in events:
        evict()
        start.record()
        call()
        end.record()
    synchronize()
    return np.array([start.elapsed_ms(end) for start, end in events])


@functools.cache
def _overhead_ms(device: str) -> float:
    return float(np.median(_sample(device, lambda: None, 200, lambda: None)))


def _evictor(device: str) -> Callable[[], object]:
    """A call that fills the caches with something else, by writing a buffer larger than they are."""
    buffer = _core.empty(_COLD_BYTES // 4, dtype="float32", device=device)
    return lambda: buffer.fill_(0.0)


def latency(
    fn: Callable,
    *args,
    warmup: int = 10,
    repeat: int = 100,
    l2: str = "warm",
    device: str | None = None,
    **kwargs,
) -> Timing:
    """Time `fn(*args, **kwargs)`: `warmup` calls unmeasured, then `repeat` calls measured one by one.

    On the GPU each call is bracketed by events on the current stream; on the CPU by a monotonic clock.

    Parameters
    ----------
    fn : callable
        Anything: a rooflab op, a Python function, a PyTorch module.
    warmup, repeat : int
        Calls before measuring (>= 0) and calls measured (>= 1).
    l2 : {"warm", "cold"}
        "cold" overwrites the caches before every call, outside the measured time.
    device : str, optional
        Which clock: "cpu" or "cuda:N". When None, the first GPU that holds an array within reach of the call, or "cpu".
        Within reach are arguments, what `fn` closes over or names, a module's parameters, and containers of these.

    Returns
    -------
    Timing
        All samples; `median_ms`, `p20_ms`, `p80_ms`, `mean_ms`, `std_ms`.

    Raises
    ------
    ValueError
        If `warmup`, `repeat` or `l2` is out of range.
    TypeError
        If `warmup` or `repeat` is no integer.

    Examples
    --------
    >>> import rooflab as rl
    >>> timing = rl.latency(rl.exp, rl.randn(1000), warmup=1, repeat=5)
    >>> len(timing.samples_ms)
    5
    """
    if not callable(fn):
        raise ValueError(f"[latency] fn: expected a callable, got {type(fn).__name__}")
    if not isinstance(warmup, numbers.Integral) or not isinstance(repeat, numbers.Integral):
        raise TypeError(f"[latency] warmup, repeat: expected integers, got {warmup!r} and {repeat!r}")
    if warmup < 0 or repeat < 1:
        raise ValueError(f"[latency] expected warmup >= 0 and repeat >= 1, got {warmup} and {repeat}")
    if l2 not in ("warm", "cold"):
        raise ValueError(f'[latency] l2: expected "warm" or "cold", got {l2!r}')
    device = device or device_of(fn, args, kwargs)
    call = functools.partial(fn, *args, **kwargs)
    if stand_in is not None:
        return Timing(stand_in(call, warmup, repeat), 0.0, device)
    evict = _evictor(device) if l2 == "cold" else lambda: None
    for _ in range(warmup):
        call()
    synchronize(device)
    return Timing(_sample(device, call, repeat, evict), _overhead_ms(device), device)


def latency_one_time(fn: Callable, *args, **kwargs) -> Timing:
    """Time a single call with no warm-up, as one would without knowing better.

    The first call of anything pays for work that later calls are spared: page faults, cold caches, lazy loading. The
    Timing returned holds one sample.

    Examples
    --------
    >>> import rooflab as rl
    >>> len(rl.latency_one_time(rl.exp, rl.randn(1000)).samples_ms)
    1
    """
    return latency(fn, *args, warmup=0, repeat=1, **kwargs)
