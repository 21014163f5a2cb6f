"""The calls that tests of every op make: each sample of each op of rooflab.specs, as tensors of every layout."""

import functools

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import INTEGER, all_specs, itemsize
from rooflab.testing import assert_close, to_float64

SPECS = all_specs()
LAYOUTS = ("contiguous", "transposed", "strided")


def read_only(samples):
    """The samples as a tuple that tests can share."""
    made = tuple(samples)
    for sample in made:
        for array in (a for a in sample.args if isinstance(a, np.ndarray)):
            array.flags.writeable = False
    return made


@functools.cache
def samples_of(name):
    """The samples of an op, made once."""
    return read_only(SPECS[name].samples(np.random.default_rng(0)))


def cases():
    """One case per sample, for tests that call every rung."""
    for name, spec in SPECS.items():
        for dtype in spec.dtypes:
            for i, sample in enumerate(samples_of(name)):
                yield pytest.param(name, dtype, i, id=f"{name}-{dtype}-{sample.label}")


def dtypes_of_ops():
    """One case per op and dtype, for tests so short that thousands of cases would cost more than the work."""
    return [pytest.param(name, dtype, id=f"{name}-{dtype}") for name, spec in SPECS.items() for dtype in spec.dtypes]


def to_integers(array, dtype):
    """Infinities become the extremes of the dtype, NaN becomes 0."""
    whole, limits = np.where(np.isfinite(array), array, 0).astype(dtype), np.iinfo(dtype)
    whole[np.isposinf(array)], whole[np.isneginf(array)] = limits.max, limits.min
    return whole


def lay_out(array, dtype, device, layout):
    """The array as a tensor whose memory is laid out as asked, with sentinels where no element lies."""
    if array.dtype != np.float64:
        dtype = str(array.dtype)
    if dtype in INTEGER:
        array = to_integers(array, dtype)
    tensor = rl.tensor(np.ascontiguousarray(array), dtype=dtype, device=device)
    if layout == "transposed" and array.ndim >= 2:
        axes = (*range(array.ndim - 2), array.ndim - 1, array.ndim - 2)
        return tensor.permute(*axes).clone().permute(*axes)
    if layout == "strided" and array.ndim >= 1:
        room = rl.full(
            (*array.shape[:-1], 2 * array.shape[-1]), 1 if dtype == "bool" else 77, dtype=dtype, device=device
        )
        view = room[..., ::2]
        view.copy_(tensor)
        return view
    return tensor


def tensors_of(sample, dtype, device, layout="contiguous"):
    """A sample's operands."""
    return [lay_out(a, dtype, device, layout) if isinstance(a, np.ndarray) else a for a in sample.args]


def rungs(spec, device):
    if spec.name in rl.ops():
        return [variant.name for variant in rl.variants(spec.name, device)]
    return [""]


def of_each_rung(name, device, call):
    """The name of each rung that takes the operands, and what `call(variant)` gives by it."""
    found = []
    for rung in rl.variants(name, device):
        try:
            found.append((rung.name, call(rung.name)))
        except ValueError as error:
            if not accepts_nothing(error):
                raise
    assert found
    return found


def prepared(spec, tensors, sample):
    return spec.prepare(*tensors, **sample.kwargs) if spec.prepare else tensors


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def allowed_of(spec, dtype, sample, variant, results):
    """The tolerance of each result; one may stand for all."""
    allowed = spec.allowed(dtype, sample, variant)
    return allowed * len(results) if len(allowed) == 1 else allowed


def accepts_nothing(error):
    return "does not accept these operands" in str(error)


SENTINEL = 0x5A
LARGEST_FENCED = 2**19  # bytes; a segment of the allocator holds three such blocks


