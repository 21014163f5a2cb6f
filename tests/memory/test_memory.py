"""Memory of a call and over time: bytes that are known by construction, exactly, on every device."""

import re

import pytest

import rooflab as rl
from rooflab import _stacks


@pytest.fixture
def a(device, no_garbage):
    return rl.ones(100, 100, device=device)


def test_peak_resident_and_retained(a, device):
    before = sum(rl.memory.allocated(d) for d in {"cpu", device})

    def call(x):
        y = rl.exp(x)  # 40 kB, freed on return
        z = x + y  # 80 kB held
        return z.sum()  # 4 bytes more

    use = rl.benchmark_memory(call, a)
    assert (use.peak_bytes, use.retained_bytes) == (80004, 4)
    assert use.resident_bytes == before
    assert use.peak_gb == pytest.approx(80004e-9) and use.resident_gb == before / 1e9
    assert str(use).startswith("peak 80 kB above ")
    assert sum(rl.memory.allocated(d) for d in {"cpu", device}) == before


def test_views_take_nothing(a):
    use = rl.benchmark_memory(lambda x: x.view(-1)[10:20].reshape(2, 5).T, a)
    assert (use.peak_bytes, use.retained_bytes) == (0, 0)


def test_a_call_that_frees_what_was_there():
    held = [rl.empty(1000)]
    use = rl.benchmark_memory(held.clear)
    assert use.resident_bytes >= 4000 and (use.peak_bytes, use.retained_bytes) == (0, -4000)


def test_arguments_are_passed_on(a):
    use = rl.benchmark_memory(rl.softmax, a, dim=-1)
    assert use.peak_bytes == use.retained_bytes == a.nbytes
    with pytest.raises(ValueError, match="fn: expected a callable, got int"):
        rl.benchmark_memory(3)
    with pytest.raises(ValueError, match="device"):
        rl.benchmark_memory(rl.exp, a, device="tpu")


@pytest.mark.gpu
def test_one_device_or_all():
    def call():
        return rl.empty(1000, device="cuda"), rl.empty(10)

    assert rl.benchmark_memory(call).peak_bytes == 4040
    assert rl.benchmark_memory(call, device="cuda").peak_bytes == 4000
    assert rl.benchmark_memory(call, device="cpu").peak_bytes == 40
    with rl.memory.record() as timeline:
        call()
    assert [event.device for event in timeline.events[:2]] == ["cuda:0", "cpu"]


def test_calls_nest(a):
    def outer():
        kept = rl.exp(a)
        inner = rl.benchmark_memory(rl.tanh, kept)
        return kept, inner

    with rl.memory.record() as timeline, rl.count() as counted:
        use = rl.benchmark_memory(lambda: outer()[1])
    assert use.peak_bytes == timeline.peak_bytes == counted.peak_bytes == 2 * a.nbytes
    inner = outer()[1]
    assert inner.peak_bytes == inner.retained_bytes == a.nbytes


def test_out_of_memory_is_raised_as_it_is_and_leaves_the_counts_right(a, device):
    before = rl.memory.allocated(device)

    def call():
        kept = rl.exp(a)
        return kept, rl.empty(1 << 48, device=device)

    with rl.memory.record() as timeline, pytest.raises(rl.OutOfMemoryError, match="asked for"):
        rl.benchmark_memory(call)
    assert rl.memory.allocated(device) == before
    assert [event.bytes for event in timeline.events] == [a.nbytes, -a.nbytes]
    assert (timeline.peak_bytes, timeline.retained_bytes) == (a.nbytes, 0)
    assert rl.benchmark_memory(rl.exp, a).peak_bytes == a.nbytes


def test_events_in_order_with_op_range_and_device(a, device):
    with rl.memory.record() as timeline:
        with rl.range("mlp"), rl.range("act"):
            y = rl.exp(a)
        user = rl.empty(10, device=device)
        del y
        z = rl.tanh(a)
    base, n = timeline.resident_bytes, a.nbytes
    assert [(e.op, e.range, e.bytes, e.live_bytes - base) for e in timeline.events] == [
        ("exp", "mlp/act", n, n),
        ("", "", 40, n + 40),
        ("exp", "mlp/act", -n, 40),
        ("tanh", "", n, n + 40),
    ]
    assert {event.device.partition(":")[0] for event in timeline.events} == {device.partition(":")[0]}
    times = [event.time_us for event in timeline.events]
    assert times == sorted(times) and times[0] >= 0 and times[-1] <= timeline.duration_us
    first, second, third = timeline.allocations
    assert first.end_us == times[2] and second.end_us is None and third.start_us == times[3]
    assert (timeline.peak_bytes, timeline.retained_bytes) == (n + 40, n + 40)
    assert timeline.peak_us == times[1]
    assert timeline.by_op() == {"exp": n, "user": 40}
    assert timeline.by_range() == {"mlp/act": n, "(no range)": 40}
    assert user.nbytes + z.nbytes == n + 40


def test_a_block_that_takes_the_place_of_another_is_a_new_one(device):
    with rl.memory.record() as timeline:
        for _ in range(3):
            rl.empty(1000, device=device)
    assert len(timeline.allocations) == 3 and len(timeline.events) == 6
    assert timeline.peak_bytes == 4000


def test_blocks_from_before_are_resident_until_freed(a, device):
    old = rl.exp(a)
    with rl.memory.record() as timeline:
        del old
        new = rl.tanh(a)
    (freed, made) = timeline.allocations
    assert (freed.op, freed.start_us, made.op, made.end_us) == ("exp", None, "tanh", None)
    assert [event.live_bytes - timeline.resident_bytes for event in timeline.events] == [-new.nbytes, 0]
    assert (timeline.peak_bytes, timeline.by_op()) == (0, {})
    with rl.memory.record() as both:
        del new
        kept = [rl.tanh(a), rl.tanh(a)]
    assert both.peak_bytes == a.nbytes and both.by_op() == {"tanh": 2 * a.nbytes}
    assert kept[0].nbytes == a.nbytes


