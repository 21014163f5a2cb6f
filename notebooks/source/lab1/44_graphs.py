# %% [markdown]
# ## b4.4.2 One call for many launches ({points b4_4_2})
#
# Fewer launches are one way to save time. Another way is to make each launch cheaper. For every launch the host (here
# Python and the library) chooses a kernel and calls the driver. A *graph* does that once. It captures the launches of a
# function, and then *replays* all of them by a single host call.
#
# ```python
# graph = rl.Graph(device=device)
# with graph.capture():
#     y = mlp(x, weights)  # captured, and not run
# graph.replay()  # now y holds its values
# ```
#
# Every replay reads and writes the tensors of the capture: the same `x`, and the same `y`. New values come in by
# `x.copy_(new)`. Copy a result with `y.clone()` if it has to outlive the next replay.
#
# ### a) New inputs into an old graph ({points b4_4_2_test})
#
# Write `mlp_by_graph(inputs, weights)`. `inputs` is a list of tensors of one shape. Capture the MLP **once**, replay it
# for every input, and return the list of the results. The inputs keep their values.


# %% nbgrader={"grade_id": "b4_4_2", "solution": true}
def mlp_by_graph(inputs, weights):
    """[mlp(x, weights) for x in inputs], by one graph."""
    ### BEGIN SOLUTION
    x, graph, results = rl.empty_like(inputs[0]), rl.Graph(device=device), []
    with graph.capture():
        y = mlp(x, weights)
    for new in inputs:
        x.copy_(new)
        graph.replay()
        results.append(y.clone())
    return results
    ### END SOLUTION


# %% nbgrader={"grade_id": "b4_4_2_test", "grade": true, "points": 2}
def check_graph(count, B, L, D, I):
    weights = make_mlp_weights({"hidden_size": D, "intermediate_size": I}, dtype="float32")
    inputs = [rl.randn(B, L, D, device=device) for _ in range(count)]
    case = f"{count} inputs, B = {B}, L = {L}"
    seen = measure.count(mlp_by_graph, inputs, weights)
    assert isinstance(seen.value, list) and len(seen.value) == count, (
        f"{case}: expected a list of {count} results, one for each input"
    )
    for index, (x, result) in enumerate(zip(inputs, seen.value, strict=True)):
        assert isinstance(result, rl.Tensor), "each result has to be an rl tensor"
        expected = to_float64(mlp(x, weights))
        assert_close(result, expected, rtol=1e-4, atol=1e-4, name=f"{case}: result {index}")
    runs = seen.by_op.get("gelu", 0)
    assert runs >= count, f"{case}: the MLP ran {runs} times; replay it for every input"
    with rl.count() as eager:
        mlp(inputs[0], weights)
    graph = rl.Graph(device=device)
    with graph.capture():
        mlp(inputs[0], weights)
    with rl.count() as replay:
        graph.replay()
    said = f"{case}: {seen.host_calls} host calls, as many as without a graph; replay one graph for all inputs"
    assert seen.host_calls < (count - 2) * eager.host_calls, said
    said = f"{case}: {seen.allocations} allocations; capture the MLP once, not for every input"
    assert seen.allocations < (replay.allocations + 4) * count, said
    said = "the inputs or the weights have changed: copy into a tensor of your own"
    assert measure.call(mlp_by_graph, inputs, weights).changed == (), said


check_graph(12, 1, 1, 16, 24)
check_graph(16, 2, 3, 24, 16)
### BEGIN HIDDEN TESTS
check_graph(measure.draw(12, 17), 3, 2, 8 * measure.draw(1, 3), 8 * measure.draw(4, 6))
check_graph(20, 1, measure.draw(3, 6), 32, 16)
### END HIDDEN TESTS

# %% [markdown]
# ### b) Count and profile a replay ({points b4_4_2_counts_test})
#
# Write two functions for the MLP with random weights in bf16.
#
# - `graph_profile(B, L, config)`: capture it, replay it ten times under `default_schedule`, and return the profile.
# - `replay_counts(B, L, config)`: a dict of what *one* replay does: `"host_calls"` and `"launches"`, which `rl.count()`
#   gives, and `"ranges"`, a list of the ranges of its kernels in the order in which they ran, which the profile gives.


# %% nbgrader={"grade_id": "b4_4_2_counts", "solution": true}
def graph_profile(B, L, config):
    """The profile of ten replays of the MLP."""
    ### BEGIN SOLUTION
    graph = captured_mlp(B, L, config)
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            graph.replay()
            prof.step()
    return prof
    ### END SOLUTION


def replay_counts(B, L, config):
    """{"host_calls": int, "launches": int, "ranges": [names]} of one replay."""
    ### BEGIN SOLUTION
    graph = captured_mlp(B, L, config)
    with rl.count() as counted:
        graph.replay()
    prof = graph_profile(B, L, config)
    ranges = [kernel.range for kernel in prof.kernels if kernel.step == prof.kernels[-1].step]
    return {"host_calls": counted.host_calls, "launches": counted.launches, "ranges": ranges}
    ### END SOLUTION


