# %% [markdown]
# ## 3.6 Alignment of rows ({points q3_6})
#
# To load a tile, a kernel reads the first 128 bytes of each of its rows. In fp16, the rows of a matrix with K columns
# have 2 K bytes, one row after the other. If 2 K is not a multiple of 128, most rows begin in the middle of a burst, so
# their first 128 bytes are in two bursts. In sectors of 32 bytes the difference is smaller: at most 5 sectors instead
# of 4.
#
# - `row_bursts(K, rows)`: the bursts of 128 bytes that are needed to read the first 128 bytes of each of the first
#   `rows` rows (K ≥ 128).
# - `padded(K)`: the smallest number of columns, K or more, for which every row begins at the start of a burst


# %% nbgrader={"grade_id": "q3_6", "solution": true}
def row_bursts(K, rows):
    """Bursts of 128 bytes to read the first 128 bytes of each row of an fp16 matrix with K columns: an int."""
    ### BEGIN SOLUTION
    return sum(1 if 2 * K * row % 128 == 0 else 2 for row in range(rows))
    ### END SOLUTION


def padded(K):
    """The smallest number of columns >= K with which each row begins at a multiple of 128 bytes: an int."""
    ### BEGIN SOLUTION
    return -(-K // 64) * 64
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_6_test", "grade": true, "points": 2}
row_hint = "at which byte does each row begin, and is that a multiple of 128?"
assert_counts(row_bursts, {(128, 10): 10, (160, 10): 15, (129, 4): 7, (144, 8): 14, (161, 1): 1}, row_hint)
### BEGIN HIDDEN TESTS
lecture = {1792: 64, 1793: 127, 1794: 126, 1800: 120, 1824: 96, 1856: 64}
assert_counts(row_bursts, {(K, 64): number for K, number in lecture.items()}, row_hint)
for K, rows in draws((128, 5000), (1, 300)):
    touched = {burst for row in range(rows) for burst in (2 * K * row // 128, (2 * K * row + 127) // 128)}
    assert_counts(row_bursts, {(K, rows): len(touched)}, row_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_6_padded_test", "grade": true, "points": 1}
padded_hint = "for which K is 2 K a multiple of 128 bytes?"
assert_counts(padded, {(128,): 128, (129,): 192, (1,): 64, (191,): 192, (97,): 128}, padded_hint)
### BEGIN HIDDEN TESTS
assert_counts(padded, {(1792,): 1792, (1793,): 1856, (50257,): 50304}, padded_hint)
K = 64 * measure.draw(2, 10**4)
assert_counts(padded, {(K - measure.draw(1, 63),): K, (K,): K, (K + measure.draw(1, 63),): K + 64}, padded_hint)
### END HIDDEN TESTS

# %%
rows = [
    (K, row_bursts(K, 64), f"{64 / row_bursts(K, 64):.0%}", padded(K)) for K in (1792, 1793, 1794, 1800, 1824, 1856)
]
Table(("K", "bursts", "useful", "padded K"), rows, title="The first 128 bytes of 64 rows in fp16")

# %% [markdown]
# Does your machine show it? These are products of two matrices in fp16 with K columns and K rows. Their FLOPs differ by
# less than 4 %. A CPU kernel first copies its operands to aligned places, so you may see no difference there.

# %%
M = 4096 if device == "cuda" else 256
times = {}
for K in (1792, 1793, 1794, 1800, 1824, 1856):
    a, b = rl.randn(M, K, device=device).to("float16"), rl.randn(K, M, device=device).to("float16")
    times[f"K = {K}"] = latency(rl.matmul, a, b, warmup=3, repeat=10)
title = f"({M} x K) times (K x {M}) in fp16 on {lab5.machine_name(device)}"
rl.plots.plot_bars(times, "ms", title=title, baseline="K = 1792")

# %% [markdown]
# One extra column nearly doubles the number of bursts. GPT-2 has 50,257 tokens in its vocabulary. A. Karpathy padded it
# to 50,304 in nanoGPT and measured a speed-up of about 25 %, although the padded product does more work. His
# explanation is that the padded size lets the library choose a faster kernel. Misaligned rows are one reason why the
# library cannot choose it for 50,257.
