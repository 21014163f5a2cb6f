"""Which calls of a trace run as one: chains of elementwise calls, in an order that keeps values before their readers.

A chain has one shape. A call joins the chain that makes one of its operands, and the chain that reads one of them. Then
a reduction of rows joins the chain that makes its operand, and a chain joins the reduction whose result it reads. Two
groups stay apart where a third would have to run between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from .. import _core

Call = _core._compiler.Call
View = _core._compiler.View

# When it pays to reduce in the kernel that makes the rows: a GPU runs a block a row, so it needs many rows of medium
# length. Otherwise the reduction's own kernels are better: they give a block several rows, or a row several blocks.
_FEWEST_ROWS, _SHORTEST_ROW, _LONGEST_ROW = 256, 128, 65536

# Ops that look for an index out of range, which is an error also where nobody reads what they choose. x[i, j] calls one
# for i and one for j.
_LOOKING = {"gather", "index_select", "embedding"}


@dataclass(frozen=True)
class Step:
    """Calls that run as one launch, by their numbers in the trace.

    Attributes
    ----------
    calls : tuple of int
    results : tuple of int
        For a chain, the storages that it writes to memory. Empty for a call that runs as it was recorded.
    """

    calls: tuple[int, ...]
    results: tuple[int, ...]


def plan(
    calls: Sequence[Call],
    numbers: Iterable[int],
    wanted: Iterable[int],
    late: Iterable[int] = (),
    apart: Iterable[int] = (),
) -> list[Step]:
    """The steps that make the storages `wanted`, from the calls `numbers` of a trace.

    Parameters
    ----------
    calls : sequence of Call
        All that was traced.
    numbers : iterable of int
        Which of them may run; those that do not lead to anything wanted are left out.
    wanted : iterable of int
        The storages that have to be in memory afterwards.
    late : iterable of int
        Calls that run as late as others allow, which keeps their results short-lived.
    apart : iterable of int
        Calls that are in no chain with the others, which would make them run as early as these.

    Returns
    -------
    list of Step
        In the order in which they are to run.
    """
    wanted = set(wanted)
    needs = storages_read(calls)
    groups = _Groups(calls, needs, alive(calls, needs, numbers, wanted), set(apart))
    steps = []
    for chain in groups.in_order(set(late)):
        steps += _cut(groups, chain, wanted)
    return steps


def storages_read(calls: Sequence[Call]) -> list[set[int]]:
    """For each call, the storages that it needs. Chains take a number in place of a tensor filled with it."""
    constants = {y.storage for call in calls if call.is_constant for y in call.outputs}
    return [
        {x.storage for x in call.inputs} - (constants if call.instructions else set()) | {call.continues} - {-1}
        for call in calls
    ]


def alive(calls: Sequence[Call], needs: Sequence[set[int]], numbers: Iterable[int], wanted: set[int]) -> list[int]:
    """Those of the calls `numbers` that lead to the storages `wanted`, or find an index out of range, in order."""
    needed, kept = set(wanted), []
    for i in sorted(numbers, reverse=True):
        if calls[i].op in _LOOKING or any(y.storage in needed for y in calls[i].outputs):
            kept.append(i)
            needed |= needs[i]
    return kept[::-1]


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


def _cut(groups: _Groups, chain: list[int], wanted: set[int]) -> list[Step]:
    """A chain as one step, or cut into parts that a kernel can take. A call alone runs its own kernel."""
    calls, needs, readers = groups.calls, groups.needs, groups.readers
    first = calls[chain[0]]
    takes_numbers = any(x.storage not in needs[chain[0]] for x in first.inputs)
    if not first.instructions or (len(chain) == 1 and not takes_numbers):
        return [Step((chain[0],), ())]
    inside = set(chain)
    made = {calls[i].outputs[0].storage for i in chain}
    results = [
        y.storage
        for i in chain
        for y in calls[i].outputs
        if y.storage in wanted or any(reader not in inside for reader in readers.get(y.storage, ()))
    ]
    operands = {x for i in chain for x in calls[i].inputs if x.storage in needs[i] - made}
    elements, reductions, of_rows = _parts(calls, chain)
    limits = _core._compiler
    fits = (
        sum(calls[i].instructions for i in elements) <= limits.MAX_INSTRUCTIONS
        and len(reductions) <= limits.MAX_REDUCTIONS
        and sum(calls[i].instructions for i in of_rows) <= limits.MAX_ROW_INSTRUCTIONS
        and len(operands) <= limits.MAX_OPERANDS
        and len(results) <= limits.MAX_RESULTS
    )
    if fits:
        return [Step(tuple(chain), tuple(results))]
    if reductions:
        parts = [elements, *([i] for i in reductions), of_rows]
    else:
        half = len(chain) // 2
        parts = [chain[:half], chain[half:]]
    return [step for part in parts if part for step in _cut(groups, part, wanted)]


def _parts(calls: Sequence[Call], chain: list[int]) -> tuple[list[int], list[int], list[int]]:
    """The calls of a chain that make elements, that reduce them, and that work on the rows' results."""
    shape = calls[chain[0]].outputs[0].shape
    reductions = [i for i in chain if not calls[i].instructions and calls[i].reduced_dims]
    elements = [i for i in chain if calls[i].instructions and calls[i].outputs[0].shape == shape]
    return elements, reductions, [i for i in chain if calls[i].instructions and calls[i].outputs[0].shape != shape]


@dataclass
class _Group:
    calls: list[int]
    before: set[int]  # groups that make what it reads
    ancestors: int  # all groups that must run before it: bit g stands for group g


