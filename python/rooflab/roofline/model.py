"""The roofs of a machine, and where work of a given arithmetic intensity stands under them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .._numbers import number, positive, whole
from ..results import ReadableMixin
from .datasheets import SPECS
from .machine_spec import dtype_name

_ITEMSIZE = {"float64": 8, "float32": 4, "tfloat32": 4, "float16": 2, "bfloat16": 2}
_BYTES = ("bytes_read", "bytes_written")


class Machine(Protocol):
    """What a roofline needs of a machine; `MachineSpec` (datasheet) and `Ceilings` (measured) have it."""

    @property
    def name(self) -> str: ...
    @property
    def bandwidth_tb_s(self) -> float: ...
    @property
    def peak_tflop_s(self) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Point(ReadableMixin):
    """One piece of work on a roofline plot.

    Attributes
    ----------
    name : str
        Its label.
    intensity : float
        Arithmetic intensity, FLOP/byte.
    tflop_s, p20_tflop_s, p80_tflop_s : float or None
        Measured speed in TFLOP/s: the median, and the 20th and 80th percentiles. None when only the
        intensity is known; the point then belongs on the roof.
    series : str
        Points of one series share a colour and a line in the legend.

    Raises
    ------
    ValueError
        If a figure is not finite and positive, or the percentiles do not enclose the median.
    """

    name: str
    intensity: float
    tflop_s: float | None = None
    p20_tflop_s: float | None = None
    p80_tflop_s: float | None = None
    series: str = ""

    def __post_init__(self) -> None:
        for figure in ("intensity", "tflop_s", "p20_tflop_s", "p80_tflop_s"):
            value = getattr(self, figure)
            if value is not None or figure == "intensity":
                object.__setattr__(self, figure, positive(f"[roofline] point {self.name!r}: {figure}", value))
        if self.tflop_s is None and (self.p20_tflop_s is not None or self.p80_tflop_s is not None):
            raise ValueError(f"[roofline] point {self.name!r}: percentiles given without tflop_s, the median")
        low, high = self.p20_tflop_s or self.tflop_s, self.p80_tflop_s or self.tflop_s
        if self.tflop_s is not None and not low <= self.tflop_s <= high:  # type: ignore[operator]
            raise ValueError(
                f"[roofline] point {self.name!r}: expected p20 <= median <= p80, got {low}, {self.tflop_s}, {high}"
            )

    @property
    def measured(self) -> bool:
        """Whether the point has a measured speed."""
        return self.tflop_s is not None


def _machine(machine: Machine | str) -> Machine:
    return SPECS[machine] if isinstance(machine, str) else machine


def peak(machine: Machine | str, dtype: object = "float32") -> float:
    """Dense peak of `machine` in `dtype`, TFLOP/s.

    Parameters
    ----------
    machine : MachineSpec, Ceilings or str
        A datasheet, the measured ceilings of this machine, or a name in `SPECS`.
    dtype : str or dtype
        The dtype whose peak counts.

    Returns
    -------
    float
        TFLOP/s.

    Raises
    ------
    ValueError
        If the machine has no figure for that dtype, or the name is unknown.

    Examples
    --------
    >>> from rooflab.roofline import peak
    >>> peak("A6000", "bf16")
    154.8
    """
    found, name = _machine(machine), dtype_name(dtype)
    if name not in found.peak_tflop_s:
        raise ValueError(f"[roofline] {found.name} has no {name} peak; it has {', '.join(found.peak_tflop_s)}")
    return found.peak_tflop_s[name]


def ridge(machine: Machine | str, dtype: object = "float32") -> float:
    """Arithmetic intensity, in FLOP/byte, from which `machine` can be compute-bound: peak over bandwidth.

    Parameters
    ----------
    machine : MachineSpec, Ceilings or str
        A datasheet, the measured ceilings of this machine, or a name in `SPECS`.
    dtype : str or dtype
        The dtype whose peak counts. Use the dtype whose bytes you count: a float32 peak over bfloat16 bytes
        means nothing.

    Returns
    -------
    float
        FLOP/byte.

    Raises
    ------
    ValueError
        For a name that is not known, and a dtype that the machine has no peak for.

    Examples
    --------
    >>> from rooflab.machine import ridge
    >>> round(ridge("A6000", "float32"), 1)
    50.4
    """
    return peak(machine, dtype) / _machine(machine).bandwidth_tb_s


def attainable(machine: Machine | str, intensity: float, dtype: object = "float32") -> float:
    """The roof over `intensity` (FLOP/byte): the most TFLOP/s that `machine` can reach there.

    Parameters
    ----------
    machine : MachineSpec, Ceilings or str
        A datasheet, the measured ceilings of this machine, or a name in `SPECS`.
    intensity : float
        FLOP/byte.
    dtype : str or dtype
        The dtype whose peak counts.

    Returns
    -------
    float
        TFLOP/s.

    Raises
    ------
    ValueError
        For a name that is not known, and a dtype that the machine has no peak for, and
        unless the intensity is finite and positive.

    Examples
    --------
    >>> from rooflab.machine import attainable
    >>> attainable("A6000", 0.5)  # a float32 matrix-vector product, in TFLOP/s
    0.384
    >>> attainable("A6000", 1000)
    38.7
    """
    return min(peak(machine, dtype), _machine(machine).bandwidth_tb_s * positive("[roofline] intensity", intensity))


def bound(machine: Machine | str, intensity: float, dtype: object = "float32") -> str:
    """Which roof is the lower one at `intensity` (FLOP/byte): ``"memory"`` or ``"compute"``.

    Parameters
    ----------
    machine : MachineSpec, Ceilings or str
        A datasheet, the measured ceilings of this machine, or a name in `SPECS`.
    intensity : float
        FLOP/byte.
    dtype : str or dtype
        The dtype whose peak counts.

    Returns
    -------
    str
        "memory" below the ridge, "compute" from the ridge on.

    Raises
    ------
    ValueError
        For a name that is not known, and a dtype that the machine has no peak for, and
        unless the intensity is finite and positive.

    Examples
    --------
    >>> from rooflab.machine import bound
    >>> bound("A6000", 0.5), bound("A6000", 1024 / 6)
    ('memory', 'compute')
    """
    return "memory" if positive("[roofline] intensity", intensity) < ridge(machine, dtype) else "compute"


def fraction_of_roof(machine: Machine | str, point: Point, dtype: object = "float32") -> float:
    """Share of the attainable speed that a measured point reaches; 1.0 is on the roof.

    Parameters
    ----------
    machine : MachineSpec, Ceilings or str
        A datasheet, the measured ceilings of this machine, or a name in `SPECS`.
    point : Point
        With a measured speed.
    dtype : str or dtype
        The dtype whose peak counts.

    Returns
    -------
    float
        Above 1 where the point is faster than the roof allows: then a ceiling is too low, or the work is miscounted.

    Raises
    ------
    ValueError
        If the point was not measured.

    Examples
    --------
    >>> from rooflab.roofline import Point, fraction_of_roof
    >>> fraction_of_roof("A6000", Point("gemv", intensity=0.5, tflop_s=0.192))
    0.5
    """
    if point.tflop_s is None:
        raise ValueError(f"[roofline] point {point.name!r} was not measured: it has no tflop_s")
    return point.tflop_s / attainable(machine, point.intensity, dtype)


def gemm_intensity(m: int, n: int, k: int, dtype: object = "float32") -> float:
    """Arithmetic intensity of an (M, K) x (K, N) product, FLOP/byte, with each matrix moved once.

    2MNK FLOPs over (MK + KN + MN) elements. For square float32 matrices this is N/6.

    Parameters
    ----------
    m, n, k : int
        M, N and K.
    dtype : str or dtype
        Of the matrices.

    Returns
    -------
    float
        FLOP/byte.

    Raises
    ------
    ValueError
        For a size that is not a whole number of at least 1, and a dtype that is not known.

    Examples
    --------
    >>> from rooflab.roofline import gemm_intensity
    >>> gemm_intensity(1536, 1536, 1536)
    256.0
    """
    m, n, k = (whole(f"[roofline] {letter}", size, least=1) for letter, size in zip("MNK", (m, n, k), strict=True))
    return 2 * m * n * k / ((m * k + k * n + m * n) * _ITEMSIZE[dtype_name(dtype)])


def gemv_intensity(n: int, dtype: object = "float32") -> float:
    """Arithmetic intensity of an (N, N) x (N, 1) product, FLOP/byte. In float32 it tends to 0.5.

    Parameters
    ----------
    n : int
        N.
    dtype : str or dtype
        Of the matrix and the vectors.

    Returns
    -------
    float
        FLOP/byte.

    Raises
    ------
    ValueError
        For a size that is not a whole number of at least 1, and a dtype that is not known.

    Examples
    --------
    >>> from rooflab.roofline import gemv_intensity
    >>> round(gemv_intensity(1024), 4)
    0.499
    """
    return gemm_intensity(n, 1, n, dtype)


def smallest_compute_bound_n(machine: Machine | str, dtype: object = "float32") -> int:
    """Smallest N for which an N x N x N product is compute-bound on `machine`.

    Its intensity 2N / (3 * itemsize) must reach the ridge, so N = ceil(3 * itemsize * ridge / 2).

    Parameters
    ----------
    machine : MachineSpec, Ceilings or str
        A datasheet, the measured ceilings of this machine, or a name in `SPECS`.
    dtype : str or dtype
        Of the matrices, and of the peak.

    Returns
    -------
    int
        N.

    Raises
    ------
    ValueError
        For a name that is not known, and a dtype that the machine has no peak for.

    Examples
    --------
    >>> from rooflab.roofline import smallest_compute_bound_n
    >>> smallest_compute_bound_n("A6000", "float32")
    303
    """
    size = max(1, math.ceil(1.5 * _ITEMSIZE[dtype_name(dtype)] * ridge(machine, dtype)) - 1)
    while bound(machine, gemm_intensity(size, size, size, dtype), dtype) == "memory":
        size += 1
    return size


def measured_point(name: str, cost: Any, timing: Any, series: str = "") -> Point:
    """The roofline point of work whose cost is known and whose latency was measured.

    Parameters
    ----------
    name : str
        Its label.
    cost : Cost or counters
        Anything with ``flops``, ``bytes_read`` and ``bytes_written``: an `rl.cost` result, or `rl.count`'s
        counters around one call.
    timing : Timing
        The latency of one call: ``median_ms``, ``p20_ms`` and ``p80_ms``.

    Returns
    -------
    Point
        Its p20 speed comes from the p80 latency and the other way round.

    Raises
    ------
    ValueError
        If the work has no FLOPs or moves no bytes (it has no place on a roofline), or a latency is not
        positive.

    Examples
    --------
    >>> from rooflab.roofline import measured_point
    >>> import rooflab as rl
    >>> x = rl.ones(1000, 1000)
    >>> cost, timing = rl.cost.exp((1000, 1000)), rl.latency(rl.exp, x, warmup=1, repeat=5)
    >>> measured_point("exp", cost, timing).intensity
    0.125
    """
    flops = positive(f"[roofline] point {name!r}: flops", cost.flops)
    read, written = (number(f"[roofline] point {name!r}: {each}", getattr(cost, each)) for each in _BYTES)
    moved = positive(f"[roofline] point {name!r}: bytes", read + written)

    def speed(milliseconds: float) -> float:
        return flops / positive(f"[roofline] point {name!r}: latency in ms", milliseconds) / 1e9

    return Point(name, flops / moved, speed(timing.median_ms), speed(timing.p80_ms), speed(timing.p20_ms), series)
