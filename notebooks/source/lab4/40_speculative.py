# %% [markdown]
# # Part 4. Several tokens for one pass over the weights

# %%
from rooflab.labs.lab4_speculative import greedy_step, plot_speedup, speculate
from rooflab.labs.lab4_tiny_lm import story, train

# %% [markdown]
# ## 4.1 What a decode step waits for ({points q4_1})
#
# Part 3 gave each case one verdict, memory-bound or compute-bound. Now split the time of a step into parts. Then you
# know which change would shorten it.
#
# Take one decode step of GPT-2 XL for one user: B = 1. `GPT2_XL` holds its sizes, `T4.byte_s` the bytes per second of
# the T4, and `T4.flop_s` its FLOPs per second. Write `decode_times(L)`, which returns a dict of four times in
# **milliseconds**. As in Part 3, L includes the new token.
#
# | key | what it is the time of |
# |---|---|
# | `"weights"` | reading every weight and every bias once |
# | `"cache"` | reading the keys and values of L tokens |
# | `"other"` | moving all other bytes: inputs and outputs of the products, and the scores |
# | `"compute"` | all FLOPs |
#
# The bytes of `"weights"`, `"cache"` and `"other"` add up to `decode_model_bytes` of 3.4.


# %% nbgrader={"grade_id": "q4_1", "solution": true} rooflab={"counters": false}
def decode_times(L):
    """{"weights", "cache", "other", "compute"}: ms of each in a decode step of GPT-2 XL on a T4, B = 1."""
    ### BEGIN SOLUTION
    D, H, layers, n = (GPT2_XL[size] for size in ("D", "H", "layers", "n"))
    moved = {"weights": 12 * D**2 + 5 * D, "cache": 2 * L * D, "other": 20 * D + 4 * H * L}
    times = {name: 1e3 * layers * n * numbers / T4.byte_s for name, numbers in moved.items()}
    flops = layers * (24 * D**2 + 4 * L * D + 4 * H * L + 5 * D)
    return {**times, "compute": 1e3 * flops / T4.flop_s}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_1_test", "grade": true, "points": 2} rooflab={"needs": ["q3_4"]}
time_hints = {
    "weights": "which term of decode_model_bytes does not depend on B and L?",
    "other": "what of decode_model_bytes is neither weights nor cache?",
    "cache": "how large is the cache of 3.1 for L tokens of one sequence?",
    "compute": "what does 3.4 say, and how fast is the T4?",
}


def check_time(name, expected_ms):
    for L, right in expected_ms.items():
        times = decode_times(L)
        said = f"decode_times({L}) must return a dict with the keys {sorted(time_hints)}, got {times!r}"
        assert isinstance(times, dict) and set(times) == set(time_hints), said
        assert is_number(times[name]), f"decode_times({L}): {name} must be a number, got {times[name]!r}"
        said = f"decode_times({L}): {name} is {times[name]} ms, expected {right:.6g} ms. Hint: {time_hints[name]}"
        assert is_near(times[name], right, 1e-4), said


check_time("weights", {64: 9.83296, 1000: 9.83296})
check_time("other", {64: 0.012288, 1000: 0.04224})
### BEGIN HIDDEN TESTS
lengths = [1, 1024, measure.draw(2, 999), measure.draw(1025, 9999)]
check_time("weights", {L: 2949888000 / 3e8 for L in lengths})
check_time("other", {L: (3072000 + 9600 * L) / 3e8 for L in lengths})
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_1_more_test", "grade": true, "points": 2} rooflab={"needs": ["q3_4"]}
check_time("cache", {64: 0.065536, 1000: 1.024})
check_time("compute", {64: 0.04568418, 1000: 0.05017698})
### BEGIN HIDDEN TESTS
lengths = [1, 1024, measure.draw(2, 999), measure.draw(1025, 9999)]
check_time("cache", {L: 307200 * L / 3e8 for L in lengths})
check_time("compute", {L: (2949504000 + 312000 * L) / 65e9 for L in lengths})
### END HIDDEN TESTS

# %%
rows = [(L, *(f"{decode_times(L)[name]:.3f}" for name in time_hints)) for L in (1, 32, 256, 1024, 4096, 16384)]
Table(("L", *(f"{name}, ms" for name in time_hints)), rows, "A decode step of GPT-2 XL on a T4, B = 1")

# %% [markdown]
# GPT-2 XL takes texts of at most 1024 tokens. The last two rows are for a model of its size that takes longer texts.
#
# - `largest`: which of the four times is the largest at L = 1024? Answer with its key, such as `"cache"`.
# - `cache_equals_weights`: the L at which reading the cache takes as long as reading the weights
# - `what_helps`: which change shortens this step at L = 1024 the most? Explain your letter in a sentence below.
#     - `"a"`: A GPU that does arithmetic ten times as fast, with the same memory.
#     - `"b"`: Weights of 8 bits instead of 16.
#     - `"c"`: Fused kernels, so that scores and activations stay on the chip.
#     - `"d"`: A text of half the length, so that the cache is half as large.

