"""Where the memory of a language model's step goes: phase by phase, by what it holds, and beside a formula.

    from rooflab.benchmark import lm, lm_memory
    memory = lm_memory.measure(lm.Case("2.7B", 512, mode="train", device=rl.meta("H200")))
    print(memory)                       # peaks by phase and class, counted bytes beside predicted ones, largest blocks
    memory.timeline.save_html("memory.html")

Bytes are counted, block by block; on a meta device nothing is allocated. Which class a block belongs to follows from
the phase in which it is made and whether it outlives that phase.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rooflab as rl

from ..memory import Timeline, record
from ..results import ReadableMixin, ResultMixin, Table
from ..units import human
from .lm import Case, Largest, Step, config_of

if TYPE_CHECKING:
    from ..nn import TransformerConfig

CLASSES = (
    "parameters", "gradients", "optimizer state", "saved activations", "weight copies", "logits", "loss", "temporary",
    "workspace", "constants", "held before",
)  # fmt: skip
"""What a block holds. "saved activations" is what the forward keeps for the backward, except the logits and what the
loss keeps; "weight copies" are the weights in autocast's dtype; "temporary" is freed in the phase that made it,
"workspace" is what kernels work in; "constants" are the tokens, the angles of the positions and the mask."""

_KEPT = {"forward": "saved activations", "backward": "gradients", "optimizer": "optimizer state"}


@dataclass(frozen=True)
class PhaseUse(ReadableMixin):
    """The highest point of one phase of a step.

    Attributes
    ----------
    name : str
        "forward", "backward" or "optimizer".
    peak_bytes : int
        The most that was held in it.
    classes : dict of str to int
        What it was made of: bytes by class, in the order of `CLASSES`; they add up to the peak.
    end_bytes : int
        Held when the phase ends.
    """

    name: str
    peak_bytes: int
    classes: dict[str, int]
    end_bytes: int


@dataclass(frozen=True)
class Memory(ResultMixin):
    """What `measure` found of a step.

    Attributes
    ----------
    case : Case
        What was run.
    phases : list of PhaseUse
        The phases of the step, in order.
    counted, predicted : dict of str to int
        Bytes of parameters, gradients, optimizer state, saved activations and logits: as counted, and by the formula.
    largest : list of Largest
        The ten largest kinds of blocks that the step makes, largest first.
    timeline : Timeline
        The whole recording, from before the model is made; its phases are marked.
    """

    case: Case
    phases: list[PhaseUse]
    counted: dict[str, int]
    predicted: dict[str, int]
    largest: list[Largest]
    timeline: Timeline

    @property
    def peak_bytes(self) -> int:
        """The most that was held in the step."""
        return max(phase.peak_bytes for phase in self.phases)

    @property
    def peak_phase(self) -> str:
        """In which phase that was."""
        return max(self.phases, key=lambda phase: phase.peak_bytes).name

    def to_dict(self) -> dict[str, Any]:
        """All but the recording as plain values; `timeline.to_dict()` has that."""
        values = super().to_dict()
        return {name: value for name, value in values.items() if name != "timeline"}

    def _figures(self) -> Table:
        """A row for each phase: its peak and the bytes of each class."""
        rows = ({"phase": one.name, "peak_bytes": one.peak_bytes} | one.classes for one in self.phases)
        return Table.of(rows, ("phase", "peak_bytes"))

    def _table(self) -> Table:
        rows = [(one.name, _gib(one.peak_bytes), _held(one)) for one in self.phases]
        return Table(("phase", "peak", "made of"), rows, self._title())

    def _title(self) -> str:
        return f"{self.case.label} on {self.case.device}: peak {_gib(self.peak_bytes)} in the {self.peak_phase}"

    def __str__(self) -> str:
        counted = [(kind, f"{size:,} B", self._beside(kind)) for kind, size in self.counted.items()]
        blocks = [(_size(one), f"{one.count} x", f"{_place(one)} ({one.kind})") for one in self.largest]
        parts = (
            self._table().lines(),
            Table(("class", "counted", "by the formula"), counted).lines(),
            Table(("largest blocks", "", "made by"), blocks, labels=1).lines(),
        )
        return "\n".join([self._title(), *(f"  {line}" for part in parts for line in part)])

    def _beside(self, kind: str) -> str:
        predicted = self.predicted[kind]
        return "the same" if self.counted[kind] == predicted else f"predicted {predicted:,}"


def _held(phase: PhaseUse) -> str:
    return ", ".join(f"{kind} {_gib(size)}" for kind, size in phase.classes.items())


def _size(block: Largest) -> str:
    return f"{block.bytes / 2**20:.1f} MiB" + (f" = {block.formula}" if block.formula else "")


def _place(block: Largest) -> str:
    return f"{block.op} in {block.range}" if block.range else block.op


def predicted(case: Case, config: TransformerConfig | None = None) -> dict[str, int]:
    """Predict what a step keeps by formula, from N parameters and the model's dimensions.

    In float32: parameters 4N, gradients 4N, AdamW's state 8N; saved activations 4(n (8BLD + 3BLI + S) + 2BLD) with
    S = BHL^2 for composed attention, which keeps its weights, and 2BHL for flash attention; logits 4BLV. Blocks that
    are recomputed save only their inputs, 4n BLD, and under autocast the mask that they read, 2L^2.

    Under autocast: weight copies 2 (N - VD - (2n + 1) D), all but the embedding and the gains; saved activations
    n (20BLD + 6BLI + S) + 6BLD + 4LD_h with S = 6BHL^2 or 8BHL: operands of products have two bytes, the residuals and
    the softmax four, the products that read a norm share one cast of it, and rope keeps one cast of the angles. The
    logits are a product's result, 2BLV.

    Examples
    --------
    >>> predicted(Case("2.7B", 512, mode="train"))["saved activations"] / 32 / 2**20  # MiB a layer, and the two ends
    529.25
    """
    config = config_of(case, config)
    B, L, D = case.batch_size, case.context_length, config.d_model
    n, H, N = config.num_layers, config.num_heads, config.num_parameters
    is_mixed, is_composed = bool(case.mixed_precision), case.attention == "composed"
    has_backward, has_graph = case.mode in ("backward", "both", "train"), case.mode != "inference"
    rows, hidden, scores = B * L * D, B * L * config.d_ff, B * H * L * (L if is_composed else 2)
    mask = 2 * L * L if case.recompute and is_mixed and is_composed else 0
    if case.recompute:
        layer = 4 * rows
    elif is_mixed:
        layer = 20 * rows + 6 * hidden + (6 if is_composed else 4) * scores
    else:
        layer = 4 * (8 * rows + 3 * hidden + scores)
    ends = 6 * rows + 4 * L * config.head_dim if is_mixed else 8 * rows
    products = N - config.vocab_size * D - (2 * n + 1) * D
    return {
        "parameters": 4 * N,
        "gradients": 4 * N * has_backward,
        "optimizer state": 8 * N * (case.mode == "train"),
        "weight copies": 2 * products * is_mixed,
        "saved activations": (n * layer + ends + mask) * has_graph,
        "logits": (2 if is_mixed else 4) * B * L * config.vocab_size,
    }


def size_formulas(case: Case, config: TransformerConfig) -> dict[int, str]:
    """Sizes in bytes of what a step makes, as products of the model's dimensions, by their number of bytes.

    Two formulas of the same size are both named. Numbers have 4 bytes, or 2 under autocast.

    Examples
    --------
    >>> case = Case("2.7B", 512)
    >>> size_formulas(case, config_of(case))[80 * 2**20]
    '4 B L I'
    """
    B, L, D, H = case.batch_size, case.context_length, config.d_model, config.num_heads
    sizes = {
        "B H L^2": B * H * L * L, "B L V": B * L * config.vocab_size, "B L I": B * L * config.d_ff, "B L D": B * L * D,
        "V D": config.vocab_size * D, "D I": D * config.d_ff, "D^2": D * D, "L^2": L * L,
    }  # fmt: skip
    found: dict[int, list[str]] = {}
    for width in (4, 2) if case.mixed_precision else (4,):
        for name, numbers in sizes.items():
            found.setdefault(width * numbers, []).append(f"{width} {name}")
    return {size: " or ".join(names) for size, names in found.items()}


def measure(case: Case, *, config: TransformerConfig | None = None) -> Memory:
    """Count the memory of one step, block by block.

    Parameters
    ----------
    case : Case
        Its mode decides the phases: "inference" and "forward" have only the forward, "train" has the optimizer too. In
        "train" the second step is counted, as the first one makes the optimizer's state. Gradients are dropped before.
    config : TransformerConfig, optional
        Sizes of the model in place of those that ``case.model_size`` names.

    Returns
    -------
    Memory
        Exact, and the same on every run.

    Raises
    ------
    OutOfMemoryError
        If the device has too little memory; a meta device always has enough.

    Examples
    --------
    >>> memory = measure(Case("2.7B", 1024, mode="train", device=rl.meta("H200")))
    >>> memory.peak_phase, memory.counted == memory.predicted
    ('backward', True)
    """
    with record(case.device, with_stack=False) as timeline:
        timeline.mark("parameters")
        work = Step(case, config)
        sizes = Counter(parameter.nbytes for parameter in work.model.parameters())
        if case.mode == "train":
            _run(work, timeline)
        timeline.mark("step")
        _run(work, timeline)
        del work
    return _Sorted(timeline, sizes, case, config_of(case, config)).memory()


def _run(work: Step, timeline: Timeline) -> None:
    mode = work.case.mode
    work.model.zero_grad()
    timeline.mark("forward")
    if mode == "inference":
        with rl.no_grad():
            result = work.forward()
    elif mode == "forward":
        result = work.forward()
    else:
        result = work.loss()
        timeline.mark("backward")
        result.backward()
        if work.optimizer:
            timeline.mark("optimizer")
            with rl.range("optimizer"):
                work.optimizer.step()
    timeline.mark("end")
    del result


class _Sorted:
    """The blocks of a recording by class."""

    def __init__(self, timeline: Timeline, sizes: Counter[int], case: Case, config: TransformerConfig) -> None:
        self.timeline, self.case, self.config = timeline, case, config
        numbers = case.batch_size * case.context_length * config.vocab_size
        self.logits_bytes = (2 if case.mixed_precision else 4) * numbers
        born: dict[int, int] = {}  # phase of each block's allocation, and of its end
        gone: dict[int, int] = {}
        self.phases = timeline.phases
        for number, phase in enumerate(self.phases):
            for event in timeline.events[phase.events.start : phase.events.stop]:
                (born if event.bytes >= 0 else gone).setdefault(event.allocation, number)
        sizes = sizes.copy()
        self.kinds = [self._kind(i, born.get(i), gone.get(i), sizes) for i in range(len(timeline.allocations))]
        first = next(number for number, phase in enumerate(self.phases) if phase.name == "step")
        self.step = [phase for phase in self.phases[first + 1 :] if phase.name != "end"]

    def _kind(self, place: int, born: int | None, gone: int | None, sizes: Counter[int]) -> str:
        block = self.timeline.allocations[place]
        if born is None:
            return "held before"
        if block.is_scratch:
            return "workspace"
        path = block.range.split("/")
        if path[-1] == "autocast_weights":
            return "weight copies"
        if gone is not None and gone == born:
            return "temporary"
        name = self.phases[born].name
        if name == "parameters":
            if not sizes[block.bytes]:
                return "constants"
            sizes[block.bytes] -= 1
            return "parameters"
        if name == "forward":
            if block.bytes == self.logits_bytes and "head" in path:
                return "logits"
            if "loss" in path:
                return "loss"
            if self.case.mode == "inference":
                return "temporary"
        return _KEPT.get(name, "temporary")

    def memory(self) -> Memory:
        level: Counter[str] = Counter()
        if self.timeline.resident_bytes:
            level["held before"] = self.timeline.resident_bytes
        uses, most = [], Counter[str]()
        for phase in self.phases:
            highest, is_of_step = _Highest(phase.name, level), phase in self.step
            for event in self.timeline.events[phase.events.start : phase.events.stop]:
                level[self.kinds[event.allocation]] += event.bytes
                highest.see(level)
                if is_of_step:
                    most |= level  # the larger of each
            if is_of_step:
                uses.append(highest.use())
        formula = predicted(self.case, self.config)
        counted = {kind: most[kind] for kind in formula}
        return Memory(self.case, uses, counted, formula, self._largest(), self.timeline)

    def _largest(self) -> list[Largest]:
        made: Counter[tuple[int, str, str, str]] = Counter()
        places = range(self.step[0].events.start, self.step[-1].events.stop)
        for event in self.timeline.events[places.start : places.stop]:
            if event.bytes > 0:
                where = re.sub(r"block_\d+", "block_*", event.range)
                made[event.bytes, event.op or "user", where, self.kinds[event.allocation]] += 1
        formulas = size_formulas(self.case, self.config)
        rows = [
            Largest(size, count, op, where, kind, formulas.get(size, ""))
            for (size, op, where, kind), count in made.items()
        ]
        return sorted(rows, key=lambda row: -row.bytes)[:10]


class _Highest:
    """The highest point of a phase so far."""

    def __init__(self, name: str, level: Counter[str]) -> None:
        self.name = name
        self.top = self.last = level.copy()

    def see(self, level: Counter[str]) -> None:
        self.last = level.copy()
        if self.last.total() > self.top.total():
            self.top = self.last

    def use(self) -> PhaseUse:
        classes = {kind: self.top[kind] for kind in CLASSES if self.top[kind]}
        return PhaseUse(self.name, self.top.total(), classes, self.last.total())


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**27 else human(size, "B")
