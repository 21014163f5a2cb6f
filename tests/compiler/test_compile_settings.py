"""What belongs to the process, a thread or a device: a compiled function that sets it runs as it is written."""

import warnings

import pytest

import rooflab as rl

X = rl.ones(2)
SETTINGS = {
    "manual_seed": lambda: rl.manual_seed(0),
    "get_rng_state": rl.get_rng_state,
    "set_rng_state": lambda: rl.set_rng_state((0, 0)),
    "set_num_threads": lambda: rl.set_num_threads(1),
    "set_cpu_isa": lambda: rl.set_cpu_isa(rl.cpu_isa()),
    "set_float32_matmul_precision": lambda: rl.set_float32_matmul_precision("highest"),
    "memory.set_limit": lambda: rl.memory.set_limit(None),
    "synchronize": rl.cuda.synchronize,
    "free_memory": rl.cuda.free_memory,
    "launch_empty": rl.cuda.launch_empty,
    **{f"memory.{name}": each for name, each in vars(rl._core.memory).items() if name[0].islower() and callable(each)},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_is_refused_while_a_function_is_recorded(name):
    arguments = (None,) if name == "memory.set_limit" and SETTINGS[name] is rl.memory.set_limit else ()
    refused = pytest.raises(ValueError, match=rf"\[{name}\] a program would not do it again")
    with rl._core._compiler.Trace("cpu"), refused:
        SETTINGS[name](*arguments)


def test_a_seed_is_set_at_each_call():
    def seeded(x):
        rl.manual_seed(0)
        return x * 2

    compiled, drawn = rl.compile(seeded), []
    with pytest.warns(UserWarning, match=r"seeded runs as it is written, op by op: \[manual_seed\]"):
        for _ in range(3):
            compiled(X)
            drawn.append(rl.rand(1).item())
    assert len(set(drawn)) == 1


@pytest.mark.parametrize(
    ("read", "put", "values"),
    [
        (rl.get_float32_matmul_precision, rl.set_float32_matmul_precision, ("highest", "high")),
        (rl.num_threads, rl.set_num_threads, (2, 1)),
    ],
    ids=["precision", "threads"],
)
def test_what_is_read_belongs_to_the_key(read, put, values):
    before = read()
    compiled = rl.compile(lambda x: x * (2.0 if read() == values[0] else 5.0))
    try:
        for value, expected in (*zip(values, (2.0, 5.0), strict=True), (values[0], 2.0)):
            put(value)
            assert compiled(X).tolist() == [expected] * 2
        assert len(compiled._programs) == 2
    finally:
        put(before)


def test_a_product_is_of_the_precision_at_the_call():
    a = rl.randn(64, 64)
    compiled = rl.compile(lambda a: a @ a)
    before = compiled(a)
    rl.set_float32_matmul_precision("medium")
    try:
        compiled(a)
    finally:
        rl.set_float32_matmul_precision("highest")
    assert compiled(a).tolist() == before.tolist() and len(compiled._programs) == 2


def test_a_grad_mode_that_is_left_changed():
    """It is what it was before the recording when the function then runs as it is written."""

    def turns(x):
        rl.set_grad_enabled(not rl.is_grad_enabled())
        return x * 2

    compiled = rl.compile(turns)
    try:
        with pytest.warns(UserWarning, match="leaves grad mode or autocast changed"):
            compiled(X)
        assert not rl.is_grad_enabled()
        rl.set_grad_enabled(True)
        compiled(X)
        assert not rl.is_grad_enabled()
    finally:
        rl.set_grad_enabled(True)


def test_an_autocast_that_is_left_open():
    entered = []

    def enters(x):
        entered.append(rl.autocast("bfloat16"))
        entered[-1].__enter__()
        return x @ x

    x = rl.ones(2, 2)
    compiled = rl.compile(enters)
    with pytest.warns(UserWarning, match="leaves grad mode or autocast changed"):
        compiled(x)
    assert str((x @ x).dtype) == "bfloat16"
    entered[-1].__exit__()
    assert str((x @ x).dtype) == "float32"


def test_a_mode_that_is_left_as_it_was_is_recorded():
    def function(x):
        with rl.no_grad(), rl.autocast("bfloat16"):
            y = x @ x
        rl.set_grad_enabled(rl.is_grad_enabled())
        return y + x @ x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rl.compile(function)(rl.ones(2, 2)).tolist() == [[4.0] * 2] * 2
