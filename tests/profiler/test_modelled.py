"""Profiles on meta devices: times by a model of the machine, worked out by hand, and labelled as what they are."""

import dataclasses
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

import rooflab as rl
from rooflab import _core
from rooflab.machine import Ceilings, Measured
from rooflab.machine.known import known
from rooflab.profiler import launch_model, modelled

H200 = rl.meta("H200")  # datasheet: 4.8 TB/s; TFLOP/s: float32 67, bfloat16 989.5
GAP_US = 2.0
_FIGURE = Measured(1.0, 1.0, 1.0, "TB/s", 3, "copy")
CEILINGS = Ceilings(
    "cuda:0", "A GPU", "here", "CUDA 13.0", 0, "1.0", "2026-01-31 12:30 UTC", 1.0, "", _FIGURE, _FIGURE, _FIGURE,
    {"float32": Measured(10.0, 10.0, 10.0, "TFLOP/s", 3, "matmul")}, Measured(5.0, 5.0, 5.0, "us", 3, "exp"),
)  # fmt: skip


def step(x, w):
    """An addition under "first/inner", a product under "second": one launch each."""
    with rl.range("first"), rl.range("inner"):
        y = x + 1
    with rl.range("second"):
        return y @ w


def square(n, dtype="float32"):
    return rl.empty(n, n, dtype=dtype, device=H200)


def modelled_profile():
    with rl.profile() as prof:
        square(8) + 1
    return prof


def empty_profile():
    with rl.profile() as prof:
        pass
    return prof


@pytest.mark.parametrize(("dtype", "peak"), [("float32", 67e12), ("bfloat16", 989.5e12)])
def test_a_launch_lasts_as_its_flops_or_its_bytes(dtype, peak):
    n, size = 4096, 4 if dtype == "float32" else 2
    with rl.profile() as prof:
        step(square(n, dtype), square(n, dtype))
    addition, product = prof.kernels
    assert addition.duration_us == pytest.approx(2 * n * n * size / 4.8e12 * 1e6)
    assert product.duration_us == pytest.approx(2 * n**3 / peak * 1e6)
    assert (addition.dtype, product.dtype) == (dtype, dtype)
    assert [addition.category, product.category] == ["elementwise", "gemm"]


def test_a_product_that_is_thin_lasts_as_its_bytes():
    with rl.profile() as prof:
        rl.empty(1, 4096, device=H200) @ square(4096)
    assert prof.kernels[0].duration_us == pytest.approx(4 * (4096**2 + 2 * 4096) / 4.8e12 * 1e6)


def test_kernels_that_split_float32_last_as_their_products_of_bfloat16_parts():
    names = {variant.name for op in rl.ops() for variant in rl.variants(op) if "split_bf16" in variant.name}
    assert names and all(name.endswith("_split_bf16") for name in names)
    with rl.profile() as prof:
        rl.matmul(square(4096), square(4096), variant="v6_split_bf16")
    assert prof.kernels[0].duration_us == pytest.approx(6 * 2 * 4096**3 / 989.5e12 * 1e6)
    assert (prof.kernels[0].cost.flops, prof.kernels[0].dtype) == (2 * 4096**3, "float32")


def test_launches_follow_each_other_after_gaps_and_ranges_and_steps_enclose_them():
    x, w = square(1024), square(512)
    with rl.profile() as prof:
        for _ in range(3):
            step(x, rl.empty(1024, 512, device=H200))
            prof.step()
    time = 0.0
    assert len(prof.kernels) == 6
    for kernel in prof.kernels:
        assert kernel.start_us == pytest.approx(time + GAP_US)
        time = kernel.start_us + kernel.duration_us
    spans = {(span.path, span.step): span for span in prof.ranges}
    assert len(spans) == 9 and [step.number for step in prof.steps] == [0, 1, 2]
    for number, whole in enumerate(prof.steps):
        addition, product = (kernel for kernel in prof.kernels if kernel.step == number)
        assert spans["first/inner", number].start_us == pytest.approx(addition.start_us - GAP_US)
        assert spans["first/inner", number].duration_us == pytest.approx(GAP_US + addition.duration_us)
        assert spans["first", number] == dataclasses.replace(spans["first/inner", number], path="first")
        assert spans["second", number].duration_us == pytest.approx(GAP_US + product.duration_us)
        busy = addition.duration_us + product.duration_us
        assert whole.duration_us == pytest.approx(2 * GAP_US + busy)
    assert w.device == "meta:H200"


