"""Sizes and numbers that a caller gives become exact Python numbers; texts and truth values are refused."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from machine.made_up import ceilings

import rooflab as rl
from rooflab._numbers import number, whole
from rooflab.benchmark import lm
from rooflab.benchmark.calls import Call, CallResult
from rooflab.cost.model_spec import of_gpt2
from rooflab.cost.work import Work
from rooflab.profiler import KernelRecord
from rooflab.profiler.modelled import launch_model
from rooflab.roofline import MachineSpec, Point, attainable, bound, gemm_intensity, gemv_intensity, measured_point
from rooflab.training import TrainingSettings

NARROW = np.int32(40000)  # its square is 1.6e9, and its cube no longer an int32


@pytest.mark.parametrize("given", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_whole_numbers_become_python_ints(given):
    assert whole("n", given) == 3 and type(whole("n", given)) is int


@pytest.mark.parametrize("given", [3, 3.0, np.int8(3), np.float16(3), np.array(3.0), Fraction(3), rl.ones(1) * 3])
def test_numbers_become_python_floats(given):
    assert number("x", given) == 3.0 and type(number("x", given)) is float


@pytest.mark.parametrize("given", ["3", True, np.True_, np.str_("3"), np.array(True), None, [3], 1j, np.ones(2)])
def test_what_is_no_number_is_refused(given):
    with pytest.raises(ValueError, match="n: expected a whole number, got"):
        whole("n", given)
    with pytest.raises(ValueError, match="x: expected a number, got"):
        number("x", given)
    with pytest.raises(ValueError, match="x: expected a number, got"):
        number("x", 10**400)


def test_narrow_sizes_do_not_overflow():
    assert gemm_intensity(NARROW, NARROW, NARROW) == gemm_intensity(40000, 40000, 40000)
    assert gemv_intensity(NARROW) == gemv_intensity(40000)
    assert of_gpt2("g", NARROW, NARROW, NARROW) == of_gpt2("g", 40000, 40000, 40000)
    spec = rl.cost.MODELS["gpt2"]
    assert spec.cache_bytes(NARROW, NARROW) == spec.cache_bytes(40000, 40000)
    assert (Work(macs=NARROW) * NARROW).macs == 40000**2 and type(Work(macs=NARROW).macs) is int
    sizes = {"d_model": 40000, "d_ff": 40000, "num_heads": 2}
    narrow = {name: np.int32(size) for name, size in sizes.items()}
    config, same = rl.nn.TransformerConfig(**narrow), rl.nn.TransformerConfig(**sizes)
    assert config.num_parameters == same.num_parameters
    assert config.forward_flops(NARROW, NARROW) == same.forward_flops(40000, 40000)
    work = SimpleNamespace(flops=np.int32(2**31 - 1), bytes_read=np.int32(2**31 - 1), bytes_written=np.int32(1))
    timing = SimpleNamespace(median_ms=1.0, p20_ms=1.0, p80_ms=1.0)
    assert measured_point("x", work, timing).intensity == (2**31 - 1) / 2**31


@pytest.mark.parametrize("bad", ["2", True])
def test_texts_and_truth_values_are_no_numbers(bad):
    said = r"expected a (whole )?number.*, got ('2'|True)"
    for call in (
        lambda: Point("x", bad),
        lambda: Point("x", 1.0, bad),
        lambda: attainable("A6000", bad),
        lambda: bound("A6000", bad),
        lambda: gemm_intensity(bad, 1, 1),
        lambda: MachineSpec("m", "gpu", bad, {"float32": 1.0}, None, None, {}),
        lambda: MachineSpec("m", "gpu", 1.0, {"float32": bad}, None, None, {}),
        lambda: Work(macs=bad),
        lambda: Work() * bad,
        lambda: rl.cost.MODELS["gpt2"].cache_bytes(1, bad),
        lambda: rl.nn.TransformerConfig(num_layers=bad),
        lambda: rl.nn.TransformerConfig(rope_theta=bad),
        lambda: rl.nn.Gemma3Config(num_hidden_layers=bad),
        lambda: rl.MemoryUse(bad, 0, 0),
        lambda: rl.profiler.schedule(wait=bad),
        lambda: TrainingSettings(steps=bad),
        lambda: TrainingSettings(learning_rate=bad),
        lambda: TrainingSettings(betas=(bad, 0.9)),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    with pytest.raises(ValueError, match="gap_us: expected a number"):
        launch_model("meta:H200", gap_us=bad)


def test_steps_of_a_training_are_whole():
    with pytest.raises(ValueError, match=r"\[TrainingSettings\] steps: expected a whole number, got 1.5"):
        TrainingSettings(steps=1.5)
    settings = TrainingSettings(steps=np.int64(5), warmup=1, betas=[np.float32(0.5), 0.75])
    assert type(settings.steps) is int and settings.betas == (0.5, 0.75)


def _kernel(grid):
    return KernelRecord("", "", "", "", "", "cpu", 0, 0, 0.0, 0.0, grid, (1, 1, 1), 0, 0, rl.Cost(), 0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: TrainingSettings(learning_rate=None),
            "learning_rate: expected a number, got None",
        ),
        (
            lambda: rl.nn.TransformerConfig(rope_theta=None),
            "rope_theta: expected a number, got None",
        ),
        (lambda: MachineSpec("m", "gpu", None, {}, None, None, {}), "bandwidth_tb_s: expected a number, got None"),
        (lambda: MachineSpec("m", "gpu", 1.0, {}, None, None, {}, None), "aliases: expected several values, got None"),
        (
            lambda: MachineSpec("m", "gpu", 1.0, [1.0], None, None, {}),
            "peak_tflop_s: expected values by name, got",
        ),
        (lambda: ceilings(peak=[1]), r"\[Ceilings\] peak: expected values by name, got \[1\]"),
        (lambda: ceilings(peak={"fp32": 1.0}), r"\[Ceilings\] peak\['fp32'\]: expected a Measured, got 1.0"),
        (lambda: ceilings(copy_bandwidth=1.0), r"\[Ceilings\] copy_bandwidth: expected a Measured, got 1.0"),
        (lambda: CallResult(Call("mlp"), "fine"), r"\[CallResult\] status: expected one of 'ok', .*, got 'fine'"),
        (lambda: CallResult(Call("mlp"), figures={"ms": "2"}), r"\[CallResult\] figures\['ms'\]: expected a number"),
        (lambda: CallResult("mlp"), r"\[CallResult\] call: expected a Call, got 'mlp'"),
        (lambda: rl.cuda.KernelCounts(3), r"\[KernelCounts\] global_loads: expected an Access, got 3"),
        (lambda: TrainingSettings(betas=(0.9,)), r"\[TrainingSettings\] betas: expected 2 values, got 1"),
        (lambda: _kernel((1, 1)), r"\[KernelRecord\] grid: expected 3 values, got 2"),
        (lambda: _kernel((1, 1, 0.5)), "grid: expected a whole number, got 0.5"),
        (lambda: lm.Case(batch_size=4.0), r"\[Case\] batch_size: expected a whole number, got 4.0"),
        (lambda: rl.nn.Gemma3Config(query_pre_attn_scalar=256.5), "query_pre_attn_scalar: expected a whole number"),
        (lambda: rl.nn.Gemma3Config(head_dim=256.0), "head_dim: expected a whole number"),
    ],
)
def test_a_field_holds_what_its_type_says(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_whole_numbers_of_numpy_are_taken_where_pythons_are():
    three, case = np.int64(3), lm.Case(batch_size=np.int64(3), warmup_steps=np.int64(3))
    assert case == lm.Case(batch_size=3, warmup_steps=3) and type(case.batch_size) is int
    assert rl.nn.functional.one_hot(rl.tensor([2]), three).tolist() == [[0, 0, 1]]
    generator = rl.Generator().manual_seed(three)
    state = generator.get_state()
    assert state == (3, 0) and type(state[0]) is int and generator.set_state((three, three)).get_state() == (3, 3)
    assert rl.device("cuda", three) == "cuda:3"


@pytest.mark.parametrize("given", [256, 256.0, np.float64(256)])
def test_a_scale_that_files_of_models_write_as_a_float_is_whole(given):
    scalar = rl.nn.Gemma3Config(query_pre_attn_scalar=given).query_pre_attn_scalar
    assert scalar == 256 and type(scalar) is int
