"""The judge: runs the test cells of a lab on a submission, each question against a worker of its own.

The test cells of a question run here, in one copy of the master's setup names, with the student's names replaced by
proxies (functions) or plain copies (values). A cell earns its points only if it runs to its end and the worker was
sound from its start to its end. A worker that runs out of time, or dies, fails the cell that it was asked by and those
after it. One that is seen to do what is not allowed fails the whole question. So does one that closes its connection
and runs on, and one that sends anything but whole answers.
"""

from __future__ import annotations

import contextlib
import functools
import re
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

import rooflab
from rooflab.grading import measure
from rooflab.grading.jail import jail, sandbox
from rooflab.grading.jail.link import Link, StudentError, Unfit, WorkerLost
from rooflab.grading.judge import messages
from rooflab.grading.judge.counting import Counting
from rooflab.grading.judge.kernels import Kernels
from rooflab.grading.judge.messages import Said
from rooflab.grading.judge.runtime import Runtime
from rooflab.grading.lab import builds_on
from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.model import HIDDEN, UNWRITTEN, Cell, Lab, LabError, Limits, label, public_half
from rooflab.grading.lab.names import bound_names, loaded_names
from rooflab.grading.lab.printable import printable
from rooflab.grading.lab.repair import Submission
from rooflab.grading.measure import kernel

SLACK_S = 10.0
SEED_BITS = 48  # a number that every reader of JSON keeps
AGAIN_S = 5.0  # for a cell that did not end in another question
EXPERIMENTS_S = 60.0  # per question, for cells that the student added; they take none of the question's own time
_KERNELS = re.compile(r"\bmeasure\.(launches|cuda_kernel)\(")  # in a test cell: its question asks for CUDA kernels


class JudgeTimeout(BaseException):
    """A test cell itself ran on after its worker's time was over."""


@dataclass
class TestResult:
    """One test cell and its points. `message` says why it failed, `pending` why it could not be decided here."""

    grade_id: str
    points: int
    message: str = ""
    pending: str = ""

    @property
    def earned(self) -> int:
        return 0 if self.message or self.pending else self.points


@dataclass
class QuestionResult:
    """One question: its test cells, how long it took, and why the process of its code was lost, if it was."""

    question: str
    tests: list[TestResult] = field(default_factory=list)
    seconds: float = 0.0
    lost: str = ""

    @property
    def label(self) -> str:
        return label(self.question)

    @property
    def points(self) -> int:
        """What can be earned here: a test that is pending does not count."""
        return sum(test.points for test in self.tests if not test.pending)

    @property
    def pending(self) -> int:
        return sum(test.points for test in self.tests if test.pending)

    @property
    def earned(self) -> int:
        return sum(test.earned for test in self.tests)


@dataclass
class Counters:
    """The processes that count for all questions of a submission, and that no student's Python enters. `endless` holds
    cells that did not end, with what they use, and the processor time that they had taken when they were stopped.
    """

    runtime: Runtime
    kernels: Kernels
    endless: dict[tuple[str, ...], float] = field(default_factory=dict)


class Proxy:
    """Stands for one function of the student; `cells` are the sources that define it."""

    def __init__(self, name: str, link: Link, cells: Sequence[str], counting: Counting, kernels: Kernels) -> None:
        self.__name__, self._link, self.__rooflab_cells__, self._counting = name, link, cells, counting
        self._kernels = kernels

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._counting.ask(self._link, "call", self.__name__, args, kwargs)

    def __rooflab_measure__(
        self, kind: str, args: tuple, kwargs: dict, options: dict, through: str, answer: Callable[..., Any] | None
    ) -> Any:
        if kind == "cpu_seconds":
            start = self._link.cpu_seconds()
            value = self(*args, **kwargs)
            return {"value": value, "seconds": self._link.cpu_seconds() - start}
        if kind == "launches":
            with self._kernels.watching() as launches:
                value = self._counting.ask(self._link, "call_on_cpu", self.__name__, args, kwargs)
            return {"value": value, "launches": tuple(launches)}
        call = args, kwargs, options
        asked = answer and (lambda what, *more: answer(what, *self._counting.hear(more)))
        return self._counting.hear(self._counting.measure(self._link, self.__name__, kind, call, through, asked))

    def __repr__(self) -> str:
        return f"<the student's {self.__name__}>"


Proxy.__name__ = "function"  # tests say so of a value of the wrong type


