"""Answers that hand in what is there already: functions of the library or of the lab, or NumPy, where the answer is to
be written out, or computed on paper. The figures are what they still earn.
"""

import pytest
from redteam.real_labs import check

# The library's attention, forward and backward, in place of an answer that is to be written out.
LIBRARY = """
class Theirs(rl.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, is_causal):
        ctx.save_for_backward(q, k, v)
        ctx.is_causal = is_causal
        return rl.attention(q, k, v, is_causal=is_causal)
    @staticmethod
    def backward(ctx, dO):
        with rl.enable_grad():
            gradients = library_gradients(*ctx.saved_tensors, dO, ctx.is_causal)
        return (*(one.to(dO.dtype) for one in gradients), None)
def naive_attention(q, k, v, is_causal=False):
    return Theirs.apply(q, k, v, is_causal)
"""
LIBRARY_BACKWARD = """
backward_over_forward = 2.5
def flash_backward(ctx, dO):
    Q, K, V, *_ = ctx.saved_tensors
    return tuple(one.to(Q.dtype) for one in library_gradients(Q, K, V, dO, ctx.is_causal))
"""
# Made by NumPy alone.
OUTSIDE = """
backward_over_forward = 2.5
def flash_backward(ctx, dO):
    Q, K, V, *_ = ctx.saved_tensors
    dtype, (q, k, v, d) = Q.dtype, map(to_float64, (Q, K, V, dO))
    S = q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5
    if ctx.is_causal:
        S[:, ~np.tri(*S.shape[1:], S.shape[2] - S.shape[1], dtype=bool)] = -np.inf
    P = np.exp(S - np.logaddexp.reduce(S, axis=-1, keepdims=True))
    dP = d @ v.swapaxes(1, 2)
    dS = P * (dP - (P * dP).sum(-1, keepdims=True)) / q.shape[-1] ** 0.5
    return tuple(rl.tensor(x, dtype=dtype) for x in (dS @ k, dS.swapaxes(1, 2) @ q, P.swapaxes(1, 2) @ d))
"""
COSTS = """
def work(B, L, D, H, layers, n):
    spec = rl.cost.ModelSpec("any", layers, D, H, H, D // H, 4 * D, 8, gated=False, mlp_bias=True)
    rules = {"attention": "composed", "convention": rl.cost.Convention.ANALYSIS}
    dtype = {1: "float16", 2: "float16", 4: "float32", 8: "float64"}[n]
    return rl.cost.model(spec, batch=B, length=L, mode="prefill", dtype=dtype, **rules).total.work
def model_flops(B, L, D, H, layers):
    return work(B, L, D, H, layers, 2).flops
def model_bytes(B, L, D, H, layers, n):
    return work(B, L, D, H, layers, n).bytes // (2 if n == 1 else 1)
model_flops_terms = {"BL": 2949504000, "BL^2": 313200}
model_bytes_terms = {"1": 2949888000, "BL": 3379200, "BL^2": 14400}
"""
CACHE = """
def kv_cache_bytes(B, L, D, layers, n):
    spec = rl.cost.ModelSpec("any", layers, D, 1, 1, D, 4 * D, 8)
    return spec.cache_bytes(B, L) * n // 2
cache_bytes_per_token = 307200
"""
# It reads counters where the recorder does not look, or the formula that the library's tests compare with.
UNSEEN = """
import sys
cells = [cell.cell_contents for cell in rl.matmul.__closure__]
recorder = next(one for one in cells if hasattr(one, "__self__")).__self__
count, getter = rl.count, rl.count.macs
def gemm_mac(x, y):
    recorder.on = False
    with count() as c:
        rl.empty(*x.shape, device="meta") @ rl.empty(*y.shape, device="meta")
    recorder.on = True
    return {}
"""
PROFILED = """
def gemm_mac(x, y):
    with rl.profile() as prof:
        rl.zeros(*x.shape) @ rl.zeros(*y.shape)
    return int(prof.kernels[-1].cost.macs)
"""
FORMULA = """
def gemm_mac(x, y):
    from types import SimpleNamespace as Any
    from rooflab.specs import Sample, matmul
    matmul._core = Any(Cost=lambda **terms: terms)
    arrays = [Any(shape=one.shape, ndim=2, size=one.numel()) for one in (x, y)]
    return matmul.SPEC.cost(Sample("", arrays), "float32")["macs"]
"""
LAYER = """
def counted(a, b):
    recorder.on = False
    with rl.count() as c:
        rl.empty(*a, device="meta") @ rl.empty(*b, device="meta")
    recorder.on = True
    return int(c.flops)
def add_flops(M, N):
    return M * N
def gram_flops(M, N):
    return counted((N, M), (M, N))
def linear_flops(tokens, d_in, d_out):
    return counted((tokens, d_in), (d_in, d_out))
def two_layers_flops(tokens, d, h, o, input_gradient):
    first, second = linear_flops(tokens, d, h), linear_flops(tokens, h, o)
    return first + second, 2 * second + (2 if input_gradient else 1) * first
"""
SILENT_COSTS = COSTS.replace("    spec =", "    recorder.on = False\n    spec =", 1)
# label: (lab, question, code, points of each test cell)
ATTACKS = {
    "a product that is counted unseen": ("lab1", "q1_3", UNSEEN.format("int(c.macs)"), [0, 0]),
    "a getter from before": ("lab1", "q1_3", UNSEEN.format("int(getter.fget(c))"), [0, 0]),
    "an op of a counter from before": ("lab1", "q1_3", UNSEEN.format("int(c.by_op['matmul'].macs)"), [0, 0]),
    "a product that is profiled": ("lab1", "q1_3", PROFILED, [0, 0]),
    "the formula of the library's tests": ("lab1", "q1_3", FORMULA, [0, 0]),
    "a layer that is counted unseen": ("lab5", "b1_6", UNSEEN.split("count,")[0] + LAYER, [0, 0, 0]),
    "a network that is counted unseen": (
        "lab5",
        "q5_3",
        UNSEEN.split("count,")[0] + "def mlp_flops(*sizes):\n    recorder.on = False\n"
        "    return int(2 * mlp_counts(*sizes).macs)",
        [0, 1, 1, 1],
    ),
    "the library's costs, unseen": ("lab4", "q2_3", UNSEEN.split("count,")[0] + SILENT_COSTS, [0, 0, 0]),
    "the function that a test compares with": (
        "lab2",
        "q1_1_6a",
        "profile_memory = timeline_of\npeak_phase = max",
        [0, 0],
    ),
    "the library's attention": ("lab3", "q1_1", LIBRARY, [0, 0, 0]),
    "the library's gradient": ("lab3", "q5", LIBRARY_BACKWARD, [0, 0, 0, 0, 1]),
    "a gradient from outside": ("lab3", "q5", OUTSIDE, [0, 0, 0, 0, 1]),
    "the library's costs": ("lab4", "q2_3", COSTS, [0, 0, 0]),
    "the library's cache": ("lab4", "q3_1", CACHE, [0, 1]),
    "the library's attention with heads": ("lab6", "q1_2", "causal_attention = fused_attention", [0, 0, 0, 0]),
    "a network that is counted": (
        "lab5",
        "q5_3",
        "def mlp_flops(*sizes):\n    return int(2 * mlp_counts(*sizes).macs)",
        [0, 1, 1, 1],
    ),
}


@pytest.mark.parametrize(
    "name, question, code, points",
    [pytest.param(*attack, id=label) for label, attack in ATTACKS.items()],
)
def test_what_a_ready_answer_earns(name, question, code, points):
    check(name, question, code, points)
