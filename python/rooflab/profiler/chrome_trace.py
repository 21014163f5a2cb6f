"""A profile as Chrome trace JSON, for Perfetto (https://ui.perfetto.dev) and chrome://tracing.

Written after the public "Trace Event Format": complete events ("X") with microseconds relative to the first step,
metadata events ("M") for the names of tracks. Events of one track nest by time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .records import KernelRecord, Range, Step

_HOST = 0
_HOST_RANGES, _HOST_KERNELS, _HOST_TRACKS = 0, 1, 2  # of the first thread; each further thread has as many


def trace_events(
    kernels: Sequence[KernelRecord], ranges: Sequence[Range], steps: Sequence[Step]
) -> list[dict[str, Any]]:
    """Steps and ranges as nested slices on the host's track, and kernels on a track per device and stream.

    Each thread of the host has tracks of its own, because what two threads do overlaps without nesting. A GPU runs
    behind the host, so each of its streams has a track of ranges too, from a range's first kernel to its last.
    """
    events = [*_name(_HOST, "host"), *_name(_HOST, "steps and ranges", _HOST_RANGES)]
    for step in steps:
        events.append(_slice(f"step {step.number}", _HOST, _HOST_RANGES, step.start_us, step.duration_us))
    for span in ranges:
        name = span.path.rpartition("/")[2]
        track = _HOST_RANGES + _HOST_TRACKS * span.thread
        events.append(_slice(name, _HOST, track, span.start_us, span.duration_us, {"range": span.path}))
    for thread in sorted({span.thread for span in ranges} - {0}):
        events += _name(_HOST, f"thread {thread}: ranges", _HOST_RANGES + _HOST_TRACKS * thread)

    tracks: dict[tuple[str, int], list[KernelRecord]] = {}
    for kernel in kernels:
        lane = kernel.thread if kernel.device == "cpu" else kernel.stream
        tracks.setdefault((kernel.device, lane), []).append(kernel)
    devices = sorted({device for device, _ in tracks if device != "cpu"})
    for order, (device, lane) in enumerate(sorted(tracks)):
        members = tracks[device, lane]
        if device == "cpu":
            process, track = _HOST, _HOST_KERNELS + _HOST_TRACKS * lane
            events += _name(process, f"thread {lane}: kernels" if lane else "kernels", track)
        else:
            process, track = 1 + devices.index(device), 2 * order + 1
            modelled = " (a model, not measured)" if device.startswith("meta") else ""
            events += _name(process, device + modelled) + _name(process, f"stream {lane}", track)
            spans = list(_device_ranges(members))
            if spans:
                events += _name(process, f"stream {lane}: ranges", track - 1)
            events += [
                _slice(path.rpartition("/")[2], process, track - 1, start, end - start, {"range": path})
                for path, start, end in spans
            ]
        events += [
            _slice(k.name, process, track, k.start_us, k.duration_us, _arguments(k), k.category) for k in members
        ]
    return sorted(events, key=lambda event: (event["ph"] != "M", event["ts"], -event.get("dur", 0)))


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
    event |= {"ts": round(start_us, 3), "dur": round(max(duration_us, 0.0), 3)}
    return event | ({"args": arguments} if arguments else {})


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
