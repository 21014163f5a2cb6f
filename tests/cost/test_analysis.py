"""The convention of the analysis assignment: every number that Lab 4 publishes, and the slips of its original."""

import math
from dataclasses import replace

import pytest

import rooflab as rl
from rooflab.cost import MODELS, Convention, ModelSpec
from rooflab.roofline import SPECS

ANALYSIS = Convention.ANALYSIS
T4 = replace(SPECS["T4"], bandwidth_tb_s=0.3)  # the assignment's figure; the datasheet says 320 GB/s
A100 = SPECS["A100 80GB"]
XL = MODELS["gpt2-xl"]
DTYPE = {2: "float16", 4: "float32", 8: "float64"}
BOTH = ("prefill", "decode")


def spec_of(D, H, layers=1):
    return ModelSpec(
        "paper", layers, D, H, H, D // H, 4 * D, 11, gated=False, activation="gelu", norm="layer_norm",
        attention_bias=True, mlp_bias=True, tied_head=True,
    )  # fmt: skip


def cost(spec, B, L, mode="prefill", n=2, hardware=None, convention=ANALYSIS, attention="composed"):
    return rl.cost.model(
        spec,
        batch=B,
        length=L,
        mode=mode,
        dtype=DTYPE[n],
        attention=attention,
        hardware=hardware,
        convention=convention,
    )


def pair(part):
    """FLOPs and bytes of a part or a step."""
    return part.work.flops, part.work.bytes


def pairs(found):
    """FLOPs and bytes by name, as the assignment asks for them."""
    named = {part.name: pair(part) for part in found.parts}
    named |= {step.name: pair(step) for step in found["attention"].steps}
    asked = [named[name] for name in ("projections", "attention", "output projection")]
    named["whole attention"] = tuple(map(sum, zip(*asked, strict=True)))
    return named | {"model": pair(found.total)}


def weights_of_a_step():
    """Bytes of GPT-2 XL's weights in a decode step: those that a second text does not add."""
    one, two = (cost(XL, B, 1, "decode").total.work.bytes for B in (1, 2))
    return 2 * one - two


def formulas(B, L, D, H, layers, n):
    """What the assignment's formulas say of a prefill, for all layers."""
    one = {
        "projections": (6 * B * L * D**2, n * (6 * B * L * D + 3 * D**2)),
        "scores": (2 * B * L**2 * D + H * B * L**2, n * (2 * B * L * D + H * B * L**2)),
        "mask": (H * B * L**2, 2 * n * H * B * L**2),
        "softmax": (3 * H * B * L**2, 2 * n * H * B * L**2),
        "values": (2 * B * L**2 * D, n * (H * B * L**2 + 2 * B * L * D)),
        "attention": (4 * B * L**2 * D + 5 * H * B * L**2, n * (4 * B * L * D + 6 * H * B * L**2)),
        "output projection": (2 * B * L * D**2, n * (2 * B * L * D + D**2)),
        "whole attention": (
            8 * B * L * D**2 + 4 * B * L**2 * D + 5 * H * B * L**2,
            n * (12 * B * L * D + 4 * D**2 + 6 * H * B * L**2),
        ),
        "MLP": (16 * B * L * D**2 + 5 * B * L * D, n * (10 * B * L * D + 8 * D**2 + 5 * D)),
    }
    one["model"] = tuple(a + b for a, b in zip(one["whole attention"], one["MLP"], strict=True))
    return {name: (layers * flops, layers * moved) for name, (flops, moved) in one.items()}


def decode_formulas(B, L, D, H, layers, n):
    """The same of a decode step, whose new token is the last of L."""
    one = {
        "whole attention": (
            8 * B * D**2 + 4 * B * L * D + 4 * B * H * L,
            n * (10 * B * D + 4 * D**2 + 2 * B * L * D + 4 * B * H * L),
        ),
        "MLP": (16 * B * D**2 + 5 * B * D, n * (10 * B * D + 8 * D**2 + 5 * D)),
    }
    one["model"] = tuple(a + b for a, b in zip(one["whole attention"], one["MLP"], strict=True))
    return {name: (layers * flops, layers * moved) for name, (flops, moved) in one.items()}


