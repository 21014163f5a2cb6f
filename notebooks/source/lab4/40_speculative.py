# %% [markdown]
# # Part 4. More than one token for the same bytes

# %%
from rooflab.labs.lab4_speculative import greedy_step, plot_speedup, speculate
from rooflab.labs.lab4_tiny_lm import story, train

# %% [markdown]
# ## 4.1 What a decode step waits for ({points q4_1})
#
# Part 3 gave each case one verdict. Look closer: which part of a step takes how long? If you know, you know what is
# worth changing.
#
# Take one decode step of GPT-2 XL (`GPT2_XL` has its sizes) for one user: B = 1. The T4 moves `T4.byte_s` bytes a
# second and does `T4.flop_s` FLOPs a second. Write `decode_times(L)`, which returns a dict of four times in
# **milliseconds**. As in Part 3, L counts the new token too.
#
# | key | what is timed |
# |---|---|
# | `"weights"` | reading every weight and every bias once |
# | `"cache"` | reading the keys and values of L tokens back |
# | `"other"` | all other bytes: what goes in and out of the products, the scores |
# | `"compute"` | all FLOPs |
#
# The bytes of the first three add up to those of 3.4.


# %% nbgrader={"grade_id": "q4_1", "solution": true}
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
    "weights": "12 D² weights and 5 D biases a layer, of 2 bytes each, in 48 layers",
    "other": "add up what each operation of 3.2 and 3.3 reads and writes, without its weights and without the cache",
    "cache": "K and V of L tokens are read in each of 48 layers",
    "compute": "all FLOPs of 3.4, at the T4's peak",
}


def check_time(name, expected_ms):
    for L, right in expected_ms.items():
        times = decode_times(L)
        assert isinstance(times, dict) and set(times) == set(time_hints), f"the keys are {sorted(time_hints)}"
        assert is_number(times[name]), f"decode_times({L}): {name} has to be a number, and not {times[name]!r}"
        said = f"decode_times({L}) gave {times[name]:.6g} ms as {name}: {time_hints[name]}"
        assert is_near(times[name], right, 0.01), said


check_time("weights", {64: 9.833, 1000: 9.833})
check_time("other", {64: 0.012288, 1000: 0.04224})
### BEGIN HIDDEN TESTS
check_time("weights", {1: 2949888000 / 3e8, 5003: 2949888000 / 3e8})
check_time("other", {L: (3072000 + 9600 * L) / 3e8 for L in (1, 128, 1024, 4099)})
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_1_more_test", "grade": true, "points": 2} rooflab={"needs": ["q3_4"]}
check_time("cache", {64: 0.065536, 1000: 1.024})
check_time("compute", {64: 0.045684, 1000: 0.050177})
### BEGIN HIDDEN TESTS
check_time("cache", {L: 307200 * L / 3e8 for L in (1, 128, 1024, 4099)})
check_time("compute", {L: (2949504000 + 312000 * L) / 65e9 for L in (1, 128, 1024, 4099)})
### END HIDDEN TESTS

# %%
rows = [(L, *(f"{decode_times(L)[name]:.3f}" for name in time_hints)) for L in (1, 32, 256, 1024, 4096, 16384)]
Table(("L", *(f"{name}, ms" for name in time_hints)), rows, "A decode step of GPT-2 XL on a T4, B = 1")

# %% [markdown]
# GPT-2 XL can read texts of 1024 tokens. The rows below that are for a model of its size that can read more.
#
# - `largest`: `"weights"`, `"other"` or `"compute"`: the largest of these three at L = 1024
# - `cache_equals_weights`: the L at which reading the cache takes as long as reading the weights
# - `what_helps`: which change shortens this step at L = 1024 the most? Explain your letter in a sentence below.
#     - `"a"`: A GPU that does arithmetic ten times as fast, with the same memory.
#     - `"b"`: Weights of 8 bits in place of 16.
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
assert largest in ("weights", "other", "compute"), 'largest: "weights", "other" or "compute"'
assert is_number(cache_equals_weights) and cache_equals_weights > 0, "cache_equals_weights is a number of tokens"
### BEGIN HIDDEN TESTS
assert largest == "weights", "largest: compare the three columns of the table at L = 1024"
said = "cache_equals_weights: the weights of all 48 layers against the keys and values of one token in all 48 layers"
assert is_near(cache_equals_weights, 9602.5, 1e-4), said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_1_why_test", "grade": true, "points": 1}
assert what_helps in ("a", "b", "c", "d"), 'what_helps: answer "a", "b", "c" or "d"'
### BEGIN HIDDEN TESTS
assert_choice(
    what_helps,
    "b",
    a="Look at the column of compute: how much of the step would be left?",
    c="Look at the column of other bytes: that is all it could save.",
    d="Half of the column of the cache. Another column has more to give.",
)
### END HIDDEN TESTS

# %% [markdown]
# Whatever is read in this step serves a single token. A second user would share the weights, and that is what a batch
# does. But what if there is only one user?
#
# ## 4.2 Speculative decoding ({points q4_2})
#
# Then several tokens of *one* text have to share them. The large model, the target, cannot write them together, but it
# can *check* them together: one pass over several tokens reads each weight once. Only somebody has to propose those
# tokens. In speculative decoding a small draft model does
# ([Leviathan et al., 2022](https://arxiv.org/abs/2211.17192), [Chen et al., 2023](https://arxiv.org/abs/2302.01318)):
#
# 1. The draft model proposes `gamma` tokens, one after the other.
# 2. The target reads all of them in **one pass**, and gets its own probabilities at each place.
# 3. The first tokens are accepted up to the first one that the target rejects. What follows that one is dropped.
# 4. The pass gives **one more token**, by the target itself: it replaces the rejected one, or it follows the last one
#    if all of them were accepted.
#
# Suppose that the target accepts each token that it looks at with the same probability `alpha`, whatever happened
# before. A pass of the target takes the time 1, however many tokens are in it. A pass of the draft model takes the time
# c. So the drafts and the check take 1 + `gamma` c together, and plain decoding takes 1 for each token.
#
# - `tokens_per_pass(gamma, alpha)`: how many tokens a pass of the target gives on average; `alpha` may be 0 and 1 too
# - `speculative_speedup(gamma, alpha, c)`: how many times faster than plain decoding this is
# - `best_gamma(alpha, c)`: the number of drafts from 1 to 32 with the highest speed-up, an `int`
# - `tokens_to_compute_bound`: a pass stays at the time 1 only as long as it waits for memory. What is the smallest
#   number of tokens in a pass for which GPT-2 XL is compute-bound on a T4? Count weights only: each is 2 bytes, and 2
#   FLOPs a token


