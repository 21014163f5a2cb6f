"""What one check found, and how a command is offered to who may run it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from .system import System

GOOD, LESS, BAD = "ok", "less", "no"
# What a machine is asked for. A finding names those that it stops.
INSTALL = "install rooflab from source"
LABS = "start a lab and check it (lab new, lab check)"
NOTEBOOKS = "open notebooks (jupyter lab)"
JAIL = "run and grade in isolation (lab run, lab grade, grade)"
GPU = "see live numbers of a GPU"
KERNELS = "run CUDA kernels in cells (Lab 3 part 6, Lab 5 6.2, Lab 7)"
ABILITIES = (INSTALL, LABS, NOTEBOOKS, JAIL, GPU, KERNELS)


@dataclass(frozen=True)
class Finding:
    """One line of the page.

    Attributes
    ----------
    subject : str
        What was looked at: "compiler".
    found : str
        What is there.
    state : str
        "ok", "less" (something works less well, or not at all) or "no" (rooflab does not work).
    mend : str
        What to do, in one sentence, with the command; "" where nothing is to be done.
    stops : tuple of str
        The abilities that this machine lacks because of it.
    """

    subject: str
    found: str
    state: str = GOOD
    mend: str = ""
    stops: tuple[str, ...] = ()


def install(system: System, apt: str, dnf: str = "") -> str:
    """How packages of the system get installed here: the command, or for whom it is, as half a sentence."""
    by_apt = ["apt-get update", f"apt-get install -y {apt}"]  # a new system has no list of packages yet
    by_dnf = [f"dnf install -y {dnf or apt}"]
    commands = by_dnf if system.which("dnf") and not system.which("apt-get") else by_apt
    if system.is_root or not system.which("sudo"):
        return ("run" if system.is_root else "ask an administrator to run") + f" `{' && '.join(commands)}`"
    return f"run `{' && '.join(f'sudo {command}' for command in commands)}`, or ask an administrator to"


def pip_install(system: System, what: str = "[labs]", options: str = "") -> str:
    """The command that installs rooflab from where it lies: the sources of this page, or else a wheel."""
    if not system.sources:
        return f'`pip install {options}"$(ls rooflab-*.whl){what}"` in the folder with the wheel'
    return f"`pip install {options}{shlex.quote(system.sources + what)}`"
