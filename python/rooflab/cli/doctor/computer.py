"""The computer: its system, processors, memory and folders."""

from __future__ import annotations

import re
from typing import Any

from .finding import BAD, GOOD, INSTALL, LABS, LESS, NOTEBOOKS, Finding
from .system import System

GIB = 2**30
BUILD_BYTES = 10**9  # what an environment with the labs and a build take
JOB_BYTES = 1.0 * GIB  # what one compiler takes
MACHINES = {"linux": ("x86_64", "aarch64"), "darwin": ("arm64",)}


def operating_system(system: System) -> Finding:
    """Which system this is, and where it runs."""
    found = f"{_name(system)} on {system.machine}" + "".join(f", {place}" for place in _places(system))
    if system.platform == "win32":
        mend = "Run `wsl --install` in PowerShell as an administrator, and install rooflab in its Ubuntu."
        return Finding("system", found, BAD, mend, (INSTALL, LABS))
    if "microsoft" in system.kernel.lower() and "wsl2" not in system.kernel.lower():
        return Finding("system", found, LESS, "This is WSL 1: run `wsl --set-version Ubuntu 2` in PowerShell.")
    if system.machine not in MACHINES.get(system.platform, ()):
        mend = "rooflab is made for Linux on x86-64 and aarch64 and for Macs with Apple silicon: use one, or Colab."
        return Finding("system", found, LESS, mend)
    return Finding("system", found)


def _name(system: System) -> str:
    if system.platform == "darwin":
        return f"macOS {system.output('sw_vers', '-productVersion').strip()}".strip()
    if system.platform != "linux":
        return f"{system.platform} {system.kernel}"
    named = re.search(r'^PRETTY_NAME="?([^"\n]+)', system.text("/etc/os-release"), re.MULTILINE)
    return f"{named[1] if named else 'Linux'}, kernel {system.kernel}, {system.libc}"


def _places(system: System) -> list[str]:
    """Where this system runs: what a helper has to know to reproduce a question."""
    env = system.environ
    seen = (
        ("on Colab", "COLAB_RELEASE_TAG" in env),
        ("on Kaggle", "KAGGLE_KERNEL_RUN_TYPE" in env),
        ("in WSL", "microsoft" in system.kernel.lower()),
        ("in Singularity", bool({"SINGULARITY_NAME", "APPTAINER_NAME"} & env.keys())),
        ("in a container", any(map(system.exists, ("/.dockerenv", "/run/.containerenv")))),
        ("in a job of Slurm", "SLURM_JOB_ID" in env),
        ("as root", system.is_root),
    )
    return [name for name, is_here in seen if is_here]


def processors(system: System, rooflab: Any) -> Finding:
    """The CPUs that may be used, and what the kernels make of them."""
    quota = _limit(system, "cpu.max")
    limits = f"; the control group grants {quota:g} of them" if quota and quota < system.cpus else ""
    found = f"{system.cpus} processors{limits}"
    if isinstance(rooflab, str):
        return Finding("CPU", found)
    kernels = f"kernels use {rooflab.isa} in {rooflab.threads} threads"
    mend = ""
    if rooflab.isa == "baseline":
        mend = "This CPU has no vector instructions that kernels are compiled for: use a newer one to measure."
    return Finding("CPU", f"{rooflab.cpu}, {found}; {kernels}", LESS if mend else GOOD, mend)


def memory(system: System) -> Finding:
    """The memory that there is, and that may be used."""
    total = _total_bytes(system)
    allowed = _limit(system, "memory.max")
    limited = allowed is not None and (total is None or allowed < total)
    usable = allowed if limited else total
    if usable is None:
        return Finding("memory", "unknown")
    found = f"{usable / GIB:.1f} GiB" + (" granted by the control group" if limited else "")
    if usable < system.cpus * JOB_BYTES:
        jobs = max(1, int(usable / JOB_BYTES))
        mend = f"Build with fewer compilers at a time: `CMAKE_BUILD_PARALLEL_LEVEL={jobs} pip install ...`."
        return Finding("memory", found, LESS, mend)
    return Finding("memory", found)


def _total_bytes(system: System) -> float | None:
    if system.platform == "darwin":
        told = system.output("sysctl", "-n", "hw.memsize").strip()
        return float(told) if told.isdigit() else None
    kib = re.search(r"^MemTotal:\s*(\d+)", system.text("/proc/meminfo"), re.MULTILINE)
    return int(kib[1]) * 1024.0 if kib else None


def _limit(system: System, name: str) -> float | None:
    """The least limit of this process's control groups (v2): CPUs, or bytes. None where there is none."""
    own = re.search(r"^0::(/.*)$", system.text("/proc/self/cgroup"), re.MULTILINE)
    path, found = (own[1].rstrip("/") if own else ""), []
    while True:
        words = system.text(f"/sys/fs/cgroup{path}/{name}").split()
        if words and words[0].isdigit():
            found.append(int(words[0]) / int(words[1]) if len(words) > 1 else float(words[0]))
        if not path:
            return min(found, default=None)
        path = path.rpartition("/")[0]


def home(system: System) -> Finding:
    """The home folder: Jupyter and the measured figures need one that can be written to."""
    place = system.home()
    if place and system.can_write(place):
        return Finding("home", "can be written to")
    found = "none" if not place else "cannot be written to" if system.exists(place) else "does not exist"
    mend = "Name a folder of yours: `mkdir -p /path/of/yours && export HOME=/path/of/yours`."
    return Finding("home", found, LESS, mend, (NOTEBOOKS,))


def temporary_files(system: System, is_installed: bool) -> Finding:
    """The folder of temporary files, where pip builds, and where the processes of a grade have theirs."""
    place = system.temporary_folder()
    own = "`mkdir -p ~/tmp && export TMPDIR=~/tmp`"
    if not place:
        mend = f"Name a folder that can be written to: {own}."
        return Finding("temporary files", "no folder can be written to", BAD, mend, (INSTALL, LABS))
    if not system.runs_programs(place):
        found = f"{place} starts no programs (noexec)"
        if system.which("cmake") and system.which("ninja"):
            return Finding("temporary files", found + ", and the build's are the system's")
        mend = f"pip starts the build's cmake and ninja there: {own} before you install."
        return Finding("temporary files", found, LESS if is_installed else BAD, mend, (INSTALL,))
    return Finding("temporary files", place)


def disk(system: System) -> Finding:
    """Whether there is room for the build."""
    places = {"temporary files": system.temporary_folder(), "this folder": "."}
    free = {name: bytes for name, place in places.items() if (bytes := system.free_bytes(place)) is not None}
    found = ", ".join(f"{bytes / 1e9:.1f} GB free for {name}" for name, bytes in free.items()) or "unknown"
    if any(bytes < BUILD_BYTES for bytes in free.values()):
        needed = f"{BUILD_BYTES / 1e9:.0f} GB"
        mend = f"A build with the labs takes {needed}: free some, or set TMPDIR to a folder on another disk."
        return Finding("disk", found, LESS, mend)
    return Finding("disk", found)
