"""The worker: runs a student's cells and calls the student's functions for the judge.

`start` runs it with two ends of pipes. It greets the judge, then serves one request at a time, each a message
(number, kind, ...), and answers (number, "ok", value), (number, "error", type name, text), or (number, "unfit", text)
for a value that may not cross. A forbidden act is answered by (0, "fatal", reason) and the end of the process. Hidden
tests, points and answers never come here.
"""

from __future__ import annotations

import _thread
import builtins
import ctypes  # noqa: F401  loaded before the guard, for the libraries that use it
import importlib
import math
import operator
import os
import select
import struct
import sys
import time
import traceback
import tracemalloc
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from rooflab.grading import cells, clock, codec, fake_run, kernel, measurers, recorder
from rooflab.grading.guard import Guard, Seal

THREAD_GRACE_S = 0.5
_MEASURING = """
rooflab rooflab._core rooflab._core.memory rooflab.autograd rooflab.benchmark.timing rooflab.cuda rooflab.memory
rooflab.memory.timeline rooflab.memory.use"""
MEASURING = _MEASURING.split()
MEASURES = ("rooflab.grading", "rooflab.benchmark.fake_")
TRACEMALLOC = ("start", "stop", "clear_traces", "reset_peak")
HOOKS = ("gettrace", "getprofile")  # what they return leads to what was counted
MAX_TEXT = 2000


class Worker:
    """State of one worker process: the student's namespace, and the guard once student code has begun."""

    def __init__(self, requests: int, replies: int) -> None:
        self.requests, self.replies = requests, replies
        self.names: dict[str, Any] = {"__name__": "__main__"}
        exec(cells.GIVEN, self.names)
        self.guard = Guard(self.stop, os.getcwd())
        self.is_armed, self.threads = False, 0
        self.replying, self.measuring = Seal([]), Seal([])
        self.recorder = recorder.install()
        measurers._traced, measurers._host = self.recorder.measured, False

    def serve(self) -> NoReturn:
        while True:
            number, kind, *payload = codec.receive(self.requests)
            if kind == "bye":
                self.inspect()
                os._exit(0)
            reply = self.answer(number, getattr(self, f"do_{kind}"), payload)
            self.look(self.replying)
            codec.send(self.replies, reply)

    def answer(self, number: int, action: Any, payload: list) -> bytes:
        try:
            value = action(*payload)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # what filled the memory goes first
            return codec.message((number, "error", *describe(error)))
        try:
            return codec.message((number, "ok", value))
        except codec.CodecError as error:
            return codec.message((number, "unfit", str(error)))
        except Exception as error:
            return codec.message((number, "unfit", describe(error)[1]))

    def stop(self, reason: str) -> NoReturn:
        """Say why and end the process at once."""
        try:
            codec.send(self.replies, codec.message((0, "fatal", reason)))
        finally:
            os._exit(86)

    def inspect(self) -> None:
        """Before and after each measurement, and at the end: nothing that measures was replaced, no thread runs on."""
        self.look(self.replying, self.measuring)

    def look(self, *seals: Seal) -> None:
        """Before each reply: what these seals hold was not replaced, no thread runs on."""
        for seal in seals:
            if name := seal.broken():
                self.stop(f"student code replaced {name}")
        end = time.monotonic() + THREAD_GRACE_S
        while self.is_armed and _thread._count() > self.threads:
            if time.monotonic() > end:
                self.stop("student code left a thread running")
            time.sleep(0.01)

    def arm(self) -> None:
        """Student code comes next: close the doors."""
        measurers._pause = self.guard.paused
        measurers._inspect = self.inspect
        for name in HOOKS:
            setattr(sys, name, _no_hook)
        for name in TRACEMALLOC:
            setattr(tracemalloc, name, self.ending(f"tracemalloc.{name}"))
            setattr(sys.modules["_tracemalloc"], name, getattr(tracemalloc, name))
        self.hide()
        modules = [np, np.linalg, time, math, operator, builtins, tracemalloc, clock, fake_run, measurers, traceback]
        modules += [sys.modules[name] for name in MEASURING if name in sys.modules]
        modules += [module for name, module in sys.modules.items() if name.startswith("rooflab.labs.")]
        self.measuring, self.replying = Seal(modules), Seal([codec, os, select, struct, _thread])
        self.is_armed, self.threads = True, _thread._count()
        self.guard.install()

    def hide(self) -> None:
        """What measures cannot be reached by its name: a student who imports it gets a copy that measures nothing."""
        own = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(MEASURES)}
        for name in own:
            vars(sys.modules.get(name.rpartition(".")[0], sys)).pop(name.rpartition(".")[2], None)
        sys.modules["__main__"] = ModuleType("__main__")
        for name, value in self.names.items():
            if isinstance(value, ModuleType) and value.__name__ in own:
                self.names[name] = importlib.import_module(value.__name__)

    def ending(self, name: str) -> Any:
        """In place of a function that only a dishonest answer calls."""
        return lambda *args, **kwargs: self.stop(f"student code called {name}, which is not allowed")

    def do_setup(self, label: str, source: str) -> None:
        """A cell of the master."""
        exec(compile(source, f"<{label}>", "exec", dont_inherit=True), self.names)

    def do_run(self, label: str, source: str) -> None:
        """A cell of the student."""
        if not self.is_armed:
            self.arm()
        cells.run(source, label, self.names)

    def do_get(self, name: str) -> tuple:
        if name not in self.names:
            return ("missing", None)
        value = self.names[name]
        return ("callable", None) if callable(value) else ("value", value)

    def do_call(self, name: str, args: tuple, kwargs: dict) -> Any:
        return self.names[name](*args, **kwargs)

    def do_measure(self, kind: str, name: str, args: tuple, kwargs: dict, options: dict) -> dict | str | tuple:
        """A measurement; of what is counted, the trace of it or a sentence that says why there is none."""

        def measure() -> dict:
            return measurers.LOCAL[kind](self.names[name], args, kwargs, **options)

        self.inspect()
        try:
            if kind not in measurers.COUNTED:
                return measure()
            trace = self.recorder.record(measure)
            return trace.lost or trace.parts()
        finally:
            self.inspect()

    def do_kernel(self, source: str, name: str, grid: tuple, block: tuple, args: tuple) -> tuple:
        """The student's kernel; in a worker that is asked for nothing else."""
        return kernel.compile_and_launch(source, name, grid, block, args)


def _no_hook() -> None:
    """In place of a function that hands out the hook in use."""


def describe(error: BaseException) -> tuple[str, str]:
    """Nearest builtin type of an exception, and a sentence that says where in the student's code it arose."""
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    try:
        text = str(error)[:MAX_TEXT].encode("utf-8", "replace").decode()
    except BaseException:
        text = ""
    if isinstance(error, SyntaxError):
        text = f"{error.msg} (line {error.lineno})"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("<") and f.lineno]
    frames = [f for f in frames if not f.filename.startswith("<frozen")]
    where = f" (line {frames[-1].lineno} of {frames[-1].filename[1:-1]})" if frames else ""
    if isinstance(error, SystemExit):
        text = "the code called exit"
    return kinds[0] if kinds else "RuntimeError", f"{type(error).__name__}: {text}{where}"


def main(requests: int, replies: int) -> NoReturn:
    """Greet the judge and serve it."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), sys.stderr.fileno())  # the judge read there why a start failed
    worker = Worker(requests, replies)
    codec.send(replies, codec.message((0, "ready", codec.version())))
    worker.serve()
