"""What Lab 4 gives its students: whole numbers compared exactly, at given sizes and at drawn ones.

Letters: B sequences, L tokens, D model, H heads, n bytes a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rooflab.grading import measure
from rooflab.roofline import MachineSpec
from rooflab.testing import is_count, is_near, is_number

__all__ = [
    "A100", "GPT2_XL", "T4", "Gpu", "assert_counts", "assert_rows", "assert_terms", "assert_times", "on_paper",
    "sample_sizes", "value_of",
]  # fmt: skip

_PRIMES = [p for p in range(2, 200) if all(p % q for q in range(2, p))]
_BYTES = (1, 2, 4, 8)
_ROW = ("flops", "bytes", "compute_s", "memory_s", "time_s", "intensity", "bound")


@dataclass(frozen=True)
class Gpu:
    """Two figures of a GPU that a budget is compared with.

    Attributes
    ----------
    name : str
        What to call it.
    flop_s : float
        FLOP/s of dense fp16 products.
    byte_s : float
        Bytes/s that its memory moves.

    Examples
    --------
    >>> from rooflab.labs.lab4 import A100
    >>> round(A100.flop_s / A100.byte_s, 2)
    153.02
    """

    name: str
    flop_s: float
    byte_s: float

    @property
    def machine(self) -> MachineSpec:
        """The same for `rooflab.plots.plot_roofline`, with ``dtype="float16"``."""
        return MachineSpec(self.name, "gpu", self.byte_s / 1e12, {"float16": self.flop_s / 1e12}, None, None, {})


A100 = Gpu("A100-80GB SXM", 312e12, 2.039e12)
"""By its datasheet: 312 TFLOP/s in dense fp16, 2039 GB/s."""

T4 = Gpu("T4", 65e12, 300e9)
"""65 TFLOP/s in fp16, and 300 GB/s. Its datasheet says 320 GB/s, which changes no verdict of Lab 4."""


GPT2_XL = {"layers": 48, "D": 1600, "H": 25, "I": 6400, "V": 50257, "n": 2}
"""GPT-2 XL in fp16: layers, width, heads, width of the MLP, vocabulary, and bytes a number."""


def sample_sizes(letters: str, count: int = 30) -> list[tuple[int, ...]]:
    """Sizes at which two different formulas are most unlikely to agree: primes, and 1 once for each size.

    They are drawn by `rooflab.grading.measure.rng`: when graded, from the seed of the grading.

    Parameters
    ----------
    letters : str
        Names of the sizes with spaces between them. ``n`` is 1, 2, 4 or 8, and ``D`` is a prime times ``H`` if there
        is an ``H``.
    count : int
        How many. The first ones have one size that is 1, each of `letters` in its turn.

    Returns
    -------
    list of tuple of int
        In the order of `letters`.

    Examples
    --------
    >>> from rooflab.labs.lab4 import sample_sizes
    >>> sizes = sample_sizes("B L D H")
    >>> len(sizes), sizes[0][0], sizes[1][1], all(D % H == 0 for B, L, D, H in sizes)
    (30, 1, 1, True)
    """
    names, rng = letters.split(), measure.rng()
    found = []
    for index in range(count):
        sizes = {name: int(rng.choice(_BYTES if name == "n" else _PRIMES)) for name in names}
        if index < len(names):
            sizes[names[index]] = 1
        if "D" in names and "H" in names:
            sizes["D"] *= sizes["H"]
        found.append(tuple(sizes.values()))
    return found


def on_paper(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, which has to compute it without an operation, run or counted, and so without `rooflab.cost`.

    Raises
    ------
    AssertionError
        If anything was launched, or a tensor made, with memory or without.

    Examples
    --------
    >>> from rooflab.labs.lab4 import on_paper
    >>> on_paper(lambda B, L: B * L, 2, 8)
    16
    """
    seen = measure.count(function, *args)
    call = f"{getattr(function, '__name__', 'the function')}({', '.join(map(repr, args))})"
    said = f"{call}: compute it by a formula, without running or counting any operation"
    assert seen.launches == seen.peak_bytes == 0, said
    return seen.value


def assert_counts(
    function: Callable[..., Any], expected: Mapping[tuple[int, ...], int], hint: str, may_count: bool = False
) -> None:
    """Assert that ``function(*sizes)`` is the whole number `expected[sizes]`, for all sizes; NumPy's integers count.

    The first of them is looked at with `on_paper`, unless the function `may_count`: doing so takes a while.

    Raises
    ------
    AssertionError
        The call, what it returned, what is expected, and `hint`.

    Examples
    --------
    >>> from rooflab.labs.lab4 import assert_counts
    >>> assert_counts(lambda B, L: B * L, {(2, 8): 16}, "one for each token")
    """
    for place, (sizes, right) in enumerate(expected.items()):
        call = f"{function.__name__}({', '.join(map(repr, sizes))})"
        got = function(*sizes) if place or may_count else on_paper(function, *sizes)
        assert is_count(got), f"{call} must return a whole number (int), got {got!r}"
        assert got == right, f"{call} returned {got}, expected {right}. Hint: {hint}"


