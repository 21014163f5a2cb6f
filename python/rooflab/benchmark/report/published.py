"""Peaks of a forward pass beside published ones, with the tensors that make the difference.

The published figures are for the 2.7B model in float32, B = 4, V = 10000. They come from a report on Stanford CS336's
second assignment, which labels them GB; they are GiB. The assignment's own model writes out in single operations what
is one kernel here, and keeps for the backward pass what each operation needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...results import Report
from ..lm import Case, Result, config_of
from .settings import Rows

SIZE, BATCH_SIZE, VOCAB_SIZE = "2.7B", 4, 10000
FORWARD_GIB = {128: 18.51, 256: 25.34, 512: 44.17}
"""Published by L."""


def more_bytes(case: Case) -> dict[str, int]:
    """What the course's model keeps for a backward pass beyond what is kept here: bytes by what holds them.

    In a layer the sigmoid and its product with w1 x (B, L, I), since SwiGLU is written out; in both norms the
    normalised input (B, L, D); the exponentials of the softmax (B, H, L, L); statistics of norms and softmax, a mask.

    Examples
    --------
    >>> sum(more_bytes(Case("2.7B", 512)).values()) / 2**30
    10.3...
    """
    config = config_of(case)
    B, L, D, I, H = case.batch_size, case.context_length, config.d_model, config.d_ff, config.num_heads  # noqa: E741
    n = config.num_layers
    return {
        "SwiGLU": n * 4 * 2 * B * L * I,
        "norms": n * 4 * 2 * B * L * D + 4 * B * L * D,
        "exponentials": n * 4 * B * H * L * L,
        "statistics, mask": n * (12 * B * H * L + 8 * B * L + L * L) + 12 * B * L + 4 * L * config.head_dim,
    }


def write(report: Report, rows: Rows, results: Sequence[Result]) -> None:
    """A row for each published length, if this report has the same model."""
    settings = rows.settings
    if (settings.batch_size, settings.vocab_size) != (BATCH_SIZE, VOCAB_SIZE):
        return
    lines, names = [], list(more_bytes(Case(SIZE)))
    for result in results:
        case = result.case
        if (case.model_size, case.mode) == (SIZE, "forward") and case.context_length in FORWARD_GIB:
            here = max(sum(classes.values()) for classes in result.memory.values())
            more = more_bytes(case)
            third = more["exponentials"]  # its softmax keeps one more matrix of scores
            published = FORWARD_GIB[case.context_length]
            whole = here + sum(more.values())
            gib = [here, *more.values(), whole, third, whole + third]
            cells = [f"{size / 2**30:.2f}" for size in gib]
            lines.append([str(case.context_length), *cells, f"{published:.2f}", f"{published - gib[-1] / 2**30:+.2f}"])
    if lines:
        head = ("L", "counted here", *names, "course's model", "third scores", "together", "published", "left over")
        said = (
            f"{SIZE}, float32, B={BATCH_SIZE}, V={VOCAB_SIZE}, a forward pass that keeps its graph, in GiB (2^30 "
            "bytes). The course's model keeps more than the one here: in SwiGLU, which it writes as x * sigmoid(x), "
            "the sigmoid and that product; in each norm the normalised input; of the softmax the exponentials beside "
            "the weights. The softmax of the published report keeps a third matrix of scores. What is left over was "
            "measured, and no formula here explains it."
        )
        report.table(head, lines, said)
