"""Amounts of work, exact however large."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._numbers import whole
from ..results import ReadableMixin


@dataclass(frozen=True)
class Work(ReadableMixin):
    """MACs, FLOPs and bytes as Python integers; `rl.Cost` holds the same for one op, in 64 bits.

    Attributes
    ----------
    macs, flops : int
        Multiply-accumulates, and all floating-point operations, 2 for each MAC.
    bytes_read, bytes_written : int
        Compulsory bytes of each op.

    Examples
    --------
    >>> from rooflab.cost import Work
    >>> (Work(flops=6, bytes_read=2) * 3 + Work(bytes_written=3)).arithmetic_intensity
    2.0
    """

    macs: int = 0
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.macs + other.macs,
            self.flops + other.flops,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
        )

    def __mul__(self, times: int) -> Work:
        times = whole("[Work] times", times)
        return Work(self.macs * times, self.flops * times, self.bytes_read * times, self.bytes_written * times)

    __rmul__ = __mul__

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def arithmetic_intensity(self) -> float:
        """FLOPs a byte; 0 where nothing moves, infinity where it is more than a float can hold."""
        try:
            return self.flops / self.bytes if self.bytes else 0.0
        except OverflowError:
            return math.inf


@dataclass(frozen=True)
class Step(ReadableMixin):
    """One op of a model in all its layers.

    Attributes
    ----------
    part, name : str
        The part of the model to which it belongs, and what it does there.
    work : Work
        Its work in all layers together.
    """

    part: str
    name: str
    work: Work
