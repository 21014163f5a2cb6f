"""Answers to 4.4 of Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some."""

from labs.mutants import mutants

GELU = """
def compare_gelu(n):
    x, compiled = rl.rand(n, device=device), rl.compile(gelu_tanh_python)
    eager = profile_one_call(gelu_tanh_python, x)
    fused = profile_one_call(compiled, x)
    return {"eager": eager, "compiled": fused}
"""

GELU_COUNTED = """
def compare_gelu(n):
    x, found = rl.zeros((n,), device=device), {}
    @rl.compile
    def compiled(input):
        return gelu_tanh_python(input)
    for name, fn in (("eager", gelu_tanh_python), ("compiled", compiled)):
        with rl.count() as c, rl.profile() as prof:
            fn(x)
        ops = [kernel.op for kernel in prof.kernels]
        found[name] = {"launches": c.launches, "bytes": c.bytes_read + c.bytes_written, "ops": ops}
    return found
"""

MLP = """
def compare_mlp(B, L, config):
    weights, compiled = make_mlp_weights(config), rl.compile(mlp)
    x = create_prefill_inputs(B, L, config, device=device)
    return {"compiled": profile_one_call(compiled, x, weights), "eager": profile_one_call(mlp, x, weights)}
"""

MLP_IN_PARTS = """
def compare_mlp(B, L, config):
    weights = make_mlp_weights(config)
    x = rl.ones(B, L, config["hidden_size"], dtype="bfloat16", device=device)
    gate, up, down = (weights[name] for name in ("gate_proj", "up_proj", "down_proj"))
    compiled = rl.compile(lambda x, gate, up, down: rl.gelu(x @ gate) * (x @ up) @ down)
    return {"eager": profile_one_call(mlp, x, weights), "compiled": profile_one_call(compiled, x, gate, up, down)}
"""

SAVED = """
def mlp_saved_bytes(B, L, D, I):
    hidden = B * L * I
    return 2 * (hidden + hidden)
"""

GRAPH = """
def mlp_by_graph(inputs, weights):
    x = inputs[0].clone()
    mlp(x, weights)
    graph = rl.Graph()
    with graph.capture():
        y = mlp(x, weights)
    results = []
    for new in inputs:
        x.copy_(new)
        graph.replay()
        results.append(y.clone())
    return results
"""

COPIED = """
def mlp_by_graph(inputs, weights):
    x, results = rl.zeros_like(inputs[0]), [rl.empty_like(one) for one in inputs]
    graph = rl.Graph(device=device)
    with graph.capture():
        y = mlp(x, weights)
    for new, result in zip(inputs, results):
        x.copy_(new)
        graph.replay()
        result.copy_(y)
    return results
"""

COUNTS = """
def make_graph(B, L, config):
    x, graph = create_prefill_inputs(B, L, config, device=device), rl.Graph(device=device)
    weights = make_mlp_weights(config)
    mlp(x, weights)
    with graph.capture():
        mlp(x, weights)
    return graph

def graph_profile(B, L, config):
    graph = make_graph(B, L, config)
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            graph.replay()
            prof.step()
    return prof

def replay_counts(B, L, config):
    graph, prof = make_graph(B, L, config), graph_profile(B, L, config)
    with rl.count() as c:
        graph.replay()
    names = [kernel.range for kernel in prof.kernels]
    size = len(names) // 6
    return {"launches": c.launches, "host_calls": c.host_calls, "ranges": names[:size]}
"""

ONCE = """
def graph_profile(B, L, config):
    weights = make_mlp_weights(config)
    x = rl.zeros((B, L, config["hidden_size"]), dtype="bfloat16", device=device)
    made = rl.Graph()
    with made.capture():
        y = mlp(x, weights)
    with rl.count() as counted:
        made.replay()
    graph_profile.counted = counted
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            made.replay()
            prof.step()
    return prof

def replay_counts(B, L, config):
    prof = graph_profile(B, L, config)
    counted = graph_profile.counted
    ranges = [k.range for k in prof.kernels if k.step == prof.kernels[0].step]
    return {"host_calls": counted.host_calls, "launches": counted.launches, "ranges": ranges}
"""

VALUES = "fuses = {fuses!r}\nstays = {stays!r}\nwhy_it_stays = {why!r}\n"


def values(fuses=("gelu", "mul"), stays=("matmul",), why="b"):
    return VALUES.format(fuses=fuses, stays=stays, why=why)


RIGHT = {
    "q4_4_1": [("one after the other", GELU), ("counted, by a decorator", GELU_COUNTED)],
    "q4_4_1_mlp": [("compiled first", MLP), ("another text of the same", MLP_IN_PARTS)],
    "q4_4_1_saved": [
        ("written and read", SAVED),
        (
            "a difference",
            "def mlp_saved_bytes(B, L, D, I):\n    return B * L * I * (2 + 2 + 6) - B * L * I * (2 * 3)\n",
        ),
    ],
    "q4_4_1_values": [("lists", values(["mul", "gelu"], ["matmul"])), ("with repeats", values(stays=["matmul"] * 3))],
    "b4_4_2": [("warmed up", GRAPH), ("copied into place", COPIED)],
    "b4_4_2_counts": [("of two graphs", COUNTS), ("of one graph", ONCE)],
}

