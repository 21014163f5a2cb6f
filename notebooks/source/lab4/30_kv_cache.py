# %% [markdown]
# # Part 3. The KV cache
#
# To make the next token, the model of Part 2 processes the whole text again. Most of that work has been done before.
# The keys and values of a token depend only on this token and on the tokens before it, so later tokens never change
# them. If you store them, the next step has to process only *one* new token per sequence. The stored keys and values
# are the **KV cache**. What does it cost, and what does it save?
#
# ## 3.1 The size of the cache ({points q3_1})
#
# - `kv_cache_bytes(B, L, D, layers, n)`: the bytes of the keys and values of L tokens in each of B sequences. Every
#   layer has its own.
# - `cache_bytes_per_token`: for GPT-2 XL (48 layers, D = 1600, n = 2), the bytes that one more token of one sequence
#   adds in all layers together


# %% nbgrader={"grade_id": "q3_1", "solution": true} rooflab={"counters": false}
def kv_cache_bytes(B, L, D, layers, n):
    """Bytes of the keys and values of L tokens in each of B sequences, in all layers: an int."""
    ### BEGIN SOLUTION
    return layers * 2 * n * B * L * D
    ### END SOLUTION


cache_bytes_per_token = None
### BEGIN SOLUTION
cache_bytes_per_token = kv_cache_bytes(1, 1, 1600, 48, 2)
### END SOLUTION

