# %% [markdown]
# # Part 1. One operation, measured and counted
#
# ## 1.1 Matrix multiplication by hand ({points q1_1})
#
# A language model spends most of its time in matrix multiplication. Each element of the result is a dot product:
#
# $$C_{ij} = \sum_{k=1}^{K} A_{ik} B_{kj}$$
#
# Write `gemm(A, B)` for `A` (N, K) and `B` (K, M), with **three loops** that do one multiplication and one addition at
# a time.
#
# - The result `C` is (N, M) and has the dtype and the device of `A`.
# - If the inner sizes differ, raise `ValueError`.
# - Do not write into the arguments.
# - Do not call a library's product (`@`, `matmul`, `dot`, `einsum` ...), and do not multiply whole rows at once. The
#   test *reads* your function and follows it step by step. It knows loops, arithmetic on single numbers, lists,
#   dicts, small classes without a base, `try`, generators that end, and the calls that convert or create matrices.
#
# <details><summary>Hint 1: reading elements is slow</summary>
#
# Reading one element of a tensor takes about a microsecond on a CPU and several on a GPU. Convert each matrix once,
# before the loops.
# </details>
# <details><summary>Hint 2: how to convert</summary>
#
# `A.tolist()` gives plain Python numbers in nested lists. `rl.tensor(rows, dtype=A.dtype, device=A.device)` makes a
# tensor from nested lists or a NumPy array. Do not use `rl.from_numpy`: the test cannot follow an array that shares its
# memory with a tensor.
# </details>


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
def check_gemm(N, K, M, dtype="float32", tolerance=1e-4, dtype_of_B=None):
    A = rl.tensor(measure.rng().standard_normal((N, K)), dtype=dtype, device=device)
    B = rl.tensor(measure.rng().standard_normal((K, M)), dtype=dtype_of_B or dtype, device=device)
    seen, sizes = measure.call(gemm, A, B), f"({N}, {K}) x ({K}, {M})"
    C = seen.value
    assert not seen.changed, f"{sizes}: gemm changed the elements of {'AB'[seen.changed[0]]}"
    assert isinstance(C, (rl.Tensor, np.ndarray)), f"{sizes}: gemm has to return a tensor, not a {type(C).__name__}"
    assert tuple(C.shape) == (N, M), f"{sizes}: expected shape {(N, M)}, got {tuple(C.shape)}"
    assert str(C.dtype).endswith(dtype), f"{sizes}: expected dtype {dtype}, that of A, got {C.dtype}"
    on_device = not isinstance(C, rl.Tensor) or C.device == A.device
    assert on_device, f"{sizes}: expected a result on {A.device}, where A is, got one on {C.device}"
    assert_close(C, to_float64(A) @ to_float64(B), rtol=tolerance, atol=tolerance, name=sizes)


def check_refused(a_shape, b_shape):
    said = f"{a_shape} x {b_shape}: the inner sizes differ, so gemm has to raise ValueError"
    try:
        gemm(rl.ones(a_shape, device=device), rl.ones(b_shape, device=device))
    except ValueError:
        return
    except Exception as error:
        raise AssertionError(f"{said}, not {type(error).__name__}") from None
    raise AssertionError(said)


check_gemm(3, 4, 2)
check_gemm(64, 96, 33)
check_gemm(1, 20, 5)
check_gemm(5, 20, 1)
check_gemm(6, 1, 4)
check_gemm(5, 5, 5)
check_gemm(4, 5, 6, dtype="float64", dtype_of_B="float32", tolerance=1e-12)
check_gemm(4, 5, 6, dtype="float64", tolerance=1e-12)
check_gemm(4, 5, 6, dtype="bfloat16", tolerance=0.1)
check_refused((2, 3), (2, 3))
### BEGIN HIDDEN TESTS
N, K, M = measure.draw(30, 39), measure.draw(45, 59), measure.draw(65, 79)  # no two of them are equal
check_gemm(N, K, M)
check_gemm(M, N, K)
check_gemm(1, 100, 1)
check_gemm(1, K, 7)
check_gemm(7, K, 1)
check_gemm(5, 1, 6)
for sizes in [(K, K, K), (N, K, K), (K, K, N), (K, N, K)]:
    check_gemm(*sizes)
check_gemm(11, 13, 9, dtype="float64", tolerance=1e-12)
check_gemm(11, 13, 9, dtype="bfloat16", tolerance=0.1)
check_refused((4, 3), (4, 5))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_loops_test", "grade": true, "points": 2}
def check_loops(N, K, M):
    A, B = rl.randn(N, K, device=device), rl.randn(K, M, device=device)
    seen = measure.loops(gemm, A, B)
    said = f"expected {N * K * M} multiplications of single numbers, got {seen.products}: write three loops"
    assert seen.products >= N * K * M, said
    assert_close(seen.value, to_float64(A) @ to_float64(B), atol=1e-4, name=f"({N}, {K}) x ({K}, {M})")
    assert measure.count(gemm, A, B).macs == 0, "a product of rooflab ran inside gemm: use only your loops"


check_loops(4, 60, 3)
### BEGIN HIDDEN TESTS
check_loops(measure.draw(2, 4), measure.draw(200, 300), measure.draw(5, 7))
### END HIDDEN TESTS
