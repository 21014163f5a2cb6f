"""What a pass through a model costs, part by part, and the least time that a machine needs for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..results import ReadableMixin, ResultMixin, Table
from ..roofline import SPECS, Machine
from ..specs import itemsize
from ..units import distinct, human, rounded
from .checks import check_choice, check_whole
from .convention import Convention
from .model_spec import DTYPES, ModelSpec, find_model, kv_bytes_per_token
from .steps import steps_of
from .work import Step, Work

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODES = ("prefill", "decode", "training")
ATTENTION = ("fused", "composed")


@dataclass(frozen=True)
class Part(ReadableMixin):
    """A part of a model in all its layers.

    Attributes
    ----------
    name : str
        ``"projections"``, ``"attention"``, ``"MLP"`` ...
    work : Work
        MACs, FLOPs and bytes.
    steps : tuple of Step
        The ops of which it is made.
    compute_s, memory_s : float or None
        The least seconds that the machine needs for the FLOPs at its peak, and for the bytes at its bandwidth; None
        without a machine.
    """

    name: str
    work: Work
    steps: tuple[Step, ...]
    compute_s: float | None = None
    memory_s: float | None = None

    @property
    def seconds(self) -> float | None:
        """The larger of the two times: no machine with these roofs is faster."""
        return None if self.compute_s is None or self.memory_s is None else max(self.compute_s, self.memory_s)

    @property
    def bound(self) -> str | None:
        """Which roof binds: ``"memory"`` or ``"compute"``."""
        if self.compute_s is None or self.memory_s is None:
            return None
        return "memory" if self.compute_s < self.memory_s else "compute"


@dataclass(frozen=True)
class ModelCost(ResultMixin):
    """The cost of one pass through a model, as numbers, as a table and as a figure.

    Attributes
    ----------
    spec : ModelSpec
        The model.
    batch, length, mode, dtype, attention, convention
        As given to `rl.cost.model`.
    machine : Machine or None
        The machine whose roofs bound the time.
    parts : tuple of Part
        In the order in which a pass meets them.

    Examples
    --------
    >>> from rooflab.cost import model
    >>> cost = model("llama3-8b", batch=1, length=4096, mode="decode", hardware="H100")
    >>> cost["attention"].bound, cost.largest_batch
    ('memory', 119)
    """

    spec: ModelSpec
    batch: int
    length: int
    mode: str
    dtype: str
    attention: str
    convention: Convention
    machine: Machine | None
    parts: tuple[Part, ...]

    def __getitem__(self, name: str) -> Part:
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(f"{name!r} is none of {', '.join(part.name for part in self.parts)}")

    @cached_property
    def total(self) -> Part:
        """All parts together. Its times are those of all FLOPs and of all bytes, as if the two overlapped fully."""
        work = sum((part.work for part in self.parts), Work())
        return _part("total", work, tuple(step for part in self.parts for step in part.steps), self.machine, self.dtype)

    @property
    def parameters(self) -> int:
        """Parameters of the model, all experts included."""
        return self.spec.parameters

    @property
    def weight_bytes(self) -> int:
        """What the parameters take in memory."""
        return self.spec.parameters * itemsize(self.dtype)

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values a token: see `rl.cost.kv_bytes_per_token`."""
        return kv_bytes_per_token(self.spec, self.dtype)

    @property
    def cache_bytes(self) -> int:
        """Keys and values of all sequences of the batch; a sliding layer keeps its window only."""
        return self.spec.cache_bytes(self.batch, self.length, self.dtype)

    @property
    def memory_bytes(self) -> int | None:
        """Memory of the machine, 1e9 bytes a GB; None if it is not known."""
        datasheet = getattr(self.machine, "datasheet", lambda: self.machine)()
        memory_gb = getattr(datasheet, "memory_gb", None)
        return None if memory_gb is None else int(memory_gb * 10**9)

    @property
    def largest_batch(self) -> int | None:
        """How many sequences of this length have a cache that fits into memory beside the weights, without activations.

        None without a machine whose memory is known, and in training, which keeps activations instead.
        """
        if self.memory_bytes is None or self.mode == "training":
            return None
        return max(0, self.memory_bytes - self.weight_bytes) // self.spec.cache_bytes(1, self.length, self.dtype)

    @property
    def tokens(self) -> int:
        """Tokens that go through the model: a decode step takes one of each text."""
        return self.batch * (1 if self.mode == "decode" else self.length)

    def to_dict(self) -> dict[str, Any]:
        """The cost as plain values, for JSON.

        Returns
        -------
        dict of str to object
            Exact numbers, with times in seconds.

        Examples
        --------
        >>> from rooflab.cost import model
        >>> cost = model("llama3-8b", batch=1, length=4096, mode="decode", hardware="H100")
        >>> cost.to_dict()["batch"]
        1
        """
        return {
            "model": asdict(self.spec),
            "batch": self.batch,
            "length": self.length,
            "mode": self.mode,
            "dtype": self.dtype,
            "attention": self.attention,
            "convention": asdict(self.convention),
            "machine": self.machine and self.machine.name,
            "parameters": self.parameters,
            "active_parameters": self.spec.active_parameters,
            "weight_bytes": self.weight_bytes,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "cache_bytes": self.cache_bytes,
            "largest_batch": self.largest_batch,
            "parts": [{**_row(part), "steps": [_row(step) for step in part.steps]} for part in self.parts],
            "total": _row(self.total),
        }

    def _figures(self) -> Table:
        """A row for each part, then the total; times in seconds."""
        return Table.of(_row(part) for part in (*self.parts, self.total))

    def plot(self) -> Figure:
        """The parts on the roofline of the machine, and the share of the time that each may take.

        Returns
        -------
        matplotlib.figure.Figure
            Two panels side by side.

        Raises
        ------
        ValueError
            Without a machine.

        Examples
        --------
        >>> from rooflab.cost import model
        >>> cost = model("llama3-8b", batch=1, length=4096, mode="decode", hardware="H100")
        >>> len(cost.plot().axes) >= 2
        True
        """
        from ..plots import plot_model_cost

        return plot_model_cost(self)

    @property
    def title(self) -> str:
        """What was asked, in a line."""
        where = f", on {self.machine.name}" if self.machine else ""
        return (
            f"{self.spec.name}, {self.mode}, batch {self.batch}, length {self.length}, {self.dtype}, "
            f"{self.attention} attention, {self.convention.name} convention{where}"
        )

    def _notes(self) -> Iterator[str]:
        cache = f"; KV cache: {self.kv_bytes_per_token:,} B a token, {human(self.cache_bytes, 'B')} for the batch"
        kept = "" if self.mode == "training" else cache
        yield f"{self.parameters:,} parameters, {human(self.weight_bytes, 'B')}{kept}"
        total = self.total
        if self.machine and total.seconds:
            peak, bandwidth = self.machine.peak_tflop_s[self.dtype], self.machine.bandwidth_tb_s
            rate = self.tokens / total.seconds
            yield (
                f"{self.machine.name}: {human(bandwidth, 'TB/s')}, {human(peak, 'TFLOP/s')} {self.dtype}, "
                f"ridge {human(peak / bandwidth, 'FLOP/byte', 4)}; {total.bound} binds: "
                f"at least {human(total.seconds, 's')}, at most {rate:,.{0 if rate >= 100 else 2}f} tokens/s"
            )
        if self.largest_batch is not None and self.memory_bytes is not None:
            needed = self.weight_bytes + self.cache_bytes
            yield (
                f"memory: {human(needed, 'B')} for weights and cache of {human(self.memory_bytes, 'B')}; "
                f"the largest batch of this length: {self.largest_batch}"
            )

    def _table(self) -> Table:
        head: tuple[str, ...] = ("part", "MACs", "FLOPs", "bytes", "FLOP/byte")
        rows: list[tuple[str, ...]] = []
        parts = (*self.parts, self.total)
        macs = distinct((part.work.macs for part in parts), partial(human, unit="MAC"))
        flops = distinct((part.work.flops for part in parts), partial(human, unit="FLOP"))
        moved = distinct((part.work.bytes for part in parts), partial(human, unit="B"))
        for part, *counts in zip(parts, macs, flops, moved, strict=True):
            cells: tuple[str, ...] = (part.name, *counts, rounded(part.work.arithmetic_intensity, 4))
            if part.compute_s is not None and part.memory_s is not None:
                cells += (human(part.compute_s, "s"), human(part.memory_s, "s"), str(part.bound))
            rows.append(cells)
        head += ("compute", "memory", "bound") if self.machine else ()
        return Table(head, rows, self.title, ". ".join(self._notes()))

    def __str__(self) -> str:
        return "\n".join([self.title, "", *self._table().lines(), "", *self._notes()])


