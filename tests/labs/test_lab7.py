"""Lab 7: the reference answers give the known numbers, its wrong kernels do what the text says, and its helpers."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from labs.sources import SOURCES, TRUSTED, lab

import rooflab as rl
from rooflab.cuda.simt import toolchain
from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab.repair import reference
from rooflab.labs import lab7


@pytest.fixture(autouse=True)
def _needs_a_compiler():
    try:
        toolchain.compiler()
    except toolchain.NoCompiler as missing:
        pytest.skip(str(missing))


def source():
    return next(path for path in SOURCES if path.name == "lab7")


def defined_by(cells):
    """What the set-up cells and these answers define."""
    defined = {}
    for cell in cells:
        if cell.role in ("setup", "solution"):
            exec(cell.source, defined)
    return defined


@pytest.fixture(scope="module")
def given():
    return defined_by(reference(lab(source())).cells)


@pytest.fixture(scope="module")
def handed_out():
    """The kernels as students get them. A function that is not written yet stays a stub."""
    defined = {}
    for cell in lab(source()).cells:
        if cell.role in ("setup", "solution"):
            exec(cell.public, defined)
    return defined


def count(text, name, grid, block, *args):
    try:
        return rl.cuda.compile(text, backend="simt")[name](grid, block, *args, mode="count")
    except rl.cuda.KernelError as error:
        return error.launch


def kinds(launch):
    return sorted({finding.kind for finding in launch.findings})


def test_it_has_a_hundred_points_and_fifteen_more():
    whole = lab(source())
    assert (whole.points, whole.bonus, len(whole.questions)) == (100, 15, 24)
    of_parts = [sum(c.points for c in whole.cells if c.question.startswith(f"q{part}")) for part in range(1, 8)]
    assert of_parts == [15, 15, 25, 12, 15, 8, 10]


# The known answers


def test_predictions(given):
    sectors = given["sectors"]
    assert [sectors(0, 4, 4), sectors(0, 128, 4), sectors(4, 4, 4), sectors(0, 16, 16)] == [4, 32, 5, 16]
    assert given["wrong_thread"](1000) == (3, 232) and given["wrong_thread"](1024) is None
    assert given["tile_conflicts"](256, 32) == 63488 and given["tile_conflicts"](256, 33) == 0
    assert given["tree"](256) == (9, 255) and given["histogram_atomics"](10_000, 4, 256) == (10_000, 10_000, 1024)
    for n in (2, 64, 1024):
        assert given["scan_additions"](n) == (n * math.log2(n) - n + 1, 2 * (n - 1) - math.log2(n))
    versions = ("three passes", "online", "registers")
    assert [given["softmax_bytes"](3, 5, version) // 4 // 15 for version in versions] == [3, 2, 1]
    assert (given["sectors_x_is_column"], given["sectors_x_is_row"]) == (2.0, 8.5)
    assert (given["four_accesses"], given["fused_accesses"]) == (8, 2)
    assert given["flash_bytes"](128, 32, 64) == 4 * 128 * 32 * (1 + 2 * 2)
    letters = [given[name] for name in ("add4_gain", "swizzle", "shuffle_order", "one_value")]
    assert letters == ["b", "a", "b", "c"]


def test_predicted_conflicts_are_those_that_are_counted(given):
    kernel = """
    __global__ void read(float* y, int step) {
      __shared__ float s[4096];
      for (int i = threadIdx.x; i < 4096; i += 32) s[i] = i;
      __syncwarp();
      y[threadIdx.x] = s[step * threadIdx.x];
    }"""
    for step in (0, 1, 2, 12, 32, 33, 48, 64, 100, 127):
        counts = count(kernel, "read", 1, 32, np.zeros(32, np.float32), step).counts
        assert counts.shared_loads.bank_conflicts == given["bank_conflicts"](step), step


def test_a_transpose_of_256(given):
    x, y = lab7.floats(256, 256), np.zeros((256, 256), np.float32)
    for width, conflicts in ((32, 63_488), (33, 0)):
        text = given["TRANSPOSE_CUDA"].replace("[33]", f"[{width}]")
        assert count(text, "transpose", (8, 8), (32, 8), x, y, 256, 256).counts.bank_conflicts == conflicts
        assert np.array_equal(y, x.T)


def test_matrix_products_of_256_and_of_128(given):
    a, b, c = lab7.floats(256, 256), lab7.floats(256, 256), np.zeros((256, 256), np.float32)
    counts = count(given["TILED_CUDA"], "matmul", (16, 16), (16, 16), a, b, c, 256).counts
    assert np.allclose(c, a @ b, atol=1e-3)
    assert (counts.global_loads.requests, counts.global_loads.sectors) == (65_536, 262_144)
    assert counts.bank_conflicts == 0 and counts.bytes_read == 2 * 256**3 // 16 * 4
    a, b, c = (array[:128, :128].copy() for array in (a, b, c))
    counts = count(given["BLOCKED_CUDA"], "matmul", (2, 2), (16, 16), a, b, c, 128).counts
    assert counts.bytes_read == 2 * 128**3 // 64 * 4 and counts.shared_loads.wavefronts == 128**3 // 64


# The kernels that students get to repair


def test_the_guard_shows_with_a_thread_unless_n_is_a_multiple(handed_out):
    found = {}
    for n in (1000, 1024):
        launch = count(handed_out["ADD_CUDA"], "add", math.ceil(n / 256), 256, *(lab7.floats(n) for _ in "abc"), n)
        found[n] = [(finding.kind, finding.block[0], finding.thread[0]) for finding in launch.findings]
    assert found == {1000: [("out of bounds", 3, 232)], 1024: []}


def test_the_transpose_is_right_and_scattered(handed_out):
    x, y = lab7.floats(40, 70), np.zeros((70, 40), np.float32)
    launch = count(handed_out["TRANSPOSE_CUDA"], "transpose", (3, 2), (32, 8), x, y, 40, 70)
    assert np.array_equal(y, x.T) and launch.findings == [] and launch.counts.bank_conflicts == 0
    assert launch.counts.global_stores.sectors == launch.counts.global_stores.threads


def test_races(handed_out):
    launch = count(handed_out["SUM_CUDA"], "sum", 4, 256, lab7.whole(1000), np.zeros(1, np.float32), 1000)
    assert kinds(launch) == ["race"] and launch.counts.bank_conflicts > 0
    values, bins = np.arange(1000, dtype=np.int32) % 10, np.zeros(256, np.int32)
    launch = count(handed_out["HISTOGRAM_CUDA"], "histogram", 2, 256, values, bins, 1000)
    assert "race" in kinds(launch)


def test_the_product_the_fused_kernel_and_attention(handed_out):
    a, b, c = lab7.floats(64, 64), lab7.floats(64, 64), np.zeros((64, 64), np.float32)
    launch = count(handed_out["NAIVE_CUDA"], "matmul", (4, 4), (16, 16), a, b, c, 64)
    assert np.allclose(c, a @ b, atol=1e-4) and launch.counts.global_loads.sectors_per_request == 8.5
    x, bias, y = lab7.floats(20, 300), lab7.floats(300), np.zeros((20, 300), np.float32)
    launch = count(handed_out["EPILOGUE_CUDA"], "epilogue", (2, 4), 256, x, bias, y, 20, 300, 1.5, 2.0)
    assert "out of bounds" in kinds(launch)
    q, o = lab7.floats(70, 32), np.zeros((70, 32), np.float32)
    launch = count(handed_out["FLASH_CUDA"], "flash", 2, 64, q, q, q, o, 70)
    assert launch.findings == [] and launch.counts.bytes_read == 4 * 70 * 32 * (1 + 2 * 70)
    weights = np.exp(q @ q.T / math.sqrt(32))
    assert np.allclose(o, weights / weights.sum(1, keepdims=True) @ q, atol=1e-4)


def test_every_kernel_compiles_for_a_gpu(given, handed_out):
    for defined in (given, handed_out):
        for name in sorted(name for name in defined if name.endswith("_CUDA") and defined[name]):
            try:
                assert rl.cuda.compile(defined[name], backend="gpu").kernels, name
            except rl.CudaError as missing:
                pytest.skip(str(missing))


@pytest.mark.slow(seed=[7, 18074377063751])
@pytest.mark.parametrize("seed", [5, 7, 18074377063751])
def test_scores_of_thousands_may_be_rounded(seed):
    """With these seeds two of the largest scores are nearly equal, so that their rounding shows in the output."""
    result = Judge(lab(source()), TRUSTED, seed=seed).grade_question("q7_2", reference(lab(source())))
    assert result.earned == result.points, [test.message for test in result.tests]


# What it gives its students

DOUBLED = "__global__ void f(const float* x, float* y) {\n  y[threadIdx.x] = 2 * x[threadIdx.x];\n}\n"


def test_a_counted_run_writes_its_arrays_and_returns_the_launch(capsys):
    x, y = lab7.whole(32), np.zeros(32, np.float32)
    launch = lab7.counted(DOUBLED, "f", 1, 32, x, y)
    assert np.array_equal(y, 2 * x) and launch.counts.global_loads.sectors == 4 and launch.findings == []
    assert rl.cuda.is_available() or capsys.readouterr().out == ""


def test_a_counted_run_says_what_was_found(handed_out, capsys):
    launch = lab7.counted(DOUBLED, "f", 1, 32, lab7.whole(8), np.zeros(32, np.float32))
    said = capsys.readouterr().out
    assert said.startswith("f:\nline 2: Thread 8 of block 0 reads 4 bytes at x[8]") and launch.findings
    launch = lab7.counted(handed_out["SUM_CUDA"], "sum", 4, 256, lab7.whole(1000), np.zeros(1, np.float32), 1000)
    said, others = capsys.readouterr().out.splitlines(), len(launch.findings) - 1
    assert len(said) == 2 and others > 1 and said[1].endswith(f" There are {others} more like this."), said


@pytest.mark.parametrize("source", [None, 3, b"text"])
def test_a_counted_run_needs_a_source(source):
    with pytest.raises(ValueError, match=r"\[counted\] f: expected the source of the kernel, got .*; write it first"):
        lab7.counted(source, "f", 1, 32)


def test_where_there_is_a_gpu_the_values_are_compared(monkeypatch, capsys):
    """The GPU is made up: it adds the double as the CPU does, and a half as well. Both begin with the same y."""
    compiled, tensor = rl.cuda.compile, rl.tensor
    right = DOUBLED.replace("=", "+=")
    wrong = right.replace("2 * x", "0.5f + 2 * x")
    monkeypatch.setattr(rl.cuda, "is_available", lambda: True)
    monkeypatch.setattr(rl.cuda, "properties", lambda: SimpleNamespace(name="GPU"))
    monkeypatch.setattr(rl, "tensor", lambda value, device: tensor(value))
    monkeypatch.setattr(
        rl.cuda, "compile", lambda text, _, backend: compiled(wrong if backend == "gpu" else text, backend="simt")
    )
    x, y = lab7.whole(32), np.ones(32, np.float32)
    lab7.counted(right, "f", 1, 32, x, y)
    assert np.array_equal(y, 1 + 2 * x)
    assert capsys.readouterr().out == "f on GPU: at most 0.5 from the values of the CPU\n"


def test_a_cell_of_its_own_is_a_source_too():
    module = rl.cuda.compile(DOUBLED.replace("2 *", "FACTOR *"), ["-DFACTOR=3"], backend="simt")
    x, y = lab7.whole(32), np.zeros(32, np.float32)
    assert np.array_equal(lab7.assert_clean(module, "f", 1, 32, x, y).args[1], 3 * x)
    lab7.counted(module, "f", 1, 32, x, y)
    assert np.array_equal(y, 3 * x)


def test_a_test_takes_a_text_without_findings():
    x, y = lab7.whole(32), np.zeros(32, np.float32)
    run = lab7.assert_clean(DOUBLED, "f", 1, 32, x, y)
    assert np.array_equal(run.args[1], 2 * x) and not y.any() and run.counts.global_stores.requests == 1
    for wrong in (None, 5, b"text"):
        with pytest.raises(
            AssertionError, match=r"^f at n = 3: expected the source of the kernel, CUDA C\+\+ as text, got"
        ):
            lab7.assert_clean(wrong, "f", 1, 32, x, y, what="n = 3")
    with pytest.raises(AssertionError, match=r"^f: line 2: Thread 8 of block 0 reads 4 bytes at x\[8\]"):
        lab7.assert_clean(DOUBLED, "f", 1, 32, x[:8], y)
    with pytest.raises(AssertionError, match=r"^f: line 3: .* and thread 0 .* \(and 1 more finding\)$"):
        races = "__shared__ float s[2];\ns[0] = x[threadIdx.x];\ns[1] = y[threadIdx.x];\ny[threadIdx.x] = s[0] + s[1];"
        lab7.assert_clean(DOUBLED.replace("y[threadIdx.x] = 2 * x[threadIdx.x];", races), "f", 1, 32, x, y)


def test_the_first_thread_beyond_an_array_shows_whose_share_is_done_by_whom(given):
    short = [np.zeros(600, np.float32) for _ in "abc"]
    lab7.assert_place(given["ADD_CUDA"], "add", 4, 256, *short, 1000, place=(2, 0), warp=2)
    said = r"^add: a part of the work that belongs to warp 3 of block \(2, 0\) is done by warp 2 of block \(2, 0\)"
    with pytest.raises(AssertionError, match=said):
        lab7.assert_place(given["ADD_CUDA"], "add", 4, 256, *short, 1000, place=(2, 0), warp=3)
    with pytest.raises(AssertionError, match=r"belongs to block \(2, 0\) is done by nobody"):
        lab7.assert_place(given["ADD_CUDA"], "add", 4, 256, *short, 600, place=(2, 0))
    many = [np.zeros((70, 40), np.float32), np.zeros((40, 96), np.float32)]
    lab7.assert_place(given["TRANSPOSE_CUDA"], "transpose", (2, 3), (32, 8), *many, 96, 40, place=(0, 2))


def test_numbers_are_whole_or_normal():
    assert set(lab7.whole(1000).tolist()) == set(range(-8, 9)) and lab7.whole(3).dtype == np.float32
    values = lab7.floats(100, 100)
    assert abs(values.mean()) < 0.1 < abs(values).max() and values.dtype == np.float32


def test_a_table_of_counts():
    launch = count(DOUBLED, "f", 1, 32, lab7.whole(32), np.zeros(32, np.float32))
    table = lab7.compare({"f": launch}, "global_loads.sectors_per_request", "bytes_read", title="one")
    assert table.head == ("kernel", "global loads: sectors per request", "bytes read")
    assert table.rows == [("f", "4.00", "128")] and table.title == "one"
    assert lab7.compare({"f": launch}, "global_loads.efficiency").rows == [("f", "100.0%")]
