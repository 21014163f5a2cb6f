"""Answers to Lab 3 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell). Those of questions 3
and 5 are in lab3_forward_answers and lab3_backward_answers.
"""

from labs import lab3_backward_answers as backward
from labs import lab3_forward_answers as forward
from labs.mutants import changed, mutants

NAIVE = """
def naive_attention(q, k, v, is_causal=False):
    scores = (q @ k.transpose(1, 2)) / q.shape[-1] ** 0.5
    if is_causal:
        rows = rl.arange(q.shape[1], device=q.device)[:, None] + (k.shape[1] - q.shape[1])
        scores = rl.where(rl.arange(k.shape[1], device=q.device)[None] > rows, float("-inf"), scores)
    top = scores.amax(dim=-1, keepdim=True)
    e = rl.exp(scores - top)
    return (e / e.sum(dim=-1, keepdim=True)) @ v
"""

BENCHMARK = """
def benchmark_naive(L, d, batch):
    none = dict.fromkeys(("forward_ms", "backward_ms", "held_bytes"))
    start = rl.memory.allocated(device)
    try:
        q, k, v = [rl.randn(batch, L, d, device=device).requires_grad_() for _ in range(3)]
        o = naive_attention(q, k, v)
        held = rl.memory.allocated(device) - start
        back = lambda: rl.autograd.grad(o, (q, k, v), rl.ones(o.shape, device=device), retain_graph=True)
        backward_ms = rl.latency(back, warmup=1, repeat=3, device=device).median_ms
        del o
        forward_ms = rl.latency(naive_attention, q, k, v, warmup=1, repeat=3).median_ms
    except rl.OutOfMemoryError:
        return none
    return {"forward_ms": forward_ms, "backward_ms": backward_ms, "held_bytes": held}
"""

UPDATE = """
def online_update(m, l, x):
    with np.errstate(invalid="ignore"):
        new = np.maximum(m, np.concatenate([x, m[:, None]], axis=1).max(axis=1))
        old = np.nan_to_num(l * np.exp(m - new), nan=0.0)
        return new, old + np.nan_to_num(np.exp(x - new[:, None]), nan=0.0).sum(axis=1)
"""

LOOPED = """
def online_update(m, l, x):
    m, l = m.copy(), l.copy()
    for row in range(len(x)):
        for value in x[row]:
            if value > m[row]:
                l[row] = l[row] * np.exp(m[row] - value) + 1
                m[row] = value
            elif value > -np.inf:
                l[row] += np.exp(value - m[row])
    return m, l
"""

AVERAGE = """
def online_average(m, l, O, x, V):
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    base = np.where(new == -np.inf, 0, new)
    e = np.exp(x - base[:, None])
    factor = np.exp(m - base)
    return new, factor * l + e.sum(1), O * factor[:, None] + np.einsum("rn,nd->rd", e, V)
"""

COMBINE = """
def combine(m1, l1, O1, m2, l2, O2):
    m = np.maximum(m1, m2)
    with np.errstate(invalid="ignore"):
        a, b = (np.nan_to_num(np.exp(part - m), nan=0.0) for part in (m1, m2))
    return m, a * l1 + b * l2, a[:, None] * O1 + b[:, None] * O2
"""

SCORES = """
causal_share_limit = 1 / 2

def scores_computed(L_q, L_kv, tile_q, tile_kv):
    total = 0
    for top in range(0, L_q, tile_q):
        bottom = min(top + tile_q, L_q)
        for left in range(0, L_kv, tile_kv):
            if left <= bottom - 1 + L_kv - L_q:
                total += (bottom - top) * (min(left + tile_kv, L_kv) - left)
    return total
"""

LENGTHS = """
import math

def largest_naive_length(free_bytes, batch):
    return math.isqrt(int(free_bytes) // (12 * batch))

def largest_flash_length(free_bytes, batch, d):
    return free_bytes // (16 * batch * d + 4 * batch)
"""

COMPARE = """
ALL = ("naive", "flash", "library")

def compare(L, d, batch, names=ALL):
    q, k, v = (rl.randn(batch, L, d, device=device) for _ in range(3))
    def row(fn):
        ms = latency(fn, q, k, v, warmup=1, repeat=3).median_ms
        with rl.count() as c:
            out = fn(q, k, v)
        return {"ms": ms, "peak_bytes": c.peak_bytes, "moved_bytes": c.bytes_read + c.bytes_written}
    one = {"naive": naive_attention, "flash": flash_attention, "library": rl.attention}
    return {name: row(one[name]) for name in names}
"""


def account(mib=8192, held=3, softmax=1, peak=2, flash=0, per_l2=97.13, extra="c"):
    return (
        f"score_matrix_mib = {mib}\nheld_written_out = {held}\nheld_with_softmax = {softmax}\n"
        f"peak_with_softmax = {peak}\nheld_flash = {flash}\npublished_bytes_per_l2 = {per_l2}\nextra_byte = {extra!r}\n"
    )


