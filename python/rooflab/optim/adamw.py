"""AdamW: Adam with decoupled weight decay (Loshchilov and Hutter, 2017, arxiv.org/abs/1711.05101)."""

from __future__ import annotations

import copy
import math
import numbers
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._core import Graph, Tensor, _check_adamw, _kinds, adamw, full, zeros_like
from .._habits import OPTIMIZER, OPTIONS, changes_nothing, no_member
from .._in_words import in_words
from ..autograd import no_grad
from ..autograd.clearing import clear_gradients
from .state import MOMENTS, check_places, entry_of, group_of, steps_on_device

__all__ = ["AdamW"]

_OPTIONS = ("params", "lr", "betas", "eps", "weight_decay", "decay", "capturable")


class AdamW:
    """Adam whose weight decay acts on the parameters themselves, in PyTorch's order: decay, moments, update.

    One launch for 64 tensors, and 28 bytes of traffic a float32 parameter: see `rooflab.adamw`. Step t, with the
    gradient g of a parameter p::

        p = p - lr weight_decay p
        m = beta1 m + (1 - beta1) g
        v = beta2 v + (1 - beta2) g^2
        p = p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)

    An optimizer belongs to one thread: others may train at the same time, each with its own.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        The tensors to update. A dict is a group: its tensors under ``"params"``, and the options that differ for them.
    lr : float
        Learning rate. Write ``optimizer.param_groups[0]["lr"]`` to change it between steps.
    betas : (float, float)
        How much of each moment a step keeps.
    eps : float
        Added to the root of the second moment.
    weight_decay : float
        Shrinks the parameters by ``lr * weight_decay`` at each step.
    decay : str
        When they shrink: "before" the update, as in PyTorch, or "after" it, as in textbooks.
    capturable : bool
        Whether a `rooflab.Graph` may capture steps. The number of the step is then kept on the device, where one more
        launch increments it. ``lr`` may then be a tensor there, float64 (), which each replay reads again. Tensors that
        took their first step together share the number, so each must have a gradient at each step. The first step
        cannot be captured, because it makes the state.

    Attributes
    ----------
    param_groups : list of dict
        ``"params"`` and the options of each group.
    state : dict
        For each tensor that was updated: ``"step"``, ``"exp_avg"`` (m), ``"exp_avg_sq"`` (v). The moments have the
        tensor's shape, dtype and device; a capturable step is a tensor, int64 ().

    Raises
    ------
    ValueError
        No tensors, one of them twice, one that is not a leaf or not floating, none that requires grad, or an option out
        of its range.
    TypeError
        Something that is not a tensor, or an option that is not a number.

    Examples
    --------
    >>> import rooflab as rl
    >>> w = rl.ones(2, requires_grad=True)
    >>> optimizer = rl.optim.AdamW([w], lr=0.1, weight_decay=0.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> [round(number, 4) for number in w.tolist()]
    [0.9, 0.9]
    """

    @in_words
    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Mapping[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        decay: str = "before",
        capturable: bool = False,
    ) -> None:
        if isinstance(params, (Tensor, Mapping)):
            raise TypeError(f"[AdamW] params: expected a list of tensors, got one {type(params).__name__}")
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "decay": decay}
        options["capturable"] = capturable
        given = _listed(params)
        groups = given if given and isinstance(given[0], Mapping) else [{"params": given}]
        self.param_groups = [_group(group, options) for group in groups]
        self.state: dict[Tensor, dict[str, Any]] = {}
        _check_tensors([tensor for group in self.param_groups for tensor in group["params"]])

    @in_words
    @no_grad
    def step(self) -> None:
        """Update every tensor that has a gradient; the others stay as they are.

        Raises
        ------
        ValueError
            When an option in `param_groups` is missing or out of its range, or a moment does not fit its tensor any
            more, as after a change of dtype. Nothing changes then. Inside the capture of a graph: without `capturable`,
            and before the first step. With `capturable`: when some of the tensors that share a step have no gradient.
        TypeError
            When an option in `param_groups` is not a number.

        Examples
        --------
        >>> import rooflab as rl
        >>> w = rl.ones(2, requires_grad=True)
        >>> optimizer = rl.optim.AdamW([w], lr=0.1, weight_decay=0.0)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> [round(number, 4) for number in w.tolist()]
        [0.9, 0.9]
        """
        for group in self.param_groups:
            _check_options(group)
        with_gradient = [
            {param: grad for param in group["params"] if (grad := param.grad) is not None}
            for group in self.param_groups
        ]
        for group, gradients in zip(self.param_groups, with_gradient, strict=True):
            if Graph.is_capturing():
                self._check_capture(group, gradients)
            if group["capturable"]:
                self._check_sharing(group, gradients)
        state = {param: self._state_of(param) for gradients in with_gradient for param in gradients}
        calls: list[tuple[list[Tensor], dict[str, Any]]] = []
        for group, gradients in zip(self.param_groups, with_gradient, strict=True):
            steps = self._next_steps(group, gradients, state)
            alike: dict[Any, list[Tensor]] = {}  # what one call of the op takes
            for param, kind in zip(gradients, _kinds(list(gradients)), strict=True):
                alike.setdefault((steps[param], kind), []).append(param)
            for (number, _), params in alike.items():
                calls.append((params, self._call(params, number, group, gradients, state)))
        on_device = {call["step"] for _, call in calls if isinstance(call["step"], Tensor)}
        for _, call in calls if len(calls) > 1 or on_device else ():  # one call alone checks before it writes
            _check_adamw(**call)
        for number in on_device:
            number.add_(1)
        for params, call in calls:
            adamw(**call)
            for param in params:
                state[param]["step"] = call["step"]
                self.state[param] = state[param]

    def _state_of(self, param: Tensor) -> dict[str, Any]:
        return self.state.get(param) or {"step": 0} | {name: zeros_like(param) for name in MOMENTS}

    def _check_capture(self, group: dict[str, Any], trained: Mapping[Tensor, Tensor]) -> None:
        if trained and not group["capturable"]:
            raise ValueError(
                "[AdamW] step: a graph would repeat the number of the step that it captures; make the optimizer with "
                "capturable=True"
            )
        if any(not isinstance(self.state.get(param, {}).get("step"), Tensor) for param in trained):
            raise ValueError("[AdamW] step: the first step makes the optimizer's state; take it before the capture")

    def _check_sharing(self, group: dict[str, Any], trained: Mapping[Tensor, Tensor]) -> None:
        steps = {param: self.state[param]["step"] for param in group["params"] if param in self.state}
        shared = {steps[param] for param in trained if isinstance(steps.get(param), Tensor)}
        rest = [param for param, step in steps.items() if param.grad is None and step in shared]
        if rest:
            raise ValueError(
                f"[AdamW] step: {len(rest)} tensors have no gradient, but share the number of their steps with others "
                "that have; with capturable=True all or none must have one"
            )

    def _next_steps(
        self, group: dict[str, Any], trained: Mapping[Tensor, Tensor], state: Mapping[Tensor, Any]
    ) -> dict[Any, Any]:
        """The number of the step of each tensor. On the device it is still that of the last one; tensors with the same
        number on the host then share one tensor.
        """
        if not group["capturable"]:
            return {param: int(state[param]["step"]) + 1 for param in trained}
        made: dict[Any, Tensor] = {}
        steps = {param: state[param]["step"] for param in trained}
        for param, step in steps.items():
            if not isinstance(step, Tensor):
                if (place := (step, param.device)) not in made:
                    made[place] = full((), step, dtype="int64", device=param.device)
                steps[param] = made[place]
        return steps

    def _call(
        self,
        params: list[Tensor],
        number: Any,
        group: dict[str, Any],
        gradients: Mapping[Tensor, Tensor],
        state: Mapping[Tensor, Any],
    ) -> dict[str, Any]:
        means, squares = ([state[param][name] for param in params] for name in MOMENTS)
        beta1, beta2 = group["betas"]
        return {
            "params": params, "grads": [gradients[param] for param in params],
            "exp_avgs": means, "exp_avg_sqs": squares,
            "step": number, "lr": group["lr"], "beta1": beta1, "beta2": beta2, "eps": group["eps"],
            "weight_decay": group["weight_decay"], "decay": group["decay"],
        }  # fmt: skip

    @in_words
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all tensors.

        Parameters
        ----------
        set_to_none : bool
            False fills them with zeros instead, in place, in the memory that a captured graph writes to.

        Examples
        --------
        >>> import rooflab as rl
        >>> w = rl.ones(2, requires_grad=True)
        >>> optimizer = rl.optim.AdamW([w], lr=0.1, weight_decay=0.0)
        >>> w.sum().backward()
        >>> optimizer.zero_grad()
        >>> w.grad is None
        True
        """
        clear_gradients(self._tensors(), set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """The state that a later run resumes from, laid out as in PyTorch.

        Returns
        -------
        dict
            ``"state"``, of tensors numbered from 0, and ``"param_groups"``. The state is the optimizer's own, of which
            later steps change numbers and moments alike: copy.deepcopy keeps it as it is.

        Examples
        --------
        >>> import rooflab as rl
        >>> w = rl.ones(2, requires_grad=True)
        >>> optimizer = rl.optim.AdamW([w], lr=0.1, weight_decay=0.0)
        >>> optimizer.state_dict()["param_groups"][0]["params"]
        [0]
        """
        places = {param: place for place, param in enumerate(self._tensors())}
        groups = [group | {"params": [places[param] for param in group["params"]]} for group in self.param_groups]
        state = {places[param]: entry for param, entry in self.state.items()}
        return {"state": state, "param_groups": copy.deepcopy(groups)}

    @in_words
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned: options, steps and moments, which are copied.

        Tensors that are there already keep their memory and `capturable` stays True, so that a captured step goes on.

        Parameters
        ----------
        state_dict : mapping
            What `state_dict` gave, of as many tensors with the same shapes.

        Raises
        ------
        TypeError
            For anything but a dict, and for moments that are no rooflab tensors; nothing changes then.
        ValueError
            When it belongs to other tensors, holds moments of none, a number of steps that is none, moments that are no
            floats or squares, or an option is out of its range; nothing changes then.

        Examples
        --------
        >>> import rooflab as rl
        >>> w = rl.ones(2, requires_grad=True)
        >>> optimizer = rl.optim.AdamW([w], lr=0.1)
        >>> state = optimizer.state_dict()
        >>> optimizer.param_groups[0]["lr"] = 0.5
        >>> optimizer.load_state_dict(state)
        >>> optimizer.param_groups[0]["lr"]
        0.1
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"[load_state_dict] expected what state_dict() gives, got {type(state_dict).__name__}")
        if missing := {"state", "param_groups"} - state_dict.keys():
            raise ValueError(f"[load_state_dict] expected what state_dict() gives, got no {min(missing)!r}")
        theirs, ours = state_dict["param_groups"], self.param_groups
        state = state_dict["state"]
        is_state = isinstance(state, Mapping) and isinstance(theirs, (list, tuple))
        if not is_state or not all(
            isinstance(group, Mapping) and isinstance(group.get("params"), (list, tuple)) for group in theirs
        ):
            raise ValueError(
                "[load_state_dict] expected what state_dict() gives: a dict 'state', and groups with a list 'params'"
            )
        if [len(group["params"]) for group in theirs] != [len(group["params"]) for group in ours]:
            raise ValueError(f"[load_state_dict] expected groups of {_sizes(ours)} tensors, got {_sizes(theirs)}")
        check_places(state, theirs)
        for group, own in zip(theirs, ours, strict=True):
            _check_options({**own, **group})
        saved = zip((place for group in theirs for place in group["params"]), self._tensors(), strict=True)
        given = {param: entry_of(state[place], param, place) for place, param in saved if place in state}
        groups = [group_of(group, own) for group, own in zip(theirs, ours, strict=True)]
        steps = steps_on_device(self.state, {param: entry["step"] for param, entry in given.items()})
        for param, entry in given.items():
            own = self.state.setdefault(param, entry)
            own |= {"step": steps[param]} | {name: own[name].copy_(entry[name]) for name in MOMENTS}
        self.state = {param: self.state[param] for param in given}
        self.param_groups = groups

    def _tensors(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name):
            return no_member(self, name, OPTIMIZER)

    def __repr__(self) -> str:
        lines = [
            ", ".join([f"{len(group['params'])} tensors", *(f"{k}={v}" for k, v in group.items() if k != "params")])
            for group in self.param_groups
        ]
        return f"AdamW({'; '.join(lines)})"


def _listed(params: Any) -> list[Any]:
    if not isinstance(params, Iterable):
        raise TypeError(f"[AdamW] params: expected a list of tensors, got {type(params).__name__}")
    return list(params)


def _group(given: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(given, Mapping) or "params" not in given:
        raise TypeError("[AdamW] params: expected tensors, or groups that are dicts with their tensors in 'params'")
    tensors = given["params"]
    group = {**options, **given, "params": [tensors] if isinstance(tensors, Tensor) else _listed(tensors)}
    others = group.keys() - options.keys() - {"params"}
    if unknown := {name for name in others if not changes_nothing("AdamW", name, group[name])}:
        raise ValueError(f"[AdamW] params: expected options {', '.join(options)}, got {min(unknown)!r}")
    _check_options(group)
    return group


def _check_options(group: Mapping[str, Any]) -> None:
    if lacking := [name for name in _OPTIONS if name not in group]:
        raise ValueError(f"[AdamW] param_groups: a group has no {lacking[0]}; give all groups to AdamW([...])")
    betas, lr = group["betas"], group["lr"]
    for name, value in group.items():
        if f"AdamW.{name}" in OPTIONS and not changes_nothing("AdamW", name, value):
            raise ValueError(f"[AdamW] {name}: rooflab's AdamW has no such option, got {value!r}")
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise TypeError(f"[AdamW] betas: expected two numbers, got {betas!r}")
    if isinstance(lr, Tensor) and not group["capturable"]:
        raise ValueError("[AdamW] lr: a tensor is read on the device, which needs capturable=True")
    if isinstance(lr, Tensor) and lr.shape != ():
        raise ValueError(f"[AdamW] lr: expected a number or a tensor of shape (), got {lr.shape}")
    limits: list[tuple[str, Any, float]] = [
        ("lr", 0.0 if isinstance(lr, Tensor) else lr, math.inf),
        ("betas[0]", betas[0], 1),
        ("betas[1]", betas[1], 1),
        ("eps", group["eps"], math.inf),
        ("weight_decay", group["weight_decay"], math.inf),
    ]
    for name, value, below in limits:
        if type(value) is bool or not issubclass(type(value), numbers.Real):
            raise TypeError(f"[AdamW] {name}: expected a number, got {value!r}")
        if not 0 <= value < below or value > sys.float_info.max:
            limit = "finite and not negative" if below == math.inf else "at least 0 and below 1"
            raise ValueError(f"[AdamW] {name}: expected a number that is {limit}, got {value}")
    if group["decay"] not in ("before", "after"):
        raise ValueError(f"[AdamW] decay: expected 'before' or 'after', got {group['decay']!r}")


def _check_tensors(tensors: list[Any]) -> None:
    if not tensors:
        raise ValueError("[AdamW] params: expected at least one tensor, got none")
    seen: set[Tensor] = set()
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"[AdamW] params[{place}]: expected a tensor, got {type(tensor).__name__}")
        if not tensor.dtype.is_floating_point:
            raise ValueError(f"[AdamW] params[{place}]: expected a floating dtype, got {tensor.dtype}")
        if not tensor.is_leaf:
            raise ValueError(f"[AdamW] params[{place}]: expected a leaf, got the result of an op; detach it first")
        if tensor in seen:
            raise ValueError(f"[AdamW] params[{place}]: this tensor is there twice")
        seen.add(tensor)
    if not any(tensor.requires_grad for tensor in tensors):
        raise ValueError("[AdamW] params: expected tensors that require grad, got none; call requires_grad_()")


def _sizes(groups: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(str(len(group["params"])) for group in groups)
