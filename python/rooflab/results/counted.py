"""Costs and counts, which the core makes, as results: shown, saved and compared as all others are.

A pickle of counts, or a copy, is a `SavedCounts`; that of a counter is a `SavedCounter`, which counts no more. Both
hold the same numbers under the same names, and are equal to what they were made of.
"""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core import Cost, Counts, count
from .._nothing import NOTHING_RAN
from .mixin import ReadableMixin, ResultMixin
from .plain import read
from .table import Table

_WORK = ("macs", "flops", "bytes_read", "bytes_written")
_COUNTS = ("ops", "launches", "host_calls", *_WORK, "allocations", "bytes_allocated")
_TOTALS = (*_COUNTS, "peak_bytes")


class _OfNumbers(ReadableMixin):
    """What counts have in common, whichever class they are of."""

    __slots__ = ()

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _COUNTS}

    def __eq__(self, other: object) -> bool:
        """Whether the other ones hold the same numbers; saved ones are equal to those of the core."""
        if not isinstance(other, (Counts, SavedCounts)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _COUNTS)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in _COUNTS))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Any:
        """The saved counts from what `to_dict` gave.

        Parameters
        ----------
        values : mapping of str to object
            All fields, and no others.

        Returns
        -------
        SavedCounts
            Equal to the counts that were saved.

        Raises
        ------
        ValueError
            When a field is missing, unknown or of another type.

        Examples
        --------
        >>> import rooflab as rl
        >>> with rl.count() as c:
        ...     y = rl.ones(3) + 1
        >>> rl.Counts.from_dict(c.by_op["add"].to_dict()).flops
        3
        """
        return read(SavedCounts, values)


@dataclass(frozen=True)
class SavedCounts(_OfNumbers):
    """`rl.Counts` as they were saved; the attributes are the same."""

    ops: int = 0
    launches: int = 0
    host_calls: int = 0
    macs: int = 0
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    allocations: int = 0
    bytes_allocated: int = 0


class _OfCounter(ReadableMixin):
    """What an `rl.count` and a saved one have in common."""

    __slots__ = ()
    by_op: Mapping[str, Any]
    by_range: Mapping[str, Any]

    def _values(self) -> dict[str, Any]:
        inside = {name: dict(getattr(self, name)) for name in ("by_op", "by_range")}
        return {name: getattr(self, name) for name in _TOTALS} | inside

    def _has_counted(self) -> bool:
        """False if nothing ran: zeros would look like a measurement of something."""
        return any(getattr(self, name) for name in _TOTALS)

    def __repr__(self) -> str:
        if not self._has_counted():
            return f"count({NOTHING_RAN})"
        return f"count({', '.join(f'{name}={getattr(self, name)}' for name in _TOTALS)})"

    def __eq__(self, other: object) -> bool:
        """Whether the other one counted the same; a saved one is equal to the one that it was made of."""
        if not isinstance(other, (count, SavedCounter)):
            return NotImplemented
        return self._values() == other._values()  # type: ignore[union-attr]

    __hash__ = None  # type: ignore[assignment]  # it goes on counting

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Any:
        """The saved counter from what `to_dict` gave.

        Parameters
        ----------
        values : mapping of str to object
            All fields, and no others.

        Returns
        -------
        SavedCounter
            Equal to the counter that was saved.

        Raises
        ------
        ValueError
            When a field is missing, unknown or of another type.

        Examples
        --------
        >>> import rooflab as rl
        >>> with rl.count() as c:
        ...     y = rl.ones(3) + 1
        >>> rl.count.from_dict(c.to_dict()) == c
        True
        """
        return read(SavedCounter, values)

    def _figures(self) -> Table:
        rows = ({"op": op} | {name: getattr(counts, name) for name in _COUNTS} for op, counts in self.by_op.items())
        return Table.of(rows, ("op", *_COUNTS))

    def _table(self) -> Table:
        if not self._has_counted():
            return Table((), (), note=NOTHING_RAN)
        values = self._values()
        names = [name for name in _COUNTS if values[name] and name != "allocations"]
        rows = [[op, *(getattr(counts, name) for name in names)] for op, counts in self.by_op.items()]
        outside = [values[name] - sum(counts) for name, *counts in zip(names, *(row[1:] for row in rows), strict=True)]
        if any(outside):  # memory of tensors that are made outside of ops, under the name that timelines have for it
            rows.append(["user", *outside])
        rows.append(["total", *(values[name] for name in names)])
        note = f"peak {values['peak_bytes']} B above what was held"
        return Table(["op", *(name.replace("_", " ") for name in names)], rows, note=note).shown()


@dataclass
class SavedCounter(_OfCounter):
    """`rl.count` as it was saved; the attributes are the same."""

    ops: int
    launches: int
    host_calls: int
    macs: int
    flops: int
    bytes_read: int
    bytes_written: int
    allocations: int
    bytes_allocated: int
    peak_bytes: int
    by_op: dict[str, SavedCounts] = field(repr=False)
    by_range: dict[str, SavedCounts] = field(repr=False)


class _OfCost(ReadableMixin):
    """What makes a cost a result; its `==` and its text are the core's."""

    __slots__ = ()

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _WORK}

    def __hash__(self) -> int:
        return hash(tuple(self._values().values()))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Any:
        """The cost from what `to_dict` gave.

        Parameters
        ----------
        values : mapping of str to object
            All fields, and no others.

        Returns
        -------
        Cost
            Equal to the one that was saved.

        Raises
        ------
        ValueError
            When a field is missing, unknown or of another type.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.Cost.from_dict({"macs": 4, "flops": 8, "bytes_read": 0, "bytes_written": 0}).flops
        8
        """
        return Cost(**vars(read(_Work, values, "Cost")))


@dataclass
class _Work:
    macs: int
    flops: int
    bytes_read: int
    bytes_written: int


def _cost(*work: int) -> Cost:
    return Cost(**dict(zip(_WORK, work, strict=True)))


def attach() -> None:
    """Give these methods to the classes of the core; rooflab does so when it is imported.

    Examples
    --------
    >>> import pickle, rooflab as rl
    >>> with rl.count() as c:
    ...     _ = rl.ones(3) + 1
    >>> saved = pickle.loads(pickle.dumps(c))
    >>> saved == c, saved.by_op["add"].flops
    (True, 3)
    """
    for kind, methods in ((Cost, _OfCost), (Counts, _OfNumbers), (count, _OfCounter)):
        members: dict[str, Any] = {}
        for base in (ResultMixin, ReadableMixin, methods):
            members |= vars(base)
        for name, member in members.items():
            is_method = callable(member) or isinstance(member, classmethod) or name == "__hash__"
            if is_method and (kind is not Cost or name != "__eq__"):
                setattr(kind, name, member)
    copyreg.pickle(Cost, lambda cost: (_cost, tuple(getattr(cost, name) for name in _WORK)))
    copyreg.pickle(Counts, lambda counts: (SavedCounts.from_dict, (counts.to_dict(),)))
    copyreg.pickle(count, lambda counter: (SavedCounter.from_dict, (counter.to_dict(),)))
