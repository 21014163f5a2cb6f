"""What differs between the systems and processors that rooflab runs on: Linux has it in /proc and /sys, macOS in
`sysctl`.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path


def allowed_cpus() -> set[int]:
    """The numbers of the CPUs that this process may run on; all of them where the system keeps no such list."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def cpu_cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Size of the CPU's last-level cache; 32 MiB where the system does not say."""
    sizes: dict[int, int] = {}
    for index in root.glob("index*"):
        try:
            level = int((index / "level").read_text(encoding="utf-8"))
            size = re.fullmatch(r"(\d+)([KMG]?)", (index / "size").read_text(encoding="utf-8").strip())
        except (OSError, ValueError):
            continue
        if size:
            sizes[level] = int(size[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[size[2]]
    if sizes and max(sizes) > 1:
        return sizes[max(sizes)]
    apple = told("sysctl", "-n", "hw.perflevel0.l2cachesize")  # of the fast cores, which have no level above it
    return int(apple) if apple.isdigit() else 32 * 2**20


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used so far, in steps of 10 ms; 0 for one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # of the user and of the system
    except OSError:
        return clock_seconds(told("ps", "-o", "time=", "-p", str(pid)))


def clock_seconds(text: str) -> float:
    """The seconds of what `ps` prints: "1:02.50", "01:02:03", "1-00:00:00"; 0 for anything else.

    Examples
    --------
    >>> clock_seconds(" 1:02.50"), clock_seconds("1-00:00:01"), clock_seconds("")
    (62.5, 86401.0, 0.0)
    """
    found = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)", text.strip())
    if found is None:
        return 0.0
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def told(*command: str) -> str:
    """What a program prints; "" if it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
