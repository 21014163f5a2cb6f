"""What Lab 1 gives its students: units, spread, counts of one step, sizes of models and the costs of their parts."""

import numpy as np
import pytest
from labs.sources import SOURCES, TRUSTED, lab

import rooflab as rl
from rooflab.grading.jail import sandbox
from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab.repair import reference
from rooflab.labs import lab1


def test_it_has_a_hundred_points_and_twenty_more():
    whole = lab(next(path for path in SOURCES if path.name == "lab1"))
    assert (whole.points, whole.bonus) == (100, 20)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 16])
def test_memory_is_graded_alike_with_any_number_of_threads(most, monkeypatch, two_threads):
    """On the CPU each thread has scratch memory of its own, and the judge compares with counts of its own."""
    monkeypatch.setattr(sandbox, "MAX_THREADS", most)
    rl.set_num_threads(16)
    whole = lab(next(path for path in SOURCES if path.name == "lab1"))
    result = Judge(whole, TRUSTED).grade_question("q5_2_2", reference(whole))
    assert result.earned == result.points, [test.message for test in result.tests]


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


def sizes_of(config):
    heads = ("num_attention_heads", "num_key_value_heads", "head_dim")
    return [config[name] for name in ("hidden_size", "intermediate_size", *heads, "num_hidden_layers")]


def test_configurations_are_of_gemma3():
    layer, pseudo = (sizes_of(one) for one in (lab1.GEMMA3_270M_CONFIG, lab1.GEMMA3_PSEUDO_CONFIG))
    D, wide, H, H_kv, D_h, layers = layer
    norms = 4 * D + 2 * D_h
    a_layer = 2 * D * D_h * (H + H_kv) + 3 * D * wide + norms
    assert 262144 * D + layers * a_layer + D == 268_098_176, "the parameters that Gemma 3 270M has"
    assert pseudo == [1152, 6912, 8, 8, 256, 26]


@pytest.fixture(scope="module")
def given():
    """What the set-up cells and the reference answers of Part 3 define."""
    source = next(path for path in SOURCES if path.name == "lab1")
    defined = {}
    for cell in reference(lab(source)).cells:
        if cell.role == "setup" or (cell.role == "solution" and cell.question in ("q3_1", "b3_1", "q3_2", "b3_2")):
            exec(cell.source, defined)
    return defined


@pytest.mark.parametrize("config", [lab1.GEMMA3_270M_CONFIG, lab1.GEMMA3_PSEUDO_CONFIG], ids=["270M", "pseudo"])
@pytest.mark.parametrize("B, L", [(1, 1), (8, 1), (3, 17), (4, 1024)])
def test_the_given_costs_of_the_mlp_are_what_runs(given, config, B, L):
    D, wide = config["hidden_size"], config["intermediate_size"]
    shapes = {"gate_proj": (D, wide), "up_proj": (D, wide), "down_proj": (wide, D)}
    weights = {name: rl.empty(*shape, dtype="bfloat16", device="meta") for name, shape in shapes.items()}
    with rl.count() as counted:
        given["mlp"](rl.empty(B, L, D, dtype="bfloat16", device="meta"), weights)
    assert counted.macs == given["calc_mlp_mac"](B, L, D, wide)
    assert counted.flops == given["calc_mlp_flops"](B, L, D, wide)
    assert counted.bytes_read + counted.bytes_written == given["calc_mlp_io"](B, L, D, wide)
    assert sorted(counted.by_range) == sorted(given["MLP_PARTS"])
    assert all(part.launches == 1 for part in counted.by_range.values())


@pytest.mark.parametrize("B, L_q, L_kv", [(1, 1, 1), (2, 7, 7), (3, 1, 50), (2, 16, 100)])
def test_the_answers_about_the_attention_module_are_what_its_operations_cost(given, B, L_q, L_kv):
    config = lab1.GEMMA3_270M_CONFIG
    D, _, H, H_kv, D_h, _ = sizes_of(config)

    rows = H // H_kv * L_q  # the queries that share a key head
    products = [((B * L_q, D), (D, heads * D_h)) for heads in (H, H_kv, H_kv)]
    products += [((B, H_kv, rows, D_h), (B, H_kv, D_h, L_kv)), ((B, H_kv, rows, L_kv), (B, H_kv, L_kv, D_h))]
    products.append(((B * L_q, H * D_h), (H * D_h, D)))
    parts = [rl.cost.matmul(*shapes, dtype="bfloat16") for shapes in products]
    assert sum(part.macs for part in parts) == given["calc_attn_module_mac"](B, L_q, L_kv, config)
    softmax = 5 * 2 * B * H * L_q * L_kv
    assert sum(part.bytes for part in parts) + softmax == given["calc_attn_module_io"](B, L_q, L_kv, config)


def test_five_passes_of_a_textbook_softmax(given):
    """Over long rows the sums hardly matter, so attention in fp32 moves as many bytes as the answer to 3.2 says."""
    B, H, L_q, L_kv, D_h = 2, 3, 64, 4096, 16
    q, k = rl.empty(B, H, L_q, D_h, device="meta"), rl.empty(B, H, L_kv, D_h, device="meta")
    with rl.count() as counted:
        exponentials = rl.exp(rl.matmul(q, k.mT))
        rl.matmul(exponentials / rl.sum(exponentials, dim=-1, keepdim=True), k)
    sums = 2 * 4 * B * H * L_q
    assert counted.bytes_read + counted.bytes_written - sums == given["calc_attn_io"](B, H, L_q, L_kv, D_h)
    assert counted.macs == given["calc_attn_mac"](B, H, L_q, L_kv, D_h)
