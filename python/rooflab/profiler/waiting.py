"""Who waited for whom: how much of the time a device had nothing to do, and how long the gaps between its kernels were.

The idle time of a device is measured from its kernels alone: what is left of the profiled steps when the time in which
at least one kernel ran is taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..results import ReadableMixin
from ..units import human
from .host import HostRecord
from .records import KernelRecord, Step


@dataclass(frozen=True, slots=True)
class DeviceWaiting(ReadableMixin):
    """The time of one device in the profiled steps.

    Attributes
    ----------
    device : str
        ``"cuda:0"``, or ``"cpu"``.
    total_us, busy_us, waited_us : float
        Of all steps; in which at least one kernel ran; in which none did.
    gap_us : float
        The median of the gaps between one kernel and the next, all streams together; 0 where they overlap. 0 also if
        there are fewer than two kernels in each step.
    host_waited_us : float or None
        How long the host waited for the GPU: synchronisation, copies, the ends of steps. None if it was not recorded.
    """

    device: str
    total_us: float
    busy_us: float
    gap_us: float
    host_waited_us: float | None

    @property
    def waited_us(self) -> float:
        """Microseconds in which no kernel ran."""
        return self.total_us - self.busy_us

    @property
    def waited_share(self) -> float:
        """`waited_us` over `total_us`, 0 to 1."""
        return self.waited_us / self.total_us if self.total_us else 0.0

    @property
    def is_host_bound(self) -> bool | None:
        """Whether the device waited longer for the host than the host for the device; None if nobody knows.

        On a CPU the kernels run in the host's own threads, and nobody waits.
        """
        if self.device == "cpu" or self.host_waited_us is None:
            return None
        return self.waited_us > self.host_waited_us

    def __str__(self) -> str:
        gap = human(self.gap_us, "us")
        if self.device == "cpu":
            return (
                f"kernels on the CPU ran in {1 - self.waited_share:.1%} of the time; Python and the runtime took the "
                f"rest, {gap} from one kernel to the next (median)"
            )
        waited = f"{self.device} waited {self.waited_share:.1%} of the time, {gap} from one kernel to the next (median)"
        if self.host_waited_us is None:
            return f"{waited}; what the host did was not recorded"
        waited += f"; the host waited {self.host_waited_us / self.total_us if self.total_us else 0:.1%} for it"
        return f"{'host' if self.is_host_bound else 'device'}-bound: {waited}"


def waiting(
    kernels: Sequence[KernelRecord], steps: Sequence[Step], host: Sequence[HostRecord] | None
) -> list[DeviceWaiting]:
    """One row for each device that ran kernels.

    Parameters
    ----------
    kernels, steps
        Of a profile that measured its times.
    host : sequence of HostRecord, optional
        None if the host was not recorded.
    """
    total = sum(step.duration_us for step in steps)
    waits = None if host is None else _covered([(w.start_us, w.start_us + w.duration_us) for w in _waits_of(host)])
    of_step: dict[tuple[str, int], list[KernelRecord]] = {}
    for kernel in kernels:
        of_step.setdefault((kernel.device, kernel.step), []).append(kernel)
    rows = []
    for device in sorted({kernel.device for kernel in kernels}):
        busy, gaps = 0.0, []
        for step in steps:
            end = step.start_us + step.duration_us
            spans = sorted(
                (max(kernel.start_us, step.start_us), min(kernel.start_us + kernel.duration_us, end))
                for kernel in of_step.get((device, step.number), [])
            )
            busy += _covered(spans)
            gaps += _gaps(spans)
        rows.append(DeviceWaiting(device, total, busy, median(gaps) if gaps else 0.0, waits))
    return rows


def _waits_of(host: Sequence[HostRecord]) -> list[HostRecord]:
    """Waits of the thread that began the profile."""
    return [record for record in host if record.kind == "wait" and record.thread == 0]


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """The length of the union of intervals."""
    length, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        length += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return length


def _gaps(spans: Sequence[tuple[float, float]]) -> list[float]:
    """From the end of all that began before to the start of each interval; sorted by start."""
    ends: list[float] = []
    for _, end in spans:
        ends.append(max(end, ends[-1]) if ends else end)
    return [max(start - end, 0.0) for end, (start, _) in zip(ends, spans[1:], strict=False)]
