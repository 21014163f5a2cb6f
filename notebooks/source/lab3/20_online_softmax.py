# %% [markdown]
# # Part 2. The softmax that looks once
#
# ## 2.1 A running maximum and a running sum (4 points)
#
# Softmax seems to need a whole row before it can begin: first the maximum, then the sum of exponentials. It does not.
# Go through the row in chunks and keep two numbers, the maximum so far and the sum so far *relative to that maximum*:
#
# $$m' = \max(m, \max_j x_j), \qquad l' = e^{m - m'}\, l + \sum_j e^{x_j - m'}.$$
#
# When the maximum grows, what was summed before is too large by a known factor: shrink it.
#
# Write `online_update(m, l, x)` on NumPy arrays: `m` and `l` are (R,), one pair for each row, and `x` (R, n) holds the
# next n columns of each row. Return the new pair and leave the arguments as they are. It starts with m = -inf and
# l = 0, and a row of nothing but -inf (a query that sees no key) must stay at exactly these: mind that -inf minus -inf
# is NaN. A chunk may also be empty.


# %% nbgrader={"grade_id": "q2_1", "solution": true}
def online_update(m, l, x):
    """(m, l) of each row, (R,) each, after the columns x (R, n) as well."""
    ### BEGIN SOLUTION
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    finite = np.where(
        np.isneginf(new), 0.0, new
    )  # nothing seen yet: e^(-inf - 0) is the 0 that we want
    return new, np.exp(m - finite) * l + np.exp(x - finite[:, None]).sum(axis=1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_1_test", "grade": true, "points": 4}
def check_online(x, chunks, what):
    m, l, start = np.full(len(x), -np.inf), np.zeros(len(x)), 0
    for n in chunks:
        pair = online_update(m, l, x[:, start : start + n])
        assert isinstance(pair, tuple) and len(pair) == 2, "return the pair m, l"
        m, l = (np.asarray(value) for value in pair)
        assert m.shape == l.shape == (len(x),), "one m and one l for each row"
        start += n
    assert start == x.shape[1]
    most = x.max(axis=1)
    assert_close(m, most, rtol=0, atol=0, name=f"m, {what}")
    relative = np.exp(x - np.where(np.isneginf(most), 0, most)[:, None])
    assert_close(l, relative.sum(axis=1), rtol=1e-12, atol=0, name=f"l, {what}")


rng = np.random.default_rng(0)
check_online(rng.standard_normal((3, 10)), (4, 4, 2), "chunks of 4")
check_online(rng.standard_normal((3, 10)) * 1000, (1,) * 10, "huge values, one at a time")
### BEGIN HIDDEN TESTS
x = rng.standard_normal((5, 64))
for chunks in [(64,), (1, 63), (16, 16, 16, 16), (0, 30, 0, 34, 0)]:
    check_online(x, chunks, f"chunks {chunks}")
    check_online(np.sort(x, axis=1), chunks, f"ascending, chunks {chunks}")
    check_online(-np.sort(-x, axis=1), chunks, f"descending, chunks {chunks}")
    check_online(x + 1e5, chunks, f"far from 0, chunks {chunks}")
x[0], x[1, :40], x[2, 20:] = -np.inf, -np.inf, -np.inf
check_online(x, (8,) * 8, "rows of -inf")
check_online(x * 1e4, (3, 61), "rows of -inf, huge values")
### END HIDDEN TESTS

# %% [markdown]
# How often does the maximum grow? Of n random values, the k-th is the largest so far with probability 1/k, so about
# ln n times in all. The rescaling that this trick pays with is rarely more than a multiplication by one, which the
# fastest kernels of today skip.

# %%
x = np.random.default_rng(1).standard_normal((1000, 4096))
for chunk in (1, 16, 64, 256):
    m, l, grown = np.full(1000, -np.inf), np.zeros(1000), 0
    for start in range(0, 4096, chunk):
        previous = m
        m, l = online_update(m, l, x[:, start : start + chunk])
        grown += (m > previous).mean()
    print(
        f"chunks of {chunk:3}: {4096 // chunk:4} updates of a row, the maximum grew in {grown:5.2f} of them"
    )

# %% [markdown]
# ## 2.2 And the weighted sum with it (4 points)
#
# The weights are not what we want; the weighted sum of V is. It can be carried along in the same way, unnormalised:
#
# $$O' = e^{m - m'}\, O + \sum_j e^{x_j - m'}\, V_j,$$
#
# and after the last chunk, O / l is the answer. Write `online_average(m, l, O, x, V)`: as before, with O (R, d) and the
# rows V (n, d) that belong to the n columns of x. This is the inner step of FlashAttention, complete.


# %% nbgrader={"grade_id": "q2_2", "solution": true}
def online_average(m, l, O, x, V):
    """(m, l, O) after the columns x (R, n) with their rows V (n, d); O (R, d) is not divided by l."""
    ### BEGIN SOLUTION
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    finite = np.where(np.isneginf(new), 0.0, new)
    p, shrink = np.exp(x - finite[:, None]), np.exp(m - finite)
    return new, shrink * l + p.sum(axis=1), shrink[:, None] * O + p @ V
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 4}
def check_average(x, V, chunks, what):
    rows, d = len(x), V.shape[1]
    m, l, O, start = np.full(rows, -np.inf), np.zeros(rows), np.zeros((rows, d)), 0
    for n in chunks:
        triple = online_average(m, l, O, x[:, start : start + n], V[start : start + n])
        assert isinstance(triple, tuple) and len(triple) == 3, "return m, l, O"
        m, l, O = (np.asarray(value) for value in triple)
        assert m.shape == l.shape == (rows,) and O.shape == (rows, d), "the shapes stay"
        start += n
    most = x.max(axis=1)
    p = np.exp(x - np.where(np.isneginf(most), 0, most)[:, None])
    assert_close(m, most, rtol=0, atol=0, name=f"m, {what}")
    assert_close(l, p.sum(axis=1), rtol=1e-12, atol=0, name=f"l, {what}")
    assert_close(O, p @ V, rtol=1e-11, atol=1e-12, name=f"O before the division, {what}")


