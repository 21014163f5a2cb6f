# %% [markdown]
# # 1.3 Let a compiler do it
#
# Most launches of a step do little work each: an addition here, a root there, each with a trip to memory. `rl.compile`
# records a function, and runs chains of such operations as one kernel. What does it gain, and what does it leave alone?
#
# ## 1.3a Attention ({points q1_3a})
#
# Write attention in single operations, as the original assignment does, and compile it.
#
# - `masked_attention(q, k, v, mask)`: q, k, v (B, L, d), and `mask` (L, L), which is added: the product of q and kᵀ,
#   divided by √d, plus the mask; the maximum of each row; exponentials of what is left; their sum; the quotient; the
#   product with v. Do not call `rl.softmax` or `rl.attention`. That is nine launches.
# - `compiled_attention`: the same, compiled
# - `time_attention(L, d, batch)`: the median latency in ms of one causal forward pass of both, on `device`, as
#   `{"eager", "compiled"}`. The first call with new shapes compiles. That time must not be in a sample.
# - `scores_eager`, `scores_compiled`: how many tensors of B x L x L numbers does one forward pass write, eager and
#   compiled?
#
# <details><summary>Hint</summary>
#
# `lab2_written.score_tensors(attention, B, L, d)` counts tensors of that size. `rl.latency(fn, *args, warmup=2)`.
# </details>


# %% nbgrader={"grade_id": "q1_3a", "solution": true}
def masked_attention(q, k, v, mask):
    """Attention in nine launches: (B, L, d)."""
    ### BEGIN SOLUTION
    scores = (q @ k.mT) * q.shape[-1] ** -0.5 + mask
    exponentials = rl.exp(scores - scores.amax(-1, keepdim=True))
    return (exponentials / exponentials.sum(-1, keepdim=True)) @ v
    ### END SOLUTION


compiled_attention = None  # called as masked_attention
scores_eager = None
scores_compiled = None
### BEGIN SOLUTION
compiled_attention = rl.compile(masked_attention)
scores_eager = lab2_written.score_tensors(masked_attention, 2, 64, 16)
scores_compiled = lab2_written.score_tensors(compiled_attention, 2, 64, 16)
### END SOLUTION


def time_attention(L, d, batch):
    """{"eager": ms, "compiled": ms}: medians of one causal forward pass."""
    ### BEGIN SOLUTION
    q, k, v = (rl.randn(batch, L, d, device=device) for _ in "qkv")
    mask = rl.triu(rl.full((L, L), float("-inf"), device=device), 1)
    functions = {"eager": masked_attention, "compiled": compiled_attention}
    return {name: rl.latency(fn, q, k, v, mask, warmup=2, repeat=5).median_ms for name, fn in functions.items()}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3a_test", "grade": true, "points": 2}
def attention_operands(B, L, d):
    rng = np.random.default_rng(B + 10 * L + 1000 * d)
    q, k, v = (rl.tensor(rng.standard_normal((B, L, d)), dtype="float32") for _ in "qkv")
    return q, k, v, rl.triu(rl.full((L, L), float("-inf")), 1)


def check_attention(B, L, d):
    q, k, v, mask = attention_operands(B, L, d)
    right = looks.attention_of(q, k, v, mask)
    case = f"B = {B}, L = {L}, d = {d}"
    eager = measure.count(masked_attention, q, k, v, mask)
    compiled_attention(q, k, v, mask)
    compiled = measure.count(compiled_attention, q, k, v, mask)
    for name, seen in {"masked_attention": eager, "compiled_attention": compiled}.items():
        assert_close(seen.value, right, rtol=1e-4, atol=1e-5, name=f"{name}, {case}")
        assert not seen.by_op.keys() & {"softmax", "attention"}, f"{name}: write the softmax out"
        assert seen.by_op.get("matmul") == 2 and seen.macs == 2 * B * L * L * d, f"{name}: two whole products"
    assert eager.launches == 9, f"masked_attention, {case}: {eager.launches} launches, not 9"
    assert compiled.launches <= 5, f"compiled_attention, {case}: {compiled.launches} launches, and 5 are enough"


check_attention(2, 256, 8)
check_attention(1, 300, 16)
### BEGIN HIDDEN TESTS
check_attention(3, 200, 4)
check_attention(2, 400, 8)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_3a_time_test", "grade": true, "points": 1}
def check_times(L, d, batch):
    seen = measure.timed(time_attention, L, d, batch, watch=["masked_attention"])
    assert_keys("time_attention", seen.value, ("eager", "compiled"))
    for name in ("eager", "compiled"):
        fused = name == "compiled"
        own = [call for call in seen.calls if call.macs == 2 * batch * L * L * d and ("fused" in call.by_op) == fused]
        assert own, f"{name}, L = {L}, d = {d}: time one forward pass, and nothing else"
        warm = all(call.warmup or not call.ran for call in own)
        assert warm or not fused, "the first sample contains the time to compile"
        assert measure.is_median(seen.value[name], own), f"{name}: this is not the median that latency gave, in ms"


