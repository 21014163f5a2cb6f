"""Lab 5: the reference answers give the known numbers, published numbers fit them, and what it gives its students."""

import math
from itertools import zip_longest

import ml_dtypes
import numpy as np
import pytest
from labs.sources import SOURCES, TRUSTED, lab

import rooflab as rl
from rooflab.grading import measure
from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab.repair import reference
from rooflab.grading.measure.global_memory import counted
from rooflab.labs import lab5, lab5_training
from rooflab.roofline import SPECS


@pytest.fixture(scope="module")
def given():
    """What the set-up cells and the reference answers define."""
    source, defined = next(path for path in SOURCES if path.name == "lab5"), {}
    for cell in reference(lab(source)).cells:
        if cell.role in ("setup", "solution"):
            exec(cell.source, defined)
    return defined


def test_what_its_core_and_its_optional_part_are_worth():
    whole = lab(next(path for path in SOURCES if path.name == "lab5"))
    assert (whole.points, whole.bonus, len(whole.questions)) == (69, 43, 29)
    of_parts = [sum(c.points for c in whole.cells if c.question.startswith(f"q{part}")) for part in range(7)]
    assert of_parts == [0, 3, 10, 29, 8, 12, 7]


# The known answers


def test_a_step_of_adamw(given):
    theta = 1.0
    m = v = 0.0
    for t, g in enumerate((0.1, -0.2, 0.3), 1):
        theta, m, v = given["adamw_step"](theta, g, m, v, t, 0.01, 0.9, 0.999, 1e-8, 0.1)
    assert theta == pytest.approx(0.98725774, abs=1e-8)


def test_adamw_of_the_lecture_decays_last_and_the_librarys_first(given):
    """The two differ by a product of two small numbers, as the text says."""
    w = rl.ones(1, dtype="float64", requires_grad=True)
    optimizer = rl.optim.AdamW([w], lr=0.01, weight_decay=0.1)
    for g in (0.1, -0.2, 0.3):
        w.grad = rl.tensor([g], dtype="float64")
        optimizer.step()
    assert w.item() == pytest.approx(0.98724798, abs=5e-8)  # its eps stands beside another root


def test_merges_of_the_lecture(given):
    merges = given["train_bpe"]({"low": 5, "lower": 2, "widest": 3, "newest": 6}, 6)
    assert [("".join(pair), count) for *pair, count in merges] == [
        ("st", 9), ("est", 9), ("ow", 7), ("low", 7), ("west", 6), ("ne", 6)
    ]  # fmt: skip


def test_the_learning_rate_of_the_lecture(given):
    rates = [given["lr_at"](t, 1, 0.1, 10, 110) for t in (0, 5, 10, 35, 60, 110, 200)]
    assert rates == pytest.approx([0, 0.5, 1, 0.8682, 0.55, 0.1, 0.1], abs=1e-4)


def test_days_and_bytes(given):
    assert given["training_days"](70e9, 15e12, 1024, 1979e12 / 2, 0.5) == pytest.approx(143.93, abs=5e-3)
    assert given["largest_model"](8, 80 * 10**9, 16) == 40 * 10**9
    assert given["training_bytes"](1557611200, 0, 8, 1024) == (18691465472, 24921910272)
    assert given["linear_bytes"](12288, 49152, 4) == 2415919104 and given["weights_gib"] == 2.25
    assert given["linear_bytes"](given["slide_width"], 4 * given["slide_width"], 4) == 2304000000