class Judge:
    """Grades submissions of one lab. Student code runs in the jail; a `trusted` one may run without.

    Parameters
    ----------
    seed : int, optional
        What hidden tests draw their inputs from; a random one unless it is given. Equal seeds draw equal inputs.

    Raises
    ------
    LabError
        This Python drops asserts, a setup cell fails, or there can be no jail here.
    """

    def __init__(self, lab: Lab, trusted: bool = False, seed: int | None = None) -> None:
        if not __debug__:  # `compiled` keeps the asserts of cells, and not those of the modules that cells import
            raise LabError("Grades depend on asserts, which this Python drops: run it without -O and PYTHONOPTIMIZE.")
        if not trusted and (refusal := jail.refusal()):
            raise LabError(refusal)
        self.lab, self.isolated = lab, not trusted
        self.seed = secrets.randbits(SEED_BITS) if seed is None else seed
        self.hidden = [str(lab.folder.parent)] if lab.folder else []
        self.setup = [cell for cell in lab.cells if cell.role == "setup"]
        rooflab.set_num_threads(sandbox.library_threads())
        self.trusted: dict[str, Any] = {"__name__": "__judge__"}
        for cell in self.setup:
            try:
                exec(compiled(cell), self.trusted)
            except Exception as error:
                raise LabError(f"A setup cell of {lab.name} fails here: {type(error).__name__}: {error}") from error

    def grade(self, submission: Submission) -> Iterator[QuestionResult]:
        """Questions in order, each as soon as it is graded."""
        with self.counters() as counters:
            for question in self.lab.questions:
                yield self.grade_question(question, submission, counters)

    @contextlib.contextmanager
    def counters(self) -> Iterator[Counters]:
        """What counts for all questions of a submission."""
        limits = [self.lab.limits(question) for question in self.lab.questions if self.lab.tests(question)]
        seconds, memory_gb = sum(one.seconds for one in limits), max((one.memory_gb for one in limits), default=1.0)
        with (
            Runtime(Limits(seconds, memory_gb), self.isolated) as runtime,
            Kernels(Limits(kernel.SECONDS, memory_gb), self.isolated) as kernels,
        ):
            yield Counters(runtime, kernels)

    def grade_question(self, question: str, submission: Submission, counters: Counters | None = None) -> QuestionResult:
        """One question; with `counters` of its own unless it is given some.

        Other answers may change what this one uses. Where one of them stopped or the process was lost, and this one
        does not earn all points, it is graded once more without them, and the better result counts.
        """
        if counters is None:
            with self.counters() as counters:
                return self.grade_question(question, submission, counters)
        tests = self.lab.tests(question)
        result, ended_early = self._graded(question, submission, counters, tests)
        if ended_early and result.earned < result.points:
            every, fewer = (builds_on.cells_for(self.lab, question, submission.cells, one) for one in (True, False))
            if fewer != every:
                alone, _ = self._graded(question, submission, counters, tests, changers=False)
                alone.seconds = result.seconds = result.seconds + alone.seconds
                result = max(result, alone, key=lambda one: (one.earned + one.pending, not one.lost))
        return result

    def _graded(
        self, question: str, submission: Submission, counters: Counters, tests: Sequence[Cell], changers: bool = True
    ) -> tuple[QuestionResult, bool]:
        """One question, with these tests and, if `changers`, the answers that change what it uses. Also whether a cell
        of another question stopped, or the process was lost.
        """
        start, again, decided, stopped = time.monotonic(), list[TestResult](), 0, list[tuple[Cell, str]]()
        counters.kernels.missing = ""
        result = QuestionResult(question, [TestResult(cell.key, cell.points) for cell in tests])
        limits = self.lab.limits(question)
        link = Link(limits, self.isolated, self.hidden)
        link.asked["kernels"] = counters.kernels.answer
        try:
            with _alarm(2 * limits.seconds + EXPERIMENTS_S + SLACK_S), _kernels(counters.kernels):
                theirs = builds_on.cells_for(self.lab, question, submission.cells, changers)
                stopped = self._prepare(question, link, theirs, counters.endless)
                scope, sources = dict(self.trusted), [one.public for one in self.setup] + [one.source for one in theirs]
                lost: dict[str, str] = {}  # names that a test cell did not come to define, and why
                told = False  # whether a hidden test has run
                for cell, test in zip(tests, result.tests, strict=True):
                    with waiting(test):
                        said = self._run(cell, link, scope, sources, counters, lost)
                    if link.lost:
                        break
                    test.message = said.text
                    again += [test] * (told and said.quotes and not cell.hidden)
                    told = told or said.hidden
                    lost |= dict.fromkeys(bound_names(cell.source) - scope.keys(), test.message)
                    test.pending = "" if test.message else test.pending
                    if test.message and stopped and not UNWRITTEN.fullmatch(test.message):
                        test.message += " " + builds_on.why_stopped(self.lab, test.message, stopped)
                    test.message += builds_on.where_from(self.lab, test.message)
                    decided += 1
        except JudgeTimeout:
            if not link.lost:
                link.lost, link.only_ended = "The tests did not end in time.", True
        finally:
            link.close()
        result.lost = printable(link.lost)
        if result.lost and not link.only_ended:
            again, decided = [], 0
        for test in result.tests[decided:]:
            test.message, test.pending = result.lost, ""
        if again:
            alone, asked = self._without_hidden, [test.grade_id for test in again]
            tests = alone.lab.tests(question)
            while tests[-1].key not in asked:  # a later one may be what took all of the time
                tests = tests[:-1]
            without, _ = alone._graded(question, submission, counters, tests, changers)
            public = {one.grade_id: one.message for one in without.tests}
            for test in again:
                test.message = public[test.grade_id] or messages.AFTER_OTHERS
        result.seconds = time.monotonic() - start
        return result, bool(result.lost) or any(cell.question != question for cell, _ in stopped)

    @functools.cached_property
    def _without_hidden(self) -> Judge:
        """Says why a public test fails, in the words of the student's code that has seen no hidden inputs."""
        return Judge(public_half(self.lab), not self.isolated, self.seed)

    def _prepare(
        self, question: str, link: Link, theirs: Sequence[Cell], endless: dict[tuple[str, ...], float]
    ) -> list[tuple[Cell, str]]:
        """Run the cells that the question builds on; returns the student's that failed, with a sentence about each. A
        cell that did not end in another question, with the same cells that it uses and as much of the processor's time,
        gets little time. One that waited for a busy machine gets all of it again.
        """
        stopped, left = [], EXPERIMENTS_S
        try:
            if not self.lab.counts(question):
                link.ask("without_counters")
            for cell in self.setup:
                link.ask("setup", cell.key, cell.public)
            for at, cell in enumerate(theirs, 1):
                cpu_s = link.cpu_seconds()
                start, more = time.monotonic(), left if cell.role == "extra" else 0.0
                end, uses = link.deadline + more, builds_on.related(theirs[:at])
                tried = endless.get(uses, 0.0)
                link.deadline = min(end, start + AGAIN_S) if 1.1 * tried > end - start else end
                try:
                    link.ask("run", cell.key, as_python(cell.source))
                except LabError:
                    raise
                except WorkerLost:
                    endless[uses] = max(tried, link.cpu_at_the_end - cpu_s)
                    link.lost += f" It was running cell {cell.key}."
                    raise
                except Exception as error:
                    stopped.append((cell, f"(Cell {cell.key} had stopped: {messages.text(error)})"))
                spent = min(more, time.monotonic() - start)
                link.deadline = end - (more - spent)
                left -= spent
        except WorkerLost:
            pass
        return stopped

    def _run(
        self,
        cell: Cell,
        link: Link,
        scope: dict[str, Any],
        sources: Sequence[str],
        counters: Counters,
        lost: Mapping[str, str],
    ) -> Said:
        """Run one test cell. Its question's later cells see what it defines; what an earlier one did not come to
        define is `lost`.
        """
        random = np.random.default_rng([self.seed, *cell.key.encode()])
        counting = Counting(counters.runtime, random, found=counters.kernels.found)
        try:
            for name in sorted(loaded_names(cell.source) & self.lab.student_names(cell.question)):
                try:
                    state, value = link.ask("get", name)
                except (StudentError, Unfit) as error:
                    if cell.hidden:  # the text is the student's, as the name of the value's type is
                        return Said(messages.NOT_PASSED, hidden=True)
                    return Said(f"{name}: {messages.text(error)}", quotes=True)
                if state == "missing":
                    if any(_KERNELS.search(one.source) for one in self.lab.tests(cell.question)):
                        counters.kernels.check()  # the cell that defines it may have stopped at its kernels
                    return Said(f"{name} is not defined.")
                is_function = state == "callable"
                if state == "kernels":
                    scope[name] = kernel.Source(*counting.hear(value))
                    continue
                scope[name] = (
                    Proxy(name, link, sources, counting, counters.kernels) if is_function else counting.hear(value)
                )
            with measure.drawing(self.seed, cell.key):
                exec(compiled(cell), scope)
        except (KeyboardInterrupt, JudgeTimeout, LabError):
            raise
        except measure.CannotRun as error:
            measure.pending(f"{error}.")
        except WorkerLost:
            return Said(link.lost)
        except BaseException as error:
            hidden = messages.is_hidden(error, cell)
            if isinstance(error, NameError) and (why := lost.get(error.name or "")):
                return Said(why, hidden, quotes=not hidden)
            said = messages.message(error, cell) + (counting.why() if messages.is_of_a_value(error) else "")
            theirs, shown = isinstance(error, (StudentError, Unfit)), counting.shown(said, cell.source)
            if hidden:
                return Said(said if theirs else shown, hidden)
            return Said(said, quotes=theirs or said != shown)
        return Said(hidden=HIDDEN[0] in cell.source)


def compiled(cell: Cell) -> CodeType:
    """The code of a cell of the master. Its asserts stay, whatever options Python was started with."""
    return compile(cell.source, f"<{cell.key}>", "exec", dont_inherit=True, optimize=0)


@contextlib.contextmanager
def waiting(test: TestResult) -> Iterator[None]:
    """Let `measure.pending` mark this test."""

    def mark(why: str) -> None:
        test.pending = why

    before: Callable[[str], None] = measure._pending
    measure._pending = mark
    try:
        yield
    finally:
        measure._pending = before


@contextlib.contextmanager
def _kernels(kernels: Kernels) -> Iterator[None]:
    """Let the CUDA kernels that test cells run be run there."""
    before, kernel._run = kernel._run, kernels.run
    try:
        yield
    finally:
        kernel._run = before


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise JudgeTimeout in a test cell that never ends. Only the main thread can be stopped in this way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise JudgeTimeout

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
