# %% [markdown]
# ## b0.1 Contractions ({points b0_1})
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
# The three dots stand for any number of dimensions, including none. X and W are `rl` tensors of one dtype, and the
# result is an `rl` tensor of the same dtype. Do not write into X or W. `rl.einsum` is accepted too, but it hides which
# product a contraction is.
#
# - `contraction_flops(pattern, sizes)`: the FLOPs of any contraction of two inputs, an `int`. `pattern` is written as
#   above, without dots. An index is any letter from a to z. `sizes` maps each index to its size, and may have other
#   indices as well. Each combination of values of *all* indices of the pattern is one multiply-accumulate, 2 FLOPs.
#
# <details><summary>Hint</summary>
#
# `linear_layer` multiplies vectors of I elements, however they are arranged. `X @ M` works on the last dimension of X
# if M is a matrix.
# </details>


# %% nbgrader={"grade_id": "b0_1", "solution": true}
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


# %% nbgrader={"grade_id": "b0_1_test", "grade": true, "points": 2}
def check_contraction(function, pattern, X_shape, W_shape):
    X, W = (measure.rng().integers(-99, 100, shape).astype("float32") for shape in (X_shape, W_shape))
    seen = measure.count(function, rl.tensor(X, device=device), rl.tensor(W, device=device))
    got = seen.value
    assert isinstance(got, rl.Tensor), f"{function.__name__} must return an rl tensor, got a {type(got).__name__}"
    name = f"{function.__name__} of X {X_shape} and W {W_shape}"
    said = f"{name}: X and W are {X.dtype}, and the result is {got.dtype}: return the same dtype"
    assert str(got.dtype) == X.dtype.name, said
    assert_close(got, np.einsum(pattern, X, W), rtol=0, atol=0, name=name)
    written = measure.call(function, rl.tensor(X, device=device), rl.tensor(W, device=device)).changed
    assert not written, f"{name}: the function wrote into {' and '.join('XW'[place] for place in written)}"


def check_contractions(O, I, L):
    check_contraction(weights_times_vector, "i,oi->o", (I,), (O, I))
    check_contraction(vector_times_weights, "i,io->o", (I,), (I, O))
    check_contraction(sum_of_products, "oi,oi->", (O, I), (O, I))
    check_contraction(rows_times_vector, "li,i->l", (L, I), (I,))


check_contractions(3, 5, 2)
check_contractions(4, 4, 4)
check_contractions(1, 6, 1)
### BEGIN HIDDEN TESTS
small, middle, large = measure.draw(2, 4), measure.draw(5, 8), measure.draw(9, 12)
for O, I, L in [(middle, small, large), (small, large, middle), (large, 1, small), (1, 1, 1), (6, 6, 6)]:
    check_contractions(O, I, L)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b0_1_linear_test", "grade": true, "points": 1}
for leading in [(), (2,), (2, 3), (3, 1, 2)]:
    check_contraction(linear_layer, "...i,oi->...o", (*leading, 5), (4, 5))
check_contraction(linear_layer, "...i,oi->...o", (3, 3, 3), (3, 3))
### BEGIN HIDDEN TESTS
O, I = measure.draw(2, 4), measure.draw(5, 9)
for leading in [(), (measure.draw(2, 9),), (1, 1), (measure.draw(2, 6), 2, 3), (2, 1, 2, measure.draw(2, 6))]:
    check_contraction(linear_layer, "...i,oi->...o", (*leading, I), (O, I))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b0_1_flops_test", "grade": true, "points": 1}
def check_contraction_flops(pattern, flops, **sizes):
    got = contraction_flops(pattern, sizes)
    call = f"contraction_flops({pattern!r}, {sizes})"
    assert is_count(got), f"{call} must return a whole number (int), got {got!r}"
    said = f"{call} returned {got}, expected {flops}: 2 FLOPs for each combination of all indices in the pattern"
    assert got == flops, said


check_contraction_flops("i, o i -> o", 70, i=5, o=7)
check_contraction_flops("l i, o i -> l o", 48, l=2, i=3, o=4)
check_contraction_flops("o i, o i ->", 30, o=3, i=5)
check_contraction_flops("i, o i -> o", 70, i=5, o=7, b=3)
check_contraction_flops("a x, z x c -> a z", 240, a=2, x=3, z=4, c=5)  # c is in W alone
### BEGIN HIDDEN TESTS
letters = "abcdefghijklmnopqrstuvwxyz"
for _ in range(20):  # the indices of X alone, of both, and of W alone; about half of each are in the result
    indices = [letters[place] for place in measure.rng().permutation(26)[: measure.draw(4, 8)]]
    sizes = {index: measure.draw(2, 99) for index in indices}
    first, last = measure.draw(0, 2), measure.draw(0, 2)
    X_indices, W_indices = indices[: len(indices) - last], indices[first:]
    kept = [index for index in indices if measure.draw(0, 1)]
    pattern = f"{' '.join(X_indices)}, {' '.join(W_indices)} -> {' '.join(kept)}".rstrip()
    check_contraction_flops(pattern, 2 * math.prod(sizes.values()), **sizes, **{letters.upper()[0]: 3})
for b, h, q, k, d in draws((2, 99), (2, 99), (2, 99), (2, 99), (2, 99), count=3):
    check_contraction_flops("b q d, k d -> b q k", 2 * b * q * k * d, b=b, q=q, k=k, d=d)
    check_contraction_flops("b h q d, b h k d -> b h q k", 2 * b * h * q * k * d, b=b, h=h, q=q, k=k, d=d)
check_contraction_flops("i, i ->", 2 * (2**61 - 1), i=2**61 - 1)
check_contraction_flops("i, o i -> o", 2 * (2**61 - 1) * 1000003, i=2**61 - 1, o=1000003)
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
