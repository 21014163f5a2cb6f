# %% [markdown]
# ## b1.3 Let a compiler do it
#
# Most kernels of a step do little work: an addition here, a square root there. Each of them reads its input from memory
# and writes its result back. `rl.compile` records a function and merges (*fuses*) chains of such ops into one kernel.
# Which launches and bytes does that save, and which stay?
#
# ### b1.3a Attention ({points b1_3a})
#
# Write attention in single ops, as the original does, and compile it. *Eager* means: as it is written, one op after the
# other.
#
# - `masked_attention(q, k, v, mask)`: q, k, v and the result are (B, L, d). `mask` is (L, L) and is added to the
#   scores. Use one op for each step: the product of q and kᵀ, times 1/√d, plus the mask; the maximum of each row;
#   subtract it; exponentials; their sum; divide by it; the product with v. Do not call `rl.softmax`,
#   `rl.log_softmax` or `rl.attention`. That makes nine launches.
# - `compiled_attention`: the compiled version of `masked_attention`
# - `time_attention(q, k, v, mask)`: the median latency in ms of `masked_attention` and of `compiled_attention` on these
#   four tensors, as `{"eager": ms, "compiled": ms}`. Time each with `rl.latency`. The first call with new shapes is
#   slow: it allocates memory, and if the function is compiled, the compiler runs. So give *both* calls of `rl.latency`
#   a `warmup` of at least 1.
# - `scores_eager`, `scores_compiled`: how many tensors of B x L x L numbers one forward pass writes, eager and
#   compiled. Ints.
#
# <details><summary>Hint</summary>
#
# `lab2_written.score_tensors(attention, B, L, d)` counts the tensors of B x L x L numbers that one call writes.
# `rl.latency(fn, *args, warmup=2).median_ms` is a median in ms.
# </details>


# %% nbgrader={"grade_id": "b1_3a", "solution": true}
def masked_attention(q, k, v, mask):
    """Attention of q, k, v (B, L, d) with an additive mask (L, L), in nine launches: (B, L, d)."""
    ### BEGIN SOLUTION
    scores = (q @ k.mT) * q.shape[-1] ** -0.5 + mask
    exponentials = rl.exp(scores - scores.amax(-1, keepdim=True))
    return (exponentials / exponentials.sum(-1, keepdim=True)) @ v
    ### END SOLUTION


def time_attention(q, k, v, mask):
    """{"eager": ms, "compiled": ms}: the median of one forward pass each."""
    ### BEGIN SOLUTION
    functions = {"eager": masked_attention, "compiled": compiled_attention}
    return {name: rl.latency(fn, q, k, v, mask, warmup=2, repeat=5).median_ms for name, fn in functions.items()}
    ### END SOLUTION


compiled_attention = None  # is called like masked_attention
scores_eager = None  # an int
scores_compiled = None  # an int
### BEGIN SOLUTION
compiled_attention = rl.compile(masked_attention)
scores_eager = lab2_written.score_tensors(masked_attention, 2, 64, 16)
scores_compiled = lab2_written.score_tensors(compiled_attention, 2, 64, 16)
### END SOLUTION


# %% nbgrader={"grade_id": "b1_3a_test", "grade": true, "points": 2}
def attention_operands(B, L, d, causal=True):
    q, k, v = (rl.tensor(measure.rng().standard_normal((B, L, d)), dtype="float32") for _ in "qkv")
    if causal:
        return q, k, v, rl.triu(rl.full((L, L), float("-inf")), 1)
    return q, k, v, rl.tensor(2 * measure.rng().standard_normal((L, L)), dtype="float32")


def check_attention(B, L, d, causal=True):
    q, k, v, mask = attention_operands(B, L, d, causal)
    right = library_attention(q, k, v, mask)
    case = f"B = {B}, L = {L}, d = {d}, {'a causal mask' if causal else 'a mask of random numbers'}"
    eager = measure.count(masked_attention, q, k, v, mask)
    assert callable(compiled_attention), "compiled_attention is what rl.compile returns"
    compiled_attention(*attention_operands(B, L, d, causal))  # compiles
    compiled = measure.count(compiled_attention, q, k, v, mask)
    for name, seen in {"masked_attention": eager, "compiled_attention": compiled}.items():
        assert isinstance(seen.value, rl.Tensor), f"{name}: return an rl tensor"
        assert_close(seen.value, right, rtol=1e-4, atol=1e-5, name=f"{name}, {case}")
        ran = seen.by_op.keys() & {"softmax", "log_softmax", "attention"}
        assert not ran, f"{name}: {', '.join(sorted(ran))} ran; use single ops"
        assert seen.by_op.get("matmul") == 2 and seen.macs == 2 * B * L * L * d, (
            f"{name}: expected two products, each of all scores"
        )
    assert eager.launches == 9, f"masked_attention, {case}: expected 9 launches, got {eager.launches}"
    assert compiled.launches <= 5, f"compiled_attention, {case}: expected at most 5 launches, got {compiled.launches}"