def why(ratio="counted(naive_attention) / counted(rl.attention)", growth=2.0, reason="b"):
    return f"""
def counted(fn):
    q, k, v = make_qkv(1, 1024, 1024, 64)
    with rl.count() as c:
        fn(q, k, v)
    return c.bytes_read + c.bytes_written

naive_over_library_at_1024 = {ratio}
library_growth = {growth}
why_not_faster = {reason!r}
"""


KERNEL = r'''
FLASH_ROWS, FLASH_THREADS = 32, 32
FLASH_CUDA = r"""
extern "C" __global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* L,
                                         int L_q, int L_kv, float scale, int is_causal) {
  const int row = blockIdx.x * 32 + threadIdx.x;
  if (row >= L_q) return;
  const float* q = Q + ((size_t)blockIdx.y * L_q + row) * 64;
  float* o = O + ((size_t)blockIdx.y * L_q + row) * 64;
  const int end = is_causal ? row + 1 + L_kv - L_q : L_kv;
  float m = -1e38f, l = 0;
  for (int c = 0; c < 64; ++c) o[c] = 0;
  for (int j = 0; j < end; ++j) {
    const float* k = K + ((size_t)blockIdx.y * L_kv + j) * 64;
    const float* v = V + ((size_t)blockIdx.y * L_kv + j) * 64;
    float s = 0;
    for (int c = 0; c < 64; ++c) s += q[c] * k[c];
    s *= scale;
    const float most = fmaxf(m, s), shrink = expf(m - most), p = expf(s - most);
    for (int c = 0; c < 64; ++c) o[c] = shrink * o[c] + p * v[c];
    l = shrink * l + p;
    m = most;
  }
  for (int c = 0; c < 64; ++c) o[c] /= l;
  L[(size_t)blockIdx.y * L_q + row] = m + logf(l);
}
"""
'''

# Wrong numbers, which only a run on a GPU can show.
KERNEL_WRONG_VALUES = mutants(
    KERNEL,
    ("no scale", "s *= scale;", ""),
    ("O is not rescaled", "shrink * o[c] + p", "o[c] + p"),
    ("causal is ignored", "is_causal ? row + 1 + L_kv - L_q : L_kv", "L_kv"),
    ("the first query beside the first key", "row + 1 + L_kv - L_q", "row + 1"),
    ("no maximum", "-1e38f", "0", "fmaxf(m, s)", "m"),
    ("the log-sum-exp without the maximum", "= m + logf(l)", "= logf(l)"),
    ("log2 of the sum", "= m + logf(l)", "= m + log2f(l)"),
    ("the last keys are left out", ": L_kv;", ": L_kv / 32 * 32;"),
    ("one of the batch only", "(size_t)blockIdx.y", "(size_t)0"),
    ("writes into K", "float s = 0;", "float s = 0; ((float*)k)[0] += 1;"),
    ("a memory fault", "float m = -1e38f", "*(volatile float*)16 = 1; float m = -1e38f"),
)

TOP = "    top = scores.amax(dim=-1, keepdim=True)\n"
NAIVE_SOFTMAX = changed(
    NAIVE, f"{TOP}    e = rl.exp(scores - top)\n", "", "(e / e.sum(dim=-1, keepdim=True))", "rl.softmax(scores, -1)"
)
NAIVE_NUMPY = """
def naive_attention(q, k, v, is_causal=False):
    q, k, v = (x.detach().cpu().numpy() for x in (q, k, v))
    s = q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5
    if is_causal:
        s[:, np.arange(s.shape[2]) > np.arange(s.shape[1])[:, None] + s.shape[2] - s.shape[1]] = -np.inf
    e = np.exp(s - s.max(-1, keepdims=True))
    return rl.tensor(e / e.sum(-1, keepdims=True) @ v, device=device)
"""
NAIVE_LIBRARY = """
def naive_attention(q, k, v, is_causal=False):
    return rl.attention(q, k, v, is_causal=is_causal)
"""
NO_MAXIMUM = """
def online_update(m, l, x):
    return np.maximum(m, x.max(axis=1, initial=-np.inf)), l + np.exp(x).sum(axis=1)
"""
NAN_UPDATE = """
def online_update(m, l, x):
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    return new, np.exp(m - new) * l + np.exp(x - new[:, None]).sum(axis=1)
"""
PAIRS = """

def scores_computed(L_q, L_kv, tile_q, tile_kv):
    return sum(i + 1 + L_kv - L_q for i in range(L_q))
"""
HELD = "        held = rl.memory.allocated(device) - start\n"
O_SUM, COMBINED = "O * factor[:, None]", "a[:, None] * O1 + b[:, None] * O2"
SIZE = "(bottom - top) * (min(left + tile_kv, L_kv) - left)"

