# %% [markdown]
# # Part 0. Warming up
#
# ## 0.1 Contractions ({points q0_1})
#
# Nearly all work of a language model has one form: multiply pairs of elements, and sum over an index. This is a
# *contraction*. The notation of `einsum` names the indices of each input and of the result, and sums over every index
# that is missing in the result. Write these five with products and views (`@`, `*`, `sum`, `.T`, `.mT`, `reshape`):
#
# | function | contraction | X | W |
# |---|---|---|---|
# | `weights_times_vector(X, W)` | `i, o i -> o` | (I) | (O, I) |
# | `vector_times_weights(X, W)` | `i, i o -> o` | (I) | (I, O) |
# | `sum_of_products(X, W)` | `o i, o i ->` | (O, I) | (O, I) |
# | `rows_times_vector(X, W)` | `l i, i -> l` | (L, I) | (I) |
# | `linear_layer(X, W)` | `... i, o i -> ... o` | (..., I) | (O, I) |
#
# The three dots stand for any number of dimensions, including none. X and W are `rl` tensors, and so is the result.
# `rl.einsum` could do it too, but then you would not see which product it is.
#
# - `contraction_flops(pattern, sizes)`: the FLOPs of any contraction of two inputs, an `int`. `pattern` is written as
#   above, without dots, and `sizes` maps each index to its size. Each combination of values of *all* indices is one
#   multiply-accumulate, 2 FLOPs.
#
# <details><summary>Hint</summary>
#
# `linear_layer` multiplies vectors of I elements, however they are arranged. `X @ M` works on the last dimension of X
# if M is a matrix.
# </details>


# %% nbgrader={"grade_id": "q0_1", "solution": true}
def weights_times_vector(X, W):
    """`i, o i -> o`"""
    ### BEGIN SOLUTION
    return (W @ X.reshape(-1, 1)).reshape(-1)
    ### END SOLUTION


def vector_times_weights(X, W):
    """`i, i o -> o`"""
    ### BEGIN SOLUTION
    return (X.reshape(1, -1) @ W).reshape(-1)
    ### END SOLUTION


def sum_of_products(X, W):
    """`o i, o i ->`"""
    ### BEGIN SOLUTION
    return (X * W).sum()
    ### END SOLUTION


def rows_times_vector(X, W):
    """`l i, i -> l`"""
    ### BEGIN SOLUTION
    return (X * W).sum(-1)
    ### END SOLUTION


def linear_layer(X, W):
    """`... i, o i -> ... o`"""
    ### BEGIN SOLUTION
    return (X.reshape(-1, X.shape[-1]) @ W.T).reshape(*X.shape[:-1], W.shape[0])
    ### END SOLUTION


def contraction_flops(pattern, sizes):
    """FLOPs of a contraction like "l i, o i -> l o" with sizes like {"l": 2, "i": 3, "o": 4}: an int."""
    ### BEGIN SOLUTION
    return 2 * math.prod(sizes[index] for index in set(pattern) if index.isalpha())
    ### END SOLUTION


# %% nbgrader={"grade_id": "q0_1_test", "grade": true, "points": 2}
def check_contraction(function, pattern, X_shape, W_shape, seed=0):
    rng = np.random.default_rng(seed)
    X, W = (rng.integers(-4, 5, shape).astype("float32") for shape in (X_shape, W_shape))
    got = function(rl.tensor(X, device=device), rl.tensor(W, device=device))
    assert isinstance(got, rl.Tensor), f"{function.__name__} must return an rl tensor, got a {type(got).__name__}"
    name = f"{function.__name__} of X {X_shape} and W {W_shape}"
    assert_close(got, np.einsum(pattern, X, W), rtol=0, atol=0, name=name)


def check_contractions(O, I, L, seed):
    check_contraction(weights_times_vector, "i,oi->o", (I,), (O, I), seed)
    check_contraction(vector_times_weights, "i,io->o", (I,), (I, O), seed)
    check_contraction(sum_of_products, "oi,oi->", (O, I), (O, I), seed)
    check_contraction(rows_times_vector, "li,i->l", (L, I), (I,), seed)


check_contractions(3, 5, 2, seed=1)
check_contractions(4, 4, 4, seed=2)
check_contractions(1, 6, 1, seed=3)
### BEGIN HIDDEN TESTS
for seed, (O, I, L) in enumerate([(7, 2, 9), (1, 1, 1), (5, 1, 3), (2, 11, 6), (6, 6, 6)], 10):
    check_contractions(O, I, L, seed)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q0_1_linear_test", "grade": true, "points": 1}
for leading in [(), (2,), (2, 3), (3, 1, 2)]:
    check_contraction(linear_layer, "...i,oi->...o", (*leading, 5), (4, 5), seed=4)
check_contraction(linear_layer, "...i,oi->...o", (3, 3, 3), (3, 3), seed=5)
### BEGIN HIDDEN TESTS
for leading in [(), (7,), (1, 1), (5, 2, 3), (2, 1, 2, 4)]:
    check_contraction(linear_layer, "...i,oi->...o", (*leading, 6), (2, 6), seed=14)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q0_1_flops_test", "grade": true, "points": 1}
def check_contraction_flops(pattern, flops, **sizes):
    got = contraction_flops(pattern, sizes)
    call = f"contraction_flops({pattern!r}, {sizes})"
    assert is_count(got), f"{call} must return a whole number (int), got {got!r}"
    said = f"{call} returned {got}, expected {flops}: 2 FLOPs for each combination of all indices"
    assert got == flops, said


check_contraction_flops("i, o i -> o", 70, i=5, o=7)
check_contraction_flops("l i, o i -> l o", 48, l=2, i=3, o=4)
check_contraction_flops("o i, o i ->", 30, o=3, i=5)
### BEGIN HIDDEN TESTS
check_contraction_flops("b l i, o i -> b l o", 2 * 3 * 5 * 7 * 11, b=3, l=5, i=7, o=11)
check_contraction_flops("b h q d, b h k d -> b h q k", 2 * 3 * 5 * 7 * 11 * 13, b=3, h=5, q=7, k=11, d=13)
check_contraction_flops("i, i ->", 2 * (2**61 - 1), i=2**61 - 1)
check_contraction_flops("i, j -> i j", 2 * 1000003 * 999983, i=1000003, j=999983)
### END HIDDEN TESTS

# %% [markdown]
# These are the FLOPs of three contractions with the sizes of a layer of a small language model:

# %%
sizes = {"b": 8, "l": 1024, "i": 1600, "o": 6400}
rows = [
    (pattern, f"{contraction_flops(pattern, sizes):,}")
    for pattern in ("i, o i -> o", "l i, o i -> l o", "b l i, o i -> b l o")
]
Table(("contraction", "FLOPs"), rows, title="b = 8, l = 1024, i = 1600, o = 6400")

# %% [markdown]
# The number of FLOPs does not depend on how you write a contraction. The number of bytes that move does, and most of
# this lab is about bytes.
