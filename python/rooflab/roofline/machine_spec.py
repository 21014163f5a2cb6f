"""What a datasheet says of one machine, and a table of machines by name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from .._numbers import positive, whole
from ..results import settle

T = TypeVar("T")
_DTYPES = {
    "float32": ("fp32", "f32", "float", "single"),
    "float16": ("fp16", "f16", "half"),
    "bfloat16": ("bf16",),
    "float64": ("fp64", "f64", "double"),
    "tfloat32": ("tf32", "tensorfloat32"),
}
_DTYPE_OF = {alias: name for name, aliases in _DTYPES.items() for alias in (name, *aliases)}


def dtype_name(dtype: object) -> str:
    """Canonical name of a dtype: ``float32``, ``float16``, ``bfloat16``, ``float64`` or ``tfloat32``.

    Parameters
    ----------
    dtype : str or dtype object
        A name, a usual short name (``fp32``, ``bf16``, ``tf32``), or a dtype of rooflab, NumPy or PyTorch.

    Returns
    -------
    str
        The name.

    Raises
    ------
    ValueError
        If no floating dtype goes by that name.

    Examples
    --------
    >>> from rooflab.machine import dtype_name
    >>> dtype_name("bf16")
    'bfloat16'
    """
    return _canonical("[machine] dtype", dtype)


def _canonical(what: str, dtype: object) -> str:
    text = dtype.__name__ if isinstance(dtype, type) else str(dtype)
    found = _DTYPE_OF.get(text.lower().rpartition(".")[2])
    if found is None:
        raise ValueError(f"{what}: expected one of {', '.join(_DTYPES)}, got {text!r}")
    return found


def by_dtype(what: str, given: Mapping[str, T]) -> dict[str, T]:
    """The same values under the canonical names of their dtypes.

    Parameters
    ----------
    what : str
        What they are, for the error.
    given : mapping
        By names that `dtype_name` knows.

    Returns
    -------
    dict
        In the same order.

    Raises
    ------
    ValueError
        For another name, and for two names of one dtype.

    Examples
    --------
    >>> from rooflab.roofline.machine_spec import by_dtype
    >>> by_dtype("[MachineSpec] peak_tflop_s", {"fp32": 67})
    {'float32': 67}
    """
    found = {_canonical(what, name): value for name, value in given.items()}
    if len(found) < len(given):
        raise ValueError(f"{what}: expected each dtype once, got {', '.join(map(str, given))}")
    return found


@dataclass(frozen=True)
class MachineSpec:
    """What the datasheet of one GPU or CPU says.

    Attributes
    ----------
    name : str
        The name to look it up by.
    kind : str
        ``"gpu"`` or ``"cpu"``.
    bandwidth_tb_s : float
        DRAM bandwidth, TB/s (1e12 bytes).
    peak_tflop_s : dict of str to float
        Dense peak per dtype, TFLOP/s (1e12; a multiply-add is 2 FLOPs). ``float32`` is exact float32,
        ``tfloat32`` the tensor cores fed with float32; ``float64`` includes tensor cores where they compute
        in float64.
    memory_gb : float or None
        Memory as the vendor names it, GB. None for CPUs: it depends on what is plugged in.
    last_level_cache_mib : float or None
        L2 of a GPU, L3 of a CPU, MiB (2**20 bytes; vendors write MB).
    sources : dict of str to str
        For each figure (``bandwidth``, ``memory``, ``cache``, ``sm_count``, ``latency`` and each dtype) the
        document and section that says it. Figures of a bandwidth and of a dtype without a source count as given.
    aliases : tuple of str
        Other names, those that drivers report among them.
    cores : int or None
        Physical cores of a CPU: its peak is proportional to them.
    sm_count : int or None
        Streaming multiprocessors of a GPU: what blocks of threads are handed out to.
    latency_cycles : dict of str to int
        Clock cycles from a load to its value, by memory: ``global``, ``l2``, ``l1``, ``shared load`` and
        ``shared store``. Empty where nobody published them.

    Raises
    ------
    ValueError
        For a figure that is no finite number above 0, a dtype that `dtype_name` does not know, one dtype twice, and for
        anything but a mapping where there is one for each name.
    """

    name: str
    kind: str
    bandwidth_tb_s: float
    peak_tflop_s: Mapping[str, float]
    memory_gb: float | None
    last_level_cache_mib: float | None
    sources: Mapping[str, str]
    aliases: tuple[str, ...] = ()
    cores: int | None = None
    sm_count: int | None = None
    latency_cycles: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settle(self)
        positive("[MachineSpec] bandwidth_tb_s", self.bandwidth_tb_s)
        for name in ("memory_gb", "last_level_cache_mib", "cores", "sm_count"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(
                    f"[MachineSpec] {name}: expected a finite number above 0, got {value!r}; None where it is not known"
                )
        peaks = {
            dtype: positive(f"[MachineSpec] peak_tflop_s[{dtype!r}]", value)
            for dtype, value in by_dtype("[MachineSpec] peak_tflop_s", self.peak_tflop_s).items()
        }
        cycles = {
            key: whole(f"[MachineSpec] latency_cycles[{key!r}]", value, least=1)
            for key, value in self.latency_cycles.items()
        }
        object.__setattr__(self, "peak_tflop_s", peaks)
        object.__setattr__(self, "latency_cycles", cycles)

    def __str__(self) -> str:
        peaks = ", ".join(f"{dtype} {peak:g}" for dtype, peak in self.peak_tflop_s.items())
        return f"{self.name}: {self.bandwidth_tb_s:g} TB/s; dense TFLOP/s: {peaks}"


class UnknownMachineError(KeyError, ValueError):
    """No machine of that name is in the table."""

    def __str__(self) -> str:
        return str(self.args[0])


def _key(name: str) -> str:
    text = re.sub(r"\((r|tm)\)|®|™|@.*", " ", name.lower())
    text = re.sub(r"\b(nvidia|geforce|quadro|amd|intel|cpu|gpu|processor)\b", " ", text)
    return re.sub(r"\d+-core|[^a-z0-9+]", "", text)


@dataclass(frozen=True)
class SpecTable(Mapping[str, MachineSpec]):
    """Machines by name; case, spaces, dashes and vendor words do not matter.

    Examples
    --------
    >>> from rooflab.roofline import SPECS
    >>> SPECS["rtx a6000"].peak_tflop_s["float32"]
    38.7
    """

    _specs: tuple[MachineSpec, ...]
    _by_key: dict[str, MachineSpec] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keys = {_key(alias): spec for spec in self._specs for alias in (spec.name, *spec.aliases)}
        object.__setattr__(self, "_by_key", keys)

    def __getitem__(self, name: str) -> MachineSpec:
        spec = self._by_key.get(_key(name)) if isinstance(name, str) else None
        if spec is None:
            raise UnknownMachineError(f"[machine] no datasheet for {name!r}; known: {', '.join(self)}")
        return spec

    def __iter__(self) -> Iterator[str]:
        return (spec.name for spec in self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def __repr__(self) -> str:
        return "\n".join(str(spec) for spec in self._specs)
