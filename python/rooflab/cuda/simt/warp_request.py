"""One request of a warp: which of its threads accesses what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...results import ReadableMixin
from .memory import Place

_SECTOR, _ROW_OF_BANKS = 32, 128
_MEMORIES = ("global", "shared")
_OPERATIONS = ("load", "store", "atomic")


@dataclass(frozen=True)
class WarpRequest(ReadableMixin):
    """A load, store or atomic operation as one warp made it.

    Attributes
    ----------
    line : int
        Of the source.
    memory, operation : str
        "global" or "shared"; "load", "store" or "atomic".
    array : str
        The name of the parameter, in global memory. "" in shared memory and of ``__device__`` variables.
    bytes : int
        Of each thread: 4 for a float, 16 for a float4.
    lanes : tuple of int
        The threads of the warp that take part, 0 to 31.
    addresses : tuple of int
        The first byte of each lane. In global memory it is counted from the sector in which the array begins, so
        sectors begin at multiples of 32. In shared memory it is counted from the first row of 32 banks that the request
        touches, so bank 0 is at multiples of 128.
    cost : int
        Sectors in global memory, wavefronts in shared memory.
    """

    line: int
    memory: str
    operation: str
    array: str
    bytes: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    cost: int


def warp_request(line: int, numbers: Sequence[int], places: Sequence[Place]) -> WarpRequest:
    """From the accountant's numbers, which end with each lane and its address in turn."""
    space, operation, size, cost, *rest = numbers
    lanes, addresses = rest[::2], rest[1::2]
    array, origin = "", min(addresses) // _ROW_OF_BANKS * _ROW_OF_BANKS
    if space == 0:
        for place in places:
            if place.begin <= addresses[0] < place.begin + place.bytes:
                array, origin = place.label, place.begin // _SECTOR * _SECTOR
    return WarpRequest(
        line,
        _MEMORIES[space],
        _OPERATIONS[operation],
        array,
        size,
        tuple(lanes),
        tuple(address - origin for address in addresses),
        cost,
    )
