"""Measured ceilings of a device, and their table beside its datasheet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .._numbers import positive, whole
from ..results import ReadableMixin, Table
from ..roofline import MachineSpec, find_spec, ridge
from ..roofline.machine_spec import by_dtype
from ..units import human


def datasheet(device_name: str, threads: int) -> MachineSpec | None:
    """The datasheet of the device that the system calls `device_name`, or None. A CPU's peaks are scaled to `threads`.

    Examples
    --------
    >>> datasheet("AMD EPYC 7763 64-Core Processor", 2).name
    'EPYC 7763, 2 of 64 cores'
    """
    spec = find_spec(device_name)
    if spec is None or spec.cores is None or threads >= spec.cores:
        return spec
    share = threads / spec.cores
    return replace(
        spec,
        name=f"{spec.name}, {threads} of {spec.cores} cores",
        peak_tflop_s={dtype: peak * share for dtype, peak in spec.peak_tflop_s.items()},
    )


_UNITS = ("TB/s", "TFLOP/s", "us")


@dataclass(frozen=True)
class Measured(ReadableMixin):
    """One measured figure with its spread.

    Attributes
    ----------
    median, p20, p80 : float
        In `unit`. ``p20 <= median <= p80``.
    unit : str
        ``"TB/s"``, ``"TFLOP/s"`` or ``"us"``.
    n : int
        Number of samples.
    how : str
        What was run.
    apart : float
        How many times as fast the rounds were that gave the figure as the middle one of all: 1 on a steady machine.

    Raises
    ------
    ValueError
        For another unit, a figure that is not finite and above 0, and percentiles that do not enclose the median.
    """

    median: float
    p20: float
    p80: float
    unit: str
    n: int
    how: str
    apart: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit not in _UNITS:
            raise ValueError(f"[Measured] unit: expected one of {', '.join(_UNITS)}, got {self.unit!r}")
        for name in ("median", "p20", "p80", "apart"):
            positive(f"[Measured] {name}", getattr(self, name))
        if not self.p20 <= self.median <= self.p80:
            raise ValueError(f"[Measured] expected p20 <= median <= p80, got {self.p20}, {self.median}, {self.p80}")
        whole("[Measured] n", self.n, least=1)

    def __str__(self) -> str:
        p20, p80 = human(self.p20, self.unit), human(self.p80, self.unit)
        return f"{human(self.median, self.unit)} (p20 {p20}, p80 {p80}, n={self.n})"


@dataclass(frozen=True)
class Ceilings(ReadableMixin):
    """The measured ceilings of one device. The roofline functions take it like a datasheet.

    Attributes
    ----------
    device : str
        ``"cpu"`` or ``"cuda:0"``.
    name : str
        What the system calls the device.
    host : str
        The machine's own name.
    driver : str
        ``"CUDA 13.0"``, the newest that a GPU's driver can run; for a CPU the system's kernel, ``"Linux 6.1.0"``.
    threads : int
        CPU threads that the kernels used; 0 for a GPU.
    version : str
        rooflab's; in a checkout with its commit, "0.2.0+1a2b3c4d5".
    measured_on : str
        UTC date and time.
    seconds : float
        How long measuring took.
    busy : str
        Why the figures cannot be trusted, in a sentence; "" when the machine was quiet.
    copy_bandwidth : Measured
        DRAM, TB/s, bytes read plus bytes written by a copy of a buffer several times the last-level cache.
    read_bandwidth : Measured
        DRAM, TB/s, bytes read by a reduction over such a buffer; it writes next to nothing.
    cache_bandwidth : Measured
        Last-level cache, TB/s, by the same reduction over a buffer that stays in it.
    peak : dict of str to Measured
        TFLOP/s of the fastest matmul rung, per dtype.
    launch_overhead : Measured
        Microseconds for each call from Python of an operation on one element, with many calls in a row.

    Raises
    ------
    ValueError
        For a figure in another unit, no peak, a dtype that is not known, and a number of threads or seconds that is
        negative or not finite.
    """

    device: str
    name: str
    host: str
    driver: str
    threads: int
    version: str
    measured_on: str
    seconds: float
    busy: str
    copy_bandwidth: Measured
    read_bandwidth: Measured
    cache_bandwidth: Measured
    peak: Mapping[str, Measured]
    launch_overhead: Measured

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "peak", by_dtype("[Ceilings] peak", self.peak))
        figures = {"copy_bandwidth": "TB/s", "read_bandwidth": "TB/s", "cache_bandwidth": "TB/s"}
        units = {name: (getattr(self, name), unit) for name, unit in {**figures, "launch_overhead": "us"}.items()}
        units |= {f"peak[{dtype!r}]": (figure, "TFLOP/s") for dtype, figure in self.peak.items()}
        for name, (figure, unit) in units.items():
            if figure.unit != unit:
                raise ValueError(f"[Ceilings] {name}: expected a figure in {unit}, got one in {figure.unit}")
        if not self.peak:
            raise ValueError("[Ceilings] peak: expected the peak of one dtype or more, got none")
        if self.threads < 0 or not 0 <= self.seconds < math.inf:
            raise ValueError(
                f"[Ceilings] expected threads and seconds of 0 or more, got {self.threads} and {self.seconds}"
            )

    @property
    def bandwidth(self) -> Measured:
        """The memory roof: the better of copy and read bandwidth."""
        return max(self.copy_bandwidth, self.read_bandwidth, key=lambda measured: measured.median)

    @property
    def bandwidth_tb_s(self) -> float:
        """Median of the memory roof, TB/s."""
        return self.bandwidth.median

    @property
    def peak_tflop_s(self) -> Mapping[str, float]:
        """Median peak per dtype, TFLOP/s."""
        return {dtype: measured.median for dtype, measured in self.peak.items()}

    def datasheet(self) -> MachineSpec | None:
        """The datasheet of this device.

        Returns
        -------
        MachineSpec or None
            None for a device that has none here. A CPU's peaks are scaled to the threads used.

        Examples
        --------
        >>> rl.machine.measure("cpu").datasheet()  # doctest: +SKIP
        """
        return datasheet(self.name, self.threads)

    def __str__(self) -> str:
        return _text(self)

    def __repr__(self) -> str:
        peaks = ", ".join(f"{dtype} {human(figure.median, figure.unit)}" for dtype, figure in self.peak.items())
        copied = human(self.copy_bandwidth.median, self.copy_bandwidth.unit)
        return f"Ceilings({self.name} ({self.device}): copy {copied}, {peaks})"

    def _table(self) -> Table:
        return Table(_HEAD, list(_rows(self)), note=" ".join(filter(None, (self.busy, _unsteady(self)))))

    def _figures(self) -> Table:
        return Table.of({"figure": name} | figure.to_dict() for name, figure in _named(self).items())


_NOISE = 1.1  # rounds that differ by less are not mentioned
_HEAD = ("", "measured (p20 .. p80)", "datasheet", "ratio", "how")


def _rows(ceilings: Ceilings) -> Iterator[tuple[str, str, str, str, str]]:
    spec = ceilings.datasheet()
    promised: dict[str, float | None] = {}
    if spec:
        promised = {f"DRAM {way} bandwidth": spec.bandwidth_tb_s for way in ("copy", "read")}
        promised |= {f"peak {dtype}": peak for dtype, peak in spec.peak_tflop_s.items()}
    for label, figure in _named(ceilings).items():
        sheet = promised.get(label)
        spread = f"{human(figure.median, figure.unit)}  ({human(figure.p20, figure.unit)} .. "
        spread += f"{human(figure.p80, figure.unit)})"
        if sheet is None:
            yield label, spread, "-", "-", figure.how
        else:
            yield label, spread, human(sheet, figure.unit), f"{figure.median / sheet:.0%}", figure.how
    for dtype in ceilings.peak:
        measured = f"{ridge(ceilings, dtype):.1f} FLOP/byte"
        promise = f"{ridge(spec, dtype):.1f} FLOP/byte" if spec and dtype in spec.peak_tflop_s else "-"
        yield f"ridge {dtype}", measured, promise, "-", "peak / the better DRAM bandwidth"


def _named(ceilings: Ceilings) -> dict[str, Measured]:
    """Every figure by its name in tables."""
    return {
        "DRAM copy bandwidth": ceilings.copy_bandwidth,
        "DRAM read bandwidth": ceilings.read_bandwidth,
        "cache read bandwidth": ceilings.cache_bandwidth,
        **{f"peak {dtype}": figure for dtype, figure in ceilings.peak.items()},
        "launch overhead": ceilings.launch_overhead,
    }


def _unsteady(ceilings: Ceilings) -> str:
    """A sentence about the figure whose rounds lie farthest apart; empty if that is no more than noise."""
    name, figure = max(_named(ceilings).items(), key=lambda one: one[1].apart)
    if figure.apart <= _NOISE:
        return ""
    return (
        f"The machine is not steady: the best rounds that agree were {figure.apart:.1f}x as fast as the middle one in "
        f"{name}. Each figure is that of the best rounds."
    )


def _text(ceilings: Ceilings) -> str:
    spec = ceilings.datasheet()
    plural = "" if ceilings.threads == 1 else "s"
    threads = f", {ceilings.threads} thread{plural}" if ceilings.threads else ""
    lines = [
        f"{ceilings.name} ({ceilings.device}{threads}) of {ceilings.host}, {ceilings.driver}, rooflab "
        f"{ceilings.version}, measured {ceilings.measured_on} in {ceilings.seconds:.1f} s",
        f"datasheet: {spec.name}; peaks are dense" if spec else "datasheet: none in the table for this device",
        "",
    ]
    lines += Table(_HEAD, list(_rows(ceilings))).lines()
    for sentence in filter(None, (ceilings.busy, _unsteady(ceilings))):
        lines += ["", sentence]
    if spec:
        lines += ["", "sources:"] + [f"  {figure}: {source}" for figure, source in spec.sources.items()]
    return "\n".join(lines)