class _Groups:
    """The calls `kept` of a trace in groups, each named after its first call."""

    def __init__(self, calls: Sequence[Call], needs: list[set[int]], kept: list[int], apart: Set[int]):
        self.calls = calls
        self._apart = apart
        self.needs = needs
        self._groups: dict[int, _Group] = {}
        self._group_of: dict[int, int] = {}
        self._maker: dict[int, int] = {}  # the call that makes a storage
        self._last_reader: dict[tuple[View, tuple[int, ...]], int] = {}  # the last call of a shape to read a view
        self.readers: dict[int, list[int]] = {}  # the calls that read a storage
        for i in kept:
            self._add(i)
        for i in kept:
            if calls[i].instructions:
                self._join_neighbours(i)
        for i in kept:
            if calls[i].reduced_dims:
                self._join_what_is_reduced(i)
        for i in kept:
            if calls[i].instructions:
                self._join_reduction(i)

    def in_order(self, late: set[int]) -> list[list[int]]:
        """The calls of each group, in recorded order as far as each comes after those that make what it reads.

        Groups of `late` calls alone come when another first needs them.
        """
        order: dict[int, list[int]] = {}
        by_last = sorted(
            self._groups, key=lambda g: (late.issuperset(self._groups[g].calls), self._groups[g].calls[-1])
        )
        place = {g: i for i, g in enumerate(by_last)}
        left = by_last[::-1]
        while left:
            before = [g for g in self._groups[left[-1]].before if g not in order]
            if before:
                left += sorted(before, key=place.__getitem__, reverse=True)
            else:
                g = left.pop()
                order[g] = self._groups[g].calls
        return list(order.values())

    def _add(self, i: int) -> None:
        storages = self.needs[i]
        before = {self._maker[s] for s in storages if s in self._maker}
        before.update(self.readers.get(self.calls[i].continues, ()))  # they read the old value of what it changes
        ancestors = 0
        for g in before:
            ancestors |= self._groups[g].ancestors | 1 << g
        self._groups[i], self._group_of[i] = _Group([i], before, ancestors), i
        for y in self.calls[i].outputs:
            self._maker[y.storage] = i
        for s in storages:
            self.readers.setdefault(s, []).append(i)

    def _join_neighbours(self, i: int) -> None:
        call, shape = self.calls[i], self.calls[i].outputs[0].shape
        for x in call.inputs:
            maker = self._maker.get(x.storage)
            if maker is not None and self.calls[maker].instructions and self.calls[maker].outputs[0].shape == shape:
                self._join(maker, i)
        for x in call.inputs:
            reader = self._last_reader.get((x, shape))
            if reader is not None and i not in self._apart:  # a mask that all layers read would join all of them
                self._join(reader, i)
            self._last_reader[x, shape] = i

    def _join_what_is_reduced(self, i: int) -> None:
        """A reduction joins the chain that makes its operand, where that pays."""
        x, dims = self.calls[i].inputs[0], self.calls[i].reduced_dims
        maker = self._maker.get(x.storage)
        if maker is None or not self.calls[maker].instructions or self.calls[maker].outputs[0].shape != x.shape:
            return
        rows, columns = math.prod(x.shape[:-dims]), math.prod(x.shape[-dims:])
        group = self._groups[self._group_of[maker]].calls
        others = {self.calls[k].reduced_dims for k in group} - {0, dims}
        if rows >= _FEWEST_ROWS and _SHORTEST_ROW <= columns <= _LONGEST_ROW and not others:
            self._join(maker, i)

    def _join_reduction(self, i: int) -> None:
        """A chain of the rows' shape joins the group of a reduction that it reads."""
        for x in self.calls[i].inputs:
            maker = self._maker.get(x.storage)
            if maker is None or not self.calls[maker].reduced_dims:
                continue
            own, group = self._group_of[i], self._group_of[maker]
            is_plain = all(self.calls[k].instructions for k in self._groups[own].calls)
            is_reduced = len(self._groups[group].calls) > 1
            if own != group and is_plain and is_reduced and self.calls[i].outputs[0].shape == x.shape:
                self._join(maker, i)

    def _join(self, i: int, j: int) -> None:
        """The groups of calls i and j become one, unless a third would have to run between them."""
        a, b = sorted((self._group_of[i], self._group_of[j]))
        if (self._groups[a].calls[0] in self._apart) != (self._groups[b].calls[0] in self._apart):
            return
        if a == b or self._lies_between(a, b) or self._lies_between(b, a) or not self._reads_whole(a, b):
            return
        one, other = self._groups[a], self._groups.pop(b)
        one.calls = sorted(one.calls + other.calls)
        one.before = (one.before | other.before) - {a, b}
        one.ancestors = (one.ancestors | other.ancestors) & ~(1 << a | 1 << b)
        for k in other.calls:
            self._group_of[k] = a
        for group in self._groups.values():
            if b in group.before:
                group.before = group.before - {b} | {a}
            if group.ancestors & (1 << a | 1 << b):
                group.ancestors = group.ancestors & ~(1 << b) | 1 << a | one.ancestors

    def _lies_between(self, first: int, last: int) -> bool:
        """Whether a third group depends on `first`, and `last` on that group."""
        return any(self._groups[g].ancestors >> first & 1 for g in self._groups[last].before if g != first)

    def _reads_whole(self, a: int, b: int) -> bool:
        """Whether calls of the two groups read each other's results only whole, element by element."""
        together = self._groups[a].calls + self._groups[b].calls
        made = {y.storage: y for i in together for y in self.calls[i].outputs}
        return all(made.get(x.storage, x) == x for i in together for x in self.calls[i].inputs)
