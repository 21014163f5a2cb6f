"""The roofline model: how fast can work of a given arithmetic intensity run on a given machine?

A kernel that does `flops` FLOPs and moves `bytes` bytes has the arithmetic intensity AI = flops / bytes. A
machine feeds it at most `bandwidth * AI` FLOP/s and computes at most `peak` FLOP/s; the lower of the two is
its roof, and the intensity at which they meet is the ridge (Williams, Waterman, Patterson: "Roofline: an
insightful visual performance model for multicore architectures", CACM 52(4), 2009).
"""

from .datasheets import SPECS, find_spec
from .machine_spec import MachineSpec, SpecTable, UnknownMachineError, dtype_name
from .model import (
    Machine,
    Point,
    attainable,
    bound,
    fraction_of_roof,
    gemm_intensity,
    gemv_intensity,
    measured_point,
    peak,
    ridge,
    smallest_compute_bound_n,
)

__all__ = [
    "SPECS", "Machine", "MachineSpec", "Point", "SpecTable", "UnknownMachineError", "attainable", "bound", "dtype_name",
    "find_spec", "fraction_of_roof", "gemm_intensity", "gemv_intensity", "measured_point", "peak", "ridge",
    "smallest_compute_bound_n",
]  # fmt: skip
