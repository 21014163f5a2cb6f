"""Modules: functions that own their parameters, as in PyTorch."""

from __future__ import annotations

import builtins
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from .._core import Tensor, _apart_from_earlier
from .._handles import Handle
from .._in_words import in_words
from ..autograd import no_grad
from ..autograd.clearing import clear_gradients
from .conversions import Convertible
from .hooks import add_hook
from .loading import Keys, checked_keys
from .tree import named

__all__ = ["Module"]

M = TypeVar("M", bound="Module")


class Module(Convertible):
    """A function with parameters. Subclasses set them as attributes and define `forward`.

    An attribute is a parameter if it is a `Parameter` or a leaf that requires grad, when it is set or later. It stays
    one when `requires_grad_(False)` freezes it. Other tensors are plain attributes. `register_buffer` makes buffers of
    them, which `to` moves and `state_dict` holds. Every attribute that is a Module is a child. There is no
    `super().__init__()` to call.

    Attributes
    ----------
    training : bool
        What `train` and `eval` set, and `Dropout` reads.

    Examples
    --------
    >>> from rooflab.nn import Module
    >>> import rooflab as rl
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.factor = rl.tensor([2.0], requires_grad=True)
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> scale(rl.ones(2)).tolist(), list(scale.state_dict())
    ([2.0, 2.0], ['factor'])
    """

    if TYPE_CHECKING:  # what the base class cannot say, because it stands above this one

        def named_children(self) -> Iterator[tuple[str, Module]]: ...
        def children(self) -> Iterator[Module]: ...
        def named_modules(self, *, prefix: str = "") -> Iterator[tuple[str, Module]]: ...
        def modules(self) -> Iterator[Module]: ...

    training: bool = True
    _before_forward: Mapping[int, Callable] = {}
    _after_forward: Mapping[int, Callable] = {}
    _not_loaded: tuple[str, ...] = ()  # names that a state may hold for this module, and that it has no tensor for

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for hook in tuple(self._before_forward.values()):
            given = hook(self, args)
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
        result = self.forward(*args, **kwargs)
        for hook in tuple(self._after_forward.values()):
            given = hook(self, args, result)
            result = result if given is None else given
        return result

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What calling the module computes. Each subclass defines it.

        Parameters
        ----------
        *args, **kwargs
            What the module is called with.

        Returns
        -------
        object
            Mostly a tensor.

        Raises
        ------
        NotImplementedError
            In a class that does not define it.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.nn.ReLU().forward(rl.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
        """
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    @in_words
    def state_dict(self) -> dict[str, Tensor]:
        """The parameters and persistent buffers by dotted name.

        Returns
        -------
        dict of str to Tensor
            They share the module's memory and require no grad. A shared parameter is there under each of its names.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        >>> list(model.state_dict())
        ['0.weight', '0.bias']
        """
        return {name: tensor.detach() for name, tensor in named(self._all_modules(), Module._own_state)}

    @in_words
    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True) -> Keys:
        """Copy tensors into the parameters and buffers of the same names; they are cast where dtypes differ.

        A module on "meta" counts the copies and stays without numbers, which is a warning.

        Parameters
        ----------
        state_dict : mapping of str to Tensor
            What `state_dict` gave.
        strict : bool
            Whether all names must be the same. Otherwise those that both have are copied.

        Returns
        -------
        named tuple
            ``missing_keys`` in the module's order, and ``unexpected_keys`` in that of `state_dict`; empty if `strict`.

        Raises
        ------
        TypeError
            When it is not a mapping, or a value is not a tensor.
        ValueError
            When a tensor is of another shape, is on "meta" and so without numbers, or would be written to an expanded
            one. If `strict`, when one is missing or left over. Nothing is written then.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Linear(2, 1)
        >>> model.load_state_dict({"weight": rl.ones(1, 2)}, strict=False).missing_keys
        ['bias']
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"[load_state_dict] expected a dict of names and tensors, got {type(state_dict).__name__}")
        own = dict(named(self._all_modules(), Module._own_state))
        left_out = dict(named(self._all_modules(), lambda module: [(name, None) for name in module._not_loaded]))
        state_dict = {name: tensor for name, tensor in state_dict.items() if name not in left_out}
        keys = checked_keys(own, state_dict, strict)
        written = {name: tensor for name, tensor in own.items() if name in state_dict}
        with no_grad():
            sources = _apart_from_earlier([state_dict[name] for name in written], list(written.values()))
            for tensor, source in zip(written.values(), sources, strict=True):
                tensor.copy_(source)
        return keys

    def train(self: M, mode: bool = True) -> M:
        """Set `training` of this module and all inside it.

        Parameters
        ----------
        mode : bool
            Whether modules such as `Dropout` work as for training.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        TypeError
            For anything but a bool.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.nn.Dropout(0.5).train(False)(rl.ones(2)).tolist()
        [1.0, 1.0]
        """
        if not isinstance(mode, builtins.bool):
            raise TypeError(f"[train] mode: expected a bool, got {type(mode).__name__}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """`train(False)`: `Dropout` and the like then work as for inference.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.nn.Dropout(0.5).eval().training
        False
        """
        return self.train(False)

    def apply(self: M, fn: Callable[[Module], object]) -> M:
        """Call a function with each module inside this one, and with this one last.

        Parameters
        ----------
        fn : callable
            Gets a module; what it returns is dropped.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        TypeError
            For what cannot be called.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        >>> names = []
        >>> _ = model.apply(lambda module: names.append(type(module).__name__))
        >>> names
        ['Linear', 'ReLU', 'Sequential']
        """
        if not callable(fn):
            raise TypeError(f"[apply] fn: expected a callable, got {type(fn).__name__}")
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    @in_words
    def register_forward_pre_hook(self, hook: Callable[[Module, tuple], Any]) -> Handle:
        """Call a function before each forward pass.

        Parameters
        ----------
        hook : callable
            ``hook(module, args)``. What it returns, unless None, takes the place of args.

        Returns
        -------
        Handle
            Its ``remove()`` removes the hook, as the end of a `with` block of it does.

        Raises
        ------
        TypeError
            For a hook that cannot be called.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.ReLU()
        >>> with model.register_forward_pre_hook(lambda module, args: args[0] + 1):
        ...     model(rl.ones(2)).tolist()
        [2.0, 2.0]
        """
        return add_hook(self, "_before_forward", hook)

    @in_words
    def register_forward_hook(self, hook: Callable[[Module, tuple, Any], Any]) -> Handle:
        """Call a function after each forward pass.

        Parameters
        ----------
        hook : callable
            ``hook(module, args, result)``. What it returns, unless None, is the result.

        Returns
        -------
        Handle
            Its ``remove()`` removes the hook, as the end of a `with` block of it does.

        Raises
        ------
        TypeError
            For a hook that cannot be called.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.ReLU()
        >>> with model.register_forward_hook(lambda module, args, result: result * 10):
        ...     model(rl.ones(2)).tolist()
        [10.0, 10.0]
        """
        return add_hook(self, "_after_forward", hook)

    def requires_grad_(self: M, requires_grad: builtins.bool = True) -> M:
        """Make all parameters require grad, or none.

        Parameters
        ----------
        requires_grad : bool
            Whether they do from now on.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.nn.Linear(2, 3).requires_grad_(False).weight.requires_grad
        False
        """
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: builtins.bool = True) -> None:
        """Drop the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            False fills them with zeros instead, in place, in the memory that a captured graph writes to.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Linear(2, 3)
        >>> model(rl.ones(1, 2)).sum().backward()
        >>> model.zero_grad()
        >>> model.weight.grad is None
        True
        """
        clear_gradients(self.parameters(), set_to_none)

    def __repr__(self) -> str:
        children = [f"  ({name}): {child!r}".replace("\n", "\n  ") for name, child in self._children()]
        shapes = ", ".join([self.extra_repr(), *(f"{name}={x.shape}" for name, x in self._own_state())]).lstrip(", ")
        if not children:
            return f"{type(self).__name__}({shapes})"
        return "\n".join([f"{type(self).__name__}({shapes}", *children, ")"])

    def extra_repr(self) -> str:
        """What `repr` says of the module's options, before the shapes. A subclass may define it.

        Returns
        -------
        str
            Empty unless it is defined.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.nn.Dropout(0.5).extra_repr()
        'p=0.5'
        """
        return ""

    def __deepcopy__(self: M, memo: dict[int, Any]) -> M:
        """A copy whose parameters have no gradients, as in PyTorch."""
        reduced: Any = self.__reduce_ex__(4)
        make, given, state = reduced[:3]
        made = make(*given)
        memo[id(self)] = made
        state = copy.deepcopy(state, memo)
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            made.__dict__.update(state or {})
        for _, parameter in made._own_parameters():
            parameter.grad = None
        return made
