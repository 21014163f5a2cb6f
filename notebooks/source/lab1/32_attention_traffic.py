# %% [markdown]
# ## 3.2 The traffic of attention ({points q3_2})
#
# `scaled_dot_product_attention` runs one operation after the other. Each of them reads its inputs from memory and
# writes its output back. How often does the matrix of scores go to memory and come back?
#
# Softmax alone takes several passes over it. Here it is in three operations, as a textbook writes it. The cell counts
# what each of them reads and writes, in units of one pass over the scores.


# %%
def textbook_softmax(scores):
    """softmax over the last dimension in three operations; scores must not be large."""
    exponentials = rl.exp(scores)
    sums = rl.sum(exponentials, dim=-1, keepdim=True)
    return exponentials / sums


scores = rl.randn(1, 4, 256, 256, device=device)
with rl.count() as counted:
    textbook_softmax(scores)
ops = {name: counted.by_op[name] for name in ("exp", "sum", "div")}
rows = []
for name, op in {**ops, "all": counted}.items():
    passes = (op.bytes_read / scores.nbytes, op.bytes_written / scores.nbytes)
    rows.append((name, *(f"{one:.3f}" for one in passes), f"{sum(passes):.3f}"))
Table(("operation", "read", "written", "passes over the scores"), rows)

# %% [markdown]
# Together they take five passes over the scores. The small remainder is the sums, one number for each row. For long
# rows it does not matter. Written this way, softmax overflows when a score is large. A safe softmax first finds the
# largest score of each row and subtracts it. These two operations cost three more passes. `rl.softmax` does everything
# in one kernel, which reads each score once and writes each weight once.


# %%
def safe_softmax(scores):
    """The same for scores of any size, in five operations."""
    return textbook_softmax(scores - rl.amax(scores, dim=-1, keepdim=True))


rows = []
for fn in (textbook_softmax, safe_softmax, rl.softmax):
    with rl.count() as counted:
        fn(scores)
    passes = (counted.bytes_read + counted.bytes_written) / scores.nbytes
    rows.append((fn.__name__, counted.launches, f"{passes:.2f}", str(latency(fn, scores, warmup=3, repeat=20))))
Table(("softmax", "launches", "passes", "latency"), rows)

# %% [markdown]
# Write `calc_attn_io(B, H, L_q, L_kv, D_h)`: the bytes that attention moves in fp32, as an `int`. Count like this:
#
# - Each of the two products reads both of its inputs and writes its output.
# - Softmax takes the five passes of the textbook. Its sums are not counted.
# - There is no mask, and scaling the scores is part of the first product.


# %% nbgrader={"grade_id": "q3_2", "solution": true} rooflab={"counters": false}
def calc_attn_io(B, H, L_q, L_kv, D_h):
    """Bytes moved by attention in fp32, one operation after the other: an int."""
    ### BEGIN SOLUTION
    q = o = B * H * L_q * D_h
    k = v = B * H * L_kv * D_h
    s = B * H * L_q * L_kv
    return 4 * ((q + k + s) + 5 * s + (s + v + o))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_2_test", "grade": true, "points": 3}
io_hint = "list what each operation reads and writes: which tensors have the length L_q, L_kv, or both?"


def check_attn_io(B, H, L_q, L_kv, D_h, expected):
    seen = measure.count(calc_attn_io, B, H, L_q, L_kv, D_h)
    sizes = f"B = {B}, H = {H}, L_q = {L_q}, L_kv = {L_kv}, D_h = {D_h}"
    assert is_count(seen.value), f"{sizes}: calc_attn_io has to return an int, not {seen.value!r}"
    assert seen.value == expected, f"{sizes}: expected {expected} bytes, got {seen.value}; {io_hint}"
    assert seen.launches == 0, "compute the number from the sizes, without running anything"


check_attn_io(1, 1, 2, 2, 4, expected=240)
check_attn_io(2, 3, 4, 4, 5, expected=4608)
check_attn_io(1, 4, 1024, 1024, 128, expected=125829120)
### BEGIN HIDDEN TESTS
B, H, L, D_h = (measure.draw(low, low + 9) for low in (2, 12, 22, 32))  # no two of them are equal
check_attn_io(B, H, L, L, D_h, expected=4 * B * H * (4 * L * D_h + 7 * L * L))
check_attn_io(8, 8, 4096, 4096, 256, expected=31138512896)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_2_lengths_test", "grade": true, "points": 2}
check_attn_io(1, 1, 2, 3, 4, expected=328)
check_attn_io(2, 3, 1, 7, 5, expected=3096)
check_attn_io(1, 4, 173, 256, 128, expected=6717440)
### BEGIN HIDDEN TESTS
B, H, L_q, L_kv, D_h = (measure.draw(low, low + 9) for low in (2, 12, 22, 32, 42))  # no two of them are equal
expected = 4 * B * H * (2 * (L_q + L_kv) * D_h + 7 * L_q * L_kv)
check_attn_io(B, H, L_q, L_kv, D_h, expected)
check_attn_io(B, H, L_kv, L_q, D_h, expected)
check_attn_io(8, 8, 1, 4096, 256, expected=544342016)
check_attn_io(1, 2, 10, 1, 64, expected=11824)
### END HIDDEN TESTS

