# %% [markdown]
# ## 1.3 Count the work: MACs (5 points)
#
# Write `gemm_mac(x, y)`: the number of multiply-accumulates in `x` (N, K) times `y` (K, M), as an `int`, from the
# shapes alone (do not run the product). It must serve GEMV as well, and every dtype.


# %% nbgrader={"grade_id": "q1_3", "solution": true}
def gemm_mac(x, y):
    """Multiply-accumulates of x (N, K) times y (K, M): an int."""
    ### BEGIN SOLUTION
    (N, K), M = x.shape, y.shape[1]
    return N * K * M
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_test", "grade": true, "points": 5}
def check_mac(N, K, M, expected, dtype="float32"):
    seen = measure.count(gemm_mac, rl.zeros((N, K), dtype=dtype), rl.zeros((K, M), dtype=dtype))
    assert is_count(seen.value), f"gemm_mac must return an int, not {seen.value!r}"
    assert seen.value == expected, (
        f"({N}, {K}) x ({K}, {M}) takes {expected} MACs, not {seen.value}"
    )
    assert seen.launches == 0, "count from the shapes; do not run anything"


check_mac(2, 3, 4, expected=24)
check_mac(512, 512, 512, expected=134217728)
A, B = rl.ones((512, 512)), rl.ones((512, 512))
with rl.count() as counted:
    rl.matmul(A, B)
assert counted.macs == 134217728, "the runtime counts the same"
### BEGIN HIDDEN TESTS
check_mac(512, 256, 512, expected=67108864)
check_mac(128, 256, 512, expected=16777216)
check_mac(64, 64, 1, expected=4096)
check_mac(1, 640, 2048, expected=1310720)
check_mac(7, 11, 13, expected=1001)
check_mac(7, 11, 13, expected=1001, dtype="bfloat16")
check_mac(7, 11, 13, expected=1001, dtype="float64")
check_mac(70000, 1, 70000, expected=4900000000)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.4 Count the traffic: bytes (5 points)
#
# Write `gemm_io(A, B)`: the bytes that a product of fp32 matrices has to move at the very least, as an `int`. Each
# input is read once, the output is written once; whatever is needed again stays on the chip. No program can move
# less, and a good one comes close for sizes that matter. These are called *compulsory* bytes.


# %% nbgrader={"grade_id": "q1_4", "solution": true}
def gemm_io(A, B):
    """Compulsory bytes of A (N, K) times B (K, M) in fp32, read and written: an int."""
    ### BEGIN SOLUTION
    (N, K), M = A.shape, B.shape[1]
    return 4 * (N * K + K * M + N * M)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_test", "grade": true, "points": 5}
def check_io(N, K, M, expected):
    seen = measure.count(gemm_io, rl.zeros((N, K)), rl.zeros((K, M)))
    assert is_count(seen.value), f"gemm_io must return an int, not {seen.value!r}"
    assert seen.value == expected, (
        f"({N}, {K}) x ({K}, {M}) in fp32 moves {expected} bytes, not {seen.value}"
    )
    assert seen.launches == 0, "count from the shapes; do not run anything"


check_io(2, 3, 4, expected=4 * (6 + 12 + 8))
check_io(512, 512, 512, expected=3145728)
A, B = rl.ones((512, 512)), rl.ones((512, 512))
with rl.count() as counted:
    rl.matmul(A, B)
assert counted.bytes_read + counted.bytes_written == 3145728, "the runtime counts the same"
### BEGIN HIDDEN TESTS
check_io(512, 256, 512, expected=2097152)
check_io(128, 256, 512, expected=917504)
check_io(64, 64, 1, expected=16896)
check_io(1, 640, 2048, expected=5253632)
check_io(7, 11, 13, expected=4 * (77 + 143 + 91))
check_io(70000, 1, 70000, expected=19600560000)
### END HIDDEN TESTS

# %% [markdown]
# Put side by side what you derived and what the runtime counted while the product ran. The counters count every
# launch, FLOP and byte of the runtime's own operations, exactly, the same on every machine and in every run. You will
# grade your own ideas with them for the rest of this course.

# %%
for N, K, M in [(512, 512, 512), (512, 256, 512), (128, 256, 512), (512, 512, 1)]:
    A, B = rl.ones((N, K), device=device), rl.ones((K, M), device=device)
    with rl.count() as counted:
        rl.matmul(A, B)
    print(
        f"({N}, {K}) x ({K}, {M}): {gemm_mac(A, B):>11,} MAC (counted {counted.macs:>11,}), ",
        end="",
    )
    print(f"{gemm_io(A, B):>9,} bytes (counted {counted.bytes_read + counted.bytes_written:>9,})")
