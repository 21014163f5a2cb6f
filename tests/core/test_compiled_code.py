"""Every CUDA rung, compiled for every architecture: a rung's kernels do something exactly where the rung is taken."""

import functools
import re
import shutil
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from ops.samples import SPECS, accepts_nothing, prepared, tensors_of

import rooflab as rl
from rooflab import nn
from rooflab._core import _gemma3

ROOT = Path(__file__).resolve().parents[2]
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
OPTIONS = ["-std=c++20", "--expt-relaxed-constexpr", "--extended-lambda", "--Ofast-compile=max", "-w", "-Icsrc"]
# (number, is_sm90a) of the code that the GPUs of rl.meta run, and of a build for sm_90 without the a.
ARCHITECTURES = [
    (75, False),
    (80, False),
    (86, False),
    (89, False),
    (90, False),
    (90, True),
    (100, False),
    (120, False),
]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(NVCC is None, reason="needs nvcc")]


def sections(image):
    """The sizes of an ELF file's sections by their names."""
    (table,) = struct.unpack_from("<Q", image, 0x28)
    count, names = struct.unpack_from("<HH", image, 0x3C)
    headers = [struct.unpack_from("<IIQQQQ", image, table + 64 * i) for i in range(count)]
    text = headers[names][4]
    return {image[text + h[0] : image.index(b"\0", text + h[0])].decode(): h[5] for h in headers}


def plain_name(mangled):
    """The function's own name, the last of _ZN<length><name><length><name>..."""
    name, rest = mangled, mangled.removeprefix("_ZN")
    while length := re.match(r"\d+", rest):
        begin, end = length.end(), length.end() + int(length[0])
        name, rest = rest[begin:end], rest[end:]
    return name


def kernels_of(image):
    """The bytes of machine code of each __global__ function: those alone have a bank of parameters."""
    found = sections(image)
    entries = [name.removeprefix(".nv.constant0.") for name in found if name.startswith(".nv.constant0.")]
    return [(plain_name(entry), found[f".text.{entry}"]) for entry in entries]


@functools.cache
def compiled(folder, number, is_sm90a):
    """Bytes of code of the kernels of csrc/ by name, and of a body that only traps."""
    trap = folder / "trap.cu"
    trap.write_text("__global__ void only_traps_kernel() { __trap(); }\n", encoding="utf-8")

    def compile_file(source):
        cubin = folder / f"{source.stem}_{number}{is_sm90a}.cubin"
        command = [NVCC, "-cubin", f"-arch=sm_{number}{'a' * is_sm90a}", *OPTIONS, source, "-o", cubin]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"{source.name}: {done.stderr[-2000:]}"
        return kernels_of(cubin.read_bytes())

    sizes: dict[str, list[int]] = {}
    with ThreadPoolExecutor(2) as pool:
        for kernels in pool.map(compile_file, [trap, *sorted((ROOT / "csrc" / "kernels").rglob("*.cu"))]):
            for name, size in kernels:
                sizes.setdefault(name, []).append(size)
    return sizes, sizes.pop("_Z17only_traps_kernelv")[0]


def takes_a_sample(spec, rung, device):
    for source in filter(None, (spec.samples, spec.tails)):
        for sample in source(np.random.default_rng(0)):
            if any(isinstance(a, np.ndarray) and a.size == 0 for a in sample.args):
                continue  # nothing runs, so every rung takes it
            for dtype in spec.dtypes:
                try:
                    spec.fn(*prepared(spec, tensors_of(sample, dtype, device), sample), **sample.kwargs, variant=rung)
                except ValueError as error:
                    if not accepts_nothing(error):
                        raise
                else:
                    return True
    return False


def takes_a_step(rung, device):
    """gemma3_decode, which has no spec."""
    config = nn.GEMMA3_270M
    module = nn.Gemma3DecoderLayer(config, 5, dtype="bfloat16", device=device)
    x = rl.empty(1, 1, config.hidden_size, dtype="bfloat16", device=device)
    cos, sin = nn.RotaryEmbedding(1e4, config.head_dim, dtype="bfloat16", device=device)(0, 1)
    shape = (1, config.num_key_value_heads, 64, config.head_dim)
    k, v = (rl.empty(*shape, dtype="bfloat16", device=device) for _ in "kv")
    try:
        with rl.no_grad():
            cache = _gemma3.KvCache(k, v, rl.empty(1, dtype="int64", device=device), 0)
            _gemma3.decode([_gemma3.DecodeStep(module.native(), cos, sin, cache)], x, variant=rung)
    except ValueError as error:
        if not accepts_nothing(error):
            raise
        return False
    return True


def takes_two_dtypes(rung, device):
    """Operands that differ in dtype: all samples of a spec share one."""
    try:
        rl.add(rl.ones(4, device=device), rl.ones(4, dtype="float16", device=device), variant=rung)
    except ValueError as error:
        if not accepts_nothing(error):
            raise
        return False
    return True


def is_taken(ops, rung, device):
    """Whether one of these ops, which share their kernels, runs the rung; true of ops that have no samples."""
    if ops == ["gemma3_decode"]:
        return takes_a_step(rung, device)
    if "add" in ops and takes_two_dtypes(rung, device):
        return True
    specs = [SPECS[op] for op in ops if op in SPECS]
    return not specs or any(takes_a_sample(spec, rung, device) for spec in specs)


def rungs():
    """(ops, rung) by the kernels' name."""
    found = {}
    for op in sorted(rl.ops()):
        for rung in rl.variants(op, "cuda"):
            if rung.kernel:
                found.setdefault(rung.kernel, ([], rung.name))[0].append(op)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cubins")


@pytest.fixture
def device(monkeypatch, number, is_sm90a):
    """A GPU with room for every rung, which runs code of the architecture."""
    target = rl._core._target.of("meta:H200")
    monkeypatch.setattr(target, "code", rl._core._target.CodeArchitecture(number, is_sm90a))
    return "meta:H200"


@pytest.mark.parametrize(("number", "is_sm90a"), ARCHITECTURES)
def test_rungs_have_code_exactly_where_they_are_taken(device, folder, number, is_sm90a):
    sizes, of_trap = compiled(folder, number, is_sm90a)
    traps = {name for name, of_kernel in sizes.items() if min(of_kernel) <= of_trap}
    assert all(max(sizes[name]) <= of_trap for name in traps), "some instances of a kernel trap and others do not"
    owned = {kernel: set() for kernel in rungs()}
    for name in sizes:
        owner = max((kernel for kernel in owned if name.startswith(f"{kernel}_")), key=len, default=None)
        assert owner or name not in traps, f"{name} is of no rung, so it may run anywhere, and traps"
        if owner:
            owned[owner].add(name)
    wrong = []
    for kernel, (ops, rung) in rungs().items():
        if owned[kernel] and is_taken(ops, rung, device) == bool(owned[kernel] & traps):
            wrong.append(f"{kernel}: {sorted(owned[kernel] & traps) or 'none of its kernels'} traps")
    assert not wrong, wrong
