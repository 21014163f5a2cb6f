# %% [markdown]
# ## 4.4 Let a compiler fuse
#
# `rl.gelu` is fast because somebody wrote a kernel for it. Nobody can do that for every formula, but a *compiler* can:
# `rl.compile(fn)` returns a function with the same results. At its first call it runs `fn` on tensors that have no
# memory and records the operations. Then it turns each chain of elementwise operations into one kernel, called `fused`.
#
# ```python
# compiled = rl.compile(fn)
# y = compiled(x, weights)
# ```
#
# Pass every tensor as an argument. A function that uses a tensor from outside, or that reads a value of a tensor,
# cannot be recorded. It then runs as it is written, with a warning that says why.
#
# `profile_one_call(fn, *args)` profiles ten calls and returns what one of them did: its `"launches"`, its `"bytes"`
# (read and written), and its `"ops"`, the operation of each kernel in the order in which they ran.


# %% tags=["setup"]
def profile_one_call(fn, *args):
    """{"launches": int, "bytes": int, "ops": [operations]} of one call of fn(*args), from a profile."""
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            fn(*args)
            prof.step()
    kernels = [kernel for kernel in prof.kernels if kernel.step == prof.kernels[-1].step]
    moved = sum(kernel.cost.bytes for kernel in kernels)
    return {"launches": len(kernels), "bytes": moved, "ops": [kernel.op for kernel in kernels]}


# %% [markdown]
# ## 4.4.1 What a compiler changes ({points q4_4_1})
#
# ### a) The GeLU ({points q4_4_1_test})
#
# Write `compare_gelu(n)`: profile your `gelu_tanh_python` as it is and compiled, at `n` fp32 elements. Return
# `{"eager": ..., "compiled": ...}`, each as `profile_one_call` gives it. *Eager* means: as it is written, one operation
# after the other.


# %% nbgrader={"grade_id": "q4_4_1", "solution": true}
def compare_gelu(n):
    """{"eager": one call, "compiled": one call} of gelu_tanh_python at n fp32 elements."""
    ### BEGIN SOLUTION
    x = rl.randn(n, device=device)
    functions = {"eager": gelu_tanh_python, "compiled": rl.compile(gelu_tanh_python)}
    return {name: profile_one_call(fn, x) for name, fn in functions.items()}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_4_1_test", "grade": true, "points": 2} rooflab={"needs": ["q4_3_1"]}
def check_comparison(got, eager, compiled, case):
    said = f'{case}: expected a dict with the keys "eager" and "compiled"'
    assert isinstance(got, dict) and set(got) == {"eager", "compiled"}, said
    for name, expected in {"eager": eager, "compiled": compiled}.items():
        one = got[name]
        said = f"{case}, {name}: return what profile_one_call returns"
        assert isinstance(one, dict) and set(one) == set(expected), said
        for key, value in expected.items():
            assert one[key] == value, f"{case}, {name}: expected {key} = {value}, got {one[key]}"


def check_gelus(n):
    x = rl.randn(n, device=device)
    eager = measure.count(gelu_tanh_python, x)
    moved, ops = eager.bytes_read + eager.bytes_written, list(measure.launched(gelu_tanh_python, x))
    eager = {"launches": len(ops), "bytes": moved, "ops": ops}
    seen = measure.count(compare_gelu, n)
    one_kernel = {"launches": 1, "bytes": 8 * n, "ops": ["fused"]}
    check_comparison(seen.value, eager, one_kernel, f"GeLU, n = {n}")
    assert {"tanh", "fused"} <= set(seen.by_op), "profile both gelu_tanh_python and rl.compile(gelu_tanh_python)"


check_gelus(1000)
check_gelus(300)
### BEGIN HIDDEN TESTS
check_gelus(measure.draw(1001, 9999))
check_gelus(1_000_000)
### END HIDDEN TESTS

# %%
for name, one in compare_gelu(1_000_000).items():
    print(f"{name:8}  launches: {one['launches']}, bytes: {one['bytes']:,}, operations: {', '.join(one['ops'])}")

# %% [markdown]
# The compiled GeLU moves as many bytes as `rl.gelu`, and nobody wrote its kernel.
#
# ### b) The MLP ({points q4_4_1_mlp_test})
#
# Write `compare_mlp(B, L, config)`. It makes the same comparison for `mlp(x, weights)`, with x (B, L, D) and random
# weights (`make_mlp_weights`) in bf16.


