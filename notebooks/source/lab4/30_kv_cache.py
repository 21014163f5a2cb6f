# %% [markdown]
# # Part 3. Keeping keys and values
#
# To make the next token, the model of Part 2 handles the whole text again. Most of that work has been done before. A
# token's keys and values depend on this token and on those before it, so what follows never changes them. Keep them,
# and the next step has to handle *one* token in each sequence. This is the **KV cache**. What does it cost, and what
# does it gain?
#
# ## 3.1 What it holds ({points q3_1})
#
# - `kv_cache_bytes(B, L, D, layers, n)`: the bytes of the keys and values of L tokens in each of B sequences. Every
#   layer has its own.
# - `cache_bytes_per_token`: for GPT-2 XL, the bytes that one token of one sequence adds, in all layers together


# %% nbgrader={"grade_id": "q3_1", "solution": true}
def kv_cache_bytes(B, L, D, layers, n):
    """Bytes of the keys and values of B L tokens in all layers: an int."""
    ### BEGIN SOLUTION
    return layers * 2 * n * B * L * D
    ### END SOLUTION


cache_bytes_per_token = None
### BEGIN SOLUTION
cache_bytes_per_token = kv_cache_bytes(1, 1, 1600, 48, 2)
### END SOLUTION

# %% nbgrader={"grade_id": "q3_1_test", "grade": true, "points": 2}
cache_hint = "each token has D numbers of keys and as many of values, in every layer"
assert_counts(kv_cache_bytes, {(2, 8, 16, 1, 2): 1024, (2, 8, 16, 3, 2): 3072, (1, 1, 1, 1, 4): 8}, cache_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D layers n", seed=3101), (100003, 1000003, 10007, 97, 2), (3, 900000011, 900000011, 1, 1)]
expected = {(B, L, D, layers, n): 2 * n * B * L * D * layers for B, L, D, layers, n in sizes}
assert_counts(kv_cache_bytes, expected, cache_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_1_token_test", "grade": true, "points": 1}
assert is_count(cache_bytes_per_token), "cache_bytes_per_token is a whole number"
### BEGIN HIDDEN TESTS
said = "cache_bytes_per_token: one token of one sequence, keys and values of all 48 layers of GPT-2 XL, n = 2"
assert cache_bytes_per_token == 307200, said
### END HIDDEN TESTS

# %% [markdown]
# Does it fit? A T4 has 16 GB of memory, and the weights take 2.9 GB of it.

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
# For 64 full texts the cache is seven times as large as the model. It does not fit on the T4. We go on and ask how fast
# it *would* be, since the bytes have to be read wherever they are kept.
#
# ## 3.2 Attention of one new token ({points q3_2})
#
# One step of decode adds one token to each of B sequences. L counts the text *with* the new token. The operations are
# those of Part 1 with a single row of queries:
#
# - The three projections handle B tokens. They write the new keys and values, which go into the cache.
# - Each head compares its query with L keys: B H L scores. They are scaled as before, by the product that makes them.
# - There is no mask. The new token may see every token of the text.
# - Softmax works on these B H L scores, and the product with the values follows.
# - The keys and the values of all L tokens are read from the cache, those of the new token too.
# - The output projection handles B tokens.
#
# Write `decode_attention_flops(B, L, D, H)` and `decode_attention_bytes(B, L, D, H, n)`, and find the terms for GPT-2
# XL:
#
# - `decode_attention_flops_terms`: the numbers before B and BL
# - `decode_attention_bytes_terms`: the number that stands alone, and those before B and BL


# %% nbgrader={"grade_id": "q3_2", "solution": true}
def decode_attention_flops(B, L, D, H):
    """FLOPs of attention for one new token a sequence, the L-th: an int."""
    ### BEGIN SOLUTION
    heads = B * H * (matmul_flops(1, D // H, L) + L + 3 * L + matmul_flops(1, L, D // H))
    return projection_flops(B, 1, D) + heads + output_flops(B, 1, D)
    ### END SOLUTION


def decode_attention_bytes(B, L, D, H, n):
    """Bytes that it reads and writes: an int."""
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
flops_hint = "projections of B tokens; in every head L scores with their scaling, softmax and values, no mask; output"
cases = {(2, 8, 16, 4): 5376, (2, 1, 16, 4): 4256, (3, 2, 10, 5): 2760, (1, 1, 1, 1): 16}
assert_counts(decode_attention_flops, cases, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H", seed=3201), (30011, 1000003, 101000, 101), (7, 900000011, 7070007, 7)]
expected = {(B, L, D, H): 8 * B * D**2 + 4 * B * L * (D + H) for B, L, D, H in sizes}
assert_counts(decode_attention_flops, expected, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_2_bytes_test", "grade": true, "points": 2} rooflab={"needs": ["q3_1"]}
bytes_hint = "the scores are written, read and written by the softmax, and read again; the whole cache is read"
cases = {(2, 8, 16, 4, 2): 4224, (2, 1, 16, 4, 2): 2880, (3, 2, 10, 5, 4): 3760, (1, 1, 1, 1, 2): 40}
assert_counts(decode_attention_bytes, cases, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H n", seed=3202), (30011, 1000003, 101000, 101, 2), (7, 900000011, 7070007, 7, 1)]
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
# - `decode_mlp_flops(B, D)` and `decode_mlp_bytes(B, D, n)`


# %% nbgrader={"grade_id": "q3_3", "solution": true}
def decode_mlp_flops(B, D):
    """FLOPs of the MLP for one new token a sequence: an int."""
    ### BEGIN SOLUTION
    return mlp_flops(B, 1, D)
    ### END SOLUTION


def decode_mlp_bytes(B, D, n):
    """Bytes that it reads and writes: an int."""
    ### BEGIN SOLUTION
    return mlp_bytes(B, 1, D, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_3_test", "grade": true, "points": 1} rooflab={"needs": ["q1_6_1", "q1_6_2"]}
flops_hint = "how many tokens does the MLP see in this step?"
assert_counts(decode_mlp_flops, {(2, 16): 8352, (1, 1): 21, (3, 5): 1275}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B D", seed=3301), (30011, 1000003), (1, 600000001)]
assert_counts(decode_mlp_flops, {(B, D): 16 * B * D**2 + 5 * B * D for B, D in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_3_bytes_test", "grade": true, "points": 1}
bytes_hint = "weights and biases are read once for all sequences"
assert_counts(decode_mlp_bytes, {(2, 16, 2): 4896, (1, 1, 2): 46, (3, 5, 4): 1500}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B D n", seed=3302), (900007, 30000001, 2), (1, 600000001, 1)]
assert_counts(decode_mlp_bytes, {(B, D, n): n * (10 * B * D + 8 * D**2 + 5 * D) for B, D, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.4 The model ({points q3_4})
#
# - `decode_model_flops(B, L, D, H, layers)` and `decode_model_bytes(B, L, D, H, layers, n)`: a step through all layers
# - `decode_flops_terms` and `decode_bytes_terms`: for GPT-2 XL with its 48 layers


# %% nbgrader={"grade_id": "q3_4", "solution": true}
def decode_model_flops(B, L, D, H, layers):
    """FLOPs of a step of decode through all layers: an int."""
    ### BEGIN SOLUTION
    return layers * (decode_attention_flops(B, L, D, H) + decode_mlp_flops(B, D))
    ### END SOLUTION


def decode_model_bytes(B, L, D, H, layers, n):
    """Bytes that it reads and writes: an int."""
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
flops_hint = "every layer has an attention and an MLP, each for one new token a sequence"
cases = {(2, 8, 16, 4, 1): 13728, (2, 8, 16, 4, 3): 41184, (3, 2, 10, 5, 2): 15420}
assert_counts(decode_model_flops, cases, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H layers", seed=3401), (3001, 1000003, 101000, 101, 97), (7, 90000001, 7070007, 7, 89)]
expected = {(B, L, D, H, layers): layers * B * (24 * D**2 + 4 * L * (D + H) + 5 * D) for B, L, D, H, layers in sizes}
assert_counts(decode_model_flops, expected, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_bytes_test", "grade": true, "points": 1}
bytes_hint = "every layer has an attention and an MLP, with weights and a cache of their own"
cases = {(2, 8, 16, 4, 1, 2): 9120, (2, 8, 16, 4, 3, 2): 27360, (3, 2, 10, 5, 2, 4): 16720}
assert_counts(decode_model_bytes, cases, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [
    *sample_sizes("B L D H layers n", seed=3402),
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
said = "decode_flops_terms: add up 3.2 and 3.3, and take all layers"
assert decode_flops_terms == {"B": 2949504000, "BL": 312000}, said
said = "decode_bytes_terms: add up 3.2 and 3.3, and take all layers"
assert decode_bytes_terms == {"1": 2949888000, "B": 3072000, "BL": 316800}, said
### END HIDDEN TESTS

# %% [markdown]
# Compare with Part 2. What grew as BL² is gone: a token that is added to a text of a thousand costs hardly more than
# the first one. The number before B in the FLOPs is the one that stood before BL. And the weights are still there, all
# of them, for a single token. The number before BL in the bytes is what the cache holds for a token, and a little for
# the scores.
