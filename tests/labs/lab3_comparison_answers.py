"""Answers to questions 7.1 to 7.3 of Lab 3, the three versions side by side, right and wrong."""

from labs.mutants import mutants

LENGTHS = """
import math

def largest_naive_length(free_bytes, batch, matrices):
    return math.isqrt(int(free_bytes) // (4 * batch * matrices))

def largest_flash_length(free_bytes, batch, d):
    return free_bytes // (16 * batch * d + 4 * batch)
"""

COMPARE = """
ALL = ("naive", "tiled", "library")

def compare(L, d, batch, names=ALL):
    q, k, v = (rl.randn(batch, L, d, device=device) for _ in range(3))
    def row(fn):
        try:
            ms = latency(fn, q, k, v, warmup=1, repeat=3).median_ms
            with rl.count() as c:
                out = fn(q, k, v)
            leaves = [x.detach().requires_grad_() for x in (q, k, v)]
            out = fn(*leaves)
            back = latency(lambda: rl.autograd.grad(out, leaves, q, retain_graph=True), warmup=1, repeat=2).median_ms
        except rl.OutOfMemoryError:
            return None
        moved = c.bytes_read + c.bytes_written
        return {"forward_ms": ms, "backward_ms": back, "peak_bytes": c.peak_bytes, "moved_bytes": moved}
    one = {"naive": naive_attention, "tiled": flash_attention, "library": rl.attention}
    return {name: row(one[name]) for name in names}
"""


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


RIGHT = {
    "q7_1": [("isqrt", LENGTHS)],
    "q7_2": [("its own tensors", COMPARE)],
    "q7_3": [("counted here", why())],
}  # fmt: skip

WRONG = {
    "q7_1": mutants(
        LENGTHS,
        ("one matrix", " * matrices", ""),
        ("always three", "* matrices", "* 3"),
        ("no batch", "4 * batch * matrices)", "4 * matrices)"),
        ("a float", "math.isqrt(int(free_bytes) // (4 * batch * matrices))",
         "(free_bytes / (4 * batch * matrices)) ** 0.5"),
        ("rounded up", "matrices))", "matrices)) + 1"),
        ("no log-sum-exp", " + 4 * batch", ""),
        ("flash as the square root", "return free_bytes // (16 * batch * d + 4 * batch)",
         "return math.isqrt(free_bytes // (16 * batch * d + 4 * batch))"),
    ),
    "q7_2": mutants(
        COMPARE,
        ("the latency inside of count", "            ms = latency(fn, q, k, v, warmup=1, repeat=3).median_ms\n", "",
         "                out = fn(q, k, v)\n",
         "                ms = latency(fn, q, k, v, warmup=1, repeat=3).median_ms\n"
         "                out = fn(q, k, v)\n"),
        ("the latency alone in count", "            ms = latency(fn, q, k, v, warmup=1, repeat=3).median_ms\n", "",
         "                out = fn(q, k, v)\n",
         "                ms = latency(fn, q, k, v, warmup=1, repeat=3).median_ms\n"),
        ("bytes read only", " + c.bytes_written", ""),
        ("allocated, not the peak", "c.peak_bytes", "c.bytes_allocated"),
        ("a backward pass that runs only once", ", retain_graph=True", ""),
        ("batch is not used", "rl.randn(batch,", "rl.randn(1,"),
        ("the library for all", ": flash_attention", ": rl.attention"),
        ("mixed up", '"naive": naive', '"naive": flash', ", \"tiled\": flash", ", \"tiled\": naive"),
        ("all of them always", "in names}", "in ALL}"),
        ("nothing measured", "latency(fn, q, k, v, warmup=1, repeat=3).median_ms", "1e-7"),
        ("forward without a call to warm up", "warmup=1, repeat=3", "warmup=0, repeat=3"),
        ("backward without a call to warm up", "warmup=1, repeat=2", "warmup=0, repeat=2"),
        ("seconds", "repeat=3).median_ms", "repeat=3).median_ms / 1e3"),
        ("microseconds", "repeat=3).median_ms", "repeat=3).median_ms * 1e3"),
        ("the library in seconds", '"forward_ms": ms', '"forward_ms": ms / (1e3 if fn is rl.attention else 1)'),
        ("causal", "out = fn(q, k, v)", "out = fn(q, k, v, is_causal=True)"),
        ("one millisecond", "latency(fn, q, k, v, warmup=1, repeat=3).median_ms", "1.0"),
        ("backward with its forward", "grad(out, leaves, q", "grad(fn(*leaves), leaves, q"),
        ("backward in the place of forward", '"forward_ms": ms, "backward_ms": back',
         '"forward_ms": back, "backward_ms": ms'),
        ("forward on tensors that require gradients", "latency(fn, q, k, v,",
         "latency(fn, *(x.detach().requires_grad_() for x in (q, k, v)),"),
        ("any error is a lack of memory", "except rl.OutOfMemoryError:", "except Exception:"),
        ("out of memory is an accident", "rl.OutOfMemoryError", "ZeroDivisionError"),
        ("out of memory in the backward pass is an accident", "            back = latency(", """            try:
                back = latency(""", "warmup=1, repeat=2).median_ms\n", """warmup=1, repeat=2).median_ms
            except rl.OutOfMemoryError as error:
                raise RuntimeError("the backward pass") from error
"""),
        ("out of memory is naive's alone", "            return None\n",
         "            if fn is not naive_attention:\n                raise\n            return None\n"),
        ("out of memory is left out", "row(one[name]) for name in names",
         "found for name in names if (found := row(one[name]))"),
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
}  # fmt: skip