# %% nbgrader={"grade_id": "q4_4_1_mlp", "solution": true}
def compare_mlp(B, L, config):
    """{"eager": one call, "compiled": one call} of the MLP in bf16."""
    ### BEGIN SOLUTION
    x = rl.randn(B, L, config["hidden_size"], dtype="bfloat16", device=device)
    weights = make_mlp_weights(config)
    return {"eager": profile_one_call(mlp, x, weights), "compiled": profile_one_call(rl.compile(mlp), x, weights)}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_4_1_mlp_test", "grade": true, "points": 1} rooflab={"needs": ["q4_3_1"]}
def mlps_of(B, L, **sizes):
    config, case = {**GEMMA3_270M_CONFIG, **sizes}, f"MLP, B = {B}, L = {L}"
    seen = measure.count(compare_mlp, B, L, config)
    said = f'{case}: expected a dict with the keys "eager" and "compiled"'
    assert isinstance(seen.value, dict) and set(seen.value) == {"eager", "compiled"}, said
    for name, one in seen.value.items():
        said = f"{case}, {name}: return what profile_one_call returns"
        assert isinstance(one, dict) and set(one) == {"launches", "bytes", "ops"}, said
    eager, compiled = seen.value["eager"], seen.value["compiled"]
    said = "profile both mlp and rl.compile(mlp)"
    assert "gelu" in eager["ops"] and "fused" in compiled["ops"], said
    assert {"gelu", "fused"} <= set(seen.by_op), said
    fewer = compiled["launches"] < eager["launches"] and compiled["bytes"] < eager["bytes"]
    assert fewer, f"{case}: the compiled MLP takes fewer launches and bytes: did its first call warn?"
    return config, seen.value


for B, L, wide, narrow in [(1, 1, 32, 48), (2, 3, 48, 80)]:
    mlps_of(B, L, hidden_size=wide, intermediate_size=narrow)


### BEGIN HIDDEN TESTS
def check_mlps(B, L, **sizes):
    config, got = mlps_of(B, L, **sizes)
    x = rl.randn(B, L, config["hidden_size"], dtype="bfloat16", device=device)
    weights = make_mlp_weights(config)
    eager, compiled = (profile_one_call(fn, x, weights) for fn in (mlp, rl.compile(mlp)))
    check_comparison(got, eager, compiled, f"MLP, B = {B}, L = {L}")


check_mlps(1, 1, hidden_size=32, intermediate_size=48)
wide, narrow = 8 * measure.draw(5, 8), 8 * measure.draw(2, 4)
check_mlps(measure.draw(2, 4), measure.draw(5, 8), hidden_size=wide, intermediate_size=narrow)
check_mlps(2, 16)
### END HIDDEN TESTS

# %%
B, L = 2, 64
both = compare_mlp(B, L, GEMMA3_270M_CONFIG)
for name, one in both.items():
    print(f"{name:8}  launches: {one['launches']}, bytes: {one['bytes']:,}, operations: {', '.join(one['ops'])}")

# %% [markdown]
# ### c) The bytes that the MLP saves ({points q4_4_1_saved_test})
#
# Write `mlp_saved_bytes(B, L, D, I)`: how many bytes fewer the compiled MLP moves than the eager one, in bf16, as an
# `int`. D is the hidden size and I the intermediate size. Compute them from the sizes. Which matrix does the compiled
# MLP never write, and so never read?


# %% nbgrader={"grade_id": "q4_4_1_saved", "solution": true}
def mlp_saved_bytes(B, L, D, I):
    """How many bytes fewer the compiled MLP moves than the eager one, in bf16: an int."""
    ### BEGIN SOLUTION
    return 2 * 2 * B * L * I  # the GeLU's result is not written and not read; 2 bytes a number
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_4_1_saved_test", "grade": true, "points": 1}
saved_hint = "how large is the matrix between the fused operations, and how often did the eager MLP move it?"