def test_scratch_is_memory_of_its_op_and_told_apart():
    a = rl.ones(64, 64)
    with rl.memory.record() as timeline, rl.count() as counted:
        out = rl.matmul(a, a, variant="v3_packed_simd")
    tensor, scratch = sorted(timeline.allocations, key=lambda block: block.is_scratch)
    assert (tensor.op, tensor.bytes, tensor.is_scratch, tensor.end_us) == ("matmul", out.nbytes, False, None)
    assert (scratch.op, scratch.is_scratch) == ("matmul", True) and scratch.end_us is not None
    assert timeline.peak_bytes == counted.peak_bytes == tensor.bytes + scratch.bytes


def test_nothing_happens():
    with rl.memory.record() as timeline:
        pass
    assert timeline.events == timeline.allocations == []
    assert (timeline.peak_bytes, timeline.peak_us, timeline.by_op()) == (0, 0.0, {})


def test_results_wait_for_the_end_and_a_timeline_records_once():
    with rl.memory.record() as timeline:
        with pytest.raises(RuntimeError, match="once the with-block has ended"):
            timeline.peak_bytes  # noqa: B018
        assert repr(timeline) == "Timeline(running)"
    with pytest.raises(RuntimeError, match="can record only once"), timeline:
        pass
    with pytest.raises(ZeroDivisionError), rl.memory.record() as ended:
        1 / 0  # noqa: B018
    rl.empty(10)
    assert ended.events == []


# --- the page ---


def test_the_page_stands_alone_and_holds_every_block(a, tmp_path):
    with rl.memory.record() as timeline, rl.range("<script><b>"):
        y = rl.exp(a)
        z = y + a
        del y
        rl.matmul(z, a)
    timeline.save_html(tmp_path / "memory.html", title="exp & <co>")
    text = (tmp_path / "memory.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=|url\(|@import|fetch\(|https?://(?!www\.w3\.org/2000/svg)""", text)
    assert text.count("<script") == text.count("</script>") == 2
    assert "exp &amp; &lt;co&gt;" in text and "<co>" not in text and "<b>" not in text


def test_a_title_is_text_and_not_a_place_for_data(tmp_path):
    with rl.memory.record() as timeline:
        kept = rl.empty(10)
    timeline.save_html(tmp_path / "memory.html", title="%DATA% of 100 %SUMMARY%")
    text = (tmp_path / "memory.html").read_text(encoding="utf-8")
    assert text.count("%DATA% of 100 %SUMMARY%") == 2 and text.count('"blocks":') == 1
    assert f"at the end {kept.nbytes} B above it; 1 event in" in text


def layout(blocks, steps):
    from rooflab.memory.page import stack

    return stack(blocks, steps)


def test_blocks_are_stacked_without_gap_or_overlap():
    # (bytes, first event, one past the last); block 1 falls by block 0's 10 when that is freed at event 2.
    blocks = [(10, 0, 2), (20, 1, 4), (5, 3, 5)]
    assert layout(blocks, 5) == [[(0, 0)], [(1, 10), (2, 0)], [(3, 20), (4, 0)]]


def test_what_only_a_cycle_holds_is_not_resident(no_garbage):
    before = rl.memory.allocated()
    cycle = [rl.ones(100_000)]
    cycle.append(cycle)
    del cycle
    assert rl.benchmark_memory(lambda: None).resident_bytes == before


def test_phases_are_what_was_marked(a):
    with rl.memory.record() as timeline:
        before = rl.exp(a)
        timeline.mark("first")
        first = [rl.exp(a), rl.exp(a)]
        timeline.mark("empty")
        timeline.mark("second")
        del before, first
    sizes = {phase.name: [timeline.events[place].bytes for place in phase.events] for phase in timeline.phases}
    n = a.nbytes
    assert sizes == {"first": [n, n], "empty": [], "second": [-n, -n, -n]}
    times = [(phase.start_us, phase.end_us) for phase in timeline.phases]
    assert times[0][0] == timeline.events[1].time_us and times[0][1] == times[1][0] == times[1][1]
    assert times[2] == (timeline.events[3].time_us, timeline.duration_us)
    with rl.memory.record() as unmarked:
        rl.exp(a)
    assert unmarked.phases == []
    with pytest.raises(RuntimeError, match="expected to be called inside the with-block"):
        timeline.mark("late")
    with pytest.raises(RuntimeError, match="results are available once the with-block has ended"):
        rl.memory.record().phases  # noqa: B018


def test_what_only_a_snapshot_needs_is_computed_when_it_is_asked_for(a):
    older = a + 1
    with rl.memory.record() as timeline:
        newer = a * 2
    assert not {"allocations", "events", "_older"} & set(vars(timeline))
    held = [block.bytes for block in rl.memory.snapshot(a.device)]
    del older, newer  # what is held later is no part of it
    assert [size for _, size in timeline._older[a.device]] == held[:-1]


@pytest.mark.parametrize("broken", ["start", "stop", "blocks"])
def test_no_stacks_are_taken_after_a_recording_that_failed(a, monkeypatch, broken):
    timeline = rl.memory.record()
    recorder = timeline._recorder

    class Broken:
        def __getattr__(self, name):
            return getattr(recorder, name)

    def fail(self):
        raise MemoryError(broken)

    monkeypatch.setattr(Broken, broken, fail, raising=False)
    timeline._recorder = Broken()
    with pytest.raises(MemoryError, match=broken), timeline:
        a + 1
    assert not _stacks._users and not _stacks._stacks
    recorder.stop()
