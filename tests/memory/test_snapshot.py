"""A recording as PyTorch's memory snapshot: the format, and what its viewer reads from it."""

import itertools
import pickle
import pickletools
import random
from pathlib import Path

import pytest

import rooflab as rl
from rooflab.memory import memory_viz
from rooflab.memory.timeline import Allocation, Event

# What the reader in torch/utils/viz/MemoryViz.js knows; it throws at any other.
READABLE = {
    "PROTO", "FRAME", "MARK", "MEMOIZE", "STOP", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "EMPTY_DICT", "EMPTY_LIST",
    "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "DICT", "NONE", "NEWTRUE", "NEWFALSE", "BINFLOAT",
    "BININT", "BININT1", "BININT2", "LONG1", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "BINUNICODE",
    "SHORT_BINUNICODE",
}  # fmt: skip


def saved(timeline, folder):
    timeline.save_snapshot(folder / "memory.pickle")
    return (folder / "memory.pickle").read_bytes()


def work(x):
    with rl.range("mlp"):
        hidden = rl.matmul(x, x)  # the product
        return rl.exp(hidden + 1)


def followed(data, device=0):
    """Bytes held after each event, by the addresses alone; each block is freed once and no two overlap."""
    held, level, levels = {}, 0, []
    for entry in data["device_traces"][device]:
        address, size = entry["addr"], entry["size"]
        if entry["action"] == "alloc":
            room = max(size, 1)
            assert all(address + room <= a or a + max(s, 1) <= address for a, s in held.items()), "blocks overlap"
            held[address] = size
            level += size
        elif entry["action"] == "free_completed":
            if address in held:
                assert held.pop(address) == size
            level -= size
        levels.append(level)
    return held, levels


def assert_whole(data):
    """Blocks fill their segment, one after the other, and its sums are theirs."""
    for segment in data["segments"]:
        address = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == address
            address += block["size"]
            assert block["requested_size"] <= block["size"]
        assert address == segment["address"] + segment["total_size"]
        active = [block for block in segment["blocks"] if block["state"] == "active_allocated"]
        assert segment["allocated_size"] == segment["active_size"] == sum(block["size"] for block in active)
        assert segment["requested_size"] == sum(block["requested_size"] for block in active)


def test_the_file_holds_what_was_recorded(tmp_path):
    x = rl.ones(30, 40) @ rl.ones(40, 30)
    with rl.memory.record() as timeline:
        y = work(x)
    data = pickle.loads(saved(timeline, tmp_path))
    assert list(data)[:2] == ["segments", "device_traces"] and data["device_names"] == ["cpu"]
    assert_whole(data)
    (trace,) = data["device_traces"]
    shown = [entry["action"] for entry in trace]
    assert shown == [name for event in timeline.events for name in (
        ["alloc"] if event.bytes > 0 else ["free_requested", "free_completed"]
    )]  # fmt: skip
    held, levels = followed(data)
    assert max(levels) == timeline.peak_bytes and levels[-1] == timeline.retained_bytes == y.nbytes
    (segment,) = data["segments"]
    assert segment["requested_size"] == rl.memory.allocated("cpu"), "with what is older than the recording"
    times = [entry["time_us"] for entry in trace]
    assert times == sorted(times) and all(isinstance(time, int) and time > 1.6e15 for time in times)
    assert set(held) <= {block["address"] for block in segment["blocks"] if block["state"] == "active_allocated"}


def test_frames_name_the_op_the_range_and_the_python_code(tmp_path):
    with rl.memory.record() as timeline:
        work(rl.ones(8, 8))
    (trace,) = pickle.loads(saved(timeline, tmp_path))["device_traces"]
    product = next(entry for entry in trace if entry["frames"][0]["name"] == "matmul")
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.endswith("# the product"))
    assert product["frames"][1] == {"filename": "range", "line": 0, "name": "mlp"}
    assert product["frames"][2] == {"filename": __file__, "line": line, "name": "work"}
    assert product["frames"][3]["name"] == "test_frames_name_the_op_the_range_and_the_python_code"
    made = next(entry for entry in trace if entry["frames"][0]["name"] in ("user", "fill"))
    assert made["frames"][1]["name"] == "test_frames_name_the_op_the_range_and_the_python_code"
    with rl.memory.record(with_stack=False) as plain:
        work(rl.ones(8, 8))
    assert all(one.stack == () for one in plain.allocations)
    assert max(len(entry["frames"]) for entry in pickle.loads(saved(plain, tmp_path))["device_traces"][0]) == 2


