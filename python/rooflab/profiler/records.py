"""What a profile holds: kernels, ranges and steps. Times are microseconds since the first profiled step began."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _core
from ..results import ReadableMixin


@dataclass(frozen=True, slots=True)
class KernelRecord(ReadableMixin):
    """One kernel as it ran.

    Attributes
    ----------
    name : str
        A GPU kernel's symbol without its arguments; on the CPU the variant's function. Copies and memsets on a GPU
        are ``memcpy HtoD``, ``memset`` and so on.
    op, kernel : str
        The op and the variant that launched it, ``softmax`` and ``softmax_cuda_v2_one_pass``; both "" for kernels of
        other libraries.
    range : str
        The ranges open at the launch, ``mlp/gate_proj``; "" when none was.
    category : str
        One of `CATEGORIES`: from the op, or from the name if there is no op.
    step : int
        The step it belongs to, counted from 0 at the start of the block.
    grid, block : tuple of int
        Launch shape; zeros on the CPU and when times come from CUDA events.
    cost : Cost
        Counted work of the launch. If a launch has several kernels, the longest one has the work and the others zero;
        in a model the first one has it.
    id : int
        Number of the launch in this process; 0 for other libraries.
    dtype : str
        What the op computes in; "float32" for other libraries.
    thread : int
        The thread of the host that launched it: 0 began the profile, the others are numbered as they appear; 0 for
        other libraries.
    """

    name: str
    op: str
    kernel: str
    range: str
    category: str
    device: str
    stream: int
    step: int
    start_us: float
    duration_us: float
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    registers: int
    cost: _core.Cost
    id: int
    dtype: str = "float32"
    thread: int = 0

    @property
    def is_interpreted(self) -> bool:
        """Whether it is a CUDA kernel of `rooflab.cuda.compile` that ran on the CPU, as the backend "simt" has it.

        How long that took says nothing about a GPU, so tables have no rates of it.
        """
        return self.op == "custom" and self.device == "cpu"


@dataclass(frozen=True, slots=True)
class Range(ReadableMixin):
    """One pass through a ``with rl.range(...)`` block, on the host's clock or, in a model, on the model's.

    Ranges of one `thread`, numbered as in `KernelRecord`, nest.

    Attributes
    ----------
    ended : str
        ``"closed"``: its block ended. ``"by an exception"``: an exception left its block. ``"left open"``: it was
        entered and never left, and ended with the range around it or with the profile. ``"open"``: the step ended
        before it; it goes on in the next step, or after the profile.
    """

    path: str
    step: int
    start_us: float
    duration_us: float
    thread: int = 0
    ended: str = "closed"


@dataclass(frozen=True, slots=True)
class Step(ReadableMixin):
    """One profiled step, on the host's clock or the model's; the device is idle at both ends."""

    number: int
    start_us: float
    duration_us: float
