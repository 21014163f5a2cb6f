"""The judge's end of the connection to one worker: starts it, asks it, ends it, and notices every way in which it can
fail.

A worker that does not start is the machine's fault, and a `LabError`. One that fails later is the student's.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from rooflab.grading.jail import codec, folders, guard, process, sandbox, wire
from rooflab.grading.lab.model import LabError, Limits

GRACE_S = 2.0
NOT_ALLOWED = (guard.EXIT_CODE, -signal.SIGSYS, None)  # exit codes; None where the connection ends, but not the process
MAX_ERROR = 1000  # characters of an error that the worker gets
START_S = 120.0  # imports from a slow network disk are no fault of the student's
INSTALL = "install rooflab again for this Python (pip install 'rooflab[labs]')"
ERRORS = {
    kind.__name__: kind
    for kind in (
        *(
            ArithmeticError,
            AssertionError,
            AttributeError,
            IndexError,
            KeyError,
            LookupError,
            MemoryError,
            NameError,
        ),
        *(
            NotImplementedError,
            OSError,
            OverflowError,
            RuntimeError,
            TypeError,
            ValueError,
            ZeroDivisionError,
        ),
    )
}


class WorkerLost(BaseException):
    """The worker is gone or can no longer be believed. Not an Exception, so that no test cell catches it."""


class StudentError(Exception):
    """An exception that student code raised. It also has the builtin type of that exception."""


class Unfit(BaseException):
    """Student code returned a value that may not cross. Not an Exception, so that a test that expects an exception from
    student code does not pass because of it.
    """


class Link:
    """One worker process, or another that the judge asks, as `serves` says, `isolated` in the jail or not. The folders
    `hidden` are empty in the jail. Its own folder begins with copies of `files`. It can start programs only if
    `processes` says so.

    After a failure `lost` says why, and every further question raises `WorkerLost`. `only_ended` says that the process
    ran out of time or ended, and that nothing else was seen of it: no act that is not allowed, no connection that it
    closed while it ran on, and no message that is none or that ends in its middle.

    Raises
    ------
    LabError
        The worker did not start. One sentence says why, and what to do.
    """

    def __init__(
        self,
        limits: Limits,
        isolated: bool,
        hidden: Sequence[str] = (),
        serves: str = "judge.worker",
        files: Sequence[Path] = (),
        processes: bool = False,
    ) -> None:
        self.files, self.processes = files, processes
        self.process: process.Forked | process.Spawned
        self.limits, self.isolated, self.hidden, self.serves = limits, isolated, hidden, serves
        self.asked: dict[str, Callable[..., Any]] = {}  # who answers what the worker asks, by its first word
        self.lost, self.only_ended, self.number = "", False, 0
        self.given: set[bytes] = set()  # digests of the numbers that tests gave the worker
        self.cpu_at_the_end = 0.0  # processor seconds that the worker had taken when its time was over
        try:
            with contextlib.ExitStack() as held:
                self._start(held)
                self.held = held.pop_all()
        except OSError as error:
            raise _not_started(str(error), "fix this and try again") from None
        self.deadline = time.monotonic() + limits.seconds

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, kind: str, *payload: Any, answer: Callable[..., Any] | None = None) -> Any:
        """Send one request and return what came back. Meanwhile the worker may ask `answer`.

        Raises
        ------
        CodecError
            The payload may not cross; nothing was sent.
        StudentError
            Student code raised.
        Unfit
            The value may not cross.
        WorkerLost
            The worker died, ran out of time, or sent something that is not an answer.
        """
        if self.lost:
            raise WorkerLost(self.lost)
        self.number = 1 + secrets.randbits(62)  # an answer to anything else has another number
        message = wire.message((self.number, kind, *payload))
        answers = functools.partial(self._answer, answer) if answer or self.asked else None
        try:
            self._look_for_unasked()
            wire.send(self.to_worker, message, self.deadline)
            reply = wire.receive(self.from_worker, self.deadline)
            while answers and _is_reply(reply) and reply[:2] == (self.number, "asks") and len(reply) == 3:
                if time.monotonic() > self.deadline:
                    raise TimeoutError
                wire.send(self.to_worker, self._answered(answers, reply[2]), self.deadline)
                reply = wire.receive(self.from_worker, self.deadline)
        except TimeoutError:
            self.cpu_at_the_end = self.cpu_seconds()
            self.lose(f"The code took longer than {self.limits.seconds:g} s.", only_ended=True)
        except codec.CodecError as error:
            what = str(error).partition(":")[0]  # what follows may be the student's, and hold hidden inputs
            self.lose(f"What the code's process sent is not an answer: {what}.")
        except (EOFError, OSError):
            with contextlib.suppress(EOFError, OSError):
                self._look_for_unasked()  # it may have said why it ended before it read the request
            code = self.process.wait(GRACE_S)
            self.lose(self._end(code), only_ended=code not in NOT_ALLOWED)
        except MemoryError:
            self.lose("What the code's process sent does not fit in memory.")
        return self._checked(reply)

    def lose(self, why: str, only_ended: bool = False) -> None:
        """End the worker for a reason that fails the rest of the question, or all of it unless it `only_ended`."""
        if not self.lost:
            self.lost, self.only_ended = why, only_ended
        self._kill()
        raise WorkerLost(self.lost)

    def close(self) -> None:
        """End the worker; one that leaves a process behind, or says more than it was asked, is lost."""
        if not self.lost:
            with contextlib.suppress(OSError, TimeoutError):
                wire.send(self.to_worker, wire.message((0, "bye")), time.monotonic() + GRACE_S)
            with contextlib.suppress(WorkerLost):
                self._await_end()
        self.held.close()

    def _start(self, held: contextlib.ExitStack) -> None:
        """Start the process and wait for its greeting; `held` releases everything that this takes."""
        folder = held.enter_context(folders.temporary("worker"))
        _copy_font_list(folder)
        for path in self.files:
            shutil.copy(path, folder)
        with contextlib.ExitStack() as workers:
            requests, self.to_worker = os.pipe()
            workers.callback(os.close, requests)
            held.callback(os.close, self.to_worker)
            self.from_worker, replies = os.pipe()
            workers.callback(os.close, replies)
            held.callback(os.close, self.from_worker)
            os.set_blocking(self.to_worker, False)
            said = held.enter_context(tempfile.TemporaryFile())
            pipes = requests, replies
            if self.isolated:
                self.group = sandbox.group(self.limits)
                if self.group:
                    held.callback(self.group.remove)
                self.process = process.Forked(
                    self.limits, folder, self.serves, pipes, said, self.hidden, self.group, self.processes
                )
            else:
                self.group = None
                self.process = process.Spawned(self.limits, folder, self.serves, pipes, said)
            held.callback(self._kill)
        self._await_greeting(said)

    def _await_greeting(self, said: IO[bytes]) -> None:
        """Raise LabError unless a worker of this very rooflab comes up; `said` is its standard error."""
        try:
            greeting = wire.receive(self.from_worker, time.monotonic() + START_S)
        except TimeoutError:
            silence = f"it said nothing for {START_S:g} s"
            raise _not_started(silence, "try again when the machine has less to do") from None
        except (EOFError, codec.CodecError):
            raise _not_started(_cause(said) or self._end(self.process.wait(GRACE_S)).rstrip("."), INSTALL) from None
        if greeting != (0, "ready", wire.version()):
            theirs = greeting[-1] if type(greeting) is tuple and greeting else greeting
            raise _not_started(
                f"it speaks {theirs}, and the judge {wire.version()}",
                "try again, because rooflab was changed meanwhile",
            )

    def _answer(self, answer: Callable[..., Any] | None, *question: Any) -> Any:
        """What is answered to a question: by who is asked for by its first word, or else by `answer`."""
        by_name = self.asked.get(question[0]) if question and type(question[0]) is str else None
        if by_name:
            return by_name(*question[1:])
        if not answer:
            raise ValueError("nothing is to be asked here")
        return answer(*question)

    def _answered(self, answer: Callable[..., Any], question: Any) -> bytes:
        """The message with the answer to a question, or with the error that it is."""
        try:
            if type(question) is not tuple:  # text would be split into as many objects as it has characters
                raise TypeError(f"expected a question with its arguments, got {type(question).__name__}")
            return wire.message((self.number, "answer", answer(*question)))
        except LabError:
            raise
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__name__ in ERRORS]
            text = str(error)[:MAX_ERROR]
            return wire.message((self.number, "error", kinds[0] if kinds else "RuntimeError", text))

    def cpu_seconds(self) -> float:
        """Processor time that the worker has taken so far."""
        return self.process.cpu_seconds()

    def _checked(self, reply: Any) -> Any:
        match reply if _is_reply(reply) else None:
            case (self.number, "ok", value):
                return value
            case (self.number, "error", str(kind), str(text)):
                base = ERRORS.get(kind, RuntimeError)
                shown = {"__str__": BaseException.__str__}  # a KeyError's own would quote its text
                raise type(base.__name__, (StudentError, base), shown)(text)
            case (self.number, "unfit", str(text)):
                raise Unfit(text)
            case (0, "fatal", str(reason)):
                self._stopped(reason)
        self.lose("What the code's process sent is not an answer to what was asked.")

    def _look_for_unasked(self) -> None:
        """Lose a worker that has said anything before it was asked."""
        if not _readable(self.from_worker, 0):
            return
        try:
            self._unasked()
        except (TimeoutError, codec.CodecError):
            self.lose("The code's process sent something that was not asked for.")

    def _await_end(self) -> None:
        """After "bye" nothing may come but the end of the connection."""
        try:
            self._unasked()
        except EOFError:
            if (code := self.process.wait(GRACE_S)) in NOT_ALLOWED:
                self.lose(self._end(code))
        except TimeoutError:
            self.lose("The student's code did not end, or left a process behind.")
        except (codec.CodecError, OSError):
            self.lose("The code's process sent more than was asked for.")

    def _unasked(self) -> None:
        """Read what comes where nothing should: last words, the end of the connection (EOFError), or a forgery."""
        message = wire.receive(self.from_worker, time.monotonic() + GRACE_S)
        match message if _is_reply(message) else None:
            case (0, "fatal", str(reason)):
                self._stopped(reason)
        self.lose("The code's process sent something that was not asked for.")

    def _stopped(self, reason: str) -> None:
        """The process ended itself. What student code may have written of the reason is not told: hidden inputs."""
        if self.serves == "judge.worker":
            known = reason.partition(":")[0]
            reason = known if known in guard.REASONS else "the code's process ended itself"
        self.lose(f"Stopped: {reason[:300]}.")

    def _end(self, code: int | None) -> str:
        if code is None:
            return "The code's process closed its connection to the judge."
        if code == guard.EXIT_CODE:
            return "The code's process stopped itself, as it does after what is not allowed."
        if self.group and self.group.failed_for_memory():
            return f"The code took more than {self.limits.memory_gb:g} GB of memory."
        if -code in set(signal.Signals):
            return f"The code's process was ended by {signal.Signals(-code).name}."
        return f"The code's process ended in the middle (exit code {code})."

    def _kill(self) -> None:
        if self.process.kill():
            self.lost, self.only_ended = self.lost or "The student's code left a process behind.", False


def _not_started(why: str, remedy: str) -> LabError:
    return LabError(f"The process for the student's code did not start ({why}): {remedy}.")


def _cause(said: IO[bytes]) -> str:
    """The line of a worker's last words that names an error, else their first line."""
    said.seek(0)
    lines = [line for line in said.read(2**16).decode("utf-8", "replace").splitlines() if line.strip()]
    errors = (line for line in lines if re.match(r"\S.*error", line, re.IGNORECASE))
    return next(errors, lines[0] if lines else "").strip()[:300]


def _is_reply(value: Any) -> bool:
    """Whether its first fields can be compared with a number and a word; to compare an array would raise."""
    return type(value) is tuple and len(value) > 1 and (type(value[0]), type(value[1])) == (int, str)


def _readable(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1e3))


def _copy_font_list(folder: str) -> None:
    """Copy matplotlib's list of fonts into the worker, where making it again would take seconds."""
    if "matplotlib" in sys.modules:
        for path in Path(sys.modules["matplotlib"].get_cachedir()).glob("fontlist*.json"):
            shutil.copy(path, folder)
