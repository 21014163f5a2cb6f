"""What a function reads while it is recorded, besides tensors: a program is valid only while this stays the same.

A profile hook sees each Python function that the recorded one calls. The names in its code say which globals, closure
variables and attributes it can read; their values are noted when it is entered, so before it can change them. That a
name is absent is noted too, as is the class of each object. Only what outlives the call is watched: what the recorded
function, its arguments, globals and closures lead to.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
import threading
import weakref
from array import array
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)  # fmt: skip
from typing import Any

import numpy as np

from .._core import Tensor
from .._core._compiler import has_values
from .._habits import no_member
from .._in_words import in_words
from ..composed._arguments import checked
from . import compared
from .classes import can_change, changing, data
from .names import NO_NAMES, Names, names_in
from .undo import CONTAINERS, Kept
from .watched import Watched

__all__ = ["UNWATCHED", "Guards"]

# How the files of functions begin whose own state is no part of what is recorded.
UNWATCHED = {"<frozen importlib", os.path.dirname(__file__)} | {
    each.__code__.co_filename for each in (in_words, checked, no_member)
}

_MOST = 100_000  # values, and bytes of an array: comparing more at each call would cost more than it saves
_PLAIN = (Tensor, float, np.generic, *compared.PLAIN)
_IN_C = (GetSetDescriptorType, MemberDescriptorType)
_BY_NAME = {getattr, hasattr, vars, dir}  # a function may have them under another name
_GETTERS = (operator.attrgetter, operator.methodcaller)


class Guards:
    """The values that one recording of a function has read.

    Examples
    --------
    >>> class Config: scale = 2.0
    >>> guards = Guards()
    >>> def scaled(config, x): return x * config.scale
    >>> guards.note_reads(lambda: scaled(Config, 3.0), scaled, (Config, 3.0))
    6.0
    >>> guards.finish()
    >>> guards.change()
    >>> Config.scale = 3.0
    >>> guards.change()
    'scale'
    """

    def __init__(self) -> None:
        # The owner, its class, what gives its names, and their values.
        self._names: dict[Any, tuple[Any, type, Callable, dict[str, Any]]] = {}
        self._counts: dict[Any, int] = {}  # of the names of those that may get more
        self._holders: dict[Any, tuple[Any, Callable, str, Any]] = {}  # owner, what reads it, name, value
        self._watched = Watched()
        self._values = 0
        self._scan: _Scan | None = None

    def note_reads(self, call: Callable[[], Any], function: Any, arguments: Any) -> Any:
        """The result of `call`, which calls the function or goes backward through what that recorded.

        Raises
        ------
        ValueError
            When there is too much to be compared at each call.
        """
        self._scan = self._scan or _Scan(self, getattr(function, "__code__", None))
        self._scan.add_roots(function, arguments)
        before: Any = sys.getprofile()
        sys.setprofile(self._scan.hook if not callable(before) else _both(self._scan.hook, before))
        try:
            return call()
        finally:
            sys.setprofile(None)
            self._scan.kept.undo()
            if hasattr(before, "enable"):  # cProfile, whose hook is not a function
                before.enable()
            else:
                sys.setprofile(before)

    def finish(self) -> None:
        """Forget what only the recording needs.

        Raises
        ------
        ValueError
            When the function kept tensors that it made in what outlives the call.
        """
        if self._scan is not None and self._scan.kept.has_tensors:
            raise ValueError(
                "[compile] it keeps a tensor that it makes, in a variable, an attribute, a list, a set or a dict that "
                "outlives the call; return it, or make it outside"
            )
        self._scan = None
        named = [(*each, self._counts.get(key)) for key, each in self._names.items()]
        self._watched = Watched(named, self._holders.values())
        self._names, self._holders, self._counts = {}, {}, {}

    def change(self) -> str | None:
        """The name of a value that is not what it was; None while all are."""
        return self._watched.change()

    def note_name(self, owner: Any, names_of: Callable, name: str, value: Any) -> None:
        """Watch a name in what `names_of` gives for the owner; the first value counts."""
        key = (id(owner), names_of)
        if name in self._names.get(key, ((),))[-1] or (id(owner), compared.named, name) in self._holders:
            return
        if not isinstance(value, Tensor):
            self._names.setdefault(key, (owner, type(owner), names_of, {}))[-1][name] = value
            self._count(1)
        elif has_values(value):  # else it is one of the program's inputs
            self.note(owner, functools.partial(compared.named, names_of, name), name)

    def note_class(self, owner: Any, may_get_more: bool) -> None:
        """Watch which class an object is of, and that it gets no more attributes where that may count."""
        key = (id(owner), compared.attributes)
        self._names.setdefault(key, (owner, type(owner), compared.attributes, {}))
        if may_get_more:
            self._counts.setdefault(key, len(compared.attributes(owner)))

    def note(self, owner: Any, read: Callable, name: str) -> None:
        """Watch what `read` makes of the owner; the first value counts."""
        key = (id(owner), getattr(read, "func", read), name)
        if key not in self._holders:
            value = read(owner)
            self._holders[key] = (owner, read, name, value)
            self._count(len(value) if isinstance(value, (tuple, bytes, frozenset)) else 1)

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > _MOST:
            raise ValueError(
                f"[compile] it reads more than {_MOST} numbers or objects outside of tensors, too many to compare at "
                "each call; pass them as tensors"
            )


def _both(one: Callable, other: Callable) -> Callable:
    def hook(frame: FrameType, event: str, argument: Any) -> None:
        one(frame, event, argument)
        other(frame, event, argument)

    return hook


def _is(value: Any, kinds: Any) -> bool:
    """isinstance that asks the value nothing: objects that stand for others may warn, or load what they stand for."""
    return issubclass(type(value), kinds)


class _Scan:
    """Follows the calls of one recording, and tells `Guards` what they can read."""

    def __init__(self, guards: Guards, first: CodeType | None):
        self._guards = guards
        self._first = first  # what is recorded
        self._lasting: set[int] = set()  # objects that outlive the call
        self._seen: set[tuple[int, Names, bool]] = set()
        self._alive: list[Any] = []  # so that no other object gets the id of one that was seen
        self._functions: dict[CodeType, dict[int, FunctionType]] = {}
        self._methods: dict[CodeType, set[str]] = {}  # the names that functions have in classes
        self._classes: set[type] = set()
        self.kept = Kept()
        self._getters: frozenset[str] = frozenset()  # what the objects of operator read
        self._by_name = False  # whether `getattr` and the like have other names

    def add_roots(self, function: Any, arguments: Any) -> None:
        """What outlives the call: the function and the objects among its arguments, but not lists of them."""
        self._visit(function, NO_NAMES, True)
        left = [arguments]
        while left:
            value = left.pop()
            if type(value) is dict:
                left += value.values()
            elif isinstance(value, (tuple, list)):
                left += value
            else:
                self._visit(value, NO_NAMES, True)

    def hook(self, frame: FrameType, event: str, _: Any) -> None:
        """Look around where a Python function is entered."""
        code = frame.f_code
        if event != "call" or (code.co_filename.startswith(tuple(UNWATCHED)) and code is not self._first):
            return
        while True:
            readers = self._getters, self._by_name
            names = names_in(code)._replace(attributes=names_in(code).attributes | self._getters)
            self._look(frame, names.with_any() if self._by_name else names)
            if readers == (self._getters, self._by_name):  # else what it has just found can read more
                return

    def _look(self, frame: FrameType, names: Names) -> None:
        code = frame.f_code
        for name in names.read_globals:
            self._name(frame.f_globals, name, names)
            if name not in frame.f_globals:
                value = frame.f_builtins.get(name, compared.ABSENT)
                self._guards.note_name(frame.f_builtins, compared.itself, name, value)
                if not _is(value, BuiltinFunctionType):
                    self._visit_named(name, value, names, True)
        for name in names.modules:
            for full in (name, name.partition(".")[0], f"{frame.f_globals.get('__package__')}.{name}"):
                self._visit(sys.modules.get(full), names, True)
        for function in self._functions.get(code, {}).copy().values():
            self._guards.note(function, compared.definition, function.__name__)
            defaults = function.__defaults__ or ()
            by_place = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
            for name, value in (*zip(by_place, defaults, strict=True), *(function.__kwdefaults__ or {}).items()):
                self._visit_named(name, value, names, True)
            for i, (name, cell) in enumerate(zip(code.co_freevars, function.__closure__ or (), strict=True)):
                self._guards.note(function, functools.partial(compared.cell, i), name)
                self.kept.remember_place(
                    functools.partial(compared.content, cell), functools.partial(setattr, cell, "cell_contents")
                )
                self._visit_named(name, compared.content(cell), names, True)
        for name in self._methods.get(code, ()):  # a name that no code has may have led here
            self._of_class(type(frame.f_locals.get(code.co_varnames[0])), name, NO_NAMES, False)
        for name, value in list(frame.f_locals.items()):
            self._visit_named(name, value, names, False)

    def _name(self, owner: dict, name: str, names: Names) -> None:
        value = owner.get(name, compared.ABSENT)
        self.kept.remember(owner)
        self._guards.note_name(owner, compared.itself, name, value)
        self._visit_named(name, value, names, True)

    def _visit_named(self, name: str, value: Any, names: Names, lasts: bool) -> None:
        """Visit what has a name, unless it is a container that the code only adds to."""
        if name not in names.only_written or not _is(value, CONTAINERS):
            self._visit(value, names, lasts)
        elif lasts:
            self.kept.remember(value)

    def _visit(self, value: Any, names: Names, lasts: bool) -> None:
        """Look into a value that code with these names can use."""
        if _is(value, BuiltinFunctionType):
            self._by_name |= any(value is each for each in _BY_NAME)
        if value is compared.ABSENT or _is(value, (*_PLAIN, BuiltinFunctionType)):
            return
        lasts = lasts or id(value) in self._lasting
        mark = (id(value), names, lasts)
        if mark in self._seen:
            return
        self._seen.add(mark)
        self._alive.append(value)
        if lasts:
            self._lasting.add(id(value))
        own = compared.attributes(value) if callable(value) else {}
        if "__wrapped__" in own:
            self._visit(own["__wrapped__"], names, lasts)
        if _is(value, FunctionType):
            if lasts:
                self._functions.setdefault(value.__code__, {})[id(value)] = value
            self._instance(value, names, lasts)
        elif _is(value, ModuleType):
            own = vars(value)
            for name in names.attributes & own.keys() if names.only_there else names.attributes:
                self._name(own, name, names)
            for name, each in list(own.items()) if names.any_attribute else ():
                if _is(each, _PLAIN) and not name.startswith("__"):
                    self._guards.note_name(own, compared.itself, name, each)
        elif _is(value, type):
            for kind in (value, type(value)):
                self._class(kind, names, lasts)
            for name in names.attributes | (data(value) if names.any_attribute else set()):
                for kind in (value, type(value)):
                    self._of_class(kind, name, names, lasts)
        elif _is(value, _GETTERS):
            make, given = value.__reduce__()[:2]  # the class, or with keywords a partial of it, and what it is given
            dotted = given if _is(value, operator.attrgetter) else (*getattr(make, "args", ()), *given)[:1]
            self._getters |= {part for name in dotted for part in name.split(".")}
        elif _is(value, (np.ndarray, bytearray, memoryview, array)):
            if lasts:
                self._guards.note(value, compared.array, "an array")
                self._guards._count(np.asarray(value).nbytes)
        elif _is(value, ContextVar):
            self._guards.note(value, compared.variable, value.name)
            self.kept.remember_place(functools.partial(value.get, compared.ABSENT), value.set)
            self._visit(value.get(compared.ABSENT), names, lasts)
        else:
            of_parts = names
            if value is sys.modules:  # else all there is
                of_parts = names._replace(any_attribute=False, only_there=True)
            for part in self._parts(value, lasts):
                self._visit(part, of_parts, lasts)
            self._instance(value, names, lasts)

    def _parts(self, value: Any, lasts: bool) -> list[Any]:
        if _is(value, (dict, MappingProxyType)):
            if lasts:
                self._guards.note(value, compared.items, "a dict")
                if _is(value, dict):
                    self.kept.remember(value)
            return list(value.values())
        if _is(value, (tuple, list, deque, set, frozenset)):
            if lasts and not _is(value, (tuple, frozenset)):
                self._guards.note(value, frozenset if _is(value, set) else compared.elements, "a list or a set")
                self.kept.remember(value)
            return list(value)
        if _is(value, MethodType):
            return [value.__func__, value.__self__]
        if _is(value, functools.partial):
            return [value.func, value.args, value.keywords]
        if _is(value, weakref.ref):
            return [value()]
        return []

    def _instance(self, value: Any, names: Names, lasts: bool) -> None:
        self._class(type(value), names, lasts)
        own = compared.attributes(value)
        if lasts and type(own) is dict:
            self.kept.remember(own)
        if lasts and can_change(type(value)):
            self._guards.note_class(value, names.any_attribute)
            for name, slot in [item for each in type(value).__mro__ for item in each.__dict__.items()]:
                if _is(slot, MemberDescriptorType):
                    self._keep_attribute(value, name)
        for name in names.attributes | ({*own, *data(type(value))} if names.any_attribute else set()):
            each = own.get(name, compared.ABSENT)
            if each is not compared.ABSENT:
                if lasts:
                    self._guards.note_name(value, compared.attributes, name, each)
                self._visit_named(name, each, names, lasts)
                continue
            found = self._of_class(type(value), name, names, lasts)
            if lasts and own is not compared.NO_ATTRIBUTES and not names.only_there:
                self._guards.note_name(value, compared.attributes, name, compared.ABSENT)
            is_in_c = _is(value, threading.local) or (_is(found, property) and not _is(found.fget, FunctionType))
            if lasts and (is_in_c or _is(found, _IN_C)) and not name.startswith("__"):
                self._guards.note(value, functools.partial(compared.attribute, name), name)
                self._visit(getattr(value, name, compared.ABSENT), names, lasts)

    def _of_class(self, kind: type, name: str, names: Names, lasts: bool) -> Any:
        """What a class has under a name. It is also watched that no class gets the name later, before the one found."""
        order = [each for each in kind.__mro__ if can_change(each) or name in each.__dict__]
        for place, each in enumerate(order):
            if name in each.__dict__:
                for earlier in order[: place + 1]:
                    if can_change(earlier):
                        now = earlier.__dict__.get(name, compared.ABSENT)
                        self._guards.note_name(earlier, compared.attributes, name, now)
                self._visit(each.__dict__[name], names, True)
                return each.__dict__[name]
        for each in order if (lasts or id(kind) in self._lasting) and not names.only_there else ():
            self._guards.note_name(each, compared.attributes, name, compared.ABSENT)
        return compared.ABSENT

    def _keep_attribute(self, owner: Any, name: str) -> None:
        get = functools.partial(getattr, owner, name, compared.ABSENT)
        self.kept.remember_place(get, functools.partial(setattr, owner, name))

    def _class(self, kind: type, names: Names, lasts: bool) -> None:
        """Register the functions of a class: some are called implicitly, such as `__call__`."""
        if lasts and can_change(kind):
            self._guards.note(kind, compared.order, "__bases__")
        for each in changing(kind):
            if lasts:
                self._guards.note_class(each, names.any_attribute)
            if each in self._classes:
                continue
            self._classes.add(each)
            for name, value in list(each.__dict__.items()):
                if value is None or _is(value, Tensor):
                    self._keep_attribute(each, name)
                if isinstance(value, (staticmethod, classmethod)):
                    value = value.__func__
                elif isinstance(value, (property, functools.cached_property)):
                    value = value.fget if isinstance(value, property) else value.func
                if isinstance(value, FunctionType):
                    self._visit(value, NO_NAMES, True)
                    if value.__code__.co_argcount:
                        self._methods.setdefault(value.__code__, set()).add(name)
