"""What one check found, and how a command is offered to who may run it."""

from __future__ import annotations

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
    managers = (("apt-get", f"apt-get install -y {apt}"), ("dnf", f"dnf install -y {dnf or apt}"))
    command = next((command for program, command in managers if system.which(program)), managers[0][1])
    if system.is_root:
        return f"run `{command}`"
    if system.which("sudo"):
        return f"run `sudo {command}`, or ask an administrator to"
    return f"ask an administrator to run `{command}`"
