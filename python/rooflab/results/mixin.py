"""What all results have in common: how they are shown, saved and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from .plain import fields, plain, read, same, to_json
from .table import Table

if TYPE_CHECKING:
    from pandas import DataFrame


class ResultMixin:
    """Shows, saves and compares a result, which is a dataclass or says itself what its `_values` are.

    A class may say more: `_figures` is the table of exact numbers, with the units in the names, that CSV and pandas
    get; `_table` is the table that people read. By default both have one row, of the fields.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__eq__ = cls.__eq__  # type: ignore[method-assign]  # its own now, in whose place @dataclass writes no other

    def _values(self) -> dict[str, Any]:
        """What makes two results equal."""
        return fields(self)

    def _figures(self) -> Table:
        return Table.of([flat(self.to_dict())])

    def _table(self) -> Table:
        return self._figures().shown()

    def __eq__(self, other: object) -> bool:
        """Whether it is of the same class and holds the same, arrays element by element."""
        if type(other) is not type(self):
            return NotImplemented
        return self is other or same(self._values(), other._values())

    def _repr_html_(self) -> str:
        return self._table().to_html()

    def to_markdown(self) -> str:
        """The table that people read, in Markdown."""
        return self._table().to_markdown()

    def to_csv(self) -> str:
        """A header with units in the names and a line for each row, in full precision; empty cells are not known."""
        return self._figures().to_csv()

    def to_pandas(self) -> DataFrame:
        """The rows of `to_csv` as a pandas.DataFrame.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        return self._figures().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: dicts, lists, numbers and texts."""
        return {name: plain(value) for name, value in self._values().items()}

    def to_json(self, indent: int | None = None) -> str:
        """What `to_dict` gives, as JSON; numbers that are not finite are the texts "NaN", "Infinity", "-Infinity"."""
        return to_json(self.to_dict(), indent)


class ReadableMixin(ResultMixin):
    """A result that can be read from what was saved of it. It is a dataclass."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The result from what `to_dict` gave.

        Raises
        ------
        ValueError
            A field is missing, unknown or of another type.
        """
        return read(cls, values)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The result from what `to_json` gave.

        Raises
        ------
        ValueError
            The text is not JSON, or a field is missing, unknown or of another type.
        """
        return cls.from_dict(json.loads(text))


def flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """A dict of dicts as one dict, with dots in its keys.

    Examples
    --------
    >>> flat({"op": "add", "cost": {"flops": 3}})
    {'op': 'add', 'cost.flops': 3}
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {before + name: value}
    return found
