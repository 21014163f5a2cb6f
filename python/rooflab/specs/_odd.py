"""Odd shapes, which benches have beside the usual ones, so that no bench shows only what suits the kernels."""

from collections.abc import Iterator
from typing import Any

from . import ODD

# One long row, a few; many narrow ones, of a vector and of none; rows that vectors do not divide, of GPT-2's vocabulary
# among them.
ROWS = ((1, 262144), (8, 131072), (1000000, 4), (1000000, 33), (131072, 64), (4096, 1001), (1000, 50257))


def odd_rows(*others: Any, most: int = 1 << 26, over: str = "", **kwargs: Any) -> Iterator[tuple]:
    """Bench cases of a matrix with at most `most` elements, in two dtypes; `others` are the operands behind it.

    Parameters
    ----------
    others
        What follows the matrix; None stands for a vector as long as its rows.
    over : str
        What the label ends with.

    Examples
    --------
    >>> next(odd_rows(None, dim=1))
    ('odd 1x262144', 'bfloat16', ((1, 262144), (262144,)), {'dim': 1})
    """
    for rows, d in ROWS:
        if rows * d <= most:
            operands = ((rows, d), *((d,) if other is None else other for other in others))
            for dtype in ("bfloat16", "float32"):
                yield f"{ODD}{rows}x{d}{over}", dtype, operands, kwargs