# %% nbgrader={"grade_id": "q4_1_values", "solution": true}
largest = None
cache_equals_weights = None
what_helps = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
largest = "weights"
cache_equals_weights = 2949888000 / 307200
what_helps = "b"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q4_1_findings", "solution": true}
# *What I find about a decode step:*

# %% nbgrader={"grade_id": "q4_1_values_test", "grade": true, "points": 1}
said = f'largest must be "weights", "cache", "other" or "compute", got {largest!r}'
assert largest in ("weights", "cache", "other", "compute"), said
said = f"cache_equals_weights must be a number of tokens, got {cache_equals_weights!r}"
assert is_number(cache_equals_weights) and cache_equals_weights > 0, said
### BEGIN HIDDEN TESTS
assert largest == "weights", f'largest is not "{largest}": compare the columns of the table at L = 1024'
equal_hint = "divide the bytes of the weights by those of one cached token"
assert_near("cache_equals_weights", cache_equals_weights, 9602.5, 1e-4, equal_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_1_why_test", "grade": true, "points": 1}
assert what_helps in ("a", "b", "c", "d"), f'what_helps must be "a", "b", "c" or "d", got {what_helps!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    what_helps,
    "b",
    a="Look at the column compute. Memory traffic can overlap it, so how much shorter would the step be?",
    c="Look at the column other. Fused kernels could save no more than that.",
    d="That saves half of the column cache. Compare it with the other columns.",
)
### END HIDDEN TESTS

# %% [markdown]
# All bytes that this step reads serve a single token. In a batch, other users would share some of them. But what if
# there is only one user?
#
# ## 4.2 Speculative decoding ({points q4_2})
#
# With one user, several tokens of *one* text have to share the weights. The large model, called the target, cannot
# generate them in one pass, because each token depends on the one before it. But it can *check* several proposed
# tokens in one pass, and that pass reads each weight once. In speculative decoding a small draft model proposes the
# tokens ([Leviathan et al., 2022](https://arxiv.org/abs/2211.17192), [Chen et al.,
# 2023](https://arxiv.org/abs/2302.01318)):
#
# 1. The draft model proposes `gamma` tokens, one after the other.
# 2. The target processes all of them in **one pass**, which gives its own probabilities at each position.
# 3. The target goes through the drafts in order and accepts or rejects each one. After the first rejection, all later
#    drafts are dropped.
# 4. The pass gives **one more token**, from the target itself. It replaces the rejected draft, or it follows the last
#    draft if all were accepted.
#
# Suppose that the target accepts each draft that it looks at with probability `alpha`, independently of the others. A
# pass of the target takes time 1, however many tokens it processes. A pass of the draft model takes time `c`. So the
# drafts and the check together take 1 + `gamma` · `c`. Plain decoding takes time 1 per token.
#
# - `tokens_per_pass(gamma, alpha)`: the average number of tokens that one pass of the target gives. `alpha` may be 0
#   and 1 too.
# - `speculative_speedup(gamma, alpha, c)`: how many times faster than plain decoding this is
# - `best_gamma(alpha, c)`: the number of drafts from 1 to 32 with the highest speed-up, an `int`
# - `tokens_to_compute_bound`: a pass takes time 1 only as long as it is memory-bound. What is the smallest number of
#   tokens in a pass for which GPT-2 XL is compute-bound on the T4? Count the weights only: each weight is 2 bytes, and
#   takes 2 FLOPs per token.


# %% nbgrader={"grade_id": "q4_2", "solution": true} rooflab={"counters": false}
def tokens_per_pass(gamma, alpha):
    """Average number of tokens from one pass of the target, if each of gamma drafts is accepted with alpha."""
    ### BEGIN SOLUTION
    if alpha == 1:
        return gamma + 1
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)
    ### END SOLUTION


def speculative_speedup(gamma, alpha, c):
    """Time per token of plain decoding over that of speculative decoding; c is the time of one draft pass."""
    ### BEGIN SOLUTION
    return tokens_per_pass(gamma, alpha) / (1 + gamma * c)
    ### END SOLUTION


def best_gamma(alpha, c):
    """The gamma in 1..32 with the highest speed-up: an int."""
    ### BEGIN SOLUTION
    return max(range(1, 33), key=lambda gamma: speculative_speedup(gamma, alpha, c))
    ### END SOLUTION


tokens_to_compute_bound = None
### BEGIN SOLUTION
tokens_to_compute_bound = 217  # t tokens: t FLOP/byte, and the ridge is 216.7
### END SOLUTION


# %% nbgrader={"grade_id": "q4_2_test", "grade": true, "points": 2}
def check_number(call, got, expected, relative, hint):
    assert is_number(got), f"{call} must return a number, got {got!r}"
    assert is_near(got, expected, relative), f"{call} returned {got}, expected {expected:.6g}. Hint: {hint}"


def check_tokens(gamma, alpha, expected):
    hint = "how likely is it that a pass gives at least 1 token, at least 2, at least 3 ...?"
    check_number(f"tokens_per_pass({gamma}, {alpha})", tokens_per_pass(gamma, alpha), expected, 1e-4, hint)


