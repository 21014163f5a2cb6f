"""The page: a line for each finding, then what they make possible."""

from __future__ import annotations

import re
import textwrap
from dataclasses import asdict
from typing import Any

from . import computer, running, tools
from .finding import ABILITIES, Finding
from .system import System

WIDTH = 110


def findings(system: System) -> list[Finding]:
    """Look at everything."""
    rooflab = system.rooflab()
    is_installed = not isinstance(rooflab, str)
    found = [
        running.package(system, rooflab),
        computer.operating_system(system),
        tools.python(system, is_installed),
        tools.compiler(system, is_installed),
        computer.processors(system, rooflab),
        computer.memory(system),
        running.gpu(system, rooflab),
        tools.cuda_toolkit(system),
        running.kernels_on_cpu(system, rooflab),
        running.kernels_on_gpu(rooflab),
        running.jail(system, rooflab),
        tools.jupyter(system, is_installed),
        computer.home(system),
        computer.temporary_files(system, is_installed),
        computer.disk(system),
        tools.git(system),
    ]
    return [one for one in found if one]


def abilities(found: list[Finding]) -> dict[str, list[str]]:
    """What can be asked of a machine, and the subjects that stop it here: none where it can be done."""
    return {what: [one.subject for one in found if what in one.stops] for what in ABILITIES}


def as_text(found: list[Finding]) -> str:
    """The page as text, to be read and to be pasted into a question."""
    wide = max(len(one.subject) for one in found)
    lines = ["rooflab doctor: paste this page into a question", ""]
    for one in found:
        lines += _wrapped(f"{one.state:<4}  {one.subject:<{wide}}  ", one.found)
        lines += _wrapped(" " * (wide + 8), one.mend) if one.mend else []
    lines += ["", "Here you can:"]
    for what, stopped in abilities(found).items():
        lines.append(f"{'no' if stopped else 'yes':<4}  {what}" + f": see {', '.join(stopped)}" * bool(stopped))
    return "\n".join(lines) + "\n"


def _wrapped(start: str, text: str) -> list[str]:
    """Lines that stay under each other. A command between backticks stays on one line, to be copied."""
    kept = re.sub(r"`[^`]*`", lambda command: command[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(
        kept,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace("\0", " ") for line in lines]


def to_dict(found: list[Finding]) -> dict[str, Any]:
    """The same for programs."""
    return {"findings": [asdict(one) for one in found], "stopped_by": abilities(found)}
