# %% [markdown]
# ## b1.2 The largest model ({points b1_2})
#
# Each parameter takes memory for its value, for its gradient, and for the two running means of AdamW.
#
# - `largest_model(gpus, gpu_bytes, per_param)`: how many parameters fit into `gpus` GPUs with `gpu_bytes` bytes each,
#   if a parameter takes `per_param` bytes: an `int`. The arguments are ints, and the result has to be exact however
#   large they are.
# - `fp32_bytes_per_param`: the bytes of a parameter with value, gradient and two means in fp32
# - `mixed_bytes_per_param`: the bytes of a parameter with value and gradient in bf16, and a second value and two means
#   in fp32 for the optimizer
# - `left_out`: which statement about a model of this largest size is true? Choose a letter.
#     - `"a"`: Values and gradients in 16 bits would halve the memory that training needs.
#     - `"b"`: A second GPU of the same size would let the model be four times as large.
#     - `"c"`: It fits only if nothing else takes memory, and the split is perfect.
#     - `"d"`: It trains as it is, because activations and buffers live in the caches of the GPU.


# %% nbgrader={"grade_id": "b1_2", "solution": true}
def largest_model(gpus, gpu_bytes, per_param):
    """Parameters that fit into all GPUs together: an int."""
    ### BEGIN SOLUTION
    return int(gpus * gpu_bytes // per_param)
    ### END SOLUTION


fp32_bytes_per_param = None
mixed_bytes_per_param = None
left_out = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
fp32_bytes_per_param = 4 + 4 + 2 * 4
mixed_bytes_per_param = 2 + 2 + 3 * 4
left_out = "c"
### END SOLUTION

# %% nbgrader={"grade_id": "b1_2_test", "grade": true, "points": 1}
largest_hint = "how many bytes are there in all, and how many whole parameters fit into them?"
assert_counts(largest_model, {(1, 24 * 10**9, 12): 2000000000, (4, 100, 8): 50, (3, 10, 7): 4}, largest_hint)
exact_hint = "a float has 53 bits; divide whole numbers by //"
assert_counts(largest_model, {(1, 10**18 - 1, 10): 10**17 - 1, (1, 2**60 + 2, 2): 2**59 + 1}, exact_hint)
### BEGIN HIDDEN TESTS
assert_counts(largest_model, {(8, 80 * 10**9, 16): 40000000000}, largest_hint)
cases = draws((1, 1000), (10**9, 10**12), (1, 40))
assert_counts(largest_model, {(G, size, n): G * size // n for G, size, n in cases}, largest_hint)
G, size, n = measure.draw(2, 99), measure.draw(10**17, 10**18), measure.draw(2, 9)
assert_counts(largest_model, {(G, size, n): G * size // n, (G, n * size, G * n): size}, exact_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_2_bytes_test", "grade": true, "points": 1}
for name, value in (("fp32_bytes_per_param", fp32_bytes_per_param), ("mixed_bytes_per_param", mixed_bytes_per_param)):
    assert is_count(value), f"{name} must be a whole number (int) of bytes, got {value!r}"
### BEGIN HIDDEN TESTS
said = f"fp32_bytes_per_param is not {fp32_bytes_per_param}: which numbers does a parameter need, and of what size?"
assert fp32_bytes_per_param == 16, said
said = f"mixed_bytes_per_param is not {mixed_bytes_per_param}: count the numbers of 2 bytes and those of 4 bytes"
assert mixed_bytes_per_param == 16, said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_2_choice_test", "grade": true, "points": 1}
assert left_out in tuple("abcd"), f'left_out must be "a", "b", "c" or "d", got {left_out!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    left_out,
    "c",
    a="Compare fp32_bytes_per_param with mixed_bytes_per_param.",
    b="By how much does largest_model grow with the number of GPUs?",
    d="The caches of a GPU have some tens of MB. Compare that with the activations in the table of the next question.",
)
### END HIDDEN TESTS

# %% [markdown]
# Compare the two ways to store a parameter. What shorter numbers do reduce is the time of the matrix products and the
# bytes of the activations.
#
# ## b1.3 What one step holds in memory ({points b1_3})
#
# Now count exactly, for one GPU in fp32. Adam trains P parameters. The model also has `buffers` elements in fp32 that
# are not trained, such as a table of positions. A batch has B sequences of L tokens. Its tokens and its targets are
# int64.
#
# - `training_bytes(P, buffers, B, L)`: two whole numbers, the bytes that are held in memory
#     1. when the forward pass of any step but the first begins: parameters, means, buffers, tokens and targets. There
#        are no gradients at this moment.
#     2. when its backward pass has ended: the same, and the gradients. The activations have been freed.


# %% nbgrader={"grade_id": "b1_3", "solution": true}
def training_bytes(P, buffers, B, L):
    """(bytes held when forward begins, bytes held when backward has ended): two ints."""
    ### BEGIN SOLUTION
    start = 4 * (P + 2 * P + buffers) + 8 * 2 * B * L
    return start, start + 4 * P
    ### END SOLUTION


# %% nbgrader={"grade_id": "b1_3_test", "grade": true, "points": 2}
bytes_hint = "which tensors are held at that moment, and how large is an element of each?"
assert_values(training_bytes, {(1000, 0, 2, 8): (12256, 16256), (1, 10, 1, 1): (68, 72)}, bytes_hint)
### BEGIN HIDDEN TESTS
assert_values(training_bytes, {(1557611200, 0, 8, 1024): (18691465472, 24921910272)}, bytes_hint)
for P, K, B, L in [(2**58 + 1, 1, 1, 1), *draws((1, 10**12), (0, 10**7), (1, 4096), (1, 10**6))]:
    start = 12 * P + 4 * K + 16 * B * L
    assert_values(training_bytes, {(P, K, B, L): (start, start + 4 * P)}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# Does the runtime agree? `training_step(width, layers, B, L)` trains a small model with a buffer for its positions, and
# `rl.memory` counts the bytes that are held. The next cell compares them with your function.

# %%
rows = []
for width, layers, B, L in [(32, 2, 2, 8), (64, 3, 4, 16), (128, 4, 8, 32)]:
    held = training_step(width, layers, B, L)
    start, end = training_bytes(held.parameters, held.buffers, B, L)
    figures = (f"{held.start:,}", f"{start:,}", f"{held.end:,}", f"{end:,}", f"{held.activations:,}", f"{held.peak:,}")
    rows.append((f"{held.parameters:,}", f"{B} x {L}", *figures))
head = ("parameters", "B x L", "held at start", "yours", "held at the end", "yours", "activations", "peak")
Table(head, rows, title="One step of Adam: bytes counted, and by training_bytes")


# %% nbgrader={"grade_id": "b1_3_held_test", "grade": true, "points": 2}
def check_held(width, layers, B, L):
    held = training_step(width, layers, B, L)
    got = training_bytes(held.parameters, held.buffers, B, L)
    case = f"{held.parameters} parameters, {held.buffers} numbers in buffers, B = {B}, L = {L}"
    said = f"training_bytes: {case}: expected two whole numbers (int), got {got!r}"
    assert isinstance(got, (tuple, list)) and len(got) == 2, said
    for when, one, counted in zip(("forward begins", "backward has ended"), got, (held.start, held.end), strict=True):
        assert one == counted, f"training_bytes: {case}: when {when} you return {one}, expected {counted}, as counted"


check_held(16, 1, 1, 4)
check_held(16, 2, 3, 8)
### BEGIN HIDDEN TESTS
for width, layers, B, L in draws((8, 40), (1, 3), (2, 5), (3, 16), count=2):
    check_held(width, layers, B, L)
### END HIDDEN TESTS

# %% [markdown]
# The peak is between the two moments. At the start of the backward pass all activations are still held, and the first
# gradients appear. The activations grow with B and L. In your formula only the tokens and targets do. Recomputation, in
# Part 3, exists to make the activations smaller.
