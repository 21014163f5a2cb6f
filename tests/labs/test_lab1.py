"""The names that Lab 1 gives its students: units, spread, and counts of one step."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.labs import lab1


def test_every_gpu_has_bandwidth_and_dense_peaks():
    for name in ("A6000", "A10", "A100", "H100", "H200", "4090", "B200", "T4", "L4", "5090"):
        figures = lab1.GPU_SPECS[name]
        assert 0.1 < figures["memory_bandwidth_tb_s"] < 20
        assert 1 < figures["fp32_tflops"] < figures["fp16_tflops"]
    assert lab1.GPU_SPECS["A6000"]["fp32_tflops"] == 38.7
    assert lab1.GPU_SPECS["A6000"]["bf16_tflops"] == 154.8, "dense, not the 309.7 of 2:4 sparsity"
    assert "bf16_tflops" not in lab1.GPU_SPECS["T4"]


def test_ridge_points():
    assert lab1.get_ridge_point("A6000", "fp32") == pytest.approx(38.7 / 0.768)
    assert lab1.get_ridge_point("A6000") == pytest.approx(154.8 / 0.768)
    with pytest.raises(ValueError, match="bfloat16"):
        lab1.get_ridge_point("T4", "bf16")
    with pytest.raises(ValueError, match="no datasheet"):
        lab1.get_ridge_point("Z80")


def test_benchmark_latency_is_a_mean_in_milliseconds():
    x = rl.ones((1000,))
    mean = lab1.benchmark_latency(rl.exp, x, n_warmup=2, n_repeat=7)
    assert isinstance(mean, float)
    assert 0 < mean < 1000
    with pytest.raises(ValueError, match="repeat"):
        lab1.benchmark_latency(rl.exp, x, n_repeat=0)
    calls = []
    lab1.benchmark_latency(calls.append, 1, n_warmup=3, n_repeat=4)
    assert len(calls) == 7


def test_one_shot_is_one_cold_call():
    calls = []
    assert len(lab1.latency_one_time(calls.append, 1).samples_ms) == 1
    assert len(calls) == 1


def profile_of(calls_per_step):
    x = rl.ones((100,))
    with rl.profile(schedule=lab1.default_schedule) as prof:
        for step in range(10):
            for _ in range(calls_per_step(step)):
                rl.exp(x)
            prof.step()
    return prof


def test_kernel_counts_are_of_one_step_of_six():
    prof = profile_of(lambda step: 2)
    assert len(prof.steps) == 6
    counts = lab1.count_cuda_kernels(prof)
    assert counts == {"gemm": 0, "elementwise": 2, "softmax": 0, "layernorm": 0, "memory": 0, "other": 0, "total": 2}


def test_kernel_counts_of_unequal_steps_are_refused():
    with pytest.raises(ValueError, match="steps differ"):
        lab1.count_cuda_kernels(profile_of(lambda step: 1 + step % 2))


def test_plots_say_what_was_left_out():
    figure = lab1.plot_gemm_torch_matmul_latency([64, 128], [1.0, None], [0.1, 0.2])
    assert "128" in figure.get_supxlabel()
    with pytest.raises(ValueError, match="one latency per size"):
        lab1.plot_gemm_gemv_latency([64, 128], [1.0], [0.1, 0.2])


def test_roofline_of_given_figures():
    figure = lab1.plot_roofline("A6000", 38.7, 0.768, {"GEMM 1024": 1024 / 6, "GEMV 1024": 0.499})
    (axes,) = figure.axes
    on_the_roof = [line.get_xydata()[0] for line in axes.lines if line.get_marker() == "o"]
    expected = [(1024 / 6, 38.7e12), (0.499, 0.499 * 0.768e12)]
    np.testing.assert_allclose(sorted(map(tuple, on_the_roof)), sorted(expected), rtol=1e-6)


@pytest.mark.parametrize("bad", [0, -1.0, float("inf"), float("nan")])
def test_a_peak_is_a_positive_number(bad):
    with pytest.raises(ValueError, match="peak_flops"):
        lab1.plot_roofline("A6000", bad, 0.768)
    with pytest.raises(ValueError, match="peak_bandwidth"):
        lab1.plot_roofline("A6000", 38.7, bad)
