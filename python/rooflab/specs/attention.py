"""attention: grouped heads, causality, windows, masks, lengths that fill no tile; what its backward shares."""

import math

import numpy as np

from .. import _core
from . import ODD, OpSpec, Sample, Seen, accumulator_roundoff, itemsize, unit_roundoff
from ._tiles import ATTENTION, ATTENTION_BACKWARD, ATTENTION_SPLIT, ATTENTION_TILE, around, tile
from .softmax import SMALLEST

DTYPES = ("float64", "float32", "float16", "bfloat16")
PEER_BACKENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION")

# label, q's shape, k's and v's shape, keywords
SHAPES: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict], ...] = (
    ("one", (1, 1, 1, 16), (1, 1, 1, 16), {}),
    ("plain", (2, 3, 37, 64), (2, 3, 37, 64), {}),
    ("grouped", (2, 8, 65, 32), (2, 2, 130, 32), {}),
    ("one-key-head", (1, 6, 20, 80), (1, 1, 150, 80), {"scale": 0.3}),
    ("no-batch", (3, 33, 24), (3, 29, 24), {}),
    ("causal", (1, 2, 150, 128), (1, 2, 150, 128), {"is_causal": True}),
    ("causal-more-keys", (1, 4, 70, 64), (1, 2, 200, 64), {"is_causal": True}),
    ("causal-fewer-keys", (1, 2, 140, 64), (1, 2, 70, 64), {"is_causal": True}),  # the first 70 see nothing
    ("causal-window", (1, 2, 200, 256), (1, 1, 200, 256), {"is_causal": True, "window": 37}),
    ("window", (1, 2, 100, 20), (1, 2, 160, 20), {"window": 9}),
    ("window-of-one", (1, 1, 40, 64), (1, 1, 40, 64), {"is_causal": True, "window": 1}),
    ("decode", (2, 8, 1, 64), (2, 2, 700, 64), {}),
    ("decode-causal", (1, 4, 3, 128), (1, 1, 1000, 128), {"is_causal": True}),
    ("decode-window", (1, 2, 2, 256), (1, 1, 900, 256), {"is_causal": True, "window": 300}),
    ("no-keys", (1, 2, 5, 16), (1, 2, 0, 16), {}),
    ("no-queries", (1, 2, 0, 16), (1, 2, 5, 16), {}),
    ("no-batches", (0, 2, 5, 16), (0, 2, 5, 16), {}),
)
# label, shape of the mask of (2, 4, 40, 70) scores
MASKS = (("mask-whole", (2, 4, 40, 70)), ("mask-keys", (2, 1, 1, 70)), ("mask-scores", (40, 70)))


def visible(q_length, kv_length, is_causal=False, window=None):
    """Which keys each query may see (L_q, L_kv), bool."""
    distance = (np.arange(q_length)[:, None] + kv_length - q_length) - np.arange(kv_length)
    window = q_length + kv_length if window is None else window
    return (distance < window) & ((distance >= 0) if is_causal else (-distance < window))


def operands(rng, q_shape, kv_shape):
    """q, k and v, standard normal but for a few large elements of q, which make some weights nearly 1."""
    q = rng.standard_normal(q_shape) * np.where(rng.random(q_shape) < 0.02, 5.0, 1.0)
    return q, rng.standard_normal(kv_shape), rng.standard_normal(kv_shape)


def samples(rng, finite_only=False):
    """Calls that every rung must get right; NaN and huge scores too unless only finite ones are wanted."""
    for label, q_shape, kv_shape, keywords in SHAPES:
        yield Sample(label, operands(rng, q_shape, kv_shape), keywords)
    for label, shape in MASKS:
        seen = rng.random(shape) < 0.6
        if shape[-2] > 1:
            seen[..., 3, :] = False  # a query that sees nothing
        qkv = operands(rng, (2, 4, 40, 64), (2, 2, 70, 64))
        yield Sample(f"{label}-bool", (*qkv, seen), {"is_causal": shape[-2] > 1})
        yield Sample(f"{label}-added", (*qkv, np.where(seen, rng.standard_normal(shape), -np.inf)), {})
    # All scores of a row are the same large number, to which the log of their sum hardly adds anything.
    q, k, v = operands(rng, (1, 4, 70, 64), (1, 2, 90, 64))
    yield Sample("far-mask", (0 * q, k, v, np.full((1, 90), -3e4)), {})
    if finite_only:
        return
    q, k, v = operands(rng, (1, 2, 70, 64), (1, 2, 90, 64))
    yield Sample("huge-scores", (16 * q, 16 * k, v), {})
    q = q.copy()
    q[0, 1, 5, 7] = np.nan
    yield Sample("nan-query", (q, k, v), {"is_causal": True})


def _differentiable(rng):
    """The finite samples, but for the one in which small differences are lost beside the mask."""
    return (sample for sample in samples(rng, finite_only=True) if sample.label != "far-mask")


