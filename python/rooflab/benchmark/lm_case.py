"""A case of `rooflab bench lm` and its result."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .._numbers import positive, whole
from ..results import ReadableMixin, Table
from ..units import human
from .lm_profile import Pass

MODES = ("inference", "forward", "backward", "both", "train")
"""What a step is. "inference" is a forward that keeps nothing for a backward, "forward" one that keeps its graph;
"both" is forward, loss and backward; "train" has an AdamW step too."""

ATTENTION = ("composed", "flash")
PRECISIONS = ("", "bfloat16", "float16")
OUT_OF_MEMORY = "out of memory"
COLUMNS = (
    "model_size", "context_length", "batch_size", "mode", "attention", "mixed_precision", "recompute", "compile",
    "graph", "device", "contender", "status", "warmup_steps", "steps", "first_warmup_ms",
    "warmup_total_ms", "total_ms", "mean_ms", "std_ms", "median_ms",
    "tokens_per_s", "tflop_s", "share_of_peak", "peak_bytes", "launches", "parameters",
)  # fmt: skip
"""Of a result as a row."""


def check_status(owner: str, status: str) -> None:
    """ValueError for a status that no result has."""
    if status not in (known := ("ok", OUT_OF_MEMORY)):
        raise ValueError(f"[{owner}] status: expected one of {', '.join(map(repr, known))}, got {status!r}")


@dataclass(frozen=True)
class Case(ReadableMixin):
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
    recompute : bool
        Whether the forward keeps only the input of each block, and the backward runs the block again.
    mixed_precision : str
        "bfloat16" or "float16": forward and loss run under `rooflab.autocast`; "": everything in float32.
    compile : bool
        Whether forward and loss run as a program of `rooflab.compile`; their backward then does too.
    graph : bool
        Whether the step is captured once and replayed by one host call (`rooflab.Graph`).
    device : str
        "cpu", "cuda:0", or "meta:H200", whose times come from a model and are not measured.
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
    recompute: bool = False
    mixed_precision: str = ""
    compile: bool = False
    graph: bool = False
    device: str = "cpu"
    vocab_size: int = 10000
    warmup_steps: int = 5
    measure_steps: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, words in (("mode", MODES), ("attention", ATTENTION), ("mixed_precision", PRECISIONS)):
            if getattr(self, name) not in words:
                raise ValueError(
                    f"[bench] {name}: expected one of {', '.join(map(repr, words))}, got {getattr(self, name)!r}"
                )
        sizes = {"context_length": 1, "batch_size": 1, "vocab_size": 1, "measure_steps": 1, "warmup_steps": 0}
        for name, least in sizes.items():
            if getattr(self, name) < least:
                raise ValueError(
                    f"[bench] {name}: expected a whole number of {least} or more, got {getattr(self, name)!r}"
                )
        if self.graph and (self.is_model or self.mode == "backward"):
            where = "a meta device" if self.is_model else "mode backward, whose forward is not timed"
            raise ValueError(f"[bench] graph: expected a device with memory and a step timed as a whole, got {where}")

    @property
    def label(self) -> str:
        """Such as "small B4 L128 forward, composed"."""
        return f"{self.model_size} B{self.batch_size} L{self.context_length} {self.mode}, {self.options}"

    @property
    def options(self) -> str:
        """Such as "flash, bfloat16, graph"."""
        flags = {"recomputed": self.recompute, "compiled": self.compile, "graph": self.graph}
        words = (self.attention, self.mixed_precision, *(word for word, is_set in flags.items() if is_set))
        return ", ".join(filter(None, words))

    @property
    def product_dtype(self) -> str:
        """What the products compute in."""
        return self.mixed_precision or "float32"

    @property
    def is_model(self) -> bool:
        """Whether the device has no memory, so that times come from a model."""
        return self.device.startswith("meta")


@dataclass(frozen=True)
class Largest(ReadableMixin):
    """Blocks of one size that one op makes in one place of the model.

    Attributes
    ----------
    bytes : int
        Bytes of one block.
    count : int
        How many the step makes; not all live at once.
    op, range, kind : str
        Who made them, where ("forward/block_*/ffn"), and their class.
    formula : str
        The size in the model's dimensions, "4 B L I" with 4 bytes a number; empty if no known formula gives it.
    """

    bytes: int
    count: int
    op: str
    range: str
    kind: str
    formula: str = ""


@dataclass(frozen=True)
class Result(ReadableMixin):
    """The result of a case.

    Attributes
    ----------
    case : Case
        What was timed.
    contender : str
        "rooflab", or the peer that did the same work.
    status : str
        "ok", or "out of memory"; `reason` then says of what, and every figure but `memory` is empty.
    samples_ms, warmup_ms : tuple of float
        Milliseconds of each measured and each warm-up step, in order. On a meta device one sample, and no warm-up.
    parameters : int
        Numbers in the model.
    macs, flops, bytes, launches, host_calls : int
        Counted in one step of what is timed. A peer is not counted: its MACs, FLOPs and bytes are rooflab's, its
        launches and host calls 0.
    peak_bytes : int
        The most that was held during the measured steps, including all else that the device holds.
    peak_tflop_s : float or None
        The machine's peak in the dtype of the products, according to `peak_source`; None if it is not known.
    profile : tuple of Pass
        Where the time of one more step goes, if that was asked for. That step took `profiled_ms`, including the cost of
        profiling.
    memory : dict of str to dict
        Bytes by class at the highest point of each phase, if that was asked for. Of a case that ran out of memory they
        are counted without memory, and say how much it needs.
    largest : tuple of Largest
        The largest kinds of blocks that the step makes, with `memory`.
    model : str
        What a time rests on that is not measured: a machine's figures, and the gap between launches.

    Raises
    ------
    ValueError
        For a status that is not known, a time or a peak that is not finite and above 0, and a number below 0.
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
    largest: tuple[Largest, ...] = ()
    model: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_status("Result", self.status)
        for name in ("samples_ms", "warmup_ms"):
            for place, value in enumerate(getattr(self, name)):
                positive(f"[Result] {name}[{place}]", value)
        for name in ("peak_tflop_s", "profiled_ms"):  # empty where nobody knows or asked
            if value := getattr(self, name):
                positive(f"[Result] {name}", value)
        for name in ("parameters", "macs", "flops", "bytes", "launches", "host_calls", "peak_bytes"):
            whole(f"[Result] {name}", getattr(self, name), least=0)

    @property
    def mean_ms(self) -> float:
        """Mean of the measured steps; NaN if there are none."""
        return float(np.mean(self.samples_ms)) if self.samples_ms else float("nan")

    @property
    def std_ms(self) -> float:
        """Standard deviation with ddof 0: the squares are divided by the number of steps."""
        return float(np.std(self.samples_ms)) if self.samples_ms else float("nan")

    @property
    def median_ms(self) -> float:
        """Median of the measured steps; NaN if there are none."""
        return float(np.median(self.samples_ms)) if self.samples_ms else float("nan")

    @property
    def total_ms(self) -> float:
        """Sum of the measured steps; 0 if there are none."""
        return float(np.sum(self.samples_ms))

    @property
    def warmup_total_ms(self) -> float:
        """Sum of the warm-up steps; 0 if there are none."""
        return float(np.sum(self.warmup_ms))

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

    def figures(self) -> dict[str, Any]:
        """A cell for each of `COLUMNS`; None where there is nothing to say."""
        row = asdict(self.case) | {"contender": self.contender, "status": self.status}
        if self.case.is_model:
            row["warmup_steps"] = None  # a model has none
        if self.status != "ok":
            return {name: row.get(name) for name in COLUMNS}
        row |= {"steps": len(self.samples_ms), "first_warmup_ms": self.warmup_ms[0] if self.warmup_ms else None}
        row |= {"warmup_total_ms": None} if not self.warmup_ms and row["warmup_steps"] != 0 else {}
        row |= {"std_ms": None} if len(self.samples_ms) < 2 else {}
        for name in COLUMNS:
            row.setdefault(name, getattr(self, name, None))
        return {name: None if row[name] != row[name] else row[name] for name in COLUMNS}  # NaN: not known

    def _figures(self) -> Table:
        return Table.of([self.figures()])

    def __str__(self) -> str:
        if self.status != "ok":
            return f"{self.case.label}: {self.status} ({self.reason})"
        steps = f"n={len(self.samples_ms)} after {len(self.warmup_ms)}"
        spread = f"std {human(self.std_ms, 'ms')}, " if len(self.samples_ms) > 1 else ""
        kind = "modelled" if self.case.is_model else spread + steps
        peak = human(self.peak_bytes, "B")
        return f"{self.case.label}: {human(self.median_ms, 'ms')} ({kind}), {human(self.tflop_s, 'TFLOP/s')}, {peak}"
