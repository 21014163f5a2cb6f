# %% [markdown]
# ## b1.6 FLOPs, forward and backward ({points b1_6})
#
# Where do the 6 FLOPs per parameter and token come from, and when are there fewer? Count:
#
# - `add_flops(M, N)`: the FLOPs of A + B, both (M, N)
# - `gram_flops(M, N)`: the FLOPs of $A^T B$ of the same two matrices
# - `linear_flops(tokens, d_in, d_out)`: the FLOPs of a linear layer without a bias on `tokens` tokens
# - `two_layers_flops(tokens, d, h, o, input_gradient)`: the FLOPs `(forward, backward)` of the network $y = (x W_1)\,
#   W_2$ with x (tokens, d), W₁ (d, h) and W₂ (h, o). The backward pass starts from a given gradient of y. It computes
#   the gradients of W₁ and W₂, and the gradient of x only if `input_gradient` is true.
#
# <details><summary>Hint</summary>
#
# Each layer $Y = X W$ has two products in its backward pass: $X^T\, dY$ is the gradient of W, and $dY\, W^T$ is the
# gradient of X. Which of the four products of this network is not needed if x needs no gradient?
# </details>


# %% nbgrader={"grade_id": "b1_6", "solution": true} rooflab={"counters": false}
def add_flops(M, N):
    """FLOPs of A + B, both (M, N): an int."""
    ### BEGIN SOLUTION
    return M * N
    ### END SOLUTION


def gram_flops(M, N):
    """FLOPs of A^T B, both (M, N): an int."""
    ### BEGIN SOLUTION
    return 2 * N * N * M
    ### END SOLUTION


def linear_flops(tokens, d_in, d_out):
    """FLOPs of (tokens, d_in) times (d_in, d_out): an int."""
    ### BEGIN SOLUTION
    return 2 * tokens * d_in * d_out
    ### END SOLUTION


def two_layers_flops(tokens, d, h, o, input_gradient):
    """(forward, backward) FLOPs of (x W1) W2: two ints."""
    ### BEGIN SOLUTION
    first, second = linear_flops(tokens, d, h), linear_flops(tokens, h, o)
    return first + second, 2 * second + (2 if input_gradient else 1) * first
    ### END SOLUTION


# %% nbgrader={"grade_id": "b1_6_test", "grade": true, "points": 2}
add_hint = "how many elements does the result have, and what does each of them take?"
assert_counts(add_flops, {(3, 5): 15, (1, 1): 1}, add_hint)
gram_hint = "which shape does the result have, and how many multiply-accumulates does each of its elements take?"
assert_counts(gram_flops, {(3, 5): 150, (5, 3): 90, (1, 1): 2}, gram_hint)
linear_hint = "this is a product of two matrices: which shapes do they have?"
assert_counts(linear_flops, {(2, 3, 5): 60, (1024, 256, 64): 33554432}, linear_hint)
### BEGIN HIDDEN TESTS
sizes = draws((1, 10**7), (1, 10**7), (1, 10**7))
assert_counts(add_flops, {(M, N): M * N for M, N, _ in sizes}, add_hint)
assert_counts(gram_flops, {(M, N): 2 * M * N**2 for M, N, _ in sizes}, gram_hint)
assert_counts(linear_flops, {(B, I, O): 2 * B * I * O for B, I, O in sizes}, linear_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_6_forward_test", "grade": true, "points": 1}
two_hint = "which two products does the forward pass run?"
for case, right in {(2, 3, 5, 7): 200, (1, 1, 1, 1): 4, (4, 1, 2, 3): 64}.items():
    got = two_layers_flops(*case, False)
    said = f"two_layers_flops{(*case, False)} must return two whole numbers (int), got {got!r}"
    assert isinstance(got, (tuple, list)) and len(got) == 2 and all(map(is_count, got)), said
    said = f"two_layers_flops{(*case, False)} returned {got[0]} forward, expected {right}. Hint: {two_hint}"
    assert got[0] == right, said
### BEGIN HIDDEN TESTS
for case in [
    (1024, 256, 64, 64),
    (10**6 + 3, 10**6 + 1, 10**6 + 7, 10**6 + 9),
    *draws((1, 10**6), (1, 10**5), (1, 10**5), (1, 10**5)),
]:
    for needed in (False, True):
        T, d, h, o = case
        got = two_layers_flops(T, d, h, o, needed)
        right = 2 * T * h * (d + o)
        said = f"two_layers_flops{(*case, needed)} returned {got[0]} forward, expected {right}. Hint: {two_hint}"
        assert got[0] == right, said
        said = f"two_layers_flops{(*case, needed)} returned {got[1]} backward: which gradients does each layer need?"
        assert got[1] == 2 * right - 2 * T * d * h * (not needed), said
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b1_6_backward_test", "grade": true, "points": 3}
def check_backward(*case, expected):
    got = lab4.on_paper(two_layers_flops, *case)
    said = f"two_layers_flops{case} must return two whole numbers (int), got {got!r}"
    assert isinstance(got, (tuple, list)) and len(got) == 2 and all(map(is_count, got)), said
    got = got[1]
    said = f"two_layers_flops{case} returned {got} backward, expected {expected}: which gradients does each layer need?"
    assert got == expected, said


check_backward(2, 3, 5, 7, False, expected=340)
check_backward(2, 3, 5, 7, True, expected=400)
check_backward(4, 6, 2, 2, False, expected=160)
check_backward(4, 6, 2, 2, True, expected=256)


### BEGIN HIDDEN TESTS
def counted_backward(tokens, d, h, o, input_gradient):
    """FLOPs of the products in the backward pass, as the runtime counts them."""
    x = rl.ones(tokens, d, requires_grad=input_gradient)
    W1, W2 = rl.ones(d, h, requires_grad=True), rl.ones(h, o, requires_grad=True)
    y, upstream = x @ W1 @ W2, rl.ones(tokens, o)
    with rl.count() as c:
        y.backward(upstream)
    return 2 * c.macs


assert two_layers_flops(1024, 256, 64, 64, False)[1] == 50331648, "backward without a gradient of x: three products"
assert two_layers_flops(1024, 256, 64, 64, True)[1] == 83886080, "backward with a gradient of x: four products"
for case in draws((1, 20), (1, 20), (1, 20), (1, 20), count=6):
    for needed in (False, True):
        check_backward(*case, needed, expected=counted_backward(*case, needed))
### END HIDDEN TESTS

# %%
rows, params = [], 256 * 64 + 64 * 64
for needed in (False, True):
    forward, backward = two_layers_flops(1024, 256, 64, 64, needed)
    total = forward + backward
    rows.append((needed, f"{forward:,}", f"{backward:,}", f"{total:,}", f"{total / (1024 * params):.2f}"))
head = ("gradient of x", "forward", "backward", "sum", "FLOPs per token and parameter")
Table(head, rows, title="x (1024, 256), W1 (256, 64), W2 (64, 64)")

# %% [markdown]
# So the rule is 2 FLOPs forward and 4 backward, 6 in all, for every layer whose input needs a gradient. The first layer
# of a network takes only 2 backward, because no one needs the gradient of the data. In a deep model this hardly
# matters. Here the first layer has 80 % of the weights. The network takes 4.4 FLOPs per parameter and token, so the
# rule is too high by 36 %.