FACTS = {
    "fp32": (8, 23, 3.403e38, 1.175e-38, 1.4e-45, 1.19e-7), "tf32": (8, 10, 3.401e38, 1.175e-38, 1.1e-41, 9.77e-4),
    "fp16": (5, 10, 65504, 6.10e-5, 5.96e-8, 9.77e-4), "bf16": (8, 7, 3.39e38, 1.175e-38, 9.18e-41, 7.81e-3),
    "e4m3": (4, 3, 448, 2**-6, 2**-9, 0.125), "e5m2": (5, 2, 57344, 2**-14, 2**-16, 0.25),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_formats(given, name):
    facts = given["dtype_facts"](name)
    keys = ("exponent", "mantissa", "max", "smallest_normal", "smallest", "eps")
    assert tuple(facts) == keys
    assert tuple(facts.values()) == pytest.approx(FACTS[name], rel=5e-3)


def test_what_the_text_says_of_short_numbers(given):
    rounded, running = given["rounded"], given["running_sum"]
    assert rounded(1e-8, "fp16") == 0 < rounded(1e-8, "bf16") and rounded(1.001, "bf16") == 1 < rounded(1.001, "fp16")
    assert rounded(65520, "fp16") == math.inf > rounded(65519, "fp16")
    assert math.isinf(rounded(math.exp(11.0902), "fp16")) and math.isfinite(rounded(math.exp(11.09), "fp16"))
    assert running(1e-4, 10000, "fp16") == 0.25 and running(1e-4, 10000, "bf16") == 0.03125
    assert running(1.0, 3000, "fp16") == 2048 and running(1.0, 300, "bf16") == 256


def test_two_layers(given):
    forward, backward = given["two_layers_flops"](1024, 256, 64, 64, False)
    assert (forward, backward, forward + backward) == (41943040, 50331648, 92274688)
    assert sum(given["two_layers_flops"](1024, 256, 64, 64, True)) == 125829120 == 6 * 1024 * (256 * 64 + 64 * 64)


def test_figures_of_gpus(given):
    gains = {"A100": 16.0, "H100": 14.8, "T4": 8.0, "A6000": 4.0, "RTX 4090": 2.0}
    assert {name: round(given["tensor_gain"](name), 1) for name in gains} == gains
    ridges = {"T4": 203, "A100": 153, "H100": 295, "H200": 206, "B200": 281}
    assert {name: round(given["ridge_16bit"](name)) for name in ridges} == ridges
    assert given["gain_of_ten_years"] == 1000 == math.prod(lab5.SILICON_GAINS.values())
    assert round(given["bytes_in_flight"](1.555e12, 290, 1.41)) == 319823
    assert given["latency_ns"](290, 1.41) == pytest.approx(205.7, abs=0.05)
    assert given["bytes_in_flight"](1.555e12, 290, 1.41) / 108 == pytest.approx(2961, abs=0.5)
    assert given["shared_gain"] == pytest.approx(12.6, abs=0.05)
    shares = {p: round(given["diverged_share"](p), 3) for p in (0.01, 0.05, 0.1)}
    assert shares == {0.01: 0.275, 0.05: 0.806, 0.1: 0.966}


def test_walks_through_a_large_matrix(given):
    """Every step of every warp is like the first one, so one step of one warp stands for all."""
    steps = 1024 * 1024 // 32
    assert given["bursts"](range(0, 128, 4), 4, 128) * steps == 32768
    assert given["bursts"](range(0, 32 * 4096, 4096), 4, 128) * steps == 1048576
    assert given["useful_share"](range(0, 32 * 4096, 4096), 4, 128) == 1 / 32
    assert given["useful_share"](range(0, 32 * 4096, 4096), 4, 32) == 1 / 8


def test_tiles(given):
    assert given["global_reads"](1024, 1) == 2147483648 and given["global_reads"](1024, 32) == 67108864
    assert given["global_reads"](1024, 1024) == 2097152 and given["global_reads"](1000, 32) == 64000000
    ridge = rl.roofline.ridge("A100 40GB", "float32")
    assert ridge == pytest.approx(12.54, abs=5e-3)
    assert given["tile_intensity"](32) < ridge < given["tile_intensity"](64)
    assert given["largest_tile"](48 * 1024) == 64
    bursts = {1792: 64, 1793: 127, 1794: 126, 1800: 120, 1824: 96, 1856: 64}
    assert {K: given["row_bursts"](K, 64) for K in bursts} == bursts


def test_waves_of_gpus(given):
    large = (256, 128)
    first = {name: given["cliffs"](large, SPECS[name].sm_count, 1, 2100)[0] for name in ("T4", "A6000", "A100", "H200")}
    assert first == {"T4": 1025, "A6000": 1537, "A100": 1793, "H200": 2049}
    assert given["wave_efficiency"](1792, large, 108) == pytest.approx(0.907, abs=5e-4)
    assert given["throughput_gain"](1792, 1793, large, 108) == pytest.approx(0.501, abs=5e-4)
    square = given["tile_count"](1792, 1792, 128, 128), given["tile_count"](1793, 1793, 128, 128)
    assert square == (196, 225), "the numbers that tiles of 128 x 128 would give"
    assert given["tile_count"](1024, 1024, 128, 64) == 128 and given["efficiency_1024"] == pytest.approx(
        0.593, abs=5e-4
    )


# What is published fits the formulas


def test_published_products(given):
    """The times are printed with two places, so a small one fixes its TFLOP/s only within some per cent."""
    for N, (ms, speed) in lab5.PUBLISHED_MATMUL.items():
        slack = 0.006 / ms + 0.006 / speed
        assert given["tflops"](N, ms) == pytest.approx(speed, rel=slack)
    assert given["tflops"](16384, 462.52) / 19.5 == pytest.approx(0.975, abs=1e-3)


def test_published_network(given):
    flops = given["mlp_flops"](256, 4, 256, 2)
    assert flops == 738197504 == 2 * lab5_training.mlp_counts(256, 4, 256, 2).macs
    assert flops / 19.5e12 == pytest.approx(37.9e-6, abs=5e-8)
    ratios = {"steps": (1.81, 2.71, 3.59, 4.47), "layers": (1.61, 2.27, 2.94, 3.65)}
    ratios |= {"batch": (0.92, 0.93, 0.96, 0.96), "dim": (0.91, 0.94, 0.97, 0.93)}
    for size, expected in ratios.items():
        base, *others = lab5.PUBLISHED_MLP[size]
        for ms, ratio in zip(others, expected, strict=True):
            slack = ratio * (0.005 / ms + 0.005 / base) + 0.005  # of what was rounded to two places
            assert ms / base == pytest.approx(ratio, abs=slack)


def test_published_profiles(given):
    _, matmul = lab5.PUBLISHED_PROFILE
    (_, _, add_us, host_us) = lab5.PUBLISHED_PROFILE[0]
    assert given["per_second"](3 * 4 * 2048**2, add_us) == pytest.approx(1.157e12, rel=1e-3)
    assert pytest.approx(0.74, abs=5e-3) == 1.157 / 1.555 and host_us / add_us == pytest.approx(22.6, abs=0.05)
    assert given["per_second"](2 * 2048**3, matmul[2]) == pytest.approx(13.81e12, rel=1e-3)
    assert given["backward_over_forward"](4) == 1.75


def test_published_gelu(given):
    gelu = lab5.PUBLISHED_GELU
    assert gelu["mul"] + gelu["add"] + gelu["tanh"] == pytest.approx(17.127, abs=1e-9)
    assert 17.127 / gelu["fused"] == pytest.approx(11.09, abs=0.005)
    assert 8 * lab5.GELU_ELEMENTS / (gelu["fused"] * 1e-3) == pytest.approx(1.39e12, rel=5e-3)


# What it gives its students


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("fp32", np.float32), ("fp16", np.float16), ("bf16", ml_dtypes.bfloat16), ("e4m3", ml_dtypes.float8_e4m3fn),
     ("e5m2", ml_dtypes.float8_e5m2)],
)  # fmt: skip
def test_rounding_is_that_of_the_formats(name, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(20000) * 10.0 ** rng.uniform(-50, 40, 20000)
    ties = [65519.9, 65520, 464, 463.9, 448, 61440, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 2.0**-10, 3 * 2.0**-10]
    x = np.concatenate([x, ties, -np.array(ties), [0, np.inf, -np.inf, np.nan]])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(lab5.rounded(x, name), x.astype(dtype).astype(np.float64))


def test_tf32_is_fp32_with_fewer_bits():
    assert lab5.rounded(1 + 2.0**-10, "tf32") == 1 + 2.0**-10 and lab5.rounded(1 + 2.0**-11, "tf32") == 1
    assert lab5.rounded(2.0**-136, "tf32") == 2.0**-136 and lab5.rounded(2.0**-137, "tf32") == 0
    with pytest.raises(ValueError, match=r"\[rounded\] name"):
        lab5.rounded(1.0, "fp64")


@pytest.mark.parametrize(
    ("right", "good", "bad", "said"),
    [
        (6, [6, np.int64(6)], [6.0, 7, True, None, "6"], "whole number|expected"),
        (0.5, [0.5, np.float32(0.5), 0.5002], [0.51, None, math.nan, "0.5", True], "a number|expected"),
        (0.0, [0.0, 0], [1e-9, -1.0], "expected"),
        ((1, 2.0), [(1, 2.0), [1, 2], np.array([1, 2])], [(1,), (1, 3.0), 1, None], "2 values, got|expected"),
        ((1, 2), [np.array([1, 2]), rl.tensor([1, 2])], [(1, 2.0), [1, None]], r"2 values, of which \[1\] is a whole"),
        ([1, 2], [[1, 2], (1, 2), np.array([1, 2])], [[1], [], None], "a list|expected"),
        ({"a": 1}, [{"a": 1}], [{}, {"a": 2}, {"a": 1, "b": 2}, None], "the keys 'a'|expected"),
        ({"a": 1}, [{"a": np.int64(1)}], [{"a": 1.0}], r"a dict, of which \['a'\] is a whole number \(int\), got"),
        ("yes", ["yes", np.str_("yes")], ["no", None], "a str|expected"),
        (True, [True, np.True_], [np.False_, 1, None], "a bool|expected"),
        (None, [None], [(0, 0), 0, "None"], "expected None. Hint"),
    ],
)
def test_values_are_compared_by_their_kind(right, good, bad, said):
    for value in good:
        lab5.assert_values(lambda value=value: value, {(): right}, "look here")
    for value in bad:
        with pytest.raises(AssertionError, match=said):
            lab5.assert_values(lambda value=value: value, {(): right}, "look here")


def test_a_message_names_the_call_what_it_returned_what_is_expected_and_the_hint():
    with pytest.raises(AssertionError, match=r"^twice\(3, 'x'\) returned 7, expected 6. Hint: look here$"):
        lab5.assert_values(type("", (), {"__name__": "twice", "__call__": lambda *_: 7})(), {(3, "x"): 6}, "look here")


def test_a_pattern_that_is_drawn_has_all_of_its_indices():
    """With this seed the first and the last index were left out of three, so that one was in no input."""
    whole = lab(next(path for path in SOURCES if path.name == "lab5"))
    result = Judge(whole, TRUSTED, seed=63040922355292).grade_question("b0_1", reference(whole))
    assert result.earned == result.points, [test.message for test in result.tests]


def test_draws_stay_in_their_ranges_and_come_from_the_seed_of_a_grading():
    drawn, again, other = [], [], []
    for seed, found in ((5, drawn), (5, again), (6, other)):
        with measure.drawing(seed, "a test"):
            found += lab5.draws((1, 3), (10, 10), (1, 10**12), count=50)
    assert {a for a, _, _ in drawn} == {1, 2, 3} and {b for _, b, _ in drawn} == {10} and len(drawn) == 50
    assert drawn == again and not set(drawn) & set(other)


@pytest.mark.parametrize("sizes", [(16, 1, 1, 4), (24, 3, 2, 5)])
def test_a_training_step_holds_what_it_says(sizes):
    width, layers, B, L = sizes
    held = lab5_training.training_step(*sizes)
    assert held.parameters == 2 * 50 * width + layers * width**2 and held.buffers == L * width
    assert held.start == 12 * held.parameters + 4 * held.buffers + 16 * B * L
    assert held.end == held.start + 4 * held.parameters
    assert held.peak >= held.start + held.activations > held.start


STEPS = [(i, k, j) for i in range(2) for j in range(2) for k in range(2)]


def reads_of(steps, N):
    """Tile (i, k) of A, then tile (k, j) of B, for each (i, k, j), in tiles of 2 x 2."""
    numbers = np.arange(N * N).reshape(N, N)
    pairs = ([(0, i, k), (1, k, j)] for i, k, j in steps)
    return [(x, numbers[2 * r : 2 * r + 2, 2 * c : 2 * c + 2].ravel()) for pair in pairs for x, r, c in pair]


# Beside each tile of A the tile of B whose rows do not belong to its columns.
BY_K = sorted(STEPS, key=lambda step: step[1])
WRONG_ROWS = [one for i, k, j in BY_K for one in (reads_of([(i, k, j)], 4)[0], reads_of([(i, 1 - k, j)], 4)[1])]


@pytest.mark.parametrize("N", [3, 4])
@pytest.mark.parametrize("steps", [STEPS, STEPS[::-1]])
def test_tiles_that_meet_on_the_chip(N, steps):
    order = reads_of(steps, N)
    lab5.assert_tiles("whole tiles", order, N, 2)
    lab5.assert_tiles("B first", [order[place ^ 1] for place in range(len(order))], N, 2)
    single = [[(x, one[None]) for one in numbers] for x, numbers in order]
    lab5.assert_tiles("an element at a time", [one for tile in single for one in tile], N, 2)
    turns = [zip_longest(a, b) for a, b in zip(single[::2], single[1::2], strict=True)]
    lab5.assert_tiles("A and B by turns", [one for pairs in turns for pair in pairs for one in pair if one], N, 2)


@pytest.mark.parametrize(
    ("order", "N"),
    [
        ([], 4),
        (sorted(reads_of(STEPS, 4), key=lambda one: one[0]), 4),
        ([(x, np.arange(16)) for x in (0, 1, 0, 1)], 4),
        (reads_of(STEPS[:-1], 4), 4),
        ([(x, np.arange(3)) for x in (0, 1)], 2),
        (WRONG_ROWS, 4),
    ],
    ids=["nothing", "all of A first", "row by row", "one pair too few", "a part of a tile", "the other rows of B"],
)
def test_tiles_that_do_not_meet(order, N):
    with pytest.raises(AssertionError, match=r"of A and tile \(.*\) of B were never on the chip at the same moment"):
        lab5.assert_tiles("a product", order, N, 2)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)], ids=["ikj", "kij", "kji"])
