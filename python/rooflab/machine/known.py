"""What is known of a device without measuring anything."""

from __future__ import annotations

from ..roofline import SPECS, MachineSpec
from .cache import load
from .ceilings import Ceilings, datasheet
from .identity import identify


def known(device: str) -> tuple[MachineSpec | None, Ceilings | None]:
    """The datasheet of a device, and its ceilings if they were measured here; None for what does not exist.

    Parameters
    ----------
    device : str
        ``"cpu"``, ``"cuda:0"``, or a meta device: ``"meta:H200"`` is the H200 of the table, ``"meta:cpu"`` this
        machine's CPU.

    Raises
    ------
    ValueError
        If there is no such device or no machine of that name.

    Examples
    --------
    >>> sheet, ceilings = known("meta:H200")
    >>> sheet.name, ceilings
    ('H200', None)
    """
    name = device.partition(":")[2] if device.startswith("meta") else device
    if name.partition(":")[0] not in ("cpu", "cuda"):
        return SPECS[name], None
    identity = identify(name)
    return datasheet(identity["name"], identity["threads"]), load(identity, Ceilings.from_dict)
