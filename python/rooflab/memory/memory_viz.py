"""A recording as a memory snapshot in PyTorch's format, for https://pytorch.org/memory_viz.

The format is what ``torch.cuda.memory._dump_snapshot`` writes: a pickled dictionary with the allocations and frees of
each device (``device_traces``) and what is held at the end (``segments``). The viewer's own reader knows the pickle
protocols 2 to 4 and plain values only.

rooflab counts the bytes of tensors and records no addresses, so each device is laid out anew here as one segment: a
block takes the lowest place that is free. How a cache is fragmented cannot be seen from that.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Protocol

from .._stacks import Frame
from ..files import replacing

_FIRST_ADDRESS = 1 << 40
_ALIGNMENT = 512  # bytes: every block has a place of its own, empty ones too


class Recorded(Protocol):
    """What a snapshot is made of: a `Timeline`."""

    @property
    def events(self) -> Sequence[Any]: ...
    @property
    def allocations(self) -> Sequence[Any]: ...


def save(recorded: Recorded, kept: dict[str, list[tuple[str, int]]], began_us: int, path: str | PathLike[str]) -> None:
    """Write the snapshot of a recording.

    Parameters
    ----------
    recorded : Timeline
        Whose events are written.
    kept : dict of str to list of (op, bytes)
        By device, the blocks that are older than the recording and were still held at its end.
    began_us : int
        When the recording began, in microseconds since 1970.
    path : str or path
        Where to write the file; it is replaced.
    """
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        pickle.dump(snapshot(recorded, kept, began_us), file, protocol=4)


def snapshot(recorded: Recorded, kept: dict[str, list[tuple[str, int]]], began_us: int) -> dict[str, Any]:
    """The dictionary that `save` writes. Device number i of it is ``device_names[i]``."""
    names = sorted({block.device for block in recorded.allocations} | set(kept))
    devices = {name: _Device(number) for number, name in enumerate(names)}
    for name, blocks in kept.items():
        for op, size in blocks:
            devices[name].hold(None, size, [_op_frame(op, "")])
    frames: dict[tuple, list[dict[str, Any]]] = {}  # equal lists are one object, which a pickle writes once
    for number, block in enumerate(recorded.allocations):
        if block.start_us is None:
            devices[block.device].hold(number, block.bytes, [])
    for event in recorded.events:
        block = recorded.allocations[event.allocation]
        time_us = began_us + round(event.time_us)
        if event.allocation in devices[block.device].places:
            devices[block.device].free(event.allocation, time_us)
            continue
        key = (block.op, block.range, block.is_scratch, block.stack)
        if key not in frames:
            frames[key] = _frames(*key)
        devices[block.device].allocate(event.allocation, block.bytes, frames[key], time_us)
    return {
        "segments": [segment for device in devices.values() for segment in device.segments()],
        "device_traces": [device.trace for device in devices.values()],
        "device_names": names,
        "allocator_settings": {},
        "external_annotations": [],
    }


def _frames(op: str, path: str, is_scratch: bool, stack: Iterable[Frame]) -> list[dict[str, Any]]:
    """The op and its ranges as the innermost frames, then those of Python."""
    first = _op_frame(op, " (scratch)" if is_scratch else "")
    ranges = [{"filename": "range", "line": 0, "name": path}] if path else []
    python = [{"filename": frame.filename, "line": frame.line, "name": frame.name} for frame in stack]
    return [first, *ranges, *python]


def _op_frame(op: str, what: str) -> dict[str, Any]:
    return {"filename": "rooflab", "line": 0, "name": (op or "user") + what}


@dataclass
class _Device:
    """The one segment of a device while its blocks come and go."""

    number: int
    trace: list[dict[str, Any]] = field(default_factory=list)
    held: dict[int, dict[str, Any]] = field(default_factory=dict)  # by address
    places: dict[int, int] = field(default_factory=dict)  # the address of each allocation that is held
    gaps: list[tuple[int, int]] = field(default_factory=list)  # (address, bytes) below the top, by address
    top: int = _FIRST_ADDRESS

    def hold(self, allocation: int | None, size: int, frames: list[dict[str, Any]]) -> int:
        """Give a block its place, without a trace of when."""
        room = max(_ALIGNMENT, -(-size // _ALIGNMENT) * _ALIGNMENT)
        address = self._place(room)
        self.held[address] = {"size": room, "requested_size": size, "frames": frames}
        if allocation is not None:
            self.places[allocation] = address
        return address

    def allocate(self, allocation: int, size: int, frames: list[dict[str, Any]], time_us: int) -> None:
        address = self.hold(allocation, size, frames)
        self._note("alloc", address, size, frames, time_us)

    def free(self, allocation: int, time_us: int) -> None:
        address = self.places.pop(allocation)
        block = self.held.pop(address)
        for action in ("free_requested", "free_completed"):
            self._note(action, address, block["requested_size"], block["frames"], time_us)
        start, end = address, address + block["size"]
        at = bisect_left(self.gaps, (start, 0))
        if at < len(self.gaps) and self.gaps[at][0] == end:
            end += self.gaps.pop(at)[1]
        if at and sum(self.gaps[at - 1]) == start:
            start = self.gaps.pop(at - 1)[0]
        insort(self.gaps, (start, end - start))

    def segments(self) -> list[dict[str, Any]]:
        """The segment as it is at the end; none if the device never held anything."""
        if self.top == _FIRST_ADDRESS:
            return []
        blocks: list[dict[str, Any]] = []
        pieces = [(address, block) for address, block in self.held.items()]
        pieces += [(address, {"size": size, "requested_size": 0, "frames": []}) for address, size in self.gaps]
        for address, block in sorted(pieces, key=lambda piece: piece[0]):
            state = "active_allocated" if address in self.held else "inactive"
            blocks.append({"address": address, "state": state} | block)
        active = sum(block["size"] for block in self.held.values())
        return [
            {
                "device": self.number,
                "address": _FIRST_ADDRESS,
                "total_size": self.top - _FIRST_ADDRESS,
                "allocated_size": active,
                "active_size": active,
                "requested_size": sum(block["requested_size"] for block in self.held.values()),
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": [],
                "blocks": blocks,
            }
        ]

    def _place(self, room: int) -> int:
        for at, (address, size) in enumerate(self.gaps):
            if size >= room:
                self.gaps[at : at + 1] = [(address + room, size - room)] if size > room else []
                return address
        self.top += room
        return self.top - room

    def _note(self, action: str, address: int, size: int, frames: list[dict[str, Any]], time_us: int) -> None:
        entry = {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us, "frames": frames}
        self.trace.append(entry)
