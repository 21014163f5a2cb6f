"""A CUDA kernel run without a GPU: a small part of C++, one thread after the other.

It knows what a kernel of independent threads needs: numbers, pointers to arrays, `if`, loops, `__device__` functions,
and the usual mathematics. Every integer variable has 64 bits and a sign. What it does not know (shared memory,
barriers, atomics, templates, the preprocessor) raises `Unsupported`. Every access is checked, so a fault names its
thread and its place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rooflab.grading.emulator.expressions import PLACES, Expressions, Function
from rooflab.grading.emulator.values import EmulatedFault, Pointer, Unsupported, converter

__all__ = ["EmulatedFault", "Unsupported", "emulate"]

_BREAK, _CONTINUE = object(), object()
_NO_VALUE = (TypeError, ValueError, OverflowError)  # such as an infinity as an integer, or a pointer times two


def emulate(source: str, name: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]) -> tuple:
    """Run the kernel `name` of CUDA C++ source with NumPy arrays and numbers; return the arguments as it leaves them.

    Raises
    ------
    Unsupported
        The source uses something that is not known here, or is not C++.
    KeyError
        The source has no such kernel.
    ValueError
        The kernel takes another number of arguments.
    EmulatedFault
        A thread accessed something outside of an array, divided by zero, computed something without a value, or did
        not end.

    Examples
    --------
    >>> double = '__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }'
    >>> emulate(double, "twice", (1,), (32,), (np.ones(4, np.float32), 3))[0].tolist()
    [2.0, 2.0, 2.0, 1.0]
    """
    try:
        program = _Program(source)
    except RecursionError:
        raise Unsupported("it is nested too deeply") from None
    except (EmulatedFault, KeyError, *_NO_VALUE) as error:
        raise Unsupported(f"one of its constants cannot be computed: {error}") from None
    kernel = program.functions.get(name)
    if kernel is None or not kernel.is_kernel:
        raise KeyError(name)
    if len(args) != len(kernel.parameters):
        raise ValueError(f"[{name}] arguments: expected {len(kernel.parameters)}, got {len(args)}")
    after = [np.array(arg, order="C") if isinstance(arg, np.ndarray) else arg for arg in args]
    given = {}
    for (slot, convert), value in zip(kernel.parameters, after, strict=True):
        given[slot] = (
            Pointer(slot.split("#")[0], value.reshape(-1)) if isinstance(value, np.ndarray) else convert(value)
        )
    sizes = [(*one, 1, 1)[:3] for one in (grid, block)]
    with np.errstate(all="ignore"):
        for at in itertools.product(*(range(size) for one in sizes for size in reversed(one))):
            where = (at[2::-1], at[:2:-1])
            places = dict(zip(PLACES, (where[1], where[0], sizes[1], sizes[0]), strict=True))
            try:
                program.count()
                kernel.body({**program.constants, **given, "": places})
            except RecursionError:
                raise EmulatedFault(f"Thread {where[1][0]} of block {where[0][0]} calls itself too often.") from None
            except EmulatedFault as fault:
                raise EmulatedFault(f"Thread {where[1][0]} of block {where[0][0]} {fault}.") from None
            except _NO_VALUE as error:
                at_fault = f"Thread {where[1][0]} of block {where[0][0]}"
                raise EmulatedFault(f"{at_fault} computes something that has no value: {error}.") from None
    return tuple(after)


class _Program(Expressions):
    """The functions of a source, each statement a closure over the variables of a thread."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        while self.peek():
            self.top_level()

    def top_level(self) -> None:
        is_kernel = False
        while self.peek() in ("extern", "__global__", "__device__", "__host__") or self.peek() == '"C"':
            is_kernel |= self.take() == "__global__"
        kind, is_pointer = self.type(), self.stars()
        name = self.take()
        if self.peek() != "(":
            convert = converter(kind, is_pointer)
            slot = self.declare(name, convert)
            self.take("=")
            self.constants[slot] = convert(self.expression().get(self.constants))
            self.take(";")
            return
        self.take("(")
        self.scopes.append({})
        parameters = []
        while not self.skip(")"):
            kind = self.type()
            convert = converter(kind, self.stars())
            parameters.append((self.declare(self.take(), convert), convert))
            self.skip(",")
        holder: list[Function] = []
        self.functions[name] = Function(is_kernel, parameters, lambda env: holder[0].body(env))
        holder.append(Function(is_kernel, parameters, self.block()))
        self.scopes.pop()

    # Statements: each returns None, or why the flow leaves it

    def block(self) -> Callable[[dict], Any]:
        self.take("{")
        self.scopes.append({})
        parts = []
        while not self.skip("}"):
            parts.append(self.statement())
        self.scopes.pop()

        def run(env: dict) -> Any:
            for part in parts:
                if (leaves := part(env)) is not None:
                    return leaves
            return None

        return run

    def statement(self) -> Callable[[dict], Any]:
        token = self.peek()
        if token == "{":
            return self.block()
        if token == "if":
            return self.branch()
        if token in ("for", "while"):
            return self.loop()
        if token in ("break", "continue"):
            self.take()
            self.take(";")
            return lambda env: _BREAK if token == "break" else _CONTINUE
        if self.skip("return"):
            value = None if self.peek() == ";" else self.expression()
            self.take(";")
            return lambda env: ("returns", value.get(env) if value else None)
        if token in ("__shared__", "switch", "do", "goto", "struct", "template", "using", "asm"):
            raise Unsupported(f"{token!r} is not known")
        found = self.simple()
        self.take(";")
        return found

    def simple(self) -> Callable[[dict], Any]:
        """A declaration or an expression, up to its semicolon."""
        if self.peek() == ";":
            return lambda env: None
        if not self.is_type():
            value = self.expression().get

            def evaluate(env: dict) -> None:
                self.count()
                value(env)

            return evaluate
        kind, assigned = self.type(), []
        while True:
            convert = converter(kind, self.stars())
            name = self.take()
            if self.peek() == "[":
                raise Unsupported("an array in registers is not known")
            first = self.assignment().get if self.skip("=") else None
            assigned.append((self.declare(name, convert), convert, first))
            if not self.skip(","):
                break

        def declared(env: dict) -> None:
            self.count()
            for slot, convert, first in assigned:
                env[slot] = convert(first(env)) if first else None

        return declared

    def branch(self) -> Callable[[dict], Any]:
        self.take("if")
        self.take("(")
        condition = self.expression().get
        self.take(")")
        yes = self.statement()
        no = self.statement() if self.skip("else") else lambda env: None
        return lambda env: yes(env) if condition(env) else no(env)

    def loop(self) -> Callable[[dict], Any]:
        self.scopes.append({})
        first: Callable[[dict], Any] = lambda env: None  # noqa: E731
        condition: Callable[[dict], Any] = lambda env: True  # noqa: E731
        step = first
        if self.take() == "while":
            self.take("(")
            condition = self.expression().get
        else:
            self.take("(")
            first = self.simple()
            self.take(";")
            condition = condition if self.peek() == ";" else self.expression().get
            self.take(";")
            step = step if self.peek() == ")" else self.expression().get
        self.take(")")
        body = self.statement()
        self.scopes.pop()

        def run(env: dict) -> Any:
            first(env)
            while condition(env):
                self.count()
                leaves = body(env)
                if leaves is _BREAK:
                    break
                if leaves is not None and leaves is not _CONTINUE:
                    return leaves
                step(env)
            return None

        return run