def test_the_same_call_lasts_the_same_each_time():
    def times():
        with rl.profile() as prof:
            step(square(256), square(256))
        return [(kernel.name, kernel.start_us, kernel.duration_us) for kernel in prof.kernels]

    assert times() == times()


def test_of_several_kernels_of_a_call_one_bears_its_cost():
    q, dy = (rl.empty(1, 8, 1024, 64, device=H200, dtype="bfloat16", requires_grad=True) for _ in range(2))
    out = rl.attention(q, q, q)
    with rl.profile() as prof, rl.count() as counted:
        out.backward(dy)
    kernels = [kernel for kernel in prof.kernels if kernel.op == "attention_backward"]
    assert len(kernels) > 1
    costs = [kernel.cost.flops for kernel in kernels]
    assert sorted(costs)[:-1] == [0] * (len(costs) - 1)
    assert sum(kernel.cost.flops for kernel in prof.kernels) == counted.flops
    assert sum(not kernel.name.startswith("mem") for kernel in prof.kernels) == counted.launches
    assert next(kernel for kernel in kernels if kernel.cost.flops).name.startswith("attention_backward_cuda")


def test_gap_and_machine_can_be_given():
    ours = launch_model("meta:A100 SXM 80GB", gap_us=10)
    with rl.profile(model=ours) as prof:
        square(4096) + 1
    assert prof.kernels[0].start_us == 10
    assert prof.kernels[0].duration_us == pytest.approx(2 * 4 * 4096**2 / 2.039e12 * 1e6)
    assert "A100 SXM 80GB, 10 us between launches (given)" in prof.reason


@pytest.fixture
def ceilings(monkeypatch):
    """What `rooflab machine --device cuda` is said to have measured here."""

    def measured(**figures):
        found = dataclasses.replace(CEILINGS, **figures)
        monkeypatch.setattr(modelled, "known", lambda device: (None, found) if device == "cuda:0" else known(device))
        monkeypatch.setattr(_core.cuda, "is_available", lambda: True)
        return found

    return measured


def test_the_gap_is_that_of_this_machines_gpu_where_it_was_measured(ceilings):
    assert (launch_model(H200).gap_us, launch_model(H200).gap_source) == (GAP_US, "assumed for a host that keeps the "
        "stream supplied")  # fmt: skip
    ceilings(launch_overhead=Measured(7.25, 7.0, 7.5, "us", 3, "exp"), name="A GPU", measured_on="2026-01-31 12:30 UTC")
    with rl.profile() as prof:
        square(64) + 1
    assert prof.kernels[0].start_us == 7.25
    said = "datasheet of H200, 7.25 us between launches (launch overhead of A GPU, measured 2026-01-31 12:30 UTC)"
    assert said in prof.reason and said in str(prof.key_averages())
    cpu = rl.roofline.SPECS["EPYC 7763"]
    assert launch_model(cpu).gap_us == GAP_US, "a CPU does not launch as a GPU does"
    assert launch_model("cuda:0").gap_us == 7.25 and "measured ceilings of A GPU, 7.25 us" in str(
        launch_model("cuda:0")
    )


def test_the_gap_can_be_that_of_a_profile():
    with rl.profile() as measured:
        step(rl.ones(8, 8), rl.ones(8, 8))
    ours = launch_model(H200, gap_us=measured)
    assert ours.gap_us == measured.waiting[0].gap_us > 0 and ours.gap_source == "median in a profile of cpu"
    rows = [
        dataclasses.replace(measured.waiting[0], device=name, gap_us=gap) for name, gap in (("cpu", 1), ("cuda:0", 5))
    ]
    both = launch_model(H200, gap_us=SimpleNamespace(waiting=rows))
    assert (both.gap_us, both.gap_source) == (5, "median in a profile of cuda:0")


@pytest.mark.parametrize("model_of", [lambda: "3", dict, modelled_profile, empty_profile])
def test_a_gap_is_of_a_profile_that_measured(model_of):
    with pytest.raises(ValueError, match="gap_us: expected a number, or a profile in which kernels were measured"):
        launch_model(H200, gap_us=model_of())


def test_a_name_is_no_model():
    with pytest.raises(TypeError, match=r'model: expected one from rl.profiler.launch_model\("meta:H200"\), got str'):
        rl.profile(model="H200")


def test_a_dtype_without_a_peak_is_as_float32():
    model = launch_model("meta:T4")
    assert model.duration_us(8_100_000, 0, "bfloat16") == model.duration_us(8_100_000, 0, "float32") == 1.0
    assert model.duration_us(65_000_000, 0, "float16") == 1.0


