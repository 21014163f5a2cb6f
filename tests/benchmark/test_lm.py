"""Steps of a language model: what the time includes, what is counted, what happens when memory does not suffice."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

import rooflab as rl
from rooflab.benchmark import lm
from rooflab.testing import assert_close

TINY = rl.nn.TransformerConfig(32, 64, num_layers=2, num_heads=2, vocab_size=50)
FORWARDS = {"inference": 1, "forward": 1, "backward": 2, "both": 3, "train": 3}  # of products: a backward takes two


def tiny(mode="both", **options):
    options = {"context_length": 16, "batch_size": 2, "warmup_steps": 1, "measure_steps": 2} | options
    return lm.Case("tiny", mode=mode, **options)


class Recorded:
    """A contender whose two parts take 7 and 3 ms on a clock that otherwise stands still. It writes its calls down."""

    parameters = 0

    def __init__(self, log, name="", ms=3):
        self.log, self.name, self.ms = log, name, ms

    def prepare(self):
        self.log.append(f"{self.name}prepare")
        self.log.now += 7_000_000
        return "prepared"

    def timed(self, prepared):
        assert prepared == "prepared"
        self.log.append(f"{self.name}timed")
        self.log.now += self.ms * 1_000_000


class Log(list):
    now = 0

    def read(self):
        self.append("clock")
        return self.now


@pytest.fixture
def log(monkeypatch):
    log = Log()
    monkeypatch.setattr(lm, "time", SimpleNamespace(perf_counter_ns=log.read))
    monkeypatch.setattr(rl, "synchronize", lambda device: log.append(f"wait for {device}"))
    return log


def test_a_step_waits_for_the_device_on_both_sides_and_leaves_the_preparation_out(log):
    assert lm.time_step(Recorded(log), "cpu") == 3.0
    assert log == ["prepare", "wait for cpu", "clock", "timed", "wait for cpu", "clock"]


def test_contenders_take_turns_and_warm_up_apart(log):
    contenders = {"a": Recorded(log, "a ", 3), "b": Recorded(log, "b ", 5)}
    said = []
    times = lm.time_steps(contenders, tiny(warmup_steps=1, measure_steps=2), said.append)
    assert times == {"a": ([3.0], [3.0, 3.0]), "b": ([5.0], [5.0, 5.0])}
    assert [entry for entry in log if "timed" in entry] == ["a timed", "b timed"] * 3
    assert said == ["warmup 1 of 1", "measurement 1 of 2", "measurement 2 of 2"]


@pytest.mark.parametrize("mode", lm.MODES)
def test_what_is_counted_is_the_step_of_the_mode(mode):
    result = lm.benchmark(tiny(mode), config=TINY)
    assert result.status == "ok"
    assert (len(result.warmup_ms), len(result.samples_ms)) == (1, 2)
    assert 2 * result.macs == FORWARDS[mode] * lm.config_of(result.case, TINY).forward_flops(2, 16)
    assert result.parameters == TINY.num_parameters
    assert result.flops > 2 * result.macs and result.bytes > 0 and result.launches == result.host_calls > 0


def test_only_training_has_an_optimizer():
    paths = {}
    for mode in lm.MODES:
        work = lm.Step(tiny(mode, device=rl.meta("H200")), TINY)
        with rl.count() as counted:
            work.timed(work.prepare())
        paths[mode] = {path.partition("/")[0] for path in counted.by_range}
    assert paths == {
        "inference": {"forward"},
        "forward": {"forward"},
        "backward": {"forward", "backward"},
        "both": {"forward", "backward"},
        "train": {"forward", "backward", "optimizer"},
    }


@pytest.mark.parametrize("mode", lm.MODES)
def test_what_a_step_leaves_behind(mode):
    work = lm.Step(tiny(mode), TINY)
    before = next(work.model.parameters()).detach().numpy().copy()
    result = work.timed(work.prepare())
    moved = not np.array_equal(before, next(work.model.parameters()).detach().numpy())
    assert moved == (mode == "train")
    gradients = [parameter.grad is not None for parameter in work.model.parameters()]
    assert gradients == [mode in ("backward", "both", "train")] * 3 * 7
    if result is not None:
        assert result.shape == (2, 16, 50) and result.requires_grad == (mode == "forward")
    prepared = work.prepare()
    if mode != "backward":
        assert prepared is None
    assert all(parameter.grad is None for parameter in work.model.parameters())


def test_phases_and_steps_are_ranges():
    work = lm.Step(tiny("train"), TINY)
    with rl.profile() as prof:
        lm.time_steps({"rooflab": work}, tiny("train", warmup_steps=1, measure_steps=2))
    outer = {path for span in prof.ranges if (path := span.path).count("/") <= 2}
    steps = ("warmup/step_0", "measurement/step_0", "measurement/step_1")
    assert {f"{step}/{phase}" for step in steps for phase in ("forward", "backward", "optimizer")} <= outer
    assert {"warmup", "measurement", *steps} <= outer


def test_peak_memory_is_that_of_the_measured_steps():
    work = lm.Step(tiny("train"), TINY)
    with rl.count() as counted:  # the most that the device would hold while the step is prepared and run
        work.timed(work.prepare())
    held_before = rl.memory.allocated("cpu")
    lm.time_steps({"rooflab": work}, tiny("train", warmup_steps=1, measure_steps=1))
    assert rl.memory.peak("cpu") <= held_before + counted.peak_bytes
    waste = rl.zeros(10_000_000)
    del waste
    lm.time_steps({"rooflab": work}, tiny("train", warmup_steps=0, measure_steps=1))
    assert rl.memory.peak("cpu") <= held_before + counted.peak_bytes


def test_out_of_memory_is_a_row_and_the_next_row_is_right(no_garbage):
    known = lm.benchmark(tiny(), config=TINY)
    before = rl.memory.allocated("cpu")
    rl.memory.set_limit(before + 2_000_000)
    try:
        full = lm.benchmark(tiny(batch_size=64), config=TINY)
        again = lm.benchmark(tiny(), config=TINY)
    finally:
        rl.memory.set_limit(None)
    assert full.status == lm.OUT_OF_MEMORY and full.samples_ms == () and "MB" in full.reason
    assert math.isnan(full.mean_ms) and "out of memory" in str(full)
    assert rl.memory.allocated("cpu") == before
    for field in ("status", "parameters", "macs", "flops", "bytes", "launches", "peak_bytes"):
        assert getattr(again, field) == getattr(known, field), field


def test_a_step_on_meta_lasts_what_its_profile_says_and_the_same_each_time():
    case = lm.Case("small", mode="train", device=rl.meta("H200"))
    result = lm.benchmark(case)
    assert lm.benchmark(case) == result
    work = lm.Step(case)
    work.timed(work.prepare())
    profile, counted = lm.profile_step(work)
    assert result.samples_ms == (profile.steps[-1].duration_us / 1e3,) and result.warmup_ms == ()
    gaps_ms = 2e-3 * sum(1 for kernel in profile.kernels if kernel.step == 1)
    busy_ms = sum(kernel.duration_us for kernel in profile.kernels if kernel.step == 1) / 1e3
    assert result.samples_ms[0] == pytest.approx(gaps_ms + busy_ms)
    assert counted.macs == result.macs and result.std_ms == 0
    assert result.peak_tflop_s == 67.0 and 0 < result.share_of_peak < 1
    assert "modelled" in str(result)


def test_a_backward_on_meta_leaves_its_forward_out():
    times = {
        mode: lm.benchmark(lm.Case("small", mode=mode, device=rl.meta("H200"))).mean_ms
        for mode in ("inference", "backward", "both")
    }
    assert times["both"] == pytest.approx(times["inference"] + times["backward"], rel=0.02)  # but for the loss


def test_a_meta_device_has_the_memory_of_its_gpu():
    def status(name, **options):
        return lm.benchmark(lm.Case("2.7B", 1024, mode="train", device=rl.meta(name), **options)).status

    assert status("A100 SXM 40GB") == lm.OUT_OF_MEMORY
    assert status("H200") == "ok"
    rl.empty(10**12, device=rl.meta("A100 SXM 40GB"))  # no longer limited


def test_statistics():
    result = lm.Result(tiny(batch_size=4), samples_ms=(1.0, 2.0, 6.0), macs=10**9, peak_tflop_s=4.0)
    assert (result.mean_ms, result.median_ms) == (3.0, 2.0)
    assert result.std_ms == pytest.approx(math.sqrt((4 + 1 + 9) / 3))
    assert result.tflop_s == pytest.approx(1.0) and result.share_of_peak == pytest.approx(0.25)
    assert result.tokens_per_s == pytest.approx(4 * 16 / 2e-3)


def test_the_peak_is_the_datasheets_then_the_measured_one(monkeypatch):
    sheet = SimpleNamespace(name="sheet", peak_tflop_s={"float32": 2.0})
    ceilings = SimpleNamespace(name="here", peak_tflop_s={"float32": 1.0, "bfloat16": 3.0})
    monkeypatch.setattr(lm, "known", lambda device: (sheet, ceilings))
    assert lm.peak_of("cpu", "float32") == (2.0, "datasheet of sheet, float32")
    assert lm.peak_of("cpu", "bfloat16") == (3.0, "measured ceilings of here, bfloat16")
    assert lm.peak_of("cpu", "float16") == (None, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "backwards"}, "mode: expected one of 'inference', 'forward', 'backward', 'both', 'train', got"),
        ({"attention": "paged"}, "attention: expected one of 'composed', 'flash'"),
        ({"mixed_precision": "int8"}, "mixed_precision: expected one of '', 'bfloat16', 'float16', got 'int8'"),
        ({"context_length": 0}, "context_length: expected a whole number of 1 or more, got 0"),
        ({"warmup_steps": -1}, "warmup_steps: expected a whole number of 0 or more, got -1"),
        ({"measure_steps": 0}, "measure_steps: expected a whole number of 1 or more"),
        ({"batch_size": True}, "batch_size: expected a whole number"),
    ],
)
def test_bad_cases_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        lm.Case(**options)


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match="size: expected one of small"):
        lm.benchmark(lm.Case("huge"))


def test_mixed_precision_is_autocast_of_forward_and_loss():
    """7n + 1 weights are cast in a forward; products and their peak are bfloat16's."""
    case = lm.Case("small", mode="train", mixed_precision="bfloat16", device=rl.meta("H200"))
    work = lm.Step(case)
    work.timed(work.prepare())
    profile, _ = lm.profile_step(work)
    kernels = [kernel for kernel in profile.kernels if kernel.step == 1]
    casts = [kernel for kernel in kernels if kernel.range.endswith("autocast_weights") and "forward" in kernel.range]
    assert len(casts) == 7 * 12 + 1 and {kernel.op for kernel in casts} == {"cast"}
    assert {kernel.dtype for kernel in kernels if kernel.op == "matmul"} == {"bfloat16"}
    assert {kernel.dtype for kernel in kernels if kernel.op == "adamw"} == {"float32"}
    assert {parameter.grad.dtype for parameter in work.model.parameters()} == {rl.float32}
    del work
    result = lm.benchmark(case)
    assert result.peak_source == "datasheet of H200, bfloat16" and "composed, bfloat16:" in str(result)
    assert result.mean_ms < lm.benchmark(dataclasses.replace(case, mixed_precision="")).mean_ms
    assert result.macs == lm.benchmark(dataclasses.replace(case, mixed_precision="")).macs


