"""One description per op: sample inputs, a float64 reference, the cost formula, tolerances, bench sizes.

Tests, benches and cost functions iterate over these, so a new op needs no edit elsewhere. A module of this package
defines `SPEC` (one op) or `SPECS` (a family).
"""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._core import Cost

FLOATING = ("float64", "float32", "float16", "bfloat16")
INTEGER = ("int64", "int32")
ODD = "odd "  # what the labels of bench cases with odd shapes begin with

_UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_ITEMSIZE = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "bool": 1}


def unit_roundoff(dtype: str) -> float:
    """Half the distance from 1 to the next number of the dtype: the relative error of one rounding.

    Parameters
    ----------
    dtype : str
        A floating dtype.

    Returns
    -------
    float
        2^-24 for float32.

    Raises
    ------
    KeyError
        For another dtype.

    Examples
    --------
    >>> from rooflab.specs import unit_roundoff
    >>> unit_roundoff("bfloat16")
    0.00390625
    """
    return _UNIT_ROUNDOFF[dtype]


def accumulator_roundoff(dtype: str) -> float:
    """Unit roundoff of the type that sums are kept in: float64 for float64, float32 for all else.

    Parameters
    ----------
    dtype : str
        A floating dtype.

    Returns
    -------
    float
        2^-53 for float64, 2^-24 for all else.

    Examples
    --------
    >>> from rooflab.specs import accumulator_roundoff, unit_roundoff
    >>> accumulator_roundoff("bfloat16") == unit_roundoff("float32")
    True
    """
    return _UNIT_ROUNDOFF["float64" if dtype == "float64" else "float32"]


def sum_roundings(length: int, dtype: str = "float32") -> float:
    """How many roundings a sum of so many numbers may be off by, relative to the sum of their absolute values.

    2 log2(n) eps, as pairwise sums are, where eps is twice the unit roundoff; or an error for each addition if these
    are fewer. In float64 v0 adds one number after another, in nothing wider: samples of alike ones have no more than
    512 of them.

    Parameters
    ----------
    length : int
        How many numbers are added up.
    dtype : str
        Their dtype.

    Returns
    -------
    float
        In unit roundoffs of the dtype that sums are kept in.

    Examples
    --------
    >>> from rooflab.specs import sum_roundings
    >>> sum_roundings(3), sum_roundings(1024), sum_roundings(1024, "float64")
    (3, 40.0, 512)
    """
    return min(length, 512 if dtype == "float64" else 4 * math.log2(max(length, 2)))


def itemsize(dtype: str) -> int:
    """Bytes an element.

    Parameters
    ----------
    dtype : str
        A dtype.

    Returns
    -------
    int
        2 for float16.

    Raises
    ------
    KeyError
        For a dtype that is not known.

    Examples
    --------
    >>> from rooflab.specs import itemsize
    >>> itemsize("float16")
    2
    """
    return _ITEMSIZE[dtype]


def exact(dtype: str, sample: Sample) -> tuple[float, float]:
    """The tolerance of an op that rounds nothing.

    Parameters
    ----------
    dtype : str
        Of the operands.
    sample : Sample
        The call.

    Returns
    -------
    (float, float)
        rtol and atol, both 0.

    Examples
    --------
    >>> from rooflab.specs import Sample, exact
    >>> exact("float32", Sample("", ()))
    (0.0, 0.0)
    """
    return 0.0, 0.0


@dataclass(frozen=True)
class Sample:
    """One call of an op.

    Attributes
    ----------
    label : str
        Goes into the test's name: "37x64".
    args : tuple
        Positional arguments. Float64 NumPy arrays become tensors of the dtype under test; arrays of integers (an index)
        and bool (a mask) become tensors of their own; everything else is passed as it is.
    kwargs : dict
        Keyword arguments, passed as they are.
    """

    label: str
    args: tuple
    kwargs: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """An operand of a bench case: random int64 numbers from 0 on that are less than `below`.

    Parameters
    ----------
    shape : tuple of int
        Of the tensor.
    below : int
        What the numbers stay below.

    Examples
    --------
    >>> from rooflab.specs import Places
    >>> Places((2, 3), below=10).shape
    (2, 3)
    """

    shape: tuple[int, ...]
    below: int


@dataclass(frozen=True)
class Turned:
    """An operand of a bench case: a matrix whose columns are adjacent in memory, as those of `x.T` are.

    Parameters
    ----------
    shape : tuple of int
        Of the tensor.

    Examples
    --------
    >>> from rooflab.specs import Turned
    >>> Turned((2, 3)).shape
    (2, 3)
    """

    shape: tuple[int, int]


@dataclass(frozen=True)
class Seen:
    """An operand of a bench case: a bool mask, of which four in five are true.

    Parameters
    ----------
    shape : tuple of int
        Of the tensor.

    Examples
    --------
    >>> from rooflab.specs import Seen
    >>> Seen((2, 3)).shape
    (2, 3)
    """

    shape: tuple[int, ...]


