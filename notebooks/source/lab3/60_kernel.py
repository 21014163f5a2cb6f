# %% [markdown]
# # Part 6. One kernel ({points q6})
#
# Your array code uses a separate operation for every step of a tile. That makes about a dozen launches for each tile.
# In this part a single launch computes a whole forward pass. You write its kernel in CUDA C++, as text, and
# `rl.cuda.compile(source)` compiles it while the notebook runs.
#
# ## 6.1 An example: the weighted sum
#
# This kernel computes $O = W V$ for given weights W (B, L_q, L_kv). That is one half of what you need, and it shows the
# pattern.
#
# - The **grid** has (ceil(L_q / 64), B) blocks. `blockIdx.x` says which tile of queries, `blockIdx.y` which entry of
#   the batch.
# - A **block** has 64 threads. Each thread has one query and keeps its row of O in registers.
# - `__shared__` memory belongs to the block. All threads together copy a tile of V into it. `__syncthreads()` waits
#   until the tile is complete. Then each thread uses all of it. A second `__syncthreads()` waits until all are done,
#   before the next tile overwrites it.
# - **Every thread has to reach every `__syncthreads()`**, even a thread that has no query. That is why such a thread
#   does not return early.

# %%
WEIGHTED_SUM = r"""
constexpr int kHead = 64, kKeys = 32;

__global__ void weighted_sum(const float* W, const float* V, float* O, int L_q, int L_kv) {
  __shared__ float values[kKeys][kHead];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const bool has_query = row < L_q;
  W += ((size_t)blockIdx.y * L_q + row) * L_kv;
  V += (size_t)blockIdx.y * L_kv * kHead;

  float o[kHead];
  for (int c = 0; c < kHead; ++c) o[c] = 0;
  for (int start = 0; start < L_kv; start += kKeys) {
    const int count = min(kKeys, L_kv - start);
    for (int at = threadIdx.x; at < count * kHead; at += blockDim.x)   // neighbours read neighbours
      values[at / kHead][at % kHead] = V[(size_t)start * kHead + at];
    __syncthreads();
    for (int j = 0; j < count && has_query; ++j)
      for (int c = 0; c < kHead; ++c) o[c] += W[start + j] * values[j][c];
    __syncthreads();
  }
  if (!has_query) return;
  for (int c = 0; c < kHead; ++c) O[((size_t)blockIdx.y * L_q + row) * kHead + c] = o[c];
}
"""
W, V = rl.softmax(rl.randn(2, 100, 77, device=device)), rl.randn(2, 77, 64, device=device)
O = rl.zeros(2, 100, 64, device=device)
run = measure.cuda_kernel(WEIGHTED_SUM, "weighted_sum", grid=(2, 2), block=(64,), args=(W, V, O, 100, 77))
assert not run.findings, run.said
assert_close(run.args[2], W @ V, atol=1e-5, name="O")
print("The kernel ran, and its result is right.")

