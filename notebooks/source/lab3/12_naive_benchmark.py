# %% [markdown]
# ## 1.3 The benchmark ({points q1_3})
#
# Memory grows with L². Does time grow in the same way? Write `benchmark_naive(L, d, batch, is_causal=False)`. It
# returns a dict with three figures of one size, in fp32 on `device`:
#
# - `"forward_ms"`: the median latency of `naive_attention`, on tensors that require gradients. Let `latency` warm up,
#   by one call or more;
# - `"backward_ms"`: the median latency of the backward pass *alone*, warmed up as well.
#   `rl.autograd.grad(o, (q, k, v), dO, retain_graph=True)` can be called many times after one forward pass;
# - `"held_bytes"`: the bytes that tensors hold just before the backward pass, above what they held when your function
#   was called. `rl.memory.allocated(device)` gives both numbers. Make the inputs inside the function, so that they
#   count.
#
# Running out of memory is a result as well. Catch `rl.OutOfMemoryError` and return the same dict with `None` for all
# three. Catch no other error, because any other is a mistake that you want to see. On a GPU take a hundred repeats. On
# a CPU take five, and two for long sequences.


# %% nbgrader={"grade_id": "q1_3", "solution": true}
def benchmark_naive(L, d, batch, is_causal=False):
    """{"forward_ms", "backward_ms", "held_bytes"} of naive_attention; None each when out of memory."""
    ### BEGIN SOLUTION
    before = rl.memory.allocated(device)
    repeat = 100 if device == "cuda" else 5 if L <= 1024 else 2
    try:
        q, k, v = (rl.randn(batch, L, d, device=device).requires_grad_() for _ in range(3))
        dO = rl.randn(batch, L, d, device=device)
        forward = latency(naive_attention, q, k, v, is_causal, warmup=2, repeat=repeat)
        o = naive_attention(q, k, v, is_causal)
        held = rl.memory.allocated(device) - before

        def back(dO):
            return rl.autograd.grad(o, (q, k, v), dO, retain_graph=True)

        backward = latency(back, dO, warmup=1, repeat=repeat)
    except rl.OutOfMemoryError:
        return {"forward_ms": None, "backward_ms": None, "held_bytes": None}
    return {"forward_ms": forward.median_ms, "backward_ms": backward.median_ms, "held_bytes": held}
    ### END SOLUTION


# %% [markdown]
# The test runs your function on a *virtual clock*. Each timed call runs once, and the test decides how long it took. So
# the test can check what you timed, and whether you returned the time that the clock gave. The speed of your machine
# does not matter.


# %% nbgrader={"grade_id": "q1_3_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
def benchmarked(L, d, batch, is_causal, **limits):
    seen = measure.timed(benchmark_naive, L, d, batch, *[True] * is_causal, watch=["naive_attention"], **limits)
    keys = {"forward_ms", "backward_ms", "held_bytes"}
    said = f"benchmark_naive has to return a dict with the keys {sorted(keys)}"
    assert isinstance(seen.value, dict) and set(seen.value) == keys, said
    return seen


def passes_of_naive(L, d, batch, is_causal):
    q, k, v = make_qkv(batch, L, L, d)
    return measure.gradients(naive_attention, q, k, v, is_causal, upstream=q)


def check_forward(L, d, batch, is_causal):
    seen, input = benchmarked(L, d, batch, is_causal), ((batch, L, d), "float32", True)
    forward = [call for call in seen.calls if call.ran == (("naive_attention", (input, input, input)),)]
    what = f"three fp32 tensors of shape {(batch, L, d)} that require gradients"
    assert forward, f"forward: no timed call of naive_attention on {what}"
    once = passes_of_naive(L, d, batch, is_causal).forward
    alone = [call for call in forward if call.did(once)]
    assert alone, f"forward: time naive_attention alone, with is_causal = {is_causal}" + seen.beside(once)
    said = f"forward_ms = {seen.value['forward_ms']} is not the median_ms of latency"
    assert measure.is_median(seen.value["forward_ms"], alone), said
    said = "forward_ms: warm up by one call or more, and take at least two samples"
    assert measure.is_steady(seen.value["forward_ms"], alone, samples=2), said


