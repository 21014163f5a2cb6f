# %% [markdown]
# # Part 2. The online softmax
#
# ## 2.1 A running maximum and a running sum ({points q2_1})
#
# Softmax seems to need a whole row before it can begin. First it takes the maximum, then the sum of the exponentials.
# But one pass is enough. Go through the row in chunks and keep two numbers: the maximum m so far, and the sum l of the
# exponentials so far, *relative to that maximum*. A chunk x changes them to
#
# $$m' = \max(m, \max_j x_j), \qquad l' = e^{m - m'}\, l + \sum_j e^{x_j - m'}.$$
#
# When the maximum grows, the old sum is relative to the wrong maximum. The factor in front of l corrects it.

# %%
rl.plots.plot_online_softmax([1.0, 2.0, 0.5, 3.0, 1.5, 2.5, 4.0, 0.7], chunk=2)

# %% [markdown]
# Write `online_update(m, l, x)` on NumPy arrays. It returns the new pair (m, l):
#
# - `m` and `l` are (R,), one pair for each row. `x` (R, n) holds the next n columns of each row.
# - Do not write into the arguments.
# - The first call gets m = -inf and l = 0.
# - A row that consists of -inf only (a query that sees no key) has to keep exactly these values.
# - A chunk may be empty.
#
# <details><summary>Hint: rows of -inf</summary>
#
# -inf minus -inf is NaN. Subtract 0 instead of a maximum that is still -inf: e^(-inf - 0) is the 0 that you want.
# </details>


