"""A profile as Chrome trace JSON, for Perfetto (https://ui.perfetto.dev) and chrome://tracing.

Written after the public "Trace Event Format": complete events ("X") with microseconds relative to the first step,
metadata events ("M") for the names of tracks. Events of one track nest by time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .host import HostRecord
    from .records import KernelRecord, Range, Step

_HOST = 0  # the number of its process


def trace_events(
    kernels: Sequence[KernelRecord],
    ranges: Sequence[Range],
    steps: Sequence[Step],
    host: Sequence[HostRecord] = (),
) -> list[dict[str, Any]]:
    """A track for each thread of the host, and one for each stream of a device.

    A thread's steps, ranges, ops, submissions and waits are slices inside each other, and so are the kernels that it
    runs itself. An arrow leads from a submission to the first kernel that it started. A GPU runs behind the host, so
    each of its streams has a track of ranges too, from a range's first kernel to its last.
    """
    events = [*_name(_HOST, "host")]
    events += [_slice(f"step {step.number}", _HOST, 0, step.start_us, step.duration_us) for step in steps]
    for span in ranges:
        ended = {} if span.ended == "closed" else {"ended": span.ended}
        name = span.path.rpartition("/")[2] + (f" ({span.ended})" if ended else "")
        arguments = {"range": span.path} | ended
        events.append(_slice(name, _HOST, span.thread, span.start_us, span.duration_us, arguments))
    events += [_host_slice(record) for record in host if record.kind != "range"]
    threads = {0} | {span.thread for span in ranges} | {record.thread for record in host}
    for thread in sorted(threads | {kernel.thread for kernel in _on_host(kernels)}):
        events += _name(_HOST, f"thread {thread}", thread)
    events += [
        _slice(k.name, _HOST, k.thread, k.start_us, k.duration_us, _arguments(k), k.category) for k in _on_host(kernels)
    ]

    tracks: dict[tuple[str, int], list[KernelRecord]] = {}
    for kernel in kernels:
        if kernel.device != "cpu":
            tracks.setdefault((kernel.device, kernel.stream), []).append(kernel)
    devices = sorted({device for device, _ in tracks})
    places: dict[int, tuple[KernelRecord, int, int]] = {}  # where the first kernel of each launch is
    for order, (device, stream) in enumerate(sorted(tracks)):
        members = tracks[device, stream]
        process, track = 1 + devices.index(device), 2 * order + 1
        modelled = " (a model, not measured)" if device.startswith("meta") else ""
        events += _name(process, device + modelled) + _name(process, f"stream {stream}", track)
        spans = list(_device_ranges(members))
        if spans:
            events += _name(process, f"stream {stream}: ranges", track - 1)
        events += [
            _slice(path.rpartition("/")[2], process, track - 1, start, end - start, {"range": path})
            for path, start, end in spans
        ]
        events += [
            _slice(k.name, process, track, k.start_us, k.duration_us, _arguments(k), k.category) for k in members
        ]
        for kernel in members:
            places.setdefault(kernel.id, (kernel, process, track))
    for record in host:
        if record.launch in places:
            events += _arrow(record, *places[record.launch])
    return sorted(events, key=lambda event: (event["ph"] != "M", event["ts"], -event.get("dur", 0)))


def _on_host(kernels: Sequence[KernelRecord]) -> list[KernelRecord]:
    return [kernel for kernel in kernels if kernel.device == "cpu"]


def _host_slice(record: HostRecord) -> dict[str, Any]:
    arguments: dict[str, Any] = {"range": record.range} if record.range else {}
    if record.input_shapes:
        arguments["input shapes"] = record.input_shapes
    if record.stack:
        arguments["stack"] = [f"{frame.filename}:{frame.line} {frame.name}" for frame in record.stack]
    return _slice(record.name, _HOST, record.thread, record.start_us, record.duration_us, arguments, record.kind)


def _arrow(record: HostRecord, kernel: KernelRecord, process: int, track: int) -> list[dict[str, Any]]:
    common = {"name": "launch", "cat": "launch", "id": record.launch}
    start = common | {"ph": "s", "pid": _HOST, "tid": record.thread, "ts": _rounded(record.start_us)}
    end = common | {"ph": "f", "bp": "e", "pid": process, "tid": track, "ts": _rounded(kernel.start_us)}
    return [start, end]


def _device_ranges(kernels: Sequence[KernelRecord]) -> Iterator[tuple[str, float, float]]:
    """(path, start, end) of each run of kernels in one range, the outer ranges before the inner."""
    paths = [(kernel.step, kernel.range.split("/") if kernel.range else []) for kernel in kernels]
    for depth in range(1, 1 + max((len(path) for _, path in paths), default=0)):
        run = 0
        for place in range(1, 1 + len(kernels)):
            key = (paths[run][0], paths[run][1][:depth])
            if place < len(kernels) and (paths[place][0], paths[place][1][:depth]) == key:
                continue
            if len(key[1]) == depth:
                end = max(kernel.start_us + kernel.duration_us for kernel in kernels[run:place])
                if place < len(kernels):  # kernels may overlap, slices of a track may not
                    end = min(end, kernels[place].start_us)
                yield "/".join(key[1]), kernels[run].start_us, end
            run = place


def _slice(
    name: str, process: int, track: int, start_us: float, duration_us: float, arguments=None, category: str = "range"
) -> dict[str, Any]:
    event = {"ph": "X", "name": name, "cat": category, "pid": process, "tid": track}
    begin, end = _rounded(start_us), _rounded(start_us + max(duration_us, 0.0))
    event |= {"ts": begin, "dur": round(end - begin, 3)}
    return event | ({"args": arguments} if arguments else {})


def _rounded(time_us: float) -> float:
    """Whole nanoseconds. A start and the end before it are rounded alike, so that slices do not overlap.

    Picoseconds come first, because the two may differ by the rounding of sums, on both sides of half a nanosecond.
    """
    return round(round(time_us, 6), 3)


def _name(process: int, name: str, track: int | None = None) -> list[dict[str, Any]]:
    what, order = ("thread", track) if track is not None else ("process", process)
    common = {"ph": "M", "pid": process, "tid": track or 0, "ts": 0}
    return [
        common | {"name": f"{what}_name", "args": {"name": name}},
        common | {"name": f"{what}_sort_index", "args": {"sort_index": order}},
    ]


def _arguments(kernel: KernelRecord) -> dict[str, Any]:
    cost = kernel.cost
    arguments: dict[str, Any] = {"op": kernel.op, "variant": kernel.kernel, "range": kernel.range, "step": kernel.step}
    arguments |= {"flops": cost.flops, "bytes_read": cost.bytes_read, "bytes_written": cost.bytes_written}
    if any(kernel.grid):
        arguments |= {"grid": list(kernel.grid), "block": list(kernel.block)}
        arguments |= {"shared_bytes": kernel.shared_bytes, "registers": kernel.registers}
    return arguments
