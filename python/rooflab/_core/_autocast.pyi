"""
What rooflab.autocast stands on.
"""
from __future__ import annotations
import typing
__all__: list[str] = ['begin', 'end', 'low_dtype', 'policies']
def begin(low: typing.Any) -> typing.Any:
    """
    Begins a context with a low dtype, or None for off; returns that of the context around it.
    """
def end(before: typing.Any) -> None:
    """
    Ends a context; takes what begin() returned.
    """
def low_dtype() -> typing.Any:
    """
    The low dtype of this thread's context; None where autocast is off.
    """
def policies() -> list[tuple[str, str]]:
    """
    The ops whose dtype does not follow from their operands, with "low" or "float32".
    """
