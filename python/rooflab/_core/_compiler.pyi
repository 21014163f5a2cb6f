"""
What rooflab.compiler stands on.
"""
from __future__ import annotations
import collections.abc
import rooflab._core
import typing
__all__: list[str] = ['Call', 'MAX_COLUMN_SUMS', 'MAX_INSTRUCTIONS', 'MAX_NUMBERS', 'MAX_OPERANDS', 'MAX_REDUCTIONS', 'MAX_RESULTS', 'MAX_ROW_INSTRUCTIONS', 'Program', 'Trace', 'View', 'cuda_headers', 'cuda_options', 'has_grad', 'has_values', 'holds_summed_row', 'is_tracing', 'layouts', 'results_among', 'settings']
class View:
    """
    A tensor of a trace: which storage it shows, and how.
    """
    def __eq__(self, arg0: View) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...
    def shows_rows(self, other: View, shape: tuple[int, ...], reduced_dims: typing.SupportsIndex) -> bool:
        """
        Whether it shows, broadcast to the shape, for each element the number that another has for its row.
        """
    def shows_same(self, other: View) -> bool:
        """
        Whether another view shows the same elements in the same order, whatever its shape.
        """
    @property
    def itemsize(self) -> int:
        """
        Bytes of an element.
        """
    @property
    def shape(self) -> tuple[int, ...]:
        ...
    @property
    def storage(self) -> int:
        """
        The number of its storage, which is written once.
        """
class Call:
    """
    A recorded call of an op.
    """
    @property
    def continues(self) -> int:
        """
        The storage of which it writes a part, which makes that its output; -1: none.
        """
    @property
    def inputs(self) -> list[View]:
        """
        The tensors among its operands.
        """
    @property
    def instructions(self) -> int:
        """
        How many instructions it takes in a chain; 0 if it cannot be part of one.
        """
    @property
    def is_constant(self) -> bool:
        """
        Whether it fills a tensor with a number, which a chain uses in place of the tensor.
        """
    @property
    def looks(self) -> bool:
        """
        Whether it looks for a number out of range, which is an error also where nobody reads its results.
        """
    @property
    def numbers(self) -> int:
        """
        How many numbers it has among its operands in a chain.
        """
    @property
    def op(self) -> str:
        ...
    @property
    def outputs(self) -> list[View]:
        ...
    @property
    def reduced_dims(self) -> int:
        """
        How many of the last dimensions of its operand it reduces; 0 when it is no reduction that a chain can contain.
        """
    @property
    def summed_dims(self) -> int:
        """
        How many of the first dimensions of its operand it adds up; 0 when it is no sum of columns that a chain can contain.
        """
class Trace:
    """
    Records the calls made inside `with`, which are neither run nor counted.
    """
    def __enter__(self) -> typing.Any:
        ...
    def __exit__(self, *args) -> None:
        ...
    def __init__(self, device: str) -> None:
        ...
    def argument(self, x: rooflab._core.Tensor) -> rooflab._core.Tensor:
        """
        A tensor without memory that stands for x.
        """
    def put_in_order(self, seen: collections.abc.Sequence[View]) -> None:
        """
        After the last call: calls whose results are turned become calls on permuted dimensions. `seen` are the
        views that others know by their strides.
        """
    def view(self, x: rooflab._core.Tensor) -> View:
        ...
    @property
    def calls(self) -> list:
        """
        Valid while the trace lives.
        """
    @property
    def error(self) -> str:
        """
        The first error that only a recording meets, caught or not; "": none.
        """
class Program:
    """
    Calls of a trace that can be run again; each chain runs as one op.
    """
    def __init__(self, trace: Trace, inputs: collections.abc.Sequence[View], steps: collections.abc.Sequence[tuple[collections.abc.Sequence[typing.SupportsIndex], collections.abc.Sequence[typing.SupportsIndex]]], results: collections.abc.Sequence[View], variant: str = '') -> None:
        ...
    def cuda_sources(self, width: typing.SupportsIndex, threads: typing.SupportsIndex = 32, packs: typing.SupportsIndex = 1, keeps: bool = True, whole: typing.SupportsIndex = 0, adjacent: typing.SupportsIndex = 4294967295, contiguous: typing.SupportsIndex = 0, loose: typing.SupportsIndex = 0) -> list[str]:
        """
        The CUDA C++ of each chain, for threads that move `width` neighbours in one access. Of a row that is reduced, each of `threads` threads holds `packs` times as many, either the whole row or a part at a time; all of them have the first `whole`. Bits of `adjacent`, `contiguous` and `loose` say how operands lie in memory (fused.h).
        """
    def record(self, op: str, results: collections.abc.Sequence[rooflab._core.Tensor], inputs: collections.abc.Sequence[rooflab._core.Tensor], saved: collections.abc.Sequence[rooflab._core.Tensor], targets: collections.abc.Sequence[typing.SupportsIndex], alone: collections.abc.Callable | None) -> list[rooflab._core.Tensor]:
        """
        Makes the results those of a node whose backward runs the program, and returns them. Where only some of
        several have a gradient, it runs alone(i) for each of these: a program and its targets.
        """
    def run(self, inputs: collections.abc.Sequence[rooflab._core.Tensor]) -> list[rooflab._core.Tensor]:
        ...
def cuda_headers() -> list[tuple[str, str]]:
    """
    What the sources of chains include, as (name, text).
    """
def cuda_options() -> list[str]:
    """
    The options for NVRTC, except the architecture.
    """
def has_grad(x: rooflab._core.Tensor) -> bool:
    ...
def has_values(x: rooflab._core.Tensor) -> bool:
    """
    Whether a tensor is not on a device without memory; `x.device` shows that of the argument while it is traced.
    """
def holds_summed_row(columns: typing.SupportsIndex, bytes: typing.SupportsIndex) -> bool:
    """
    Whether a chain with sums of columns can have rows of so many elements. `bytes`: of an element of each operand and of each sum together, at least 4 each.
    """
def is_tracing() -> bool:
    ...
def layouts(tensors: collections.abc.Sequence[rooflab._core.Tensor]) -> str:
    """
    A text for the layouts of all tensors; equal texts mean equal programs.
    """
def results_among(tensors: collections.abc.Sequence[rooflab._core.Tensor]) -> tuple:
    """
    The places of those that are no leaves, but results of recorded ops.
    """
def settings() -> str:
    """
    A text for grad mode, autocast, the precision of products, the CPU's instruction set and its threads.
    """
MAX_COLUMN_SUMS: int = 2
MAX_INSTRUCTIONS: int = 64
MAX_NUMBERS: int = 64
MAX_OPERANDS: int = 16
MAX_REDUCTIONS: int = 4
MAX_RESULTS: int = 8
MAX_ROW_INSTRUCTIONS: int = 16
