"""What a notebook shows below a test cell: that it passed, or why it failed; and below any cell that fails for want of
an answer which is not written yet, which one that is.

This is for the eyes alone. It runs in a student's notebook, and a grade knows nothing of it: the judge runs test cells
without IPython. Cells are told apart by their first line, see `titles`.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from types import TracebackType
from typing import Any

from rooflab.grading.lab import titles
from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.model import MARGIN_STUB, TO_WRITE, UNWRITTEN
from rooflab.grading.lab.names import bound_names, read_names
from rooflab.grading.measure.kernel import CannotRun

RED, GREEN, PLAIN = "\x1b[1;31m", "\x1b[32m", "\x1b[0m"
WAITS = "cannot be decided on this machine"


class Verdicts:
    """Shows what became of the test cells that an IPython shell runs, and which answer another cell lacks."""

    def __init__(self, shell: Any) -> None:
        self._shell, self._test, self._waits = shell, "", False
        self._cell = ""  # what it runs, as Python
        self._lacking: dict[str, str] = {}  # names that have no value yet, and the sentence about what is to be written
        self._usual: tuple[Any, Any] | None = None  # while a cell runs, what the shell does with errors otherwise
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    def waits(self, why: str) -> None:
        """A test cannot be decided on this machine, for this reason."""
        self._waits = True
        print(f"{self._test} {WAITS}: {why}" if self._test else why)

    def _begin(self, info: Any) -> None:
        self._test, self._waits = titles.test_of(str(info.raw_cell).lstrip()), False
        self._cell = as_python(str(info.raw_cell))
        self._usual = self._usual or (self._shell.custom_exceptions, self._shell.CustomTB)
        self._shell.set_custom_exc((Exception,), self._failed)

    def _end(self, result: Any) -> None:
        if self._usual:
            (self._shell.custom_exceptions, self._shell.CustomTB), self._usual = self._usual, None
        if self._test and result.success and not self._waits:
            print(f"{self._test}: {GREEN}passed{PLAIN}")
        if result.success:
            is_answer, values = MARGIN_STUB in self._cell, self._shell.user_ns
            for name in bound_names(self._cell):
                self._lacking.pop(name, None)
                if is_answer and _is_empty(values.get(name)):
                    self._lacking[name] = f"{name}: {TO_WRITE}"
        self._test = ""

    def _failed(self, shell: Any, kind: type, error: Exception, trace: TracebackType, tb_offset: Any = None) -> None:
        """Show a sentence in place of the traceback, which ``%tb`` still shows."""
        lines = self._said(error, trace)
        if lines:
            error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
        try:
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        finally:
            if lines:
                del error._render_traceback_  # type: ignore[attr-defined]

    def _said(self, error: Exception, trace: TracebackType) -> list[str]:
        """Why the test failed, the lines of other cells that the error came through, and that of the test. Of another
        cell, which answer it lacks, itself or through a cell that lacks it; nothing if it lacks none.
        """
        text, kind = str(error).strip(), type(error).__name__
        unwritten = UNWRITTEN.fullmatch(f"{kind}: {text}")
        frames = [one for one in traceback.extract_tb(trace) if self._shell.compile.format_code_name(one.filename)]
        if not self._test:
            bound = bound_names(self._cell)
            names = sorted((read_names(self._cell) - bound) & self._lacking.keys())
            if not (unwritten or names):
                return []
            text = text if unwritten else self._lacking[names[0]]
            self._lacking |= dict.fromkeys(bound, text)
            said = [f"{RED}This cell needs an answer that is not written yet.{PLAIN} {text}"]
            return said + [f"  line {one.lineno} of this cell:  {one.line}" for one in frames[:1]]
        if not text:
            text = kind
        elif not (isinstance(error, AssertionError | CannotRun) or unwritten):
            text = f"{kind}: {text}"
        inside = [one for one in frames if not titles.test_of(linecache.getline(one.filename, 1))]
        if isinstance(error, NameError) and frames and frames[-1] not in inside:
            text += ". Write and run the cells above this one first."
        verdict = WAITS if isinstance(error, CannotRun) else "failed"
        lines = [f"{RED}{self._test} {verdict}:{PLAIN} {text}"]
        for one in () if unwritten else inside:
            _, cell = self._shell.compile.format_code_name(one.filename)
            lines.append(f"  cell {cell}, line {one.lineno}, in {one.name}:  {one.line}")
        if frames and frames[0] not in inside:
            lines.append(f"  line {frames[0].lineno} of the test:  {frames[0].line}")
        return lines


def _is_empty(value: Any) -> bool:
    """Whether this is what an answer's cell is handed out with."""
    if isinstance(value, dict):
        return not value or any(one is None for one in value.values())
    return value is None or (isinstance(value, list) and not value)


def of_this_notebook() -> Verdicts | None:
    """Verdicts in the notebook that runs this process, if one does."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return Verdicts(shell) if shell is not None else None