### BEGIN SOLUTION
def captured_mlp(B, L, config):
    x, weights = rl.randn(B, L, config["hidden_size"], dtype="bfloat16", device=device), make_mlp_weights(config)
    graph = rl.Graph(device=device)
    with graph.capture():
        mlp(x, weights)
    return graph


### END SOLUTION


# %% nbgrader={"grade_id": "b4_4_2_counts_test", "grade": true, "points": 2}
def check_replay(B, L, **sizes):
    config, case = {**GEMMA3_270M_CONFIG, **sizes}, f"B = {B}, L = {L}"
    x, weights = rl.randn(B, L, config["hidden_size"], dtype="bfloat16", device=device), make_mlp_weights(config)
    graph = rl.Graph(device=device)
    with graph.capture():
        mlp(x, weights)
    with rl.count() as expected:
        graph.replay()
    seen = measure.count(replay_counts, B, L, config)
    got = seen.value
    assert isinstance(got, dict), f"replay_counts has to return a dict, not a {type(got).__name__}"
    assert set(got) == {"host_calls", "launches", "ranges"}, 'the keys are "host_calls", "launches" and "ranges"'
    for key in ("host_calls", "launches"):
        right = getattr(expected, key)
        assert is_count(got[key]) and got[key] == right, f"{case}: expected {right} {key} in one replay, got {got[key]}"
    assert isinstance(got["ranges"], list), "ranges has to be a list of names"
    parts = list(dict.fromkeys(got["ranges"]))
    assert parts == list(MLP_PARTS) and len(got["ranges"]) < 2 * len(parts), (
        f"ranges: expected those of one replay in order, {list(MLP_PARTS)}, got {got['ranges']}"
    )
    assert seen.by_op.get("gelu", 0) >= 10, "profile ten replays of the captured MLP"
    spared, by_ten = seen.launches - seen.host_calls, 10 * (expected.launches - expected.host_calls)
    said = f"{case}: {seen.host_calls} host calls for {seen.launches} launches: profile ten replays of a graph"
    assert spared > by_ten / 2, said


check_replay(1, 1, hidden_size=32, intermediate_size=48)
check_replay(2, 3, hidden_size=48, intermediate_size=80)
### BEGIN HIDDEN TESTS
wide, narrow = 8 * measure.draw(5, 8), 8 * measure.draw(2, 4)
check_replay(measure.draw(2, 4), measure.draw(5, 8), hidden_size=wide, intermediate_size=narrow)
check_replay(2, 16)
### END HIDDEN TESTS

# %%
config, B, L = GEMMA3_270M_CONFIG, 1, 1
print(replay_counts(B, L, config))
x, weights = rl.randn(B, L, config["hidden_size"], dtype="bfloat16", device=device), make_mlp_weights(config)
with rl.profile(schedule=default_schedule) as eager:
    for _ in range(10):
        mlp(x, weights)
        eager.step()
profiles = {"eager": eager, "a graph": graph_profile(B, L, config)}
rl.plots.plot_timelines(profiles, title="MLP of Gemma 3 270M in a decode step, B = 1")

# %% [markdown]
# The kernels are the same, and the gaps between them are shorter. On a CPU the same cores run the host's code and the
# kernels, so a graph saves a few microseconds a call, whatever the call does. In a long call these are lost in the
# noise. Here are the times of a decode step and of a prefill, for one sequence:

# %%
rows = []
for label, L in {"decode, one token": 1, "prefill, 256 tokens": 256}.items():
    x, graph = rl.randn(1, L, config["hidden_size"], dtype="bfloat16", device=device), rl.Graph(device=device)
    with graph.capture():
        y = mlp(x, weights)
    ms = [latency(fn, *args, warmup=3, repeat=20).median_ms for fn, *args in ((mlp, x, weights), (graph.replay,))]
    rows.append((label, *(f"{one:.4f}" for one in ms), f"{ms[0] / ms[1]:.3g}"))
Table(("MLP", "eager, ms", "a replay, ms", "ratio"), rows)

# %% [markdown]
# ### c) Where a graph helps ({points b4_4_2_why_test})
#
# On a GPU the host calls and the kernels run side by side, and the slower of the two sets the time.
#
# - `why_decode`: why does a graph help a decode step more than a prefill of a long prompt? Choose a letter, and explain
#   it in a sentence below.
#     - `"a"`: A decode step launches more kernels than a prefill does.
#     - `"b"`: A graph keeps the weights in the cache from one replay to the next one.
#     - `"c"`: The kernels of a step can take less time than their launches.
#     - `"d"`: Decode has a low arithmetic intensity, and a graph raises it.

# %% nbgrader={"grade_id": "b4_4_2_why", "solution": true}
why_decode = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
why_decode = "c"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "b4_4_2_findings", "solution": true}
# *What I find about graphs:*

# %% nbgrader={"grade_id": "b4_4_2_why_test", "grade": true, "points": 1}
assert why_decode in tuple("abcd"), "why_decode: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    why_decode,
    "c",
    a="Count the launches of the MLP at L = 1 and at L = 256.",
    b="Count the bytes that a replay reads. Are they fewer than those of the eager call?",
    d="Count the FLOPs and the bytes of a replay and of the eager call.",
)
### END HIDDEN TESTS