def test_a_measured_step_runs_in_mixed_precision_too():
    result = lm.benchmark(tiny("train", mixed_precision="bfloat16"), config=TINY)
    assert result.status == "ok" and result.macs == lm.benchmark(tiny("train"), config=TINY).macs


@pytest.mark.parametrize("precision", ["", "bfloat16"])
def test_a_graph_computes_what_a_step_computes_and_trains(precision, device):
    options = {"mixed_precision": precision, "device": device}
    steps = []
    for kind in (lm.Step, lm.GraphStep):
        rl.manual_seed(0)
        case = tiny("train", graph=kind is lm.GraphStep, **options)
        work = kind(case, TINY)
        for _ in range(3 if kind is lm.GraphStep else 4):  # capturing has run one step
            work.timed(work.prepare())
        steps.append([parameter.detach().to("cpu").numpy() for parameter in work.model.parameters()])
    for eager, replayed in zip(*steps, strict=True):
        assert np.array_equal(eager, replayed)


def test_a_graph_is_one_host_call_and_counts_what_it_does():
    eager, graph = (lm.benchmark(tiny("both", graph=is_graph), config=TINY) for is_graph in (False, True))
    assert (graph.macs, graph.launches) == (eager.macs, eager.launches) and graph.host_calls == 1
    assert graph.peak_bytes == pytest.approx(eager.peak_bytes, rel=0.05) and "graph" in str(graph)
    stepped, trained = (lm.benchmark(tiny("train", graph=is_graph), config=TINY) for is_graph in (False, True))
    assert trained.host_calls == 1 and trained.macs == eager.macs
    assert trained.launches == stepped.launches + 1  # which counts the steps


