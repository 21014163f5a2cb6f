"""The runtime counts what was done in the worker exactly as it would be counted without any recording."""

import dataclasses
import subprocess
import sys
import types

from grading.demo_lab import TRUSTED, demo_lab, with_answers

import rooflab as rl
from rooflab import _core
from rooflab.grading.judge.judge import Judge
from rooflab.grading.replay import core_calls

CALLS = """
import numpy as np
import rooflab as rl
WEIGHT = rl.ones((5, 5), requires_grad=True)
TURNED = WEIGHT.detach().T
class Square(rl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.beside = x * 2
        return x * x
    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return rl.exp(x) * dy + ctx.beside
def chain(a, b):
    return rl.tanh(a @ b) * 2 + 1
known = rl.compile(chain)
def in_place(a, b):
    y = a @ b
    y += 1
    y[0] = 7.0
    y[:, 1:3] = rl.zeros((y.shape[0], 2))
    return [row * 2 for row in y]
def with_global(a, b):
    return {"y": (a @ b) @ WEIGHT + rl.matmul(TURNED, WEIGHT.detach()).sum(), "n": a.shape[0]}
def random(a, b):
    rl.manual_seed(3)
    return rl.randn(4, 5) + rl.cat([b, rl.rand(4, 5)])[2:6]
def casts(a, b):
    with rl.autocast(), rl.no_grad():
        return (a @ b).float().to("float64")
def downloads(a, b):
    return float((a @ b).sum()), a.numpy().sum(), [a.tolist()[0], f"{b[0, 0]}"]
def numpy_writes(a, b):
    y = rl.zeros((3, 5))
    y.numpy()[:] = np.arange(15.0).reshape(3, 5) + 0 * (a.numpy() @ b.numpy())
    return y + rl.tensor(np.eye(3, 5, dtype="float32"))
def catches(a, b):
    try:
        return a @ a
    except ValueError:
        return rl.gelu(b)
def graph(a, b):
    captured = rl.Graph(device="cpu")
    with captured.capture():
        y = rl.gelu(a @ b)
    captured.replay()
    captured.replay()
    return y
def custom(a, b):
    return Square.apply(a @ b) @ WEIGHT.detach()
def again(a, b):
    return rl.autograd.checkpoint(lambda x: rl.exp(rl.sin(rl.exp(x @ b))), a)
def within(a, b):
    x = (a @ b).detach().requires_grad_()
    Square.apply(rl.tanh(x)).sum().backward()  # what it saved is gone then
    (slope,) = rl.autograd.grad(rl.gelu(x).sum(), x)
    return x.grad, rl.cat([slope] * 9)  # where most memory is held
def frees(a, b):
    y = Square.apply((a @ b).detach().requires_grad_())
    del y  # and what its backward pass would have called
    return rl.tanh(a @ b) * 2
def compiles(a, b):
    return rl.compile(chain)(a, b)
def compiled(a, b):
    return known(a, b)
halves = rl.compile(lambda x: rl.tanh(x) * 2)
def compiled_part(a, b):
    return halves(a @ b) + 1
rl.manual_seed(5)  # a test cell draws its own weights otherwise
layer = rl.nn.Linear(4, 5)
of_layer = rl.compile(lambda a: rl.tanh(layer(a)) * 2)
def compiled_layer(a, b):
    return of_layer(a)
class Settings:
    slope = 2.0
settings = Settings()
steep = rl.compile(lambda x, settings: rl.tanh(x * np.pi) * settings.slope + 1)
def compiled_often(a, b):
    y = a @ b
    for settings.slope in [2.0] * 10 + [3.0]:  # more often than values are compared, then with another one
        y = steep(y, settings)
    return y
BEFORE = rl.range("before")
def ranges(a, b):
    with BEFORE, rl.range("outer"):
        y = rl.tanh(a @ b)
        with rl.range("inner"):
            z = rl.tanh(y)
        y = rl.tanh(z)
    with BEFORE:
        return rl.tanh(y) + 1
def left_early(a, b):
    outer, inner = rl.range("outer"), rl.range("inner")
    outer.__enter__(), inner.__enter__()
    y = a @ b
    try:
        outer.__exit__(None, None, None)
    except ValueError:
        return y + 1
def raises(a, b):
    try:
        with rl.range("outer"):
            a @ a
    except ValueError:
        return rl.exp(b)
def recordings(a, b):
    with rl.memory.record("meta") as first:
        x = rl.ones(1000, device="meta")
        with rl.memory.record("meta") as second:
            y = x * 2 + 1
    return a @ b
COUNTED = [ranges, left_early, raises, recordings]
COUNTED += [in_place, with_global, random, casts, downloads, numpy_writes, catches, graph, within, frees, compiles,
           compiled, compiled_layer, compiled_often]
PASSES = [chain, custom, again, compiled, compiled_part]
def gemm(which, a, b):
    return globals()[which](a, b)
"""
COMPARES = """
import gc
import numpy as np
from rooflab.grading import measure
theirs, here = gemm, {}
exec(CALLS, here)
ours = here["gemm"]
def bits(value):
    if isinstance(value, rl.Tensor):
        contents = value.detach().numpy().tobytes() if value.device == "cpu" else value.device
        return value.shape, str(value.dtype), contents
    if isinstance(value, (list, tuple, dict)):
        return [bits(one) for one in (value.values() if isinstance(value, dict) else value)]
    return value
def counts(seen):
    beside = ("value", "host_bytes", "uploaded_bytes", "downloaded_bytes", "meta_calls")
    return {name: one for name, one in vars(seen).items() if name not in beside}
def check(kind, which, *args, **options):
    gc.collect(), gc.disable()
    for _ in range(2):
        args = [drawn(*one.shape) if one.device == "cpu" else one for one in args]  # no code may get numbers twice
        local, graded = (getattr(measure, kind)(fn, which, *args, **options) for fn in (ours, theirs))
        passes = [("", local, graded)]
        if kind == "gradients":
            passes = [(name, getattr(local, name), getattr(graded, name)) for name in ("forward", "backward")]
            assert local.saved == graded.saved, which
            assert bits(local.gradients) == bits(graded.gradients), which
        for name, one, other in passes:
            assert counts(one) == counts(other), (which, name, counts(one), counts(other))
        assert bits(local.value) == bits(graded.value), (which, local.value, graded.value)
    gc.enable()
    return graded
rng = np.random.default_rng(1)
def drawn(*shape):
    return rl.tensor(rng.standard_normal(shape), dtype="float32")
a, b = drawn(3, 4), drawn(4, 5)
"""
CHECKS = """
for fn in here["COUNTED"]:
    seen = check("count", fn.__name__, a, b)
    crossed = {"numpy_writes": (120, 188), "downloads": (0, 4 + 48 + 48 + 4)}
    if fn.__name__ in crossed:
        assert (seen.uploaded_bytes, seen.downloaded_bytes) == crossed[fn.__name__], (fn.__name__, seen)
inside = {"matmul": 1, "tanh": 2}, {"tanh": 1}, {"tanh": 1, "add": 1}
assert check("count", "ranges", a, b).by_range == dict(zip(("before/outer", "before/outer/inner", "before"), inside))
assert check("count", "left_early", a, b).by_range == {"outer/inner": {"matmul": 1}, "": {"add": 1}}
assert check("count", "recordings", a, b).recordings == ((4000, 8000, 8000), (0, 12000, 8000))
assert check("count", "with_global", a, b).uploaded_bytes == 100, "one matrix, and a view of it"
for fn in here["PASSES"]:
    check("gradients", fn.__name__, a, b, upstream=rl.ones((3, 5)))
assert measure.launched(theirs, "in_place", a, b) == measure.launched(ours, "in_place", a, b) != ()
there = [rl.empty(*shape, device=rl.meta("H200")) for shape in ((300, 400), (400, 500))]
seen = check("count", "chain", *there)
assert seen.macs == 300 * 400 * 500 and seen.meta_calls > 0
"""
SAVED = """
from rooflab.grading import measure
seen = measure.saved(gemm, rl.tensor([1.0, 2.0, 3.0]))
assert [one.tolist() for one in seen.tensors] == [[1, 2, 3]] and seen.value.tolist() == [1, 4, 9]
assert seen.forward.launches == 2 and seen.forward.largest_bytes == 12 and seen.forward.uploaded_bytes == 0
"""


