"""How long a language model's step takes: `rooflab bench lm`, and the same from Python.

    from rooflab.benchmark import lm
    result = lm.benchmark(lm.Case("small", context_length=128, mode="both"))
    result.mean_ms, result.std_ms, result.tflop_s

Each step is timed by itself on the host's clock, with the device idle at both ends. The time does not include making
the batch, dropping the gradients of the step before and, in mode "backward", the forward. Nothing else runs in between:
counts and profiles are taken of one more step, after those that are timed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import rooflab as rl

from ..machine.known import known
from ..profiler import launch_model
from .lm_case import ATTENTION, MODES, OUT_OF_MEMORY, PRECISIONS, Case, Largest, Result
from .lm_profile import passes

__all__ = [
    "ATTENTION", "MODES", "OUT_OF_MEMORY", "PRECISIONS", "Case", "GraphStep", "Largest", "Result", "Step", "Work",
    "benchmark", "config_of", "count_step", "machine_memory", "peak_of", "profile_step", "row", "time_step",
    "time_steps",
]  # fmt: skip

if TYPE_CHECKING:
    from ..nn import TransformerConfig
    from ..profiler import Profile


class Work(Protocol):
    """One step of a contender, in two halves."""

    parameters: int

    def prepare(self) -> Any:
        """Do what is not timed; the result is passed to `timed`."""

    def timed(self, prepared: Any) -> Any:
        """Do what is timed; the result is dropped after the clock has been read."""


class Step:
    """rooflab's own step: a `TransformerLM` on random tokens.

    Parameters
    ----------
    case : Case
        What to run.
    config : TransformerConfig, optional
        Sizes of the model in place of those of ``case.model_size``.
    """

    captured_peak_bytes = 0

    def __init__(self, case: Case, config: TransformerConfig | None = None) -> None:
        self.case = case
        self.config = config_of(case, config)
        with rl.range("parameters"):
            self.model = rl.nn.TransformerLM(self.config, device=case.device)
        self.parameters = self.model.num_parameters()
        shape = (case.batch_size, case.context_length)
        self.tokens, self.targets = (
            rl.randint(0, self.config.vocab_size, shape, device=case.device) for _ in ("tokens", "targets")
        )
        is_trained = case.mode == "train"
        self.optimizer = rl.optim.AdamW(self.model.parameters(), capturable=case.graph) if is_trained else None
        compiled: Callable = rl.compile if case.compile else lambda function: function
        self._logits_of, self._loss_of = compiled(self.model), compiled(functools.partial(_loss_of, self.model))

    def forward(self) -> rl.Tensor:
        """Logits (B, L, V)."""
        with rl.range("forward"), self._precision():
            return self._logits_of(self.tokens)

    def loss(self) -> rl.Tensor:
        """Mean cross-entropy of the logits."""
        with rl.range("forward"), self._precision():
            return self._loss_of(self.tokens, self.targets)

    def _precision(self) -> contextlib.AbstractContextManager:
        dtype = self.case.mixed_precision
        return rl.autocast(dtype) if dtype else contextlib.nullcontext()

    def prepare(self) -> rl.Tensor | None:
        """Drop the gradients; in mode "backward" run the forward."""
        self.model.zero_grad()
        return self.loss() if self.case.mode == "backward" else None

    def timed(self, prepared: rl.Tensor | None) -> rl.Tensor | None:
        """Run the step of the mode."""
        result = self.passes(prepared)
        if self.optimizer:
            with rl.range("optimizer"):
                self.optimizer.step()
        return result

    def passes(self, prepared: rl.Tensor | None) -> rl.Tensor | None:
        """Forward and backward, as far as the mode has them."""
        mode = self.case.mode
        if mode in ("inference", "forward"):
            with rl.no_grad() if mode == "inference" else contextlib.nullcontext():
                return self.forward()
        (self.loss() if prepared is None else prepared).backward()  # it opens the range "backward" itself
        return None


def _loss_of(model: rl.nn.TransformerLM, tokens: rl.Tensor, targets: rl.Tensor) -> rl.Tensor:
    logits = model(tokens)
    with rl.range("loss"):
        return rl.cross_entropy(logits.reshape(-1, model.config.vocab_size), targets.reshape(-1))


class GraphStep(Step):
    """The same step, captured as a graph and replayed.

    Attributes
    ----------
    captured_peak_bytes : int
        The most that was held while it was captured. Replays use memory of the graph's own, which is not counted again.
    """

    def __init__(self, case: Case, config: TransformerConfig | None = None) -> None:
        super().__init__(case, config)
        self._graph: rl.Graph | None = None
        self.timed(self.prepare())  # makes what must not be captured: the optimizer's state
        self.prepare()
        rl.memory.reset_peak(case.device)
        graph = rl.Graph(device=case.device)
        with graph.capture():
            self._captured = self.timed(None)
        self._graph = graph
        self.captured_peak_bytes = rl.memory.peak(case.device)

    def prepare(self) -> rl.Tensor | None:
        """Do nothing: a replay writes its gradients over those of the last one."""
        return super().prepare() if self._graph is None else None

    def timed(self, prepared: rl.Tensor | None) -> rl.Tensor | None:
        """Replay the graph."""
        if self._graph is None:
            return super().timed(prepared)
        self._graph.replay()
        return None


def config_of(case: Case, config: TransformerConfig | None = None) -> TransformerConfig:
    """The model of a case: the sizes of its name, or of `config`, with the case's length and options."""
    if config is None:
        config = rl.nn.TransformerConfig.of(case.model_size, vocab_size=case.vocab_size)
    return dataclasses.replace(
        config, context_length=case.context_length, attention=case.attention, recompute=case.recompute
    )


