"""rl.compile: a program that was recorded with operands at one address takes others at any, with their gradients."""

import numpy as np
import pytest

import rooflab as rl
import rooflab.nn.functional as F
from rooflab.specs import unit_roundoff

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns

FUNCTIONS = {
    "amax": (lambda x: rl.amax(x, -1), [(64, 128)]),
    "attention": (lambda q, k, v: rl.attention(q, k, v, is_causal=True), [(2, 4, 32, 64)] * 3),
    "cat": (lambda x, y: rl.cat([x, y], -1), [(64, 128), (64, 64)]),
    "cumsum": (lambda x: rl.cumsum(x, -1), [(64, 128)]),
    "gelu": (lambda x: rl.gelu(x), [(64, 128)]),
    "layer_norm": (lambda x, w, b: rl.layer_norm(x, w, b), [(64, 128), (128,), (128,)]),
    "linear": (lambda x, w, b: F.linear(x, w, b), [(64, 128), (256, 128), (256,)]),
    "log_softmax": (lambda x: rl.log_softmax(x, -1), [(64, 128)]),
    "logsumexp": (lambda x: rl.logsumexp(x, -1), [(64, 128)]),
    "matmul": (lambda x, w: x @ w, [(64, 128), (128, 256)]),
    "rms_norm": (lambda x, w: rl.rms_norm(x, w, 1e-6), [(64, 128), (128,)]),
    "rms_norm of long rows": (lambda x, w: rl.rms_norm(x, w, 1e-6), [(2, 20000), (20000,)]),
    "relu": (lambda x: rl.relu(x), [(64, 128)]),
    "softmax": (lambda x: rl.softmax(x, -1), [(64, 128)]),
    "softmax of columns": (lambda x: rl.softmax(x, 0), [(64, 128)]),
    "sort": (lambda x: rl.sort(x, -1)[0], [(64, 128)]),
    "written out": (lambda x: x / rl.exp(x - x.amax(-1, keepdim=True)).sum(-1, keepdim=True), [(256, 128)]),
}
ELEMENTS = 1 << 17


def at(memory, offset, shape):
    """A tensor of the shape that begins `offset` elements into the memory, and requires grad."""
    elements = int(np.prod(shape))
    return memory[offset : offset + elements].reshape(*shape).detach().requires_grad_()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_results_and_gradients(name, dtype, device):
    function, shapes = FUNCTIONS[name]
    memory = rl.tensor(np.random.default_rng(0).standard_normal(ELEMENTS), device=device).to(dtype)
    compiled = rl.compile(function)
    for offset in (0, 8, 1, 3):
        tensors = [at(memory, offset + 16 * i, shape) for i, shape in enumerate(shapes)]
        made = [compiled(*tensors), function(*tensors)]
        upstream = at(memory, offset and offset + 2, made[0].shape).detach()
        found, expected = ([y, *rl.autograd.grad(y, tensors, upstream)] for y in made)
        for x, y in zip(found, expected, strict=True):
            x, y = (t.detach().to("float32").cpu().numpy() for t in (x, y))
            np.testing.assert_allclose(x, y, atol=64 * unit_roundoff(dtype) * max(1, abs(y).max()), rtol=0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_gpu_launches_the_same_kernels(name):
    """A bias is the only operand that is copied: see matmul_bias."""
    function, shapes = FUNCTIONS[name]
    memory = rl.empty(ELEMENTS, dtype="bfloat16", device=rl.meta("H200"))
    compiled, launches = rl.compile(function), set()
    for offset in (0, 8, 1, 3):
        tensors = [at(memory, offset, shape) for shape in shapes]
        with rl.count() as c:
            y = compiled(*tensors)
            rl.autograd.grad(y, tensors, at(memory, offset, y.shape).detach())
        launches.add(c.launches - (name == "linear" and offset % 8 > 0))
    assert len(launches) == 1