def grade(code, test):
    lab = demo_lab()
    changed = {"source": "import rooflab as rl\n" + test, "options": {"seconds": 60}}
    cells = tuple(dataclasses.replace(c, **changed) if c.key == "q1_test" else c for c in lab.cells)
    lab = dataclasses.replace(lab, cells=cells)
    (result,) = Judge(lab, TRUSTED).grade_question("q1", with_answers(lab, {"q1": code})).tests
    return result.message


def test_every_counter_is_that_of_a_local_measurement():
    assert grade(CALLS, f"CALLS = {CALLS!r}" + COMPARES + CHECKS) == ""


def test_what_a_function_saved_is_what_its_trace_saves():
    assert grade(CALLS + "gemm = Square\n", SAVED) == ""
    counted = "from rooflab.grading import measure\nmeasure.count(gemm, 1, 2)"
    assert "a value of type object. Use" in grade("def gemm(a, b):\n    return object()", counted)
    history = "import rooflab as rl\nw = rl.ones(3, requires_grad=True) * 2\ndef gemm(x):\n    return x + w"
    said = grade(history, "from rooflab.grading import measure\nmeasure.count(gemm, rl.ones(3))")
    assert said.startswith("The call could not be counted: the function used a tensor from before the call")


DECODES = """
def decodes(tokens):
    sizes = {"hidden_size": 32, "intermediate_size": 48, "head_dim": 16, "num_hidden_layers": 3, "vocab_size": 50}
    config = rl.nn.Gemma3Config(num_attention_heads=2, num_key_value_heads=1, **sizes)
    model = rl.nn.Gemma3ForCausalLM(config, dtype="float32")
    cache = rl.nn.KVCache(config, 1, 8, dtype="float32")
    model.prefill(tokens[:, :3], cache)
    return model.decode(tokens[:, 3:], cache)
"""


