"""What the calls of a trace need, what they lead to, and which of them repeat others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from .. import _core

Call = _core._compiler.Call
View = _core._compiler.View


def storages_read(calls: Sequence[Call]) -> list[set[int]]:
    """For each call, the storages that it needs. Chains take a number in place of a tensor filled with it."""
    constants = {y.storage for call in calls if call.is_constant for y in call.outputs}
    return [
        {x.storage for x in call.inputs} - (constants if call.instructions else set()) | {call.continues} - {-1}
        for call in calls
    ]


def alive(calls: Sequence[Call], needs: Sequence[set[int]], numbers: Iterable[int], wanted: set[int]) -> list[int]:
    """Those of the calls `numbers` that lead to the storages `wanted`, or look for a number out of range, in order."""
    needed, kept = set(wanted), []
    for i in sorted(numbers, reverse=True):
        if calls[i].looks or any(y.storage in needed for y in calls[i].outputs):
            kept.append(i)
            needed |= needs[i]
    return kept[::-1]


def leading_to(calls: Sequence[Call], first: int, wanted: Sequence[Set[int]]) -> list[list[int]]:
    """For each set of storages the calls from `first` on that lead to these, in order."""
    needs = storages_read(calls)
    maker = {y.storage: i for i in range(first, len(calls)) for y in calls[i].outputs}
    leading = []
    for storages in wanted:
        found: set[int] = set()
        left = [maker[s] for s in storages if s in maker]
        while left:
            i = left.pop()
            if i not in found:
                found.add(i)
                left += [maker[s] for s in needs[i] if s in maker]
        leading.append(sorted(found))
    return leading


def computed_again(calls: Sequence[Call], before: Iterable[int], after: Iterable[int]) -> set[int]:
    """Those of `after` that repeat calls of `before`, as checkpoints do: other than elementwise, and what they read."""
    made = {_described(calls[i], {}): calls[i] for i in before}
    first: dict[int, int] = {}  # for a storage that may be made again, the one that it would repeat
    maker: dict[int, int] = {}
    found: set[int] = set()
    for i in after:
        call, like = calls[i], made.get(_described(calls[i], first))
        if like is None:
            continue
        for y, z in zip(call.outputs, like.outputs, strict=True):
            first[y.storage], maker[y.storage] = z.storage, i
        makers = {maker[x.storage] for x in call.inputs if x.storage in maker}
        if not call.instructions or makers & found:
            found |= makers | {i}
    return found


def _described(call: Call, first: Mapping[int, int]) -> tuple:
    inputs = tuple((first.get(x.storage, x.storage), tuple(x.shape)) for x in call.inputs)
    return call.op, call.continues, inputs, tuple(tuple(y.shape) for y in call.outputs)
