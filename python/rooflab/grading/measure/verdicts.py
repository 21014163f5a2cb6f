"""What a notebook shows below a test cell: that it passed, or why it failed.

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
from rooflab.grading.lab.model import UNWRITTEN
from rooflab.grading.measure.kernel import CannotRun

RED, GREEN, PLAIN = "\x1b[1;31m", "\x1b[32m", "\x1b[0m"
WAITS = "cannot be decided on this machine"


class Verdicts:
    """Shows what became of the test cells that an IPython shell runs. Its other cells are left as they are."""

    def __init__(self, shell: Any) -> None:
        self._shell, self._test, self._waits = shell, "", False
        self._usual: tuple[Any, Any] = (), None
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    def waits(self, why: str) -> None:
        """A test cannot be decided on this machine, for this reason."""
        self._waits = True
        print(f"{self._test} {WAITS}: {why}" if self._test else why)

    def _begin(self, info: Any) -> None:
        self._test, self._waits = titles.test_of(str(info.raw_cell).lstrip()), False
        if self._test:
            self._usual = self._shell.custom_exceptions, self._shell.CustomTB
            self._shell.set_custom_exc((Exception,), self._failed)

    def _end(self, result: Any) -> None:
        if not self._test:
            return
        self._shell.custom_exceptions, self._shell.CustomTB = self._usual
        if result.success and not self._waits:
            print(f"{self._test}: {GREEN}passed{PLAIN}")
        self._test = ""

    def _failed(self, shell: Any, kind: type, error: Exception, trace: TracebackType, tb_offset: Any = None) -> None:
        """Show a sentence in place of the traceback, which ``%tb`` still shows."""
        lines = self._said(error, trace)
        error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
        try:
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        finally:
            del error._render_traceback_  # type: ignore[attr-defined]

    def _said(self, error: Exception, trace: TracebackType) -> list[str]:
        """Why the test failed, the lines of the student's cells that the error came through, and that of the test."""
        text, kind = str(error).strip(), type(error).__name__
        unwritten = UNWRITTEN.fullmatch(f"{kind}: {text}")
        if not text:
            text = kind
        elif not (isinstance(error, AssertionError | CannotRun) or unwritten):
            text = f"{kind}: {text}"
        verdict = WAITS if isinstance(error, CannotRun) else "failed"
        lines = [f"{RED}{self._test} {verdict}:{PLAIN} {text}"]
        frames = [one for one in traceback.extract_tb(trace) if self._shell.compile.format_code_name(one.filename)]
        inside = [one for one in frames if not titles.test_of(linecache.getline(one.filename, 1))]
        for one in () if unwritten else inside:
            _, cell = self._shell.compile.format_code_name(one.filename)
            lines.append(f"  your cell {cell}, line {one.lineno}, in {one.name}:  {one.line}")
        if frames and frames[0] not in inside:
            lines.append(f"  line {frames[0].lineno} of the test:  {frames[0].line}")
        return lines


def of_this_notebook() -> Verdicts | None:
    """Verdicts in the notebook that runs this process, if one does."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return Verdicts(shell) if shell is not None else None
