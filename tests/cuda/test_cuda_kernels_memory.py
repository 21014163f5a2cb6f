"""What kernels of `rl.cuda.compile` read and write, as the runtime sees it: streams, graphs, saved tensors."""

import pytest

import rooflab as rl


def test_pointers_to_const_are_read_and_others_may_be_written(module):
    written = {p.label: p.is_written for p in module["add"].parameters if p.kind == "pointer"}
    assert list(written.values()) == [False, False, True]


@pytest.mark.gpu
def test_a_block_that_a_kernel_reads_on_another_stream_is_not_used_again_before(module):
    n, stream = 1 << 22, rl.cuda.Stream()
    a, b, out = rl.zeros(n, device="cuda"), rl.zeros(n, device="cuda"), rl.ones(n, device="cuda")
    address = a.data_ptr()
    rl.cuda.synchronize()
    with stream:
        busy = rl.randn(4096, 4096, device="cuda")
        for _ in range(30):
            busy = rl.matmul(busy, busy) * 1e-3
        module["add"]((n + 255) // 256, 256, a, b, out, n)
    del a
    later = rl.ones(n, device="cuda")
    assert later.data_ptr() == address
    rl.cuda.synchronize()
    assert out.sum().item() == 0


@pytest.mark.gpu
def test_a_captured_kernel_keeps_its_inputs_and_its_code():
    n = 1000
    made = rl.cuda.compile("__global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }")
    graph, y = rl.Graph(), rl.zeros(n, device="cuda")
    x = rl.ones(n, device="cuda")
    with graph.capture():
        made["twice"](1, n, x, y)
    del x, made
    others = [rl.full((n,), 7.0, device="cuda") for _ in range(4)]
    with rl.count() as c:
        graph.replay()
    assert y.tolist() == [2.0] * n and c.by_op["custom"].launches == 1 and others[0].sum().item() == 7 * n


@pytest.mark.gpu
def test_a_kernel_without_tensors_is_captured():
    nothing = rl.cuda.compile("__global__ void nothing() {}")
    graph = rl.Graph()
    with graph.capture():
        nothing["nothing"](1, 1)
    assert graph.launches == 1
    graph.replay()


@pytest.mark.gpu
def test_a_saved_tensor_that_a_kernel_writes_is_noticed(module):
    w = rl.ones(4, device="cuda", requires_grad=True)
    x = rl.ones(4, device="cuda")
    y = w * x
    module["add"](1, 4, w.detach(), w.detach(), x, 4)
    with pytest.raises(ValueError, match="saved for backward was changed in place"):
        y.sum().backward()
    with pytest.raises(ValueError, match="requires grad"):
        module["add"](1, 4, x, x, w, 4)
    with rl.no_grad():
        module["add"](1, 4, x, x, w, 4)


@pytest.mark.gpu
def test_a_kernel_is_refused_where_it_could_not_be_repeated(module):
    x, out = rl.ones(4, device="cuda"), rl.zeros(4, device="cuda")
    on_cpu = rl.Graph(device="cpu")
    with pytest.raises(ValueError, match="but the graph that is captured is on cpu"), on_cpu.capture():
        module["add"](1, 4, x, x, out, 4)

    def traced(a):
        module["add"](1, 4, x, x, out, 4)
        return a + 1

    with pytest.warns(UserWarning, match="cannot be traced"):
        rl.compile(traced)(x)
