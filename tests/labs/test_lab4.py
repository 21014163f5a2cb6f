"""Lab 4, Parts 1 to 3: the reference formulas are what the runtime counts, and give the known answers."""

import math

import numpy as np
import pytest
from labs.sources import SOURCES, lab

import rooflab as rl
from rooflab.cost import Convention
from rooflab.grading import measure
from rooflab.grading.lab.repair import reference
from rooflab.labs import lab4
from rooflab.roofline import SPECS

PAPER = (2, 8, 16, 4, 2)
DTYPES = {2: "float16", 4: "float32", 8: "float64"}
# Small ones, each letter at 1, and the large cases of the lab: tensors without memory make them free.
SIZES = [
    PAPER, (1, 5, 6, 3, 4), (3, 1, 10, 5, 2), (3, 7, 11, 1, 8), (16, 16384, 4096, 16, 2), (1, 32, 1600, 25, 2),
    (64, 1024, 1600, 25, 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def given():
    """What the set-up cell and the reference answers of Parts 1 to 3 define."""
    source, defined = next(path for path in SOURCES if path.name == "lab4"), {}
    for cell in reference(lab(source)).cells:
        if cell.role == "setup" or (cell.role == "solution" and cell.question[:2] in ("q1", "q2", "q3")):
            exec(cell.source, defined)
    return defined


def test_it_has_a_hundred_points_and_ten_more():
    whole = lab(next(path for path in SOURCES if path.name == "lab4"))
    assert (whole.points, whole.bonus) == (100, 10)
    parts = [sum(c.points for c in whole.cells if c.question.startswith(part)) for part in ("q1", "q2", "q3")]
    assert parts == [41, 17, 26]


def test_what_is_computed_on_paper_makes_no_tensor_and_runs_nothing():
    x = rl.ones(4)
    for answer in (
        lambda L: rl.empty(L, device="meta").nbytes,  # nothing runs
        lambda L: x.add_(L).numel(),  # there is no new tensor
        lambda L: rl.cost.matmul((L, 2), (2, 3)).flops,
    ):
        with pytest.raises(AssertionError, match="compute it by a formula"):
            lab4.on_paper(answer, 8)


@pytest.mark.parametrize("batch", [1, 3, 64])
@pytest.mark.parametrize("length", [1, 32, 1024])
def test_the_formulas_are_those_of_the_explorer(given, batch, length):
    paper = {"attention": "composed", "convention": Convention.ANALYSIS, "batch": batch, "length": length}
    for mode, name in (("prefill", "model"), ("decode", "decode_model")):
        found = rl.cost.model("gpt2-xl", mode=mode, **paper).total.work
        sizes = batch, length, 1600, 25, 48
        assert (found.flops, found.bytes) == (given[f"{name}_flops"](*sizes), given[f"{name}_bytes"](*sizes, 2))


# The formulas against what runs


def tensor(n, *sizes):
    return rl.empty(*sizes, dtype=DTYPES[n], device="meta")


def counted(fn):
    """FLOPs and bytes of everything that `fn` launches."""
    with rl.count() as c:
        fn()
    return c.flops, c.bytes_read + c.bytes_written


@pytest.mark.parametrize(("M", "K", "N", "n"), [(64, 96, 33, 2), (1, 1600, 1600, 2), (4096, 1, 7, 4), (5, 3, 1, 8)])
def test_a_product_is_what_runs_and_what_rl_cost_says(given, M, K, N, n):
    paper = given["matmul_flops"](M, K, N), given["matmul_bytes"](M, K, N, n)
    assert counted(lambda: tensor(n, M, K) @ tensor(n, K, N)) == paper
    cost = rl.cost.matmul((M, K), (K, N), dtype=DTYPES[n])
    assert (cost.flops, cost.bytes) == paper


def test_a_product_that_really_runs_counts_the_same(given):
    a, b = rl.ones(64, 96), rl.ones(96, 33)
    assert counted(lambda: a @ b) == (given["matmul_flops"](64, 96, 33), given["matmul_bytes"](64, 96, 33, 4))


@pytest.mark.parametrize(("B", "L", "D", "H", "n"), SIZES)
class TestEachOperation:
    def test_projections(self, given, B, L, D, H, n):
        x, weights = tensor(n, B, L, D), [tensor(n, D, D) for _ in range(4)]
        three = counted(lambda: [x @ weight for weight in weights[:3]])
        assert three == (given["projection_flops"](B, L, D), given["projection_bytes"](B, L, D, n))
        assert counted(lambda: x @ weights[3]) == (given["output_flops"](B, L, D), given["output_bytes"](B, L, D, n))

    def test_one_head(self, given, B, L, D, H, n):
        q, k, scores = tensor(n, B, L, D), tensor(n, B, L, D), tensor(n, B, L, L)
        (flops, moved), (scaling, _) = counted(lambda: q @ k.mT), counted(lambda: scores * 0.5)
        assert (flops + scaling, moved) == (given["scores_flops"](B, L, D), given["scores_bytes"](B, L, D, n))
        assert counted(lambda: scores @ k) == (given["values_flops"](B, L, D), given["values_bytes"](B, L, D, n))

    def test_mask_and_softmax_move_the_scores_twice(self, given, B, L, D, H, n):
        scores, visible = tensor(n, B, L, L), rl.empty(L, L, dtype="bool", device="meta")
        flops, moved = counted(lambda: rl.where(visible, scores, float("-inf")))
        assert (flops, moved - L * L) == (0, given["mask_bytes"](B, L, n)), "the runtime reads a matrix of bools"
        assert given["mask_flops"](B, L) == B * L * L
        flops, moved = counted(lambda: rl.softmax(scores, -1))
        assert (flops, moved) == (5 * B * L * L, given["softmax_bytes"](B, L, n))
        assert given["softmax_flops"](B, L) == flops * 3 // 5

    def test_attention_with_heads(self, given, B, L, D, H, n):
        """Paper counts 1 for the mask and 3 for softmax where the runtime counts 0 and 5."""
        q, k, v = (tensor(n, B, H, L, D // H) for _ in range(3))
        scores = B * H * L * L
        flops, moved = counted(lambda: rl.softmax((q @ k.mT) * 0.5, -1) @ v)
        assert flops - 2 * scores + scores == given["mha_flops"](B, L, D, H)
        scaling, mask = 2 * n * scores, 2 * n * scores
        assert moved - scaling + mask == given["mha_bytes"](B, L, D, H, n)
        assert given["sdpa_flops"](B, L, D) == given["mha_flops"](B, L, D, 1)
        assert given["sdpa_bytes"](B, L, D, n) == given["mha_bytes"](B, L, D, 1, n)

    def test_mlp(self, given, B, L, D, H, n):
        x, hidden = tensor(n, B, L, D), tensor(n, B, L, 4 * D)
        up, down = tensor(n, D, 4 * D), tensor(n, 4 * D, D)
        products = [counted(lambda: x @ up), counted(lambda: hidden @ down)]
        biases = [counted(lambda: hidden + tensor(n, 4 * D))[0], counted(lambda: x + tensor(n, D))[0]]
        assert sum(flops for flops, _ in products) + sum(biases) == given["mlp_flops"](B, L, D)
        assert sum(moved for _, moved in products) + n * 5 * D == given["mlp_bytes"](B, L, D, n)

    def test_a_step_of_decode(self, given, B, L, D, H, n):
        x, weight, q, cache = (
            tensor(n, B, 1, D),
            tensor(n, D, D),
            tensor(n, B, H, 1, D // H),
            tensor(n, B, H, L, D // H),
        )
        around = counted(lambda: [x @ tensor(n, D, D) for _ in range(4)])
        flops, moved = counted(lambda: rl.softmax((q @ cache.mT) * 0.5, -1) @ tensor(n, B, H, L, D // H))
        scores = B * H * L
        assert around[0] + flops - 2 * scores == given["decode_attention_flops"](B, L, D, H)
        assert around[1] + moved - 2 * n * scores == given["decode_attention_bytes"](B, L, D, H, n)
        assert given["decode_mlp_flops"](B, D) == given["mlp_flops"](B, 1, D)
        assert given["decode_mlp_bytes"](B, D, n) == given["mlp_bytes"](B, 1, D, n)
        assert counted(lambda: x @ weight)[0] == given["output_flops"](B, 1, D)

    def test_the_cache_is_what_a_cache_holds(self, given, B, L, D, H, n):
        keys_and_values = [tensor(n, B, H, L, D // H) for layer in range(3) for _ in range(2)]
        held = sum(math.prod(x.shape) * n for x in keys_and_values)
        assert given["kv_cache_bytes"](B, L, D, 3, n) == held


# The known answers


@pytest.mark.parametrize(
    ("name", "flops", "moved"),
    [
        ("projection", 24576, 4608), ("scores", 4224, 1280), ("mask", 128, 512), ("softmax", 384, 512),
        ("values", 4096, 1280), ("sdpa", 8832, 3584), ("mha", 10752, 8192), ("output", 8192, 1536),
        ("mlp", 66816, 9376), ("attention", 43520, 14336), ("decode_attention", 5376, 4224), ("decode_mlp", 8352, 4896),
    ],
)  # fmt: skip
def test_formulas_at_one_size(given, name, flops, moved):
    B, L, D, H, n = PAPER
    sizes = {"mask": (B, L), "softmax": (B, L), "decode_mlp": (B, D)}.get(name, (B, L, D))
    sizes += (H,) * (name in ("mha", "attention", "decode_attention"))
    assert given[f"{name}_flops"](*sizes) == flops
    assert given[f"{name}_bytes"](*sizes, n) == moved


def test_a_layer_at_one_size(given):
    B, L, D, H, n = PAPER
    assert (given["model_flops"](B, L, D, H, 1), given["model_bytes"](B, L, D, H, 1, n)) == (110336, 23712)
    assert given["decode_model_flops"](B, L, D, H, 1) == 13728 and given["decode_model_bytes"](B, L, D, H, 1, n) == 9120
    assert given["matmul_flops"](64, 96, 33) == 405504 and given["matmul_bytes"](64, 96, 33, 2) == 22848


def test_attention_and_mlp_on_an_a100(given):
    sizes = (16, 16384, 4096)
    assert given["mha_flops"](*sizes, 16) == 70712341561344
    assert given["mha_bytes"](*sizes, 16, 2) == 833223655424
    assert given["mha_intensity"] == pytest.approx(84.866, abs=5e-4)
    assert given["a100_ridge"] == pytest.approx(153.016, abs=5e-4)
    assert given["mha_flops"](*sizes, 16) / 312e12 == pytest.approx(0.227, abs=5e-4)
    assert given["mha_bytes"](*sizes, 16, 2) / 2.039e12 == pytest.approx(0.409, abs=5e-4)
    assert given["mha_intensity_limit"](4096, 16, 2) == 85.75
    head = given["smallest_compute_bound_head"]
    assert head == 458
    limits = [given["mha_intensity_limit"](size, 1, 2) for size in (head - 1, head)]
    assert limits[0] < given["a100_ridge"] <= limits[1]
    assert given["mlp_intensity"] == pytest.approx(3236.586, abs=5e-4) and given["mlp_bound"] == "compute"


@pytest.mark.parametrize(("D", "H", "length"), [(4096, 16, 171), (1600, 25, 43)])
def test_the_quadratic_part_takes_over(given, D, H, length):
    assert given["first_length_of_scores"](D, H) == length
    linear, quadratic = (lambda L: 4 * L * D), (lambda L: 6 * H * L**2)
    assert quadratic(length - 1) <= linear(length - 1) and quadratic(length) > linear(length)
    assert given["mha_bytes"](1, length, D, H, 1) == linear(length) + quadratic(length)


def test_terms_of_gpt2_xl(given):
    assert given["GPT2_XL"] == {"layers": 48, "D": 1600, "H": 25, "I": 4 * 1600, "V": 50257, "n": 2}
    layer = {"BL": 20480000 + 40968000, "BL^2": 6525}
    assert given["model_flops_terms"] == {term: 48 * number for term, number in layer.items()}
    layer = {"1": 20480000 + 40976000, "BL": 38400 + 32000, "BL^2": 300}
    assert given["model_bytes_terms"] == {term: 48 * number for term, number in layer.items()}
    assert given["decode_flops_terms"] == {"B": 48 * (20480000 + 40968000), "BL": 48 * 6500}
    assert given["decode_bytes_terms"] == {"1": 48 * 61456000, "B": 48 * (32000 + 32000), "BL": 48 * 6600}
    assert given["cache_bytes_per_token"] == 48 * 6400


def test_weights_of_gpt2_xl(given):
    """Embeddings of tokens and positions, norms, and the projections' biases are what the lab leaves out."""
    D, layers, vocabulary = 1600, 48, 50257
    left_out = (vocabulary + 1024) * D + layers * (4 * D + 4 * D) + 2 * D
    assert given["model_bytes_terms"]["1"] // 2 + left_out == 1557611200


TABLE_A = {
    (1, 32): (94704844800, 3072768000, 1.457e-3, 10.243e-3, 30.82, "memory"),
    (1, 1024): (3348706099200, 21509683200, 51.52e-3, 71.70e-3, 155.68, "memory"),
    (64, 32): (6061110067200, 10814208000, 93.25e-3, 36.05e-3, 560.48, "compute"),
    (64, 1024): (214317190348800, 1190776780800, 3.2972, 3.9693, 179.98, "memory"),
}
TABLE_B = {
    (1, 32): (2959488000, 2963097600, 45.5e-6, 9.877e-3, 0.999, "memory"),
    (1, 1024): (3268992000, 3277363200, 50.3e-6, 10.925e-3, 0.997, "memory"),
    (64, 32): (189407232000, 3795302400, 2.914e-3, 12.651e-3, 49.91, "memory"),
    (64, 1024): (209215488000, 23908300800, 3.219e-3, 79.694e-3, 8.751, "memory"),
}
SPEEDUPS = {(1, 32): 1.037, (1, 1024): 6.563, (64, 32): 7.371, (64, 1024): 49.81}


@pytest.mark.parametrize(("name", "table"), [("without_cache", TABLE_A), ("with_cache", TABLE_B)])
def test_the_tables(given, name, table):
    assert given[name].keys() == table.keys()
    for case, (flops, moved, compute_s, memory_s, intensity, bound) in table.items():
        row = given[name][case]
        assert (row["flops"], row["bytes"], row["bound"]) == (flops, moved, bound)
        times = row["compute_s"], row["memory_s"], row["time_s"]
        assert times == pytest.approx((compute_s, memory_s, max(compute_s, memory_s)), rel=2e-3)
        assert row["intensity"] == pytest.approx(intensity, rel=1e-3)
        at_320 = given["budget"](flops, moved, 65e12, 320e9)
        assert at_320["bound"] == bound, "the text says that the datasheet's bandwidth changes no verdict"


def test_the_speedups(given):
    for case, expected in SPEEDUPS.items():
        assert given["cache_speedup"](*case) == pytest.approx(expected, rel=1e-3)


def test_lengths_and_batches_that_are_compute_bound(given):
    assert given["compute_bound_lengths"] == {1: None, 64: (5, 785)}
    flops, moved = given["model_flops_terms"], given["model_bytes_terms"]

    def intensity(B, L):
        return given["value_of"](flops, B, L) / given["value_of"](moved, B, L)

    assert given["best_length"] == 481 and intensity(1, 481) == pytest.approx(188.59, abs=5e-3)
    assert given["long_text_intensity"] == 21.75 == pytest.approx(intensity(1, 10**9), rel=1e-5)
    ridge = given["T4"].flop_s / given["T4"].byte_s
    reached = {L for L in range(1, 20000) if intensity(64, L) >= ridge}
    assert reached == set(range(5, 786)) and max(intensity(1, L) for L in range(1, 20000)) < ridge
    assert given["batch_limits"] == pytest.approx({32: 224.04, 64: 127.19}, rel=1e-4)
    assert given["first_compute_bound_batch"] == {32: 6562, 64: None} and given["batch_limits"][64] < ridge


def test_the_cache_of_64_full_texts_does_not_fit_on_a_t4(given):
    assert given["kv_cache_bytes"](64, 1024, 1600, 48, 2) == 20132659200 > 1e9 * SPECS["T4"].memory_gb


# What it gives its students


def test_the_machines_are_those_of_the_datasheets_but_for_one_bandwidth():
    a100, t4 = SPECS["A100"], SPECS["T4"]
    datasheet = a100.peak_tflop_s["float16"] * 1e12, a100.bandwidth_tb_s * 1e12
    assert (lab4.A100.flop_s, lab4.A100.byte_s) == pytest.approx(datasheet, rel=1e-12)
    assert lab4.T4.flop_s == t4.peak_tflop_s["float16"] * 1e12
    assert (lab4.T4.byte_s, t4.bandwidth_tb_s) == (300e9, 0.32)
    assert rl.roofline.ridge(lab4.T4.machine, "float16") == pytest.approx(216.667, abs=5e-4)


@pytest.mark.parametrize("letters", ["B", "B L D", "M K N n", "B L D H layers n"])
def test_sizes_are_primes_with_each_letter_once_at_1(letters):
    with measure.drawing(5, "a test"):
        names, sizes, more = letters.split(), lab4.sample_sizes(letters), lab4.sample_sizes(letters)
    with measure.drawing(5, "a test"):
        again = lab4.sample_sizes(letters)
    assert len(sizes) == 30 and all(len(one) == len(names) for one in sizes)
    for index, name in enumerate(names):
        drawn = [dict(zip(names, one, strict=True)) for one in sizes]
        value = drawn[index][name] // (drawn[index].get("H", 1) if name == "D" else 1)
        assert value == 1
    for one in drawn:
        assert one.get("n", 1) in (1, 2, 4, 8) and one.get("D", 1) % one.get("H", 1) == 0
        assert all(p == 1 or all(p % q for q in range(2, p)) for name, p in one.items() if name not in "Dn")
    assert sizes == again != more, "the seed of the grading decides"


def test_counts_are_whole_numbers():
    def one(B, L):
        return B * L

    lab4.assert_counts(one, {(2, 8): 16, (2**40, 2**40): 2**80}, "look here")
    lab4.assert_counts(lambda B: np.int64(B), {(3,): 3}, "look here")
    for other in (15, 17):
        with pytest.raises(AssertionError, match=rf"^one\(2, 8\) returned 16, expected {other}. Hint: look here$"):
            lab4.assert_counts(one, {(2, 8): other}, "look here")
    for bad in (16.0, True, "16", None, np.float64(16), np.bool_(True)):
        with pytest.raises(AssertionError, match=r"must return a whole number \(int\), got"):
            lab4.assert_counts(lambda B, bad=bad: bad, {(16,): bad}, "look here")
    with pytest.raises(AssertionError, match=f"expected {2**53 + 1}"):
        lab4.assert_counts(lambda B: int(float(2**53 + 1)), {(1,): 2**53 + 1}, "look here")


def test_terms_add_up():
    assert lab4.value_of({"1": 7, "B": 5, "BL": 3, "BL^2": 2}, 10, 100) == 7 + 50 + 3000 + 200000
    with pytest.raises(KeyError):
        lab4.value_of({"L": 1}, 1, 1)
    keys, counts = ("1", "BL"), {(2, 10): 67, (1, 1): 10}
    lab4.assert_terms("mine", {"1": np.int64(7), "BL": 3}, keys, counts)
    for terms, said in [
        (None, "must be a dict with the keys"),
        ({"1": 7}, "must be a dict with the keys"),
        ({"1": 7, "BL": None}, "must be a whole number"),
        ({"1": 7.0, "BL": 3}, "must be a whole number"),
        ({"1": True, "BL": 3}, "must be a whole number"),
        ({"1": 7, "BL": 4}, "add up to 87 at B = 2, L = 10, but your function returns 67"),
    ]:
        with pytest.raises(AssertionError, match=said):
            lab4.assert_terms("mine", terms, keys, counts)


ROW = {"flops": 6, "bytes": 2, "compute_s": 2.0, "memory_s": 1.0, "time_s": 2.0, "intensity": 3.0, "bound": "compute"}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (None, r"t must be a dict with the keys \(1, 32\)"),
        ({}, r"t must be a dict with the keys \(1, 32\)"),
        ({(1, 32): ROW, "x": ROW}, r"t must be a dict with the keys \(1, 32\), got the keys \(1, 32\), 'x'$"),
        ([ROW], r"t must be a dict with the keys \(1, 32\), got a list$"),
        ({(1, 32): 3}, "must be a dict with the keys flops, bytes"),
        ({(1, 32): {"flops": 6}}, "must be a dict with the keys flops, bytes"),
        ({(1, 32): ROW | {"flops": 6.0}}, "flops must be a whole number"),
        ({(1, 32): ROW | {"bytes": True}}, "bytes must be a whole number"),
    ],
)
def test_rows_that_lack_something(table, said):
    lab4.assert_rows("t", {(1, 32): ROW}, [(1, 32)])
    for check in (lab4.assert_rows, lab4.assert_times):
        with pytest.raises(AssertionError, match=said):
            check("t", table, [(1, 32)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"memory_s": 0.0}, "memory_s must be a positive number, got 0.0"),
        ({"intensity": None}, "intensity must be a positive number, got None"),
        ({"time_s": 3.0}, "expected the larger of the two times, 2"),
        ({"time_s": 2.03}, "expected the larger of the two times, 2"),
        ({"intensity": 3.001}, "expected FLOPs over bytes, 3"),
        ({"bound": "both"}, '"memory" or "compute"'),
    ],
)
def test_times_that_do_not_fit(change, said):
    lab4.assert_times("t", {(1, 32): ROW}, [(1, 32)])
    with pytest.raises(AssertionError, match=said):
        lab4.assert_times("t", {(1, 32): ROW | change}, [(1, 32)])
