"""Did this call loop in Python, or did a library multiply for it? Judged by what runs, not by the text.

`Products` sees: the operator `@` wherever a student's frame executes it, `.dot` of an array however it is
reached, NumPy's product functions under any name taken from NumPy after `install`, `operator.matmul`, and a
name such as `__matmul__` looked up by a student's frame. It counts the bytecode steps that student frames
execute: three nested loops take at least N*K*M of them. Launches of rooflab's own matmul are counted by the
runtime (`measure.loops` adds them). It cannot see a product made by another compiled library
(scipy.linalg.blas) or by an attribute reached through `getattr` with a built name; there the steps still
must be there.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import operator
import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from sys import getprofile, gettrace
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

_NUMPY = "dot matmul inner vdot tensordot einsum vecdot matvec vecmat convolve correlate"
_LINALG = "multi_dot matmul tensordot vecdot matrix_power"
FUNCTIONS: list[tuple[ModuleType, str]] = [
    *((np, name) for name in _NUMPY.split()),
    *((np.linalg, name) for name in _LINALG.split()),
    (operator, "matmul"),
    (operator, "imatmul"),
]
_TOOL = 4  # of sys.monitoring's six, one that neither debuggers nor profilers claim
METHODS = frozenset(("__matmul__", "__rmatmul__", "__imatmul__"))


class Products:
    """Counts library products and Python steps during `run`."""

    def __init__(self) -> None:
        self.seen: list[str] | None = None
        self.steps = 0
        self.originals: list[tuple[ModuleType, str, Any]] = []
        self.pause: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext
        paths = (
            *sysconfig.get_paths().values(),
            sys.prefix,
            sys.base_prefix,
            os.path.dirname(os.path.dirname(__file__)),
            os.path.dirname(os.path.dirname(np.__file__)),  # perhaps the user's own packages
        )
        self.libraries = tuple({os.path.realpath(path) + os.sep for path in paths} | {"<frozen"})

    def install(self) -> None:
        """Wrap the product functions in their modules; student code imported later binds the wrappers."""
        for module, name in FUNCTIONS if not self.originals else ():
            if original := getattr(module, name, None):
                self.originals.append((module, name, original))
                setattr(module, name, self._wrapped(f"{module.__name__.lstrip('_')}.{name}", original))

    def remove(self) -> None:
        for module, name, original in self.originals:
            setattr(module, name, original)
        self.originals.clear()

    def run(self, fn: Callable, args: tuple, kwargs: dict) -> Any:
        """Call `fn` under the tracer; afterwards `seen` and `steps` say what it did. Calls may not be
        nested.
        """
        with contextlib.ExitStack() as stack:
            if not self.originals:
                self.install()
                stack.callback(self.remove)
            seen = self.seen = []
            self.steps = 0
            before = gettrace(), getprofile()
            with self.pause():
                threading.settrace(self._call if sys.version_info < (3, 12) else None)  # type: ignore[arg-type]
                threading.setprofile(self._profile)
                sys.setprofile(self._profile)
                self._start_steps()
            try:
                return fn(*args, **kwargs)
            finally:
                with self.pause():
                    kept = self._stop_steps()
                    sys.settrace(before[0])
                    sys.setprofile(before[1])
                    threading.settrace(before[0])  # type: ignore[arg-type]
                    threading.setprofile(before[1])  # type: ignore[arg-type]
                if not kept:
                    seen.append("a removed tracer")

    # Steps come from sys.monitoring where there is one (Python 3.12): there, opcode events of settrace miss the first
    # run of a function.
    if sys.version_info >= (3, 12):

        def _start_steps(self) -> None:
            monitoring = sys.monitoring
            monitoring.use_tool_id(_TOOL, "rooflab")
            monitoring.register_callback(_TOOL, monitoring.events.INSTRUCTION, self._instruction)
            monitoring.restart_events()
            monitoring.set_events(_TOOL, monitoring.events.INSTRUCTION)

        def _stop_steps(self) -> bool:
            monitoring = sys.monitoring
            kept = (
                monitoring.get_tool(_TOOL) == "rooflab"
                and monitoring.get_events(_TOOL) == monitoring.events.INSTRUCTION
                and monitoring.register_callback(_TOOL, monitoring.events.INSTRUCTION, None) == self._instruction
            )
            if monitoring.get_tool(_TOOL) is not None:
                monitoring.set_events(_TOOL, 0)
                monitoring.free_tool_id(_TOOL)
            return kept

        def _instruction(self, code: CodeType, offset: int) -> object:
            if self._is_library(code):
                return sys.monitoring.DISABLE
            self.steps += 1
            if label := _suspects(code).get(offset):
                self._note(label)
            return None

    else:

        def _start_steps(self) -> None:
            sys.settrace(self._call)

        def _stop_steps(self) -> bool:
            return gettrace() == self._call

    def _wrapped(self, label: str, original: Callable) -> Callable:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._note(label)
            return original(*args, **kwargs)

        return call

    def _note(self, label: str) -> None:
        if self.seen is not None and label not in self.seen:
            self.seen.append(label)

    def _call(self, frame: FrameType, event: str, arg: object) -> Callable | None:
        if self._is_library(frame.f_code):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, arg: object) -> Callable:
        if event == "opcode":
            self.steps += 1
            if label := _suspects(frame.f_code).get(frame.f_lasti):
                self._note(label)
        return self._step

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        method = event == "c_call" and getattr(arg, "__name__", "") == "dot" and isinstance(arg.__self__, np.ndarray)
        if method and not self._is_library(frame.f_code):
            self._note("ndarray.dot")

    def _is_library(self, code: CodeType) -> bool:
        return _real(code.co_filename).startswith(self.libraries)


_real = functools.lru_cache(maxsize=512)(os.path.realpath)  # it is asked for every step


@functools.lru_cache(maxsize=512)
def _suspects(code: CodeType) -> dict[int, str]:
    """Offsets of the instructions of `code` that multiply matrices, and what to call them."""
    found = {}
    for step in dis.get_instructions(code):
        if step.opname == "BINARY_OP" and step.argrepr in ("@", "@="):
            found[step.offset] = "@"
        elif step.argval in METHODS and isinstance(step.argval, str):
            found[step.offset] = step.argval
    return found
