"""Calls of one kind over their sizes: attention over d and L, matrix products over N, an MLP over its four sizes.

    from rooflab.benchmark import calls
    call = calls.Call("attention", "flash", (("L", 4096), ("d", 64)), device=rl.meta("H200"))
    calls.measure(call).figures          # {"forward_ms": ..., "backward_ms": ..., "held_bytes": ...}

On a meta device nothing is measured: times come from a profile of the launches, which is a model.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field

import rooflab as rl

from ..profiler import launch_model
from ..results import ReadableMixin
from .lm import machine_memory
from .lm_case import OUT_OF_MEMORY, check_status

ATTENTION = ("written out", "compiled", "flash")
"""Attention of one head with every operation written out, the same function compiled, and `rooflab.attention`."""

BATCH = 8  # of attention
WARMUP = 2
_REPEAT = {"cpu": 5, "cuda": 100}


@dataclass(frozen=True)
class Call(ReadableMixin):
    """What is timed.

    Attributes
    ----------
    kind : str
        "attention", "product" or "mlp".
    version : str
        One of `ATTENTION`; empty for the other kinds.
    sizes : tuple of (str, int)
        L and d of attention, N of a product, dim, layers, batch and steps of an MLP.
    device : str
        "cpu", "cuda:0" or a meta device.
    """

    kind: str
    version: str = ""
    sizes: tuple[tuple[str, int], ...] = ()
    device: str = "cpu"

    @property
    def size(self) -> dict[str, int]:
        """The sizes by their names."""
        return dict(self.sizes)

    @property
    def is_model(self) -> bool:
        """Whether the device has no memory, so that times come from a model."""
        return self.device.startswith("meta")

    @property
    def label(self) -> str:
        """Such as "attention, flash, L=4096 d=64"."""
        return ", ".join(filter(None, (self.kind, self.version, " ".join(f"{k}={n}" for k, n in self.sizes))))


@dataclass(frozen=True)
class CallResult(ReadableMixin):
    """What was found of a call.

    Attributes
    ----------
    call : Call
        What was timed.
    status : str
        "ok", or "out of memory"; there are no figures then.
    figures : dict of str to float
        Of attention "forward_ms", "backward_ms", and "held_bytes": what is held just before the backward, inputs
        included. Of a product and an MLP "ms". "peak_bytes" is the most that was held. Times are medians.
    model : str
        What times rest on that are not measured, as in `lm.Result`.
    """

    call: Call
    status: str = "ok"
    figures: dict[str, float] = field(default_factory=dict)
    model: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_status("CallResult", self.status)

    def __str__(self) -> str:
        times = ", ".join(f"{k.removesuffix('_ms')} {v:.4g} ms" for k, v in self.figures.items() if k.endswith("ms"))
        kind = " (modelled)" if self.call.is_model else ""
        return f"{self.call.label}: {times or self.status}{kind}"


def repeats(device: str) -> int:
    """How often a call is timed."""
    return _REPEAT.get(device.partition(":")[0], 1)


def measure(call: Call) -> CallResult:
    """Time a call, and count it once.

    Parameters
    ----------
    call : Call
        What to time.

    Raises
    ------
    ValueError
        For a kind or a device that is not known.

    Examples
    --------
    >>> measure(Call("product", sizes=(("N", 4096),), device=rl.meta("H200"))).figures["ms"]  # 2 N^3 FLOPs, 67 TFLOP/s
    2.05...
    """
    if call.kind not in _KINDS:
        raise ValueError(f"[calls] kind: expected one of {', '.join(_KINDS)}, got {call.kind!r}")
    try:
        with machine_memory(call.device):
            before = rl.memory.allocated(call.device)
            rl.memory.reset_peak(call.device)
            figures = _KINDS[call.kind](call)
            figures |= {"peak_bytes": rl.memory.peak(call.device) - before}
            return CallResult(call, figures=figures, model=str(launch_model(call.device)) if call.is_model else "")
    except rl.OutOfMemoryError:
        gc.collect()  # frees the tensors of the frames that the error came through
        return CallResult(call, OUT_OF_MEMORY)


def written_out(q: rl.Tensor, k: rl.Tensor, v: rl.Tensor) -> rl.Tensor:
    """Attention of q, k, v (B, L, d), each operation of its softmax by itself: it keeps three matrices (B, L, L)."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    weights = rl.exp(scores - rl.amax(scores, -1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True) @ v


def _attention(call: Call) -> dict[str, float]:
    functions = {"written out": written_out, "compiled": rl.compile(written_out), "flash": rl.attention}
    function, device = functions[call.version], call.device
    before = rl.memory.allocated(device)
    q, k, v, dO = (rl.randn(BATCH, call.size["L"], call.size["d"], device=device) for _ in range(4))
    inputs = [tensor.requires_grad_() for tensor in (q, k, v)]
    forward_ms = _milliseconds(lambda: function(*inputs), device)
    out = function(*inputs)
    held = rl.memory.allocated(device) - before
    backward_ms = _milliseconds(lambda: rl.autograd.grad(out, inputs, dO, retain_graph=True), device)
    return {"forward_ms": forward_ms, "backward_ms": backward_ms, "held_bytes": held}


def _product(call: Call) -> dict[str, float]:
    a, b = (rl.randn(call.size["N"], call.size["N"], device=call.device) for _ in "ab")
    return {"ms": _milliseconds(lambda: a @ b, call.device)}


def _mlp(call: Call) -> dict[str, float]:
    size, device = call.size, call.device
    layers = [layer for _ in range(size["layers"]) for layer in _layer(size["dim"], device)]
    model, x = rl.nn.Sequential(*layers), rl.randn(size["batch"], size["dim"], device=device)

    def steps() -> None:
        for _ in range(size["steps"]):
            model.zero_grad()
            model(x).mean().backward()

    return {"ms": _milliseconds(steps, device)}


def _layer(dim: int, device: str) -> tuple[rl.nn.Module, rl.nn.Module]:
    return rl.nn.Linear(dim, dim, bias=False, device=device), rl.nn.GELU(approximate="tanh")


_KINDS: dict[str, Callable[[Call], dict[str, float]]] = {"attention": _attention, "product": _product, "mlp": _mlp}


def _milliseconds(function: Callable[[], object], device: str) -> float:
    """The median of some calls after two for warm-up, or what the launches of one would take on a meta device."""
    if not device.startswith("meta"):
        return rl.latency(function, warmup=WARMUP, repeat=repeats(device)).median_ms
    function()  # what is compiled on the first call is no part of another
    with rl.profile() as profile:
        function()
    return profile.steps[-1].duration_us / 1e3