class Fence:
    """Memory that the next results of these sizes are put into, with sentinels around each.

    Three blocks that touch are filled; the middle one is freed, where the allocator puts the next tensor of its size.
    """

    def __init__(self, sizes, device):
        self.sizes, self.device, self.beside, self.middles = sizes, device, [], []
        for size in sizes:
            if 0 < size < LARGEST_FENCED:
                below, middle, above = self._three_that_touch(size)
                self.beside += below, above
                self.middles.append(middle)
        self.places = {x.data_ptr(): x.numel() for x in self.middles}

    def _filled(self, count):
        return rl.full((count,), SENTINEL * 0x01010101, dtype="int32", device=self.device)

    def _three_that_touch(self, size):
        step = 256 if size < 4096 else 4096  # what the allocator rounds to; it keeps sizes below 4096 apart
        rounded, held = -(-size // step) * step, {}
        count = (rounded if size >= 4096 else min(rounded, 4092)) // 4
        for _ in range(2000):
            x = self._filled(count)
            held[x.data_ptr()] = x
            for first in range(x.data_ptr() - 2 * rounded, x.data_ptr() + rounded, rounded):
                if all(first + i * rounded in held for i in range(3)):
                    return [held[first + i * rounded] for i in range(3)]
        raise AssertionError("no three blocks touch")

    def open(self):
        """Fill the places anew and free them."""
        if not self.middles:
            self.middles = [self._filled(n) for n in self.places.values()]
        if {x.data_ptr() for x in self.middles} != set(self.places):  # others were freed last
            self.__init__(self.sizes, self.device)
        self.middles.clear()

    def check(self, results, name, composed):
        """Check that nothing was written beside the results. `results` has the last references to them, and is emptied.

        The results must lie between the sentinels unless `composed`, because then ops on the way may take their places.
        """
        sizes = {x.data_ptr(): x.nbytes for x in results if 0 < x.nbytes < LARGEST_FENCED}
        results.clear()
        for x in self.beside:
            assert (x.cpu().numpy().view(np.uint8) == SENTINEL).all(), f"{name} wrote beside its result"
        if composed:
            return
        assert set(sizes) == set(self.places), f"{name}: the result does not lie between the sentinels"
        again = [rl.empty(n, dtype="int32", device=self.device) for n in self.places.values()]
        for x in again:  # in the same places: what lies between a result's end and the next sentinel
            end = x.cpu().numpy().view(np.uint8)[sizes[x.data_ptr()] :]
            assert (end == SENTINEL).all(), f"{name} wrote behind its result"


class Expected:
    """What an op must return for a sample in a dtype, computed once for all devices, layouts and instruction sets."""

    def __init__(self, spec, dtype, sample):
        self.spec, self.dtype, self.sample = spec, dtype, sample
        self.exact = [to_float64(x) if isinstance(x, rl.Tensor) else x for x in tensors_of(sample, dtype, "cpu")]
        with np.errstate(all="ignore"):
            self.results = as_tuple(spec.reference(*self.exact, **sample.kwargs))
        self.dtypes = as_tuple(spec.result_dtype(dtype)) * len(self.results)
        self.allowed = {}

    def allowed_of(self, variant):
        rule = "v0_composed" if variant == "v0_composed" else ""
        if rule not in self.allowed:
            self.allowed[rule] = allowed_of(self.spec, self.dtype, self.sample, rule, self.results)
        return self.allowed[rule]

    def check(self, device, layout="contiguous"):
        """Compare every rung that takes the sample, and the default one, with the reference."""
        tensors, kwargs, ran = tensors_of(self.sample, self.dtype, device, layout), self.sample.kwargs, []
        operands = prepared(self.spec, tensors, self.sample)
        sizes = [np.size(right) * itemsize(dtype) for right, dtype in zip(self.results, self.dtypes, strict=False)]
        fence = Fence(sizes, device)
        for variant in [*rungs(self.spec, device), ""]:
            options = {"variant": variant} if variant else {}
            label = f"{self.spec.name} {self.sample.label} {variant or 'default'} {layout} {rl.cpu_isa()}"
            fence.open()
            try:
                results = list(as_tuple(self.spec.fn(*operands, **kwargs, **options)))
            except ValueError as error:
                if not variant or not accepts_nothing(error):
                    raise
                continue
            ran.append(variant)
            # The default is the first rung that takes the operands.
            allowed = self.allowed_of(variant or ran[0])
            for i, (right, (rtol, atol)) in enumerate(zip(self.results, allowed, strict=True)):
                assert results[i].dtype == self.dtypes[i], label
                assert results[i].device.startswith(device), label
                assert_close(results[i], right, rtol=rtol, atol=atol, name=f"{label} result {i}")
            fence.check(results, label, "v0_composed" in (variant, ran[0]) or layout != "contiguous")
        for tensor, before in zip(tensors, self.exact, strict=True):
            if isinstance(tensor, rl.Tensor):
                assert_close(tensor, before, rtol=0, atol=0, name=f"{label} wrote into its input:")