SIZES = [
    (2, 8, 16, 4, 1, 2),
    (1, 1, 12, 1, 1, 2),
    (3, 7, 26, 13, 5, 4),
    (1, 1024, 1600, 25, 48, 2),
    (11, 1, 6, 2, 3, 8),
    (64, 8191, 4096, 32, 80, 2),  # past 2^53
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_formula(sizes):
    B, L, D, H, layers, n = sizes
    prefill, decode = (pairs(cost(spec_of(D, H, layers), B, L, mode, n)) for mode in BOTH)
    expected, expected_decode = formulas(*sizes), decode_formulas(*sizes)
    assert {name: prefill[name] for name in expected} == expected
    assert {name: decode[name] for name in expected_decode} == expected_decode
    assert "mask" not in decode and set(prefill) - set(expected) == set()


def test_the_numbers_at_the_small_sizes():
    """At (B, L, D, H, n) = (2, 8, 16, 4, 2); one head stands for 1.3."""
    one_head, all_heads = pairs(cost(spec_of(16, 1), 2, 8)), pairs(cost(spec_of(16, 4), 2, 8))
    assert rl.cost.matmul((64, 96), (96, 33), dtype="float16").flops == 405504
    assert rl.cost.matmul((64, 96), (96, 33), dtype="float16").bytes == 22848
    assert all_heads["projections"] == (24576, 4608)
    assert one_head["scores"] == (4224, 1280) and one_head["mask"] == (128, 512)
    assert one_head["softmax"] == (384, 512) and one_head["values"] == (4096, 1280)
    assert one_head["attention"] == (8832, 3584) and all_heads["attention"] == (10752, 8192)
    assert all_heads["output projection"] == (8192, 1536) and all_heads["MLP"] == (66816, 9376)
    assert all_heads["whole attention"] == (43520, 14336) and all_heads["model"] == (110336, 23712)
    decode = pairs(cost(spec_of(16, 4), 2, 8, "decode"))
    assert decode["whole attention"] == (5376, 4224) and decode["MLP"] == (8352, 4896)
    assert decode["model"] == (13728, 9120)


def test_attention_on_an_a100():
    """1.4.3 to 1.4.5 and 1.6.3."""
    found = cost(spec_of(4096, 16), 16, 16384, hardware=A100)
    attention, mlp = found["attention"], found["MLP"]
    assert pair(attention) == (70712341561344, 833223655424) and attention.bound == "memory"
    assert attention.work.arithmetic_intensity == pytest.approx(84.866, abs=5e-4)
    assert (attention.compute_s, attention.memory_s) == pytest.approx((0.227, 0.409), abs=5e-4)
    assert rl.roofline.ridge(A100, "float16") == pytest.approx(153.016, abs=5e-4)
    assert mlp.work.arithmetic_intensity == pytest.approx(3236.586, abs=5e-4) and mlp.bound == "compute"
    limit = cost(spec_of(4096, 16), 1, 2**22)["attention"].work
    assert limit.arithmetic_intensity == pytest.approx(85.75, abs=0.01)
    ridge = rl.roofline.ridge(A100, "float16")
    assert [(4 * d + 5) / 12 >= ridge for d in (457, 458)] == [False, True]
    for head_size, first in ((256, 171), (64, 43)):
        for length, larger in ((first - 1, False), (first, True)):
            spec = spec_of(4 * head_size, 4)
            moved = cost(spec, 1, length)["attention"].work.bytes
            assert (moved > 2 * (2 * 4 * length * spec.d_model)) is larger


def test_gpt2_xl_coefficients():
    """2.1 to 2.3, 3.2 to 3.4: a line or a parabola through the costs at a few sizes."""
    for B, L in ((1, 1), (3, 700), (64, 1024)):
        prefill, decode = (pairs(cost(XL, B, L, mode)) for mode in BOTH)
        a, b = B * L, B * L**2
        attention = (20480000 * a + 6525 * b, 20480000 + 38400 * a + 300 * b)
        assert prefill["whole attention"] == tuple(48 * x for x in attention)
        assert prefill["MLP"] == (48 * 40968000 * a, 48 * (40976000 + 32000 * a))
        assert prefill["model"] == (2949504000 * a + 313200 * b, 2949888000 + 3379200 * a + 14400 * b)
        attention = (20480000 * B + 6500 * a, 20480000 + 32000 * B + 6600 * a)
        assert decode["whole attention"] == tuple(48 * x for x in attention)
        assert decode["model"] == (2949504000 * B + 312000 * a, 2949888000 + 3072000 * B + 316800 * a)


TABLE_A = [
    (1, 32, 94704844800, 3072768000, 1.457e-3, 10.243e-3, 30.82, "memory"),
    (1, 1024, 3348706099200, 21509683200, 51.52e-3, 71.70e-3, 155.68, "memory"),
    (64, 32, 6061110067200, 10814208000, 93.25e-3, 36.05e-3, 560.48, "compute"),
    (64, 1024, 214317190348800, 1190776780800, 3.2972, 3.9693, 179.98, "memory"),
]
TABLE_B = [
    (1, 32, 2959488000, 2963097600, 45.5e-6, 9.877e-3, 0.999, 1.037),
    (1, 1024, 3268992000, 3277363200, 50.3e-6, 10.925e-3, 0.997, 6.563),
    (64, 32, 189407232000, 3795302400, 2.914e-3, 12.651e-3, 49.91, 7.371),
    (64, 1024, 209215488000, 23908300800, 3.219e-3, 79.694e-3, 8.751, 49.81),
]


@pytest.mark.parametrize("row", range(4))
def test_the_eight_cases(row):
    """2.4 and 3.5."""
    B, L, flops, moved, compute, memory, intensity, bound = TABLE_A[row]
    before, after = (cost(XL, B, L, mode, hardware=T4).total for mode in BOTH)
    assert pair(before) == (flops, moved) and before.bound == bound
    assert before.work.arithmetic_intensity == pytest.approx(intensity, abs=5e-3)
    assert (before.compute_s, before.memory_s) == pytest.approx((compute, memory), rel=5e-4)
    B, L, flops, moved, compute, memory, intensity, speed_up = TABLE_B[row]
    assert pair(after) == (flops, moved) and after.bound == "memory"
    assert after.work.arithmetic_intensity == pytest.approx(intensity, rel=1e-3)
    assert (after.compute_s, after.memory_s) == pytest.approx((compute, memory), rel=2e-3)
    assert before.seconds / after.seconds == pytest.approx(speed_up, rel=5e-4)


def test_which_lengths_are_compute_bound():
    """2.4: at B = 1 none; at B = 64 those from 5 to 785."""

    def intensity(B, L):
        return cost(replace(XL, learned_positions=0), B, L).total.work.arithmetic_intensity

    ridge = rl.roofline.ridge(T4, "float16")
    assert ridge == pytest.approx(216.667, abs=5e-4)
    assert [intensity(64, L) >= ridge for L in (4, 5, 785, 786)] == [False, True, True, False]
    assert intensity(1, 481) == pytest.approx(188.59, abs=5e-3)
    assert intensity(1, 481) > max(intensity(1, 480), intensity(1, 482))
    assert intensity(1, 10**7) == pytest.approx(21.75, abs=0.03)


def test_the_cache_and_large_batches():
    """3.1, 3.6 and b5.2."""
    assert rl.cost.kv_bytes_per_token(XL) == 307200 == 48 * 6400
    assert rl.cost.kv_bytes_per_token("gemma3-270m") == 18432
    assert rl.cost.kv_bytes_per_token("llama3-8b") == 131072
    assert XL.cache_bytes(64, 1024) == pytest.approx(20.1e9, rel=2e-3)  # more than a T4 has
    assert cost(XL, 64, 1024, "decode", hardware=T4).largest_batch == 40
    for L, limit in ((32, 224.04), (64, 127.19)):
        work = cost(XL, 10**9, L, "decode").total.work
        assert work.arithmetic_intensity == pytest.approx(limit, abs=5e-3)
    for B, bound in ((6561, "memory"), (6562, "compute")):
        assert cost(XL, B, 32, "decode", hardware=T4).total.bound == bound
    assert cost(XL, 10**9, 64, "decode", hardware=T4).total.bound == "memory"


def test_what_a_decode_step_waits_for():
    """4.1: weights, other traffic, compute and cache at B = 1."""
    weights = weights_of_a_step()
    assert weights == 48 * 2 * (12 * 1600**2 + 5 * 1600)
    found = cost(XL, 1, 1024, "decode", hardware=T4)
    cache = XL.cache_bytes(1, 1024)
    assert weights == 2949888000 and weights / T4.bandwidth_tb_s / 1e12 == pytest.approx(9.83296e-3)
    other = found.total.work.bytes - weights - cache
    assert other == 3072000 + 9600 * 1024 and other / 0.3e12 == pytest.approx(43.0e-6, rel=1e-3)
    assert found.total.compute_s == pytest.approx(50.29e-6, rel=1e-3)
    assert cache / 0.3e12 == pytest.approx(1.049e-3, rel=1e-3)
    assert weights / rl.cost.kv_bytes_per_token(XL) == 9602.5


def test_the_paper_beside_the_runtime():
    """5.1: unfused causal attention run by the runtime, and the fused one."""
    sizes = {"batch": 2, "length": 16, "dtype": "float32"}
    B, L, H, n = 2, 16, 4, 4
    paper, run = (
        rl.cost.model(spec_of(32, H), attention="composed", convention=one, **sizes)["attention"].work
        for one in (ANALYSIS, Convention.RUNTIME)
    )
    assert run.flops - paper.flops == H * B * L**2 == 2048
    assert run.bytes - paper.bytes == 2 * n * H * B * L**2 + L**2 == 16640
    q, k, v = (rl.empty(B, H, L, 8, device=rl.meta("cpu")) for _ in range(3))
    with rl.count() as c:
        scores = q @ k.transpose(-1, -2) * 8**-0.5
        mask = rl.empty(L, L, dtype="bool", device=rl.meta("cpu"))
        rl.softmax(rl.where(mask, scores, float("-inf"))) @ v
    assert c.launches == 5
    assert (c.flops, c.bytes_read + c.bytes_written) == (run.flops, run.bytes)
    full, causal = (
        cost(spec_of(4096, 16), 16, 16384, convention=one, attention="fused", hardware=A100)["attention"]
        for one in (ANALYSIS, Convention.RUNTIME)
    )
    assert full.work.bytes == causal.work.bytes == 4 * 2 * 16 * 16384 * 4096
    assert full.work.flops == 70712341561344 and full.bound == causal.bound == "compute"
    assert full.work.arithmetic_intensity == pytest.approx(8232, rel=1e-4)
    assert causal.work.arithmetic_intensity == pytest.approx(4116, rel=1e-3)


@pytest.mark.parametrize("mode", BOTH)
def test_fusing_saves_bytes_and_no_arithmetic(mode):
    """A decode step has no mask, fused or not."""
    composed, fused = (cost(XL, 3, 100, mode, attention=how)["attention"].work for how in ("composed", "fused"))
    assert (composed.macs, composed.flops) == (fused.macs, fused.flops)
    queries = 1 if mode == "decode" else 100
    assert fused.bytes == 48 * 2 * 3 * 1600 * (2 * queries + 2 * 100) < composed.bytes


# --- slips of the original, each with what it changes ---

SLIPPED = replace(ANALYSIS, name="original", scale="free", softmax_passes=0)


def test_slip_scale_lost_and_scores_moved_twice_in_decode():
    """3.2: 3BHL FLOPs, since the scale is lost; scores move 2 times and not 4, since the softmax moves none."""
    for B, L in ((1, 32), (1, 1024), (64, 1024)):
        right, slipped = (cost(XL, B, L, "decode", convention=one).total.work for one in (ANALYSIS, SLIPPED))
        assert right.flops - slipped.flops == 48 * B * 25 * L
        assert right.bytes - slipped.bytes == 48 * 2 * 2 * B * 25 * L
    published = [cost(XL, B, 1024, "decode", convention=SLIPPED).total.work.bytes for B in (1, 64)]
    assert published == [3272448000, 23593728000]
    before = cost(XL, 64, 1024, hardware=T4).total.seconds
    assert before / (published[1] / 0.3e12) == pytest.approx(50.47, abs=5e-3)


def test_slip_the_cache_of_a_layer_or_of_the_model():
    one_layer = replace(XL, layers=1)
    assert rl.cost.kv_bytes_per_token(one_layer) == 6400 and rl.cost.kv_bytes_per_token(XL) == 48 * 6400


def test_slip_rounded_intermediates():
    attention = cost(spec_of(4096, 16), 16, 16384)["attention"].work
    assert f"{attention.arithmetic_intensity:.3f}" == "84.866" != "84.865"
    prefill = cost(XL, 64, 1024, hardware=T4).total
    assert f"{prefill.compute_s:.4f}" == "3.2972" and f"{math.floor(prefill.work.flops / 1e12) / 65:.4f}" == "3.2923"
    longer = replace(XL, learned_positions=4096)
    assert f"{cost(longer, 1, 4096, 'decode', hardware=T4).total.compute_s * 1e6:.1f}" == "65.0" != "64.5"


def test_slip_a_context_that_the_model_lacks():
    with pytest.raises(ValueError, match=r"\[cost\] length: gpt2-xl has positions for 1024 tokens, got 4096"):
        cost(XL, 1, 4096, "decode")


def test_slip_other_traffic_of_14_and_not_20_a_token():
    """4.1: 20BD of activations a layer; the original counts 14, so that 11980800 bytes stand for 12902400."""
    weights, cache = weights_of_a_step(), XL.cache_bytes(1, 1024)
    other = cost(XL, 1, 1024, "decode").total.work.bytes - weights - cache
    slipped = 48 * 2 * (14 * 1600 + 4 * 25 * 1024)
    assert (other, slipped) == (12902400, 11980800) and other - slipped == 48 * 2 * 6 * 1600
    assert (weights - 48 * 2 * 14 * 1600) / 9600 == 307056  # equal to the weights there, by the original's own formula
    assert (weights - 48 * 2 * 20 * 1600) / 9600 == 306960


def test_slip_four_drafts_are_five_tokens():
    """4.2: with four accepted drafts a pass gives five tokens."""
    weights_ms = weights_of_a_step() / 0.3e9
    assert weights_ms / 4 == pytest.approx(2.458, abs=5e-4) and weights_ms / 5 == pytest.approx(1.967, abs=5e-4)


def test_slip_the_bandwidth_of_a_t4():
    """The datasheet says 320 GB/s; no verdict changes."""
    assert SPECS["T4"].bandwidth_tb_s == 0.32
    for mode in BOTH:
        for B, L, *_ in TABLE_A:
            given, sheet = (cost(XL, B, L, mode, hardware=machine).total.bound for machine in (T4, SPECS["T4"]))
            assert given == sheet


def test_slip_weights_without_biases_norms_and_embedding():
    weights = weights_of_a_step() // 2
    assert weights == 1474944000 and XL.parameters == 1557611200
    left_out = 48 * (4 * 1600 + 4 * 1600) + 2 * 1600 + (50257 + 1024) * 1600  # projection biases, norms, tables
    assert XL.parameters - weights == left_out
    with_biases = replace(ANALYSIS, left_out=tuple(x for x in ANALYSIS.left_out if x != "attention biases"))
    more = cost(XL, 1, 1, convention=with_biases).total.work.bytes - cost(XL, 1, 1).total.work.bytes
    assert more == 48 * 4 * 1600 * 2
