"""Which calls of a trace run as one: chains of elementwise calls, in an order that keeps values before their readers.

A chain has one shape. A call joins the chain that makes one of its operands. Then a reduction of rows joins the chain
that makes its operand. A chain joins the reduction whose result it reads, if it works on the rows' numbers alone, or
combines each with the elements of its row. Then a call joins the chain that reads one of its operands, and last a sum
of columns joins a chain of rows that makes or reads what it adds up. Two groups stay apart where a third would have to
run between them, or where no kernel takes both and their reductions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from .. import _core
from .needs import Call, View, alive, storages_read

# When it pays to reduce in the kernel that makes the rows. Few rows, or very long ones, are better off with the
# reduction's own kernels, which share a row among blocks. Rows of fewer than 128 elements were not measured.
_FEWEST_ROWS, _SHORTEST_ROW, _LONGEST_ROW = 256, 128, 65536
# When it pays to add up columns there, too: each block leaves a partial sum for each column.
_FEWEST_SUMMED_ROWS = 512


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
    groups = _Groups(calls, needs, alive(calls, needs, numbers, wanted), set(apart), wanted)
    steps = []
    for chain in groups.in_order(set(late)):
        steps += _cut(groups, chain)
    return steps


def _cut(groups: _Groups, chain: list[int]) -> list[Step]:
    """A chain as one step, or cut into parts that a kernel can take. A call alone runs its own kernel."""
    calls, needs = groups.calls, groups.needs
    first = calls[chain[0]]
    takes_numbers = first.instructions and any(x.storage not in needs[chain[0]] for x in first.inputs)
    if len(chain) == 1 and not takes_numbers:
        return [Step((chain[0],), ())]
    if groups.fits(chain):
        return [Step(tuple(chain), tuple(groups.results(chain)))]
    half = len(chain) // 2
    return [step for part in (chain[:half], chain[half:]) for step in _cut(groups, part)]


def _pays(shape: Sequence[int], dims: int) -> bool:
    """Whether elements whose last dimensions are reduced are rows that a chain should reduce."""
    rows, columns = math.prod(shape[:-dims]), math.prod(shape[-dims:])
    return rows >= _FEWEST_ROWS and _SHORTEST_ROW <= columns <= _LONGEST_ROW


def _read_again(calls: Sequence[Call], kept: Iterable[int]) -> set[int]:
    """Reductions whose result, or a number for each row that is computed from it, is used for elements of the rows."""
    found: set[int] = set()
    reduced: dict[int, set[int]] = {}  # the reductions that a number for each row is made of
    for i in kept:
        if calls[i].reduced_dims:
            reduced[calls[i].outputs[0].storage] = {i}
        elif calls[i].instructions:
            y = calls[i].outputs[0]
            sources = {r for x in calls[i].inputs for r in reduced.get(x.storage, ())}
            of_elements = {r for r in sources if calls[r].inputs[0].shape == y.shape}
            found |= of_elements
            reduced[y.storage] = sources - of_elements
    return found


@dataclass
class _Group:
    calls: list[int]
    before: set[int]  # groups that make what it reads
    after: set[int]  # groups that it is before
    names: int  # bit g stands for group g: its own, and those of the groups that joined it
    ancestors: int  # the names of all groups that must run before it


class _Groups:
    """The calls `kept` of a trace in groups, each named after its first call."""

    def __init__(
        self, calls: Sequence[Call], needs: list[set[int]], kept: list[int], apart: Set[int], wanted: Set[int]
    ):
        self.calls = calls
        self._apart = apart
        self._wanted = wanted
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
                self._join_makers(i)
        read_again = _read_again(calls, kept)
        for i in kept:
            if calls[i].reduced_dims:
                self._join_what_is_reduced(i)
        for i in kept:
            if calls[i].instructions:
                self._join_rows(i, read_again)
        for i in kept:
            if calls[i].instructions:
                self._join_other_readers(i)
        for i in kept:
            if calls[i].summed_dims:
                self._join_rows_that_are_summed(i)

    def results(self, chain: Sequence[int]) -> list[int]:
        """The storages that a chain has to write to memory."""
        inside = set(chain)
        return [
            y.storage
            for i in chain
            for y in self.calls[i].outputs
            if y.storage in self._wanted or any(reader not in inside for reader in self.readers.get(y.storage, ()))
        ]

    def fits(self, chain: Sequence[int]) -> bool:
        """Whether a kernel takes a chain as a whole."""
        calls = [self.calls[i] for i in chain]
        made = {call.outputs[0].storage for call in calls}
        shapes = [call.inputs[0].shape for call in calls if call.reduced_dims]
        shape = shapes[0] if shapes else calls[0].outputs[0].shape  # of the elements
        instructions = sum(call.instructions for call in calls if call.outputs[0].shape == shape)
        # A number for each row is another operand where the calls have dropped the dimensions that are reduced.
        read = [
            (x, len(shape if self.calls[i].summed_dims else self.calls[i].outputs[0].shape), x.storage in self.needs[i])
            for i in chain
            for x in self.calls[i].inputs
        ]
        operands = {(x, ndim) for x, ndim, is_needed in read if is_needed and x.storage not in made}
        numbers = sum(call.numbers for call in calls) + sum(not is_needed for _, _, is_needed in read)
        limits = _core._compiler
        sums = [call.inputs[0] for call in calls if call.summed_dims]
        if sums:
            dims = max(call.reduced_dims for call in calls)
            # A number for each row takes no room.
            of_elements = [x for x, ndim in operands if ndim == len(shape) and math.prod(x.shape[-dims:]) > 1]
            held = sum(max(4, x.itemsize) for x in (*of_elements, *sums))
            if len(sums) > limits.MAX_COLUMN_SUMS or not limits.holds_summed_row(math.prod(shape[-dims:]), held):
                return False
        return (
            instructions <= limits.MAX_INSTRUCTIONS
            and sum(call.instructions for call in calls) - instructions <= limits.MAX_ROW_INSTRUCTIONS
            and len(shapes) <= limits.MAX_REDUCTIONS
            and numbers <= limits.MAX_NUMBERS
            and len(operands) <= limits.MAX_OPERANDS
            and len(self.results(chain)) - len(sums) <= limits.MAX_RESULTS
        )

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
            self._groups[g].after.add(i)
        self._groups[i], self._group_of[i] = _Group([i], before, set(), 1 << i, ancestors), i
        for y in self.calls[i].outputs:
            self._maker[y.storage] = i
        for s in storages:
            self.readers.setdefault(s, []).append(i)

    def _join_makers(self, i: int) -> None:
        call, shape = self.calls[i], self.calls[i].outputs[0].shape
        for x in call.inputs:
            maker = self._maker.get(x.storage)
            if maker is not None and self.calls[maker].instructions and self.calls[maker].outputs[0].shape == shape:
                self._join(maker, i)

    def _join_other_readers(self, i: int) -> None:
        call, shape = self.calls[i], self.calls[i].outputs[0].shape
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
        if _pays(x.shape, dims):
            self._join(maker, i)

    def _join_rows(self, i: int, read_again: Set[int]) -> None:
        """A call joins the group that makes numbers for rows, if it reads these and either group has a reduction.

        A reduction that is alone keeps its own kernel, unless its rows are `read_again`.
        """
        for x in self.calls[i].inputs:
            maker = self._maker.get(x.storage)
            if maker is None:
                continue
            group, own = (self._groups[self._group_of[k]].calls for k in (maker, i))
            reduction = next((self.calls[k] for k in (*group, *own) if self.calls[k].reduced_dims), None)
            if reduction is None or not _pays(reduction.inputs[0].shape, reduction.reduced_dims):
                continue
            if len(group) > 1 or not self.calls[maker].reduced_dims or maker in read_again:
                self._join(maker, i)

    def _join_rows_that_are_summed(self, i: int) -> None:
        """A sum of columns joins the chain of rows that makes its operand, or reads it, where that pays."""
        x, dims = self.calls[i].inputs[0], self.calls[i].summed_dims
        reader = self._last_reader.get((x, x.shape))
        maker = self._maker.get(x.storage, reader)
        if maker is not None and not self.calls[maker].instructions:
            maker = reader
        if maker is not None and math.prod(x.shape[:dims]) >= _FEWEST_SUMMED_ROWS:
            self._join(maker, i)

    def _join(self, i: int, j: int) -> None:
        """The groups of calls i and j become one, if they can be one chain and no third has to run between them."""
        a, b = sorted((self._group_of[i], self._group_of[j]))
        if (self._groups[a].calls[0] in self._apart) != (self._groups[b].calls[0] in self._apart):
            return
        if a == b or self._lies_between(a, b) or self._lies_between(b, a):
            return
        if not self._is_chain(self._groups[a].calls + self._groups[b].calls):
            return
        one, other = self._groups[a], self._groups.pop(b)
        one.calls = sorted(one.calls + other.calls)
        one.before = (one.before | other.before) - {a, b}
        one.after = (one.after | other.after) - {a, b}
        one.names |= other.names
        one.ancestors = (one.ancestors | other.ancestors) & ~one.names
        for k in other.calls:
            self._group_of[k] = a
        for g in other.before - {a}:
            self._groups[g].after = self._groups[g].after - {b} | {a}
        for g in other.after - {a}:
            self._groups[g].before = self._groups[g].before - {b} | {a}
        gained, left = one.ancestors | one.names, list(one.after)
        while left:
            group = self._groups[left.pop()]
            if gained & ~group.ancestors:  # otherwise all that come after it know them, too
                group.ancestors |= gained
                left += group.after

    def _lies_between(self, first: int, last: int) -> bool:
        """Whether a third group depends on `first`, and `last` on that group."""
        names = self._groups[first].names
        return any(self._groups[g].ancestors & names for g in self._groups[last].before if g != first)

    def _is_chain(self, together: Sequence[int]) -> bool:
        """Whether calls can be one chain: of one shape, or that of its rows, and with one way to reduce these.

        They read each other's results element by element, or a number for the row of each element. None reads a sum of
        columns.
        """
        calls = [self.calls[i] for i in together]
        if not all(call.instructions or call.reduced_dims or call.summed_dims for call in calls):
            return False
        rows = {(call.inputs[0].shape, call.reduced_dims) for call in calls if call.reduced_dims}
        sums = [call for call in calls if call.summed_dims]
        if len(rows) > 1 or (sums and not rows) or len({call.inputs[0].itemsize == 8 for call in sums}) > 1:
            return False
        if rows and not self.fits(together):  # a chain without reductions can be cut anywhere
            return False
        shape, dims = rows.pop() if rows else (calls[0].outputs[0].shape, 0)
        of_rows = (shape[:-dims] + (1,) * dims, shape[:-dims]) if dims else ()
        made = {y.storage: y for call in calls for y in call.outputs}
        if any(x.storage == s.outputs[0].storage for s in sums for call in calls for x in call.inputs):
            return False
        for call in calls:
            if call.summed_dims and (call.inputs[0].shape != shape or call.summed_dims != len(shape) - dims):
                return False
            works_on_elements = call.reduced_dims or call.summed_dims or call.outputs[0].shape == shape
            if not works_on_elements and call.outputs[0].shape not in of_rows:
                return False
            for x in call.inputs:
                y = made.get(x.storage)
                if y is None:
                    continue
                takes_row = works_on_elements and y.shape != shape
                if not (x.shows_rows(y, shape, dims) if takes_row else x.shows_same(y)):
                    return False
        return True
