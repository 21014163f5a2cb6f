"""Answers to Part 4 of Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some."""

from labs.mutants import changed

GELU = "def gelu_tanh_python(input):\n"

COUNTS = """
speedup_if_memory_bound = {speedup}
why_faster = {why!r}

def gelu_counts(fused, n):
    x = rl.zeros((n,), device=device)
    with rl.count() as c:
        y = rl.gelu(x) if fused else gelu_tanh_python(x)
    {rest}
"""

COUNTED = 'return {"launches": c.launches, "flops": c.flops, "bytes": c.bytes_read + c.bytes_written}'

PROFILE = """
def profile_gelu(fused, n):
    x, fn = rl.rand(n, device=device), rl.gelu if fused else gelu_tanh_python
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            {call}
            prof.step()
    {rest}
"""

ONE_CALL = "size, names = len(prof.kernels) // 6, [k.op for k in prof.kernels]; "


def counts(speedup="9.0", why="d", rest=COUNTED):
    return COUNTS.format(speedup=speedup, why=why, rest=rest)


def profile(rest, call="fn(x)"):
    return PROFILE.format(call=call, rest=rest)


RIGHT = {
    "q4_3_1": [
        ("a cube by products", GELU + """
    cube = input * input * input
    return input * 0.5 * (rl.tanh((input + cube * 0.044715) * 0.7978845608028654) + 1.0)
"""),
        ("tensors of constants", GELU + """
    one, half = rl.ones_like(input), rl.full_like(input, 0.5)
    root = rl.sqrt(rl.full_like(input, 2 / np.pi))
    return half * input * (one + rl.tanh(root * (input + 0.044715 * rl.pow(input, 3))))
"""),
        ("named functions", GELU + """
    inner = rl.mul(rl.add(input, rl.mul(rl.pow(input, 3), 0.044715)), (2 / np.pi) ** 0.5)
    return rl.mul(rl.mul(input, 0.5), rl.add(rl.tanh(inner), 1))
"""),
    ],
    "q4_3_2": [("few repeats", """
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    python, fused = (latency(fn, x, warmup=1, repeat=3) for fn in (gelu_tanh_python, rl.gelu))
    return {"python": python.median_ms, "fused": fused.median_ms}
"""), ("one after the other", """
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    python = latency(gelu_tanh_python, x)
    return {"python": python.median_ms, "fused": latency(rl.gelu, x).median_ms}
""")],
    "q4_3_3": [("another input", counts())],
    "q4_3_4": [
        ("a sixth of all records", profile(
            ONE_CALL + 'return {"launches_per_call": size, "ops": names[:size]}'
        )),
        ("the third step, and a call before", changed(
            profile(
                'names = [k.op for k in prof.kernels if k.step == 6]; '
                'return {"launches_per_call": len(names), "ops": names}'
            ),
            "    with rl.profile", "    fn(x)\n    with rl.profile",
        )),
    ],
}  # fmt: skip

