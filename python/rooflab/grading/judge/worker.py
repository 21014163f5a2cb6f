"""The worker: runs a student's cells and calls the student's functions for the judge.

`start` runs it with the ends of two pipes. It greets the judge, then serves one request at a time, each a message
(number, kind, ...), and answers (number, "ok", value), (number, "error", type name, text), or (number, "unfit", text)
for a value that may not cross. Before it answers it may ask for something that stays with the judge, with (number,
"asks", question), and gets (number, "answer", value) or (number, "error", type name, text). After a forbidden act it
sends (0, "fatal", reason) and the process ends. Hidden tests, points and answers never come here.
"""

from __future__ import annotations

import builtins
import ctypes  # noqa: F401  loaded before the guard, for the libraries that use it
import os
import sys
import traceback
from functools import partial
from types import ModuleType
from typing import Any, NoReturn

from rooflab import specs
from rooflab.benchmark import fake_clocks
from rooflab.cuda import Module, SimtModule
from rooflab.grading.jail import codec, wire
from rooflab.grading.jail.guard import EXIT_CODE, UNREADABLE, Guard
from rooflab.grading.judge import worker_kernels
from rooflab.grading.lab import cells
from rooflab.grading.measure import kernel, one_call
from rooflab.grading.replay import recorder, without_counters

MAX_TEXT = 2000


class Worker:
    """State of one worker process: the student's namespace, and the guard once student code has begun."""

    def __init__(self, requests: int, replies: int) -> None:
        self.requests, self.replies, self.number = requests, replies, 0
        main = sys.modules["__main__"] = ModuleType("__main__")
        self.names = vars(main)
        exec(cells.GIVEN, self.names)
        self.guard, self.is_armed = Guard(self.stop, os.getcwd()), False
        fake_clocks.install()  # before any code can take a clock and keep it
        worker_kernels.install(partial(self.ask, "kernels"))
        self.recorder = recorder.install()
        one_call._traced, one_call._section, one_call._host = self.recorder.measured, self.recorder.section, False

    def serve(self) -> NoReturn:
        while True:
            number, kind, *payload = self.receive()
            if kind == "bye":
                os._exit(0)
            self.number = number
            wire.send(self.replies, self.answer(number, getattr(self, f"do_{kind}"), payload))

    def receive(self) -> Any:
        """What the judge sends. It may be a tensor on a device that is not here."""
        try:
            return wire.receive(self.requests)
        except codec.CodecError as error:
            self.stop(f"{UNREADABLE}: {error}")

    def ask(self, *question: Any) -> Any:
        """Ask something that stays with the test, such as its clock."""
        wire.send(self.replies, wire.message((self.number, "asks", question)))
        _, kind, *answer = self.receive()
        if kind == "answer":
            return answer[0]
        raise getattr(builtins, answer[0])(answer[1])

    def answer(self, number: int, action: Any, payload: list) -> bytes:
        try:
            value = action(*payload)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # frees what may have filled the memory
            return wire.message((number, "error", *describe(error)))
        try:
            return wire.message((number, "ok", value))
        except codec.CodecError as error:
            return wire.message((number, "unfit", str(error)))
        except Exception as error:
            return wire.message((number, "unfit", describe(error)[1]))

    def stop(self, reason: str) -> NoReturn:
        """Say why and end the process at once."""
        try:
            wire.send(self.replies, wire.message((0, "fatal", reason)))
        finally:
            os._exit(EXIT_CODE)

    def do_without_counters(self) -> None:
        """From here on nothing shows a count, and the formulas of costs cannot be read."""
        without_counters.take_away()
        why = "this question asks for a formula: compute it from the sizes, without rl.cost"
        self.guard.hide(os.path.dirname(specs.__file__), why)

    def do_setup(self, label: str, source: str) -> None:
        """A cell of the master."""
        exec(compile(source, f"<{label}>", "exec", dont_inherit=True), self.names)

    def do_run(self, label: str, source: str) -> None:
        """A cell of the student."""
        if not self.is_armed:
            self.guard.install()
            self.is_armed = True
        cells.run(source, label, self.names)

    def do_get(self, name: str) -> tuple:
        if name not in self.names:
            return ("missing", None)
        value = self.names[name]
        if isinstance(value, (SimtModule, Module)):
            return ("kernels", (value.source, value.options))
        return ("callable", None) if callable(value) else ("value", value)

    def do_call(self, name: str, args: tuple, kwargs: dict) -> Any:
        return self.names[name](*args, **kwargs)

    def do_call_on_cpu(self, name: str, args: tuple, kwargs: dict) -> Any:
        """As `do_call`, with the kernels of ``rl.cuda.compile`` where they are counted, those of a GPU too."""
        with kernel.on_cpu():
            return self.names[name](*args, **kwargs)

    def do_measure(
        self, kind: str, name: str, args: tuple, kwargs: dict, options: dict, through: str
    ) -> dict | str | tuple:
        """A measurement; for kinds that are counted, its trace, or a sentence that says why there is none."""
        asking = {"ask": self.ask} if kind in one_call.ASKING else {}

        def measure() -> dict:
            return one_call.LOCAL[kind](one_call.glued(self.names[name], through), args, kwargs, **options, **asking)

        if kind == "timed":
            trace, seen = self.recorder.record(measure, layouts=True)
            return seen["value"], trace.lost or trace.parts()
        if kind not in one_call.COUNTED:
            return measure()
        trace, _ = self.recorder.record(measure)
        return trace.lost or trace.parts()


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


def prepare() -> None:
    """Find what each worker needs, before it is forked."""
    recorder.holders()


def main(requests: int, replies: int) -> NoReturn:
    """Greet the judge and serve it."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), sys.stderr.fileno())  # the judge reads it only to see why a start failed
    worker = Worker(requests, replies)
    wire.send(replies, wire.message((0, "ready", wire.version())))
    worker.serve()
