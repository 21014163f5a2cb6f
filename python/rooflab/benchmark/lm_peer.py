"""PyTorch beside rooflab in `rooflab bench lm --peer torch`: the same model, as PyTorch users write it.

PyTorch is imported only when a peer is asked for. It has two contenders: "torch", eager, and "torch.compile", whose
forward and loss are compiled. All work on the same weights, through DLPack; each contender has its own gradients and
optimizer state.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
from collections.abc import Callable
from typing import Any

import rooflab as rl

from ..nn import TransformerConfig
from . import lm
from .lm import Case, Result, Step

EAGER, COMPILED = "torch", "torch.compile"


def _modules(torch: Any, config: TransformerConfig) -> Any:
    """The model as PyTorch users write it; names of parameters are those of `TransformerLM`."""
    nn, functional = torch.nn, torch.nn.functional

    class RMSNorm(nn.Module):  # type: ignore[name-defined]
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(dim))

        def forward(self, x: Any) -> Any:
            return functional.rms_norm(x, (config.d_model,), self.weight, config.eps)

    class Attention(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            d = config.d_model
            for name in ("q_proj", "k_proj", "v_proj", "output_proj"):
                setattr(self, name, nn.Linear(d, d, bias=False))

        def forward(self, x: Any, cos: Any, sin: Any, mask: Any) -> Any:
            B, L, D = x.shape
            shape = (B, L, config.num_heads, config.head_dim)
            q, k, v = (p(x).view(shape).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
            q, k = rope(q, cos, sin), rope(k, cos, sin)
            if config.attention == "flash":
                out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                scores = (q @ k.transpose(-2, -1)) * config.head_dim**-0.5
                out = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1) @ v
            return self.output_proj(out.transpose(1, 2).reshape(B, L, D))

    def rope(x: Any, cos: Any, sin: Any) -> Any:
        first, second = x.chunk(2, dim=-1)
        return (x * cos + torch.cat((-second, first), dim=-1) * sin).to(x.dtype)

    class FeedForward(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w1 = nn.Linear(config.d_model, config.d_ff, bias=False)
            self.w2 = nn.Linear(config.d_ff, config.d_model, bias=False)
            self.w3 = nn.Linear(config.d_model, config.d_ff, bias=False)

        def forward(self, x: Any) -> Any:
            return self.w2(functional.silu(self.w1(x)) * self.w3(x))

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.attn = RMSNorm(config.d_model), Attention()
            self.ln2, self.ffn = RMSNorm(config.d_model), FeedForward()

        def forward(self, x: Any, cos: Any, sin: Any, mask: Any) -> Any:
            x = x + self.attn(self.ln1(x), cos, sin, mask)
            return x + self.ffn(self.ln2(x))

    class Model(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.token_embeddings = nn.Embedding(config.vocab_size, config.d_model)
            self.layers = nn.ModuleList(Block() for _ in range(config.num_layers))
            self.ln_final = RMSNorm(config.d_model)
            self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)

        def forward(self, tokens: Any, cos: Any, sin: Any, mask: Any) -> Any:
            x = self.token_embeddings(tokens)
            for block in self.layers:
                if config.recompute:
                    x = torch.utils.checkpoint.checkpoint(block, x, cos, sin, mask, use_reentrant=False)
                else:
                    x = block(x, cos, sin, mask)
            return self.lm_head(self.ln_final(x))

    return Model()


class TorchStep:
    """PyTorch's own step of a case.

    Parameters
    ----------
    case : Case
        What to run, on "cpu" or a GPU.
    config : TransformerConfig
        The model's configuration.
    ours : Step, optional
        The step whose weights and tokens it works on; it makes its own when not given.
    compiled : bool
        Whether forward and loss go through ``torch.compile``.
    """

    def __init__(self, case: Case, config: TransformerConfig, ours: Step | None = None, compiled: bool = False) -> None:
        self.torch = torch = importlib.import_module("torch")
        importlib.import_module("torch.utils.checkpoint")
        self.case, self.config = case, config
        with torch.device("meta"):
            self.model = _modules(torch, config)
        self.model.to_empty(device=case.device) if ours is None else self._share(ours)
        self.parameters = sum(parameter.numel() for parameter in self.model.parameters())
        shape = (case.batch_size, case.context_length)
        if ours is None:
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.normal_(std=0.02)
            self.tokens, self.targets = (
                torch.randint(0, config.vocab_size, shape, device=case.device) for _ in ("tokens", "targets")
            )
        else:
            self.tokens, self.targets = (torch.from_dlpack(tokens) for tokens in (ours.tokens, ours.targets))
        self._tables = self._positions()
        compile = torch.compile if compiled else (lambda function: function)
        if compiled:
            torch.compiler.reset()  # drops earlier cases: torch stops compiling a function after some programs
        self._model, self._loss_of = compile(self.model), compile(self._cross_entropy_of(self.model))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True) if case.mode == "train" else None

    def _share(self, ours: Step) -> None:
        tensors = {name: tensor.detach() for name, tensor in ours.model.named_parameters()}
        shared = {name: self.torch.from_dlpack(tensor) for name, tensor in tensors.items()}
        self.model.load_state_dict(shared, assign=True)

    def _positions(self) -> tuple[Any, Any, Any]:
        torch, config, device = self.torch, self.config, self.case.device
        half = torch.arange(0, config.head_dim, 2, device=device, dtype=torch.float64) / config.head_dim
        places = torch.arange(self.case.context_length, device=device, dtype=torch.float64)
        angles = torch.outer(places, config.rope_theta**-half).repeat(1, 2)
        square = torch.ones(len(places), len(places), dtype=torch.bool, device=device)
        return angles.cos().float(), angles.sin().float(), square.triu(1)

    def _precision(self) -> Any:
        dtype, kind = self.case.mixed_precision, self.case.device.partition(":")[0]
        return self.torch.autocast(kind, getattr(self.torch, dtype)) if dtype else contextlib.nullcontext()

    def _cross_entropy_of(self, model: Any) -> Callable[..., Any]:
        cross_entropy = self.torch.nn.functional.cross_entropy

        def loss(targets: Any, *inputs: Any) -> Any:
            return cross_entropy(model(*inputs).flatten(0, 1), targets.flatten())

        return loss

    def logits(self) -> Any:
        """Logits (B, L, V)."""
        with self._precision():
            return self._model(self.tokens, *self._tables)

    def loss(self) -> Any:
        """Mean cross-entropy of the logits."""
        with self._precision():
            return self._loss_of(self.targets, self.tokens, *self._tables)

    def prepare(self) -> Any:
        """Drop the gradients; in mode "backward" run the forward."""
        for parameter in self.model.parameters():
            parameter.grad = None
        return self.loss() if self.case.mode == "backward" else None

    def timed(self, prepared: Any) -> Any:
        """The step of the mode."""
        mode = self.case.mode
        if mode in ("inference", "forward"):
            with self.torch.no_grad() if mode == "inference" else contextlib.nullcontext():
                return self.logits()
        (self.loss() if prepared is None else prepared).backward()
        if self.optimizer:
            self.optimizer.step()
        return None


def benchmark(
    case: Case, *, config: TransformerConfig | None = None, progress: Callable[[str], None] = lambda text: None
) -> list[Result]:
    """Time rooflab, PyTorch and PyTorch compiled, taking turns step by step on the same weights.

    If there is too little memory for all at once, each has the device to itself, one after the other, with weights of
    its own; `Result.reason` says so.

    Parameters
    ----------
    case : Case
        What to time, on "cpu" or a GPU.
    config, progress
        As in `lm.benchmark`.

    Returns
    -------
    list of Result
        Of "rooflab", "torch" and "torch.compile". PyTorch's work is not counted; its MACs are rooflab's, because the
        model is the same.

    Raises
    ------
    ValueError
        For a meta device.
    ImportError
        Where PyTorch is not installed.
    """
    if case.is_model:
        raise ValueError("[bench] peer: PyTorch runs on the CPU or a GPU, not on a meta device")
    torch = importlib.import_module("torch")
    config = lm.config_of(case, config)
    if found := _unless_full(torch, case, lambda: _together(torch, case, config, progress))[0]:
        return found
    _unless_full(torch, case, list)  # gives back what the attempt held
    ours = lm.benchmark(case, config=config, progress=progress)
    return [ours, *(_alone(torch, case, config, name, ours, progress) for name in (EAGER, COMPILED))]


def _unless_full(torch: Any, case: Case, run: Callable[[], list[Result]]) -> tuple[list[Result], str]:
    """What `run` returns, or nothing and the reason why there was too little memory.

    First the caches of both allocators are emptied, because neither library can use memory that the other one holds.
    """
    gc.collect()
    rl.memory.empty_cache(case.device)
    torch.cuda.empty_cache()
    try:
        return run(), ""
    except (rl.OutOfMemoryError, torch.OutOfMemoryError) as error:
        reason = str(error).partition("\n")[0]
    return [], reason


def _together(torch: Any, case: Case, config: TransformerConfig, progress: Callable[[str], None]) -> list[Result]:
    progress("making the models")
    ours = lm.GraphStep(case, config) if case.graph else Step(case, config)
    peers = {name: TorchStep(case, config, ours, compiled=name == COMPILED) for name in (EAGER, COMPILED)}
    times = lm.time_steps({"rooflab": ours, **peers}, case, progress)
    own_peak = max(rl.memory.peak(case.device), ours.captured_peak_bytes)
    counted = lm.count_step(ours)
    results = [lm.row(case, counted, ours.parameters, *times["rooflab"], own_peak)]
    shared = sum(parameter.nbytes for parameter in ours.model.parameters())
    del ours
    peaks = _peaks(torch, case, peers, shared)
    for name in (EAGER, COMPILED):
        row = lm.row(case, counted, results[0].parameters, *times[name], peaks[name])
        results.append(dataclasses.replace(row, contender=name, launches=0, host_calls=0))
    return results


def _peaks(torch: Any, case: Case, peers: dict[str, TorchStep], shared: int) -> dict[str, int]:
    """The most that each holds in a step, without the others; 0 on the CPU, where PyTorch does not count. It removes
    the peers from `peers` one by one, to see how much memory each one frees.
    """
    if not case.device.startswith("cuda"):
        return dict.fromkeys(peers, 0)
    most: dict[str, int] = {}
    for name, work in peers.items():
        for other in peers.values():
            other.model.zero_grad()
        torch.cuda.reset_peak_memory_stats(case.device)
        lm.time_step(work, case.device)
        most[name] = torch.cuda.max_memory_allocated(case.device)
        work.model.zero_grad()
    del work, other
    held: dict[str, int] = {}
    for name in list(peers):
        before = torch.cuda.memory_allocated(case.device)
        del peers[name]
        gc.collect()
        held[name] = before - torch.cuda.memory_allocated(case.device)
    return {name: peak + shared - sum(held.values()) + held[name] for name, peak in most.items()}


def _alone(
    torch: Any, case: Case, config: TransformerConfig, name: str, ours: Result, progress: Callable[[str], None]
) -> Result:
    def run() -> list[Result]:
        work = TorchStep(case, config, compiled=name == COMPILED)
        if case.device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats(case.device)
        warmup, samples = lm.time_steps({name: work}, case, progress)[name]
        peak = torch.cuda.max_memory_allocated(case.device) if case.device.startswith("cuda") else 0
        row = dataclasses.replace(ours, samples_ms=tuple(samples), warmup_ms=tuple(warmup), peak_bytes=peak)
        reason = "each contender had the device to itself: together they do not fit"
        return [dataclasses.replace(row, status="ok", reason=reason)]

    found, reason = _unless_full(torch, case, run)
    row = found[0] if found else Result(case, status=lm.OUT_OF_MEMORY, reason=reason)
    return dataclasses.replace(row, contender=name, launches=0, host_calls=0, profile=(), profiled_ms=0.0, memory={})
