"""The arrows of the design: bindings -> nn -> ops -> {kernels, autograd} -> core; profiler -> core."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"
PACKAGE = ROOT / "python" / "rooflab"
LONGEST = 500

MAY_INCLUDE = {
    "core": {"core"},
    "kernels": {"kernels", "core"},
    "autograd": {"autograd", "core"},
    "profiler": {"profiler", "core"},
    "ops": {"ops", "kernels", "autograd", "core"},
    "nn": {"nn", "ops", "autograd", "core"},
    "bindings": {"bindings", "nn", "ops", "autograd", "profiler", "kernels", "core"},
}
# How a kernel could start work, or take memory, that the queue does not count, and which files may do so all the same.
PAST_THE_QUEUE = {
    "<<<": set(),
    "cudaFreeAsync": set(),
    "cudaFuncSetAttribute": set(),
    "cudaGetDevice": set(),
    "cudaLaunchKernel": set(),
    "cudaMalloc": set(),
    "cudaMemcpy": set(),
    "cudaMemset": set(),
    "cudaStream_t": {"matmul_cuda_library.cpp"},  # which hands the queue's stream to cuBLASLt
    "cuda_check_launch": set(),
    "#pragma omp": set(),
    "omp_": set(),
}
TOP_LEVEL = {
    "pyproject.toml",
    "CMakeLists.txt",
    "README.md",
    "csrc",
    "python",
    "notebooks",
    "tests",
    "assets",
}


def sources():
    return sorted(p for p in CSRC.rglob("*") if p.suffix in {".h", ".cpp", ".cu", ".cuh"})


def includes(path):
    return re.findall(r'^\s*#\s*include\s*([<"][^>"]+)[>"]', path.read_text(encoding="utf-8"), re.MULTILINE)


def violations(layer, name, included):
    """What is wrong with one include of a file `name` in `layer`. This is the rule itself, which is tested below."""
    found = []
    target = included[1:]
    if included.startswith('"') and target.split("/")[0] not in MAY_INCLUDE[layer]:
        found.append(f"{layer} may not include {target}")
    is_cuda_header = re.match(r"(cuda|cublas|nvrtc|mma|cooperative_groups)", target) and "/" not in target
    if is_cuda_header and not (
        "_cuda" in name or name.endswith(".cuh") or (layer == "core" and name.startswith("cuda_runtime"))
    ):
        found.append(f"only CUDA files may include {target}")
    if target.startswith("cupti") and layer != "profiler":
        found.append(f"only profiler/ may include {target}")
    if target.startswith("pybind11") and layer != "bindings":
        found.append(f"only bindings/ may include {target}")
    if layer == "kernels" and target in {"core/tensor.h", "core/allocator.h"}:
        found.append(f"kernels take raw pointers, not {target}")
    if layer == "ops" and "profiler" in target:
        found.append("ops open a range; they never include the profiler")
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(CSRC)))
def test_includes_follow_the_arrows(path):
    layer = path.relative_to(CSRC).parts[0]
    assert [v for i in includes(path) for v in violations(layer, path.name, i)] == []


@pytest.mark.parametrize(
    ("layer", "name", "included"),
    [
        ("kernels", "x.cpp", '"ops/ops.h'),
        ("kernels", "x.cpp", '"core/tensor.h'),
        ("core", "tensor.h", "<cuda_runtime.h"),
        ("ops", "x.cpp", "<cupti.h"),
        ("ops", "x.cpp", "<pybind11/pybind11.h"),
        ("ops", "x.cpp", '"profiler/session.h'),
        ("core", "x.cpp", '"kernels/common/simd.h'),
    ],
)
def test_a_wrong_arrow_is_noticed(layer, name, included):
    assert violations(layer, name, included)


SYSTEM_HEADERS = {"sched.h", "cpuid.h", "sys/auxv.h", "sys/mman.h", "sys/syscall.h", "sys/sysctl.h"}
ASKS_WHICH = r"__linux__|__APPLE__|_WIN32|__x86_64__|__aarch64__|__builtin_ia32|__builtin_cpu_"


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(CSRC)))
def test_what_differs_between_systems_is_in_one_folder(path):
    if path.is_relative_to(CSRC / "core" / "platform"):
        return
    assert not SYSTEM_HEADERS & {included[1:] for included in includes(path)}
    assert not re.search(ASKS_WHICH, path.read_text(encoding="utf-8"))


INTRINSIC = r"immintrin|\b_mm\d*_|\b__m(128|256|512|mask)|__AVX|__SSE|__FMA__|arm_neon|__ARM|\bv\w+_[fsu]\d+\("


def test_intrinsics_are_in_one_folder():
    """AMX stands apart: its one rung is written in its own instructions, whose operands are numbers of tiles."""
    simd = CSRC / "kernels" / "common" / "simd"
    texts = {path: path.read_text(encoding="utf-8") for path in sources() if not path.is_relative_to(simd)}
    assert [path.name for path, text in texts.items() if re.search(INTRINSIC, text)] == []
    assert all(
        re.search(INTRINSIC, (simd / f"{name}.h").read_text(encoding="utf-8")) for name in ("avx2", "avx512", "neon")
    )
    assert not re.search(INTRINSIC, (simd / "generic.h").read_text(encoding="utf-8"))


def test_no_instruction_set_is_above_another():
    """A rung says what it needs by a predicate: on another processor there is no order."""
    compared = re.compile(r"[<>]=?\s*CpuIsa::|CpuIsa::k\w+\s*[<>]")
    assert [path.name for path in sources() if compared.search(path.read_text(encoding="utf-8"))] == []


def files_with(token, texts):
    return {name for name, text in texts.items() if re.search(rf"(?<!\w){re.escape(token)}", text)}


@pytest.mark.parametrize(("token", "allowed"), PAST_THE_QUEUE.items())
def test_kernels_start_work_through_the_queue(token, allowed):
    kernels = {p.name: p.read_text(encoding="utf-8") for p in sources() if p.is_relative_to(CSRC / "kernels")}
    assert files_with(token, kernels) - allowed == set()


@pytest.mark.parametrize("token", PAST_THE_QUEUE)
def test_a_way_past_the_queue_is_noticed(token):
    assert files_with(token, {"x.cu": f"  {token}(x);", "y.cu": "queue.launch(kernel, shape, x);"}) == {"x.cu"}


def rungs_elsewhere(texts):
    """What tells of rungs outside the one file that names them: a second table, or another way to link without CUDA."""
    for name, text in texts.items():
        if "gnu::weak" in text:
            yield f"{name}: a weak declaration"
        if re.search(r"const Ladder<\w+> \w+\(", text) and not name.endswith("_ladder.cpp"):
            yield f"{name}: a table of rungs"
        if "ROOFLAB_HAS_CUDA" in text and name != "ladder.h":
            yield f"{name}: asks whether there is CUDA"


def test_rungs_are_named_in_one_place():
    assert list(rungs_elsewhere({p.name: p.read_text(encoding="utf-8") for p in sources()})) == []


@pytest.mark.parametrize(
    "text",
    [
        "[[gnu::weak]] void gelu_cuda_v1_fused(const GeluArgs&, Queue&);",
        'const Ladder<GeluArgs> kLadder("gelu", {});',
        "#ifdef ROOFLAB_HAS_CUDA",
    ],
)
def test_a_rung_named_elsewhere_is_noticed(text):
    assert list(rungs_elsewhere({"gelu.cpp": text}))


# What has one place, and how a file that has it too looks.
ONE_PLACE = {
    "locks, which forks know": (r"\bstd::(recursive_|shared_)?mutex\b", {"mutex.h", "mutex.cpp"}),
    "what a thread keeps, which errors restore": (r"\bthread_local\b", {"context.cpp"}),
    "references to what other threads may assign": (r"run_without_gil\(\s*\[[^=\]]*&", set()),
}


def out_of_place(name, text):
    return [what for what, (pattern, allowed) in ONE_PLACE.items() if name not in allowed and re.search(pattern, text)]


def test_what_threads_share_has_one_place():
    found = {p.name: out_of_place(p.name, p.read_text(encoding="utf-8")) for p in sources()}
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize("line", ["std::mutex m;", "thread_local int x;", "run_without_gil([&] { f(x); })"])
def test_what_threads_share_is_noticed_out_of_place(line):
    assert out_of_place("x.cpp", line) and not out_of_place("x.cpp", "run_without_gil([=] { return &x; })")


def calls_by_name(text):
    """Comparisons with the name of a call's op: its options have a type, by which it is known."""
    return re.findall(r"[^\n]*(?:op->|op\.)name\)?\s*[=!]=[^\n]*", text)