check_attention(2, 256, 8)
check_attention(1, 300, 16, causal=False)
### BEGIN HIDDEN TESTS
check_attention(3, measure.draw(150, 250), 4)
check_attention(2, measure.draw(300, 400), measure.draw(5, 12))
check_attention(2, measure.draw(200, 300), measure.draw(5, 12), causal=False)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b1_3a_time_test", "grade": true, "points": 1}
def check_times(B, L, d):
    operands = attention_operands(B, L, d)
    assert callable(compiled_attention), "compiled_attention is what rl.compile returns"
    compiled_attention(*operands)
    seen = measure.timed(time_attention, *operands)
    assert_keys("time_attention", seen.value, ("eager", "compiled"))
    for name, function in {"eager": masked_attention, "compiled": compiled_attention}.items():
        once = measure.count(function, *attention_operands(B, L, d))
        own = seen.calls_of(once)
        case = f"{name}, B = {B}, L = {L}, d = {d}"
        said = f"{case}: rl.latency has to time one call of the function on q, k, v and mask, and nothing else"
        assert own, said + seen.beside(once)
        ms = seen.value[name]
        assert measure.is_median(ms, own), f"{case}: {ms} is not the median in ms that rl.latency gave"
        warm = any(call.warmup and measure.is_median(ms, [call]) for call in own)
        assert warm, f"{case}: rl.latency had no warm-up call, so the slow first call is among the samples"


check_times(2, 44, 8)
### BEGIN HIDDEN TESTS
check_times(measure.draw(2, 4), measure.draw(46, 60), measure.draw(3, 12))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_3a_scores_test", "grade": true, "points": 1}
for name, got in {"scores_eager": scores_eager, "scores_compiled": scores_compiled}.items():
    assert is_count(got), f"{name} has to be an int, got {got!r}"
### BEGIN HIDDEN TESTS
for name, function, got in [
    ("eager", plain_attention, scores_eager),
    ("compiled", rl.compile(plain_attention), scores_compiled),
]:
    right = lab2_written.score_tensors(function, 2, 48, 8)
    assert got == right, f"scores_{name}: {got} is wrong; count with lab2_written.score_tensors"
### END HIDDEN TESTS

# %%
compile_rows = []
for L, d in [(256, 16), (256, 64), (512, 16), (512, 64)]:
    q, k, v = (rl.randn(4, L, d, device=device) for _ in "qkv")
    ms = time_attention(q, k, v, rl.triu(rl.full((L, L), float("-inf"), device=device), 1))
    compile_rows.append((L, d, f"{ms['eager']:.2f}", f"{ms['compiled']:.2f}", f"{ms['eager'] / ms['compiled']:.2f}"))
note = f"Tensors of L x L numbers: {scores_eager} eager, {scores_compiled} compiled."
Table(
    ("L", "d", "eager ms", "compiled ms", "speed-up"),
    compile_rows,
    f"Causal attention, B = 4, fp32, your {device}",
    note,
)

# %% [markdown]
# Compare the two columns of times and the note below the table. Fusing removes launches and some of the
# score-sized tensors, not all of them. So memory still grows with L², and the longest sequence that fits is only a
# little longer. Lab 3 repeats this at all 20 sizes of the original, and shows what does help.
#
# ### b1.3b The whole model ({points b1_3b})
#
# Now compile a whole language model and its backward pass. `lab2_written.WrittenOutLM` is a model whose norms and
# SwiGLU are written in single ops. It is a plain function of its tensors, so that it can be recorded: `lm(ids,
# *lm.tensors)` returns the logits. `lm.weights` are those of its tensors that require gradients.
#
# - `compile_lm(lm)`: returns a compiled function that is called like `lm`
# - `compare_lm(lm, ids)`: compare `lm` with what `compile_lm(lm)` returns. Call each function once, so that it is
#   compiled. Then count a second call and its backward pass, which starts from `logits.mean()`. The mean is no part of
#   the forward pass. Both functions use the same weights, so clear their gradients before each count: set
#   `weight.grad = None` for each of `lm.weights`. Return `{"eager": row, "compiled": row}`. A
#   row is a dict with four ints:
#     - `"forward"`, `"backward"`: the launches of each pass
#     - `"products"`: the launches of the op `matmul` in both passes together
#     - `"saved_bytes"`: the sum of `.bytes` over `rl.autograd.saved_tensors(logits)`, taken before the backward pass
# - `unchanged`: the keys of a row that are the same in both rows. A list.


# %% nbgrader={"grade_id": "b1_3b", "solution": true}
def compile_lm(lm):
    """A compiled function that is called like lm: (ids, *lm.tensors) -> logits."""
    ### BEGIN SOLUTION
    return rl.compile(lm.__call__)
    ### END SOLUTION


def compare_lm(lm, ids):
    """{"eager": row, "compiled": row}; a row has "forward", "backward", "products", "saved_bytes"."""
    ### BEGIN SOLUTION
    rows = {}
    for name, function in {"eager": lm, "compiled": compile_lm(lm)}.items():
        function(ids, *lm.tensors)
        with rl.count() as forward:
            logits = function(ids, *lm.tensors)
        saved = sum(one.bytes for one in rl.autograd.saved_tensors(logits))
        with rl.count() as backward:
            logits.mean().backward()
        for weight in lm.weights:
            weight.grad = None
        products = forward.by_op["matmul"].launches + backward.by_op["matmul"].launches
        rows[name] = {"forward": forward.launches, "backward": backward.launches, "products": products}
        rows[name]["saved_bytes"] = saved
    return rows
    ### END SOLUTION