# %% nbgrader={"grade_id": "q4_2", "solution": true}
tokens_to_compute_bound = None
### BEGIN SOLUTION
tokens_to_compute_bound = 217  # t tokens: t FLOP/byte, and the ridge is 216.7
### END SOLUTION


def tokens_per_pass(gamma, alpha):
    """Average number of tokens that a pass of the target gives, with gamma drafts of acceptance alpha."""
    ### BEGIN SOLUTION
    if alpha == 1:
        return gamma + 1
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)
    ### END SOLUTION


def speculative_speedup(gamma, alpha, c):
    """Time of plain decoding over that of speculative decoding; c is the draft's time over the target's."""
    ### BEGIN SOLUTION
    return tokens_per_pass(gamma, alpha) / (1 + gamma * c)
    ### END SOLUTION


def best_gamma(alpha, c):
    """The gamma in 1..32 with the highest speed-up: an int."""
    ### BEGIN SOLUTION
    return max(range(1, 33), key=lambda gamma: speculative_speedup(gamma, alpha, c))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_2_test", "grade": true, "points": 2}
def check_number(call, got, expected, relative, hint):
    assert is_number(got), f"{call} has to return a number, and not {got!r}"
    assert is_near(got, expected, relative), f"{call} gave {got:.6g}: {hint}"


def check_tokens(gamma, alpha, expected):
    hint = "how likely is it that the first i drafts are all accepted? And who writes the last token of a pass?"
    check_number(f"tokens_per_pass({gamma}, {alpha})", tokens_per_pass(gamma, alpha), expected, 1e-4, hint)


check_tokens(1, 0.5, 1.5)
check_tokens(2, 0.5, 1.75)
check_tokens(3, 0.0, 1)
check_tokens(3, 1.0, 4)
### BEGIN HIDDEN TESTS
for gamma, alpha in [(4, 0.8), (7, 0.31), (32, 0.95), (1, 0.0), (32, 1), (5, 0.0), (12, 1.0), (2, 0.999)]:
    check_tokens(gamma, alpha, sum(alpha**accepted for accepted in range(gamma + 1)))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_2_speedup_test", "grade": true, "points": 1}
def check_speedup(gamma, alpha, c, expected):
    hint = "tokens_per_pass in the time of gamma drafts and a check, against one token in the time 1"
    got = speculative_speedup(gamma, alpha, c)
    check_number(f"speculative_speedup({gamma}, {alpha}, {c})", got, expected, 0.01, hint)


check_speedup(2, 0.5, 0.125, 1.4)
check_speedup(3, 1.0, 0.1, 4 / 1.3)
check_speedup(2, 0.0, 0.25, 2 / 3)
### BEGIN HIDDEN TESTS
for gamma, alpha, c in [(4, 0.8, 0.05), (4, 0.0, 0.05), (8, 0.8, 0.2), (32, 0.6, 0.2), (1, 0.5, 1.0), (9, 1, 0)]:
    check_speedup(gamma, alpha, c, sum(alpha**accepted for accepted in range(gamma + 1)) / (1 + gamma * c))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_2_best_test", "grade": true, "points": 1}
def check_best(alpha, c, expected):
    got = best_gamma(alpha, c)
    assert is_count(got), f"best_gamma({alpha}, {c}) has to return an int, and not {got!r}"
    hint = "compare speculative_speedup for every gamma from 1 to 32"
    assert got == expected, f"best_gamma({alpha}, {c}) gave {got}: {hint}"


check_best(0.5, 0.1, 2)
check_best(0.0, 0.1, 1)
check_best(1.0, 0.1, 32)
### BEGIN HIDDEN TESTS
for alpha, c, expected in [(0.8, 0.05, 8), (0.8, 0.2, 4), (0.6, 0.2, 2), (0.99, 0.001, 32), (0.9, 1.0, 1)]:
    check_best(alpha, c, expected)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_2_bound_test", "grade": true, "points": 1}
assert is_count(tokens_to_compute_bound), "tokens_to_compute_bound is a whole number of tokens"
### BEGIN HIDDEN TESTS
said = "tokens_to_compute_bound: what is the intensity of a pass of t tokens, and where is the ridge of a T4?"
assert tokens_to_compute_bound == 217, said
### END HIDDEN TESTS

# %%
curves = {
    f"alpha = {alpha}": {gamma: speculative_speedup(gamma, alpha, 0.05) for gamma in range(1, 17)}
    for alpha in (0.9, 0.8, 0.6, 0.3)
}
plot_speedup(curves, title="Speculative decoding, c = 0.05")

# %% [markdown]
# A draft model that is often right is worth many drafts, and one that is often wrong is worth few: each draft costs
# time, and most of them are dropped. Below the dashed line decoding has become slower. Compare the numbers of drafts
# with your `tokens_to_compute_bound`. How much of the arithmetic that a decode step leaves unused do these checks take?