# %% [markdown]
# ## 6.2 FlashAttention, forward
#
# Write the kernel with this signature, for one head of size 64, contiguous tensors, in fp32:
#
# ```c++
# __global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* lse,
#                               int L_q, int L_kv, float scale, int is_causal)
# ```
#
# - Q and O are (B, L_q, 64), K and V are (B, L_kv, 64), and lse is (B, L_q), the log-sum-exp.
# - `scale` is 1/√64: the scores are `scale` times Q Kᵀ. `is_causal` is 0 or 1.
# - It is launched with a grid of (ceil(L_q / `FLASH_ROWS`), B) blocks of `FLASH_THREADS` threads.
# - `FLASH_ROWS` is at least 32: a block has at least 32 queries.
# - **Tiles.** A block reads each key and each value from global memory at most once, and all of its queries use what
#   was read. So tiles of K and V go through `__shared__` memory, and all threads of the block copy a part of each tile.
#   There is no dynamic shared memory. All `__shared__` arrays together take at most 48 KiB.
# - Scores never go to global memory. Each element of O and of lse is written once.
# - Every L_q and L_kv ≥ 1 has to work. When causal, L_q ≤ L_kv.
# - `INFINITY` is not known to every compiler of kernels. Start m at -3e38f.
#
# <details><summary>Hint 1: a plan</summary>
#
# Take one thread for each query, as in the example. It keeps its q and its o (64 numbers each), m and l in registers.
# The block copies 32 keys and 32 values at a time into shared memory.
# </details>
# <details><summary>Hint 2: the inner step</summary>
#
# For a tile of keys, compute the 32 scores of the query first and take their maximum. Then rescale l and o once. Then
# add the exponentials to l and the weighted values to o. This is `online_average` with R = 1.
# </details>
# <details><summary>Hint 3: causal</summary>
#
# Query `row` sees `row + 1 + L_kv - L_q` keys. The loop of the block has to go as far as its last query sees.
# </details>
#
# **How it is graded.** The kernel runs on the CPU, thread by thread, with a GPU and without. Its values are checked,
# and each access is checked before it happens. An index outside of an array, a race, a barrier that some threads miss,
# or shared memory that is read before it was written is reported with its line and its thread. What it reads and writes
# in global memory is counted. The kernel runs in a process of its own, so a fault does not end your notebook.

# %% nbgrader={"grade_id": "q6", "solution": true}
FLASH_ROWS = None  # queries of a block
FLASH_THREADS = None  # threads of a block
FLASH_CUDA = None  # the source, r"""..."""
### BEGIN SOLUTION
FLASH_ROWS, FLASH_THREADS = 64, 64
FLASH_CUDA = r"""
constexpr int kHead = 64, kKeys = 32;
constexpr float kLowest = -3e38f;

__global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* lse,
                              int L_q, int L_kv, float scale, int is_causal) {
  __shared__ float keys[kKeys][kHead], values[kKeys][kHead];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const bool has_query = row < L_q;
  Q += (size_t)blockIdx.y * L_q * kHead;
  K += (size_t)blockIdx.y * L_kv * kHead;
  V += (size_t)blockIdx.y * L_kv * kHead;

  float q[kHead], o[kHead], m = kLowest, l = 0;
  for (int c = 0; c < kHead; ++c) {
    q[c] = has_query ? Q[(size_t)row * kHead + c] * scale : 0;
    o[c] = 0;
  }
  const int last_row = min((int)((blockIdx.x + 1) * blockDim.x), L_q) - 1;
  const int seen = is_causal ? row + 1 + L_kv - L_q : L_kv;          // keys of this query
  const int end = is_causal ? last_row + 1 + L_kv - L_q : L_kv;      // and of the block's last one
  for (int start = 0; start < end; start += kKeys) {
    const int count = min(kKeys, L_kv - start);
    for (int at = threadIdx.x; at < count * kHead; at += blockDim.x) {
      keys[at / kHead][at % kHead] = K[(size_t)start * kHead + at];
      values[at / kHead][at % kHead] = V[(size_t)start * kHead + at];
    }
    __syncthreads();
    const int visible = min(count, seen - start);
    float s[kKeys], most = m;
    for (int j = 0; j < kKeys; ++j) {
      s[j] = j < visible ? 0 : kLowest;
      for (int c = 0; c < kHead && j < visible; ++c) s[j] += q[c] * keys[j][c];
      most = fmaxf(most, s[j]);
    }
    if (visible > 0) {
      const float shrink = expf(m - most);
      m = most;
      l *= shrink;
      for (int c = 0; c < kHead; ++c) o[c] *= shrink;
      for (int j = 0; j < visible; ++j) {
        const float p = expf(s[j] - m);
        l += p;
        for (int c = 0; c < kHead; ++c) o[c] += p * values[j][c];
      }
    }
    __syncthreads();
  }
  if (!has_query) return;
  for (int c = 0; c < kHead; ++c) O[((size_t)blockIdx.y * L_q + row) * kHead + c] = o[c] / l;
  lse[(size_t)blockIdx.y * L_q + row] = m + logf(l);
}
"""
### END SOLUTION


