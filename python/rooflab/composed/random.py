"""Random choices under PyTorch's names, composed of ops that have kernels."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from .. import _core
from .._arguments import is_integer
from .._core import Tensor
from .._device import device as Device
from .._in_words import in_words
from ._arguments import checked

__all__ = ["Generator", "bernoulli", "multinomial", "normal", "randperm", "uniform"]


class Generator:
    """A sequence of random numbers of its own, independent of that of `rl.manual_seed`.

    A call that takes it draws with rooflab's kernels, from the current position of this sequence. One generator belongs
    to one thread; others may draw from their own, and from that of `rl.manual_seed`.

    Parameters
    ----------
    device : str
        For PyTorch's sake; numbers are the same on every device.

    Raises
    ------
    ValueError
        For another kind of device.

    Examples
    --------
    >>> import rooflab as rl
    >>> first, again = (rl.Generator().manual_seed(7) for _ in range(2))
    >>> rl.randperm(5, generator=first).tolist() == rl.randperm(5, generator=again).tolist()
    True
    """

    @in_words
    def __init__(self, device: str = "cpu") -> None:
        self.device = Device(device)
        self._state = 0, 0

    @in_words
    def manual_seed(self, seed: int) -> Generator:
        """Begin the sequence of a seed, an int >= 0; returns the generator."""
        if not is_integer(seed) or not 0 <= seed < 2**64:
            raise ValueError(f"[Generator] seed: expected an int from 0 to 2^64 - 1, got {seed!r}")
        return self._move(int(seed), 0)

    def initial_seed(self) -> int:
        """The seed."""
        return self._state[0]

    def get_state(self) -> tuple[int, int]:
        """The position in the sequence, for `set_state`."""
        return self._state

    @in_words
    def set_state(self, state: tuple[int, int]) -> Generator:
        """Continue from a position; returns the generator."""
        are_whole = isinstance(state, tuple) and list(map(is_integer, state)) == [True, True]
        if not are_whole or not all(0 <= number < 2**64 for number in state):
            raise ValueError(f"[Generator] state: expected what get_state() gives, got {state!r}")
        return self._move(*map(int, state))

    def _move(self, seed: int, place: int) -> Generator:
        if not _core._autograd.draws_again():  # in a checkpoint's backward: numbers of the forward
            self._state = seed, place
        return self


def uniform(*shape: int, generator: Generator | None, **where: Any) -> Tensor:
    """`rl.rand`, drawn from a generator if there is one.

    Parameters
    ----------
    *shape : int
        Sizes.
    generator : Generator or None
        None is that of `rl.manual_seed`.
    **where
        dtype and device.

    Returns
    -------
    Tensor
        Numbers in [0, 1).

    Raises
    ------
    TypeError
        For a `generator` that is not a Generator.
    ValueError
        As `rl.rand`.

    Examples
    --------
    >>> uniform(2, generator=Generator().manual_seed(1)).shape
    (2,)
    """
    if generator is None:
        return _core.rand(*shape, **where)
    if not isinstance(generator, Generator):
        raise TypeError(f"[rand] generator: expected a Generator, got {type(generator).__name__}")
    seed, place = generator.get_state()
    drawn = _core._rand_at((seed, place), shape, **where)
    generator._move(seed, (place + 1) % 2**64)
    return drawn


def normal(*shape: int, generator: Generator | None, **where: Any) -> Tensor:
    """`rl.randn`, drawn from a generator if there is one: in float64, of two uniform numbers each (Box and Muller).

    Parameters
    ----------
    *shape : int
        Sizes.
    generator : Generator or None
        None is that of `rl.manual_seed`.
    **where
        dtype and device.

    Returns
    -------
    Tensor
        Standard normal numbers.

    Raises
    ------
    TypeError, ValueError
        As `uniform`.

    Examples
    --------
    >>> abs(normal(10000, generator=Generator().manual_seed(1), dtype="float32").std().item() - 1) < 0.05
    True
    """
    if generator is None:
        return _core.randn(*shape, **where)
    radius, turn = (uniform(*shape, generator=generator, **where | {"dtype": "float64"}) for _ in range(2))
    return ((-2 * (1 - radius).log()).sqrt() * (2 * math.pi * turn).cos()).to(where["dtype"])


@checked
def randperm(n: int, *, generator: Generator | None = None, device: str = "cpu") -> Tensor:
    """The integers below n in random order. Composed of two launches.

    Parameters
    ----------
    n : int
        How many.
    generator : Generator, optional
        Where the random numbers come from; by default that of `rl.manual_seed`.
    device : str
        Where.

    Returns
    -------
    Tensor
        (n,), int64.

    Raises
    ------
    ValueError
        For a negative n.

    Examples
    --------
    >>> import rooflab as rl
    >>> sorted(rl.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    return _core.argsort(uniform(n, generator=generator, device=device, dtype="float64"))


@checked
def bernoulli(p: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with probability p, else 0. Composed of seven launches.

    Parameters
    ----------
    p : Tensor
        (...), floating, from 0 to 1.
    generator : Generator, optional
        Where the random numbers come from.

    Returns
    -------
    Tensor
        (...), of p's dtype.

    Raises
    ------
    ValueError
        For integers, and for numbers that are not from 0 to 1. Reading this from the device waits for it.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.bernoulli(rl.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    if not p.dtype.is_floating_point:
        raise ValueError(f"[bernoulli] p: expected a floating-point dtype, got {p.dtype}")
    fits = ((p >= 0) & (p <= 1)).all()
    if _core._compiler.has_values(p) and not bool(fits):
        raise ValueError("[bernoulli] p: expected numbers from 0 to 1")
    return (uniform(*p.shape, generator=generator, device=p.device) < p.to("float32")).to(p.dtype)


@checked
def multinomial(
    p: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices drawn with probabilities that are proportional to p.

    Without replacement it takes the smallest of exponential numbers divided by p, as differences of logarithms, which
    stay in range. With replacement it takes the place of a random number in the running sum of p. The sum is of whole
    numbers, because these are exact on every device: what has no share gets none by rounding. The largest share is
    2^53 / N or half of that, and less than one counts as none. Composed of 13 launches, with replacement of eleven, and
    what is checked is read from the device once.

    Parameters
    ----------
    p : Tensor
        (N,) or (B, N), floating, not negative; each row has a number above 0.
    num_samples : int
        How many to draw from each row.
    replacement : bool
        Whether an index may be drawn again.
    generator : Generator, optional
        Where the random numbers come from.

    Returns
    -------
    Tensor
        (num_samples,) or (B, num_samples), int64.

    Raises
    ------
    ValueError
        For other shapes; for numbers that are negative or not finite, rows of zeros, and more samples than places
        that are not 0.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.multinomial(rl.tensor([0.0, 1.0, 0.0]), 2, replacement=True).tolist()
    [1, 1]
    """
    if p.ndim not in (1, 2) or not p.dtype.is_floating_point or num_samples < 1:
        raise ValueError(f"[multinomial] expected p (N,) or (B, N), floating, and samples, got {p.dtype} {p.shape}")
    p = p.detach().to("float64" if p.dtype == _core.float64 else "float32")
    least = 1 if replacement else num_samples
    if p.numel() == 0 or p.shape[-1] < least:
        raise _too_few(least)
    low, top = p.amin(-1, True), p.amax(-1, True)
    facts = _core.cat([low, top] if replacement else [low, top, (p > 0).sum(-1, True).to(p.dtype)], -1)
    draw = partial(uniform, generator=generator, device=p.device, dtype=p.dtype)
    if replacement:
        ends = (p / top * 2.0 ** (53 - p.shape[-1].bit_length())).to("int64").cumsum(-1)
        drawn = draw(*p.shape[:-1], num_samples, dtype="float64") * ends[..., -1:]  # below it, as it is at most 2^53
        drawn = _core._searchsorted(ends, drawn.to("int64"))
    else:
        noise = -draw(*p.shape).log()
        drawn = (noise.log() - p.log()).topk(num_samples, -1, largest=False).indices
    if _core._compiler.has_values(p):  # read last, so that a GPU has its work before the host waits
        lows, tops, *counts = facts.reshape(-1, facts.shape[-1]).cpu().numpy().T
        if not (lows.min() >= 0 and tops.max() < math.inf):
            raise ValueError("[multinomial] p: expected finite numbers that are not negative")
        if (counts[0] < least if counts else tops == 0).any():
            raise _too_few(least)
    return drawn


def _too_few(least: int) -> ValueError:
    return ValueError(f"[multinomial] p: expected rows with at least {least} numbers above 0")
