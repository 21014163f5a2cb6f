"""How long a language model's step takes: `rooflab bench lm`, and the same from Python.

    from rooflab.benchmark import lm
    result = lm.benchmark(lm.Case("small", context_length=128, mode="both"))
    result.mean_ms, result.std_ms, result.tflop_s

Each step is timed by itself on the host's clock, with the device idle at both ends. Outside the time are: making the
batch, dropping the gradients of the step before and, in mode "backward", the forward. Nothing else runs meanwhile:
counts and profiles are of a step of their own, after those that are timed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import rooflab as rl

from ..machine.known import known
from ..units import human
from .lm_profile import Pass, passes

if TYPE_CHECKING:
    from ..nn import TransformerConfig
    from ..profiler import Profile

MODES = ("inference", "forward", "backward", "both", "train")
"""What a step is. "inference" is a forward of which nothing is kept for a backward, "forward" one with its graph;
"both" is forward, loss and backward; "train" has an AdamW step too."""

ATTENTION = ("composed", "flash")
OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True)
class Case:
    """What is timed; the defaults are those of Lab 2.

    Attributes
    ----------
    model_size : str
        A name in `rooflab.nn.TRANSFORMER_SIZES`, or what to call a configuration of the caller's.
    context_length, batch_size, vocab_size : int
        L, B and V; the tokens are random.
    mode : str
        One of `MODES`.
    attention : str
        "composed" or "flash".
    device : str
        "cpu", "cuda:0", or "meta:H200", where the times are a model's and not measured.
    warmup_steps, measure_steps : int
        Steps outside and inside the statistics.

    Raises
    ------
    ValueError
        For a mode or an attention that is not known, or a number out of its range.
    """

    model_size: str = "small"
    context_length: int = 128
    batch_size: int = 4
    mode: str = "forward"
    attention: str = "composed"
    device: str = "cpu"
    vocab_size: int = 10000
    warmup_steps: int = 5
    measure_steps: int = 10

    def __post_init__(self) -> None:
        for name, words in (("mode", MODES), ("attention", ATTENTION)):
            if getattr(self, name) not in words:
                raise ValueError(f"[bench] {name}: expected one of {', '.join(words)}, got {getattr(self, name)!r}")
        sizes = {"context_length": 1, "batch_size": 1, "vocab_size": 1, "measure_steps": 1, "warmup_steps": 0}
        for name, least in sizes.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"[bench] {name}: expected a whole number of {least} or more, got {value!r}")

    @property
    def label(self) -> str:
        """Such as "small B4 L128 forward, composed"."""
        return f"{self.model_size} B{self.batch_size} L{self.context_length} {self.mode}, {self.attention}"

    @property
    def is_model(self) -> bool:
        """Whether the device has no memory, so that times are a model's."""
        return self.device.startswith("meta")


@dataclass(frozen=True)
class Result:
    """What was found of a case.

    Attributes
    ----------
    case : Case
        What was timed.
    contender : str
        "rooflab", or the peer that did the same work.
    status : str
        "ok", or "out of memory"; `reason` then says of what, and every figure is empty.
    samples_ms, warmup_ms : tuple of float
        Milliseconds of each measured and each warm-up step, in order. On a meta device one sample, and no warm-up.
    parameters : int
        Numbers in the model.
    macs, flops, bytes, launches, host_calls : int
        Counted in one step of what is timed; 0 for a peer, which nobody counts.
    peak_bytes : int
        The most that was held during the measured steps, all that the device holds included.
    peak_tflop_s : float or None
        What the machine can do at most in the dtype of the products, by `peak_source`; None where it is not known.
    profile : tuple of Pass
        Where the time of one more step goes, where that was asked for. That step took `profiled_ms`, the profile's own
        cost included.
    memory : dict of str to dict
        Bytes by class at the highest point of each phase, where that was asked for.
    """

    case: Case
    contender: str = "rooflab"
    status: str = "ok"
    reason: str = ""
    samples_ms: tuple[float, ...] = ()
    warmup_ms: tuple[float, ...] = ()
    parameters: int = 0
    macs: int = 0
    flops: int = 0
    bytes: int = 0
    launches: int = 0
    host_calls: int = 0
    peak_bytes: int = 0
    peak_tflop_s: float | None = None
    peak_source: str = ""
    profile: tuple[Pass, ...] = ()
    profiled_ms: float = 0.0
    memory: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def mean_ms(self) -> float:
        """Of the measured steps; NaN where there are none."""
        return float(np.mean(self.samples_ms)) if self.samples_ms else float("nan")

    @property
    def std_ms(self) -> float:
        """Standard deviation with ddof 0: the squares are divided by the number of steps."""
        return float(np.std(self.samples_ms)) if self.samples_ms else float("nan")

    @property
    def median_ms(self) -> float:
        """Of the measured steps; NaN where there are none."""
        return float(np.median(self.samples_ms)) if self.samples_ms else float("nan")

    @property
    def tokens_per_s(self) -> float:
        """B L over the median."""
        return self.case.batch_size * self.case.context_length / self.median_ms * 1e3

    @property
    def tflop_s(self) -> float:
        """FLOPs of the products, two for each counted MAC, over the median; NaN where they are not counted."""
        return 2 * self.macs / self.median_ms / 1e9 if self.macs else float("nan")

    @property
    def share_of_peak(self) -> float:
        """`tflop_s` over `peak_tflop_s`, 0 to 1; NaN where either is not known."""
        return self.tflop_s / self.peak_tflop_s if self.peak_tflop_s else float("nan")

    def __str__(self) -> str:
        if self.status != "ok":
            return f"{self.case.label}: {self.status} ({self.reason})"
        kind = "modelled" if self.case.is_model else f"std {human(self.std_ms, 'ms')}, n={len(self.samples_ms)}"
        peak = human(self.peak_bytes, "B")
        return f"{self.case.label}: {human(self.median_ms, 'ms')} ({kind}), {human(self.tflop_s, 'TFLOP/s')}, {peak}"


