"""How long a call takes: every sample kept, the unit in every name."""

from __future__ import annotations

import functools
import math
import numbers
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._calls import check_function, check_keywords
from .._device import device as named
from ..results import ReadableMixin, Table
from ..units import human
from . import sampling
from .touched import device_of

stand_in: Callable[[Callable[[], object], int, int], np.ndarray] | None = None
"""A test's clock in place of the machine's: takes the call, `warmup` and `repeat`, and gives the samples in ms."""


@dataclass(frozen=True)
class Timing(ReadableMixin):
    """Samples of one call, in milliseconds.

    Attributes
    ----------
    samples_ms : numpy.ndarray
        One entry per call, float64, in the order of the calls. It is a copy, and cannot be written to.
    overhead_ms : float
        Median of the same measurement around a function that does nothing; it is *not* subtracted.
    device : str
        "cpu" (monotonic clock) or "cuda:N" (events on that GPU's current stream, or all of its streams).
    rounds : int
        The samples were taken in that many rounds of equal length, between which buffers and threads may move.

    Raises
    ------
    ValueError
        For no samples, a time that is negative or not finite, and fewer than one round or more rounds than samples.
    """

    samples_ms: np.ndarray
    overhead_ms: float
    device: str
    rounds: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        wrong = self.samples_ms[~((self.samples_ms >= 0) & (self.samples_ms < math.inf))]
        if not len(self.samples_ms) or len(wrong):
            got = wrong[0] if len(wrong) else "none"
            raise ValueError(f"[Timing] samples_ms: expected one or more, finite and none below 0, got {got}")
        if not 0 <= self.overhead_ms < math.inf:
            raise ValueError(f"[Timing] overhead_ms: expected a finite number of 0 or more, got {self.overhead_ms}")
        if not 1 <= self.rounds <= len(self.samples_ms):
            raise ValueError(f"[Timing] rounds: expected 1 to {len(self.samples_ms)} samples, got {self.rounds}")

    @property
    def median_ms(self) -> float:
        """The median of the samples, in milliseconds."""
        return float(np.median(self.samples_ms))

    @property
    def round_medians_ms(self) -> list[float]:
        """The median of each round. They lie apart where a call's time depends on the place of its buffers."""
        return [float(np.median(part)) for part in np.array_split(self.samples_ms, self.rounds)]

    @property
    def median_interval_ms(self) -> tuple[float, float]:
        """Where the median lies, with 95 % confidence; (NaN, NaN) with fewer than 6 samples, which cannot say it.

        It rests on the order of the samples alone, whatever their distribution. It encloses the medians of all rounds,
        because samples of one round are more alike than those of different rounds are.
        """
        ordered = np.sort(self.samples_ms)
        outside = _outside(len(ordered))
        if not outside:
            return float("nan"), float("nan")
        low, high = float(ordered[outside - 1]), float(ordered[-outside])
        return min(low, *self.round_medians_ms), max(high, *self.round_medians_ms)

    @property
    def mean_ms(self) -> float:
        """Their mean, in milliseconds."""
        return float(np.mean(self.samples_ms))

    @property
    def std_ms(self) -> float:
        """Their standard deviation, in milliseconds; the divisor is their number."""
        return float(np.std(self.samples_ms))

    @property
    def min_ms(self) -> float:
        """The shortest sample, in milliseconds."""
        return float(np.min(self.samples_ms))

    @property
    def max_ms(self) -> float:
        """The longest sample, in milliseconds."""
        return float(np.max(self.samples_ms))

    @property
    def p20_ms(self) -> float:
        """Milliseconds that 20 % of the samples stay below."""
        return float(np.percentile(self.samples_ms, 20))

    @property
    def p80_ms(self) -> float:
        """Milliseconds that 80 % of the samples stay below."""
        return float(np.percentile(self.samples_ms, 80))

    def __hash__(self) -> int:
        return hash((*self.samples_ms.tolist(), self.overhead_ms, self.device, self.rounds))

    def __str__(self) -> str:
        median, p20, p80 = (human(ms, "ms", 4) for ms in (self.median_ms, self.p20_ms, self.p80_ms))
        n = len(self.samples_ms)
        return f"{median} (one call)" if n == 1 else f"{median} (p20 {p20}, p80 {p80}, n={n})"

    def __repr__(self) -> str:
        return f"Timing({self}, on {self.device})"

    def _figures(self) -> Table:
        figures: dict[str, Any] = {"device": self.device, "calls": len(self.samples_ms), "rounds": self.rounds}
        names = ("median_ms", "p20_ms", "p80_ms", "mean_ms", "std_ms", "min_ms", "max_ms", "overhead_ms")
        figures |= {name: getattr(self, name) for name in names}
        figures["median_low_ms"], figures["median_high_ms"] = self.median_interval_ms
        return Table.of([figures])

    def _table(self) -> Table:
        figures = {"median": self.median_ms, "p20": self.p20_ms, "p80": self.p80_ms, "mean": self.mean_ms,
                   "std": self.std_ms, "least": self.min_ms, "most": self.max_ms}  # fmt: skip
        shown = figures if len(self.samples_ms) > 1 else {"time": self.median_ms}
        cells = [len(self.samples_ms), *(human(ms, "ms") for ms in shown.values())]
        notes = [f"On {self.device}."]
        if _outside(len(self.samples_ms)):
            low, high = (human(ms, "ms") for ms in self.median_interval_ms)
            notes.append(f"The median lies between {low} and {high} with 95 % confidence.")
        if self.overhead_ms:
            notes.append(f"A call that does nothing takes {human(self.overhead_ms, 'ms')}.")
        return Table(["calls", *shown], [cells], note=" ".join(notes))


