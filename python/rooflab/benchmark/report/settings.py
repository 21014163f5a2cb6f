"""What a report is about: the machine, the models, the rows that were found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import rooflab as rl

from .. import sweep
from ..calls import Call, CallResult
from ..lm import Case, Result

WARMUP_STEPS = 5
PASSES = {
    "inference": "forward, no graph",
    "forward": "forward",
    "backward": "backward",
    "both": "forward + backward",
    "train": "full step",
}
"""What tables call the modes of a case; a full step has AdamW's update, too."""


@dataclass(frozen=True)
class Settings:
    """What is measured, where, and as which machine the rest is modelled.

    Attributes
    ----------
    device : str
        "cpu", "cuda:0", or a meta device, on which nothing is measured.
    model_device : str
        The meta device that stands in for `device` where a case is too large.
    model_sizes, context_lengths : sequence of str, of int
        Sizes in `rooflab.nn.TRANSFORMER_SIZES`, and tokens L.
    batch_size, vocab_size, measure_steps : int
        As in `Case`.

    Raises
    ------
    ValueError
        If `model_device` is not a meta device of a known machine.
    """

    device: str = "cpu"
    model_device: str = "meta:A100 SXM 40GB"
    model_sizes: Sequence[str] = tuple(rl.nn.TRANSFORMER_SIZES)
    context_lengths: Sequence[int] = (128, 256, 512, 1024)
    batch_size: int = 4
    vocab_size: int = 10000
    measure_steps: int = 10

    def __post_init__(self) -> None:
        if not self.model_device.startswith("meta:"):
            raise ValueError(
                f"[report] model_device: expected a meta device such as meta:H200, got {self.model_device!r}"
            )
        rl.meta(self.model_device.partition(":")[2])  # which names those that there are

    def cases(self, modes: Iterable[str], warmup_steps: Iterable[int] = (WARMUP_STEPS,), **options: Any) -> list[Case]:
        """Every size at every length in these modes."""
        common = {name: getattr(self, name) for name in ("device", "batch_size", "vocab_size", "measure_steps")}
        return sweep.cases(self.model_sizes, self.context_lengths, modes, warmup_steps, **common, **options)

    @property
    def is_model(self) -> bool:
        """Whether nothing is measured."""
        return self.device.startswith("meta")

    def sizes(self, dtype: str = "float32") -> str:
        """The dtype, B and V, as captions say them."""
        return f"{dtype}, B={self.batch_size}, V={self.vocab_size}."

    def modelled(self, case: Case) -> Case:
        """The same case on the meta device, where no step needs a warm-up."""
        return dataclasses.replace(case, device=self.model_device, warmup_steps=WARMUP_STEPS)


class Rows:
    """The results that were found, by case; a measured one goes before a modelled one.

    Parameters
    ----------
    settings : Settings
        What the report is about.
    results : iterable of Result
        All that is known.
    machine : str
        The name of the machine that measured.
    calls : iterable of CallResult
        What is known of calls.
    """

    def __init__(
        self, settings: Settings, results: Iterable[Result], machine: str, calls: Iterable[CallResult] = ()
    ) -> None:
        self.settings = settings
        self._of_call = {result.call: result for result in calls}
        self.machine = machine
        self._of = {result.case: result for result in results if result.contender == "rooflab"}

    def of(self, cases: Iterable[Case]) -> list[Result]:
        """The row of each case that has one, measured or modelled."""
        return [found for case in cases if (found := self.get(case))]

    def every(self) -> list[Result]:
        """All rows."""
        return list(self._of.values())

    def get(self, case: Case) -> Result | None:
        """The row of a case, or None."""
        return self._of.get(case) or self._of.get(self.settings.modelled(case))

    def every_call(self) -> list[CallResult]:
        """All results of calls."""
        return list(self._of_call.values())

    def calls_of(self, calls: Iterable[Call]) -> list[CallResult]:
        """The result of each call that has one: all measured, or all modelled where one of them is not measured."""
        wanted = list(calls)
        measured = [self._of_call[call] for call in wanted if call in self._of_call]
        if len(measured) == len(wanted):
            return measured
        models = (dataclasses.replace(call, device=self.settings.model_device) for call in wanted)
        return [self._of_call[call] for call in models if call in self._of_call]

    def each_call(self, calls: Iterable[Call]) -> list[CallResult]:
        """The result of each call that has one, measured or modelled."""
        return [result for call in calls for result in self.calls_of([call])]

    def setting(self, results: Iterable[Result], dtype: str = "float32") -> str:
        """What every caption begins with: the machines of some results, the dtype, B and V."""
        return f"{self.machines(result.case for result in results)}, {self.settings.sizes(dtype)}"

    def machines(self, run: Iterable[Case] | Iterable[Call]) -> str:
        """The machines of some cases or calls, each with whether it was measured."""
        names = dict.fromkeys(
            f"{one.device.partition(':')[2]} (modelled, not measured)" if one.is_model else f"{self.machine} (measured)"
            for one in run
        )
        return " and ".join(names)


def source(run: Case | Call) -> str:
    """Where times come from: "measured" or "modelled".

    Examples
    --------
    >>> source(Case()), source(Case(device=rl.meta("H200")))
    ('measured', 'modelled')
    """
    return "modelled" if run.is_model else "measured"