def _row(part: Part | Step) -> dict[str, Any]:
    work = part.work
    row = {
        "part": part.name,
        "macs": work.macs,
        "flops": work.flops,
        "bytes_read": work.bytes_read,
        "bytes_written": work.bytes_written,
        "flop_per_byte": work.arithmetic_intensity,
    }
    if isinstance(part, Part):
        row |= {"compute_s": part.compute_s, "memory_s": part.memory_s, "bound": part.bound}
    return row


def _part(name: str, work: Work, steps: tuple[Step, ...], machine: Machine | None, dtype: str) -> Part:
    if machine is None:
        return Part(name, work, steps)
    compute = work.flops / (machine.peak_tflop_s[dtype] * 1e12)
    return Part(name, work, steps, compute, work.bytes / (machine.bandwidth_tb_s * 1e12))


def _machine(hardware: Machine | str | None, dtype: str) -> Machine | None:
    if hardware is None:
        return None
    machine = SPECS.get(hardware) if isinstance(hardware, str) else hardware
    if machine is None or not hasattr(machine, "peak_tflop_s") or not hasattr(machine, "bandwidth_tb_s"):
        known = ", ".join(SPECS)
        raise ValueError(
            f"[cost] hardware: expected a datasheet, measured ceilings or one of {known}; got {hardware!r}"
        )
    if dtype not in machine.peak_tflop_s:
        raise ValueError(
            f"[cost] hardware: {machine.name} has no {dtype} peak; it has {', '.join(machine.peak_tflop_s)}"
        )
    return machine