def test_a_decode_step_is_counted_as_it_is_without_a_judge():
    compares = """
from rooflab.grading import measure
seen = measure.count(gemm, rl.tensor([[1, 2, 3, 4]]))
with rl.count() as right:
    decodes(rl.tensor([[1, 2, 3, 4]]))
assert (seen.launches, seen.flops) == (right.launches, right.flops), f"{seen.launches}, expected {right.launches}"
"""
    code = "import rooflab as rl\n" + DECODES.replace("def decodes", "def gemm")
    assert grade(code, DECODES + compares) == ""


def test_every_function_of_the_core_is_recorded_or_listed_as_not():
    """A new op that is in no list would be counted as an upload when it is graded."""
    known = {*core_calls.FUNCTIONS, *core_calls.METHODS, *core_calls.UNRECORDED}
    known |= {f"Tensor.{name}" for name in (*core_calls.GETTERS, *core_calls.SETTERS)}
    modules = {"": _core}
    modules |= {f"{name}.": getattr(_core, name) for name in ("_autograd", "_autocast", "_gemma3", "cuda")}
    found = {
        prefix + name
        for prefix, module in modules.items()
        for name, value in vars(module).items()
        if isinstance(value, types.BuiltinFunctionType | types.FunctionType)
    }
    found |= {  # but for what Python code composes of calls that are recorded
        f"Tensor.{name}"
        for name, value in vars(rl.Tensor).items()
        if (callable(value) or isinstance(value, property))
        and not isinstance(getattr(value, "fget", value), types.FunctionType)
    }
    assert found - known - {*core_calls.REFUSED} == set()
    assert {name for name in known if not name.startswith("Tensor.")} - found == set()
    assert known.isdisjoint(core_calls.REFUSED)


def test_what_is_not_measured_is_only_forwarded():
    """There is a wrapper wherever a module held a function already, and it changes nothing."""
    code = """
import rooflab as rl, inspect, copy
from rooflab.nn.utils import clip_grad
from rooflab.grading.replay import recorder
before = (rl.matmul, rl.gelu(rl.ones(3)).tolist(), rl.gelu.__doc__)
made = recorder.install()
x = rl.ones(3, requires_grad=True)
assert rl.matmul is not before[0] and rl.matmul.__wrapped__ is before[0] and rl.gelu.__doc__ == before[2]
assert clip_grad.stack is rl.stack is rl._core.stack and clip_grad._sum_squares.__wrapped__
assert rl.gelu(x.detach()).tolist() == before[1] and hash(x) == hash(x) and x.T.shape == (3,)
(x * 2).sum().backward()
assert x.grad.tolist() == [2, 2, 2] and copy.deepcopy(x).requires_grad
x.grad = None
try:
    x + "text"
except TypeError:
    print(x.grad, made.trace)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "None None\n", done.stderr