RIGHT = {
    "q1_1": [("scores divided, > for the mask", NAIVE)],
    "q1_2": [("by hand", account()), ("a float for the size, the exact slope", account(8192.0, per_l2=97.0))],
    "q1_3": [("the graph first, then the forward passes", BENCHMARK)],
    "q2_1": [("NaN replaced", UPDATE), ("one value at a time", LOOPED)],
    "q2_2": [("einsum", AVERAGE)],
    "b2_3": [("NaN replaced", COMBINE)],
    "q4": [("tile by tile", SCORES)],
    "q6": [("no shared memory at all", KERNEL)],
    "q7_1": [("isqrt", LENGTHS)],
    "q7_2": [("its own tensors", COMPARE)],
    "q7_3": [("counted here", why())],
    **forward.RIGHT,
    **backward.RIGHT,
}

WRONG = {
    "q1_1": [
        ("the library's softmax", NAIVE_SOFTMAX),
        ("the library's attention", NAIVE_LIBRARY),
        ("in NumPy", NAIVE_NUMPY),
        *mutants(
            NAIVE,
            ("no scale", " / q.shape[-1] ** 0.5", ""),
            ("scale 1/d", " ** 0.5", ""),
            ("no maximum", "scores - top", "scores"),
            ("the maximum detached", "scores - top", "scores - top.detach()"),
            ("the first query beside the first key", " + (k.shape[1] - q.shape[1])", ""),
            ("causal is ignored", "if is_causal:", "if False:"),
            ("a query does not see itself", "[None] > rows", "[None] >= rows"),
            ("the mask after the maximum", TOP, "", "    if is_causal:", f"{TOP}    if is_causal:"),
            ("masked with -100", 'float("-inf"), scores', "-100.0, scores"),
            ("one maximum for all", "scores.amax(dim=-1, keepdim=True)", "scores.max()"),
            ("softmax over the queries", "dim=-1", "dim=-2"),
            ("a mask for each of the batch", "> rows", "> rows + rl.zeros((q.shape[0], 1, 1), dtype='int64')"),
        ),
    ],
    "q1_2": [
        ("no batch", account(1024)),
        ("bf16", account(4096)),
        ("MB for MiB", account(8589.9)),
        ("four matrices", account(held=4)),
        ("softmax keeps two", account(softmax=2)),
        ("softmax needs one at the peak", account(peak=1)),
        ("three at the peak", account(peak=3)),
        ("flash keeps one", account(flash=1)),
        ("96 of the account", account(per_l2=96)),
        ("MB for MiB in the slope", account(per_l2=92.6)),
        ("the output", account(extra="a")),
        ("rounding", account(extra="b")),
        ("a gradient", account(extra="d")),
    ],
    "q1_3": mutants(
        BENCHMARK,
        ("out of memory is not caught", "rl.OutOfMemoryError", "KeyError"),
        ("held after the graph is gone", HELD, "", "        del o\n", f"        del o\n{HELD}"),
        ("MiB for bytes", '"held_bytes": held}', '"held_bytes": held / 2**20}'),
        ("without its inputs", "        o = naive", "        start = rl.memory.allocated(device)\n        o = naive"),
        ("twice the batch", "rl.randn(batch, L", "rl.randn(2 * batch, L"),
        ("seconds", '"forward_ms": forward_ms', '"forward_ms": forward_ms / 1e3'),
        ("backward in seconds", '"backward_ms": backward_ms', '"backward_ms": backward_ms / 1e3'),
        ("microseconds", '"backward_ms": backward_ms', '"backward_ms": backward_ms * 1e3'),
        ("the library's forward pass", "latency(naive_attention,", "latency(rl.attention,"),
        ("the product of the scores alone", "latency(naive_attention, q, k, v", "latency(rl.matmul, q, k.mT"),
    ),
    "q2_1": [
        ("NaN where nothing is seen", NAN_UPDATE),
        ("no maximum at all", NO_MAXIMUM),
        *mutants(
            UPDATE,
            ("the sum is not rescaled", "l * np.exp(m - new)", "l"),
            ("rescaled the wrong way", "np.exp(m - new)", "np.exp(new - m)"),
            ("base 2", "np.exp(", "np.exp2("),
            ("a mean", ".sum(axis=1)", ".mean(axis=1)"),
        ),
        *mutants(
            LOOPED,
            ("the maximum of the chunk", "m, l = m.copy(), ", "m, l = x.max(axis=1, initial=-np.inf), "),
            ("no empty chunks", "m, l =", "x[:, 0]; m, l ="),
        ),
    ],
    "q2_2": mutants(
        AVERAGE,
        ("O is not rescaled", O_SUM, "O"),
        ("l is not rescaled", "factor * l", "l"),
        ("divided at every step", f"{O_SUM} + np", f"({O_SUM} + np", "e, V)", "e, V)) / e.sum(1)[:, None]"),
        ("a plain sum", "e, V)", "np.ones_like(e), V)"),
        ("NaN where nothing is seen", "np.where(new == -np.inf, 0, new)", "new"),
        ("a mean for the sum", "e.sum(1)", "e.mean(1)"),
    ),
    "b2_3": mutants(
        COMBINE,
        ("sums without scaling", "a * l1 + b * l2", "l1 + l2"),
        ("O without scaling", COMBINED, "O1 + O2"),
        ("the mean of the two", COMBINED, "(O1 + O2) / 2"),
        ("parts that were divided", COMBINED, "(a * l1)[:, None] * O1 + (b * l2)[:, None] * O2"),
        ("the wrong way round", "(m1, m2))\n    return", "(m2, m1))\n    return"),
        ("NaN of two empty parts", "np.nan_to_num(np.exp(part - m), nan=0.0)", "np.exp(part - m)"),
    ),
    "q4": [
        ("visible pairs only", SCORES + PAIRS),
        *mutants(
            SCORES,
            ("all scores", "if left <= bottom - 1 + L_kv - L_q:", "if True:"),
            ("whole tiles at the ends", SIZE, "tile_q * tile_kv"),
            ("tiles without the diagonal", "left <= bottom - 1", "left + tile_kv <= bottom - 1"),
            ("the first query beside the first key", " + L_kv - L_q", ""),
            ("off by one", "bottom - 1 +", "bottom +"),
            ("a quarter", "1 / 2", "1 / 4"),
            ("nothing is saved", "1 / 2", "1"),
        ),
    ],
    "q6": [
        ("Python", 'FLASH_ROWS = FLASH_THREADS = 64\nFLASH_CUDA = "def flash_forward(): pass"\n'),
        ("an empty text", 'FLASH_ROWS = FLASH_THREADS = 64\nFLASH_CUDA = ""\n'),
        *mutants(
            KERNEL,
            ("a forgotten semicolon", "float s = 0;", "float s = 0"),
            ("an unknown name", "expf(s - most)", "expp(s - most)"),
            ("another name", "void flash_forward", "void flash_fwd"),
            ("a parameter too few", ", float scale,", ", ", "s *= scale;", "s *= 0.125f;"),
            ("half precision", "const float* Q", "const double* Q", "const float* q = Q", "const double* q = Q"),
            ("no kernel", "__global__", "__device__"),
            ("a block of 2048 threads", "= 32, 32", "= 32, 2048"),
        ),
    ],
    "q7_1": mutants(
        LENGTHS,
        ("one matrix", "12 * batch", "4 * batch"),
        ("no batch", "12 * batch", "12"),
        ("a float", "math.isqrt(int(free_bytes) // (12 * batch))", "(free_bytes / (12 * batch)) ** 0.5"),
        ("rounded up", "(12 * batch))", "(12 * batch)) + 1"),
        ("no log-sum-exp", " + 4 * batch", ""),
        ("flash as the square root", "return free_bytes // (16 * batch * d + 4 * batch)",
         "return math.isqrt(free_bytes // (16 * batch * d + 4 * batch))"),
    ),
    "q7_2": mutants(
        COMPARE,
        ("bytes read only", " + c.bytes_written", ""),
        ("allocated, not the peak", "c.peak_bytes", "c.bytes_allocated"),
        ("batch is not used", "rl.randn(batch,", "rl.randn(1,"),
        ("the library for all", ": flash_attention", ": rl.attention"),
        ("mixed up", '"naive": naive', '"naive": flash', ", \"flash\": flash", ", \"flash\": naive"),
        ("all of them always", "in names}", "in ALL}"),
        ("nothing measured", "latency(fn, q, k, v, warmup=1, repeat=3).median_ms", "1e-7"),
        ("seconds", "repeat=3).median_ms", "repeat=3).median_ms / 1e3"),
        ("microseconds", "repeat=3).median_ms", "repeat=3).median_ms * 1e3"),
        ("the library in seconds", '"ms": ms', '"ms": ms / (1e3 if fn is rl.attention else 1)'),
        ("causal", "out = fn(q, k, v)", "out = fn(q, k, v, is_causal=True)"),
    ),
    "q7_3": [
        ("the ratio upside down", why(ratio="counted(rl.attention) / counted(naive_attention)")),
        ("the ratio of flash", why(ratio="counted(flash_attention) / counted(rl.attention)")),
        ("a guess", why(ratio="16.0")),
        ("grows as L squared", why(growth=4)),
        ("more arithmetic", why(reason="a")),
        ("float64", why(reason="c")),
        ("the log-sum-exp", why(reason="d")),
    ],
    **forward.WRONG,
    **backward.WRONG,
}  # fmt: skip