def tails(rng):
    """Lengths around the blocks of queries and keys, head sizes around a vector, and keys shared by threads."""
    queries, keys = tile(ATTENTION_TILE, "kQueries"), tile(ATTENTION_TILE, "kKeys")
    lengths = around(queries, keys, tile(ATTENTION, "kQueries"), tile(ATTENTION_BACKWARD, "kKeys"))
    shapes = [((1, 2, n, 16), (1, 1, n, 16), {"is_causal": i % 2 == 1}) for i, n in enumerate(lengths)]
    shapes += [((1, 1, 20, d), (1, 1, 21, d), {}) for d in around(16, 32, 64)]
    shapes += [((1, 1, 9, 300), (1, 1, 40, 300), {})]  # wider than any tile
    rows, split = tile(ATTENTION_SPLIT, "kAttentionSplitRows"), tile(ATTENTION_SPLIT, "kAttentionSplitKeys")
    shapes += [((1, rows, 1, 24), (1, 1, n, 24), {"is_causal": True}) for n in around(split, 16 * split)]
    shapes += [((1, rows + 1, 1, 24), (1, 1, 32 * split + 1, 24), {})]
    shapes += [((1, 1, rows + 6, 30), (1, 1, 2 * rows + 20, 30), {})]  # no whole vectors
    shapes += [((1, 2, rows + 6, 24), (1, 1, 33 * split, 24), {"is_causal": True})]
    shapes += [((1, 2, 150, 16), (1, 2, 300, 16), {"is_causal": True, "window": n}) for n in around(keys, 149)]
    for q_shape, kv_shape, keywords in shapes:
        label = f"{'x'.join(map(str, q_shape))}_{kv_shape[2]}" + "".join(f" {k} {v}" for k, v in keywords.items())
        yield Sample(label, operands(rng, q_shape, kv_shape), keywords)


def heads_first(x):
    """(H, L, D_h) as a batch of one."""
    return x if x.ndim == 4 else x[None]


