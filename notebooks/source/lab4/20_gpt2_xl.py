# %% [markdown]
# # Part 2. GPT-2 XL, added up
#
# GPT-2 XL ([Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)) is a
# stack of 48 equal layers. `GPT2_XL` holds its sizes: D = 1600, H = 25 heads of size 64, and 4D = 6400 elements inside
# the MLP. Here it runs in fp16, so n = 2. Its longest text has 1024 tokens.
#
# ## 2.1 The attention of a layer ({points q2_1})
#
# - `attention_flops(B, L, D, H)` and `attention_bytes(B, L, D, H, n)`: the projections, attention with H heads, and the
#   output projection together.
#
# Then put D, H and n of GPT-2 XL into your formulas. What remains is a polynomial in B and L. Write its coefficients
# down as dicts, because they show at once which term is large:
#
# - `attention_flops_terms`: the coefficients of BL and BL²
# - `attention_bytes_terms`: the constant term (key `"1"`), and the coefficients of BL and BL²
#
# For example, 7 + 3BL would be `{"1": 7, "BL": 3}`. `value_of(terms, B, L)` evaluates such a dict. A call of your
# function with B = L = 1 gives the sum of the coefficients, so three calls are enough to find three of them. Write them
# as ints: a solver of linear equations would return floats.


# %% nbgrader={"grade_id": "q2_1", "solution": true} rooflab={"counters": false}
def attention_flops(B, L, D, H):
    """FLOPs of the projections, attention with H heads, and the output projection: an int."""
    ### BEGIN SOLUTION
    return projection_flops(B, L, D) + mha_flops(B, L, D, H) + output_flops(B, L, D)
    ### END SOLUTION


def attention_bytes(B, L, D, H, n):
    """Bytes that the same operations read and write, n bytes per element: an int."""
    ### BEGIN SOLUTION
    return projection_bytes(B, L, D, n) + mha_bytes(B, L, D, H, n) + output_bytes(B, L, D, n)
    ### END SOLUTION


attention_flops_terms = {"BL": None, "BL^2": None}
attention_bytes_terms = {"1": None, "BL": None, "BL^2": None}
### BEGIN SOLUTION
attention_flops_terms = {"BL": 20480000, "BL^2": 6525}
attention_bytes_terms = {"1": 20480000, "BL": 38400, "BL^2": 300}
### END SOLUTION

