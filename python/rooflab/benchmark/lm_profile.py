"""Where the time of a language model's step goes: pass by pass, by class of kernels, with the most costly kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..results import ReadableMixin

if TYPE_CHECKING:
    from ..profiler import KernelRecord, Profile

PASSES = ("forward", "backward", "optimizer")


@dataclass(frozen=True)
class Pass(ReadableMixin):
    """One pass of a profiled step.

    Attributes
    ----------
    name : str
        "forward" (the loss is in it), "backward" or "optimizer".
    launches : int
        Kernels, copies and fills.
    busy_ms : float
        Their durations, summed.
    range_ms : float
        From the first one's start to the last one's end; what is not busy is gaps.
    classes : dict of str to float
        Milliseconds by `rooflab.profiler.CATEGORIES`, most first.
    kernel : str
        The name of the kernel that takes most time, with the op in brackets, "matmul_cuda_library (matmul)".
    instances : int
        How often it runs.
    kernel_ms : float
        How long it takes in all.
    other, other_instances, other_ms : str, int, float
        The same of the kernel that takes most time among those that are not matrix products.
    attention_ms : dict of str to float
        Milliseconds by the parts of composed attention in a forward: "products", "softmax" and "scale and mask". Empty
        in other passes, and where attention is one kernel.
    """

    name: str
    launches: int
    busy_ms: float
    range_ms: float
    classes: dict[str, float] = field(default_factory=dict)
    kernel: str = ""
    instances: int = 0
    kernel_ms: float = 0.0
    other: str = ""
    other_instances: int = 0
    other_ms: float = 0.0
    attention_ms: dict[str, float] = field(default_factory=dict)

    def share(self, category: str) -> float:
        """Share of a category in the busy time, 0 to 1."""
        return self.classes.get(category, 0.0) / self.busy_ms if self.busy_ms else 0.0

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {self.share(name):.1%}" for name in self.classes)
        return (
            f"{self.name:<10} {self.launches} launches, busy {self.busy_ms:.4g} of {self.range_ms:.4g} ms: {shares}\n"
            f"{'':<11}most in {self.kernel}: {self.instances} x, {self.kernel_ms / self.busy_ms:.1%}"
        )


def passes(profile: Profile) -> tuple[Pass, ...]:
    """The passes of a profile's last step, by the ranges "forward", "backward" and "optimizer".

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.empty(1024, 1024, device=rl.meta("H200"))
    >>> with rl.profile() as profile, rl.range("forward"):
    ...     _ = rl.softmax(x @ x)
    >>> [(one.name, one.launches, list(one.classes)) for one in passes(profile)]
    [('forward', 2, ['gemm', 'softmax'])]
    """
    last = profile.steps[-1].number
    kernels: dict[str, list[KernelRecord]] = {name: [] for name in PASSES}
    for kernel in profile.kernels:
        name = next((part for part in kernel.range.split("/") if part in kernels), None)
        if kernel.step == last and name:
            kernels[name].append(kernel)
    return tuple(_pass(name, members) for name, members in kernels.items() if members)


def _pass(name: str, kernels: Sequence[KernelRecord]) -> Pass:
    classes: Counter[str] = Counter()
    for kernel in kernels:
        classes[kernel.category] += kernel.duration_us / 1e3  # type: ignore[assignment]  # a Counter adds floats too
    end_us = max(kernel.start_us + kernel.duration_us for kernel in kernels)
    leading, instances, kernel_ms = _leading(kernels)
    other, other_instances, other_ms = _leading([kernel for kernel in kernels if kernel.category != "gemm"])
    return Pass(
        name,
        launches=len(kernels),
        busy_ms=sum(kernel.duration_us for kernel in kernels) / 1e3,
        range_ms=(end_us - min(kernel.start_us for kernel in kernels)) / 1e3,
        classes=dict(classes.most_common()),
        kernel=leading,
        instances=instances,
        kernel_ms=kernel_ms,
        other=other,
        other_instances=other_instances,
        other_ms=other_ms,
        attention_ms=_parts_of_attention(kernels),
    )


def _leading(kernels: Sequence[KernelRecord]) -> tuple[str, int, float]:
    """The kernel that takes most time in all: its name, how often it runs, its milliseconds."""
    names: dict[str, list[float]] = {"": []}
    for kernel in kernels:
        names.setdefault(f"{kernel.name} ({kernel.op or 'another library'})", []).append(kernel.duration_us / 1e3)
    leading = max(names, key=lambda one: sum(names[one]))
    return leading, len(names[leading]), sum(names[leading])


def _parts_of_attention(kernels: Sequence[KernelRecord]) -> dict[str, float]:
    found: Counter[str] = Counter()
    for kernel in kernels:
        place = kernel.range.rpartition("/")[2]
        if place.startswith("attention_"):
            part = {"gemm": "products", "softmax": "softmax"}.get(kernel.category, "scale and mask")
            found[part] += kernel.duration_us / 1e3  # type: ignore[assignment]  # a Counter adds floats too
    return dict(found)