WRONG = {
    "q4_3_1": [
        ("the fused op", GELU + "    return rl.gelu(input)\n"),
        ("the fused op among others", GELU + "    return rl.gelu(input) + 0 + 0 + 0 + 0 + 0 + 0 + 0 + 0\n"),
        *((f"the library's {name}, among others", GELU + f"""
    others = rl.tanh(input)
    for _ in range(8):
        others = others * 1.0
    {code}
""") for name, code in {
            "geglu": "return rl.geglu(input, rl.ones_like(input))",
            "gelu, compiled": "return rl.compile(lambda x: rl.gelu(x) * 1.0)(input)",
            "sigmoid": "return input * rl.sigmoid(2 * (2 / np.pi) ** 0.5 * (input + 0.044715 * input**3))",
        }.items()),
        ("sigmoid form, fewer launches", GELU + """
    return input * rl.sigmoid(1.5957691216057308 * (input + 0.044715 * input ** 3))
"""),
        ("sigmoid form in eight launches", GELU + """
    u = 2 * (2 / np.pi) ** 0.5 * (input + 0.044715 * input ** 3)
    return input * 1.0 * (1 / (1 + rl.exp(-u)))
"""),
        ("sigmoid approximation", GELU + "    return input * rl.sigmoid(1.702 * input) + 0 + 0 + 0 + 0 + 0 + 0\n"),
        ("in NumPy", GELU + """
    x = input.cpu().numpy()
    y = 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x ** 3)))
    return rl.tensor(y, dtype=input.dtype, device=input.device)
"""),
        ("writes into its input", GELU + """
    result = 0.5 * input * (1 + rl.tanh((2 / np.pi) ** 0.5 * (input + 0.044715 * input**3)))
    input *= 0
    return result
"""),
        ("a square for the cube", GELU + """
    return 0.5 * input * (1 + rl.tanh((2 / np.pi) ** 0.5 * (input + 0.044715 * input ** 2)))
"""),
        ("sqrt(2 pi)", GELU + """
    return 0.5 * input * (1 + rl.tanh((2 * np.pi) ** 0.5 * (input + 0.044715 * input ** 3)))
"""),
        ("a digit lost", GELU + """
    return 0.5 * input * (1 + rl.tanh((2 / np.pi) ** 0.5 * (input + 0.04471 * input ** 3)))
"""),
        ("no half", GELU + """
    return 1.0 * input * (1 + rl.tanh((2 / np.pi) ** 0.5 * (input + 0.044715 * input ** 3)))
"""),
        ("flattened", GELU + """
    input = input.flatten()
    return 0.5 * input * (1 + rl.tanh((2 / np.pi) ** 0.5 * (input + 0.044715 * input ** 3)))
"""),
    ],
    "q4_3_2": [
        *((label, f"""
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    python, fused = (latency(fn, x, {how}) for fn in (gelu_tanh_python, rl.gelu))
    return {{"python": python.median_ms, "fused": fused.median_ms}}
""") for label, how in (("one shot", "warmup=0, repeat=1"), ("no call to warm up", "warmup=0"),
                        ("one sample", "repeat=1"))),
        ("one of the two is cold", """
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    return {"python": latency(gelu_tanh_python, x).median_ms, "fused": latency(rl.gelu, x, warmup=0).median_ms}
"""),
        ("mixed up", """
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    return {"fused": latency(gelu_tanh_python, x).median_ms, "python": latency(rl.gelu, x).median_ms}
"""),
        ("seconds", """
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    return {"python": latency(gelu_tanh_python, x).median_ms / 1e3, "fused": latency(rl.gelu, x).median_ms / 1e3}
"""),
        ("microseconds", """
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    return {"python": latency(gelu_tanh_python, x).median_ms * 1e3, "fused": latency(rl.gelu, x).median_ms * 1e3}
"""),
        ("half precision", """
def gelu_latencies_ms(n):
    x = rl.rand(n, dtype="float16", device=device)
    return {"python": latency(gelu_tanh_python, x).median_ms, "fused": latency(rl.gelu, x).median_ms}
"""),
        ("a thousand elements always", """
def gelu_latencies_ms(n):
    x = rl.rand(1000, device=device)
    return {"python": latency(gelu_tanh_python, x).median_ms, "fused": latency(rl.gelu, x).median_ms}
"""),
        ("in proportion to n", "def gelu_latencies_ms(n):\n    return {'python': n * 3e-6, 'fused': n * 4e-7}\n"),
        ("invented", "def gelu_latencies_ms(n):\n    return {'python': 9.0e-5, 'fused': 1.0e-5}\n"),
        ("a fixed size", """
def gelu_latencies_ms(n):
    x, y = rl.rand(1000, device=device), rl.rand(10, device=device)
    return {"python": latency(gelu_tanh_python, x).median_ms / 50, "fused": latency(rl.gelu, y).median_ms / 50}
"""),
    ],
    "q4_3_3": [
        ("less arithmetic", counts(why="a")),
        ("tensor cores", counts(why="b")),
        ("a rougher tanh", counts(why="c")),
        ("ratio of the launches", counts(speedup="8.0")),
        ("bytes read only", counts(rest=changed(COUNTED, " + c.bytes_written", ""))),
        ("MACs for FLOPs", counts(rest=changed(COUNTED, "c.flops", "c.macs"))),
        ("a fixed size", changed(counts(), "(n,)", "(1000,)")),
        ("the same for both", changed(counts(), "if fused else gelu_tanh_python(x)", "")),
        ("peak memory for traffic", counts(rest=changed(COUNTED, "c.bytes_read + c.bytes_written", "c.peak_bytes"))),
    ],
    "q4_3_4": [
        ("all six steps", profile(
            ONE_CALL + 'return {"launches_per_call": len(names), "ops": names}'
        )),
        ("the count of six steps", profile(
            ONE_CALL + 'return {"launches_per_call": 6 * size, "ops": names[:size]}'
        )),
        ("distinct names only", profile(
            'names = sorted({k.op for k in prof.kernels}); return {"launches_per_call": len(names), "ops": names}'
        )),
        ("names of kernels", profile(
            'size, names = len(prof.kernels) // 6, [k.name for k in prof.kernels]; '
            'return {"launches_per_call": size, "ops": names[:size]}'
        )),
        ("operations sorted", profile(
            ONE_CALL + 'return {"launches_per_call": size, "ops": sorted(names[:size])}'
        )),
        ("operations reversed", profile(
            ONE_CALL + 'return {"launches_per_call": size, "ops": names[:size][::-1]}'
        )),
        ("always the fused one", profile(
            ONE_CALL + 'return {"launches_per_call": size, "ops": names[:size]}',
            call="rl.gelu(x)",
        )),
        ("invented names", profile(
            'size = 1 if fused else 8; return {"launches_per_call": size, "ops": ["mul"] * size}'
        )),
        ("a list without a profile", """
def profile_gelu(fused, n):
    ops = ["gelu"] if fused else ["pow", "mul", "add", "mul", "mul", "tanh", "add", "mul"]
    return {"launches_per_call": len(ops), "ops": ops}
"""),
        ("a list beside ten calls", """
def profile_gelu(fused, n):
    x = rl.rand(n, device=device)
    for _ in range(10):
        (rl.gelu if fused else gelu_tanh_python)(x)
    ops = ["gelu"] if fused else ["pow", "mul", "add", "mul", "mul", "tanh", "add", "mul"]
    return {"launches_per_call": len(ops), "ops": ops}
"""),
        *((label, changed(profile(
            'names = [k.op for k in prof.kernels if k.step == prof.kernels[-1].step]; '
            'return {"launches_per_call": len(names), "ops": names}'
        ), *change)) for label, *change in (
            ("no schedule", "schedule=default_schedule", ""),
            ("always a thousand elements", "rl.rand(n,", "rl.rand(1000,"),
            ("half of the elements", "rl.rand(n,", "rl.rand(n // 2,"),
            ("another schedule", "default_schedule", "rl.profiler.schedule(wait=1, warmup=3, active=5)"),
            ("nine steps", "range(10)", "range(9)"),
            ("eleven steps, all recorded", "schedule=default_schedule", "", "range(10)", "range(11)"),
            ("no steps", "            prof.step()\n", "", "schedule=default_schedule", ""),
            ("two calls a step", "            fn(x)\n", "            fn(x)\n            fn(x)\n",
             "len(names)", "len(names) // 2", '"ops": names', '"ops": names[:len(names) // 2]'),
        )),
        ("a share of a launch", profile(
            ONE_CALL + 'return {"launches_per_call": len(names) / 6, "ops": names[:size]}'
        )),
    ],
}  # fmt: skip