def test_a_machine_without_a_peak_for_float32_is_refused_before_anything_runs():
    machine = rl.roofline.MachineSpec("mine", "gpu", 1.0, {"bfloat16": 100.0}, None, None, {})
    with pytest.raises(ValueError, match="mine has no float32 peak, which counts for each dtype without a peak"):
        launch_model(machine)


@pytest.mark.parametrize("gap_us", [-1.0, math.nan, math.inf])
def test_a_gap_is_zero_or_more(gap_us):
    assert launch_model("meta:H200", gap_us=np.float32(2.5)).gap_us == 2.5
    with pytest.raises(ValueError, match="gap_us: expected 0 or more"):
        launch_model("meta:H200", gap_us=gap_us)


def test_an_unknown_machine_is_refused():
    with pytest.raises(ValueError, match="no datasheet for 'H2000'"):
        launch_model("meta:H2000")


def test_of_this_machine_its_ceilings_or_its_datasheet_count(monkeypatch):
    sheet, ceilings = rl.roofline.SPECS["EPYC 7763"], None
    monkeypatch.setattr(modelled, "known", lambda device: (sheet, ceilings))
    assert launch_model("cpu").machine is sheet
    sheet = None
    with pytest.raises(ValueError, match="`rooflab machine` measures them"):
        launch_model("cpu")


def test_that_it_is_no_measurement_stands_everywhere(tmp_path):
    with rl.profile() as prof:
        step(square(256), square(256))
    assert prof.is_model and prof.source == "model" and prof.dropped == 0
    assert "not measured" in repr(prof)
    assert "not measured (nothing runs on a device without memory; datasheet of H200, 2 us" in str(prof.key_averages())
    assert "not measured" in prof.key_averages()._repr_html_()
    assert "a model, not measured" in prof.plot_timeline().axes[0].get_xlabel()
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert trace["otherData"]["source"] == "a model, not a measurement"
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert "meta:H200 (a model, not measured)" in names
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [event["ts"] for event in slices] == sorted(event["ts"] for event in slices)


def test_a_measured_profile_is_no_model():
    x = rl.ones(8)
    with rl.profile() as prof:
        rl.exp(x)
    assert not prof.is_model and "not measured" not in repr(prof) + str(prof.key_averages())


@pytest.mark.parametrize("source", ["auto", "cpu clock"])
def test_measured_and_modelled_times_never_mix(source):
    x, meta = rl.ones(8), square(8)
    left_out = pytest.warns(RuntimeWarning, match="1 launches on devices without memory are left out")
    with left_out, rl.profile(source=source) as both:
        rl.exp(x)
        rl.exp(meta)
    assert [kernel.device for kernel in both.kernels] == ["cpu"] and both.source == "cpu clock"
    with rl.profile(source="model") as model:
        rl.exp(x)
        rl.exp(meta)
    assert [kernel.device for kernel in model.kernels] == ["meta:H200"]
    assert "1 launches on other devices are left out" in model.reason
    with rl.profile(source="model") as empty:
        rl.exp(x)
    assert empty.is_model and empty.kernels == []


def test_kernels_of_the_cpu_that_nobody_wants_leave_the_model_alone():
    with rl.profile(activities=[rl.profiler.ProfilerActivity.CUDA]) as prof:
        rl.exp(rl.ones(8))
        rl.exp(square(8))
    assert prof.is_model and [kernel.device for kernel in prof.kernels] == ["meta:H200"]


def test_without_a_model_the_recording_is_kept(monkeypatch):
    monkeypatch.setattr(modelled, "known", lambda device: (None, None))
    x, prof = rl.empty(8, device=rl.meta("cpu")), rl.profile()
    with pytest.raises(ValueError, match="there is no datasheet of this device"), prof, rl.range("part"):
        rl.exp(x)
    assert prof.is_model and prof.count_kernels()["total"] == 1 and len(prof.steps) == 1
    (kernel,) = prof.kernels
    assert (kernel.range, kernel.cost.flops, kernel.duration_us) == ("part", 8, 0)


def test_fills_and_copies_are_there():
    x = rl.ones(4)
    with rl.profile() as prof:
        rl.zeros(1_200_000, device=H200)
        x.to(H200)
    assert [(kernel.op, kernel.category) for kernel in prof.kernels] == [("fill", "memory"), ("memcpy", "memory")]
    assert prof.kernels[0].duration_us == pytest.approx(1.0)
    assert prof.kernels[1].name == "memcpy"