def model(
    model: ModelSpec | str,
    *,
    batch: int = 1,
    length: int,
    mode: str = "prefill",
    dtype: str = "float16",
    attention: str = "fused",
    hardware: Machine | str | None = None,
    convention: Convention = Convention.RUNTIME,
) -> ModelCost:
    """The cost of one pass through a model: MACs, FLOPs and bytes by part, and the least time on a machine.

    In the runtime's convention the numbers are those that `rl.count` shows when the pass runs: each op is called on
    tensors without memory. Norms and residual sums run in one kernel where the runtime has one; on a GPU that runs a
    whole decoder layer in one kernel, fewer bytes move. In a mixture of experts the tokens are spread over the experts
    as evenly as possible, which decides how many experts are read. The backward pass of training is the runtime's in
    every convention. Copies that only change a layout are left out, and so is the optimizer's step.

    Parameters
    ----------
    model : ModelSpec or str
        A description (`rl.cost.from_config` reads one), or a name in `rl.cost.MODELS`.
    batch : int
        B, how many sequences.
    length : int
        L, tokens of a text. ``"decode"`` adds one token to each text, which is the last of these L.
    mode : str
        ``"prefill"``: all L tokens, and the scores of the next one; ``"decode"``: one token, with a cache of those
        before it; ``"training"``: L tokens forward, their loss, and the backward pass.
    dtype : str
        Dtype of weights, activations and cache: ``"float16"``, ``"bfloat16"``, ``"float32"`` or ``"float64"``.
    attention : str
        ``"fused"``: scores stay on the chip; ``"composed"``: products, mask and softmax are separate ops.
    hardware : str, MachineSpec or Ceilings, optional
        A name in `rl.roofline.SPECS`, a datasheet, or what `rl.machine.measure` gives. Without it there are no times.
    convention : Convention
        What is counted.

    Returns
    -------
    ModelCost

    Raises
    ------
    ValueError
        For a size that is not a whole number, below 1 or too large to count; more tokens than a model has learned
        positions for; a word or a name that is not known; a machine without a peak for the dtype.

    Examples
    --------
    >>> from rooflab.cost import model
    >>> cost = model("gpt2-xl", length=1024, mode="decode", hardware="T4")
    >>> cost["KV cache"].work.bytes, cost.total.bound
    (614784, 'memory')
    """
    spec = find_model(model)
    batch, length = check_whole("batch", batch), check_whole("length", length)
    check_choice("mode", mode, MODES)
    check_choice("dtype", dtype, DTYPES)
    check_choice("attention", attention, ATTENTION)
    if not isinstance(convention, Convention):
        raise ValueError(f"[cost] convention: expected a Convention, got {convention!r}")
    if spec.learned_positions and length > spec.learned_positions:
        raise ValueError(f"[cost] length: {spec.name} has positions for {spec.learned_positions} tokens, got {length}")
    machine = _machine(hardware, dtype)
    grouped: dict[str, list[Step]] = {}
    for step in steps_of(spec, batch, length, mode, dtype, attention, convention):
        grouped.setdefault(step.part, []).append(step)
    parts = tuple(
        _part(name, sum((step.work for step in steps), Work()), tuple(steps), machine, dtype)
        for name, steps in grouped.items()
    )
    return ModelCost(spec, batch, length, mode, dtype, attention, convention, machine, parts)
