"""The machine at hand: its ceilings, measured through the runtime, beside what its datasheet promises.

Figures are medians with the 20th and 80th percentiles. They are measured once, in seconds, and kept for 30 days in a
cache file per device, host, driver, thread count and rooflab version; ``refresh=True`` measures again. What was
measured on a busy machine is not kept.
"""

from ..roofline import (
    SPECS,
    MachineSpec,
    SpecTable,
    UnknownMachineError,
    attainable,
    bound,
    dtype_name,
    find_spec,
    ridge,
)
from .ceilings import Ceilings, Measured
from .measurement import BusyMachineWarning, measure

__all__ = [
    "SPECS", "BusyMachineWarning", "Ceilings", "MachineSpec", "Measured", "SpecTable", "UnknownMachineError",
    "attainable", "bound", "dtype_name", "find_spec", "measure", "ridge",
]  # fmt: skip