# %% [markdown]
# ## b3.2 The traffic of the attention module ({points b3_2})
#
# Write `calc_attn_module_io(batch_size, query_len, kv_len, config)`: the bytes that the module of b3.1 moves in
# prefill in bf16 (2 bytes a number), as an `int`. Every operation reads its inputs once and writes its output once.
# These seven are counted:
#
# | operation | reads | writes |
# |---|---|---|
# | `q_proj`, `k_proj`, `v_proj` | each of them x of the new tokens and a weight | the new queries, keys or values |
# | scores | the queries and all `kv_len` keys | the scores |
# | softmax | five passes over the scores, reads and writes together | |
# | weighted sum | the weights that softmax made and all `kv_len` values | one vector a query, like the queries |
# | `o_proj` | these vectors and a weight | D numbers for each new token |
#
# - Scores exist for each of the H *query* heads. Keys and values have H_kv heads. They are read once, and not once for
#   each query head.
# - The norms, the rotary embedding, the scale, the mask and copies into the cache are not counted.
# - In prefill of a whole prompt `kv_len` equals `query_len`. If the beginning of the prompt is in the cache already,
#   `kv_len` is larger.


# %% nbgrader={"grade_id": "b3_2", "solution": true} rooflab={"counters": false}
def calc_attn_module_io(batch_size, query_len, kv_len, config):
    """Bytes moved by the q, k, v and o projections and by attention in bf16: an int."""
    ### BEGIN SOLUTION
    D, D_h = config["hidden_size"], config["head_dim"]
    H, H_kv = config["num_attention_heads"], config["num_key_value_heads"]
    x = batch_size * query_len * D
    q = o = batch_size * query_len * H * D_h
    new_k = batch_size * query_len * H_kv * D_h
    all_k = all_v = batch_size * kv_len * H_kv * D_h
    s = batch_size * H * query_len * kv_len
    projections = (x + D * H * D_h + q) + 2 * (x + D * H_kv * D_h + new_k) + (o + H * D_h * D + x)
    return 2 * (projections + (q + all_k + s) + 5 * s + (s + all_v + o))
    ### END SOLUTION


# %% nbgrader={"grade_id": "b3_2_test", "grade": true, "points": 3} rooflab={"needs": ["b3_1"]}
def sized(D, H, H_kv, D_h):
    sizes = {"hidden_size": D, "num_attention_heads": H, "num_key_value_heads": H_kv, "head_dim": D_h}
    return {**GEMMA3_270M_CONFIG, **sizes}


moved_hint = "go through the rows of the table: which tensors have H heads, and which have H_kv?"


def check_module_io(batch_size, query_len, kv_len, config, expected):
    seen = measure.count(calc_attn_module_io, batch_size, query_len, kv_len, config)
    case = f"batch_size = {batch_size}, query_len = {query_len}, kv_len = {kv_len}, {sizes_of(config)}"
    assert is_count(seen.value), f"calc_attn_module_io has to return an int, not {seen.value!r}"
    assert seen.value == expected, f"{case}: expected {expected} bytes, got {seen.value}; {moved_hint}"
    assert seen.launches == 0, "compute the number from the sizes, without running anything"


check_module_io(1, 2, 2, sized(D=3, H=2, H_kv=1, D_h=5), expected=580)
check_module_io(3, 4, 4, sized(D=6, H=2, H_kv=2, D_h=5), expected=4320)
check_module_io(1, 512, 512, GEMMA3_270M_CONFIG, expected=25821184)
### BEGIN HIDDEN TESTS
B, H_kv, D_h, D, L = (measure.draw(low, low + 2) for low in (2, 5, 30, 40, 50))
H = measure.draw(2, 4) * H_kv  # no two sizes are equal, and H D_h is not D
projected = 2 * D * D_h * (H + H_kv) + B * L * (4 * D + 2 * H * D_h + 2 * H_kv * D_h)
attended = B * (2 * L * H * D_h + 2 * L * H_kv * D_h + 7 * H * L * L)
check_module_io(B, L, L, sized(D, H, H_kv, D_h), expected=2 * (projected + attended))
check_module_io(8, 2048, 2048, GEMMA3_270M_CONFIG, expected=2133983232)
check_module_io(8, 4096, 4096, GEMMA3_PSEUDO_CONFIG, expected=16426991616)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_2_prefix_test", "grade": true, "points": 2}
check_module_io(1, 2, 6, sized(D=3, H=2, H_kv=1, D_h=5), expected=884)
check_module_io(3, 4, 9, sized(D=6, H=4, H_kv=2, D_h=5), expected=10824)
check_module_io(1, 256, 1024, GEMMA3_270M_CONFIG, expected=22675456)
### BEGIN HIDDEN TESTS
B, H_kv, D_h, D, L_q, L_kv = (measure.draw(low, low + 2) for low in (2, 5, 30, 40, 50, 80))
H = measure.draw(2, 4) * H_kv  # no two sizes are equal, and H D_h is not D
projected = 2 * D * D_h * (H + H_kv) + B * L_q * (4 * D + 2 * H * D_h + 2 * H_kv * D_h)
attended = B * (2 * L_q * H * D_h + 2 * L_kv * H_kv * D_h + 7 * H * L_q * L_kv)
check_module_io(B, L_q, L_kv, sized(D, H, H_kv, D_h), expected=2 * (projected + attended))
check_module_io(4, 100, 2048, GEMMA3_270M_CONFIG, expected=63275008)
check_module_io(2, 64, 4096, GEMMA3_PSEUDO_CONFIG, expected=149028864)
### END HIDDEN TESTS

