"""`rooflab bench layer` and `bench model`: Gemma-3 270M, prefill and decode, eager and replayed, beside copies.

On a GPU the calls of a turn run the same layer again, so its weights (11 MB) come from the L2 cache. In a whole model
they do not. On a CPU the calls rotate over more layers than its cache holds.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import rooflab as rl

from . import gemma3_peer
from .ladder import Row, race

_CACHE_BYTES = 200_000_000  # what the layers of a CPU's turn must exceed together
_FULL = 5  # the first layer that sees the whole text


@dataclass(frozen=True)
class Case:
    """What is timed: `op` "layer" or "model", `phase` "prefill" or "decode", B sequences of `length` tokens."""

    op: str
    phase: str
    batch: int
    length: int
    dtype: str

    @property
    def label(self) -> str:
        """Such as "decode B8 L4096"."""
        return f"{self.phase} B{self.batch} L{self.length}"

    @property
    def tokens(self) -> int:
        """Tokens that a call works on."""
        return self.batch * (self.length if self.phase == "prefill" else 1)


def cases(op: str, kind: str) -> Iterator[Case]:
    """The cases of "layer" or "model" on "cpu" or "cuda".

    Examples
    --------
    >>> [case.label for case in cases("model", "cuda")]
    ['decode B1 L1024']
    """
    dtypes = ("bfloat16",) if kind == "cuda" else ("float32", "bfloat16")
    if op == "model":
        shapes = {"decode": [(1, 1024)]}
    elif kind == "cpu":
        shapes = {"prefill": [(1, 512)], "decode": [(1, 4096), (8, 4096)]}
    else:
        shapes = {"prefill": [(1, 512), (1, 4096), (8, 4096)], "decode": [(1, 4096), (8, 4096), (64, 4096)]}
    for dtype, (phase, sizes) in itertools.product(dtypes, shapes.items()):
        for batch, length in sizes:
            yield Case(op, phase, batch, length, dtype)


def bench(
    case: Case,
    device: str,
    *,
    peer: str | None = None,
    turns: int = 20,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[list[Row], rl.Cost]:
    """Measure a case: the rows of its contenders, as `ladder.race` gives them, and what one call costs.

    Contenders are "eager", the call op by op; "graph", a replay; "steps", a layer without fused kernels; "copy", a
    copy that moves as many bytes; and, with `peer` "torch", a layer's PyTorch form, op by op and compiled.
    """
    progress("making the model")
    with rl.no_grad():
        calls = _model(case, device) if case.op == "model" else _layer(case, device, peer)
        with rl.count() as counted:
            calls["eager"]()
        cost = rl.Cost(
            macs=counted.macs,
            flops=counted.flops,
            bytes_read=counted.bytes_read,
            bytes_written=counted.bytes_written,
        )
        buffer = rl.zeros(max(1, cost.bytes // 8), device=device)
        calls["copy"] = functools.partial(rl.copy, buffer)
        rows = race((case.op, case.label, case.dtype), calls, cost, device, peer=peer, turns=turns, progress=progress)
    return rows, cost


def _rotating(calls: list[Callable[[], object]]) -> Callable[[], object]:
    cycle = itertools.cycle(calls)
    return lambda: next(cycle)()


def _replay(call: Callable[[], object], device: str) -> Callable[[], object]:
    """A graph of the call. The call runs once before, because what it makes the first time must not be captured."""
    call()
    graph = rl.Graph(device=device)
    with graph.capture():
        call()
    return graph.replay


def _layer(case: Case, device: str, peer: str | None) -> dict[str, Callable[[], object]]:
    config = replace(rl.nn.GEMMA3_270M, num_hidden_layers=_FULL + 1)
    is_prefill = case.phase == "prefill"
    first, length = (0, case.length) if is_prefill else (case.length - 1, 1)
    rotary = rl.nn.RotaryEmbedding(config.rope_theta, config.head_dim, dtype=case.dtype, device=device)
    cos, sin = rotary(first, length)
    x = rl.randn(case.batch, length, config.hidden_size, device=device).to(case.dtype)

    def make_layer(fused: bool) -> rl.nn.Gemma3DecoderLayer:
        return rl.nn.Gemma3DecoderLayer(config, _FULL, fused=fused, dtype=case.dtype, device=device)

    def make_cache() -> rl.nn.KVCache:
        cache = rl.nn.KVCache(config, case.batch, case.length, dtype=case.dtype, device=device)
        cache.position.fill_(first)
        cache.length = first
        return cache

    def make(fused: bool) -> Callable[[], object]:
        layer = make_layer(fused)
        if is_prefill:
            return lambda: layer(x, cos, sin)
        cache = make_cache()
        of_layer = cache.layer(_FULL, held=cache.position + 1)
        return lambda: layer(x, cos, sin, of_layer)

    copies = 1
    if device == "cpu" and not is_prefill:
        layer_bytes = sum(p.nbytes for p in rl.nn.Gemma3DecoderLayer(config, dtype=case.dtype).parameters())
        copies = math.ceil(_CACHE_BYTES / layer_bytes)
    fused, steps = ([make(is_fused) for _ in range(copies)] for is_fused in (True, False))
    calls = {
        "graph": _rotating([_replay(call, device) for call in fused]),
        "eager": _rotating(fused),
        "steps": _rotating(steps),
    }
    if peer:
        cache = None if is_prefill else make_cache()
        kept = None if cache is None else (*cache[_FULL], cache.position)
        calls |= gemma3_peer.contenders(make_layer(True), x, cos, sin, kept)
    return calls


def _model(case: Case, device: str) -> dict[str, Callable[[], object]]:
    model = rl.nn.Gemma3ForCausalLM(rl.nn.GEMMA3_270M, dtype=case.dtype, device=device)
    cache = rl.nn.KVCache(model.config, case.batch, case.length, dtype=case.dtype, device=device)
    cache.length = case.length - 1
    cache.position.fill_(case.length - 1)
    tokens = rl.zeros(case.batch, 1, dtype="int64", device=device)

    def eager() -> None:
        model.decode(tokens, cache)
        cache.length -= 1
        cache.position -= 1

    eager()
    step = model.capture_decode(cache, case.batch)

    def graph() -> None:
        step(tokens)
        cache.length -= 1
        cache.position -= 1

    return {"graph": graph, "eager": eager}
