"""A program that is run to its end, with the programs that it starts."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence


class Program(subprocess.Popen):
    """A process that is waited for without `time.sleep`, which a virtual clock may have replaced."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; TimeoutExpired where it has not ended after so many seconds."""
        if timeout is None or self.poll() is not None or sys.platform != "linux":
            return super().wait(timeout)
        try:
            ended = os.pidfd_open(self.pid)
        except OSError:  # an emulated Linux
            return super().wait(timeout)
        try:
            waiting = select.poll()
            waiting.register(ended, select.POLLIN)
            if not waiting.poll(max(timeout, 0) * 1000):
                raise subprocess.TimeoutExpired(self.args, timeout)
        finally:
            os.close(ended)
        return super().wait()


def run(command: Sequence[str], seconds: float, environment: Mapping[str, str]) -> tuple[str, int]:
    """What a program prints, on both of its streams, and its exit code. No process that it started is left afterwards.

    Raises
    ------
    OSError
        When it cannot be started.
    TimeoutError
        When it has not ended after so many seconds; it is killed.
    """
    running = Program(
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
