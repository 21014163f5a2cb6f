"""What several Python threads do at once, for ThreadSanitizer (.ci/tsan): it fails for each race that it sees."""

import threading
import time

import rooflab as rl

SECONDS = 3


def together(*functions):
    def run(function):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            function()

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def can_run(isa):
    try:
        rl.set_cpu_isa(isa)
    except ValueError:
        return False
    return True


ISAS = [isa for isa in ("baseline", "avx2", "neon", "neon_bf16") if can_run(isa)]
x, leaf = rl.randn(300, 300), rl.ones(64, requires_grad=True)
trunk = rl.exp(leaf * 0.5)
meta = rl.meta("H200")


def ops():
    (rl.matmul(x, x) + 1).sum(dim=0)
    rl.softmax(x)


def settings():
    for threads in (1, 2, 3):
        rl.set_num_threads(threads)
    for isa in ISAS:
        rl.set_cpu_isa(isa)


def backward():
    (trunk * 2).sum().backward(retain_graph=True)
    (leaf * 2).sum().backward()


def gradients():
    assert leaf.grad is None or leaf.grad.shape == (64,)


def versions():
    y = rl.ones(8)
    y += 1
    rl.exp(trunk)


def counted():
    with rl.count() as c, rl.range("counted"), rl.memory.record():
        rl.ones(8) + 1
    assert c.launches >= 2


def captured():
    graph = rl.Graph(device="cpu")
    with graph.capture():
        y = rl.ones(8) + rl.randn(8)
    graph.replay()
    y.tolist()


def on_meta():
    rl.empty(64, 64, device=meta) @ rl.empty(64, 64, device=meta)


together(ops, ops, settings)
together(backward, backward, gradients, versions)
together(counted, captured, on_meta, ops)
with rl.profile():
    together(ops, backward, captured)
