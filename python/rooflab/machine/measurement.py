"""The ceilings of a device: from the cache, or probed now."""

from __future__ import annotations

from .cache import load, store
from .ceilings import Ceilings
from .probe import identify, probe


def measure(device: object = "cpu", refresh: bool = False) -> Ceilings:
    """Measured ceilings of a device, from the cache or by probing it now (under 20 seconds).

    How each figure is measured; bytes and FLOPs are those that the runtime counted for the very calls
    timed, and of two rounds (one, if it took over 9 seconds) each figure's better one counts:

    - copy bandwidth: ``rl.copy`` of a float32 buffer of at least 4 times the last-level cache.
    - read bandwidth: the fastest of ``sum()``, ``max()`` and a product with a vector over such a buffer: each
      reads it once and writes next to nothing.
    - cache bandwidth: the same over 3/8 of the last-level cache. On a GPU, where such a read
      lasts little longer than a launch, it is the slope between 1/8 and 3/8, in which the fixed cost of a
      launch drops out.
    - peak: every rung of matmul but the reference is tried at a small size, the best ones at the largest N
      whose product fits a time limit; the fastest is sampled. Normally distributed data: zeros would let a
      GPU clock higher.
    - launch overhead: 100 ``exp()`` of one element in a row, then a synchronisation; per call.

    Parameters
    ----------
    device : str or Device
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    refresh : bool
        Measure even if the cache holds figures.

    Returns
    -------
    Ceilings

    Raises
    ------
    ValueError
        If there is no such device.
    """
    identity = identify(device)
    if not refresh:
        cached = load(identity, Ceilings.from_dict)
        if cached is not None:
            return cached
    ceilings = Ceilings(**identity, **probe(identity["device"]))
    store(identity, ceilings.to_dict())
    return ceilings