check_forward(48, 8, 2, False)
check_forward(32, 4, 3, True)
### BEGIN HIDDEN TESTS
check_forward(measure.draw(100, 130), 8, 2, False)
check_forward(measure.draw(80, 99), measure.draw(10, 20), 1, True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_3_backward_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
def check_backward(L, d, batch, is_causal):
    seen, once = benchmarked(L, d, batch, is_causal), passes_of_naive(L, d, batch, is_causal).backward
    backward = [call for call in seen.calls if not call.ran]
    assert backward, "backward: time rl.autograd.grad on a result that was computed before"
    alone = [call for call in backward if call.macs == once.macs and not call.uploaded_bytes]
    said = f"backward: one backward pass of naive_attention is {once.macs:,} MACs; time it alone, at this size"
    assert alone, said + seen.beside(once)
    said = f"backward_ms = {seen.value['backward_ms']} is not the median_ms of latency"
    assert measure.is_median(seen.value["backward_ms"], alone), said
    said = "backward_ms: warm up by one call or more, and take at least two samples"
    assert measure.is_steady(seen.value["backward_ms"], alone, samples=2), said


check_backward(48, 8, 2, False)
check_backward(32, 4, 3, True)
### BEGIN HIDDEN TESTS
check_backward(measure.draw(100, 130), 8, 2, False)
check_backward(measure.draw(80, 99), measure.draw(10, 20), 1, True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_3_held_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
def check_held(L, d, batch, is_causal):
    held = benchmarked(L, d, batch, is_causal).value["held_bytes"]
    beside = benchmarked(L, d, batch, is_causal, beside_bytes=2**20).value["held_bytes"]
    assert is_count(held) and is_count(beside), f"held_bytes has to be an int, got {held!r}"
    said = "held_bytes contains memory from before the call: subtract rl.memory.allocated(device) at the start"
    assert held == beside, said
    q, k, v = make_qkv(batch, L, L, d)
    saved = measure.gradients(naive_attention, q, k, v, is_causal, upstream=q).saved
    rest = held - sum(bytes for op, shape, dtype, bytes in saved if np.prod(shape) >= L * L)
    said = f"held_bytes = {held} is too small: q, k, v, the output and all saved tensors are held"
    assert rest >= 4 * 4 * batch * L * d, said
    said = f"held_bytes = {held} is too large: free what the backward pass does not need"
    assert rest <= 4 * (8 * d + 8) * batch * L, said


check_held(128, 8, 2, False)
check_held(100, 4, 3, True)
### BEGIN HIDDEN TESTS
check_held(measure.draw(140, 170), measure.draw(10, 20), 1, False)
check_held(measure.draw(125, 150), 8, 2, True)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_memory_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
nothing = {"forward_ms": None, "backward_ms": None, "held_bytes": None}
said = "L = 2^20: a score matrix of 32 TiB does not fit; expected None for all three"
assert benchmark_naive(2**20, 1, 8) == nothing, said
small = measure.timed(benchmark_naive, 128, 8, 2, False, spare_bytes=200_000)
assert small.value == nothing, f"200 kB of memory, L = 128: expected None for all three, got {small.value}"
tiny = measure.timed(benchmark_naive, 128, 8, 2, False, spare_bytes=3000)  # each input takes 8192 bytes
assert tiny.value == nothing, f"out of memory for the inputs: expected None for all three, got {tiny.value}"


def check_backward_fails(L):
    """With room for the forward pass, and not for the backward pass."""
    got = measure.timed(benchmark_naive, L, 4, 1, False, spare_bytes=4 * 4 * L * L + 100_000).value
    assert got == nothing, f"out of memory in the backward pass: expected None for all three, got {got}"


check_backward_fails(220)
try:
    got = benchmark_naive(16, "four", 2)
except Exception:
    got = "an error"
assert got != nothing, "benchmark_naive with a wrong argument: expected an error; catch rl.OutOfMemoryError alone"
row = benchmark_naive(48, 8, 2)  # on this machine's clock, where each call is repeated
assert isinstance(row, dict) and isinstance(row.get("forward_ms"), float), "after that, a small size has to work again"
### BEGIN HIDDEN TESTS
check_backward_fails(measure.draw(230, 270))
row = benchmark_naive(64, 8, 2)
assert isinstance(row, dict) and isinstance(row.get("forward_ms"), float), "after that, a small size has to work again"
### END HIDDEN TESTS

# %% [markdown]
# Here is the table for your machine, as far as it gets in ten seconds. It is causal, and the published figure for the
# A800 stands beside each of yours. A figure with "~" is predicted, not measured. A predicted time grows with L² from
# the time at the longest measured length. A predicted memory is the sum of a part that grows with L and a part that
# grows with L². Both parts are computed from the two longest measured lengths. A size can run out of memory although
# its forward pass fits, because the backward pass holds more matrices.

# %%
naive_sweep = sweep(lambda L, d: benchmark_naive(L, d, 8, is_causal=True), budget_s=10)
naive_sweep

# %%
measured, predicted = naive_sweep.values("forward_ms", 64), naive_sweep.predictions("forward_ms", 64)
published = {L: PUBLISHED_NAIVE[L, 64]["forward_ms"] for L in naive_sweep.lengths}
rl.plots.plot_length_sweep(
    {"here": measured, "A800, published": published},
    predicted={"here": predicted},
    title="naive_attention, forward, causal, B = 8, d = 64, fp32",
)

# %% [markdown]
# Look at the long sequences. Keep d and double L: time and memory grow by a factor of about four. Now keep L and go
# from d = 16 to d = 128: the products take eight times the arithmetic, but at L = 16384 the A800 needs only a quarter
# more time. So on that GPU the arithmetic is not what takes the time. (On a CPU arithmetic is slower, so d matters
# more.) You will count what does take the time in Part 7.
#
# ## 1.4 A rule that keeps only the weights ({points q1_4})
#
# The operations that rooflab recorded keep more than the gradient needs. If you write the backward rule yourself, you
# can keep less. The rule follows from that of softmax in 1.2. P is the matrix of weights, dO is the gradient that
# arrives from above, and ∘ multiplies element by element:
#
# $$dV = P^T dO, \qquad dP = dO\, V^T, \qquad dS_i = P_i \circ (dP_i - \textstyle\sum_j P_{ij}\, dP_{ij}),$$
#
# $$dQ = dS\, K / \sqrt d, \qquad dK = dS^T Q / \sqrt d.$$
#
# Complete the `rl.autograd.Function`. `forward` stores what `backward` needs with `ctx.save_for_backward(...)`.
# `backward` finds it in `ctx.saved_tensors`, in the same order. Save Q, K, V and the weights, and nothing else. Here
# `forward` may use `rl.softmax`, and there is no mask. `backward` writes the rule out. Do not write into Q, K, V or dO.
# You will write FlashAttention in the same form.


# %% nbgrader={"grade_id": "q1_4", "solution": true}
class LeanAttention(rl.autograd.Function):
    """Attention of Q (B, L_q, d) over K and V (B, L_kv, d) that keeps one score matrix: (B, L_q, d)."""

    @staticmethod
    def forward(ctx, Q, K, V):
        ### BEGIN SOLUTION
        weights = rl.softmax((Q @ K.mT) * Q.shape[-1] ** -0.5)
        ctx.save_for_backward(Q, K, V, weights)
        return weights @ V
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dO):
        ### BEGIN SOLUTION
        Q, K, V, weights = ctx.saved_tensors
        dP = dO @ V.mT
        dS = weights * (dP - (weights * dP).sum(-1, keepdim=True)) * Q.shape[-1] ** -0.5
        return dS @ K, dS.mT @ Q, weights.mT @ dO
        ### END SOLUTION


def lean_attention(q, k, v):
    return LeanAttention.apply(q, k, v)


# %% nbgrader={"grade_id": "q1_4_test", "grade": true, "points": 2}
def lean_gradients(B, L_q, L_kv, d):
    q, k, v = make_qkv(B, L_q, L_kv, d, dtype="float64")
    dO = make_qkv(B, L_q, 1, d, dtype="float64")[0]
    seen = measure.gradients(lean_attention, q, k, v, upstream=dO)
    saved_by = {op for op, shape, dtype, bytes in seen.saved}
    said = "LeanAttention.forward has to save what is kept, by ctx.save_for_backward, and rl's own rules nothing"
    assert len(saved_by) == 1, f"{said}; tensors were saved by {', '.join(sorted(saved_by)) or 'nothing'}"
    assert_close(seen.value, library_attention(q, k, v)[0], rtol=1e-9, atol=1e-9, name="O")
    for counted in (seen.forward, seen.backward):
        assert "attention" not in counted.by_op, "rl.attention ran: write the two passes out"
    ran = ready_made(seen.backward)
    assert not ran, f"{ran} ran in the backward pass: write the rule of softmax out"
    exact = library_gradients(q, k, v, dO)
    for name, ours, expected in zip(("dQ", "dK", "dV"), seen.gradients, exact, strict=True):
        assert isinstance(ours, rl.Tensor), f"{name} is missing: backward has to return dQ, dK, dV as rl tensors"
        assert_close(ours, expected, rtol=1e-8, atol=1e-9, name=f"{name} at L_q = {L_q}, L_kv = {L_kv}, d = {d}")
    return seen


def check_lean(*sizes):
    lean_gradients(*sizes)


check_lean(2, 10, 14, 6)
check_lean(1, 12, 5, 9)
check_unchanged(lean_attention, 10, 14)
### BEGIN HIDDEN TESTS
check_lean(3, measure.draw(12, 25), measure.draw(5, 10), measure.draw(4, 20))
check_lean(1, 1, 30, 4)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_4_saved_test", "grade": true, "points": 1}
def check_kept_lean(B, L, d):
    seen = lean_gradients(B, L, L, d)
    matrices = [shape for op, shape, dtype, bytes in seen.saved if int(np.prod(shape)) == B * L * L]
    assert matrices == [(B, L, L)], f"expected one saved matrix {(B, L, L)}, the weights; got {matrices}"
    kept = sum(bytes for op, shape, dtype, bytes in seen.saved)
    right = 8 * B * (L * L + 3 * L * d)
    assert kept == right, f"Q, K, V and the weights take {right} bytes, {kept} are saved: save nothing else"
    macs = 4 * B * L * L * d
    said = f"the backward pass takes {seen.backward.macs} MACs, expected {macs}: compute no product of the forward pass"
    assert seen.backward.macs == macs, f"{said} again"
    new = 8 * B * (L * L + L * d)
    said = f"the weights and O take {new} bytes, new tensors hold {seen.held_bytes}: keep no others, in ctx neither"
    assert seen.held_bytes < new + 4 * B * L, said


check_kept_lean(2, 24, 5)
### BEGIN HIDDEN TESTS
check_kept_lean(measure.draw(2, 4), measure.draw(30, 45), measure.draw(4, 12))
### END HIDDEN TESTS
