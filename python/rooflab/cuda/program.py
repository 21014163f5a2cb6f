"""A program that is run to its end, with the programs that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence


def run(command: Sequence[str], seconds: float, environment: Mapping[str, str]) -> tuple[str, int]:
    """What a program prints, on both of its streams, and its exit code. No process that it started is left afterwards.

    Raises
    ------
    OSError
        When it cannot be started.
    TimeoutError
        When it has not ended after so many seconds; it is killed.
    """
    running = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = running.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
    return printed, running.returncode