# %% [markdown]
# ## The MLP, given
#
# The MLP of a layer has three projections, a GeLU, and a multiplication of the two branches. These formulas count it in
# 16 bit, for B sequences of L new tokens each. They count one operation after the other, as you did for attention.


# %% tags=["setup"]
def calc_mlp_mac(B, L, D, I):
    """Multiply-accumulates of the MLP: the gate, up and down projections."""
    return 3 * B * L * D * I


def calc_mlp_flops(B, L, D, I):
    """FLOPs of the MLP: 2 for each MAC, 8 for each GeLU, and 1 for each product of the two branches."""
    return 2 * calc_mlp_mac(B, L, D, I) + 8 * B * L * I + B * L * I


def calc_mlp_io(B, L, D, I):
    """Bytes that the MLP moves in 16 bit: each operation reads its inputs and writes its output."""
    gate = 2 * (B * L * D + D * I + B * L * I)
    up = gate
    act = 2 * 2 * B * L * I
    product = 2 * 3 * B * L * I
    down = 2 * (B * L * I + I * D + B * L * D)
    return gate + up + act + product + down


MLP_PARTS = ("gate_proj", "up_proj", "act_fn", "mul", "down_proj")


def make_mlp_weights(config, dtype="bfloat16"):
    """Random weights of one MLP on `device`: gate_proj and up_proj (D, I), down_proj (I, D)."""
    D, I = config["hidden_size"], config["intermediate_size"]
    shapes = {"gate_proj": (D, I), "up_proj": (D, I), "down_proj": (I, D)}
    return {name: rl.randn(*shape, dtype=dtype, device=device) * shape[0] ** -0.5 for name, shape in shapes.items()}


def mlp(x, weights):
    """down(GeLU(gate(x)) * up(x)) for x (B, L, D), each operation in a range of its own."""
    with rl.range("gate_proj"):
        gate = rl.matmul(x, weights["gate_proj"])
    with rl.range("up_proj"):
        up = rl.matmul(x, weights["up_proj"])
    with rl.range("act_fn"):
        gate = rl.gelu(gate)
    with rl.range("mul"):
        hidden = gate * up
    with rl.range("down_proj"):
        return rl.matmul(hidden, weights["down_proj"])


# %% [markdown]
# `rl.range("name")` names what runs inside it. Counters and profiles then say what belongs to which part. Run the MLP
# of the 270M model in bf16, and compare what it did with the formulas.

# %%
B, L, D, I = 2, 32, GEMMA3_270M_CONFIG["hidden_size"], GEMMA3_270M_CONFIG["intermediate_size"]
x, weights = rl.randn(B, L, D, dtype="bfloat16", device=device), make_mlp_weights(GEMMA3_270M_CONFIG)
with rl.count() as counted:
    mlp(x, weights)
rows = []
parts = {name: counted.by_range[name] for name in MLP_PARTS}
for name, part in {**parts, "all, counted": counted}.items():
    moved = part.bytes_read + part.bytes_written
    rows.append((name, *(f"{number:,}" for number in (part.launches, part.macs, part.flops, moved))))
by_formula = (calc_mlp_mac(B, L, D, I), calc_mlp_flops(B, L, D, I), calc_mlp_io(B, L, D, I))
rows.append(("all, by formula", "", *(f"{number:,}" for number in by_formula)))
Table(("part", "launches", "MACs", "FLOPs", "bytes"), rows, title=f"MLP of Gemma 3 270M in bf16, B = {B}, L = {L}")

# %% [markdown]
# Both agree to the byte, because both follow the same *convention*. Other conventions are just as good, so always say
# which one you use:
#
# - **GeLU as 8 FLOPs.** That is one for each of the elementwise operations that it consists of (see 4.3). A processor
#   needs more instructions for its tanh, and some courses count 1 FLOP for a GeLU. It hardly matters here: a GeLU is 8
#   FLOPs, and the three projections of the same element are 6 D = 3840.
# - **Bytes of each operation.** The formulas and the counters both assume that everything between two operations goes
#   through memory. A kernel that does several operations at once moves less. Then the formula is too high, and the
#   counters say what that kernel has to move.
# - **Caches.** Both count compulsory bytes. A small intermediate result may stay in a cache, and a product that is too
#   large for the cache reads some of its inputs more than once.
