"""What rooflab can do here: itself, GPUs, kernels in cells, and the jail around student code."""

from __future__ import annotations

import shlex
from typing import Any

from .finding import BAD, GOOD, GPU, JAIL, KERNELS, LABS, LESS, NOTEBOOKS, Finding, install, pip_install
from .system import System

USERNS = "/proc/sys/kernel/unprivileged_userns_clone"
MOST = "/proc/sys/user/max_user_namespaces"
APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
QUESTIONS = "Lab 3 part 6, Lab 5 6.2 and Lab 7"  # whose kernels are CUDA C++


def package(system: System, rooflab: Any) -> Finding:
    """Whether rooflab can be imported."""
    if not isinstance(rooflab, str):
        return Finding("rooflab", rooflab.version)
    mend = f"Install it in this environment, and read what it says: {pip_install(system, options='-v ')}."
    return Finding("rooflab", f"cannot be imported ({rooflab})", BAD, mend, (LABS, NOTEBOOKS, JAIL, GPU, KERNELS))


def gpu(system: System, rooflab: Any) -> Finding:
    """The GPUs, and whether this build has code for them."""
    is_installed = not isinstance(rooflab, str)
    driver = rooflab.driver if is_installed else ""
    if is_installed and rooflab.gpus:
        return _usable_gpus(system, rooflab)
    seen = system.output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").strip()
    seen = "; ".join(seen.splitlines()) or (f"driver {driver}" if driver else "")
    if not seen:
        mend = "Choose one under Runtime, Change runtime type." if "COLAB_RELEASE_TAG" in system.environ else ""
        return Finding("GPU", "none; every question can be done without one", GOOD, mend, (GPU,))
    if not is_installed:
        return Finding("GPU", seen)
    mend = "Have an administrator update the driver, or build rooflab with a CUDA toolkit that is as old as the driver."
    if "without CUDA" in rooflab.no_gpu:
        command = _built(system, "[labs,cuda]").replace("`", "`ROOFLAB_CUDA=wheels ", 1)
        mend = f"Build rooflab with the compiler of the nvidia wheels: {command}."
    return Finding("GPU", f"{seen}; {rooflab.no_gpu}", LESS, mend, (GPU,))


def _built(system: System, what: str, options: str = "") -> str:
    """The command that builds rooflab from its sources, which an installed copy does not know."""
    if system.sources:
        return pip_install(system, what, options)
    return f"`pip install {options}{shlex.quote('.' + what)}` in the folder of its sources"


def _usable_gpus(system: System, rooflab: Any) -> Finding:
    told = [name + (f", runs code for {code}" if code else ", no code for it") for name, code in rooflab.gpus]
    found = "; ".join(told) + (f"; driver {rooflab.driver}" if rooflab.driver else "")
    if all(code for _, code in rooflab.gpus):
        return Finding("GPU", found)
    mend = f"Build rooflab again on this machine: {_built(system, '', '--force-reinstall ')}."
    return Finding("GPU", found, LESS, mend, (GPU,))


def kernels_on_cpu(system: System, rooflab: Any) -> Finding | None:
    """g++, by which CUDA C++ in cells runs on the CPU; that is where it is graded, with a GPU too."""
    if isinstance(rooflab, str):
        return None
    if not rooflab.no_cpu_kernels:
        return Finding("kernels on CPU", f"g++ compiles them; {QUESTIONS} need them")
    if system.platform != "linux":
        why = "they run on Linux alone"
        mend = "The points of these kernels stay pending here: do them on Linux, in WSL 2 or on Colab."
    else:
        why = rooflab.no_cpu_kernels if system.which("g++") else "no g++"
        modules = " (on a cluster: `module load gcc`)" if "MODULESHOME" in system.environ else ""
        mend = f"They need GNU's g++: {install(system, 'g++', 'gcc-c++ libstdc++-static')}{modules}."
    return Finding("kernels on CPU", f"{why}; {QUESTIONS} need them", LESS, mend, (KERNELS,))


def kernels_on_gpu(rooflab: Any) -> Finding | None:
    """NVRTC, by which CUDA C++ in cells runs on a GPU."""
    if isinstance(rooflab, str) or not rooflab.gpus:
        return None
    if not rooflab.no_gpu_kernels:
        return Finding("kernels on GPU", f"NVRTC compiles them; cells of {QUESTIONS} use it")
    mend = "Install NVRTC and its headers: `pip install 'rooflab[labs]'`."
    return Finding("kernels on GPU", f"{rooflab.no_gpu_kernels}; cells of {QUESTIONS} use it", LESS, mend, (KERNELS,))


def jail(system: System, rooflab: Any) -> Finding:
    """bubblewrap, and whether the system lets it isolate."""
    bwrap = system.output("bwrap", "--version").strip()
    if isinstance(rooflab, str):
        return Finding("jail", f"{bwrap or 'no bubblewrap'}; whether it may isolate is known once rooflab is installed")
    if not rooflab.no_jail:
        found = f"{bwrap} isolates student code" + (", without the GPUs" if rooflab.shut_gpus else "")
        return Finding("jail", found, LESS if rooflab.shut_gpus else GOOD, rooflab.shut_gpus)
    return Finding("jail", rooflab.no_jail, LESS, f"Only graders need it: {_allow(system, bwrap)}.", (JAIL,))


def _allow(system: System, bwrap: str) -> str:
    """What an administrator can do, as half a sentence."""
    if system.platform != "linux":
        return "grade on Linux"
    if {"COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"} & system.environ.keys():
        return "grade on another machine, because Colab and Kaggle do not allow it"
    if not bwrap:
        return install(system, "bubblewrap")
    for place, refuses, command in (
        (MOST, "0", "sysctl -w user.max_user_namespaces=15000"),
        (USERNS, "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        (APPARMOR, "1", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
    ):
        if system.text(place).strip() == refuses:
            return f"run `{command}` as an administrator, who has to know that it holds for every program"
    return "in a container, start it with the options that notebooks/INSTRUCTORS.md names"