# %% nbgrader={"grade_id": "q6_test", "grade": true, "points": 2} rooflab={"seconds": 120}
def run_flash(B, L_q, L_kv, is_causal=False, scale=1.0, schedule="in order"):
    """One launch, whose values are right and in which nothing was found."""
    said = f"FLASH_CUDA has to be the source of the kernel, a str, not a {type(FLASH_CUDA).__name__}"
    assert isinstance(FLASH_CUDA, str), said
    assert is_count(FLASH_ROWS) and FLASH_ROWS >= 32, f"FLASH_ROWS has to be an int of at least 32, got {FLASH_ROWS!r}"
    said = f"FLASH_THREADS has to be an int from 1 to 1024, got {FLASH_THREADS!r}"
    assert is_count(FLASH_THREADS) and 0 < FLASH_THREADS <= 1024, said
    q, k, v = make_qkv(B, L_q, L_kv, 64, scale)
    if scale > 1:  # whole numbers, whose large scores are exact in fp32
        q, k = (rl.tensor(np.round(to_float64(x)), dtype="float32", device=device) for x in (q, k))
    like = {"device": device, "dtype": "float32"}
    O, lse = rl.full((B, L_q, 64), 1e30, **like), rl.full((B, L_q), 1e30, **like)
    run = measure.cuda_kernel(
        FLASH_CUDA,
        "flash_forward",
        grid=(-(-L_q // FLASH_ROWS), B),
        block=(FLASH_THREADS,),
        args=(q, k, v, O, lse, L_q, L_kv, 64**-0.5, int(is_causal)),
        schedule=schedule,
    )
    what = f"at B = {B}, L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}, inputs times {scale:g}"
    assert not run.findings, f"{what}: {run.said}"
    exact = library_attention(q, k, v, is_causal)
    for name, ours, expected in zip(("O", "lse"), run.args[3:5], exact, strict=True):
        left = np.argwhere(to_float64(ours) > 1e29)
        said = f"{name}[{', '.join(map(str, left[0]))}] {what} was not written" if len(left) else ""
        assert not said, f"{said}: does each of the {FLASH_ROWS} queries of a block have its thread?"
        assert_close(ours, expected, rtol=1e-4, atol=1e-4, name=f"{name} {what}")
    for name, before, after in zip("QKV", (q, k, v), run.args[:3], strict=True):
        assert_close(after, before, rtol=0, atol=0, name=f"{name}, which the kernel may not change,")
    return run


def check_kernels(*cases):
    """Check all cases."""
    for case in cases:
        run_flash(*case)


check_kernels((1, 130, 40), (2, 33, 70), (2, 1, 40), (1, 50, 50, False, 8.0), (1, 40, 1, False, 200.0))
### BEGIN HIDDEN TESTS
drawn = 1, measure.draw(66, 90), measure.draw(34, 60)
check_kernels((3, 1, 1), (1, 1, 333), (2, 65, 33), drawn, (1, 60, 80, False, 6.0, "reversed"))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q6_causal_test", "grade": true, "points": 2} rooflab={"seconds": 120}
check_kernels((1, 80, 80, True), (2, 33, 70, True), (1, 50, 50, True, 8.0))
### BEGIN HIDDEN TESTS
drawn = 1, measure.draw(34, 60), measure.draw(66, 90), True
check_kernels((3, 1, 1, True), (1, 37, 91, True), (1, 97, 97, True), drawn, (1, 60, 60, True, 6.0, "reversed"))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q6_traffic_test", "grade": true, "points": 2} rooflab={"seconds": 120}
def check_traffic(B, L_q, L_kv, is_causal=False):
    counts, row = run_flash(B, L_q, L_kv, is_causal).counts, 64 * 4  # bytes of a query, a key, a value
    blocks, what = B * -(-L_q // FLASH_ROWS), f"at B = {B}, L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}"
    keys = -(-L_kv // 64) * 64  # the last tile may be a whole one
    most = 2 * blocks * keys * row + 2 * B * L_q * row
    said = f"{what}, {blocks} blocks read {counts.bytes_read / row:.0f} rows of 64 numbers, where {most // row} suffice"
    assert counts.bytes_read <= most, f"{said}: a block reads each key and value once, into shared memory"
    made, most = counts.global_loads.requests, blocks * keys * 16 + B * L_q * 64
    said = f"{what}, {made} instructions of warps load from global memory, where {most} are more than enough"
    assert made <= most, f"{said}: all threads of a block copy a part of each tile"
    most = B * L_q * (row + 4)
    said = f"{what}, {counts.bytes_written} bytes were written to global memory, where O and lse have {most}"
    assert counts.bytes_written <= most, f"{said}: scores and sums stay in registers or in shared memory"


check_traffic(2, 70, 96)
### BEGIN HIDDEN TESTS
check_traffic(1, measure.draw(130, 150), measure.draw(34, 60))
check_traffic(1, measure.draw(34, 60), measure.draw(66, 90), True)
### END HIDDEN TESTS

# %% [markdown]
# ## 6.3 Bonus: 16 bits and a gradient ({points b6_3})
#
# Models are trained in 16 bits, and a kernel is of use in training only if a gradient goes back through it. Give your
# kernel both.
#
# - `HALF_CUDA`: the source of a kernel `flash_forward` as in 6.2, with the same parameters in the same order, but Q, K,
#   V and O are `half*`. The log-sum-exp stays `float*`. It is launched with the same grid, and the rules of 6.2 hold.
#   The source begins with `#include <cuda_fp16.h>`. `__half2float(x)` and `__float2half(x)` convert. Of the
#   three rules of Part 3 two hold here: m, l and the sums of O are floats, and O is rounded once, at the end. The other
#   one falls away: no tensor core multiplies P by V here, so P stays a float.
# - `FlashKernel`: an `rl.autograd.Function` whose forward pass is one launch of this kernel and nothing else, with the
#   float16 tensors that it was given. `forward` returns O in float16. `backward` returns dQ, dK and dV in float16. It
#   may use your `flash_backward` of Part 5: compute in float32, and round at the end.
#
# `module = rl.cuda.compile(HALF_CUDA)` compiles the source once, and
# `module["flash_forward"](grid, block, Q, K, V, O, lse, L_q, L_kv, scale, is_causal)` launches the kernel.
#
# **How it is graded.** The test launches the kernel of `HALF_CUDA` itself, as in 6.2. Then it calls `kernel_attention`
# and `kernel_gradients`, and looks at every launch that they make: at its arguments, at what it read and wrote, and at
# faults in it. Launches are run on the CPU for that, with a GPU and without. The backward pass is counted: rl's own
# attention and softmax may not compute it.

# %% nbgrader={"grade_id": "b6_3", "solution": true}
HALF_CUDA = None  # the source, r"""..."""
### BEGIN SOLUTION
HALF_CUDA = "#include <cuda_fp16.h>\n" + FLASH_CUDA.replace(
    "const float* Q, const float* K, const float* V, float* O", "const half* Q, const half* K, const half* V, half* O"
).replace("Q[(size_t)row * kHead + c] * scale", "__half2float(Q[(size_t)row * kHead + c]) * scale")
half_module = rl.cuda.compile(HALF_CUDA)


class Saved:
    """What `flash_backward` reads of a context."""

    def __init__(self, saved_tensors, is_causal):
        self.saved_tensors, self.is_causal = saved_tensors, is_causal


### END SOLUTION


class FlashKernel(rl.autograd.Function):
    """Attention of Q (B, L_q, 64) over K and V (B, L_kv, 64) in float16, by one launch: O (B, L_q, 64)."""

    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        ### BEGIN SOLUTION
        (B, L_q, d), L_kv = Q.shape, K.shape[1]
        O = rl.empty(Q.shape, dtype=Q.dtype, device=Q.device)
        lse = rl.empty((B, L_q), dtype="float32", device=Q.device)
        grid = -(-L_q // FLASH_ROWS), B
        half_module["flash_forward"](grid, FLASH_THREADS, Q, K, V, O, lse, L_q, L_kv, d**-0.5, int(is_causal))
        ctx.save_for_backward(Q, K, V, O, lse)
        ctx.is_causal = is_causal
        return O
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dO):
        ### BEGIN SOLUTION
        saved = Saved([x.to("float32") for x in ctx.saved_tensors], ctx.is_causal)
        return (*(x.to(dO.dtype) for x in flash_backward(saved, dO.to("float32"))), None)
        ### END SOLUTION


def kernel_attention(q, k, v, is_causal=False):
    """What users call: O (B, L_q, 64) in float16, differentiable."""
    return FlashKernel.apply(q, k, v, is_causal)


def kernel_gradients(q, k, v, dO, is_causal=False):
    """(dQ, dK, dV) of kernel_attention, from the gradient dO of its result."""
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    return rl.autograd.grad(kernel_attention(*inputs, is_causal), inputs, dO)


# %% nbgrader={"grade_id": "b6_3_test", "grade": true, "points": 2} rooflab={"needs": ["q3", "q5", "q6"]}
def run_half(what, q, k, v, is_causal):
    """One launch, on outputs that the test filled, in which nothing was found."""
    said = f"HALF_CUDA has to be the source of the kernel, a str, not a {type(HALF_CUDA).__name__}"
    assert isinstance(HALF_CUDA, str), said
    (B, L_q, d), L_kv = q.shape, k.shape[1]
    O = rl.full(q.shape, 6e4, device=device, dtype="float16")
    lse = rl.full((B, L_q), 1e30, device=device, dtype="float32")
    run = measure.cuda_kernel(
        HALF_CUDA,
        "flash_forward",
        grid=(-(-L_q // FLASH_ROWS), B),
        block=(FLASH_THREADS,),
        args=(q, k, v, O, lse, L_q, L_kv, d**-0.5, int(is_causal)),
    )
    assert not run.findings, f"{what}: {run.said}"
    exact = library_attention(q, k, v, is_causal)
    assert_close(run.args[4], exact[1], rtol=1e-5, atol=1e-4, name=f"lse {what}")  # m and l are floats
    assert_close(run.args[3], exact[0], rtol=1e-3, atol=1e-3, name=f"O {what}")  # and so are the sums
    return run


def check_half(B, L_q, L_kv, is_causal=False, offset=0.0):
    q, k, v = make_qkv(B, L_q, L_kv, 64, dtype="float16")
    v, what = v + offset, f"at B = {B}, L_q = {L_q}, L_kv = {L_kv}"
    seen = measure.launches(kernel_attention, q, k, v, is_causal)
    assert len(seen.launches) == 1, f"{what}: expected one launch of your kernel, got {len(seen.launches)}"
    run = seen.launches[0]
    assert not run.findings, f"{what}: {run.said}"
    said = f"{what}: a launch has the nine arguments of 6.2, in their order, the first five of them tensors"
    assert len(run.args) == 9 and all(hasattr(x, "dtype") for x in run.args[:5]), said
    for name, ours, given in zip("QKV", run.args[:3], (q, k, v), strict=True):
        assert str(ours.dtype) == "float16", f"{name} {what}: the kernel has to read float16, got {ours.dtype}"
        assert_close(ours, given, rtol=0, atol=0, name=f"{name} that the kernel got {what}")
    O = run.args[3]
    assert str(O.dtype) == "float16", f"{what}: the kernel has to write O in float16, got {O.dtype}"
    assert isinstance(seen.value, rl.Tensor), f"{what}: kernel_attention has to return a tensor"
    assert_close(seen.value, O, rtol=0, atol=0, name=f"the result of kernel_attention {what}, and O of the kernel")
    alone = run_half(what, q, k, v, is_causal)
    for name, ours, given in zip(("O", "lse"), run.args[3:5], alone.args[3:5], strict=True):
        assert_close(ours, given, rtol=0, atol=0, name=f"{name} of kernel_attention {what}, and of HALF_CUDA")
    read, written = run.counts.bytes_read, run.counts.bytes_written
    pairs = ("read", read, alone.counts.bytes_read), ("written", written, alone.counts.bytes_written)
    for way, bytes_moved, right in pairs:
        said = f"{what}, {bytes_moved} bytes were {way} in the launch of kernel_attention, expected {right}"
        assert bytes_moved == right, f"{said}: launch the kernel of HALF_CUDA, with the grid and the block of 6.2"
    row, blocks = 64 * 2, B * -(-L_q // FLASH_ROWS)  # bytes of a query, a key, a value
    most = 2 * blocks * -(-L_kv // 64) * 64 * row + 2 * B * L_q * row
    said = f"{what}, {blocks} blocks read {read / row:.0f} rows of 64 numbers"
    assert read <= most, f"{said}, where {most // row} suffice: use tiles, as in 6.2"
    once = B * L_q * (row + 4)
    assert written <= once, (
        f"{what}, {written} bytes were written: O and lse have {once}, each written once, at the end"
    )


check_half(2, 70, 96)
check_half(1, 65, 80, is_causal=True)
check_half(1, 33, 300, offset=4.0)
### BEGIN HIDDEN TESTS
check_half(1, measure.draw(66, 90), measure.draw(34, 60), offset=2.0)
check_half(2, measure.draw(34, 60), measure.draw(66, 90), is_causal=True)
check_half(1, 1, measure.draw(300, 400), offset=4.0)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b6_3_gradients_test", "grade": true, "points": 2} rooflab={"needs": ["q3", "q5", "q6"]}
def check_kernel_gradients(B, L_q, L_kv, is_causal=False):
    q, k, v = make_qkv(B, L_q, L_kv, 64, dtype="float16")
    dO, what = make_qkv(B, L_q, 1, 64, dtype="float16")[0], f"at L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}"
    counted = measure.gradients(kernel_attention, q, k, v, is_causal, upstream=dO, through=without_kernel)
    assert_own_work(counted.backward, f"the backward pass {what}")
    seen = measure.launches(kernel_gradients, q, k, v, dO, is_causal)
    assert len(seen.launches) == 1, f"{what}: expected one launch of your kernel, got {len(seen.launches)}"
    assert not seen.launches[0].findings, f"{what}: {seen.launches[0].said}"
    assert len(seen.value) == 3, f"{what}: expected the gradients dQ, dK, dV, got {len(seen.value)} gradients"
    exact = library_gradients(q, k, v, dO, is_causal)
    pairs = zip(("dQ", "dK", "dV") * 2, (*counted.gradients, *seen.value), exact * 2, strict=True)
    for name, ours, expected in pairs:
        assert isinstance(ours, rl.Tensor), f"{name} {what} is missing"
        assert str(ours.dtype) == "float16", f"{name} {what}: expected float16, got {ours.dtype}"
        assert_close(ours, expected, rtol=2e-3, atol=2e-3, name=f"{name} {what}")


check_kernel_gradients(2, 50, 70)
check_kernel_gradients(1, 40, 55, is_causal=True)
### BEGIN HIDDEN TESTS
check_kernel_gradients(1, measure.draw(66, 90), measure.draw(34, 60))
check_kernel_gradients(2, measure.draw(34, 60), measure.draw(66, 90), is_causal=True)
### END HIDDEN TESTS
