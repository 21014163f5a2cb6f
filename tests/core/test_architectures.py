"""A GPU's rungs are those whose code it runs, in the shared memory that it has; a body that code lacks traps."""

import re
from pathlib import Path

import numpy as np
import pytest

import rooflab as rl
from rooflab import specs
from rooflab.testing import assert_close, to_float64

CSRC = Path(__file__).resolve().parents[2] / "csrc"
DEFINES = "architecture.cuh"
IS_GUARD = re.compile(r"#\s*if.*(ROOFLAB_SM|__CUDA_ARCH__\s*[<>=]|__CUDA_ARCH_FEAT)")
KIB = 1024


def is_body_of_kernel(lines, guard):
    """Whether the guard at this line is in a kernel: a signature with __global__ comes before the end of another."""
    for line in reversed(lines[:guard]):
        if line == "}":
            return False
        if "__global__" in line:
            return True
    return False


def faults(text):
    """What is wrong with the guards of a file, by line."""
    lines, open_guards, found = text.split("\n"), [], []
    for number, line in enumerate(lines):
        if re.match(r"#\s*if", line):
            open_guards.append((number, bool(IS_GUARD.match(line)), []))
        elif re.match(r"#\s*el", line):
            open_guards[-1][2].append(number)
        elif re.match(r"#\s*endif", line):
            begin, is_guard, others = open_guards.pop()
            if is_guard and not others:
                found.append(f"line {begin + 1}: no #else")
            elif (
                is_guard
                and is_body_of_kernel(lines, begin)
                and "  unsupported_architecture();" not in lines[others[-1] : number]
            ):
                found.append(f"line {begin + 1}: the #else does not trap")
    return found


@pytest.mark.parametrize("path", sorted(p for p in CSRC.rglob("*.cu*") if p.name != DEFINES), ids=lambda p: p.name)
def test_a_body_that_an_architecture_lacks_traps(path):
    assert faults(path.read_text(encoding="utf-8")) == []


def test_a_missing_trap_is_noticed():
    kernel = "__global__ void f() {\n#ifdef ROOFLAB_SM80\n  work();\n#else\n  unsupported_architecture();\n#endif\n}"
    assert faults(kernel) == []
    assert faults(kernel.replace("#else\n  unsupported_architecture();\n", "")) == ["line 2: no #else"]
    assert faults(kernel.replace("unsupported_architecture", "f")) == ["line 2: the #else does not trap"]
    host = "void g() {\n#if __CUDA_ARCH__ >= 900\n  a();\n#else\n  b();\n#endif\n}"
    assert faults(host) == [] and faults("}\n" + host) == []


def test_kernels_go_by_the_code_not_by_the_gpu():
    """Only what is compiled at run time is made for the GPU itself."""
    asks = {p.name for p in (CSRC / "kernels").rglob("*.*") if "compute_capability" in p.read_text(encoding="utf-8")}
    assert asks == {"fused_nvrtc.cpp"}


@pytest.fixture
def target(request, monkeypatch):
    """The meta GPU of a name. Whatever a test writes to it is undone."""
    found = rl._core._target.of(rl.meta(request.param))
    for field in ("code", "sm_count", "shared_bytes_of_block"):
        monkeypatch.setattr(found, field, getattr(found, field))
    return found


def takes(op, call):
    """The CUDA rungs that take a call."""
    names = set()
    for rung in rl.variants(op, "cuda"):
        try:
            call(rung.name)
        except ValueError as error:
            assert "does not accept these operands" in str(error)
        else:
            names.add(rung.name)
    return names


def matmul(device, dtype):
    a = rl.empty(256, 256, dtype=dtype, device=device)
    return takes("matmul", lambda rung: rl.matmul(a, a, variant=rung))


def attention(device, dtype, d=128, length=256):
    q = rl.empty(1, 2, length, d, dtype=dtype, device=device)
    return takes("attention", lambda rung: rl.attention(q, q, q, variant=rung))


BACKWARD = specs.all_specs()["attention_backward"]


def attention_backward(device, dtype, d=128):
    operands = BACKWARD.prepare(*[rl.empty(1, 2, 256, d, dtype=dtype, device=device)] * 4)
    return takes("attention_backward", lambda rung: BACKWARD.fn(*operands, variant=rung))


