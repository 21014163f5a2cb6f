"""What an op or a model has to do, without running it: MACs, FLOPs (2 a MAC) and compulsory bytes.

`rl.cost.matmul((M, K), (K, N))` and so on for every op of `rooflab.specs`; a shape stands for a tensor of that shape.
`rl.cost.model("llama3-8b", batch=1, length=4096, mode="decode", hardware="H100")` for a model, part by part.
Ops are called on tensors without memory and their counters are read, so costs and counters cannot disagree, and
arguments that an op refuses have no cost. Tests compare both with the formulas of `rooflab.specs`. What is asked for is
not counted as work: `rl.count`, `rl.profile` and `rl.memory.record` do not see it, and autocast does not apply.

What counts: an elementwise op is 1 FLOP an element (casts, copies, comparisons and `where`: none; clamp: 1 for each
bound), fused gelu 8, and 1 more if gelu or silu is gated; softmax and log_softmax 5, rms_norm 3 and 1 for a weight (2
if it is zero-centered), layer_norm 5 and 1 each for weight and bias, rope 3, attention 5 per score beside its MACs. A
reduction or running sum is 1 per input element, but var, std and logsumexp 4; cross_entropy is 4 per logit and 3 per
token, or 4 where the losses are added up; scatter_add 1 per element added; moving, choosing and sorting: none.
Backward: relu 1, sigmoid 3, tanh 4, silu 6, gelu 13, and 3 more if either is gated; softmax and log_softmax 4, rms_norm
8 and 3 for a weight (4 if it is zero-centered), layer_norm 12, 3 for a weight and 1 for a bias, cross_entropy 3 per
logit and 2 per token, attention 4 per score and 2 per element of q. An op of several parts, such as rms_norm_rope, is
their sum.
Each distinct input element is read once and each output element written once; Python numbers are free. That is exact
for views that overlap too; only where both have gaps of unlike steps, as x[::2] and x[::3], each is read whole. When
an index chooses from a table, as much of the table is read as the result holds, but at most all of it.
Courses and papers count differently: a `Convention` names what they choose, and `rl.cost.model` takes one.
"""

from __future__ import annotations

import functools

from .. import _core, specs
from .._core import Cost
from .config import from_config
from .convention import Convention
from .model_cost import ModelCost, Part, model
from .model_spec import MODELS, ModelSpec, ModelTable, kv_bytes_per_token
from .one_op import of
from .work import Step, Work

__all__ = [
    "MODELS", "Convention", "Cost", "ModelCost", "ModelSpec", "ModelTable", "Part", "Step", "Work", "from_config",
    "kv_bytes_per_token", "model", "of",
]  # fmt: skip


def __getattr__(name: str):
    if name in specs.all_specs():
        return functools.partial(of, name)
    text = f"module 'rooflab.cost' has no attribute {name!r}"
    has_no_cost = name in vars(_core) and not name.startswith("_")
    raise AttributeError(f'{text}; count a call on tensors of device="meta" with rl.count()' if has_no_cost else text)