check_times(44, 8, 2)
### BEGIN HIDDEN TESTS
check_times(52, 4, 3)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3a_scores_test", "grade": true, "points": 1}
assert is_count(scores_eager) and is_count(scores_compiled), "scores_eager and scores_compiled are whole numbers"
### BEGIN HIDDEN TESTS
for name, function, got in [
    ("eager", lab2_written.plain_attention, scores_eager),
    ("compiled", rl.compile(lab2_written.plain_attention), scores_compiled),
]:
    right = lab2_written.score_tensors(function, 2, 48, 8)
    assert got == right, f"scores_{name}: count the tensors of B L² numbers that one forward pass writes"
### END HIDDEN TESTS

# %%
compile_rows = []
for L, d in [(256, 16), (256, 64), (512, 16), (512, 64)]:
    ms = time_attention(L, d, 4)
    compile_rows.append((L, d, f"{ms['eager']:.2f}", f"{ms['compiled']:.2f}", f"{ms['eager'] / ms['compiled']:.2f}"))
note = f"Tensors of L x L numbers: {scores_eager} eager, {scores_compiled} compiled."
Table(
    ("L", "d", "eager ms", "compiled ms", "speed-up"),
    compile_rows,
    f"Causal attention, B = 4, fp32, your {device}",
    note,
)

# %% [markdown]
# The two products stay, and so does a matrix of L x L numbers between them. So memory still grows as L², and a length
# that did not fit before will not fit now. Lab 3 takes all 20 settings of the original, and shows what does help.
#
# ## 1.3b The whole model ({points q1_3b})
#
# `lab2_written.WrittenOutLM` is a language model in single operations: a function of token ids and of tensors, so that
# it can be recorded. `lm(ids, *lm.tensors)` gives the logits, and `lm.weights` are those of the tensors that require
# grad.
#
# - `compile_lm(lm)`: a function that is called as `lm` is, and runs compiled
# - `compare_lm(lm, ids)`: for `lm` itself and for what `compile_lm` returns, count a *second* call and its backward
#   pass (from the mean of the logits), and return `{"eager": row, "compiled": row}`. A row is `{"forward", "backward",
#   "products", "saved_bytes"}`: the launches of each pass, the launches of the op `matmul` in both together, and the
#   bytes of `rl.autograd.saved_tensors(logits)`.
# - `unchanged`: a list of those keys of a row that the compiler leaves as they are


# %% nbgrader={"grade_id": "q1_3b", "solution": true}
def compile_lm(lm):
    """A compiled function that is called as lm is."""
    ### BEGIN SOLUTION
    return rl.compile(lm.__call__)
    ### END SOLUTION


def compare_lm(lm, ids):
    """{"eager", "compiled"}: {"forward", "backward", "products", "saved_bytes"} of a second call each."""
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


# %% nbgrader={"grade_id": "q1_3b_test", "grade": true, "points": 2}
def check_compiled(n, B, L):
    seen = measure.observed(compile_lm, "lab2_written.look_at_passes", n, B, L)
    eager = lab2_written.look_at_passes(lambda lm: lm, n, B, L)
    case = f"n = {n}, B = {B}, L = {L}"
    assert seen["logits_off"] < 1e-4, f"{case}: the compiled model gives other logits"
    assert seen["gradients_off"] < 1e-4, f"{case}: the compiled model gives other gradients"
    for name in ("products", "product_flops"):
        assert seen[name] == eager[name], f"{case}: {name} are {seen[name]}, and {eager[name]} without the compiler"
    before, after = eager["forward"] + eager["backward"], seen["forward"] + seen["backward"]
    assert after < 0.8 * before, f"{case}: both passes have {after} launches, and {before} without the compiler"


check_compiled(2, 2, 16)
### BEGIN HIDDEN TESTS
check_compiled(1, 3, 24)
check_compiled(4, 1, 9)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_3b_compare_test", "grade": true, "points": 2}
def check_comparison(n, B, L):
    seen = measure.observed(compare_lm, "lab2_written.look_at_comparison", n, B, L)
    right = lab2_written.look_at_comparison(lab2_written.compare, n, B, L)
    assert_keys("compare_lm", seen, ("eager", "compiled"))
    for which, row in right.items():
        assert_keys(f"compare_lm()[{which!r}]", seen[which], ("forward", "backward", "products", "saved_bytes"))
        for name, value in row.items():
            assert seen[which][name] == value, f"n = {n}: {which}, {name} is {seen[which][name]}, not {value}"


check_comparison(2, 2, 16)
known = {"forward", "backward", "products", "saved_bytes"}
assert isinstance(unchanged, (list, tuple, set)) and set(unchanged) <= known, "unchanged is a list of keys"
### BEGIN HIDDEN TESTS
check_comparison(3, 1, 10)
assert set(unchanged) == {"products"}, "unchanged: compare the two rows of compare_lm"
### END HIDDEN TESTS

# %%
lm = lab2_written.WrittenOutLM(num_layers=4, length=64)
compared = compare_lm(lm, rl.randint(0, 100, (4, 64)))
lm_rows = [(which, *row.values()) for which, row in compared.items()]
head = ("", "launches, forward", "launches, backward", "products", "saved bytes")
Table(head, lm_rows, "A model of 4 layers, written out in single operations")

# %% [markdown]
# R measured on its compiled models: xl 0.5456 s a step to 0.5079 s at L = 128, and 34.26 GiB to 32.50 GiB; 2.7B 0.8397
# s to 0.8099 s. Seven and four per cent. The products are what takes the time there, and they are the same.
