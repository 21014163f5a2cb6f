"""What the labs' answers ask of the library costs the same on tensors without memory."""

import pytest
from labs.sources import SOURCES, lab

import rooflab as rl
from rooflab.grading.lab.repair import reference

FIELDS = ["ops", "launches", "host_calls", "macs", "flops", "bytes_read", "bytes_written"]
FIELDS += ["allocations", "bytes_allocated", "peak_bytes"]


def answers(name, *keys):
    """What the set-up cell and the reference answers `keys` of a lab define."""
    source = next(path for path in SOURCES if path.name == name)
    defined = {}
    for cell in reference(lab(source)).cells:
        if cell.role == "setup" or cell.key in keys:
            exec(cell.source, defined)
    return defined


def counts(call):
    with rl.count() as c:
        call()
    return {field: getattr(c, field) for field in FIELDS}


def gradients(fn, shape, device, *args):
    def call():
        q, k, v = (rl.zeros(*shape, device=device).requires_grad_() for _ in range(3))
        fn(q, k, v, *args).sum().backward()

    return call


@pytest.mark.parametrize(
    ("fn", "is_causal"),
    [("naive_attention", False), ("naive_attention", True), ("lean_attention", False), ("flash_attention", False),
     ("flash_attention", True)],
)  # fmt: skip
def test_attention_of_lab3(fn, is_causal):
    answer = answers("lab3", "q1_1", "q1_4", "q3", "q5")[fn]
    arguments = (is_causal,) if is_causal else ()
    real, meta = (gradients(answer, (2, 200, 32), device, *arguments) for device in ("cpu", "meta"))
    expected = counts(real)
    assert expected["ops"] > 10 and expected["peak_bytes"] > 0
    assert counts(meta) == expected


def test_gelu_of_lab1():
    answer = answers("lab1", "q4_3_1")["gelu_tanh_python"]
    expected, without_memory = (
        counts(lambda device=device: answer(rl.zeros(33, 1000, device=device))) for device in ("cpu", "meta")
    )
    assert expected["launches"] == 1 + 8  # zeros, and the eight of unfused GeLU
    assert without_memory == expected
