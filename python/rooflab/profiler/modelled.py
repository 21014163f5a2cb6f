"""How long launches would last on a machine that is not there: what a profile on a meta device shows.

Each launch waits for a gap and then takes as long as its FLOPs need at the peak of their dtype, or its bytes at the
memory's bandwidth, whichever is longer. One launch follows the other, whatever its stream. That is a model and not a
measurement: no kernel reaches both roofs, and none is faster.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from .. import _core
from ..machine.ceilings import Ceilings
from ..machine.known import known
from ..roofline.model import Machine

GAP_US = 2.0
"""The default gap between two launches, in microseconds: an assumption, about what a GPU's stream needs when a host
keeps it supplied. With measured ceilings, their launch overhead takes its place."""


@dataclass(frozen=True)
class LaunchModel:
    """The figures that a modelled profile rests on; made by `launch_model`.

    Attributes
    ----------
    machine : MachineSpec or Ceilings
        The machine whose peaks and bandwidth count.
    gap_us : float
        Microseconds before each launch.

    Examples
    --------
    >>> model = launch_model("meta:H200", gap_us=2)  # 67 TFLOP/s, 4.8 TB/s
    >>> model.duration_us(67_000_000_000, 0, "float32"), model.duration_us(0, 4_800_000, "float32")
    (1000.0, 1.0)
    """

    machine: Machine
    gap_us: float

    def duration_us(self, flops: int, bytes: int, dtype: str) -> float:
        """Microseconds of one launch after its gap: the longer of FLOPs over peak and bytes over bandwidth.

        Parameters
        ----------
        flops, bytes : int
            Counted work of the launch.
        dtype : str
            What it computes in. If the machine has no peak for it, float32's is used.
        """
        peaks = self.machine.peak_tflop_s
        peak = peaks.get(dtype, peaks["float32"])
        return max(flops / peak / 1e6, bytes / self.machine.bandwidth_tb_s / 1e6)

    def __str__(self) -> str:
        kind = "measured ceilings" if isinstance(self.machine, Ceilings) else "datasheet"
        return f"{kind} of {self.machine.name}, {self.gap_us:g} us between launches"


def launch_model(machine: Machine | str, gap_us: float | None = None) -> LaunchModel:
    """A model of launches on a machine.

    Parameters
    ----------
    machine : MachineSpec, Ceilings or str
        A datasheet, measured ceilings (``rl.machine.measure("cuda")``), or a device: for ``"meta:H200"`` the datasheet
        counts, for ``"cpu"`` and ``"cuda:0"`` the ceilings that were measured here, or else the datasheet.
    gap_us : float, optional
        Microseconds before each launch. Default: the launch overhead of measured ceilings, else 2. A host that does
        not keep up leaves longer gaps, and a profile that was measured has them: ``prof.waiting[0].gap_us``.

    Returns
    -------
    LaunchModel
        For `rl.profile(model=...)`.

    Raises
    ------
    ValueError
        If nothing is known of the machine, or the gap is negative or not finite.

    Examples
    --------
    >>> print(launch_model("meta:A100 SXM 80GB"))
    datasheet of A100 SXM 80GB, 2 us between launches
    >>> import rooflab as rl
    >>> with rl.profile() as measured:
    ...     x = rl.ones(100, 100) @ rl.ones(100, 100)
    >>> model = launch_model("meta:A100 SXM 80GB", gap_us=measured.waiting[0].gap_us)  # with this host's gaps
    """
    if isinstance(machine, str):
        machine = _figures_of(machine)
    if gap_us is None:
        gap_us = machine.launch_overhead.median if isinstance(machine, Ceilings) else GAP_US
    if not (math.isfinite(gap_us) and gap_us >= 0):
        raise ValueError(f"[profile] gap_us: expected 0 or more, got {gap_us}")
    return LaunchModel(machine, float(gap_us))


def _figures_of(device: str) -> Machine:
    sheet, ceilings = known(device)
    found = ceilings or sheet
    if found is None:
        raise ValueError(
            f"[profile] model: {device}: there is no datasheet of this device, and its ceilings are not measured yet; "
            "`rooflab machine` measures them"
        )
    return found


def lay_out(
    kernels: Sequence[dict[str, Any]], spans: Iterable[list[dict[str, Any]]], models: dict[str, LaunchModel]
) -> None:
    """Turn places in the order of events into nanoseconds.

    Parameters
    ----------
    kernels : sequence of dict
        By start, as `_core.ProfilerSession` gives them. Their durations are filled in.
    spans : lists of dict
        Ranges and steps, each from one place to another.
    models : dict of str to LaunchModel
        By device.
    """
    durations = [_duration_us(kernel, models[kernel["device"]]) for kernel in kernels]
    gaps = [models[kernel["device"]].gap_us for kernel in kernels]
    ends = [0.0, *accumulate(gap + duration for gap, duration in zip(gaps, durations, strict=True))]
    places = [kernel["start_ns"] for kernel in kernels]

    def time_ns(place: int) -> float:
        """When all that was launched before a place has ended."""
        return 1e3 * ends[bisect_left(places, place)]

    for span in (span for group in spans for span in group):
        start, end = span["start_ns"], span["start_ns"] + span["duration_ns"]
        span["start_ns"], span["duration_ns"] = time_ns(start), time_ns(end) - time_ns(start)
    for kernel, gap, duration, before in zip(kernels, gaps, durations, ends, strict=False):
        kernel["start_ns"], kernel["duration_ns"] = 1e3 * (before + gap), 1e3 * duration


def _duration_us(kernel: dict[str, Any], model: LaunchModel) -> float:
    cost: _core.Cost = kernel["cost"]
    return model.duration_us(cost.flops, cost.bytes, kernel["dtype"])