# %% nbgrader={"grade_id": "q3_1_test", "grade": true, "points": 2}
cache_hint = "in every layer a token has a key of D elements and a value of D elements"
assert_counts(kv_cache_bytes, {(2, 8, 16, 1, 2): 1024, (2, 8, 16, 3, 2): 3072, (1, 1, 1, 1, 4): 8}, cache_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D layers n"), (100003, 1000003, 10007, 97, 2), (3, 900000011, 900000011, 1, 1)]
expected = {(B, L, D, layers, n): 2 * n * B * L * D * layers for B, L, D, layers, n in sizes}
assert_counts(kv_cache_bytes, expected, cache_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_1_token_test", "grade": true, "points": 1}
said = f"cache_bytes_per_token must be a whole number (int), got {cache_bytes_per_token!r}"
assert is_count(cache_bytes_per_token), said
### BEGIN HIDDEN TESTS
said = f"cache_bytes_per_token is not {cache_bytes_per_token}: what do all layers keep for one token?"
assert cache_bytes_per_token == 307200, said
### END HIDDEN TESTS

# %% [markdown]
# Does the cache fit? A T4 has 16 GB of memory, and the weights take a part of it.

# %%
weights = model_bytes_terms["1"]
rows = []
for B, L in [(1, 32), (1, 1024), (16, 1024), (64, 32), (64, 1024)]:
    cache = kv_cache_bytes(B, L, 1600, 48, 2)
    fits = "yes" if weights + cache <= 16e9 else "no"
    rows.append((B, L, f"{cache / 1e9:.2f}", f"{(weights + cache) / 1e9:.2f}", fits))
head = ("B", "L", "cache GB", "with weights GB", "fits in 16 GB")
Table(head, rows, title="GPT-2 XL with its KV cache")

# %% [markdown]
# For 64 texts of 1024 tokens the cache is several times as large as the model, and it does not fit on the T4. We still
# ask how fast a T4 *would* be if it had the memory, because the bytes must be read from any memory.
#
# ## 3.2 Attention of one new token ({points q3_2})
#
# A decode step adds one token to each of B sequences. L is the length of the text *including* the new token. The
# operations are those of Part 1 with a single row of queries per sequence:
#
# - The three projections process B tokens. They write the new keys and values, which go into the cache.
# - Each head compares its query with L keys, which gives B·H·L scores. The product scales them, as before.
# - There is no mask: the new token may attend to every token of the text.
# - The softmax reads and writes these B·H·L scores. The product with the values follows.
# - The two products read the keys and the values of all L tokens from the cache, including those of the new token.
# - The output projection processes B tokens.
#
# Write `decode_attention_flops(B, L, D, H)` and `decode_attention_bytes(B, L, D, H, n)`. Then give the coefficients for
# GPT-2 XL:
#
# - `decode_attention_flops_terms`: the coefficients of B and BL
# - `decode_attention_bytes_terms`: the constant term, and the coefficients of B and BL


# %% nbgrader={"grade_id": "q3_2", "solution": true} rooflab={"counters": false}
def decode_attention_flops(B, L, D, H):
    """FLOPs of attention, with its projections, for one new token per sequence, the L-th: an int."""
    ### BEGIN SOLUTION
    heads = B * H * (matmul_flops(1, D // H, L) + L + 3 * L + matmul_flops(1, L, D // H))
    return projection_flops(B, 1, D) + heads + output_flops(B, 1, D)
    ### END SOLUTION


def decode_attention_bytes(B, L, D, H, n):
    """Bytes that the same operations read and write: an int."""
    ### BEGIN SOLUTION
    heads = B * H * (matmul_bytes(1, D // H, L, n) + 2 * n * L + matmul_bytes(1, L, D // H, n))
    return projection_bytes(B, 1, D, n) + heads + output_bytes(B, 1, D, n)
    ### END SOLUTION


decode_attention_flops_terms = {"B": None, "BL": None}
decode_attention_bytes_terms = {"1": None, "B": None, "BL": None}
### BEGIN SOLUTION
decode_attention_flops_terms = {"B": 20480000, "BL": 6500}
decode_attention_bytes_terms = {"1": 20480000, "B": 32000, "BL": 6600}
### END SOLUTION

# %% nbgrader={"grade_id": "q3_2_test", "grade": true, "points": 2} rooflab={"needs": ["q2_1"]}
flops_hint = "projections and output of B tokens; per head: L scores with scaling, softmax and values, but no mask"
cases = {(2, 8, 16, 4): 5376, (2, 1, 16, 4): 4256, (3, 2, 10, 5): 2760, (1, 1, 1, 1): 16}
assert_counts(decode_attention_flops, cases, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H"), (30011, 1000003, 101000, 101), (7, 900000011, 7070007, 7)]
expected = {(B, L, D, H): 8 * B * D**2 + 4 * B * L * (D + H) for B, L, D, H in sizes}
assert_counts(decode_attention_flops, expected, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_2_bytes_test", "grade": true, "points": 2} rooflab={"needs": ["q3_1"]}
bytes_hint = (
    "the scores are moved 4 times: written, read and written by the softmax, read; all keys and values are read"
)
cases = {(2, 8, 16, 4, 2): 4224, (2, 1, 16, 4, 2): 2880, (3, 2, 10, 5, 4): 3760, (1, 1, 1, 1, 2): 40}
assert_counts(decode_attention_bytes, cases, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H n"), (30011, 1000003, 101000, 101, 2), (9, 900000011, 7070007, 7, 1)]
expected = {(B, L, D, H, n): n * (10 * B * D + 4 * D**2 + 2 * B * L * (D + 2 * H)) for B, L, D, H, n in sizes}
assert_counts(decode_attention_bytes, expected, bytes_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_2_terms_test", "grade": true, "points": 2}
cases = [(1, 1), (3, 7), (2, 1000)]
counted = {(B, L): decode_attention_flops(B, L, 1600, 25) for B, L in cases}
assert_terms("decode_attention_flops_terms", decode_attention_flops_terms, ("B", "BL"), counted)
counted = {(B, L): decode_attention_bytes(B, L, 1600, 25, 2) for B, L in cases}
assert_terms("decode_attention_bytes_terms", decode_attention_bytes_terms, ("1", "B", "BL"), counted)
### BEGIN HIDDEN TESTS
said = "decode_attention_flops_terms: put D = 1600 and H = 25 into your formula"
assert decode_attention_flops_terms == {"B": 20480000, "BL": 6500}, said
said = "decode_attention_bytes_terms: put D = 1600, H = 25 and n = 2 into your formula"
assert decode_attention_bytes_terms == {"1": 20480000, "B": 32000, "BL": 6600}, said
### END HIDDEN TESTS

# %% [markdown]
# ## 3.3 The MLP of one new token ({points q3_3})
#
# - `decode_mlp_flops(B, D)` and `decode_mlp_bytes(B, D, n)`: the MLP in a decode step, with one new token per sequence.


# %% nbgrader={"grade_id": "q3_3", "solution": true} rooflab={"counters": false}
def decode_mlp_flops(B, D):
    """FLOPs of the MLP for one new token per sequence: an int."""
    ### BEGIN SOLUTION
    return mlp_flops(B, 1, D)
    ### END SOLUTION


def decode_mlp_bytes(B, D, n):
    """Bytes that the MLP reads and writes for one new token per sequence: an int."""
    ### BEGIN SOLUTION
    return mlp_bytes(B, 1, D, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_3_test", "grade": true, "points": 1} rooflab={"needs": ["q1_6_1", "q1_6_2"]}
flops_hint = "the MLP processes B tokens in this step: is this mlp_flops of one token per sequence?"
assert_counts(decode_mlp_flops, {(2, 16): 8352, (1, 1): 21, (3, 5): 1275}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B D"), (30011, 1000003), (1, 600000001)]
assert_counts(decode_mlp_flops, {(B, D): 16 * B * D**2 + 5 * B * D for B, D in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_3_bytes_test", "grade": true, "points": 1}
bytes_hint = "weights and biases are read once for the whole batch"
assert_counts(decode_mlp_bytes, {(2, 16, 2): 4896, (1, 1, 2): 46, (3, 5, 4): 1500}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B D n"), (900007, 30000001, 2), (1, 600000001, 1)]
assert_counts(decode_mlp_bytes, {(B, D, n): n * (10 * B * D + 8 * D**2 + 5 * D) for B, D, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.4 The model ({points q3_4})
#
# - `decode_model_flops(B, L, D, H, layers)` and `decode_model_bytes(B, L, D, H, layers, n)`: a decode step through all
#   layers
# - `decode_flops_terms` and `decode_bytes_terms`: their coefficients for GPT-2 XL with its 48 layers


# %% nbgrader={"grade_id": "q3_4", "solution": true} rooflab={"counters": false}
def decode_model_flops(B, L, D, H, layers):
    """FLOPs of a decode step through all layers: an int."""
    ### BEGIN SOLUTION
    return layers * (decode_attention_flops(B, L, D, H) + decode_mlp_flops(B, D))
    ### END SOLUTION


def decode_model_bytes(B, L, D, H, layers, n):
    """Bytes that a decode step through all layers reads and writes: an int."""
    ### BEGIN SOLUTION
    return layers * (decode_attention_bytes(B, L, D, H, n) + decode_mlp_bytes(B, D, n))
    ### END SOLUTION


decode_flops_terms = {"B": None, "BL": None}
decode_bytes_terms = {"1": None, "B": None, "BL": None}
### BEGIN SOLUTION
decode_flops_terms = {"B": 2949504000, "BL": 312000}
decode_bytes_terms = {"1": 2949888000, "B": 3072000, "BL": 316800}
### END SOLUTION

# %% nbgrader={"grade_id": "q3_4_test", "grade": true, "points": 1} rooflab={"needs": ["q3_2", "q3_3"]}
flops_hint = "add up decode attention and decode MLP of one layer, and multiply by the layers"
cases = {(2, 8, 16, 4, 1): 13728, (2, 8, 16, 4, 3): 41184, (3, 2, 10, 5, 2): 15420}
assert_counts(decode_model_flops, cases, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H layers"), (3001, 1000003, 101000, 101, 97), (7, 90000001, 7070007, 7, 89)]
expected = {(B, L, D, H, layers): layers * B * (24 * D**2 + 4 * L * (D + H) + 5 * D) for B, L, D, H, layers in sizes}
assert_counts(decode_model_flops, expected, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_bytes_test", "grade": true, "points": 1}
bytes_hint = "add up decode attention and decode MLP of one layer, and multiply by the layers"
cases = {(2, 8, 16, 4, 1, 2): 9120, (2, 8, 16, 4, 3, 2): 27360, (3, 2, 10, 5, 2, 4): 16720}
assert_counts(decode_model_bytes, cases, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [
    *sample_sizes("B L D H layers n"),
    (3001, 1000003, 101000, 101, 97, 2),
    (7, 90000001, 70007, 7, 89, 4),
]
expected = {
    (B, L, D, H, layers, n): layers * n * (20 * B * D + 12 * D**2 + 2 * B * L * D + 4 * B * H * L + 5 * D)
    for B, L, D, H, layers, n in sizes
}
assert_counts(decode_model_bytes, expected, bytes_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_terms_test", "grade": true, "points": 1}
cases = [(1, 1), (3, 7), (2, 1000)]
counted = {(B, L): decode_model_flops(B, L, 1600, 25, 48) for B, L in cases}
assert_terms("decode_flops_terms", decode_flops_terms, ("B", "BL"), counted)
counted = {(B, L): decode_model_bytes(B, L, 1600, 25, 48, 2) for B, L in cases}
assert_terms("decode_bytes_terms", decode_bytes_terms, ("1", "B", "BL"), counted)
### BEGIN HIDDEN TESTS
said = "decode_flops_terms: add up the terms of 3.2 and 3.3, and multiply by 48 layers"
assert decode_flops_terms == {"B": 2949504000, "BL": 312000}, said
said = "decode_bytes_terms: add up the terms of 3.2 and 3.3, and multiply by 48 layers"
assert decode_bytes_terms == {"1": 2949888000, "B": 3072000, "BL": 316800}, said
### END HIDDEN TESTS

# %% [markdown]
# Compare these coefficients with those of Part 2. Which are the same, which are gone, and what does each new one count?
# A token that is added to a text of a thousand tokens takes only about a tenth more FLOPs than the first one.
