"""A function as programs: one for its results, one for its gradients, and others for those of one result alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _core
from .._core import Tensor
from .arguments import check_result, flatten, replace
from .guards import Guards
from .modules import replaced
from .needs import Call, View, alive, computed_again, leading_to, storages_read
from .plan import plan
from .undo import unchanged

_EXTREMES = {"amax", "amin"}


@dataclass(frozen=True)
class _Place:
    """Where a tensor of the results comes from: an argument itself, or the program."""

    index: int
    is_argument: bool = False


class FunctionProgram:
    """What `function` does with arguments of one key.

    Parameters
    ----------
    function : callable
    arguments : (args, kwargs)
        Those of the first call. The function is called with tensors without memory in place of their tensors.
    tensors : sequence of Tensor
        The tensors among them, in the order of `flatten`.
    variant : str
        The rung of `fused`; "" for the fastest.
    places : dict
        Where modules hold the last of `tensors`: see `tensors_of_modules`.
    state : list of dict and list
        What the function must not assign: see `unchanged`.
    reads : (callable, (args, kwargs)), optional
        The function whose reads are watched and what it is called with, where `function` only calls another one.

    Attributes
    ----------
    guards : Guards
        The values that the function has read, for which alone the program is right.

    Raises
    ------
    Exception
        Whatever the function, or an op that it calls, raises on tensors without memory.
    """

    def __init__(
        self,
        function: Callable,
        arguments: tuple,
        tensors: Sequence[Tensor],
        variant: str,
        places: dict | None = None,
        state: Sequence[Any] = (),
        reads: tuple[Callable, tuple] | None = None,
    ):
        reads = reads or (function, arguments)
        self.guards = Guards()
        places = places or {}
        devices = sorted({x.device for x in tensors})
        if len(devices) != 1:
            raise ValueError(f"[compile] expected tensors on one device, got {' and '.join(devices) or 'no tensor'}")
        self._name = getattr(function, "__name__", "function")
        trace = _core._compiler.Trace(devices[0])
        with trace:
            twin_of = {id(x): trace.argument(x) for x in tensors}
            twins = [twin_of[id(x)] for x in tensors]
            views = [trace.view(x) for x in twins]
            places_of = {id(x): i for i, x in reversed(list(enumerate(tensors)))}
            for x in tensors:
                twin_of[id(x)].requires_grad = x.requires_grad
            self._inputs_with_grad = sorted(i for i in places_of.values() if tensors[i].requires_grad)
            taken = iter(twins)
            passed = replace(arguments, lambda _: next(taken))
            contents = _contents(passed)
            # For the backward too, in which checkpoints run their functions again.
            with replaced(places, twins[len(twins) - len(places) :]), unchanged(state):
                args, kwargs = passed
                returned = self.guards.note_reads(lambda: function(*args, **kwargs), *reads)
                _check_errors(trace)
                check_result(returned)
                _check_untouched(trace, tensors, twins, views)
                if _contents(passed) != contents:
                    raise ValueError("[compile] a list or a dict among the arguments is changed")
                outputs: list[Tensor] = []
                self._returned = replace(returned, lambda y: _place(y, trace, twins, outputs))
                results = [trace.view(y) for y in outputs]
                if any(y.requires_grad and y.is_leaf for y in outputs):
                    raise ValueError(
                        "[compile] a result is a leaf that requires grad, as after .detach().requires_grad_(); do that "
                        "outside"
                    )
                forward_calls = len(trace.calls)
                self._outputs_with_grad = [i for i, y in enumerate(outputs) if y.requires_grad]
                grads: list[list[Tensor | None]] = [[]]  # of all results, then of each alone if there are several
                grad_outputs: list[Tensor] = []
                last_call = forward_calls
                if self._outputs_with_grad:
                    ends = [outputs[i] for i in self._outputs_with_grad]
                    grad_outputs = [trace.argument(_core.empty(*y.shape, dtype=y.dtype, device=y.device)) for y in ends]
                    starts = [twins[i] for i in self._inputs_with_grad]
                    grads, last_call = self.guards.note_reads(
                        lambda: _gradients(trace, ends, starts, grad_outputs), *reads
                    )
                _check_errors(trace)
            self.guards.finish()
            grad_output_views = [trace.view(dy) for dy in grad_outputs]
            grad_views = [{i: trace.view(dx) for i, dx in enumerate(each) if dx is not None} for each in grads]
        trace.put_in_order([*results, *(view for each in grad_views for view in each.values())])
        calls = trace.calls
        arguments_of = {view.storage: i for i, view in reversed(list(enumerate(views)))}
        before, after = range(forward_calls), range(forward_calls, last_call)
        wanted = {view.storage for view in results}
        wanted_grads = [{view.storage for view in each.values()} for each in grad_views]
        numbers = [after, *leading_to(calls, forward_calls, wanted_grads[1:])]
        every = sorted(set().union(*numbers))
        kept, again = _split(calls, before, every, set(arguments_of), wanted, set().union(*wanted_grads))
        made = {y.storage: y for call in calls for y in call.outputs}
        self._kept_arguments = [arguments_of[s] for s in kept if s in arguments_of]
        kept_results = [made[s] for s in kept if s not in arguments_of]
        steps = plan(calls, before, wanted | {view.storage for view in kept_results})
        self._results = len(results)
        self._forward = _program(trace, views, steps, [*results, *kept_results], variant)
        given = [*(views[i] for i in self._kept_arguments), *kept_results]

        def backward(k: int, dy: Sequence[View]) -> tuple:  # without `self`, which nodes of the results must not hold
            apart = computed_again(calls, before, numbers[k])
            steps = plan(calls, [*again, *numbers[k]], wanted_grads[k], again, apart)
            targets, made = list(grad_views[k]), list(grad_views[k].values())
            return _program(trace, [*given, *dy], steps, made, variant), targets

        self._backward = backward(0, grad_output_views) if self._outputs_with_grad else None
        # For when no gradient reaches some of the results; planned when it is first needed.
        self._alone = functools.cache(lambda i: backward(i + 1, grad_output_views[i : i + 1])) if grads[1:] else None

    def __call__(self, tensors: Sequence[Tensor]) -> Any:
        made = self._forward.run(tensors)
        results, kept = made[: self._results], made[self._results :]
        if self._backward is not None:
            self._record(tensors, results, [*(tensors[i] for i in self._kept_arguments), *kept])
        return replace(self._returned, lambda y: (tensors if y.is_argument else results)[y.index], _Place)

    def _record(self, tensors: Sequence[Tensor], results: list[Tensor], saved: list[Tensor]) -> None:
        """Put the results that have gradients (in place) into a node whose rule runs the backward program."""
        ends = [results[i] for i in self._outputs_with_grad]
        inputs = [tensors[i] for i in self._inputs_with_grad]
        assert self._backward is not None
        program, targets = self._backward
        recorded = program.record(self._name, ends, inputs, saved, targets, self._alone)
        for i, y in zip(self._outputs_with_grad, recorded, strict=True):
            results[i] = y


def _program(trace, inputs, steps, results, variant):
    return _core._compiler.Program(trace, inputs, [(step.calls, step.results) for step in steps], results, variant)


def _gradients(trace, ends: list, starts: list, grad_outputs: list) -> tuple[list[list[Tensor | None]], int]:
    """Those of all `ends`, then of each alone if there are several; and how many calls there are after the first."""
    grad, several = _core._autograd.grad, len(ends) > 1
    found = [grad(ends, starts, grad_outputs, several)]
    last_call = len(trace.calls)
    if several:
        found += [grad([y], starts, [dy], True) for y, dy in zip(ends, grad_outputs, strict=True)]
    return found, last_call


def _contents(arguments: Any) -> tuple:
    """What is compared to see whether lists and dicts among the arguments are as they were."""
    tensors: list[Tensor] = []
    return flatten(arguments, tensors), [id(x) for x in tensors]


def _check_errors(trace) -> None:
    """ValueError when there was an error that only a recording meets, even if the function caught it."""
    if trace.error:
        raise ValueError(trace.error)


def _check_untouched(trace, tensors: Sequence[Tensor], twins: Sequence[Tensor], views: Sequence[View]) -> None:
    """ValueError when the function changed an argument in a way that running the calls again would not repeat."""
    for x, twin, view in zip(tensors, twins, views, strict=True):
        if trace.view(twin) != view:
            raise ValueError("[compile] an argument is written in place")
        if _core._compiler.has_grad(twin):
            raise ValueError("[backward] sets the grad of an argument; use rl.autograd.grad, which returns gradients")
        if twin.requires_grad != x.requires_grad:
            raise ValueError("[requires_grad] of an argument is changed")


def _place(y: Tensor, trace, twins: Sequence[Tensor], outputs: list[Tensor]) -> _Place:
    is_leaf = y.requires_grad and y.is_leaf
    for i, twin in enumerate(twins):
        if y is twin or (is_leaf and twin.requires_grad and trace.view(y) == trace.view(twin)):  # x.to(x.dtype) is x
            return _Place(i, is_argument=True)
    place = next((i for i, other in enumerate(outputs) if other is y), len(outputs))
    if place == len(outputs):
        outputs.append(y)
    return _Place(place)


def _split(
    calls: Sequence[Call],
    before: Sequence[int],
    after: Sequence[int],
    arguments: set[int],
    wanted: set[int],
    wanted_grads: set[int],
) -> tuple[list[int], list[int]]:
    """What the forward program keeps for the backward one, and which of its calls run again there.

    A value that forward writes to memory anyway is kept. One that stays inside a chain is recomputed in backward, if
    all that this needs is kept or an argument; otherwise forward writes it. A sum or mean of each row is kept where an
    element is recomputed from it, or, if memory would round it to 16 bits, recomputed with the element. The largest or
    smallest of a row whose elements are recomputed is recomputed with them: backward compares the two, and memory holds
    it rounded.

    Returns
    -------
    (list of int, list of int)
        Storages that backward is given, and calls.
    """
    maker = {y.storage: i for i in before for y in calls[i].outputs}
    needs = storages_read(calls)
    read = wanted_grads.union(*(needs[i] for i in alive(calls, needs, after, wanted_grads)))
    needed = {s for s in read if s in maker or s in arguments}
    steps = plan(calls, before, wanted)
    written = {s for step in steps for s in step.results or (y.storage for i in step.calls for y in calls[i].outputs)}
    sums = {s for s, i in maker.items() if calls[i].op not in _EXTREMES and calls[i].reduced_dims}
    # Inside a chain, and rounded where memory holds them.
    rounded = {s for s in sums - written if calls[maker[s]].outputs[0].itemsize < 4}
    written |= {s for s, i in maker.items() if not calls[i].instructions}
    extremes = {s for s, i in maker.items() if calls[i].op in _EXTREMES and calls[i].reduced_dims}

    held = arguments | (needed & written) - extremes | sums - rounded
    made_again: set[int] = set()
    for s, i in maker.items():
        can_be_made = needs[i] & made_again if s in extremes else calls[i].instructions or s in rounded - needed
        if s not in held and can_be_made and needs[i] <= held | made_again:
            made_again.add(s)
        elif s in needed:
            held.add(s)
    kept, again = needed & held, set()
    left = [maker[s] for s in needed - held]
    while left:
        i = left.pop()
        if i in again:
            continue
        again.add(i)
        kept |= needs[i] & held
        left += [maker[s] for s in needs[i] - held]
    return sorted(kept), sorted(again)
