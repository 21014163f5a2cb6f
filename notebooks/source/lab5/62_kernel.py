# %% [markdown]
# ## 6.2 In CUDA C++ ({points q6_2})
#
# The kernel below was shown in a lecture. It computes the right value but never stores it. No one noticed, because a
# kernel that does nothing is very fast. It also has a second error.
#
# - `GELU_CUDA`: repair the kernel. It is launched with 1024 threads per block and the number of blocks that you give.
#   Thread number i reads `x[i]` and writes `y[i]` if element i exists, and nothing else. It needs no `#include`. On a
#   GPU it is compiled by NVRTC, which may not know `int64_t`, so use `int` or `long long`.
# - `gelu_blocks(n)`: how many blocks of 1024 threads n elements need (n ≥ 1)
#
# **How it is graded.** The kernel runs on the CPU, thread by thread, with a GPU and without, also with n that is not a
# multiple of 1024. Each access is checked before it happens, and the writes are counted.

# %% nbgrader={"grade_id": "q6_2", "solution": true}
GELU_CUDA = r"""
extern "C" __global__ void gelu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) {
    float xi = x[i];
    float yi = 0.5f * xi * (1.0f + tanhf(0.79788456f * (xi + 0.044715f * xi * xi * xi)));
  }
}
"""
### BEGIN SOLUTION
GELU_CUDA = r"""
extern "C" __global__ void gelu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float xi = x[i];
    y[i] = 0.5f * xi * (1.0f + tanhf(0.79788456f * (xi + 0.044715f * xi * xi * xi)));
  }
}
"""
### END SOLUTION


def gelu_blocks(n):
    """Blocks of 1024 threads for n elements: an int."""
    ### BEGIN SOLUTION
    return -(-n // 1024)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q6_2_blocks_test", "grade": true, "points": 1}
blocks_hint = "every element needs a thread, and every block must have at least one element"
assert_counts(gelu_blocks, {(1,): 1, (1024,): 1, (1025,): 2, (5000,): 5}, blocks_hint)
### BEGIN HIDDEN TESTS
assert_counts(gelu_blocks, {(1023,): 1, (10**6 + 1,): 977}, blocks_hint)
blocks = measure.draw(2, 10**3)
assert_counts(gelu_blocks, {(1024 * blocks,): blocks, (1024 * blocks + 1,): blocks + 1}, blocks_hint)
assert_counts(gelu_blocks, {(1024 * blocks - measure.draw(1, 1023),): blocks}, blocks_hint)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q6_2_test", "grade": true, "points": 2} rooflab={"seconds": 90}
def check_gelu_kernels(*sizes):
    for n in sizes:
        blocks = gelu_blocks(n)
        assert is_count(blocks) and blocks > 0, f"gelu_blocks({n}) must return a positive whole number, got {blocks!r}"
        values = measure.rng().standard_normal(n).astype("float32") * 3
        x, y = rl.tensor(values, device=device), rl.full((n,), -77.0, dtype="float32", device=device)
        run = measure.cuda_kernel(GELU_CUDA, "gelu", grid=blocks, block=1024, args=(x, y, n))
        assert not run.findings, f"n = {n}: {run.said}"
        assert_close(run.args[1], library_gelu(values), rtol=1e-5, atol=1e-5, name=f"y for n = {n}")
        assert_close(run.args[0], values, rtol=0, atol=0, name=f"x after the kernel for n = {n}")
        loads, stores = run.counts.global_loads, run.counts.global_stores
        assert loads.threads == n, f"n = {n}: {loads.threads} elements were read, and thread i has to read x[i], once"
        said = f"n = {n}: {stores.threads} elements were written, and thread i has to write y[i], once"
        assert stores.threads == n, said
        said = f"n = {n}: the elements were written in {stores.requests} instructions of warps of 32 threads"
        assert stores.requests == -(-n // 32), f"{said}: each thread has to write one element"
        said = f"n = {n}: the writes touch {stores.sectors} sectors of 32 bytes, where {-(-n // 8)} suffice"
        assert stores.sectors == -(-n // 8), f"{said}: neighbours have to write neighbours"
    short = (np.zeros(1500, "float32") for _ in "xy")  # element 1500 is that of thread 476 in block 1
    lab7.assert_place(GELU_CUDA, "gelu", 3, 1024, *short, 3000, place=(1, 0), warp=476 // 32)


said = f"GELU_CUDA must be the source of the kernel, a string, got a {type(GELU_CUDA).__name__}"
assert isinstance(GELU_CUDA, str), said
check_gelu_kernels(1, 1024, 1025, 2500)
### BEGIN HIDDEN TESTS
check_gelu_kernels(1, measure.draw(2, 60), 1023, measure.draw(4200, 5000))
### END HIDDEN TESTS