# %% nbgrader={"grade_id": "q2_1_test", "grade": true, "points": 1} rooflab={"needs": ["q1_2", "q1_4_1", "q1_5"]}
flops_hint = "add up the projections, attention with H heads, and the output projection"
assert_counts(attention_flops, {(2, 8, 16, 4): 43520, (3, 2, 10, 5): 5580, (1, 1, 1, 1): 17}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H"), (3, 1000003, 10100, 101), (1, 300000007, 7, 7)]
expected = {(B, L, D, H): B * L * (8 * D**2 + 4 * L * D + 5 * H * L) for B, L, D, H in sizes}
assert_counts(attention_flops, expected, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_bytes_test", "grade": true, "points": 1} rooflab={"needs": ["q1_4_2"]}
bytes_hint = "add up the projections, attention with H heads, and the output projection"
assert_counts(attention_bytes, {(2, 8, 16, 4, 2): 14336, (3, 2, 10, 5, 4): 5920, (1, 1, 1, 1, 2): 44}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H n"), (3, 50000017, 1010, 101, 2), (1, 100000007, 7, 7, 8)]
expected = {(B, L, D, H, n): n * (B * L * (12 * D + 6 * H * L) + 4 * D**2) for B, L, D, H, n in sizes}
assert_counts(attention_bytes, expected, bytes_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_flops_terms_test", "grade": true, "points": 1}
counted = {(B, L): attention_flops(B, L, 1600, 25) for B, L in [(1, 1), (3, 7), (2, 1000)]}
assert_terms("attention_flops_terms", attention_flops_terms, ("BL", "BL^2"), counted)
### BEGIN HIDDEN TESTS
said = "attention_flops_terms: put D = 1600 and H = 25 into your formula"
assert attention_flops_terms == {"BL": 20480000, "BL^2": 6525}, said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_bytes_terms_test", "grade": true, "points": 1}
counted = {(B, L): attention_bytes(B, L, 1600, 25, 2) for B, L in [(1, 1), (3, 7), (2, 1000)]}
assert_terms("attention_bytes_terms", attention_bytes_terms, ("1", "BL", "BL^2"), counted)
### BEGIN HIDDEN TESTS
said = "attention_bytes_terms: put D = 1600, H = 25 and n = 2 into your formula"
assert attention_bytes_terms == {"1": 20480000, "BL": 38400, "BL^2": 300}, said
### END HIDDEN TESTS

# %% [markdown]
# ## 2.2 The MLP of a layer ({points q2_2})
#
# - `mlp_flops_terms` and `mlp_bytes_terms`: the coefficients of `mlp_flops` and `mlp_bytes` for GPT-2 XL. The MLP has
#   no term in L².

# %% nbgrader={"grade_id": "q2_2", "solution": true} rooflab={"counters": false}
mlp_flops_terms = {"BL": None}
mlp_bytes_terms = {"1": None, "BL": None}
### BEGIN SOLUTION
mlp_flops_terms = {"BL": 40968000}
mlp_bytes_terms = {"1": 40976000, "BL": 32000}
### END SOLUTION

# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 1} rooflab={"needs": ["q1_6_1"]}
counted = {(B, L): mlp_flops(B, L, 1600) for B, L in [(1, 1), (3, 7), (2, 1000)]}
assert_terms("mlp_flops_terms", mlp_flops_terms, ("BL",), counted)
### BEGIN HIDDEN TESTS
assert mlp_flops_terms == {"BL": 40968000}, "mlp_flops_terms: put D = 1600 into your formula"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_bytes_test", "grade": true, "points": 1} rooflab={"needs": ["q1_6_2"]}
counted = {(B, L): mlp_bytes(B, L, 1600, 2) for B, L in [(1, 1), (3, 7), (2, 1000)]}
assert_terms("mlp_bytes_terms", mlp_bytes_terms, ("1", "BL"), counted)
### BEGIN HIDDEN TESTS
said = "mlp_bytes_terms: put D = 1600 and n = 2 into your formula"
assert mlp_bytes_terms == {"1": 40976000, "BL": 32000}, said
### END HIDDEN TESTS

# %% [markdown]
# ## 2.3 The model ({points q2_3})
#
# - `model_flops(B, L, D, H, layers)` and `model_bytes(B, L, D, H, layers, n)`: attention and MLP of all layers together
# - `model_flops_terms` and `model_bytes_terms`: their coefficients for GPT-2 XL with its 48 layers


# %% nbgrader={"grade_id": "q2_3", "solution": true} rooflab={"counters": false}
def model_flops(B, L, D, H, layers):
    """FLOPs of all layers: an int."""
    ### BEGIN SOLUTION
    return layers * (attention_flops(B, L, D, H) + mlp_flops(B, L, D))
    ### END SOLUTION


def model_bytes(B, L, D, H, layers, n):
    """Bytes that all layers read and write: an int."""
    ### BEGIN SOLUTION
    return layers * (attention_bytes(B, L, D, H, n) + mlp_bytes(B, L, D, n))
    ### END SOLUTION


model_flops_terms = {"BL": None, "BL^2": None}
model_bytes_terms = {"1": None, "BL": None, "BL^2": None}
### BEGIN SOLUTION
model_flops_terms = {"BL": 2949504000, "BL^2": 313200}
model_bytes_terms = {"1": 2949888000, "BL": 3379200, "BL^2": 14400}
### END SOLUTION

# %% nbgrader={"grade_id": "q2_3_test", "grade": true, "points": 1} rooflab={"needs": ["q2_1", "q1_6_1", "q1_6_2"]}
flops_hint = "add up attention and MLP of one layer, and multiply by the layers"
assert_counts(model_flops, {(2, 8, 16, 4, 1): 110336, (2, 8, 16, 4, 3): 331008, (3, 2, 10, 5, 2): 30960}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H layers"), (3, 1000003, 1010, 101, 97), (1, 30000001, 7, 7, 89)]
expected = {
    (B, L, D, H, layers): layers * B * L * (24 * D**2 + 4 * L * D + 5 * H * L + 5 * D) for B, L, D, H, layers in sizes
}
assert_counts(model_flops, expected, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_3_bytes_test", "grade": true, "points": 1}
bytes_hint = "add up attention and MLP of one layer, and multiply by the layers: each layer reads weights of its own"
cases = {(2, 8, 16, 4, 1, 2): 23712, (2, 8, 16, 4, 3, 2): 71136, (3, 2, 10, 5, 2, 4): 23440}
assert_counts(model_bytes, cases, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H layers n"), (3, 3000017, 1010, 101, 97, 2), (1, 10000019, 7, 7, 89, 8)]
expected = {
    (B, L, D, H, layers, n): layers * n * (22 * B * L * D + 12 * D**2 + 6 * H * B * L**2 + 5 * D)
    for B, L, D, H, layers, n in sizes
}
assert_counts(model_bytes, expected, bytes_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_3_terms_test", "grade": true, "points": 1}
cases = [(1, 1), (3, 7), (2, 1000)]
counted = {(B, L): model_flops(B, L, 1600, 25, 48) for B, L in cases}
assert_terms("model_flops_terms", model_flops_terms, ("BL", "BL^2"), counted)
counted = {(B, L): model_bytes(B, L, 1600, 25, 48, 2) for B, L in cases}
assert_terms("model_bytes_terms", model_bytes_terms, ("1", "BL", "BL^2"), counted)
### BEGIN HIDDEN TESTS
said = "model_flops_terms: add up the terms of 2.1 and 2.2, and multiply by 48 layers"
assert model_flops_terms == {"BL": 2949504000, "BL^2": 313200}, said
said = "model_bytes_terms: add up the terms of 2.1 and 2.2, and multiply by 48 layers"
assert model_bytes_terms == {"1": 2949888000, "BL": 3379200, "BL^2": 14400}, said
### END HIDDEN TESTS

# %% [markdown]
# Look at your coefficients for the model. The constant term of the bytes is the weights, 2 bytes each. They are read
# however few tokens you process. The coefficient of BL in the FLOPs is almost the same number: each token takes 2 FLOPs
# per weight, one multiplication and one addition. This rule of thumb, *two FLOPs per weight and token*, holds for every
# transformer in which each token meets all weights, as long as the text is short.

# %%
weights = model_bytes_terms["1"] // 2
print(f"weights counted here: {weights:,}")
print("parameters of GPT-2 XL: 1,557,611,200")
print(f"share: {weights / 1557611200:.1%}; the rest are embeddings, norms, and the biases of the projections")
per_weight = model_flops_terms["BL"] / weights
print(f"FLOPs per token, without the scores: {model_flops_terms['BL']:,}, or {per_weight:.4f} per weight")

# %% [markdown]
# At which length do the scores matter, for FLOPs and for bytes? The plot shows the shares of the parts of a layer:


# %%
def parts_of_a_layer(B, L, D=1600, H=25, n=2):
    """FLOPs and bytes of the parts of a layer of GPT-2 XL."""
    flops = {
        "projections": projection_flops(B, L, D),
        "attention": mha_flops(B, L, D, H),
        "output": output_flops(B, L, D),
        "MLP": mlp_flops(B, L, D),
    }
    moved = {
        "projections": projection_bytes(B, L, D, n),
        "attention": mha_bytes(B, L, D, H, n),
        "output": output_bytes(B, L, D, n),
        "MLP": mlp_bytes(B, L, D, n),
    }
    return flops, moved


shares = {}
for L in (32, 1024):
    shares[f"FLOPs, L = {L}"], shares[f"bytes, L = {L}"] = parts_of_a_layer(1, L)
rl.plots.plot_shares(shares, title="A layer of GPT-2 XL, B = 1")

# %% [markdown]
# At L = 1024, attention does about a tenth of the arithmetic and moves most of the bytes. If you count FLOPs alone, you
# do not see that.