def _outside(n: int) -> int:
    """How many of `n` samples lie at each end outside of the 95 % interval of the median, the one at its edge included.

    Each sample is below the median in half of all cases, so the number below it is binomial. 0 for fewer than 6.

    Examples
    --------
    >>> [_outside(n) for n in (5, 6, 20, 100)]
    [0, 1, 6, 40]
    """
    tail, count = 0.0, 0
    while count < n:
        tail += math.exp(math.lgamma(n + 1) - math.lgamma(count + 1) - math.lgamma(n - count + 1) - n * math.log(2))
        if tail > 0.025:
            break
        count += 1
    return count


class _Default(int):
    """A default that can be told from the same number that a caller wrote."""


_MOST_SAMPLES = sys.maxsize // 8  # of 8 bytes each
_WARMUP, _REPEAT = _Default(10), _Default(100)


def latency(
    fn: Callable,
    *args: Any,
    warmup: int = _WARMUP,
    repeat: int = _REPEAT,
    l2: str | None = None,
    device: str | None = None,
    budget_s: float | None = None,
    **kwargs: Any,
) -> Timing:
    """Time `fn(*args, **kwargs)`: `warmup` calls unmeasured, then `repeat` calls measured one by one.

    On the GPU each call is bracketed by events on the current stream; on the CPU by a monotonic clock. Where GPUs work
    on after these events, in other streams (of rooflab or of PyTorch) or on another GPU, each call is timed by the host
    instead, from GPUs that are idle to GPUs that are idle. To find that out the call is made a few times more. What
    cannot be found out so is work in another stream that is done before the host submits the next call, such as a
    kernel of 5 us: time that in the current stream.

    From 20 samples on they are taken in up to six rounds, with a short pause between them and, on the CPU, new memory
    for results and scratch. Each round begins with one of the unmeasured calls; the first has all the others. So the
    percentiles hold what the place of buffers and threads changes; `round_medians_ms` shows it alone, and
    `median_interval_ms` says how well the median is known. A measurement of more than two seconds shows a progress bar
    in a terminal, and in a notebook that has ipywidgets.

    Parameters
    ----------
    fn : callable
        Anything: a rooflab op, a Python function, a PyTorch module. Its keywords follow its arguments. If it has one
        that is called `warmup`, `repeat`, `l2`, `device` or `budget_s` too, write
        ``rl.latency(lambda: fn(..., device="cuda"))``.
    warmup, repeat : int
        Calls before measuring (>= 0) and calls measured (>= 1).
    l2 : {"warm", "cold"}, optional
        "cold" overwrites the caches before every call, outside the measured time. The default is "warm".
    device : str, optional
        Which clock: "cpu" or "cuda:N". When None, the first GPU that holds an array within reach of the call, or "cpu".
        Within reach are arguments, what `fn` closes over or names, a module's parameters, and containers of these.
    budget_s : float, optional
        Seconds that all calls together may take, for calls that are slow. Half of it at most goes to unmeasured calls,
        of which there is one at least. Then there are as many measured calls as the rest has room for, `repeat` at
        most and one at least. A call that is running is never cut short.

    Returns
    -------
    Timing
        All samples; `median_ms`, `p20_ms`, `p80_ms`, `mean_ms`, `std_ms`.

    Raises
    ------
    ValueError
        If `warmup`, `repeat`, `l2` or `budget_s` is out of range; for a `device` that is neither the CPU nor a GPU;
        inside a function that `rl.compile` records, which runs nothing.
    TypeError
        If `warmup` or `repeat` is no integer; if `fn` is a generator or async function, or returns an iterator, a
        coroutine or a future, alone or in a tuple, whose work is not part of the call; if `fn` has a keyword that is
        given and that latency has as well.

    Warns
    -----
    UserWarning
        When there is a GPU, and the call reaches so many objects that not all were searched for arrays on it. When an
        argument is on a meta device, where nothing runs, and no `device` is given.

    Examples
    --------
    >>> import rooflab as rl
    >>> timing = rl.latency(rl.exp, rl.randn(1000), warmup=1, repeat=5)
    >>> len(timing.samples_ms)
    5
    """
    own = {"warmup": warmup is not _WARMUP, "repeat": repeat is not _REPEAT}
    given = {
        name: True for name, is_given in {**own, "l2": l2, "device": device, "budget_s": budget_s}.items() if is_given
    }
    check_function("latency", fn)
    check_keywords("latency", fn, given)
    return _timed(fn, args, kwargs, warmup, repeat, "warm" if l2 is None else l2, device, budget_s)