@dataclass(frozen=True)
class OpSpec:
    """What an op is, apart from its kernels.

    Attributes
    ----------
    name : str
        The op's one name: `rl.<name>`, and its ladder's when it has one.
    fn : callable
        Called with tensors, as users call it; takes `variant=`.
    samples : callable
        `samples(rng)` yields `Sample`s: odd sizes, size 1, empty, outliers.
    prepare : callable, optional
        `prepare(*tensors, **kwargs)` makes the operands of `fn` from a sample's, where one op needs another's result.
    reference : callable
        The same call on float64 arrays of the sample, in NumPy; a tuple where `fn` returns several tensors.
    cost : callable
        `cost(sample, dtype)` is the `Cost` that the counters must show, exactly.
    tolerance : callable
        `tolerance(dtype, sample)` is `(rtol, atol)`, derived from roundoff and the length of sums. `atol` is a number,
        an array of the result's shape, or a tuple of these where `fn` returns several tensors.
    composed_tolerance : callable, optional
        The same for `v0_composed`, which rounds what passes from op to op.
    composed_dtypes : tuple of str
        What only `v0_composed` takes; the counters then show the ops that it is made of, and not `cost`.
    dtypes : tuple of str
        What the op accepts.
    result_dtype : callable
        The dtype of the result for a dtype of operands; a tuple where several results differ.
    tails : callable, optional
        `tails(rng)` yields samples one below, at and one above the sizes at which rungs cut their work (`_tiles`), to
        notice a rung that leaves a rest out; larger than `samples`, and tried in fewer layouts.
    differentiable : callable, optional
        `differentiable(rng)` yields finite samples, away from kinks, at which gradients with respect to the floating
        arrays are checked; None when the op has none.
    bench : callable, optional
        `bench()` yields `(label, dtype, operands, kwargs)` for `rooflab bench`; a tuple is the shape of a tensor.
        Odd shapes, whose labels begin with `ODD`, run only where the op is named.
    tables : dict
        The cases of `bench`, as "label dtype", that the table beside the rungs shows, by kind of device. In a
        family one or two members stand for all.
    peer : callable, optional
        `peer(torch)` is PyTorch's function for the same call, or several by name.
    """

    name: str
    fn: Callable
    samples: Callable[[np.random.Generator], Iterable[Sample]]
    reference: Callable[..., np.ndarray]
    cost: Callable[[Sample, str], Cost]
    tolerance: Callable[[str, Sample], tuple[float, Any]]
    dtypes: tuple[str, ...] = FLOATING
    result_dtype: Callable[[str], str | tuple[str, ...]] = lambda dtype: dtype
    tails: Callable[[np.random.Generator], Iterable[Sample]] | None = None
    differentiable: Callable[[np.random.Generator], Iterable[Sample]] | None = None
    composed_tolerance: Callable[[str, Sample], tuple[float, Any]] | None = None
    composed_dtypes: tuple[str, ...] = ()
    prepare: Callable[..., tuple] | None = None
    bench: Callable[[], Iterable[tuple[str, str, tuple, dict]]] | None = None
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    peer: Callable | None = None

    def allowed(self, dtype: str, sample: Sample, variant: str = "") -> list[tuple[float, Any]]:
        """`(rtol, atol)` of each result of a rung ("": the default one).

        Examples
        --------
        >>> from rooflab.specs import Sample, all_specs, unit_roundoff
        >>> import numpy as np
        >>> all_specs()["neg"].allowed("float64", Sample("", (np.ones(2),)))[0][0] == unit_roundoff("float64")
        True
        """
        tolerance = (self.composed_tolerance if variant == "v0_composed" else None) or self.tolerance
        rtol, atol = tolerance(dtype, sample)
        return [(rtol, each) for each in (atol if isinstance(atol, tuple) else (atol,))]


def finite(samples: Callable) -> Callable:
    """`samples` without those that hold NaN or infinities.

    Parameters
    ----------
    samples : callable
        `samples(rng)` yields `Sample`s.

    Returns
    -------
    callable
        Of the same kind.

    Examples
    --------
    >>> from rooflab.specs import Sample, finite
    >>> import numpy as np
    >>> made = finite(lambda rng: [Sample("nan", (np.array([np.nan]),)), Sample("ones", (np.ones(3),))])
    >>> [sample.label for sample in made(None)]
    ['ones']
    """

    def kept(rng):
        for sample in samples(rng):
            if all(np.isfinite(a).all() for a in sample.args if isinstance(a, np.ndarray)):
                yield sample

    return kept


@functools.cache
def all_specs() -> dict[str, OpSpec]:
    """Every op's description, by name.

    Returns
    -------
    dict of str to OpSpec
        The op's name -> its description.

    Raises
    ------
    ValueError
        If two modules describe the same op.

    Examples
    --------
    >>> from rooflab import specs
    >>> specs.all_specs()["gelu"].name
    'gelu'
    """
    found: dict[str, OpSpec] = {}
    for module_info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        if module_info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        for spec in getattr(module, "SPECS", None) or [module.SPEC]:
            if spec.name in found:
                raise ValueError(f"[specs] {spec.name} is described twice")
            found[spec.name] = spec
    return found