def scores(q, k, mask=None, *, is_causal=False, window=None, scale=None):
    """Scaled and masked scores (B, H, L_q, L_kv)."""
    group = q.shape[1] // max(k.shape[1], 1)
    s = q @ np.repeat(k, group, 1).swapaxes(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    s = np.where(visible(q.shape[2], k.shape[2], is_causal, window), s, -np.inf)
    if mask is None:
        return s
    # Bool masks reach the reference as numbers.
    is_bool = mask.dtype == bool or np.isin(mask, (0, 1)).all()
    return np.where(mask, s, -np.inf) if is_bool else s + mask


def weights(s):
    """softmax of scores, 0 where a query sees nothing; and the log of the sum of exponentials."""
    if s.shape[-1] == 0:
        return s, np.full(s.shape[:-1], -np.inf)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = np.where(np.isneginf(top), 1, e.sum(-1, keepdims=True))
    return e / total, (np.log(total) + top)[..., 0]


def _reference(q, k, v, mask=None, **keywords):
    q4, k4, v4 = heads_first(q), heads_first(k), heads_first(v)
    p, _ = weights(scores(q4, k4, mask, **keywords))
    return (p @ np.repeat(v4, q4.shape[1] // max(k4.shape[1], 1), 1)).reshape(q.shape)


def visible_pairs(q, k, is_causal=False, window=None, **_):
    """(query, key) pairs over all batches and heads, by what causality and window allow."""
    rows = np.arange(q.shape[-2]) + k.shape[-2] - q.shape[-2]
    window = q.shape[-2] + k.shape[-2] if window is None else window
    begin = np.clip(rows - window + 1, 0, k.shape[-2])
    end = np.clip(rows + (1 if is_causal else window), 0, k.shape[-2])
    return math.prod(q.shape[:-2]) * int((end - begin).sum())


def operand_bytes(sample, dtype):
    """q, k, v (or more) and the mask, once each."""
    return sum(x.size * (1 if x.dtype == bool else itemsize(dtype)) for x in sample.args)


def _cost(sample, dtype):
    q, k = sample.args[:2]
    written = q.size * itemsize(dtype)
    if k.size == 0 or q.size == 0:
        return _core.Cost(bytes_written=written)
    pairs = visible_pairs(q, k, **sample.kwargs)
    macs = 2 * pairs * q.shape[-1]
    return _core.Cost(
        macs=macs, flops=2 * macs + 5 * pairs, bytes_read=operand_bytes(sample, dtype), bytes_written=written
    )


def score_error(dtype, q, k, scale=None):
    """Error of scores in the accumulation type: n roundings add up to less than 4 sqrt(n) of one, unless by design."""
    terms = scores(np.abs(q), np.abs(k), scale=scale).max(initial=0)
    return 4 * (q.shape[-1] ** 0.5 + 1) * accumulator_roundoff(dtype) * float(terms)


def finite_operands(q, k, v, mask=None):
    """q, k and v as (B, H, L, D_h) with 0 for NaN, and the mask."""
    return *(heads_first(np.nan_to_num(x)) for x in (q, k, v)), mask


def _tolerance(dtype, sample):
    """Fused rungs round only the weights, before their product with v, and the result; bound for each element."""
    q, k, v, mask = finite_operands(*sample.args)
    if q.size == 0 or k.size == 0:
        return 0.0, 0.0
    p, _ = weights(scores(q, k, mask, **sample.kwargs))
    size = p @ np.abs(np.repeat(v, q.shape[1] // k.shape[1], 1))
    in_sums = 4 * (k.shape[2] ** 0.5 + 2) * accumulator_roundoff(dtype)
    error = 2 * (score_error(dtype, q, k, sample.kwargs.get("scale")) + in_sums) + 2 * unit_roundoff(dtype)
    return 0.0, (error * size + SMALLEST[dtype]).reshape(sample.args[0].shape)


def _composed_tolerance(dtype, sample):
    """Besides that, scores are rounded three times and weights once, independently: three deviations of the sum."""
    q, k, v, mask = finite_operands(*sample.args)
    if q.size == 0 or k.size == 0:
        return 0.0, 0.0
    s = scores(q, k, mask, **sample.kwargs)
    p, _ = weights(s)
    u, v = unit_roundoff(dtype), np.repeat(v, q.shape[1] // k.shape[1], 1)
    visible_scores = np.where(np.isfinite(s), np.abs(s), 0)
    out, in_scores = p @ v, (p * np.expm1(np.minimum(2 * u * visible_scores, 50))) ** 2
    spread = in_scores @ v**2 - 2 * out * (in_scores @ v) + out**2 * in_scores.sum(-1, keepdims=True)
    deviation = np.sqrt(np.maximum(spread, 0) + u**2 * (p**2 @ v**2))
    return 0.0, _tolerance(dtype, sample)[1] + 3 * deviation.reshape(sample.args[0].shape)


# What the tables of attention and its backward show on a GPU.
LONGEST = (
    "D64 L16384 full bfloat16",
    "D128 L16384 full bfloat16",
    "D128 L16384 causal bfloat16",
    "D256 L16384 full bfloat16",
)


def bench_shapes():
    """16384 tokens and 2048 features over all heads, as `(label, shape, keywords)`."""
    for head_size in (64, 128, 256):
        for length in (2048, 4096, 16384):
            shape = (16384 // length, 2048 // head_size, length, head_size)
            for is_causal in (False, True):
                yield f"D{head_size} L{length} {'causal' if is_causal else 'full'}", shape, {"is_causal": is_causal}


def _bench():
    for label, shape, keywords in bench_shapes():
        yield label, "bfloat16", (shape,) * 3, keywords
    for batch, heads, kv_heads, length, head_size in (
        (1, 4, 1, 4096, 256),
        (8, 4, 1, 4096, 256),
        (8, 4, 1, 32768, 256),
        (64, 32, 8, 4096, 128),
    ):
        cache = (batch, kv_heads, length, head_size)
        label = f"decode B{batch} H{heads}:{kv_heads} D{head_size} L{length}"
        yield label, "bfloat16", ((batch, heads, 1, head_size), cache, cache), {}
    yield "decode B8 H8 D64 L4096", "float32", ((8, 8, 1, 64), (8, 8, 4096, 64), (8, 8, 4096, 64)), {}
    for length in (512, 1024, 2048, 4096):
        for is_causal in (False, True):
            label = f"H4 D128 L{length} {'causal' if is_causal else 'full'}"
            yield label, "float32", ((1, 4, length, 128),) * 3, {"is_causal": is_causal}
    for length, head_size, shape in (
        (1024, 64, (1024, 1024)),
        (2048, 128, (1, 1, 1, 2048)),
        (700, 256, (4, 1, 700, 700)),
    ):
        batch = shape[0] if len(shape) == 4 else 4
        label = f"{ODD}mask {'x'.join(map(str, shape))} B{batch} H8 D{head_size} L{length}"
        yield label, "bfloat16", (*((batch, 8, length, head_size),) * 3, Seen(shape)), {}


def peer_calls(torch):
    """PyTorch's attention(q, k, v, mask, is_causal=) by name: as it chooses, and held to one GPU backend each."""

    def call(q, k, v, mask=None, is_causal=False):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=is_causal, enable_gqa=q.shape[1] != k.shape[1]
        )

    def held_to(backend):
        def held(*qkv, is_causal=False):
            with torch.nn.attention.sdpa_kernel(backend):
                return call(*qkv, is_causal=is_causal)

        return held

    backends = torch.nn.attention.SDPBackend
    return {"torch": call} | {f"torch {b.split('_')[0].lower()}": held_to(getattr(backends, b)) for b in PEER_BACKENDS}


SPEC = OpSpec(
    name="attention",
    fn=_core.attention,
    samples=samples,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    composed_tolerance=_composed_tolerance,
    dtypes=DTYPES,
    composed_dtypes=("float64",),
    tails=tails,
    differentiable=_differentiable,
    bench=_bench,
    tables={
        "cpu": ("H4 D128 L1024 full float32", "H4 D128 L1024 causal float32", "decode B8 H4:1 D256 L4096 bfloat16"),
        "cuda": (
            "H4 D128 L4096 full float32",
            *LONGEST,
            "decode B64 H32:8 D128 L4096 bfloat16",
            "decode B8 H8 D64 L4096 float32",
        ),
    },
    peer=peer_calls,
)