unchanged = []  # of "forward", "backward", "products", "saved_bytes"
### BEGIN SOLUTION
unchanged = ["products"]
### END SOLUTION


# %% nbgrader={"grade_id": "b1_3b_test", "grade": true, "points": 2}
def check_compiled(n, B, L):
    weights, case = lab2_written.WrittenOutLM(n, L).weights, f"n = {n}, B = {B}, L = {L}"
    ids = rl.tensor(measure.rng().integers(0, 100, (B, L)))
    upstream = rl.tensor(measure.rng().standard_normal((B, L, 100)).astype("float32"))
    passes = [
        [
            measure.gradients(fn, calls, n, ids, *weights, upstream=upstream, through=lab2_written.run_lm)
            for calls in (1, 2)
        ]
        for fn in (compile_lm, lab2_written.as_written)
    ]
    for seen, right in zip(*passes, strict=True):
        assert_close(seen.value, right.value, rtol=0.0, atol=1e-4, name=f"{case}: the logits of the compiled model")
        for place, (own, expected) in enumerate(zip(seen.gradients, right.gradients, strict=True)):
            assert own is not None, f"{case}: the compiled model gives no gradient of weight {place}"
            atol, what = 1e-4 * (1 + float(abs(expected).max())), f"{case}: the gradient of weight {place}"
            assert_close(own, expected, rtol=0.0, atol=atol, name=what)
    compiled, eager = (lab2_written.steady(*both) for both in passes)
    for name in ("products", "MACs"):
        assert compiled[name] == eager[name], f"{case}: eager runs {eager[name]} {name}, compiled {compiled[name]}"
    for name in ("launches", "launches of the backward pass"):
        said = f"{case}: {compiled[name]} {name}, eager {eager[name]}; did the first call warn?"
        assert compiled[name] < 0.8 * eager[name], said


check_compiled(2, 2, 16)
### BEGIN HIDDEN TESTS
check_compiled(1, measure.draw(2, 4), measure.draw(18, 30))
check_compiled(measure.draw(3, 4), 1, measure.draw(5, 12))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b1_3b_compare_test", "grade": true, "points": 2}
def check_comparison(n, B, L, right):
    seen = measure.call(compare_lm, n, B, L, through=lab2_written.run_comparison).value
    assert_keys("compare_lm", seen, ("eager", "compiled"))
    logits = rl.zeros(B, L, 100)
    with rl.count() as mean:
        logits.mean()
    for which, row in right.items():
        assert_keys(f"compare_lm()[{which!r}]", seen[which], ("forward", "backward", "products", "saved_bytes"))
        for name, value in row.items():
            got = seen[which][name]
            if name == "backward" and got == value - mean.launches:
                continue  # the mean was computed before the count
            hint = "; were gradients of an earlier pass still there?" if name == "backward" and got > value else ""
            if name == "forward" and got == value + mean.launches:
                hint = "; compute logits.mean() after this count"
            assert got == value, f"compare_lm, n = {n}, {which}: expected {name} = {value}, got {got}{hint}"


counts = {
    "eager": {"forward": 78, "backward": 164, "products": 57, "saved_bytes": 282624},
    "compiled": {"forward": 58, "backward": 95, "products": 57, "saved_bytes": 229376},
}
check_comparison(2, 2, 16, counts)
known = {"forward", "backward", "products", "saved_bytes"}
is_list = isinstance(unchanged, (list, tuple)) and set(unchanged) <= known
assert is_list, f"unchanged has to be a list of keys of a row, got {unchanged!r}"
### BEGIN HIDDEN TESTS
n, B, L = measure.draw(1, 3), measure.draw(1, 3), measure.draw(5, 15)
lm, ids = lab2_written.WrittenOutLM(n, L), rl.zeros(B, L, dtype="int64")
functions = {"eager": lm, "compiled": rl.compile(lm.__call__)}
check_comparison(n, B, L, {which: counted_passes(fn, lm, ids) for which, fn in functions.items()})
assert set(unchanged) == {"products"}, "unchanged: compare the two rows of compare_lm"
### END HIDDEN TESTS

# %%
lm = lab2_written.WrittenOutLM(num_layers=4, length=64)
compared = compare_lm(lm, rl.randint(0, 100, (4, 64)))
lm_rows = [(which, *row.values()) for which, row in compared.items()]
head = ("", "launches, forward", "launches, backward", "products", "saved bytes")
Table(head, lm_rows, "A model of 4 layers, written out in single operations")

# %% [markdown]
# R compiled the large models. A step of xl at L = 128 went from 0.5456 s to 0.5079 s, and from 34.26 GiB to 32.50 GiB.
# A step of the 2.7B model went from 0.8397 s to 0.8099 s. That is seven and four per cent of the time. Can you explain
# from your two rows why the gain is small?
