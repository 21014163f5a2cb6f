# %% [markdown]
# ## 1.3 Count the work: MACs ({points q1_3})
#
# Write `gemm_mac(x, y)`: the number of multiply-accumulates in `x` (N, K) times `y` (K, M), as an `int`. Compute it
# from the shapes, without running the product. It has to work for GEMV and for every dtype.


# %% nbgrader={"grade_id": "q1_3", "solution": true} rooflab={"counters": false}
def gemm_mac(x, y):
    """Multiply-accumulates of x (N, K) times y (K, M): an int."""
    ### BEGIN SOLUTION
    (N, K), M = x.shape, y.shape[1]
    return N * K * M
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_test", "grade": true, "points": 3}
def check_mac(N, K, M, expected, dtype="float32"):
    seen = measure.count(gemm_mac, rl.zeros((N, K), dtype=dtype), rl.zeros((K, M), dtype=dtype))
    sizes = f"({N}, {K}) x ({K}, {M})"
    assert is_count(seen.value), f"{sizes}: gemm_mac has to return an int, not {seen.value!r}"
    hint = "How many does one element of C take?"
    said = f"{sizes}: expected {expected} MACs, got {seen.value}; a MAC is one multiplication with its addition. {hint}"
    assert seen.value == expected, said
    assert seen.launches == 0, "compute the number from the shapes, without running anything"


check_mac(2, 3, 4, expected=24)
check_mac(512, 512, 512, expected=134217728)
check_mac(10, 20, 30, expected=6000, dtype="float64")
A, B = rl.ones((512, 512)), rl.ones((512, 512))
with rl.count() as counted:
    rl.matmul(A, B)
assert counted.macs == 134217728, "the runtime counts the same"
### BEGIN HIDDEN TESTS
N, K, M = measure.draw(2, 29), measure.draw(30, 99), measure.draw(100, 600)  # no two of them are equal
check_mac(N, K, M, expected=N * K * M)
check_mac(K, M, N, expected=N * K * M)
check_mac(M, N, K, expected=N * K * M, dtype="bfloat16")
check_mac(N, M, K, expected=N * K * M, dtype="float64")
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_vector_test", "grade": true, "points": 2}
check_mac(20, 30, 1, expected=600)
check_mac(1, 30, 20, expected=600)
check_mac(60000, 1, 80000, expected=4800000000)  # more than 32 bits hold
### BEGIN HIDDEN TESTS
N, K, M = measure.draw(2, 99), measure.draw(100, 600), measure.draw(66_000, 80_000)
check_mac(N, K, 1, expected=N * K)
check_mac(1, K, N, expected=K * N)
check_mac(M, 1, M + 1, expected=M * (M + 1))  # more than 32 bits hold
### END HIDDEN TESTS

# %% [markdown]
# ## 1.4 Count the traffic: bytes ({points q1_4})
#
# Write `gemm_io(A, B)`: the bytes that a product of fp32 matrices has to move at least, as an `int`. Each input is read
# once, and the output is written once. Assume that data stays on the chip if it is needed again. These bytes are called
# *compulsory*. No program can move fewer, and for large sizes a good one comes close.


# %% nbgrader={"grade_id": "q1_4", "solution": true} rooflab={"counters": false}
def gemm_io(A, B):
    """Compulsory bytes of A (N, K) times B (K, M) in fp32, read and written: an int."""
    ### BEGIN SOLUTION
    (N, K), M = A.shape, B.shape[1]
    return 4 * (N * K + K * M + N * M)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_test", "grade": true, "points": 3}
def check_io(N, K, M, expected):
    seen = measure.count(gemm_io, rl.zeros((N, K)), rl.zeros((K, M)))
    sizes = f"({N}, {K}) x ({K}, {M}) in fp32"
    assert is_count(seen.value), f"{sizes}: gemm_io has to return an int, not {seen.value!r}"
    assert seen.value == expected, f"{sizes}: expected {expected} bytes, got {seen.value}; add up those of A, B and C"
    assert seen.launches == 0, "compute the number from the shapes, without running anything"


check_io(2, 3, 4, expected=104)
check_io(512, 512, 512, expected=3145728)
A, B = rl.ones((512, 512)), rl.ones((512, 512))
with rl.count() as counted:
    rl.matmul(A, B)
assert counted.bytes_read + counted.bytes_written == 3145728, "the runtime counts the same"
### BEGIN HIDDEN TESTS
N, K, M = measure.draw(2, 29), measure.draw(30, 99), measure.draw(100, 600)  # no two of them are equal
check_io(N, K, M, expected=4 * (N * K + K * M + N * M))
check_io(K, M, N, expected=4 * (N * K + K * M + N * M))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_4_vector_test", "grade": true, "points": 2}
check_io(20, 30, 1, expected=2600)
check_io(1, 30, 20, expected=2600)
check_io(60000, 1, 80000, expected=19200560000)
### BEGIN HIDDEN TESTS
N, K, M = measure.draw(2, 99), measure.draw(100, 600), measure.draw(66_000, 80_000)
check_io(N, K, 1, expected=4 * (N * K + K + N))
check_io(1, K, N, expected=4 * (K + K * N + N))
check_io(M, 1, M + 1, expected=4 * (M + (M + 1) + M * (M + 1)))
### END HIDDEN TESTS

# %% [markdown]
# Compare your formulas with what the runtime counts while the product runs. The runtime counts launches and memory
# as they happen. Each operation declares its work and its bytes, and rooflab's tests check these against formulas like
# yours. The counts of work and bytes are the same on every machine and in every run. You will use them to check your
# ideas throughout this course.

# %%
rows = []
for N, K, M in [(512, 512, 512), (512, 256, 512), (128, 256, 512), (512, 512, 1)]:
    A, B = rl.ones((N, K), device=device), rl.ones((K, M), device=device)
    with rl.count() as counted:
        rl.matmul(A, B)
    moved = counted.bytes_read + counted.bytes_written
    figures = (gemm_mac(A, B), counted.macs, gemm_io(A, B), moved)
    rows.append((f"({N}, {K}) x ({K}, {M})", *(f"{figure:,}" for figure in figures)))
Table(("product", "gemm_mac", "MACs counted", "gemm_io", "bytes counted"), rows)
