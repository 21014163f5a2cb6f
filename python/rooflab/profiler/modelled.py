"""How long launches would last on a machine that is not there: what a profile on a meta device shows.

Each launch waits for a gap and then takes as long as its FLOPs need at the peak of their dtype, or its bytes at the
memory's bandwidth, whichever is longer. Kernels that split float32 into bfloat16 parts need six products of these at
bfloat16's peak for each product. One launch follows the other, whatever its stream. That is a model and not a
measurement: no kernel reaches both roofs, and none is faster.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, SupportsFloat

from .. import _core
from .._numbers import number
from ..machine.ceilings import Ceilings
from ..machine.known import known
from ..roofline import MachineSpec
from ..roofline.model import Machine

if TYPE_CHECKING:
    from .recorded import Recorded

GAP_US = 2.0
"""The gap between two launches where none was measured, in microseconds: an assumption about what a GPU's stream needs
when its host keeps it supplied."""
_SPLIT, _PARTS = "_split_bf16", 6
"""Kernels whose names end so multiply float32 as bfloat16 parts, with so many products of parts for each product
(csrc/kernels/common/split_bf16.cuh)."""
_ASSUMED = "assumed for a host that keeps the stream supplied"


@dataclass(frozen=True)
class LaunchModel:
    """The figures that a modelled profile rests on; made by `launch_model`.

    Attributes
    ----------
    machine : MachineSpec or Ceilings
        The machine whose peaks and bandwidth count.
    gap_us : float
        Microseconds before each launch.
    gap_source : str
        Where the gap comes from: a measurement, the caller, or an assumption.

    Raises
    ------
    ValueError
        If the machine has no peak for float32, which counts for every dtype that has none.

    Examples
    --------
    >>> from rooflab.profiler import launch_model
    >>> model = launch_model("meta:H200", gap_us=2)  # 67 TFLOP/s, 4.8 TB/s
    >>> model.duration_us(67_000_000_000, 0, "float32"), model.duration_us(0, 4_800_000, "float32")
    (1000.0, 1.0)
    """

    machine: Machine
    gap_us: float
    gap_source: str = "given"

    def __post_init__(self) -> None:
        if "float32" not in self.machine.peak_tflop_s:
            raise ValueError(
                f"[profile] model: {self.machine.name} has no float32 peak, which counts for each dtype without a peak "
                "of its own; add one to its peak_tflop_s"
            )

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
        return f"{kind} of {self.machine.name}, {self.gap_us:.3g} us between launches ({self.gap_source})"


def launch_model(machine: Machine | str, gap_us: float | Recorded | None = None) -> LaunchModel:
    """A model of launches on a machine.

    Parameters
    ----------
    machine : MachineSpec, Ceilings or str
        A datasheet, measured ceilings (``rl.machine.measure("cuda")``), or a device: for ``"meta:H200"`` the datasheet
        counts, for ``"cpu"`` and ``"cuda:0"`` the ceilings that were measured here, or else the datasheet.
    gap_us : float or Profile, optional
        Microseconds before each launch, or a profile that was measured, whose median gap counts. Default: the launch
        overhead that `rooflab machine` measured, of the machine itself or, for the datasheet of a GPU, of this
        machine's GPU; 2 where there is none. A host that does not keep up leaves longer gaps than that.

    Returns
    -------
    LaunchModel
        For `rl.profile(model=...)`.

    Raises
    ------
    ValueError
        If nothing is known of the machine, it has no peak for float32, the gap is negative or not finite, or no kernel
        was measured in the profile.

    Examples
    --------
    >>> from rooflab.profiler import launch_model
    >>> print(launch_model("meta:A100 SXM 80GB", gap_us=10))
    datasheet of A100 SXM 80GB, 10 us between launches (given)
    >>> import rooflab as rl
    >>> with rl.profile() as measured:
    ...     x = rl.ones(100, 100) @ rl.ones(100, 100)
    >>> model = launch_model("meta:A100 SXM 80GB", gap_us=measured)  # with this host's gaps
    """
    if isinstance(machine, str):
        machine = _figures_of(machine)
    if gap_us is None:
        return LaunchModel(machine, *_gap_of(machine))
    if not isinstance(gap_us, SupportsFloat):
        return LaunchModel(machine, *_gap_in(gap_us))
    gap = number("[profile] gap_us", gap_us)
    if not (math.isfinite(gap) and gap >= 0):
        raise ValueError(f"[profile] gap_us: expected 0 or more, got {gap_us}")
    return LaunchModel(machine, gap)


def _gap_of(machine: Machine) -> tuple[float, str]:
    """The gap where the caller gives none, and its source."""
    ceilings = machine if isinstance(machine, Ceilings) else None
    if isinstance(machine, MachineSpec) and machine.kind == "gpu" and _core.cuda.is_available():
        _, ceilings = known("cuda:0")
    if ceilings is None:
        return GAP_US, _ASSUMED
    return ceilings.launch_overhead.median, f"launch overhead of {ceilings.name}, measured {ceilings.measured_on}"


def _gap_in(profile: Any) -> tuple[float, str]:
    """The median gap in a profile, of a GPU where it has one."""
    rows = sorted(getattr(profile, "waiting", []), key=lambda row: row.device == "cpu")
    if not rows:
        raise ValueError("[profile] gap_us: expected a number, or a profile in which kernels were measured")
    return rows[0].gap_us, f"median in a profile of {rows[0].device}"


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
        By device. Launches on other devices take no time.
    """
    used = [models.get(kernel["device"]) for kernel in kernels]
    durations = [_duration_us(kernel, model) for kernel, model in zip(kernels, used, strict=True)]
    gaps = [model.gap_us if model else 0.0 for model in used]
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


def _duration_us(kernel: dict[str, Any], model: LaunchModel | None) -> float:
    if model is None:
        return 0.0
    cost: _core.Cost = kernel["cost"]
    if kernel["kernel"].endswith(_SPLIT) and "bfloat16" in model.machine.peak_tflop_s:
        return model.duration_us(_PARTS * cost.flops, cost.bytes, "bfloat16")
    return model.duration_us(cost.flops, cost.bytes, kernel["dtype"])