def time_step(work: Work, device: str) -> float:
    """Milliseconds of one step, with the device idle at both ends."""
    prepared = work.prepare()
    rl.synchronize(device)
    start = time.perf_counter_ns()
    result = work.timed(prepared)
    rl.synchronize(device)
    elapsed_ms = (time.perf_counter_ns() - start) * 1e-6
    del result, prepared
    return elapsed_ms


def time_steps(
    contenders: dict[str, Work], case: Case, progress: Callable[[str], None] = lambda text: None
) -> dict[str, tuple[list[float], list[float]]]:
    """Milliseconds of the warm-up and of the measured steps of each contender, which take turns step by step."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in contenders}
    for place, (phase, steps) in enumerate((("warmup", case.warmup_steps), ("measurement", case.measure_steps))):
        rl.memory.reset_peak(case.device)
        with rl.range(phase):
            for step in range(steps):
                progress(f"{phase} {step + 1} of {steps}")
                for name, work in contenders.items():
                    with rl.range(f"step_{step}"):
                        found[name][place].append(time_step(work, case.device))
    return found


def count_step(work: Work) -> Any:
    """The counts of one step, without the part that is not timed."""
    prepared = work.prepare()
    with rl.count() as counted:
        result = work.timed(prepared)
    del result, prepared
    return counted


def profile_step(work: Work, number: int = 0) -> tuple[Profile, Any]:
    """Profile and count one step, which opens the ranges that a measured step of this number has.

    Returns
    -------
    Profile
        Its last step is the timed part.
    Counts
        Of that part.
    """
    with rl.profile() as profile:
        prepared = work.prepare()
        profile.step()
        with rl.range("measurement"), rl.range(f"step_{number}"), rl.count() as counted:
            result = work.timed(prepared)
    del result, prepared
    return profile, counted


def benchmark(
    case: Case,
    *,
    config: TransformerConfig | None = None,
    profile: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Result:
    """Time the steps of a case, and count one.

    Parameters
    ----------
    case : Case
        What to time.
    config : TransformerConfig, optional
        Sizes of the model in place of those that ``case.model_size`` names.
    profile : bool
        Whether to profile one more step.
    progress : callable
        Called with a few words before each step.

    Returns
    -------
    Result
        If the device has too little memory, its status is "out of memory", and what the case held is free again. A
        meta device of a GPU has as much memory as that GPU's datasheet says.

    Raises
    ------
    ValueError
        For a device or a model that is not known.

    Examples
    --------
    >>> tiny = rl.nn.TransformerConfig(16, 32, num_layers=1, num_heads=2, vocab_size=100)
    >>> result = benchmark(Case("tiny", context_length=8, mode="both", warmup_steps=1, measure_steps=3), config=tiny)
    >>> len(result.samples_ms), result.launches > 0
    (3, True)
    """
    try:
        with machine_memory(case.device):
            return _benchmark(case, config, profile, progress)
    except rl.OutOfMemoryError as error:
        reason = str(error).partition("\n")[0]
    gc.collect()  # frees the tensors of the frames that the error came through
    if not case.is_model:
        rl.memory.empty_cache(case.device)
    return Result(case, status=OUT_OF_MEMORY, reason=reason)


def _benchmark(
    case: Case, config: TransformerConfig | None, is_profiled: bool, progress: Callable[[str], None]
) -> Result:
    progress("making the model")
    work = GraphStep(case, config) if case.graph else Step(case, config)
    profile: Profile | None = None
    if case.is_model:
        if work.optimizer:  # its first step makes its state
            work.timed(work.prepare())
        rl.memory.reset_peak(case.device)
        profile, counted = profile_step(work)
        warmup: list[float] = []
        samples = [profile.steps[-1].duration_us / 1e3]
        peak_bytes = rl.memory.peak(case.device)
    else:
        warmup, samples = time_steps({"rooflab": work}, case, progress)["rooflab"]
        peak_bytes = max(rl.memory.peak(case.device), work.captured_peak_bytes)
        if is_profiled:
            profile, counted = profile_step(work, case.measure_steps)
        else:
            counted = count_step(work)
    found = row(case, counted, work.parameters, warmup, samples, peak_bytes)
    if case.is_model:
        found = dataclasses.replace(found, model=str(launch_model(case.device)))
    if not (profile and is_profiled):
        return found
    return dataclasses.replace(found, profile=passes(profile), profiled_ms=profile.steps[-1].duration_us / 1e3)


def row(
    case: Case, counted: Any, parameters: int, warmup_ms: Iterable[float], samples_ms: Iterable[float], peak_bytes: int
) -> Result:
    """The result of a case from the counts and the times of its steps."""
    peak, source = peak_of(case.device, case.product_dtype)
    return Result(
        case,
        samples_ms=tuple(samples_ms),
        warmup_ms=tuple(warmup_ms),
        parameters=parameters,
        macs=counted.macs,
        flops=counted.flops,
        bytes=counted.bytes_read + counted.bytes_written,
        launches=counted.launches,
        host_calls=counted.host_calls,
        peak_bytes=peak_bytes,
        peak_tflop_s=peak,
        peak_source=source,
    )


def peak_of(device: str, dtype: str) -> tuple[float | None, str]:
    """The machine's peak in TFLOP/s and its source: its datasheet, else the ceilings measured here, else None.

    Examples
    --------
    >>> peak_of("meta:H200", "float32")
    (67.0, 'datasheet of H200, float32')
    """
    sheet, ceilings = known(device)
    for figures, kind in ((sheet, "datasheet"), (ceilings, "measured ceilings")):
        if figures and dtype in figures.peak_tflop_s:
            return figures.peak_tflop_s[dtype], f"{kind} of {figures.name}, {dtype}"
    return None, ""


@contextlib.contextmanager
def machine_memory(device: str) -> Iterator[None]:
    """Limit a meta device of a GPU to the memory that the GPU's datasheet gives, inside a `with` block."""
    memory_gb = None
    if device.startswith("meta"):
        sheet, _ = known(device)
        memory_gb = sheet.memory_gb if sheet else None
    if memory_gb:
        rl.memory.set_limit(int(memory_gb * 1e9), device)
    try:
        yield
    finally:
        if memory_gb:
            rl.memory.set_limit(None, device)
