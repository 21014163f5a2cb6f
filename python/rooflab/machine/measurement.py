"""The ceilings of a device: from the cache, or probed now."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from .cache import load, store
from .ceilings import Ceilings
from .identity import identify
from .probe import measure_now


class BusyMachineWarning(UserWarning):
    """Ceilings were measured beside other work: they may be far too low and are not kept."""


def measure(
    device: object = "cpu", refresh: bool = False, progress: Callable[[str], None] = lambda text: None
) -> Ceilings:
    """Measured ceilings of a device, from the cache or by probing it now (10 to 40 seconds).

    First the kernels to time are chosen, twice, so that a short disturbance does not decide. Then come five rounds,
    each of which measures every figure once, a few calls at a time. A figure is the median over its stable rounds:
    those within 5 % of the best round that another one agrees with. While rounds differ or the machine is busy, more
    rounds follow, until 20 seconds have passed. Rounds that were slowed do not lower a figure, because a ceiling is a
    maximum; `apart` says by how much they differ. A machine is busy on a CPU while other programs or the host of a
    virtual machine take more than a quarter of a CPU, and while no two rounds agree or one alone is faster than all
    others. If it stays busy, a warning says so and nothing is kept.

    How each figure is measured; bytes and FLOPs are those that the runtime counted for the very calls timed:

    - copy bandwidth: ``rl.copy`` of a float32 buffer of at least 4 times the last-level cache.
    - read bandwidth: the fastest of ``sum()``, ``max()`` and a product with a vector over such a buffer: each
      reads it once and writes next to nothing.
    - cache bandwidth: the same over 3/8 of the last-level cache. On a GPU, where such a read
      lasts little longer than a launch, it is the slope between 1/8 and 3/8, in which the fixed cost of a
      launch drops out.
    - peak: every rung of matmul but the reference is tried at a small size, the best ones at the largest N
      whose product fits a time limit; the fastest is sampled. The data is normally distributed, because zeros
      would let a GPU clock higher.
    - launch overhead: 100 ``exp()`` of one element in a row, then a synchronisation; per call.

    Parameters
    ----------
    device : str or Device
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    refresh : bool
        Measure even if the cache holds figures.
    progress : callable
        Called with a line of text before each round, when it measures.

    Returns
    -------
    Ceilings
        Its `busy` says why the figures cannot be trusted; "" when they can.

    Raises
    ------
    ValueError
        If there is no such device.

    Warns
    -----
    BusyMachineWarning
        If the machine was busy.

    Examples
    --------
    >>> rl.machine.measure("cpu").bandwidth_tb_s  # doctest: +SKIP
    0.0186
    """
    identity = identify(device)
    if not refresh:
        cached = load(identity, Ceilings.from_dict)
        if cached is not None:
            return cached
    ceilings = Ceilings(**identity, **measure_now(identity["device"], progress))
    if ceilings.busy:
        warnings.warn(ceilings.busy, BusyMachineWarning, stacklevel=2)
    else:
        store(identity, ceilings.to_dict())
    return ceilings
