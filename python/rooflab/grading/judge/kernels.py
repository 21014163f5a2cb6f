"""Students' CUDA kernels under the judge: compiled, run and counted in a process that no student's Python enters.

`Kernels` is the judge's end. The process itself, started by `main`, is in a jail of its own, where it may start the
machine's compiler and the two programs of `rooflab.cuda.simt`. Test cells ask it (`measure.cuda_kernel`), and so does
the student's worker, whose kernels of ``rl.cuda.compile`` are all run there (`worker_kernels`). What the worker is told
it may change as it likes: tests are given what the judge was told.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rooflab.cuda import CompileError, Finding
from rooflab.cuda.simt import toolchain
from rooflab.grading.jail import codec, wire
from rooflab.grading.jail.guard import UNREADABLE
from rooflab.grading.jail.link import ERRORS, Link, WorkerLost
from rooflab.grading.lab.model import Limits
from rooflab.grading.measure import kernel
from rooflab.grading.measure.kernel_arguments import unpacked

PR_SET_DUMPABLE = 4
COUNTS_BYTES = 4096  # that the counts of a launch, or of one of its lines, take about
PATIENCE_S = 30.0  # for a compiler on a busy machine, and a process that has to be stopped


class Kernels:
    """The judge's end: a process that starts when it is first asked, and again after one was lost."""

    def __init__(self, limits: Limits, isolated: bool) -> None:
        self.limits, self.isolated = limits, isolated
        self.link: Link | None = None
        self.found: list[Finding] = []  # in all launches
        self.missing = ""  # why the student's kernels could not be compiled here; empty if they could
        self._watching: list[list[kernel.KernelRun]] = []
        self._room = 0  # bytes that launches may still leave for those who watch

    def __enter__(self) -> Kernels:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        link, self.link = self.link, None
        if link is not None:
            link.close()

    def run(self, source: str, options: Sequence[str], *launch: Any) -> tuple[list[np.ndarray], Any]:
        """What `kernel.run_here` does, in the process."""
        pieces, plain = self._ask("run", source, tuple(options), *launch)
        seen = kernel.launch_of(plain, source)
        self.found += seen.findings
        for watching in self._watching:
            words = launch[-2]  # that the student's process sent
            self._room -= sum(piece.nbytes for piece in pieces) + COUNTS_BYTES * (1 + len(seen.lines))
            if self._room < 0:
                raise ValueError(f"the launches of one call leave more than {codec.MAX_BYTES:,} bytes in all")
            watching.append(kernel.run_of(seen, unpacked(pieces, words)[1]))
        return pieces, plain

    def answer(self, kind: str, *question: Any) -> Any:
        """What the student's worker asks: ("describe", source, options) or ("run", ...), as `run`."""
        if kind == "run":
            *launch, settings = question
            more = {"mode": "count", "blocks": None} if self._watching else {}
            seconds = min(settings["seconds"], self.limits.seconds)
            return self.run(*launch, {**settings, **more, "seconds": seconds})
        if kind == "describe":
            try:
                return self._ask("describe", *question)
            except kernel.CannotRun as error:
                self.missing = str(error)
                return "missing", self.missing
        raise ValueError(f"the judge answers nothing that begins with {kind!r:.50}")

    @contextlib.contextmanager
    def watching(self) -> Iterator[list[kernel.KernelRun]]:
        """A list that each launch is added to until the context ends. Until then all of them are counted.

        Raises
        ------
        CannotRun
            The student's kernels could not be compiled here, whatever the student's function made of that.
        """
        launches: list[kernel.KernelRun] = []
        self._watching.append(launches)
        self._room = codec.MAX_BYTES
        try:
            yield launches
        except Exception:
            self.check()
            raise
        finally:
            self._watching.remove(launches)
        self.check()

    def check(self) -> None:
        """Raise CannotRun if the student's kernels could not be compiled here."""
        if self.missing:
            raise kernel.CannotRun(self.missing)

    def _ask(self, kind: str, *question: Any) -> Any:
        self.link = self.link or self._started()
        self.link.deadline = time.monotonic() + self.limits.seconds + PATIENCE_S
        try:
            return self.link.ask(kind, *question)
        except WorkerLost:
            why = self.link.lost
            self.close()
            raise RuntimeError(f"The kernel's process was lost: {why}") from None

    def _started(self) -> Link:
        """The process, which knows what to compile with."""
        try:
            programs = toolchain.programs()
        except toolchain.NoCompiler as error:
            raise kernel.CannotRun(str(error)) from None
        link = Link(self.limits, self.isolated, serves="judge.kernels", files=programs, processes=True)
        link.deadline = time.monotonic() + PATIENCE_S
        link.ask("tools", toolchain.compiler(), tuple(path.name for path in programs))
        return link


def _prepare(compiler: str, programs: Sequence[str]) -> None:
    """Use this compiler, and these programs, which were built outside and lie in this folder."""
    runner, accountant = (Path.cwd() / name for name in programs)
    toolchain.use(compiler, runner, accountant)


def _described(source: str, options: Sequence[str]) -> tuple:
    """("made", each kernel's parameters as `rl_describe` wrote them, static shared bytes and whether it stores
    something, the compiler's log), or ("refused", its log).
    """
    try:
        library = kernel.compile_here(source, tuple(options)).library(is_checked=True)
    except CompileError as error:
        return "refused", error.log
    return "made", library.parameters, library.shared, library.storing, library.log


def _run(source: str, options: Sequence[str], *launch: Any) -> tuple[list[np.ndarray], dict[str, Any]]:
    return kernel.run_here(source, tuple(options), *launch)


_ANSWERS = {"tools": _prepare, "describe": _described, "run": _run}


def main(requests: int, replies: int) -> NoReturn:
    """Greet the judge and serve it."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
        os.dup2(nothing.fileno(), sys.stderr.fileno())  # the judge reads it only to see why a start failed
    if sys.platform == "linux":  # a kernel's process runs as the same user: it may not look into this one
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    wire.send(replies, wire.message((0, "ready", wire.version())))
    while True:
        try:
            number, kind, *payload = wire.receive(requests)
        except codec.CodecError as error:
            wire.send(replies, wire.message((0, "fatal", f"{UNREADABLE}: {error}")))
            os._exit(1)
        if kind == "bye":
            os._exit(0)
        try:
            reply = wire.message((number, "ok", _ANSWERS[kind](*payload)))
        except Exception as error:
            kinds = [one.__name__ for one in type(error).__mro__ if one.__name__ in ERRORS]
            said = error.args[0] if isinstance(error, KeyError) and error.args else error
            text = f"{type(error).__name__}: {said}"[:4000].encode("utf-8", "replace").decode()
            reply = wire.message((number, "error", kinds[0] if kinds else "RuntimeError", text))
        wire.send(replies, reply)
