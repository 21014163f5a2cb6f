# %% [markdown]
# # Part 4. The sawtooth
#
# A matrix product runs as a grid of **blocks**. Each block computes one tile of the result. We assume that each SM
# works on one block at a time. (Some kernels run a few blocks per SM. Then the rule is the same, with larger waves.)
#
# ## 4.1 Tiles at the edges ({points q4_1})
#
# - `tile_count(M, N, tile_m, tile_n)`: the number of tiles of `tile_m` x `tile_n` that cover a result of M x N
# - `tile_share(M, N, tile_m, tile_n)`: the share of the elements of all tiles that belong to the result, 0 to 1. A tile
#   at an edge computes all of its elements, including those outside the result.


# %% nbgrader={"grade_id": "q4_1", "solution": true}
def tile_count(M, N, tile_m, tile_n):
    """Tiles that cover an M x N result: an int."""
    ### BEGIN SOLUTION
    return -(-M // tile_m) * -(-N // tile_n)
    ### END SOLUTION


def tile_share(M, N, tile_m, tile_n):
    """Share of the elements of all tiles that belong to the result, 0 to 1."""
    ### BEGIN SOLUTION
    return M * N / (tile_count(M, N, tile_m, tile_n) * tile_m * tile_n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_1_test", "grade": true, "points": 2}
tile_hint = "how many tiles does each side need, if the last one may reach past the edge?"
assert_counts(tile_count, {(10, 10, 5, 5): 4, (11, 10, 5, 5): 6, (11, 11, 5, 5): 9, (7, 12, 4, 3): 8}, tile_hint)
assert_counts(tile_count, {(2**60 + 1, 3, 2**30, 2): 2**31 + 2}, tile_hint)
share_hint = "how many elements do all tiles compute, and how many of them belong to the result?"
assert_values(tile_share, {(10, 10, 5, 5): 1.0, (11, 11, 5, 5): 0.537778, (7, 12, 4, 3): 0.875}, share_hint)
### BEGIN HIDDEN TESTS
assert_counts(tile_count, {(256, 256, 128, 128): 4, (256, 257, 128, 128): 6, (1793, 1793, 256, 128): 120}, tile_hint)
assert_values(tile_share, {(256, 256, 128, 128): 1.0, (256, 257, 128, 128): 0.669271}, share_hint)
for M, N, m, n in [(2**60 + 1, 3, 2**30, 2), *draws((1, 10**6), (1, 10**6), (1, 300), (1, 300))]:
    number = ((M + m - 1) // m) * ((N + n - 1) // n)
    assert_counts(tile_count, {(M, N, m, n): number}, tile_hint)
    assert_values(tile_share, {(M, N, m, n): M * N / (number * m * n)}, share_hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.2 Waves ({points q4_2})
#
# A GPU with `sms` SMs works on that many tiles at the same time. This is one **wave**. The last wave may be nearly
# empty, but it takes as long as a full one.
#
# - `waves(N, tile, sms)`: the waves of an N x N product. `tile` is a pair such as (256, 128).
# - `wave_efficiency(N, tile, sms)`: the number of tiles divided by the number that all waves could hold, 0 to 1
# - `throughput_gain(N, bigger, tile, sms)`: the FLOP/s of the product of size `bigger` divided by the FLOP/s of the
#   product of size N. A wave takes the same time for each step along the inner dimension, so the time of a product is
#   proportional to waves · N.
# - `cliffs(tile, sms, first, last)`: the list of all N with first < N ≤ last that need more waves than N - 1


# %% nbgrader={"grade_id": "q4_2", "solution": true}
def waves(N, tile, sms):
    """Waves of an N x N product: an int."""
    ### BEGIN SOLUTION
    return -(-tile_count(N, N, *tile) // sms)
    ### END SOLUTION


def wave_efficiency(N, tile, sms):
    """Tiles divided by the tiles that all waves could hold, 0 to 1."""
    ### BEGIN SOLUTION
    return tile_count(N, N, *tile) / (waves(N, tile, sms) * sms)
    ### END SOLUTION


def throughput_gain(N, bigger, tile, sms):
    """FLOP/s of the product of size `bigger` divided by FLOP/s of the product of size N."""
    ### BEGIN SOLUTION
    return (bigger**2 / waves(bigger, tile, sms)) / (N**2 / waves(N, tile, sms))
    ### END SOLUTION


def cliffs(tile, sms, first, last):
    """All N with first < N <= last that need more waves than N - 1: a list of ints."""
    ### BEGIN SOLUTION
    return [N for N in range(first + 1, last + 1) if waves(N, tile, sms) > waves(N - 1, tile, sms)]
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_2_test", "grade": true, "points": 2} rooflab={"needs": ["q4_1"]}
wave_hint = "how many tiles run at the same time? A last wave that is not full is a wave too"
assert_values(waves, {(1024, (256, 128), 16): 2, (1025, (256, 128), 16): 3, (100, (10, 10), 100): 1}, wave_hint)
assert_values(waves, {(101, (10, 10), 100): 2, (384, (128, 64), 30): 1}, wave_hint)
efficiency_hint = "how many tiles could all waves hold?"
assert_values(wave_efficiency, {(1024, (256, 128), 16): 1.0, (1025, (256, 128), 16): 0.9375}, efficiency_hint)
assert_values(wave_efficiency, {(384, (128, 64), 30): 0.6, (101, (10, 10), 100): 0.605}, efficiency_hint)
### BEGIN HIDDEN TESTS
assert_values(waves, {(1792, (256, 128), 108): 1, (1793, (256, 128), 108): 2}, wave_hint)
assert_values(wave_efficiency, {(1792, (256, 128), 108): 0.907407, (1793, (256, 128), 108): 0.555556}, efficiency_hint)
for N, m, n, S in draws((1, 20000), (1, 300), (1, 300), (1, 200)):
    tiles = ((N + m - 1) // m) * ((N + n - 1) // n)
    number = (tiles + S - 1) // S
    assert_values(waves, {(N, (m, n), S): number}, wave_hint)
    assert_values(wave_efficiency, {(N, (m, n), S): tiles / (number * S)}, efficiency_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_2_gain_test", "grade": true, "points": 2} rooflab={"needs": ["q4_1"]}
gain_hint = "how do the FLOPs grow with N, and how does the time?"
assert_values(throughput_gain, {(1024, 1025, (256, 128), 16): 0.667969, (100, 101, (10, 10), 100): 0.51005}, gain_hint)
assert_values(throughput_gain, {(64, 128, (128, 64), 30): 4.0, (128, 64, (128, 64), 30): 0.25}, gain_hint)
### BEGIN HIDDEN TESTS
assert_values(throughput_gain, {(1792, 1793, (256, 128), 108): 0.500558}, gain_hint)
for N, bigger, m, n, S in draws((100, 2000), (2001, 9000), (20, 300), (20, 300), (1, 200)):
    before, after = (math.ceil(math.ceil(size / m) * math.ceil(size / n) / S) for size in (N, bigger))
    gain = (bigger / N) ** 2 * before / after
    assert_values(throughput_gain, {(N, bigger, (m, n), S): gain}, gain_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_2_cliffs_test", "grade": true, "points": 2} rooflab={"needs": ["q4_1"]}
cliff_hint = "compare the waves of N with those of N - 1, for every N with first < N <= last"
assert_values(cliffs, {((10, 10), 100, 0, 145): [1, 101, 141], ((10, 10), 100, 100, 101): [101]}, cliff_hint)
assert_values(cliffs, {((10, 10), 100, 101, 140): [], ((256, 128), 16, 500, 1100): [641, 1025]}, cliff_hint)
### BEGIN HIDDEN TESTS
lecture = {((256, 128), 108, 1, 3600): [1793, 2561, 3073, 3585], ((256, 128), 40, 1, 1100): [1025]}
assert_values(cliffs, lecture, cliff_hint)
for m, n, S, first in draws((10, 99), (10, 99), (5, 50), (1, 300), count=3):
    number = {N: math.ceil(math.ceil(N / m) * math.ceil(N / n) / S) for N in range(first, first + 700)}
    right = [N for before, N in pairwise(number) if number[N] > number[before]]
    assert_values(cliffs, {((m, n), S, first, first + 699): right}, cliff_hint)
### END HIDDEN TESTS

# %% [markdown]
# This plot shows the prediction for an A100 and every N. The cliffs depend on the tile and on the number of SMs: with
# tiles of 128 x 128, or on another GPU, they are elsewhere.

# %%
sizes = range(256, 4097)
shares = {N: wave_efficiency(N, (256, 128), 108) * tile_share(N, N, 256, 128) for N in sizes}
title = "N x N products on the 108 SMs of an A100, tiles of 256 x 128"
rl.plots.plot_waves({"predicted": shares}, cliffs=cliffs((256, 128), 108, 256, 4096), title=title)

# %%
rows = []
for name in ("T4", "A10", "A6000", "A100", "RTX 4090", "H100", "H200", "B200"):
    sms = SPECS[name].sm_count
    first = cliffs((256, 128), sms, 1, 4096)[0]
    before, after = (wave_efficiency(N, (256, 128), sms) for N in (first - 1, first))
    rows.append(
        (
            name,
            sms,
            first,
            f"{before:.1%}",
            f"{after:.1%}",
            f"x {throughput_gain(first - 1, first, (256, 128), sms):.3f}",
        )
    )
Table(("GPU", "SMs", "first cliff N", "efficiency before", "after", "throughput"), rows, title="Tiles of 256 x 128")

# %% [markdown]
# At N = 1793 the A100 starts a second wave for a few tiles, and its throughput falls to half. Other GPUs have their
# first cliff at other sizes.
#
# The next cell measures products on your machine. On a GPU it measures around the first cliff of *this* GPU. On a CPU
# the tiles are so small that no sawtooth is visible. What you see there is the effect of its caches, and of other
# programs.

# %%
if device == "cuda":
    sms, tile, dtype = rl.cuda.properties().sm_count, (256, 128), "float16"
    cliff = cliffs(tile, sms, 1, 8192)[0]
    swept = range(cliff - 257, cliff + 512, 64)
    every = range(swept[0], swept[-1] + 1)
    predicted = {"predicted": {N: wave_efficiency(N, tile, sms) * tile_share(N, N, *tile) for N in every}}
else:
    swept, dtype, cliff, predicted = range(64, 513, 32), "float32", None, {}
measured = {}
for N in swept:
    a, b = (rl.randn(N, N, device=device).to(dtype) for _ in range(2))
    measured[N] = 2 * N**3 / latency(rl.matmul, a, b, warmup=2, repeat=10).median_ms / 1e9
best = max(measured.values())
shares = {"measured, over the best": {N: speed / best for N, speed in measured.items()}}
title = f"Products in {dtype} on {lab5.machine_name(device)}, {best:.2f} TFLOP/s at best"
rl.plots.plot_waves(predicted, shares, cliffs=[cliff] if cliff else [], title=title)
