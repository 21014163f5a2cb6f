"""A progress bar for measurements that take long."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

AFTER_S = 2.0  # a measurement that is done by then shows none
EVERY_S = 0.2  # and no call is disturbed by it more often


class Bar:
    """How many calls are done of `total`, which may change, once two seconds have passed.

    It is shown where stderr is a terminal, and in a notebook that has ipywidgets. It is gone at the end.
    """

    def __init__(self, what: str, total: int) -> None:
        self.total, self.done = total, 0
        self._what = what
        self._next = time.monotonic() + AFTER_S
        self._shown: Any = None

    def step(self) -> None:
        """Say that one more call is done."""
        self.done += 1
        now = time.monotonic()
        if now >= self._next and _is_seen():
            self._next = now + EVERY_S
            self._show()

    def _show(self) -> None:
        if self._shown is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a notebook without ipywidgets shows no bar, and needs no advice
                from tqdm.auto import tqdm
            self._shown = tqdm(desc=self._what, total=self.total, unit="call", leave=False, mininterval=0, disable=None)
        self._shown.total = self.total
        self._shown.update(self.done - self._shown.n)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown is not None:
            self._shown.close()


def _is_seen() -> bool:
    """Whether somebody may see it. Nothing is imported elsewhere, such as in the process of a student's answer."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