@pytest.mark.parametrize("target", ["H100 SXM", "H200", "B200"], indirect=True)
@pytest.mark.parametrize(("number", "is_sm90a"), [(75, False), (80, False), (90, False), (90, True), (120, False)])
@pytest.mark.parametrize(
    ("op", "dtype", "ampere", "hopper"),
    [
        (matmul, "float32", set(), {"v6_split_bf16"}),
        (matmul, "bfloat16", {"v4_tensor_core"}, {"v5_hopper"}),
        (attention, "float32", set(), {"v5_split_bf16"}),
        (attention, "bfloat16", {"v2_tensor_core"}, {"v3_hopper"}),
        (attention_backward, "float32", {"v4_split_bf16"}, set()),
        (attention_backward, "bfloat16", {"v2_tensor_core"}, {"v3_hopper"}),
    ],
)
def test_the_code_decides_which_rungs_run(target, number, is_sm90a, op, dtype, ampere, hopper):
    """On an H100 a build for 80, for 90 without a, or PTX for 75 has no Hopper rungs: their kernels were empty."""
    target.code = rl._core._target.CodeArchitecture(number, is_sm90a)
    found = op(f"meta:{target.name}", dtype)
    assert found & (ampere | hopper) == (ampere if number >= 80 else set()) | (hopper if is_sm90a else set())
    assert found - ampere - hopper  # the rest runs anywhere


def test_meta_gpus_have_the_best_code_that_there_could_be():
    for name, number, is_sm90a in (("T4", 75, False), ("L4", 89, False), ("H200", 90, True), ("B200", 100, False)):
        code = rl._core._target.of(rl.meta(name)).code
        assert (code.number, code.is_sm90a) == (number, is_sm90a)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("d", [64, 128, 256])
def test_attention_runs_on_turing(d, dtype):
    """A block has 64 KiB there: 66,688 bytes forward and 99,520 backward were too many."""
    assert attention("meta:T4", dtype, d) == {"v1_flash", "v0_composed"}
    assert attention_backward("meta:T4", dtype, d) == {"v1_flash", "v0_composed"}


@pytest.mark.parametrize("target", ["T4", "A10", "H200"], indirect=True)
@pytest.mark.parametrize(
    ("op", "rung", "d", "least"),
    [
        (attention, "v1_flash", 128, 42_112),
        (attention, "v1_flash", 256, 58_496),
        (attention, "v2_tensor_core", 128, 64 * KIB),
        (attention, "v4_split_kv", 128, 80 * KIB),
        (attention, "v3_hopper", 128, 227 * KIB),
        (attention_backward, "v1_flash", 128, 58_560),
        (attention_backward, "v1_flash", 256, 54_464),
        (attention_backward, "v2_tensor_core", 128, 81 * KIB),
        (attention_backward, "v3_hopper", 128, 227 * KIB),
    ],
)
def test_a_rung_is_refused_below_its_shared_memory(target, op, rung, d, least):
    target.code = rl._core._target.CodeArchitecture(90, True)
    keywords = {"length": 16} if rung == "v4_split_kv" else {}
    for memory, expected in ((least, True), (least - 1, False)):
        target.shared_bytes_of_block = memory
        assert (rung in op(f"meta:{target.name}", "bfloat16", d, **keywords)) == expected


@pytest.mark.parametrize("target", ["H200"], indirect=True)
def test_no_rung_takes_more_than_every_gpu_has_without_saying_so(target):
    """The tensor core products of matrices need 96 and 227 KiB."""
    for memory, gone in ((96 * KIB, {"v5_hopper"}), (96 * KIB - 1, {"v5_hopper", "v4_tensor_core"})):
        target.shared_bytes_of_block = memory
        assert {"v5_hopper", "v4_tensor_core"} - matmul("meta:H200", "bfloat16") == gone


@pytest.mark.gpu
def test_a_gpu_says_whose_code_it_runs():
    target = rl._core._target.of("cuda:0")
    assert 75 <= target.code.number <= target.compute_capability
    assert target.compute_capability == 90 or not target.code.is_sm90a


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("d", [40, 128, 200, 256])
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_tiles_of_turing_give_the_same(monkeypatch, d, dtype, is_causal):
    """A GPU with more memory has larger tiles; a row's sums run in the same order in both."""
    target = rl._core._target.of("cuda:0")
    rng = np.random.default_rng(0)
    q, k, v, dout = (
        rl.tensor(rng.standard_normal((2, 3, n, d)), dtype=dtype, device="cuda") for n in (83, 150, 150, 83)
    )
    operands = BACKWARD.prepare(dout, q, k, v, is_causal=is_causal)
    results = []
    for memory in (target.shared_bytes_of_block, 64 * KIB):
        monkeypatch.setattr(target, "shared_bytes_of_block", memory)
        gradients = BACKWARD.fn(*operands, is_causal=is_causal, variant="v1_flash")
        results.append([rl.attention(q, k, v, is_causal=is_causal, variant="v1_flash"), *gradients])
    for large, small in zip(*results, strict=True):
        assert_close(to_float64(small), to_float64(large), rtol=4 * specs.unit_roundoff(dtype), atol=1e-5)