def test_a_tile_of_the_product_is_finished_before_the_next(order):
    steps = sorted(STEPS, key=lambda step: [step[place] for place in order])
    with pytest.raises(AssertionError, match=r"tile \(0, 0\) of C was left before it was done"):
        lab5.assert_tiles("a product", reads_of(steps, 4), 4, 2)


def test_masked_loads_and_stores_touch_nothing_else():
    array, memory = counted(np.arange(4.0))
    offsets, mask = np.array([2, 3, 4, -1]), np.array([True, True, False, False])
    assert lab5.load(array, offsets, mask).tolist() == [2, 3, 0, 0]
    lab5.store(array, offsets, 9.0, mask)
    assert memory.arrays[0].tolist() == [0, 1, 9, 9]
    assert array.read_counts.tolist() == array.write_counts.tolist() == [0, 0, 1, 1]
    with pytest.raises(IndexError):
        lab5.load(array, offsets, True)


def test_no_gradient_of_the_mlp_that_is_timed_is_subnormal():
    """Many CPUs compute with subnormal numbers 50 times slower, and the times would say nothing about the size."""
    x, weights, _ = lab5_training.mlp_runner(256, 4, 256, 1, "cpu").args
    products = []
    for weight in weights:
        products.append(x @ weight)
        x = rl.gelu(products[-1])
    for gradient in rl.autograd.grad(x.mean(), products):
        sizes = np.abs(gradient.numpy())
        assert not ((sizes > 0) & (sizes < np.finfo(np.float32).tiny)).any()


@pytest.mark.parametrize("got", [np.float16(0), np.array(0, np.float16), rl.tensor(0.0, dtype="float16")])
def test_a_half_is_compared_as_the_number_that_it_is(got):
    with pytest.raises(AssertionError, match="look here"):
        lab5.assert_values(lambda: got, {(): 1e12}, "look here")
    lab5.assert_values(lambda: got, {(): 1e-16}, "look here")