def test_the_viewers_reader_knows_every_part_of_the_file(tmp_path):
    with rl.memory.record() as timeline:
        for _ in range(300):  # more than 256 objects, which are told apart by longer numbers
            work(rl.ones(8, 8, device=rl.meta("H200")))
            work(rl.ones(8, 8))
    file = saved(timeline, tmp_path)
    opcodes = {opcode.name for opcode, _, _ in pickletools.genops(file)}
    assert opcodes <= READABLE
    assert file[:2] == b"\x80\x04", "protocol 4, the newest that it knows"
    longest = max(abs(argument) for opcode, argument, _ in pickletools.genops(file) if opcode.name == "LONG1")
    assert longest < 2**53, "numbers stay exact in JavaScript"


def test_devices_are_told_apart(tmp_path):
    with rl.memory.record() as timeline:
        kept = rl.ones(100), rl.ones(200, device=rl.meta("H200"))
    data = pickle.loads(saved(timeline, tmp_path))
    assert data["device_names"] == ["cpu", "meta:H200"]
    assert [[entry["size"] for entry in trace] for trace in data["device_traces"]] == [[400], [800]]
    assert [segment["device"] for segment in data["segments"]] == [0, 1]
    assert len(kept) == 2


def test_blocks_from_before_are_there_until_they_are_freed(tmp_path):
    old = [rl.ones(1000) for _ in range(3)]
    before = rl.memory.allocated("cpu")
    with rl.memory.record() as timeline:
        del old[1]
        new = rl.ones(10)
    data = pickle.loads(saved(timeline, tmp_path))
    assert_whole(data)
    _, levels = followed(data)
    assert levels == [0, -4000, -3960] and timeline.retained_bytes == -3960
    assert data["segments"][0]["requested_size"] == before - 4000 + new.nbytes
    assert len(old) == 2


def test_nothing_recorded_is_an_empty_snapshot(tmp_path):
    with rl.memory.record() as timeline:
        pass
    data = pickle.loads(saved(timeline, tmp_path))
    assert data["segments"] == data["device_traces"] == []
    with pytest.raises(RuntimeError, match="once the with-block has ended"):
        rl.memory.record().save_snapshot(tmp_path / "never")
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("seed", range(5))
def test_blocks_find_room_in_any_order(seed):
    """Made-up allocations and frees, empty blocks among them: nothing overlaps, and freed room is used again."""

    class Made:
        def __init__(self, allocations, events):
            self.allocations, self.events = allocations, events

    draw = random.Random(seed)
    allocations, events, live = [], [], []
    for time in itertools.count():
        if time == 400:
            break
        if live and draw.random() < 0.48:
            number = live.pop(draw.randrange(len(live)))
            size = -allocations[number].bytes
        else:
            number, size = len(allocations), draw.choice([0, 1, 500, 512, 513, 4096, 100_000])
            allocations.append(Allocation("op", "", "cpu", size, False, float(time), None))
            live.append(number)
        events.append(Event(float(time), size, "op", "", "cpu", 0, number))
    data = memory_viz.snapshot(Made(allocations, events), {"cpu": [("old", 7), ("", 600)]}, 0)
    assert_whole(data)
    held, levels = followed(data)
    assert sorted(held.values()) == sorted(allocations[number].bytes for number in live)
    room = data["segments"][0]["total_size"]
    assert room < 2.5 * max(levels) < sum(one.bytes for one in allocations), "freed places are used again"


def test_neighbouring_gaps_are_one():
    """Three freed neighbours have room for a block as large as all of them, whatever the order of the frees."""
    for order in itertools.permutations(range(3)):
        device = memory_viz._Device(0)
        for number in range(4):
            device.allocate(number, 512, [], 0)
        for number in order:
            device.free(number, 0)
        top = device.top
        device.allocate(4, 3 * 512, [], 0)
        assert device.top == top and device.gaps == []


@pytest.mark.peer
def test_pytorchs_own_tool_reads_it(tmp_path):
    torch = pytest.importorskip("torch")
    from torch.cuda import _memory_viz

    x = rl.ones(700, 700)
    with rl.memory.record() as timeline:
        kept = [work(x) for _ in range(3)]
    del x
    data = pickle.loads(saved(timeline, tmp_path))
    assert torch.__version__ and len(kept) == 3
    summary = _memory_viz.segsum(data)
    assert "segments: 1" in summary
    told = _memory_viz.trace(data)
    assert told.count(" = ") == sum(event.bytes > 0 for event in timeline.events) and "Device 0" in told
    for draw in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        page = draw(data)
        assert "MemoryViz.js" in page and len(page) > 1000
    whole = len(_memory_viz.trace_plot(data))
    assert len(_memory_viz.trace_plot(data, filter_freed=True)) < whole, "it finds the pairs of alloc and free"
    graph = _memory_viz.memory(data, format_flamegraph=lambda lines: lines)
    assert all(name in graph for name in ("exp", "active_allocated", "test_pytorchs_own_tool_reads_it"))