def check_saved(B, L, D, I, expected):
    seen = measure.count(mlp_saved_bytes, B, L, D, I)
    case = f"B = {B}, L = {L}, D = {D}, I = {I}"
    assert is_count(seen.value), f"mlp_saved_bytes has to return an int, not {seen.value!r}"
    assert seen.value == expected, f"{case}: expected {expected} bytes, got {seen.value}; {saved_hint}"
    assert seen.launches == 0, "compute the number from the sizes, without running anything"


check_saved(1, 1, 8, 24, expected=96)
check_saved(2, 3, 40, 16, expected=384)


### BEGIN HIDDEN TESTS
def check_profiled(B, L, D, I):
    config = {"hidden_size": D, "intermediate_size": I}
    x = rl.randn(B, L, D, dtype="bfloat16", device=device)
    eager, compiled = (profile_one_call(fn, x, make_mlp_weights(config))["bytes"] for fn in (mlp, rl.compile(mlp)))
    check_saved(B, L, D, I, expected=eager - compiled)


check_profiled(measure.draw(2, 4), measure.draw(5, 8), 8 * measure.draw(2, 4), 8 * measure.draw(5, 8))
check_profiled(2, 64, 640, 2048)
### END HIDDEN TESTS

# %% [markdown]
# ### d) What fuses and what stays ({points q4_4_1_values_test})
#
# The eager MLP runs `matmul`, `gelu` and `mul`.
#
# - `fuses` and `stays`: which of them became part of a `fused` kernel, and which run as before. Give two lists of
#   names.
# - `why_it_stays`: why did the compiler not fuse the operation that stays? Choose a letter, and explain it in a
#   sentence below.
#     - `"a"`: Its weights are arguments, and only what the function itself makes can be fused.
#     - `"b"`: Each number of its result needs a whole row and a whole column.
#     - `"c"`: It is compute-bound, so it would not become faster if it moved fewer bytes.
#     - `"d"`: It has two inputs, and a chain is made of operations that have only one input.

# %% nbgrader={"grade_id": "q4_4_1_values", "solution": true}
fuses = None  # a list of names
stays = None  # a list of names
why_it_stays = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
fuses = ["gelu", "mul"]
stays = ["matmul"]
why_it_stays = "b"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q4_4_1_findings", "solution": true}
# *What I find about compiled functions:*

# %% nbgrader={"grade_id": "q4_4_1_values_test", "grade": true, "points": 1}
for names in (fuses, stays):
    said = 'fuses and stays are lists of names, each of them "matmul", "gelu" or "mul"'
    assert isinstance(names, (list, tuple)) and all(name in ("matmul", "gelu", "mul") for name in names), said
assert why_it_stays in tuple("abcd"), "why_it_stays: choose a letter"
### BEGIN HIDDEN TESTS
said = "compare the operations of the eager MLP with those of the compiled one"
assert set(fuses) == {"gelu", "mul"} and set(stays) == {"matmul"}, f"fuses and stays: {said}"
assert_choice(
    why_it_stays,
    "b",
    a="The input of your GeLU is an argument too. Was the GeLU fused?",
    c="The compiler measures nothing. What did it do at B = L = 1, where the MLP is memory-bound?",
    d="How many inputs does each of the operations have that were fused?",
)
### END HIDDEN TESTS

# %% [markdown]
# Compare launches, bytes and times. A GeLU of eight operations is a single chain, so all of it fuses. In the MLP most
# of the bytes and nearly all FLOPs belong to the matrix products. So the MLP gains little.

# %%
x = rl.randn(B, L, GEMMA3_270M_CONFIG["hidden_size"], dtype="bfloat16", device=device)
cases = {
    "GeLU, a million elements": (gelu_tanh_python, rl.randn(1_000_000, device=device)),
    f"MLP, B = {B}, L = {L}": (mlp, x, make_mlp_weights(GEMMA3_270M_CONFIG)),
}
rows = []
for label, (fn, *args) in cases.items():
    numbers = []
    for one in (fn, rl.compile(fn)):
        ms = latency(one, *args, warmup=3, repeat=20).median_ms
        numbers.append({**profile_one_call(one, *args), "ms": round(ms, 3)})
    before, after = numbers
    for key in ("launches", "bytes", "ms"):
        rows.append((label, key, f"{before[key]:,}", f"{after[key]:,}", f"{before[key] / after[key]:.3g}"))
Table(("function", "of one call", "eager", "compiled", "ratio"), rows)
