"""What is counted: the choices in which courses, papers and counters differ."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from .checks import check_choice, check_whole

LEFT_OUT = ("embedding", "norms", "rope", "activation", "attention biases", "head", "loss")
_CHOICES = {"scale": ("own", "fused", "free"), "bias": ("own", "fused")}
_NUMBERS = ("gelu_flops", "softmax_flops", "softmax_passes", "mask_flops")


@dataclass(frozen=True)
class Convention:
    """What `rl.cost.model` counts. The defaults are what the runtime's counters say.

    1 MAC is 2 FLOPs in every convention, and every op reads each of its inputs once and writes its output once.

    Attributes
    ----------
    RUNTIME, ANALYSIS : Convention
        The defaults; and what the analysis assignment of Lab 4 counts by hand, which leaves out causality, norms,
        embedding and head, among others.
    name : str
        The name that tables show.
    gelu_flops : int
        FLOPs an element of GeLU: the 8 operations of its tanh form, or 1, or 0.
    softmax_flops : int
        FLOPs a score. 5: maximum, difference, exponential, sum, quotient; 3: exponential, sum, quotient.
    softmax_passes : int
        How often a separate softmax reads and writes the scores; 0: it is fused with the ops around it.
    scale : str
        The scores times 1/sqrt(D_h), 1 FLOP a score. ``"own"``: an op of its own, which reads and writes the scores;
        ``"fused"``: done by the product that makes them; ``"free"``: not counted.
    mask_flops : int
        FLOPs a score of the causal mask, which reads and writes the scores; the one query of a decode step needs none.
    mask_matrix : bool
        Whether the mask is a matrix (L, L) of bytes that is read; otherwise positions decide.
    bias : str
        1 FLOP an element. ``"own"``: an op of its own, which reads and writes the product; ``"fused"``: the product
        adds it.
    reread_inputs : bool
        Whether Q, K and V are separate products that each read their input, and gate and up as well; otherwise they
        are one product. Training has separate products in every convention.
    causality_saves : bool
        Whether fused attention leaves out the scores that causality or a window hides.
    copies_into_cache : bool
        Whether keys and values are copied into their cache; otherwise the projections write them there.
    left_out : tuple of str
        What is not counted, of ``"embedding"``, ``"norms"`` (residual sums are theirs), ``"rope"``, ``"activation"``,
        ``"attention biases"``, ``"head"`` and ``"loss"``.

    Raises
    ------
    ValueError
        For a number below 0 or a word that is not listed above.

    Examples
    --------
    >>> from rooflab.cost import Convention
    >>> Convention().softmax_flops, Convention.ANALYSIS.softmax_flops
    (5, 3)
    """

    RUNTIME: ClassVar[Convention]
    ANALYSIS: ClassVar[Convention]

    name: str = "runtime"
    gelu_flops: int = 8
    softmax_flops: int = 5
    softmax_passes: int = 1
    scale: str = "own"
    mask_flops: int = 0
    mask_matrix: bool = True
    bias: str = "own"
    reread_inputs: bool = False
    causality_saves: bool = True
    copies_into_cache: bool = True
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _NUMBERS:
                object.__setattr__(self, field.name, check_whole(f"convention: {field.name}", value, least=0))
            elif field.name in _CHOICES:
                check_choice(f"convention: {field.name}", value, _CHOICES[field.name])
            elif field.type == "bool" and not isinstance(value, bool):
                raise ValueError(f"[cost] convention: {field.name}: expected True or False, got {value!r}")
        if isinstance(self.left_out, str):
            raise ValueError(f"[cost] convention: left_out: expected a tuple of names, got {self.left_out!r}")
        for part in self.left_out:
            check_choice("convention: left_out", part, LEFT_OUT)

    def counts(self, part: str) -> bool:
        """Whether a part of a model is counted."""
        return part not in self.left_out

    def fused_score_flops(self, masked: bool) -> int:
        """FLOPs a score of fused attention beside its products; a separate scale is not included."""
        return self.softmax_flops + self.mask_flops * masked + (self.scale == "fused")


Convention.RUNTIME = Convention()
Convention.ANALYSIS = Convention(
    name="analysis",
    softmax_flops=3,
    scale="fused",
    mask_flops=1,
    mask_matrix=False,
    bias="fused",
    reread_inputs=True,
    causality_saves=False,
    copies_into_cache=False,
    left_out=LEFT_OUT,
)
