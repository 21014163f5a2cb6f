"""How a worker is started: the one seam where an operating-system sandbox is put around it.

For now the limits are those of the kernel: memory, processor time, file size, open files, no core dumps;
the worker dies with the judge. Run as a script, this file sets them on itself and becomes the command it
was given.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
GPU_MEMORY_GB = 16  # what the driver and its libraries map on the host


@dataclass(frozen=True)
class Limits:
    """What one question may use: wall time in seconds, memory in GB (1e9 bytes)."""

    seconds: float = 60.0
    memory_gb: float = 4.0


def command(argv: Sequence[str], limits: Limits, folder: str) -> list[str]:
    """The command that runs `argv` inside the sandbox, where `folder` alone may be written."""
    cpus = os.cpu_count() or 1
    memory_gb = limits.memory_gb + (GPU_MEMORY_GB if os.path.exists("/dev/nvidiactl") else 0)
    values = {
        "RLIMIT_DATA": int(memory_gb * 1e9),  # not RLIMIT_AS: CUDA reserves far more addresses than it uses
        "RLIMIT_CPU": int(limits.seconds * cpus) + 10,
        "RLIMIT_FSIZE": 2**28,
        "RLIMIT_NOFILE": 4096,
        "RLIMIT_CORE": 0,
    }
    return [sys.executable, "-I", "-S", str(Path(__file__)), json.dumps(values), *argv]


def environment(folder: str) -> dict[str, str]:
    """A clean environment whose home is `folder`; from the judge's own only where the libraries and the GPU
    are.
    """
    kept = (
        "LD_LIBRARY_PATH",
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "TZ",
    )
    threads = str(min(os.cpu_count() or 1, 16))
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "TMPDIR": folder,
        "MPLCONFIGDIR": folder,
        "MPLBACKEND": "Agg",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
    }


def _enter(values: dict[str, int], argv: list[str]) -> None:
    for name, value in values.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    _enter(json.loads(sys.argv[1]), sys.argv[2:])
