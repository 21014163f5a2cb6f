"""Models and steps of Lab 2: runs what students write, and reports what it did. Letters as in `lab2`.

`run_model`, `run_steps`, `run_toy` and `run_dtypes` call a student's function; `measure` gets them as `through`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.labs.lab2 import SIZES

__all__ = [
    "facts_of", "ladder", "products_by_phase", "row_of", "run_dtypes", "run_model", "run_steps", "run_toy",
    "small_model", "toy_numbers",
]  # fmt: skip


def run_model(create_model: Callable[..., Any], passes: int, *arguments: Any) -> tuple[list, Any, int]:
    """The parameters of the model that `create_model` makes, on tensors without memory, its logits after `passes`
    forward passes, and its context length.

    Examples
    --------
    >>> sizes = rl.nn.TransformerConfig(16, 32, 1, 2, vocab_size=50, context_length=8)
    >>> _, logits, length = run_model(lambda length, device: rl.nn.TransformerLM(sizes, device=device), 1, 3)
    >>> logits.shape, length
    ((2, 3, 50), 8)
    """
    model, logits = create_model(*arguments, device="meta"), None
    if not isinstance(model, rl.nn.TransformerLM):
        raise TypeError(f"create_model has to return an rl.nn.TransformerLM, not a {type(model).__name__}")
    with rl.no_grad():
        for _ in range(passes):
            logits = model(rl.empty(2, arguments[-1], dtype="int64", device="meta"))
    return list(model.parameters()), logits, model.config.context_length


def facts_of(made: Any, ran: Any) -> dict[str, Any]:
    """Facts about a model from two counts of `run_model`, without and with a forward pass. The number of heads shows
    only in the FLOPs of all operations.

    Examples
    --------
    >>> from rooflab.grading import measure
    >>> sizes = rl.nn.TransformerConfig(16, 32, 1, 2, vocab_size=50, context_length=8)
    >>> create = lambda length, device: rl.nn.TransformerLM(sizes, device=device)
    >>> facts_of(*(measure.count(create, passes, 3, through=run_model) for passes in (0, 1)))["context length"]
    8
    """
    parameters, logits, context_length = ran.value
    softmaxes = [counted.by_op.get("softmax", 0) for counted in (made, ran)]
    products = [counted.by_op.get("matmul", 0) for counted in (made, ran)]
    return {
        "number of parameters": sum(tensor.numel() for tensor in parameters),
        "number of tensors": len(parameters),
        "dtypes": sorted({str(tensor.dtype) for tensor in parameters}),
        "context length": context_length,
        "shape of the logits": tuple(logits.shape),
        "MACs of a forward pass": ran.macs - made.macs,
        "products of a forward pass": products[1] - products[0],
        "softmaxes of a forward pass": softmaxes[1] - softmaxes[0],
        "FLOPs of all operations of a forward pass": ran.flops - made.flops,
    }


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


def small_model(device: str = "cpu") -> rl.nn.TransformerLM:
    """A model of two layers for sequences of up to 64 tokens, V = 1000, whose steps take milliseconds.

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


def run_steps(annotated_steps: Callable[..., Any], warmup: int, steps: int, optimizer: bool) -> None:
    """Training steps of a model of one layer, which is made in the range "model"."""
    with rl.range("model"):
        model = rl.nn.TransformerLM(rl.nn.TransformerConfig(16, 32, 1, 2, vocab_size=50, context_length=8))
        update = rl.optim.AdamW(model.parameters(), lr=1e-3) if optimizer else None
        ids = rl.zeros(2, 8, dtype="int64")
    annotated_steps(model, ids, warmup, steps, update)


def products_by_phase(by_range: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Products in each range, down to the phase of a step; 0 where there are only other operations.

    Examples
    --------
    >>> products_by_phase({"step_0/forward/head": {"matmul": 1}, "step_0/forward": {"mean": 1}, "model": {"rand": 9}})
    {'step_0/forward': 1}
    """
    found: dict[str, int] = {}
    for path, ops in by_range.items():
        phase = _phase(path)
        if phase != "model":
            found[phase] = found.get(phase, 0) + ops.get("matmul", 0)
    return found


def _phase(path: str) -> str:
    parts = path.split("/")
    ends = [parts.index(phase) for phase in ("forward", "backward", "optimizer") if phase in parts]
    return "/".join(parts[: min(ends) + 1]) if ends else path


def toy_numbers(in_features: int, out_features: int, rng: np.random.Generator) -> list[np.ndarray]:
    """An input of a toy model (4, in_features), and the weights of fc1 and fc2.

    Examples
    --------
    >>> [array.shape for array in toy_numbers(20, 5, np.random.default_rng(0))]
    [(4, 20), (10, 20), (5, 10)]
    """
    shapes = (4, in_features), (10, in_features), (out_features, 10)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def run_toy(
    toy_model: Callable[[int, int], Any], in_features: int, out_features: int, x: rl.Tensor, *weights: rl.Tensor
) -> dict[str, Any]:
    """The intermediate tensors of a toy model with these weights, and how many numbers its parameters have."""
    model = toy_model(in_features, out_features)
    with rl.no_grad():
        for parameter in model.parameters():
            for weight in weights:
                if parameter.shape == weight.shape:
                    parameter.copy_(weight)
        return {**model(x), "numbers": sum(parameter.numel() for parameter in model.parameters())}


class _Chain(rl.nn.Module):
    """Ops in a row, each on 8 numbers, and a linear layer to the logits."""

    def __init__(self, ops: Sequence[str], dtype: str) -> None:
        self._ops = ops
        weights = [rl.randn(8, 8) * 0.1, rl.ones(8), rl.zeros(8)]
        self.square, self.gain, self.shift = (one.to(dtype).requires_grad_() for one in weights)

    def forward(self, x: rl.Tensor) -> dict[str, rl.Tensor]:
        found = {"input": x}
        for place, op in enumerate(self._ops):
            match op:
                case "linear":
                    x = rl.linear(x, self.square)
                case "layer_norm":
                    x = rl.layer_norm(x, self.gain, self.shift)
                case "rms_norm":
                    x = rl.rms_norm(x, self.gain)
                case _:
                    x = getattr(rl, op)(x)
            found[f"{op}_{place}"] = x
        return found | {"logits": rl.linear(x, self.square)}


def run_dtypes(dtypes_of: Callable[..., Any], ops: Sequence[str], stored: str, low: str) -> Any:
    """What `dtypes_of` says of a model of these ops, whose parameters and inputs are in `stored`, under autocast to
    `low`.

    Examples
    --------
    >>> run_dtypes(lambda model, x, targets, low: list(model(x)), ["linear", "relu"], "float32", "bfloat16")
    ['input', 'linear_0', 'relu_1', 'logits']
    """
    return dtypes_of(_Chain(ops, stored), rl.randn(4, 8).to(stored), rl.zeros(4, dtype="int64"), low)
