"""Functions that tests of rl.compile share, and how the tests check them."""

import pytest

import rooflab as rl
from rooflab import _core
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64


def gelu_of_eight(x):
    return 0.5 * x * (1 + rl.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def mlp(x, gate, up, down):
    return (rl.silu(x @ gate) * (x @ up)) @ down


def swish_with_bias(x, bias, scale=1.5):
    y = x * scale + bias
    return y * rl.sigmoid(y), rl.where(y > 0, y, 0.0)


def counted(function, *args):
    with rl.count() as c:
        result = function(*args)
    return c, result


def as_list(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def check_same(function, *args, dtype="float32", steps=12, variant="", atol=1e-30, **kwargs):
    """Compare the results of the compiled function with the function's, within `steps` roundings of the dtype."""
    wanted = as_list(function(*args, **kwargs))
    found = as_list(rl.compile(function, variant=variant)(*args, **kwargs))
    assert len(found) == len(wanted)
    for y, expected in zip(found, wanted, strict=True):
        assert (y.dtype, y.shape, y.device) == (expected.dtype, expected.shape, expected.device)
        floating = expected.dtype.is_floating_point
        assert_close(y, to_float64(expected), rtol=steps * unit_roundoff(dtype) if floating else 0, atol=atol)


def chains(function, *args, width, **layout):
    """The sources of the function's chains."""
    trace = _core._compiler.Trace(args[0].device)
    with trace:
        twins = [trace.argument(x) for x in args]
        results = [trace.view(y) for y in as_list(function(*twins))]
    inputs = [trace.view(twin) for twin in twins]
    steps = [(list(range(len(trace.calls))), [y.storage for y in results])]
    return _core._compiler.Program(trace, inputs, steps, results).cuda_sources(width, **layout)


def compiled(source, architecture="sm_90"):
    """PTX. NVRTC takes the source without a warning; the test is skipped where there is none."""
    compiler = _core._compiler
    try:
        log, image, ptx = _core.cuda.compile_source(
            source, [*compiler.cuda_options(), f"-arch={architecture}"], compiler.cuda_headers()
        )
    except rl.CudaError as missing:
        pytest.skip(str(missing))
    assert image, log
    assert not log, log
    return ptx
