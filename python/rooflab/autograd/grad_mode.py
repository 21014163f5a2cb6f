"""Grad mode: whether ops are recorded for backward, in a thread, inside `with` or in a decorated function."""

from __future__ import annotations

from typing import overload

from .. import _core
from .._decorated import F, decorated
from .._entered import Entered


class _GradMode:
    """Sets grad mode inside `with`, or while a decorated function runs."""

    def __init__(self, name: str, enabled: bool) -> None:
        self._name, self._enabled = name, enabled
        self._before: Entered[bool] = Entered(name)

    def __enter__(self) -> None:
        self._before.push(_core._autograd.set_grad_enabled(self._enabled))

    def __exit__(self, *exception: object) -> None:
        _core._autograd.set_grad_enabled(self._before.pop())

    def __call__(self, function: F) -> F:
        return decorated(function, lambda: _GradMode(self._name, self._enabled), self._name, f"rl.{self._name}()")


@overload
def no_grad(function: None = None) -> _GradMode: ...
@overload
def no_grad(function: F) -> F: ...
def no_grad(function=None):
    """Record nothing for backward inside `with rl.no_grad():`, or in a function decorated with it.

    Parameters
    ----------
    function : callable, optional
        What is decorated; `@rl.no_grad` and `@rl.no_grad()` do the same.

    Returns
    -------
    context or callable
        The context for `with`, or the decorated function.

    Raises
    ------
    TypeError
        When it decorates a class, a generator or an async function.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2, requires_grad=True)
    >>> with rl.no_grad():
    ...     (x * 2).requires_grad
    False
    """
    mode = _GradMode("no_grad", False)
    return mode if function is None else mode(function)


@overload
def enable_grad(function: None = None) -> _GradMode: ...
@overload
def enable_grad(function: F) -> F: ...
def enable_grad(function=None):
    """Record ops again inside `with rl.enable_grad():`, even within `no_grad`; also as a decorator.

    Parameters
    ----------
    function : callable, optional
        What is decorated.

    Returns
    -------
    context or callable
        The context for `with`, or the decorated function.

    Raises
    ------
    TypeError
        When it decorates a class, a generator or an async function.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2, requires_grad=True)
    >>> with rl.no_grad(), rl.enable_grad():
    ...     (x * 2).requires_grad
    True
    """
    mode = _GradMode("enable_grad", True)
    return mode if function is None else mode(function)


class set_grad_enabled:
    """Turn recording on or off: from the call on, or until the end of a `with` block.

    Parameters
    ----------
    mode : bool
        Whether ops are recorded.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2, requires_grad=True)
    >>> with rl.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        self._mode = bool(mode)
        self._before: Entered[bool] = Entered("set_grad_enabled")
        self._before_call: Entered[bool] = Entered("set_grad_enabled")  # until a block takes it over
        self._before_call.push(_core._autograd.set_grad_enabled(self._mode))

    def __enter__(self) -> None:
        before = _core._autograd.set_grad_enabled(self._mode)
        self._before.push(self._before_call.pop() if self._before_call.has_any() else before)

    def __exit__(self, *exception: object) -> None:
        _core._autograd.set_grad_enabled(self._before.pop())
