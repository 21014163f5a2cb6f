"""What student code may use: the kernel's limits, and the command that starts a program within them, in the jail or,
where the code is trusted, without it.

The limits are memory, processor time, file size and open files. There are no core dumps, and the worker dies with the
judge. Where a control group can be made, it limits memory, processes and processors of all that the worker holds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence

import rooflab
from rooflab.grading.jail import cgroup, enter, jail, seccomp
from rooflab.grading.lab.model import Limits

GPU_MEMORY_GB = 16  # what the driver and its libraries map on the host
THREAD_MEMORY_GB = 0.09  # what NumPy's and SciPy's BLAS map for each further thread: its stack and its buffer
IDLE_THREADS = {"OPENBLAS_THREAD_TIMEOUT": "4"}  # the least: NumPy's idle threads sleep at once and do not spin
STARTS_CUDA = """
import ctypes
code = ctypes.CDLL("libcuda.so.1").cuInit(0)
raise SystemExit(code and f"CUDA's error {code}")
"""
PROCESSES, MAX_THREADS = 1024, 16  # threads count as processes; MAX_THREADS are those of one library


def group(limits: Limits) -> cgroup.Group | None:
    """A new control group for a worker, where one can be made."""
    parent = cgroup.parent()
    if isinstance(parent, str):
        return None
    memory = round(_memory_gb(limits) * 1e9) + jail.FOLDER_BYTES  # files of the jail's folder lie in memory
    return cgroup.Group(parent, cgroup.limits(memory, PROCESSES, min(os.cpu_count() or 1, MAX_THREADS)))


def resources(limits: Limits) -> dict[str, int]:
    """What `enter` sets on a process: the names of limits of the kernel, and their values."""
    return {
        "RLIMIT_DATA": round(_memory_gb(limits) * 1e9),  # not RLIMIT_AS: CUDA reserves far more addresses than it uses
        "RLIMIT_CPU": int(limits.seconds * (os.cpu_count() or 1)) + 10,
        "RLIMIT_STACK": 2**23,  # RLIMIT_DATA does not count what a stack grows by
        "RLIMIT_FSIZE": 2**28,
        "RLIMIT_NOFILE": 1024,  # each socket's buffers take memory as well
        "RLIMIT_CORE": 0,
    }


def command(
    argv: Sequence[str],
    limits: Limits,
    folder: str,
    isolated: bool,
    hidden: Iterable[str] = (),
    group: cgroup.Group | None = None,
    shared: Iterable[str] = (),
    processes: bool = False,
) -> list[str]:
    """The command that runs `argv` within `limits` and in `group`, and if `isolated` in the jail: there `folder` and
    the folders `shared` can be written, the folders `hidden` are empty, and processes can be started only if
    `processes` says so.
    """
    within = str(group.folder) if group else ""
    if not isolated:
        return enter.command(argv, resources(limits), group=within)
    system_calls = seccomp.program(gpus=bool(jail.gpus()), processes=processes)
    inside = jail.command(argv, folder, hidden, shared)
    return enter.command(inside, resources(limits), system_calls, within, jail.user())


def gpu_refusal() -> str | None:
    """Why isolated code cannot use the GPUs that are here, and what to do, in a sentence. None where it can, and where
    there is no GPU or no jail. It is tried as a worker would.
    """
    if not jail.gpus() or jail.refusal():
        return None
    try:
        with tempfile.TemporaryDirectory() as folder:
            tried = command([sys.executable, "-I", "-S", "-c", STARTS_CUDA], Limits(), folder, isolated=True)
            done = subprocess.run(
                tried, env=environment(folder), capture_output=True, text=True, errors="replace", timeout=60
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    else:
        if done.returncode == 0:
            return None
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return (
        f"Isolated code cannot use the GPUs of this machine ({reason}): let every user open /dev/nvidia* and read the "
        "driver's libraries, or grade as a user who can."
    )


def library_threads() -> int:
    """How many threads a library may have in a worker, and in the judge, because each thread has scratch memory."""
    return min(rooflab.num_threads(), MAX_THREADS)


def _memory_gb(limits: Limits) -> float:
    """The memory of a question, and what libraries map before it begins: more on a machine with more processors."""
    libraries = THREAD_MEMORY_GB * (library_threads() - 1) + (GPU_MEMORY_GB if jail.gpus() else 0)
    return limits.memory_gb + libraries


def environment(folder: str) -> dict[str, str]:
    """A clean environment whose home is `folder`. It keeps from the judge's own only where the libraries and the GPUs
    are, and the time zone.
    """
    kept = (
        "LD_LIBRARY_PATH",
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "TZ",
    )
    threads = str(library_threads())
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "TMPDIR": folder,
        "MPLCONFIGDIR": folder,
        "MPLBACKEND": "Agg",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        **IDLE_THREADS,
    }
