"""
What the choice of kernels goes by.
"""
from __future__ import annotations
import typing
__all__: list[str] = ['CodeArchitecture', 'Target', 'of']
class CodeArchitecture:
    """
    What the code of a GPU's kernels was compiled for.
    """
    def __init__(self, number: typing.SupportsIndex, is_sm90a: bool = False) -> None:
        ...
    @property
    def is_sm90a(self) -> bool:
        ...
    @property
    def number(self) -> int:
        """
        80 for sm_80.
        """
class Target:
    code: CodeArchitecture
    @property
    def compute_capability(self) -> int:
        ...
    @property
    def has_fast_bfloat16_dots(self) -> bool:
        """
        Of a CPU; false on Intel's.
        """
    @property
    def name(self) -> str:
        ...
    @property
    def shared_bytes_of_block(self) -> int:
        ...
    @shared_bytes_of_block.setter
    def shared_bytes_of_block(self, arg0: typing.SupportsIndex) -> None:
        ...
    @property
    def sm_count(self) -> int:
        ...
    @sm_count.setter
    def sm_count(self, arg0: typing.SupportsIndex) -> None:
        ...
def of(device: typing.Any) -> Target:
    """
    The target for which kernels for `device` are chosen.
    """
