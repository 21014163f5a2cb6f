"""Tensors, gradients and graphs that several Python threads use at once: none is corrupted, nobody waits for ever."""

import subprocess
import sys

import pytest

START = """
import sys, threading, time
import numpy as np
import rooflab as rl
sys.setswitchinterval(1e-6)
errors = []

def together(*functions):
    def run(function):
        try:
            function()
        except ValueError as error:  # an op in another thread has the memory: no reason to end
            if "in place" not in str(error):
                errors.append(error)
        except Exception as error:
            errors.append(error)
    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def run(code):
    """Run a script in its own process, which a crash or a deadlock ends."""
    code = START + code + "\nassert not errors, errors[0]"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


READS = {
    "an operand": "rl.add(h, ones)",
    "an operator": "h * ones; 2 - h; -h",
    "a list": "rl.cat([h, h])",
    "a method": "h.softmax(); h.sum(); h.reshape(2, 2)",
    "optional": "rl.rms_norm(h, h); rl.layer_norm(h, h, h)",
    "its values": "h.numpy if h.requires_grad else 0; h.detach().tolist()",
    "a conversion": "h.to('float64'); h.double(); h.clone(); rl.tensor(h.detach())",
    "an index": "h[[0, 1]]; rl.where(h > 0, h, h)",
    "its gradient": "rl.autograd.grad([h.sum()], [w], retain_graph=True)",
}


@pytest.mark.slow(id=[*READS][1:])
@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_tensor_is_read_while_another_thread_replaces_it(read):
    run(f"""
ones = rl.ones(4)
for _ in range(40):
    w = rl.ones(4, requires_grad=True)
    h = w * 2
    def reads():
        for _ in range(60):
            {read}
    def writes():
        global h
        for _ in range(60):
            h += 1
    together(reads, writes)
""")


def test_a_write_in_place_is_not_lost_or_refused_in_one_thread():
    run("""
w = rl.ones(4, requires_grad=True)
h = w * 2
for _ in range(100):
    h += 1
h += h
assert h.tolist() == [204.0] * 4
h.sum().backward()
assert w.grad.tolist() == [4.0] * 4
""")


FOREIGN = """
class Foreign(rl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, dy):
        return rl.from_dlpack(np.ones(1, "f4"))
"""


def test_a_gradient_of_another_library_dies_while_others_read_it():
    run(
        FOREIGN
        + """
x, done = rl.ones(1, requires_grad=True), threading.Event()
def backward():
    for _ in range(300):
        Foreign.apply(x).backward()
    done.set()
def poll():
    while not done.is_set():
        x.grad
together(backward, poll)
assert x.grad.item() == 300
"""
    )


def test_a_gradient_of_another_library_dies_where_python_replaces_it():
    run(
        FOREIGN
        + """
x = rl.ones(1, requires_grad=True)
def backward():
    for _ in range(200):
        Foreign.apply(x).backward()
def replace():
    for _ in range(200):
        x.grad = rl.from_dlpack(np.ones(1, "f4"))
        x.grad = None
together(backward, backward, replace)
"""
    )


def test_threads_go_backward_through_one_graph():
    run("""
for _ in range(60):
    w = rl.ones(64, requires_grad=True)
    trunk = rl.exp(rl.sin(w * 0.5) * w)
    heads = [(trunk * k).sum() for k in range(4)]
    def backward(head):
        try:
            head.backward(retain_graph=True)
        except ValueError as error:
            errors.append(error)
    together(*[lambda head=head: backward(head) for head in heads])
    want = rl.ones(64, requires_grad=True)
    (rl.exp(rl.sin(want * 0.5) * want) * 6).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), want.grad.numpy(), rtol=1e-5)
""")


def test_one_of_several_threads_gets_what_a_graph_has_saved():
    """Without retain_graph the others may come too late, which is an error, and no crash."""
    run("""
for _ in range(200):
    w = rl.ones(64, requires_grad=True)
    y = rl.exp(rl.sin(w))
    done = []
    def backward():
        try:
            y.sum().backward()
            done.append(1)
        except ValueError as error:
            assert "was freed by an earlier backward" in str(error)
    together(backward, backward, backward)
    assert done
""")


def test_threads_go_backward_through_one_checkpoint():
    run("""
for _ in range(30):
    w = rl.ones(64, requires_grad=True)
    y = rl.autograd.checkpoint(lambda x: rl.exp(rl.sin(rl.exp(x))), w * 0.1)
    together(*[lambda: y.sum().backward(retain_graph=True) for _ in range(3)])
    want = rl.ones(64, requires_grad=True)
    (rl.exp(rl.sin(rl.exp(want * 0.1))) * 3).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), want.grad.numpy(), rtol=1e-5)
""")


def test_settings_change_while_other_threads_run_ops():
    run("""
x, done = rl.randn(300, 300), threading.Event()
want = (x.numpy().astype("f8") @ x.numpy())
def change():
    end = time.monotonic() + 1
    while time.monotonic() < end:
        for threads in (1, 2, 3):
            rl.set_num_threads(threads)
    done.set()
def work():
    while not done.is_set():
        np.testing.assert_allclose(rl.matmul(x, x).numpy(), want, atol=1e-2)
together(change, work, work)
""")