def test_ops_know_calls_by_the_type_of_their_options():
    ops = [p for p in sources() if p.is_relative_to(CSRC / "ops")]
    assert {p.name: found for p in ops if (found := calls_by_name(p.read_text(encoding="utf-8")))} == {}
    assert calls_by_name('if (std::string_view(call.op->name) == "gelu") return 1;')


def python_files():
    return sorted(PACKAGE.rglob("*.py"))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield ("." * node.level) + (node.module or "")
            yield from (alias.name for alias in node.names if alias.name == "_core")


RECORDS = ("grading/replay/", "grading/measure/ranges.py")  # what is written down and repeated are calls of the core


@pytest.mark.parametrize("path", python_files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_python_imports_follow_the_arrows(path):
    names = list(imported(path))
    assert not [n for n in names if n.split(".")[0] in {"tests", "torch", "cupy", "transformers", "triton"}]
    place = path.relative_to(PACKAGE).as_posix()
    if place.startswith(("grading/", "labs/")) and not place.startswith(RECORDS):
        assert not [n for n in names if n.endswith("_core")], "notebooks and grading use public names only"


def test_an_import_of_the_core_is_seen(tmp_path):
    (tmp_path / "x.py").write_text(
        "from rooflab import _core\nfrom rooflab._core import cuda\nimport rooflab\n", encoding="utf-8"
    )
    assert list(imported(tmp_path / "x.py")) == ["rooflab", "_core", "rooflab._core", "rooflab"]


def test_tests_do_not_import_each_other():
    tests = sorted((ROOT / "tests").rglob("*.py"))
    found = {p.name: n for p in tests for n in imported(p) if n.rpartition(".")[2].startswith("test_")}
    assert found == {}


def names_taken_twice(names):
    return {name for name, count in Counter(names).items() if count > 1}


def test_no_two_test_modules_share_a_name():
    """pytest imports each by its file's name alone, and two equal ones stop the whole run."""
    assert names_taken_twice(path.name for path in (ROOT / "tests").rglob("test_*.py")) == set()
    assert names_taken_twice(["test_a.py", "test_b.py", "test_a.py"]) == {"test_a.py"}


def texts_in_the_locales_encoding(text):
    """Calls that read or write a text and do not say in which encoding."""
    if not any(name in text for name in ("open(", "read_text(", "write_text(")):
        return
    for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
        words = {keyword.arg for keyword in call.keywords}
        is_open = getattr(call.func, "id", "") == "open" and len(call.args) < 2
        if "encoding" not in words and (is_open or getattr(call.func, "attr", "") in ("read_text", "write_text")):
            yield ast.unparse(call)


def test_texts_say_their_encoding():
    found = {
        p.name: said
        for p in [*python_files(), *(ROOT / "tests").rglob("*.py")]
        if (said := list(texts_in_the_locales_encoding(p.read_text(encoding="utf-8"))))
    }
    assert found == {}


@pytest.mark.parametrize("call", ["open(a)", "p.read_text()", "(p / 'a').write_text(text)"])
def test_a_text_in_the_locales_encoding_is_noticed(call):
    assert list(texts_in_the_locales_encoding(call)) == [call]


def test_files_stay_short():
    code = [*sources(), *python_files(), *(ROOT / "tests").rglob("*.py")]
    long = {
        str(p.relative_to(ROOT)): n for p in code if (n := len(p.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert long == {}


def test_names_say_what_is_inside():
    banned = {"utils", "helpers", "misc", "util", "helper"}
    assert not [p for p in [*sources(), *python_files()] if p.stem in banned]


def test_top_level_holds_what_the_design_lists():
    entries = {p.name for p in ROOT.iterdir() if not p.name.startswith(".")}
    made = {"build", "dist", "lab1-report"}  # by builds and by the README's first command
    assert entries - made <= TOP_LEVEL


def test_every_source_is_built():
    listed = (CSRC / "CMakeLists.txt").read_text(encoding="utf-8")
    missing = [
        str(p.relative_to(CSRC))
        for p in sources()
        if p.suffix in {".cpp", ".cu"} and str(p.relative_to(CSRC)) not in listed
    ]
    assert missing == []