class Work(Protocol):
    """One step of a contender, in two halves."""

    parameters: int

    def prepare(self) -> Any:
        """What stays outside the time; what it returns is given to `timed`."""

    def timed(self, prepared: Any) -> Any:
        """What is timed; its result is dropped outside the time."""


class Step:
    """rooflab's own step: a `TransformerLM` on random tokens.

    Parameters
    ----------
    case : Case
        What to run.
    config : TransformerConfig, optional
        Sizes of the model in place of those of ``case.model_size``.
    """

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
        self.optimizer = rl.optim.AdamW(self.model.parameters()) if case.mode == "train" else None

    def forward(self) -> rl.Tensor:
        """Logits (B, L, V)."""
        with rl.range("forward"):
            return self.model(self.tokens)

    def loss(self) -> rl.Tensor:
        """Mean cross-entropy of the logits."""
        with rl.range("forward"):
            logits = self.model(self.tokens)
            with rl.range("loss"):
                return rl.cross_entropy(logits.reshape(-1, self.config.vocab_size), self.targets.reshape(-1))

    def prepare(self) -> rl.Tensor | None:
        """Drop the gradients; in mode "backward" run the forward."""
        self.model.zero_grad()
        return self.loss() if self.case.mode == "backward" else None

    def timed(self, prepared: rl.Tensor | None) -> rl.Tensor | None:
        """The step of the mode."""
        mode = self.case.mode
        if mode in ("inference", "forward"):
            with rl.no_grad() if mode == "inference" else contextlib.nullcontext():
                return self.forward()
        (self.loss() if prepared is None else prepared).backward()  # which opens the range "backward"
        if self.optimizer:
            with rl.range("optimizer"):
                self.optimizer.step()
        return None


def config_of(case: Case, config: TransformerConfig | None = None) -> TransformerConfig:
    """The model of a case: the sizes of its name, or of `config`, with the case's length and attention."""
    if config is None:
        config = rl.nn.TransformerConfig.of(case.model_size, vocab_size=case.vocab_size)
    return dataclasses.replace(config, context_length=case.context_length, attention=case.attention)


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
    """The counts of one step; what is not timed is outside of them."""
    prepared = work.prepare()
    with rl.count() as counted:
        result = work.timed(prepared)
    del result, prepared
    return counted


def profile_step(work: Work) -> tuple[Profile, Any]:
    """A profile and the counts of one step.

    Returns
    -------
    Profile
        Its last step is what is timed.
    Counts
        Of the same.
    """
    with rl.profile() as profile:
        prepared = work.prepare()
        profile.step()
        with rl.count() as counted:
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
        When the device's memory does not suffice its status is "out of memory"; what the case held is free again. A
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
    gc.collect()  # the tensors of the frames that the error came through
    if not case.is_model:
        rl.memory.empty_cache(case.device)
    return Result(case, status=OUT_OF_MEMORY, reason=reason)


def _benchmark(
    case: Case, config: TransformerConfig | None, is_profiled: bool, progress: Callable[[str], None]
) -> Result:
    progress("making the model")
    work = Step(case, config)
    profile: Profile | None = None
    if case.is_model:
        if work.optimizer:  # whose first step makes its state
            work.timed(work.prepare())
        rl.memory.reset_peak(case.device)
        profile, counted = profile_step(work)
        warmup: list[float] = []
        samples = [profile.steps[-1].duration_us / 1e3]
        peak_bytes = rl.memory.peak(case.device)
    else:
        warmup, samples = time_steps({"rooflab": work}, case, progress)["rooflab"]
        peak_bytes = rl.memory.peak(case.device)
        if is_profiled:
            profile, counted = profile_step(work)
        else:
            counted = count_step(work)
    peak, source = peak_of(case.device, "float32")
    return Result(
        case,
        samples_ms=tuple(samples),
        warmup_ms=tuple(warmup),
        parameters=work.parameters,
        macs=counted.macs,
        flops=counted.flops,
        bytes=counted.bytes_read + counted.bytes_written,
        launches=counted.launches,
        host_calls=counted.host_calls,
        peak_bytes=peak_bytes,
        peak_tflop_s=peak,
        peak_source=source,
        profile=passes(profile) if profile and is_profiled else (),
        profiled_ms=profile.steps[-1].duration_us / 1e3 if profile and is_profiled else 0.0,
    )


def peak_of(device: str, dtype: str) -> tuple[float | None, str]:
    """The machine's peak in TFLOP/s and who says so: its datasheet, else the ceilings measured here, else None.

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
    """Meanwhile a meta device of a GPU has as much memory as that GPU's datasheet says; others are as they are."""
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