@pytest.mark.parametrize("options", [{"device": rl.meta("H200")}, {"mode": "backward"}])
def test_what_cannot_be_a_graph_is_refused(options):
    with pytest.raises(ValueError, match="graph: expected a device with memory and a step timed as a whole"):
        lm.Case(graph=True, **options)


@pytest.mark.parametrize("mode", ["inference", "forward", "both", "train"])
def test_a_compiled_step_computes_the_same_in_fewer_launches(mode):
    cases = [tiny(mode, compile=is_compiled, mixed_precision="bfloat16") for is_compiled in (False, True)]
    plain, compiled = (lm.benchmark(case, config=TINY) for case in cases)
    assert compiled.macs == plain.macs and compiled.launches < plain.launches
    assert compiled.case.options == "composed, bfloat16, compiled"


def test_a_compiled_step_trains_as_it_is_written(device):
    steps = []
    for is_compiled in (False, True):
        rl.manual_seed(0)
        work = lm.Step(tiny("train", compile=is_compiled, device=device), TINY)
        for _ in range(3):
            work.timed(work.prepare())
        steps.append([parameter.detach() for parameter in work.model.parameters()])
    for plain, compiled in zip(*steps, strict=True):
        assert_close(compiled, plain, rtol=1e-4, atol=1e-5)


def test_a_compiled_step_is_captured_as_one_graph():
    graph = lm.benchmark(tiny("train", compile=True, graph=True), config=TINY)
    assert (
        graph.host_calls == 1 and graph.launches == lm.benchmark(tiny("train", compile=True), config=TINY).launches + 1
    )
