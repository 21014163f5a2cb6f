"""How much of the CPUs other programs take, and how much the host of a virtual machine takes away.

Both come from the CPU times in ``/proc/stat``, minus this process's own. The load average would not do: it lags by a
minute, and counts what this process itself ran.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from rooflab.host import allowed_cpus


@dataclass(frozen=True)
class CpuTimes:
    """CPU seconds up to some moment, summed over the CPUs that this process may run on.

    Attributes
    ----------
    at : float
        When, in seconds.
    busy, stolen, own : float
        Spent in any program; taken by the host for other machines; spent in this process.
    cpus : int
        How many CPUs.
    """

    at: float
    busy: float
    stolen: float
    own: float
    cpus: int


@dataclass(frozen=True)
class Load:
    """CPUs, on average over some time, that other programs used (`others`) or the host took (`stolen`), of `cpus`."""

    others: float
    stolen: float
    cpus: int


def read(stat: Path = Path("/proc/stat")) -> CpuTimes | None:
    """The CPU times now; None where the system does not tell them."""
    try:
        lines = stat.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    mine = {f"cpu{number}" for number in allowed_cpus()}
    ticks = [[int(field) for field in fields] for name, *fields in map(str.split, lines) if name in mine]
    if not ticks or not any(map(any, ticks)):
        return None
    # user, nice, system, idle, iowait, irq, softirq, steal; the guests after them are part of user and nice.
    busy = sum(sum(cpu[:3]) + sum(cpu[5:7]) for cpu in ticks)
    stolen = sum(cpu[7] for cpu in ticks)
    tick = os.sysconf("SC_CLK_TCK")
    return CpuTimes(time.monotonic(), busy / tick, stolen / tick, time.process_time(), len(ticks))


def between(start: CpuTimes | None, end: CpuTimes | None) -> Load | None:
    """The load between two readings; None when one of them is missing.

    Examples
    --------
    >>> between(CpuTimes(0.0, 10.0, 0.0, 1.0, cpus=2), CpuTimes(2.0, 14.0, 0.2, 2.0, cpus=2))
    Load(others=1.5, stolen=0.1, cpus=2)
    """
    if start is None or end is None or end.at <= start.at:
        return None
    seconds = end.at - start.at
    others = (end.busy - start.busy) - (end.own - start.own)
    return Load(max(0.0, others / seconds), (end.stolen - start.stolen) / seconds, end.cpus)
