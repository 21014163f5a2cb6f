"""What students get as files: the source archive and the wheel hold what is needed, no answer and no hidden test."""

import ast
import re
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import rooflab as rl

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ALLOWED = re.compile(
    r"(CMakeLists\.txt|PKG-INFO|README\.md|pyproject\.toml|assets/bench/[\w-]+\.json|notebooks/lab\d_\w+\.ipynb"
    r"|(csrc|python/rooflab)/.+)"
)
PACKAGED = re.compile(
    r"rooflab/[\w/]+\.(py|pyi|html|typed)|rooflab/cli/reference/pages/\w+\.rst|rooflab/py\.typed|rooflab/cuda/simt/runtime/[\w/]+\.(h|cpp)"
)
SECRET = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", re.DOTALL)
MARKERS = (b"### BEGIN SOLUTION", b"### BEGIN HIDDEN TESTS")
KNOW_MARKERS = {"python/rooflab/grading/lab/model.py", "python/rooflab/grading/lab/release.py"}


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The source archive and the wheel without its compiled part, by the builder that pip uses."""
    folder = tmp_path_factory.mktemp("archives")
    code = (
        "from scikit_build_core import build;"
        f"build.build_sdist({str(folder)!r}); build.build_wheel({str(folder)!r}, {{'wheel.cmake': 'false'}})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def sources(archives):
    """The files of the source archive: name -> content."""
    (path,) = archives.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {member.name.partition("/")[2]: archive.extractfile(member).read() for member in members}


@pytest.fixture(scope="module")
def packaged(archives):
    """The files of the wheel: name -> content."""
    (path,) = archives.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def unwanted(files):
    return sorted(name for name in files if not ALLOWED.fullmatch(name) or re.search(r"\.so$|__pycache__|\.pyc$", name))


def with_secrets(files):
    """Files in which an answer or a hidden test stands between its markers."""
    return {name for name, content in files.items() if any(marker in content for marker in MARKERS)} - KNOW_MARKERS


def statements(tree):
    """The simple statements of a piece of code that are long enough to say something."""
    simple = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
    found = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, simple)}
    return {text for text in found if len(text) > 20}


def with_answers(files, labs=ROOT / "notebooks" / "source"):
    """Functions most of whose statements stand in a solution or a hidden test, as "file: function"."""
    regions = [
        region[2] for path in labs.glob("lab*/*.py") for region in SECRET.finditer(path.read_text(encoding="utf-8"))
    ]
    assert len(regions) > 100
    secret = set().union(*(statements(ast.parse(textwrap.dedent(region))) for region in regions))
    found = []
    for name, content in files.items():
        for node in ast.walk(ast.parse(content)) if name.endswith(".py") else ():
            if isinstance(node, ast.FunctionDef):
                docstring = {ast.unparse(one) for one in node.body[:1] if isinstance(one, ast.Expr)}
                own = statements(node) - docstring
                if len(own) < 2 * len(own & secret) and len(own & secret) > 1:
                    found.append(f"{name}: {node.name}")
    return found


@pytest.mark.slow
def test_the_source_archive_holds_what_a_build_needs_and_no_answers(sources):
    assert unwanted(sources) == [] and with_secrets(sources) == set()
    folders = {folder.name for folder in (ROOT / "csrc").iterdir() if folder.is_dir()}
    assert {name.split("/")[1] for name in sources if name.count("/") > 1 and name.startswith("csrc/")} == folders
    notebooks = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert sorted(name.partition("/")[2] for name in sources if name.startswith("notebooks/")) == notebooks


@pytest.mark.parametrize(
    "name",
    ["tests/labs/lab1_answers.py", "notebooks/source/lab1/10_gemm.py", "notebooks/INSTRUCTORS.md", "answers.md"],
)
def test_an_answer_among_the_files_is_noticed(name):
    assert unwanted({name: b"", "README.md": b""}) == [name]
    assert with_secrets({"csrc/x.cpp": b"x = 1\n### BEGIN SOLUTION\n", "README.md": b""}) == {"csrc/x.cpp"}


@pytest.mark.slow
def test_no_module_that_students_get_holds_an_answer(sources, packaged):
    of_content = {content: name for files in (packaged, sources) for name, content in files.items()}
    assert with_answers({name: content for content, name in of_content.items()}) == []


def test_an_answer_in_a_module_is_noticed():
    module = """def weighted(scores, v):
        exponentials = rl.exp(scores - scores.amax(-1, keepdim=True))
        return (exponentials / exponentials.sum(-1, keepdim=True)) @ v
    """
    assert with_answers({"rooflab/labs/lab9.py": module}) == ["rooflab/labs/lab9.py: weighted"]


def test_the_wheel_holds_the_package(packaged):
    package = ROOT / "python"
    ours = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file() and wanted(path)}
    assert set(packaged) == ours
    assert all(PACKAGED.fullmatch(name) for name in packaged), "another kind of file: is it meant to be handed out?"
    assert with_secrets({f"python/{name}": content for name, content in packaged.items()}) == set()


def wanted(path):
    return path.suffix not in (".so", ".pyc") and "labs/notebooks" not in str(path)


def test_the_wheel_gets_the_students_notebooks_alone():
    (line,) = re.findall(r"file\(GLOB notebooks .*\)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert line.endswith('/notebooks/*.ipynb")')


def test_the_version_stands_in_one_place(sources):
    assert f"\nVersion: {rl.__version__}\n".encode() in sources["PKG-INFO"]
    notes = (ROOT / ".github" / "CHANGES.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", notes, re.MULTILINE)[1] == rl.__version__
    assert "\nCounts:\n\n- " in notes.split("\n## ")[1], "what the grades of an older notebook depend on"


SYSTEMS = {
    "Linux on x86-64": {"sys_platform": "linux", "platform_machine": "x86_64"},
    "Linux on aarch64": {"sys_platform": "linux", "platform_machine": "aarch64"},
    "a Mac": {"sys_platform": "darwin", "platform_machine": "arm64"},
}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("extra", ["labs", "cuda"])
def test_wheels_of_nvidia_are_asked_for_where_they_exist(system, extra):
    needed = map(Requirement, PROJECT["project"]["optional-dependencies"][extra])
    theirs = [one for one in needed if one.name.startswith("nvidia-")]
    asked = [one.marker.evaluate(SYSTEMS[system]) for one in theirs]
    assert len(asked) == 3 and set(asked) == {system.startswith("Linux")}


def test_each_python_is_named_and_tested():
    versions = [line[len("Programming Language :: Python :: ") :] for line in PROJECT["project"]["classifiers"]]
    versions = [version for version in versions if re.fullmatch(r"3\.\d+", version)]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    for workflow in ("ci.yml", "wheels.yml"):
        text = (ROOT / ".github" / "workflows" / workflow).read_text(encoding="utf-8")
        missing = [
            version for version in versions if version not in text and f"cp{version.replace('.', '')}" not in text
        ]
        assert missing == [], workflow
