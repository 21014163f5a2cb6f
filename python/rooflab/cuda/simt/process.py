"""One launch: the files that both programs share, the two processes, and what the accountant printed."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..program import Program
from . import toolchain

# Of runtime/protocol.h.
_MAX_BUFFERS, MAX_ARGUMENTS = 255, 64
_CLOSED_AT, _RING_BYTES = 6912, 8192 + (8 << 18)
GRANULE = 256
_PATIENCE = 5.0  # seconds for a process that was asked to end
MODES = ("functional", "check", "count")
SCHEDULES = ("in order", "reversed", "seeded")


@dataclass
class Request:
    """A launch as the runner wants it: buffers are (begin, bytes, is_written), arguments (word, kind)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    mode: str
    blocks: int
    schedule: str
    seed: int
    arena_bytes: int
    buffers: list[tuple[int, int, int]]
    arguments: list[tuple[int, int]]

    def packed(self, sites: int) -> bytes:
        """Its bytes, as `Launch` of protocol.h has them."""
        places = [*self.buffers, *[(0, 0, 0)] * (_MAX_BUFFERS - len(self.buffers))]
        words = [*self.arguments, *[(0, 0)] * (MAX_ARGUMENTS - len(self.arguments))]
        return struct.pack(
            f"=10I2Q2IQ{3 * _MAX_BUFFERS}Q{MAX_ARGUMENTS}Q{MAX_ARGUMENTS}B",
            *self.grid, *self.block, self.shared_bytes, self.blocks, MODES.index(self.mode),
            SCHEDULES.index(self.schedule), self.seed, self.arena_bytes, len(self.buffers), len(self.arguments), sites,
            *(number for place in places for number in place),
            *(word for word, _ in words), *(kind for _, kind in words),
        )  # fmt: skip


@dataclass
class Report:
    """What the accountant counted, in its own words: each line's first word, and its numbers."""

    is_whole: bool = False
    rows: list[tuple[str, list[int]]] = field(default_factory=list)
    printed: str = ""
    was_killed: bool = False  # because it did not end
    blocks: int = 0  # that were recorded
    block_barriers: int = 0
    global_writes: int = 0

    def of(self, *words: str) -> list[tuple[str, list[int]]]:
        """The lines that begin with one of these words."""
        return [row for row in self.rows if row[0] in words]


@contextlib.contextmanager
def shared_file(size: int) -> Iterator[tuple[int, mmap.mmap]]:
    """Memory that other processes map, as (descriptor, map); in a file where a sandbox allows nothing else."""
    with contextlib.ExitStack() as stack:
        try:
            number = os.memfd_create("rooflab", 0)
            stack.callback(os.close, number)
        except (AttributeError, OSError):
            number = stack.enter_context(tempfile.TemporaryFile()).fileno()
        os.ftruncate(number, max(size, 1))
        yield number, stack.enter_context(mmap.mmap(number, max(size, 1)))


def run(
    library: Path, sites: int, kernel: int, request: Request, arena: tuple[int, mmap.mmap], seconds: float
) -> Report:
    """Run kernel number `kernel` of a library in a process of its own, at most for so many seconds."""
    runner, accountant = toolchain.programs()
    with shared_file(_RING_BYTES) as (ring, memory):
        packed = request.packed(sites)
        memory[: len(packed)] = packed
        counting = subprocess.Popen(
            [accountant, str(ring)], pass_fds=[ring], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            running = Program(
                [runner, library, f"rl_kernel_{kernel}", str(ring), str(arena[0])],
                pass_fds=[ring, arena[0]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={}, text=True, errors="replace",
            )  # fmt: skip
            printed, said, was_killed = _end(running, seconds)
            memory[_CLOSED_AT] = 1
            counted, _ = counting.communicate()
        finally:
            counting.kill()
            counting.wait()
    if running.returncode == 3:
        raise RuntimeError(f"the kernel's process could not start: {said.strip()}")
    report = Report(printed=printed, was_killed=was_killed)
    for line in counted.splitlines():
        word, *numbers = line.split()
        report.rows.append((word, [int(number) for number in numbers]))
    for _, (is_whole, *sums) in report.of("launch"):
        report.is_whole = bool(is_whole)
        report.blocks, report.block_barriers, report.global_writes = sums
    return report


def _end(process: subprocess.Popen, seconds: float) -> tuple[str, str, bool]:
    """What a process wrote until it ended, and whether it had to be made to: at first it is asked where it is."""
    try:
        for sent in (None, signal.SIGTERM, signal.SIGKILL):
            if sent:
                process.send_signal(sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return *process.communicate(timeout=seconds if sent is None else _PATIENCE), sent is not None
        raise AssertionError("a killed process has not ended")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
