# %% [markdown]
# # Part 1. One operation, measured and counted
#
# ## 1.1 Matrix multiplication by hand (5 points)
#
# Nearly all the time of a language model goes into one operation. Each element of the result is a dot product:
#
# $$C_{ij} = \sum_{k=1}^{K} A_{ik} B_{kj}$$
#
# Write `gemm(A, B)` with **three loops**, one multiplication and one addition at a time. Do not call any library's
# product (`@`, `matmul`, `dot`, `einsum` ...) and do not multiply whole rows at once. This is judged by what *runs*:
# the runtime counts the products it launches, NumPy's are watched, and the steps of your loops are counted.
#
# `C` has the dtype and the device of `A`. If the inner sizes differ, raise `ValueError`.
#
# *Hint.* Reading a single element of a tensor costs about a microsecond, on a GPU several. `A.tolist()` gives you
# plain Python numbers in one go, and `rl.tensor(rows, dtype=A.dtype, device=A.device)` makes a tensor of nested
# lists.


# %% nbgrader={"grade_id": "q1_1", "solution": true}
def gemm(A, B):
    """A (N, K) times B (K, M) by three loops: (N, M), in A's dtype and on A's device."""
    ### BEGIN SOLUTION
    (N, K), (rows, M) = A.shape, B.shape
    if rows != K:
        raise ValueError(f"inner sizes differ: {K} and {rows}")
    a, b = A.tolist(), B.tolist()
    C = [[0.0] * M for _ in range(N)]
    for i in range(N):
        for j in range(M):
            total = 0.0
            for k in range(K):
                total += a[i][k] * b[k][j]
            C[i][j] = total
    return rl.tensor(C, dtype=A.dtype, device=A.device)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_test", "grade": true, "points": 3} rooflab={"seconds": 90}
def check_gemm(N, K, M, dtype="float32", tolerance=1e-4):
    rng = np.random.default_rng(N + 1000 * K + 1000000 * M)
    A = rl.tensor(rng.standard_normal((N, K)), dtype=dtype, device=device)
    B = rl.tensor(rng.standard_normal((K, M)), dtype=dtype, device=device)
    C = gemm(A, B)
    assert isinstance(C, (rl.Tensor, np.ndarray)), (
        f"gemm must return a tensor, not {type(C).__name__}"
    )
    assert tuple(C.shape) == (N, M), (
        f"({N}, {K}) x ({K}, {M}) must give ({N}, {M}), not {tuple(C.shape)}"
    )
    assert str(C.dtype).endswith(dtype), f"A is {dtype}, C is {C.dtype}"
    assert not isinstance(C, rl.Tensor) or C.device == A.device, (
        f"A is on {A.device}, C is on {C.device}"
    )
    expected = to_float64(A) @ to_float64(B)
    assert_close(C, expected, rtol=tolerance, atol=tolerance, name=f"({N}, {K}) x ({K}, {M})")


check_gemm(3, 4, 2)
check_gemm(64, 96, 33)
try:
    gemm(rl.ones((2, 3), device=device), rl.ones((2, 3), device=device))
except ValueError:
    pass
else:
    raise AssertionError("(2, 3) x (2, 3): the inner sizes differ, gemm must raise ValueError")
### BEGIN HIDDEN TESTS
check_gemm(37, 64, 51)
check_gemm(78, 56, 49)
check_gemm(1, 100, 1)
check_gemm(1, 100, 7)
check_gemm(7, 100, 1)
check_gemm(5, 1, 6)
check_gemm(11, 13, 9, dtype="float64", tolerance=1e-12)
check_gemm(11, 13, 9, dtype="bfloat16", tolerance=0.1)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_loops_test", "grade": true, "points": 2}
A, B = rl.randn(4, 60, device=device), rl.randn(60, 3, device=device)
seen = measure.loops(gemm, A, B)
assert seen.products == (), f"a library did the product: {', '.join(seen.products)}"
assert seen.steps >= 4 * 60 * 3, (
    "fewer Python steps than multiplications: write the three loops out"
)
### BEGIN HIDDEN TESTS
A, B = rl.randn(3, 250, device=device), rl.randn(250, 5, device=device)
seen = measure.loops(gemm, A, B)
assert seen.products == (), f"a library did the product: {', '.join(seen.products)}"
assert seen.steps >= 3 * 250 * 5, f"{seen.steps} Python steps for {3 * 250 * 5} MACs"
assert_close(seen.value, to_float64(A) @ to_float64(B), atol=1e-4, name="gemm under the tracer")
assert measure.count(gemm, A, B).macs == 0, "the runtime counted a product"
### END HIDDEN TESTS