# %% nbgrader={"grade_id": "q2_1", "solution": true}
def online_update(m, l, x):
    """(m, l) of each row, (R,) each, after the columns x (R, n) as well."""
    ### BEGIN SOLUTION
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    finite = np.where(np.isneginf(new), 0.0, new)
    return new, np.exp(m - finite) * l + np.exp(x - finite[:, None]).sum(axis=1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_1_test", "grade": true, "points": 2}
def check_online(x, chunks, what):
    m, l, start = np.full(len(x), -np.inf), np.zeros(len(x)), 0
    for n in chunks:
        seen = measure.call(online_update, m, l, x[:, start : start + n])
        assert seen.changed == (), f"{what}: your function changed its argument {'mlx'[seen.changed[0]]}"
        said = f"{what}: online_update has to return a pair (m, l)"
        assert isinstance(seen.value, (tuple, list)) and len(seen.value) == 2, said
        m, l = (np.asarray(value) for value in seen.value)
        said = f"{what}: expected m and l of shape {(len(x),)}, got {m.shape} and {l.shape}"
        assert m.shape == l.shape == (len(x),), said
        start += n
    assert start == x.shape[1], "the chunks of this test cover the row"
    most = x.max(axis=1)
    assert_close(m, most, rtol=0, atol=0, name=f"m, {what}")
    relative = np.exp(x - np.where(np.isneginf(most), 0, most)[:, None])
    assert_close(l, relative.sum(axis=1), rtol=1e-12, atol=0, name=f"l, {what}")


rng = np.random.default_rng(0)
x = rng.standard_normal((3, 10))
check_online(x, (4, 4, 2), "chunks of 4")
check_online(x * 1000, (1,) * 10, "large values, one at a time")
check_online(np.sort(x, axis=1), (3, 3, 4), "ascending values")
check_online(-np.sort(-x, axis=1), (3, 3, 4), "descending values")
check_online(x - 1e5, (4, 4, 2), "values far below 0")
### BEGIN HIDDEN TESTS
R, n = measure.draw(3, 7), measure.draw(50, 80)
x = measure.rng().standard_normal((R, n))
for chunks in [(n,), (1, n - 1), (16, 16, n - 32)]:
    check_online(x, chunks, f"chunks {chunks}")
    check_online(np.sort(x, axis=1), chunks, f"ascending, chunks {chunks}")
    check_online(-np.sort(-x, axis=1), chunks, f"descending, chunks {chunks}")
    check_online(x + 1e5, chunks, f"far from 0, chunks {chunks}")
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_edges_test", "grade": true, "points": 2}
x = rng.standard_normal((3, 10))
check_online(x, (0, 6, 0, 4), "empty chunks")
x[0], x[1, :7] = -np.inf, -np.inf
check_online(x, (3, 3, 4), "rows of -inf")
### BEGIN HIDDEN TESTS
R, n = measure.draw(3, 7), measure.draw(50, 80)
x = measure.rng().standard_normal((R, n))
check_online(x, (0, 30, 0, n - 30, 0), "empty chunks")
x[0], x[1, :40], x[2, 20:] = -np.inf, -np.inf, -np.inf
check_online(x, (8, 8, 8, 8, 8, n - 40), "rows of -inf")
check_online(x * 1e4, (3, n - 3), "rows of -inf, large values")
### END HIDDEN TESTS

# %% [markdown]
# How often does the maximum grow? Of n random values, the k-th is the largest so far with probability 1/k. That makes
# about ln n times in all. In all the other updates the factor is one, and some kernels then skip the multiplication.
# Count with your function how often the maximum grows:

# %%
x = np.random.default_rng(1).standard_normal((1000, 4096))
rows = []
for chunk in (1, 16, 64, 256):
    m, l, grown = np.full(1000, -np.inf), np.zeros(1000), 0
    for start in range(0, 4096, chunk):
        previous = m
        m, l = online_update(m, l, x[:, start : start + chunk])
        grown += (m > previous).mean()
    rows.append((chunk, 4096 // chunk, f"{grown:.2f}"))
Table(("values in a chunk", "updates of a row", "updates in which the maximum grew"), rows)

# %% [markdown]
# ## 2.2 The weighted sum ({points q2_2})
#
# Attention does not return the weights. It returns the sum of the rows of V, weighted by them. This sum can be updated
# in the same way, as long as it is not divided by l yet:
#
# $$O' = e^{m - m'}\, O + \sum_j e^{x_j - m'}\, V_j.$$
#
# After the last chunk, O / l is the answer. This is the inner step of FlashAttention. Write `online_average(m, l, O, x,
# V)`. It works like `online_update`, and returns the new triple (m, l, O):
#
# - O is (R, d), one weighted sum for each row, not divided by l. The first call gets zeros.
# - V is (n, d): the rows that belong to the n columns of x.


# %% nbgrader={"grade_id": "q2_2", "solution": true}
def online_average(m, l, O, x, V):
    """(m, l, O) after the columns x (R, n) with their rows V (n, d); O (R, d) is not divided by l."""
    ### BEGIN SOLUTION
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    finite = np.where(np.isneginf(new), 0.0, new)
    p, shrink = np.exp(x - finite[:, None]), np.exp(m - finite)
    return new, shrink * l + p.sum(axis=1), shrink[:, None] * O + p @ V
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 2}
def check_average(x, V, chunks, what):
    rows, d = len(x), V.shape[1]
    m, l, O, start = np.full(rows, -np.inf), np.zeros(rows), np.zeros((rows, d)), 0
    for n in chunks:
        seen = measure.call(online_average, m, l, O, x[:, start : start + n], V[start : start + n])
        assert seen.changed == (), f"{what}: your function changed its argument {'mlOxV'[seen.changed[0]]}"
        assert isinstance(seen.value, (tuple, list)) and len(seen.value) == 3, f"{what}: return a triple (m, l, O)"
        m, l, O = (np.asarray(value) for value in seen.value)
        assert m.shape == l.shape == (rows,) and O.shape == (rows, d), f"{what}: m, l or O changed its shape"
        start += n
    most = x.max(axis=1)
    p = np.exp(x - np.where(np.isneginf(most), 0, most)[:, None])
    assert_close(m, most, rtol=0, atol=0, name=f"m, {what}")
    assert_close(l, p.sum(axis=1), rtol=1e-12, atol=0, name=f"l, {what}")
    assert_close(O, p @ V, rtol=1e-11, atol=1e-12, name=f"O before the division, {what}")


rng = np.random.default_rng(0)
x, V = rng.standard_normal((3, 10)), rng.standard_normal((10, 4))
check_average(x, V, (4, 4, 2), "chunks of 4")
check_average(np.sort(x, axis=1) * 1000, V, (1,) * 10, "ascending large values, one at a time")
check_average(x - 2.0**20, V, (4, 4, 2), "values far below 0")
### BEGIN HIDDEN TESTS
R, n, d = measure.draw(3, 7), measure.draw(50, 80), measure.draw(8, 12)
x, V = measure.rng().standard_normal((R, n)), measure.rng().standard_normal((n, d))
for chunks in [(n,), (1, n - 1), (16, 16, n - 32), (1,) * n]:
    check_average(np.sort(x, axis=1), V, chunks, f"ascending, chunks {chunks}")
    check_average(x * 1000, V, chunks, f"large values, chunks {chunks}")
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_edges_test", "grade": true, "points": 2}
x, V = rng.standard_normal((3, 10)), rng.standard_normal((10, 4))
check_average(x, V, (0, 6, 0, 4), "empty chunks")
x[0], x[1, :7] = -np.inf, -np.inf
check_average(x, V, (3, 3, 4), "rows of -inf")
### BEGIN HIDDEN TESTS
R, n, d = measure.draw(3, 7), measure.draw(50, 80), measure.draw(8, 12)
x, V = measure.rng().standard_normal((R, n)), measure.rng().standard_normal((n, d))
check_average(x, V, (0, 30, 0, n - 30, 0), "empty chunks")
x[0], x[1, :40], x[2, 20:] = -np.inf, -np.inf, -np.inf
check_average(x, V, (8, 8, 8, 8, 8, n - 40), "rows of -inf")
### END HIDDEN TESTS

# %% [markdown]
# ## 2.3 Bonus: combine two halves ({points b2_3})
#
# One worker does not have to go through all the keys. Two workers can take half of them each and combine their results.
# A model that generates text has a single query. Splitting its keys lets it use the whole GPU
# ([Flash-Decoding, 2023](https://pytorch.org/blog/flash-decoding/)). Write `combine(m1, l1, O1, m2, l2, O2)`. It
# returns the triple (m, l, O) of all keys from the triples of the two parts. m and l are (R,), and O is (R, d) and not
# divided by l. A part may have no keys.


# %% nbgrader={"grade_id": "b2_3", "solution": true}
def combine(m1, l1, O1, m2, l2, O2):
    """(m, l, O) of two parts together; m, l (R,), O (R, d), not divided by l."""
    ### BEGIN SOLUTION
    m = np.maximum(m1, m2)
    finite = np.where(np.isneginf(m), 0.0, m)
    first, second = np.exp(m1 - finite), np.exp(m2 - finite)
    return m, first * l1 + second * l2, first[:, None] * O1 + second[:, None] * O2
    ### END SOLUTION


# %% nbgrader={"grade_id": "b2_3_test", "grade": true, "points": 2}
def part_of(x, V):
    m = x.max(axis=1, initial=-np.inf)
    p = np.exp(x - np.where(np.isneginf(m), 0, m)[:, None])
    return m, p.sum(axis=1), p @ V


def check_combine(x, V, split, what):
    seen = measure.call(combine, *part_of(x[:, :split], V[:split]), *part_of(x[:, split:], V[split:]))
    triple = seen.value
    assert not seen.changed, f"{what}: your function changed an argument; make new arrays"
    assert isinstance(triple, (tuple, list)) and len(triple) == 3, f"{what}: return a triple (m, l, O)"
    for name, ours, exact in zip("mlO", triple, part_of(x, V), strict=True):
        assert_close(ours, exact, rtol=1e-11, atol=1e-12, name=f"{name}, {what}")


rng = np.random.default_rng(3)
x, V = rng.standard_normal((4, 12)), rng.standard_normal((12, 5))
check_combine(x, V, 5, "5 and 7 columns")
check_combine(x * 1000, V, 4, "large values, 4 and 8 columns")
### BEGIN HIDDEN TESTS
R, n, d = measure.draw(3, 7), measure.draw(12, 30), measure.draw(8, 12)
x, V = measure.rng().standard_normal((R, n)), measure.rng().standard_normal((n, d))
for split in (1, measure.draw(2, n - 2), n - 1):
    check_combine(x, V, split, f"{split} columns and {n - split}")
    check_combine(x * 1000, V, split, f"large values, {split} columns and {n - split}")
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b2_3_edges_test", "grade": true, "points": 1}
x, V = rng.standard_normal((4, 12)), rng.standard_normal((12, 5))
check_combine(x, V, 0, "no columns and 12")
x[0], x[1, :5] = -np.inf, -np.inf
check_combine(x, V, 5, "rows of -inf")
### BEGIN HIDDEN TESTS
R, n, d = measure.draw(3, 7), measure.draw(12, 30), measure.draw(8, 12)
x, V = measure.rng().standard_normal((R, n)), measure.rng().standard_normal((n, d))
check_combine(x, V, n, f"{n} columns and none")
x[0], x[1, :6], x[2, 6:] = -np.inf, -np.inf, -np.inf
check_combine(x, V, 6, "rows of -inf")
### END HIDDEN TESTS