rng = np.random.default_rng(0)
check_average(rng.standard_normal((3, 10)), rng.standard_normal((10, 4)), (4, 4, 2), "chunks of 4")
### BEGIN HIDDEN TESTS
x, V = rng.standard_normal((5, 64)), rng.standard_normal((64, 7))
for chunks in [(64,), (1, 63), (16, 16, 16, 16), (0, 30, 0, 34, 0), (1,) * 64]:
    check_average(np.sort(x, axis=1), V, chunks, f"ascending, chunks {chunks}")
    check_average(x * 1000, V, chunks, f"huge values, chunks {chunks}")
x[0], x[1, :40], x[2, 20:] = -np.inf, -np.inf, -np.inf
check_average(x, V, (8,) * 8, "rows of -inf")
### END HIDDEN TESTS

# %% [markdown]
# ## 2.3 Bonus: two halves make a whole (3 bonus points)
#
# Nothing forces one worker to walk through all the keys. Two of them can take half each, and their results are merged
# afterwards; this is how a single query is spread over a whole GPU when a model generates text. Write
# `combine(m1, l1, O1, m2, l2, O2)`: the triple of both parts together, from the (unnormalised) triples of the parts.


# %% nbgrader={"grade_id": "b2_3", "solution": true}
def combine(m1, l1, O1, m2, l2, O2):
    """(m, l, O) of two parts together; m, l (R,), O (R, d), not divided by l."""
    ### BEGIN SOLUTION
    m = np.maximum(m1, m2)
    finite = np.where(np.isneginf(m), 0.0, m)
    first, second = np.exp(m1 - finite), np.exp(m2 - finite)
    return m, first * l1 + second * l2, first[:, None] * O1 + second[:, None] * O2
    ### END SOLUTION


# %% nbgrader={"grade_id": "b2_3_test", "grade": true, "points": 3}
def part_of(x, V):
    m = x.max(axis=1, initial=-np.inf)
    p = np.exp(x - np.where(np.isneginf(m), 0, m)[:, None])
    return m, p.sum(axis=1), p @ V


def check_combine(x, V, split, what):
    triple = combine(*part_of(x[:, :split], V[:split]), *part_of(x[:, split:], V[split:]))
    assert isinstance(triple, tuple) and len(triple) == 3, "return m, l, O"
    for name, ours, exact in zip("mlO", triple, part_of(x, V), strict=True):
        assert_close(ours, exact, rtol=1e-11, atol=1e-12, name=f"{name}, {what}")


rng = np.random.default_rng(3)
x, V = rng.standard_normal((4, 12)), rng.standard_normal((12, 5))
check_combine(x, V, 5, "5 and 7 columns")
### BEGIN HIDDEN TESTS
for split in (0, 1, 11, 12):
    check_combine(x, V, split, f"{split} columns and {12 - split}")
    check_combine(x * 1000, V, split, f"huge values, {split} columns and {12 - split}")
x[0], x[1, :6], x[2, 6:] = -np.inf, -np.inf, -np.inf
check_combine(x, V, 6, "rows of -inf")
### END HIDDEN TESTS