def value_of(terms: Mapping[str, int], B: int, L: int) -> int:
    """What terms like ``{"1": 7, "B": 5, "BL": 3, "BL^2": 2}`` add up to: 7 + 5 B + 3 B L + 2 B L^2.

    Raises
    ------
    KeyError
        For a term that is none of these four.

    Examples
    --------
    >>> from rooflab.labs.lab4 import value_of
    >>> value_of({"1": 7, "BL": 3}, B=2, L=10)
    67
    """
    powers = {"1": 1, "B": B, "BL": B * L, "BL^2": B * L**2}
    return sum(number * powers[term] for term, number in terms.items())


def assert_terms(name: str, terms: Any, keys: tuple[str, ...], counted: Mapping[tuple[int, int], int]) -> None:
    """Assert that `terms` are whole numbers under `keys` that add up to `counted`, by (B, L).

    Raises
    ------
    AssertionError
        What to look at: the keys, the kind of a number, or the sizes at which `name` and the function differ.

    Examples
    --------
    >>> from rooflab.labs.lab4 import assert_terms
    >>> assert_terms("my_terms", {"1": 7, "BL": 3}, ("1", "BL"), {(2, 10): 67, (1, 1): 10})
    """
    listed = ", ".join(f'"{key}"' for key in keys)
    assert isinstance(terms, dict) and set(terms) == set(keys), (
        f"{name} must be a dict with the keys {listed}, got {terms!r}"
    )
    for key, number in terms.items():
        assert is_count(number), f'{name}["{key}"] must be a whole number (int), got {number!r}'
    for (B, L), count in counted.items():
        got, at = value_of(terms, B, L), f"at B = {B}, L = {L}"
        assert got == count, f"{name} add up to {got} {at}, but your function returns {count} for GPT-2 XL"


def assert_rows(name: str, table: Any, cases: Sequence[tuple[int, int]]) -> None:
    """Assert that `table` has a budget for each case (B, L), with whole numbers of FLOPs and of bytes.

    Raises
    ------
    AssertionError
        Which keys are expected, or which row has a number that is not whole.

    Examples
    --------
    >>> from rooflab.labs.lab4 import assert_rows
    >>> row = {"flops": 6, "bytes": 2, "compute_s": 2.0, "memory_s": 1.0, "time_s": 2.0, "intensity": 3.0}
    >>> assert_rows("table", {(1, 32): row | {"bound": "compute"}}, [(1, 32)])
    """
    keys = isinstance(table, dict) and set(table) == set(cases)
    got = f"the keys {', '.join(map(repr, table))}" if isinstance(table, dict) else f"a {type(table).__name__}"
    assert keys, f"{name} must be a dict with the keys {', '.join(map(str, cases))}, got {got}"
    for case, row in table.items():
        said = f"{name}[{case}] must be a dict with the keys {', '.join(_ROW)}, got {row!r}"
        assert isinstance(row, dict) and set(row) == set(_ROW), said
        for key in ("flops", "bytes"):
            assert is_count(row[key]), f"{name}[{case}]: {key} must be a whole number (int), got {row[key]!r}"


def assert_times(name: str, table: Any, cases: Sequence[tuple[int, int]]) -> None:
    """Assert the same, and that the times, the intensity and the bound in each row of `table` fit each other.

    Raises
    ------
    AssertionError
        Which row to look at, and what about it.

    Examples
    --------
    >>> from rooflab.labs.lab4 import assert_times
    >>> row = {"flops": 6, "bytes": 2, "compute_s": 2.0, "memory_s": 1.0, "time_s": 2.0, "intensity": 3.0}
    >>> assert_times("table", {(1, 32): row | {"bound": "compute"}}, [(1, 32)])
    """
    assert_rows(name, table, cases)
    for case, row in table.items():
        for key in ("compute_s", "memory_s", "time_s", "intensity"):
            said = f"{name}[{case}]: {key} must be a positive number, got {row[key]!r}"
            assert is_number(row[key]) and row[key] > 0, said
        larger = max(row["compute_s"], row["memory_s"])
        said = f"{name}[{case}]: time_s is {row['time_s']}, expected the larger of the two times, {larger}"
        assert is_near(row["time_s"], larger, 0.01), said
        intensity = row["flops"] / row["bytes"]
        said = f"{name}[{case}]: intensity is {row['intensity']}, expected FLOPs over bytes, {intensity:.6g}"
        assert is_near(row["intensity"], intensity, 1e-4), said
        said = f'{name}[{case}]: bound must be "memory" or "compute", got {row["bound"]!r}'
        assert row["bound"] in ("memory", "compute"), said
