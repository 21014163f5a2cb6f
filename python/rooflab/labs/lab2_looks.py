"""Looks at what students of Lab 2 make: models, steps and attention, by what the runtime counts.

A look takes a student's function, runs it and gives plain values. Letters as in `lab2`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.labs.lab2 import SIZES

__all__ = [
    "attention_float64", "attention_of", "class_of", "dry_model", "forward_launches", "ladder", "look_at_attention",
    "look_at_model", "look_at_toy", "ranges_of_steps", "reference_model", "row_of", "small_model", "step_launches",
    "toy_float64", "toy_policy", "weight_casts",
]  # fmt: skip


def reference_model(model_size: str, vocab_size: int, context_length: int, device: str = "cpu") -> rl.nn.TransformerLM:
    """One of the five models of the lab, in fp32.

    Examples
    --------
    >>> reference_model("small", 10000, 128, device="meta").num_parameters()
    128625408
    """
    config = rl.nn.TransformerConfig.of(model_size, vocab_size=vocab_size, context_length=context_length)
    return rl.nn.TransformerLM(config, device=device)


def look_at_model(create_model: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """What is to be known of the model that `create_model` makes, on tensors without memory.

    Examples
    --------
    >>> look_at_model(reference_model, "small", 10000, 128)["parameters"]
    128625408
    """
    model = create_model(*arguments, device="meta")
    tensors = list(model.parameters())
    length = arguments[-1]
    with rl.no_grad(), rl.count() as counted:
        logits = model(rl.empty(2, length, dtype="int64", device="meta"))
    products = counted.by_op["matmul"]
    return {
        "parameters": sum(tensor.numel() for tensor in tensors),
        "tensors": len(tensors),
        "dtypes": sorted({str(tensor.dtype) for tensor in tensors}),
        "shape of the logits": tuple(logits.shape),
        "FLOPs of the products": int(products.flops),
        "products": int(products.launches),
        "softmaxes": int(counted.by_op["softmax"].launches) if "softmax" in counted.by_op else 0,
        "scores": _scores(model),
    }


def _scores(model: Any) -> int:
    """Heads of a layer: the FLOPs do not tell how many there are."""
    return int(model.config.num_heads)


def ladder(device: str) -> dict[str, dict[str, int]]:
    """Sizes of models to run on this machine: those of the lab that fit on its GPU, or small ones for a CPU.

    Examples
    --------
    >>> list(ladder("cpu"))
    ['D 64', 'D 128', 'D 256']
    """
    if device == "cpu":
        return {f"D {D}": {"d_model": D, "d_ff": 4 * D, "num_layers": 4, "num_heads": D // 64} for D in (64, 128, 256)}
    names = ("d_model", "d_ff", "num_layers", "num_heads")
    free = rl.memory.available(device)
    sizes = {size: rl.nn.TransformerConfig.of(size) for size in SIZES}
    fitting = {size: config for size, config in sizes.items() if 12 * config.num_parameters < free}
    return {size: {name: getattr(config, name) for name in names} for size, config in fitting.items()}


def dry_model(config: dict[str, int], length: int) -> rl.nn.TransformerLM:
    """A model with V = 1000 that has no memory.

    Examples
    --------
    >>> dry_model({"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}, 4).num_parameters()
    16664
    """
    return rl.nn.TransformerLM(rl.nn.TransformerConfig(**config, vocab_size=1000, context_length=length), device="meta")


def _ids(B: int, L: int) -> rl.Tensor:
    return rl.empty(B, L, dtype="int64", device="meta")


def forward_launches(config: dict[str, int], B: int, L: int) -> dict[str, int]:
    """Launches of one forward pass with V = 1000.

    Examples
    --------
    >>> forward_launches({"d_model": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2}, 1, 4)["products"]
    19
    """
    model = dry_model(config, L)
    with rl.no_grad(), rl.count() as counted:
        model(_ids(B, L))
    return {"products": int(counted.by_op["matmul"].launches), "all": int(counted.launches)}


def step_launches(config: dict[str, int], B: int, L: int) -> dict[str, int]:
    """Launches of the second training step with V = 1000.

    Examples
    --------
    >>> step_launches({"d_model": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2}, 1, 4)["products"]
    57
    """
    model = dry_model(config, L)
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        model.zero_grad()
        with rl.count() as passes:
            model(_ids(B, L)).mean().backward()
        with rl.count() as update:
            optimizer.step()
    products, both = int(passes.by_op["matmul"].launches), int(passes.launches)
    return {"products": products, "optimizer": int(update.launches), "all": both + int(update.launches)}


def small_model(device: str = "cpu") -> rl.nn.TransformerLM:
    """A model of two layers for texts of up to 64 tokens, V = 1000, whose steps take milliseconds.

    Examples
    --------
    >>> small_model().config.num_layers
    2
    """
    return rl.nn.TransformerLM(
        rl.nn.TransformerConfig(128, 512, 2, 2, vocab_size=1000, context_length=64), device=device
    )


def row_of(kernel: Any) -> dict[str, Any]:
    """A kernel of a profile as a dict: "op", "name", "range", "start_us", "duration_us", "flops" and "bytes".

    Examples
    --------
    >>> with rl.profile() as prof:
    ...     _ = rl.ones(4) + 1
    >>> row_of(prof.kernels[-1])["op"]
    'add'
    """
    names = ("op", "name", "range", "start_us", "duration_us")
    row = {name: getattr(kernel, name) for name in names}
    return row | {"flops": int(kernel.cost.flops), "bytes": int(kernel.cost.bytes)}


_OPS = {
    "matmul": "gemm", "linear": "gemm", "softmax": "softmax", "rms_norm": "norm", "layer_norm": "norm",
    "embedding": "embedding", "copy": "copy", "cat": "copy", "fill": "copy", "adamw": "optimizer",
}  # fmt: skip
_NAMES = {
    "gemm": ("gemm", "cutlass", "nvjet"), "softmax": ("softmax",), "norm": ("norm",), "embedding": ("embedding",),
    "copy": ("memcpy", "memset", "copy", "fill"), "optimizer": ("adam",),
}  # fmt: skip


def class_of(kernel: dict[str, Any]) -> str:
    """The class of a kernel by its op, or by its name where it has none.

    Examples
    --------
    >>> class_of({"op": "rope", "name": ""}), class_of({"op": "", "name": "nvjet_sst"})
    ('elementwise', 'gemm')
    """
    if kernel["op"]:
        return _OPS.get(kernel["op"].removesuffix("_backward"), "elementwise")
    name = kernel["name"].lower()
    return next((one for one, words in _NAMES.items() if any(word in name for word in words)), "elementwise")


def ranges_of_steps(annotated_steps: Callable[..., Any], warmup: int, steps: int, optimizer: bool) -> tuple[str, ...]:
    """The ranges, down to the phase of a step, in which `annotated_steps` launches kernels."""
    model = rl.nn.TransformerLM(rl.nn.TransformerConfig(16, 32, 1, 2, vocab_size=50, context_length=8))
    update = rl.optim.AdamW(model.parameters(), lr=1e-3) if optimizer else None
    ids = rl.zeros(2, 8, dtype="int64")
    with rl.profile() as prof:
        annotated_steps(model, ids, warmup, steps, update)
    return tuple(sorted({_phase(kernel.range) for kernel in prof.kernels}))


def _phase(path: str) -> str:
    parts = path.split("/")
    ends = [parts.index(phase) for phase in ("forward", "backward", "optimizer") if phase in parts]
    return "/".join(parts[: min(ends) + 1]) if ends else path


def _operands(B: int, H: int, L: int, D_h: int, masked: bool, seed: int) -> tuple[list[np.ndarray], np.ndarray | None]:
    rng = np.random.default_rng(seed)
    numbers = [rng.standard_normal((B, H, L, D_h)).astype(np.float32) for _ in "qkv"]
    mask = np.triu(np.full((L, L), -np.inf, np.float32), 1) if masked else None
    return numbers, mask


def look_at_attention(
    attention: Callable[..., Any], B: int, H: int, L: int, D_h: int, masked: bool, seed: int
) -> dict[str, Any]:
    """The value of an attention of the operands that `seed` gives, and the ops of its kernels by range."""
    operands, mask = _operands(B, H, L, D_h, masked, seed)
    tensors = [rl.tensor(x) for x in operands] + ([rl.tensor(mask)] if mask is not None else [])
    with rl.profile() as prof:
        value = attention(*tensors)
    ops: dict[str, list[str]] = {}
    for kernel in prof.kernels:
        ops.setdefault(kernel.range, []).append(kernel.op)
    return {"value": value, "ops": ops}


def attention_float64(B: int, H: int, L: int, D_h: int, masked: bool, seed: int) -> np.ndarray:
    """What `look_at_attention` should see, in float64.

    Examples
    --------
    >>> attention_float64(1, 2, 3, 4, True, seed=0).shape
    (1, 2, 3, 4)
    """
    (q, k, v), mask = _operands(B, H, L, D_h, masked, seed)
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) / np.sqrt(D_h) + (0 if mask is None else mask)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)


def attention_of(q: rl.Tensor, k: rl.Tensor, v: rl.Tensor, mask: rl.Tensor) -> np.ndarray:
    """Attention of tensors (B, L, d) under a mask that is added, in float64.

    Examples
    --------
    >>> attention_of(rl.ones(1, 2, 4), rl.ones(1, 2, 4), rl.ones(1, 2, 4), rl.zeros(2, 2)).shape
    (1, 2, 4)
    """
    q, k, v, mask = (one.numpy().astype(np.float64) for one in (q, k, v, mask))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def _toy_numbers(in_features: int, out_features: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, and the weights of fc1 and fc2."""
    rng = np.random.default_rng(seed)
    shapes = (4, in_features), (10, in_features), (out_features, 10)
    x, first, second = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return x, first, second


def look_at_toy(toy_model: Callable[[int, int], Any], in_features: int, out_features: int, seed: int) -> dict[str, Any]:
    """The tensors on the way through a toy model, whose input and weights `seed` gives."""
    x, first, second = _toy_numbers(in_features, out_features, seed)
    model = toy_model(in_features, out_features)
    with rl.no_grad():
        for parameter in model.parameters():
            for weight in (first, second):
                if tuple(parameter.shape) == weight.shape:
                    parameter.copy_(rl.tensor(weight))
        return dict(model(rl.tensor(x)))


def toy_float64(in_features: int, out_features: int, seed: int) -> dict[str, np.ndarray]:
    """What `look_at_toy` should see.

    Examples
    --------
    >>> toy_float64(20, 5, seed=0)["logits"].shape
    (4, 5)
    """
    x, first, second = (array.astype(np.float64) for array in _toy_numbers(in_features, out_features, seed))
    fc1 = x @ first.T
    relu = np.maximum(fc1, 0)
    ln = (relu - relu.mean(-1, keepdims=True)) / np.sqrt(relu.var(-1, keepdims=True) + 1e-5)
    return {"input": x, "fc1": fc1, "relu": relu, "ln": ln, "logits": ln @ second.T}


def toy_policy(low: str) -> dict[str, str]:
    """dtypes in a toy model under ``rl.autocast(low)``.

    Examples
    --------
    >>> toy_policy("float16")["ln"]
    'float32'
    """
    in_low = dict.fromkeys(("fc1", "relu", "logits"), low)
    return in_low | dict.fromkeys(("parameters", "ln", "loss", "gradients"), "float32")


def weight_casts(config: dict[str, int], V: int, B: int, L: int) -> tuple[int, int]:
    """Weights that a forward pass copies to 16 bits under autocast, and the bytes that this moves: counted."""
    sizes = rl.nn.TransformerConfig(**config, vocab_size=V, context_length=L)
    model = rl.nn.TransformerLM(sizes, device="meta")
    with rl.autocast("bfloat16"), rl.count() as counted:
        model(_ids(B, L))
    casts = [part for path, part in counted.by_range.items() if path.rpartition("/")[2] == "autocast_weights"]
    return sum(int(one.launches) for one in casts), sum(int(one.bytes_read + one.bytes_written) for one in casts)
