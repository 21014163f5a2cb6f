"""Which device ceilings belong to: what must be unchanged for cached figures to be valid."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import rooflab as rl


def identify(device: object) -> dict[str, Any]:
    """The first fields of `Ceilings`: ``device``, ``name``, ``host``, ``driver``, ``threads`` and ``version``.

    Parameters
    ----------
    device : str or Device
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.

    Raises
    ------
    ValueError
        For any other name, or if the machine has no such GPU.

    Examples
    --------
    >>> identify("cpu")["device"]
    'cpu'
    """
    found = re.fullmatch(r"(cpu)|cuda(?::(\d+))?", str(device))
    if found is None:
        raise ValueError(f"[machine] device: expected cpu, cuda or cuda:N, got {str(device)!r}")
    here = {"host": platform.node(), "version": version()}
    if found[1]:
        kernel = f"{platform.system()} {platform.release()}"
        return {"device": "cpu", "name": cpu_name(), "driver": kernel, "threads": rl.num_threads(), **here}
    if not rl.cuda.is_available():
        raise ValueError(f"[machine] no GPU: {rl.cuda.unavailable_reason()}")
    index, count = int(found[2] or 0), rl.cuda.device_count()
    if index >= count:
        raise ValueError(f"[machine] device: expected cuda:0 .. cuda:{count - 1}, got {str(device)!r}")
    gpu = rl.cuda.properties(index)
    return {"device": f"cuda:{index}", "name": gpu.name, "driver": f"CUDA {gpu.driver_version}", "threads": 0, **here}


def provenance(device: object) -> dict[str, Any]:
    """Where published figures come from: what a reader needs to judge them, without the name of the host.

    Returns
    -------
    dict
        `kind` ("cpu" or "cuda") and `name`; for a CPU `threads` and `isa`, the instruction set that kernels use; for a
        GPU `driver` and `cuda`, the version of the CUDA runtime.

    Raises
    ------
    ValueError
        As `identify` does.

    Examples
    --------
    >>> sorted(provenance("cpu"))
    ['isa', 'kind', 'name', 'threads']
    """
    here = identify(device)
    if here["device"] == "cpu":
        return {"kind": "cpu", "name": here["name"], "threads": here["threads"], "isa": rl.cpu_isa()}
    gpu = rl.cuda.properties(int(here["device"].partition(":")[2]))
    return {"kind": "cuda", "name": gpu.name, "driver": gpu_driver() or here["driver"], "cuda": gpu.runtime_version}


@functools.cache
def version(package: Path = Path(rl.__file__).parent) -> str:
    """rooflab's version; in a checkout with its commit, and with a digest of the changes to its sources.

    Examples
    --------
    >>> version().startswith(rl.__version__)  # 0.2.0+1a2b3c4d5, and of changed sources 0.2.0+1a2b3c4d5.0f9e8d7
    True
    """
    checkout = package.parents[1]
    if not (checkout / ".git").exists():
        return rl.__version__

    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", checkout, *words], check=True, capture_output=True).stdout

    try:
        commit = git("rev-parse", "--short=9", "HEAD").decode().strip()
        changes = git("diff", "HEAD", "--", "csrc", "python")
    except (OSError, subprocess.CalledProcessError):  # no git, or it does not trust the folder
        return rl.__version__
    digest = f".{hashlib.sha256(changes).hexdigest()[:7]}" if changes else ""
    return f"{rl.__version__}+{commit}{digest}"


def gpu_driver(report: Path = Path("/proc/driver/nvidia/version")) -> str:
    """The version of the GPU's driver ("580.65.06") by the kernel's report; empty where there is none."""
    try:
        found = re.search(r"Kernel Module\b.*?\s(\d+(?:\.\d+)+)\s", report.read_text(encoding="utf-8"))
    except OSError:
        return ""
    return found[1] if found else ""


# What knows an ARM processor's name, and how it says it; a virtual machine's may be "-".
NAMING = {
    ("lscpu",): r"^Model name:\s*(\w.*)$",
    ("sysctl", "-n", "machdep.cpu.brand_string"): r"^(\w.*)$",
}


@functools.cache
def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The CPU's name as the system gives it."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    if found := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
        return found[1].strip()
    for command, pattern in NAMING.items():
        try:
            said = subprocess.run(command, env=os.environ | {"LC_ALL": "C"}, capture_output=True, text=True).stdout
        except OSError:  # there is no such program
            continue
        if found := re.search(pattern, said, re.MULTILINE):
            return found[1].strip()
    numbers = re.findall(r"^CPU (?:implementer|part)\s*:\s*(\w+)$", text, re.MULTILINE)
    return f"ARM {' '.join(numbers[:2])}" if numbers else platform.processor() or platform.machine()