def _warn_without_memory(args: tuple, kwargs: dict[str, Any]) -> None:
    """Say that nothing runs on a meta device: what is timed there is the host alone."""
    devices = [str(one.device) for one in (*args, *kwargs.values()) if isinstance(one, _core.Tensor)]
    if where := next((device for device in devices if device.startswith("meta")), None):
        warnings.warn(
            f"[latency] an argument is on {where}, where nothing runs: this is the time of the host alone. rl.profile "
            "has a model of the device's time. device='cpu' asks for the host's time without this warning",
            stacklevel=4,
        )


def _timed(
    fn: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    warmup: int,
    repeat: int,
    l2: str,
    device: str | None,
    budget_s: float | None = None,
) -> Timing:
    for value in (warmup, repeat):
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"[latency] warmup, repeat: expected integers, got {warmup!r} and {repeat!r}")
    if warmup < 0 or repeat < 1:
        raise ValueError(f"[latency] expected warmup >= 0 and repeat >= 1, got {warmup} and {repeat}")
    if repeat > _MOST_SAMPLES:
        raise ValueError(f"[latency] repeat: expected at most {_MOST_SAMPLES}, got {repeat}")
    if l2 not in ("warm", "cold"):
        raise ValueError(f'[latency] l2: expected "warm" or "cold", got {l2!r}')
    if budget_s is not None and (isinstance(budget_s, bool) or not isinstance(budget_s, numbers.Real)):
        raise TypeError(f"[latency] budget_s: expected seconds, got {budget_s!r}")
    if budget_s is not None and not budget_s > 0:
        raise ValueError(f"[latency] budget_s: expected more than 0 seconds, got {budget_s}")
    if device is None:
        device = device_of(fn, args, kwargs) if _core.cuda.device_count() else "cpu"
        _warn_without_memory(args, kwargs)
    elif named(device).type == "meta":
        raise ValueError(f"[latency] device: expected cpu, cuda or cuda:N, got {device!r}, where nothing runs")
    elif named(device).type == "cpu":
        device = "cpu"  # "cpu:0" too
    call = functools.partial(fn, *args, **kwargs)
    if stand_in is not None:
        return Timing(stand_in(call, warmup, repeat), 0.0, device)
    budget = math.inf if budget_s is None else float(budget_s)
    evict = sampling.evictor(device) if l2 == "cold" else sampling.nothing
    samples, rounds, overhead = sampling.sample_in_rounds(device, call, int(warmup), int(repeat), evict, budget)
    return Timing(samples, overhead, device, rounds)


def latency_one_time(fn: Callable, *args: Any, **kwargs: Any) -> Timing:
    """Time a single call with no warm-up, as one would without knowing better.

    The first call of anything pays for work that later calls are spared: page faults, cold caches, lazy loading. The
    Timing returned holds one sample.

    Parameters
    ----------
    fn : callable
        What to time, with its arguments after it; all keywords are its own.

    Returns
    -------
    Timing
        One sample, in `samples_ms`.

    Raises
    ------
    ValueError
        Inside a function that `rl.compile` records, which runs nothing.
    TypeError
        If `fn` is a generator or async function.

    Examples
    --------
    >>> import rooflab as rl
    >>> len(rl.latency_one_time(rl.exp, rl.randn(1000)).samples_ms)
    1
    """
    check_function("latency_one_time", fn)
    return _timed(fn, args, kwargs, 0, 1, "warm", None)
