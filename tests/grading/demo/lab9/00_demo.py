# ---
# jupyter:
#   rooflab:
#     notebook: lab9_demo
# ---

# %% [markdown]
# # Lab 9: A lab to test the grading with
#
# It has one cell of each sort.

# %% tags=["setup"]
import numpy as np

SIDE = 4

# %% [markdown]
# ## Question 1: the triple loop
#
# $$C_{ij} = \sum_k A_{ik} B_{kj}$$
#
# Its work is $N K M$ steps, for $N < M$ too.


# %% nbgrader={"grade_id": "q1", "solution": true}
def gemm(a, b):
    """Product of a (N, K) and b (K, M)."""
    ### BEGIN SOLUTION
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for row in range(a.shape[0]):
        for column in range(b.shape[1]):
            for inner in range(a.shape[1]):
                out[row, column] += a[row, inner] * b[inner, column]
    return out
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_test", "grade": true, "points": 5} rooflab={"seconds": 8, "memory_gb": 2}
result = gemm(np.eye(SIDE), np.full((SIDE, 2), 3.0))
assert type(result) is np.ndarray and result.shape == (SIDE, 2), "the product has N rows and M columns"
assert np.array_equal(result, np.full((SIDE, 2), 3.0)), "the identity changes nothing"
### BEGIN HIDDEN TESTS
a, b = np.random.default_rng(20261).standard_normal((2, 5, 5))
hidden_result = gemm(a, b)
assert type(hidden_result) is np.ndarray and hidden_result.shape == (5, 5), "hidden: wrong type or shape"
np.testing.assert_allclose(hidden_result, a @ b, rtol=1e-12)
### END HIDDEN TESTS

# %%
print("a demonstration, which uses", gemm(np.eye(2), np.eye(2)))

# %% [markdown]
# ## Question 2.1: a number, and its use

# %% nbgrader={"grade_id": "q2_1", "solution": true}
corner = None  # your number
### BEGIN SOLUTION
corner = 50.39
### END SOLUTION

# %% nbgrader={"grade_id": "q2_1_test", "grade": true, "points": 3}
assert type(corner) is float, "corner is a float"
### BEGIN HIDDEN TESTS
assert abs(corner - 50.39) < 0.01, "hidden: wrong corner"
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "q2_1_why", "solution": true}
# Say why.
#
# ### BEGIN SOLUTION
# Because the ridge divides the peak by the bandwidth.
# ### END SOLUTION

# %% [markdown]
# ## Question 2.2: built on Question 1


# %% nbgrader={"grade_id": "q2_2", "solution": true}
def trace_of_product(a, b):
    """The trace of a times b, by way of gemm."""
    ### BEGIN SOLUTION
    return float(np.trace(gemm(a, b)))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 4} rooflab={"needs": ["q1"]}
assert trace_of_product(np.eye(3), np.eye(3)) == 3.0, "the identity of size 3"

# %% [markdown]
# ## Bonus


# %% nbgrader={"grade_id": "b2_2", "solution": true}
def refuse(x):
    """Raises ValueError for a negative x, returns x otherwise."""
    ### BEGIN SOLUTION
    if x < 0:
        raise ValueError("negative")
    return x
    ### END SOLUTION


# %% nbgrader={"grade_id": "b2_2_test", "grade": true, "points": 3}
assert refuse(2) == 2, "2 is not negative"
### BEGIN HIDDEN TESTS
try:
    refuse(-1)
except ValueError as error:
    assert "negative" in str(error), "the error says why"
else:
    raise AssertionError("hidden: -1 was taken")
### END HIDDEN TESTS