check_tokens(1, 0.5, 1.5)
check_tokens(2, 0.5, 1.75)
check_tokens(3, 0.0, 1)
check_tokens(3, 1.0, 4)
### BEGIN HIDDEN TESTS
drawn = [(measure.draw(2, 32), measure.draw(5, 95) / 100) for _ in range(4)]
for gamma, alpha in [(1, 0.0), (32, 1), (measure.draw(4, 12), 0.0), (measure.draw(4, 12), 1.0), (2, 0.999), *drawn]:
    check_tokens(gamma, alpha, sum(alpha**accepted for accepted in range(gamma + 1)))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_2_speedup_test", "grade": true, "points": 1}
def check_speedup(gamma, alpha, c, expected):
    hint = "how long does one token take in each of the two ways?"
    got = speculative_speedup(gamma, alpha, c)
    check_number(f"speculative_speedup({gamma}, {alpha}, {c})", got, expected, 0.01, hint)


check_speedup(1, 0.5, 0.25, 1.2)
check_speedup(1, 0.25, 0.125, 10 / 9)
check_speedup(3, 1.0, 0.1, 4 / 1.3)
check_speedup(2, 0.0, 0.25, 2 / 3)
### BEGIN HIDDEN TESTS
drawn = [(measure.draw(2, 32), measure.draw(5, 95) / 100, measure.draw(1, 40) / 100) for _ in range(4)]
for gamma, alpha, c in [(4, 0.0, 0.05), (9, 1, 0), *drawn]:
    tokens = sum(alpha**accepted for accepted in range(gamma + 1))
    if not is_near(speculative_speedup(gamma, alpha, c), tokens / (1 + gamma * c), 0.01):
        own = tokens_per_pass(gamma, alpha)  # a mistake there costs its points there alone
        tokens = own if is_number(own) and 1 <= own <= gamma + 1 else tokens
    check_speedup(gamma, alpha, c, tokens / (1 + gamma * c))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_2_best_test", "grade": true, "points": 1}
def check_best(alpha, c, expected):
    """The right number, or the best one by the student's own speed-up: a mistake there costs its points there alone."""
    got, call = best_gamma(alpha, c), f"best_gamma({alpha}, {c})"
    assert is_count(got) and 1 <= got <= 32, f"{call} must return a whole number (int) from 1 to 32, got {got!r}"
    speed_ups = [speculative_speedup(gamma, alpha, c) for gamma in range(1, 33)]
    known = all(map(is_number, speed_ups)) and max(speed_ups) > min(speed_ups)
    assert known, "speculative_speedup must return a number that depends on gamma"
    said = f"{call} returned {got}. Hint: compare speculative_speedup for every gamma from 1 to 32"
    assert got == expected or speed_ups[got - 1] >= (1 - 1e-9) * max(speed_ups), said


check_best(0.5, 0.1, 2)
check_best(0.5, 0.1998, 2)  # with c = 0.2, one draft and two are as good
check_best(0.5, 0.2002, 1)
check_best(0.5, 0.0833, 3)
check_best(0.0, 0.1, 1)
check_best(1.0, 0.1, 32)
### BEGIN HIDDEN TESTS
for alpha, c, expected in [(0.8, 0.05, 8), (0.99, 0.001, 32), (0.9, 1.0, 1)]:
    check_best(alpha, c, expected)
for alpha in measure.rng().uniform(0.5, 0.95, 4).tolist():
    gamma = measure.draw(1, 9)
    tokens, more = (sum(alpha**accepted for accepted in range(g + 1)) for g in (gamma, gamma + 1))
    c = (more - tokens) / ((gamma + 1) * tokens - gamma * more)  # both numbers of drafts have the same speed-up
    check_best(alpha, 0.999 * c, gamma + 1)
    check_best(alpha, 1.001 * c, gamma)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_2_bound_test", "grade": true, "points": 1}
said = f"tokens_to_compute_bound must be a whole number (int), got {tokens_to_compute_bound!r}"
assert is_count(tokens_to_compute_bound), said
### BEGIN HIDDEN TESTS
said = (
    f"tokens_to_compute_bound is not {tokens_to_compute_bound}: compare the intensity of t tokens with the T4's ridge"
)
assert tokens_to_compute_bound == 217, said
### END HIDDEN TESTS

# %%
curves = {
    f"alpha = {alpha}": {gamma: speculative_speedup(gamma, alpha, 0.05) for gamma in range(1, 17)}
    for alpha in (0.9, 0.8, 0.6, 0.3)
}
plot_speedup(curves, title="Speculative decoding, c = 0.05")

# %% [markdown]
# If the draft model is often right, many drafts pay off. If it is often wrong, only few do: each draft costs time, and
# most of them are dropped. Below the dashed line, speculative decoding is slower than plain decoding. Compare the
# number of drafts with your `tokens_to_compute_bound`: a pass could check many more tokens before its arithmetic takes
# longer than its memory traffic.
