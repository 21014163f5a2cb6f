"""The launches counted by op are those that CUPTI saw, for every op, rung and backward of rooflab.specs."""

from collections import Counter

import numpy as np
import pytest
from ops.samples import SPECS, accepts_nothing, as_tuple, lay_out, prepared, rungs

import rooflab as rl

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _needs_cupti():
    with rl.profile() as prof:
        rl.ones(1, device="cuda")
    if prof.source != "cupti":
        pytest.skip(prof.reason)


def calls(spec, dtype):
    """Calls of the op by each of its rungs, without arguments."""
    for sample in spec.samples(np.random.default_rng(0)):
        tensors = [lay_out(a, dtype, "cuda", "contiguous") if isinstance(a, np.ndarray) else a for a in sample.args]
        operands = prepared(spec, tensors, sample)
        for variant in ["", *rungs(spec, "cuda")]:
            options = {"variant": variant} if variant else {}

            def call(operands=operands, sample=sample, options=options):
                try:
                    return spec.fn(*operands, **sample.kwargs, **options)
                except ValueError as error:
                    if not options or not accepts_nothing(error):
                        raise

            yield call


def backwards(spec, dtype):
    for sample in spec.differentiable(np.random.default_rng(0)):
        leaves = [lay_out(a, dtype, "cuda", "contiguous") if isinstance(a, np.ndarray) else a for a in sample.args]
        for leaf in leaves:
            if isinstance(leaf, rl.Tensor) and leaf.dtype == dtype:
                leaf.requires_grad_()
        y = as_tuple(spec.fn(*leaves, **sample.kwargs))[0]
        dy = rl.ones(*y.shape, dtype=y.dtype, device="cuda")
        yield lambda y=y, dy=dy: y.backward(dy)


def check(calls):
    with rl.profile() as prof, rl.count() as c:
        for call in calls:
            call()
    assert prof.dropped == 0
    kernels = [kernel for kernel in prof.kernels if not kernel.name.startswith(("memcpy", "memset"))]
    assert all(kernel.op for kernel in kernels), "a kernel that no op launched"
    assert Counter(kernel.op for kernel in kernels) == {
        op: counts.launches for op, counts in c.by_op.items() if counts.launches
    }
    assert len(prof.kernels) == c.host_calls or any("library" in kernel.kernel for kernel in prof.kernels)


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, spec in SPECS.items() for dtype in spec.dtypes])
def test_launches_of_an_op(name, dtype):
    check(list(calls(SPECS[name], dtype)))


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.differentiable])
def test_launches_of_a_backward(name):
    check(list(backwards(SPECS[name], "float32")))