WRONG = {
    "q4_4_1": [
        *mutants(
            GELU,
            ("the library's kernel", "rl.compile(gelu_tanh_python)", "rl.gelu"),
            ("never compiled", "rl.compile(gelu_tanh_python)", "gelu_tanh_python"),
            ("swapped", '"eager": eager, "compiled": fused', '"eager": fused, "compiled": eager'),
            ("a fixed size", "rl.rand(n,", "rl.rand(1000,"),
            ("half precision", "rl.rand(n,", 'rl.rand(n, dtype="float16",'),
            ("a tensor from outside", "rl.compile(gelu_tanh_python)", "rl.compile(lambda one: gelu_tanh_python(x))"),
            ("compiled for both", "profile_one_call(gelu_tanh_python, x)", "profile_one_call(compiled, x)"),
        ),
        ("invented", """
def compare_gelu(n):
    ops = ["pow", "mul", "add", "mul", "mul", "tanh", "add", "mul"]
    eager = {"launches": 8, "bytes": 72 * n, "ops": ops}
    return {"eager": eager, "compiled": {"launches": 1, "bytes": 8 * n, "ops": ["fused"]}}
"""),
    ],
    "q4_4_1_mlp": mutants(
        MLP,
        ("never compiled", "rl.compile(mlp)", "mlp"),
        ("in fp32", "device=device)", 'dtype="float32", device=device)', "make_mlp_weights(config)",
         'make_mlp_weights(config, "float32")'),
        ("weights from outside", "rl.compile(mlp)", "rl.compile(lambda x, _: mlp(x, dict(weights)))"),
        ("one text", "(B, L, config, ", "(1, L, config, "),
        ("one token", "(B, L, config, ", "(B, 1, config, "),
        ("always the 270M model", "    weights,", "    config = GEMMA3_270M_CONFIG\n    weights,"),
        ("only the GeLU compiled", "rl.compile(mlp)", "rl.compile(rl.gelu)", "(compiled, x, weights)",
         "(lambda x, w: rl.matmul(compiled(rl.matmul(x, w['gate_proj'])) * rl.matmul(x, w['up_proj']), "
         "w['down_proj']), x, weights)"),
    ),
    "q4_4_1_saved": [
        *mutants(
            SAVED,
            ("written only", "hidden + hidden", "hidden"),
            ("in fp32", "return 2 *", "return 4 *"),
            ("three matrices", "hidden + hidden", "3 * hidden"),
            ("of the hidden size", "B * L * I", "B * L * D"),
            ("one text", "B * L * I", "L * I"),
            ("a float", "return 2 *", "return 2.0 *"),
        ),
        ("run and counted", """
def mlp_saved_bytes(B, L, D, I):
    config = {"hidden_size": D, "intermediate_size": I}
    both = compare_mlp(B, L, config)
    return both["eager"]["bytes"] - both["compiled"]["bytes"]
"""),
    ],
    "q4_4_1_values": [
        ("swapped", values(["matmul"], ["gelu", "mul"])),
        ("only the GeLU", values(["gelu"], ["matmul", "mul"])),
        ("all fuse", values(["gelu", "mul", "matmul"], [])),
        ("names of ranges", values(["act_fn", "mul"], ["gate_proj"])),
        *((f"stays by {letter}", values(why=letter)) for letter in "acd"),
    ],
    "b4_4_2": [
        *mutants(
            GRAPH,
            ("one result for all", "y.clone()", "y"),
            ("never copied in", "        x.copy_(new)\n", ""),
            ("never replayed", "        graph.replay()\n", ""),
            ("into the first input", "inputs[0].clone()", "inputs[0]"),
            ("replayed before the copy", "        x.copy_(new)\n        graph.replay()\n",
             "        graph.replay()\n        x.copy_(new)\n"),
            ("the last one missing", "for new in inputs:", "for new in inputs[:-1]:"),
        ),
        ("no graph", "def mlp_by_graph(inputs, weights):\n    return [mlp(x, weights) for x in inputs]\n"),
        ("no graph, all inputs side by side", """
def mlp_by_graph(inputs, weights):
    y, B = mlp(rl.cat(inputs, dim=0), weights), inputs[0].shape[0]
    return [y[i * B : (i + 1) * B].clone() for i in range(len(inputs))]
"""),
        ("a graph for each", """
def mlp_by_graph(inputs, weights):
    results = []
    for x in inputs:
        graph = rl.Graph(device=device)
        with graph.capture():
            y = mlp(x, weights)
        graph.replay()
        results.append(y)
    return results
"""),
    ],
    "b4_4_2_counts": [
        *mutants(
            COUNTS,
            ("the eager call", "        graph.replay()\n    names",
             "        mlp(create_prefill_inputs(B, L, config, device=device), make_mlp_weights(config))\n    names"),
            ("two replays", "        graph.replay()\n    names",
             "        graph.replay()\n        graph.replay()\n    names"),
            ("all six steps", "names[:size]", "names"),
            ("in reverse", "names[:size]", "names[:size][::-1]"),
            ("operations", "kernel.range for", "kernel.op for"),
            ("no graph in the profile", "            graph.replay()\n", "            pass\n"),
            ("the compiled MLP", "        mlp(x, weights)\n    return",
             "        rl.compile(mlp)(x, weights)\n    return"),
            ("a launch for a host call", '"host_calls": c.host_calls', '"host_calls": c.launches'),
        ),
        ("known by heart, beside ten eager calls", """
def graph_profile(B, L, config):
    x, weights = create_prefill_inputs(B, L, config, device=device), make_mlp_weights(config)
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            mlp(x, weights)
            prof.step()
    return prof

def replay_counts(B, L, config):
    graph_profile(B, L, config)
    return {"host_calls": 1, "launches": 5, "ranges": list(MLP_PARTS)}
"""),
    ],
    "b4_4_2_why": [
        ("not a letter", "why_decode = 'e'"),
        *((f"helps by {letter}", f"why_decode = {letter!r}") for letter in "abd"),
    ],
}  # fmt: skip
