"""What all results have in common: how they are shown, saved and compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from ..files import parsed
from .plain import fields, plain, read, same, settle, to_json
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
        """The table that people read, in Markdown.

        Returns
        -------
        str
            A line for each row, below the names of the columns with their units.

        Examples
        --------
        >>> import rooflab as rl
        >>> cost = rl.Cost(macs=4, flops=8)
        >>> print(cost.to_markdown())
        | macs | flops | bytes_read | bytes_written |
        |---:|---:|---:|---:|
        | 4 | 8 | 0 | 0 |
        """
        return self._table().to_markdown()

    def to_csv(self) -> str:
        """The exact figures as CSV.

        Returns
        -------
        str
            A header with units in the names, and a line for each row, in full precision. Empty cells are not known.

        Examples
        --------
        >>> import rooflab as rl
        >>> cost = rl.Cost(macs=4, flops=8)
        >>> cost.to_csv()
        'macs,flops,bytes_read,bytes_written\\n4,8,0,0\\n'
        """
        return self._figures().to_csv()

    def to_pandas(self) -> DataFrame:
        """The rows of `to_csv` as a table of pandas.

        Returns
        -------
        pandas.DataFrame
            A row for each row, with units in the names of the columns.

        Raises
        ------
        ImportError
            When pandas is not installed.

        Examples
        --------
        >>> import rooflab as rl
        >>> cost = rl.Cost(macs=4, flops=8)
        >>> frame = cost.to_pandas()  # doctest: +SKIP
        >>> frame["flops"].tolist()  # doctest: +SKIP
        [8]
        """
        return self._figures().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values.

        Returns
        -------
        dict of str to object
            Dicts, lists, numbers and texts, under the names of the attributes.

        Examples
        --------
        >>> import rooflab as rl
        >>> cost = rl.Cost(macs=4, flops=8)
        >>> cost.to_dict()
        {'macs': 4, 'flops': 8, 'bytes_read': 0, 'bytes_written': 0}
        """
        return {name: plain(value) for name, value in self._values().items()}

    def to_json(self, indent: int | None = None) -> str:
        """What `to_dict` gives, as JSON.

        Parameters
        ----------
        indent : int, optional
            How many spaces a level is indented by. By default all is one line.

        Returns
        -------
        str
            Numbers that are not finite are the texts "NaN", "Infinity" and "-Infinity".

        Raises
        ------
        TypeError
            For an `indent` that is no integer.

        Examples
        --------
        >>> import rooflab as rl
        >>> cost = rl.Cost(macs=4, flops=8)
        >>> cost.to_json()
        '{"macs": 4, "flops": 8, "bytes_read": 0, "bytes_written": 0}'
        """
        return to_json(self.to_dict(), indent)


class ReadableMixin(ResultMixin):
    """A result that can be read from what was saved of it. It is a dataclass."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """One that is read again is equal to the first one because both hold numbers of the same types."""
        settle(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy and one that is unpickled cannot be written to either: NumPy would make arrays that can."""
        self.__dict__.update(state)
        settle(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The result from what `to_dict` gave.

        Parameters
        ----------
        values : mapping of str to object
            All fields, and no others.

        Returns
        -------
        result
            Equal to the one that was saved.

        Raises
        ------
        ValueError
            When a field is missing, unknown or of another type.

        Examples
        --------
        >>> import rooflab as rl
        >>> cost = rl.Cost(macs=4, flops=8)
        >>> rl.Cost.from_dict(cost.to_dict()) == cost
        True
        """
        return read(cls, values)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The result from what `to_json` gave.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        result
            Equal to the one that was saved.

        Raises
        ------
        ValueError
            When the text is not JSON, or a field is missing, unknown or of another type.

        Examples
        --------
        >>> import rooflab as rl
        >>> cost = rl.Cost(macs=4, flops=8)
        >>> rl.Cost.from_json(cost.to_json()) == cost
        True
        """
        return cls.from_dict(parsed(text))


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
