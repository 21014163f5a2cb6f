"""`rooflab docs`: what the pages are made of, and the pages themselves."""

import argparse
import importlib
import re
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import rooflab as rl
from rooflab.cli import main
from rooflab.cli.reference import ops, prose, sources, subjects
from rooflab.specs import all_specs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages():
    parser = argparse.ArgumentParser(prog="rooflab")
    parser.add_subparsers().add_parser("paint").add_argument("--colour", help="which one")
    return sources.pages(parser)


def entries(text):
    """The names that a page documents."""
    return re.findall(r"^\.\. (?:auto|py:)(?:function|class|data):: ([\w.]+)$", text, re.MULTILINE)


def test_every_public_name_has_one_entry(pages):
    found = [
        name for page, text in pages.items() if page.startswith(("names-", "op-", "class-")) for name in entries(text)
    ]
    packages = set(subjects.subjects()["packages"])
    assert sorted(found) == sorted({*dir(rl)} - packages)
    assert {f"package-rooflab.{name}" for name in packages} <= pages.keys()


@pytest.mark.parametrize(
    "package",
    [
        "rooflab.nn",
        "rooflab.nn.functional",
        "rooflab.optim",
        "rooflab.cuda",
        "rooflab.memory",
        "rooflab.cost",
        "rooflab.benchmark",
    ],
)
def test_every_name_of_a_package_has_an_entry(package, pages):
    module = importlib.import_module(package)
    names = [name for name in module.__all__ if f"{package}.{name}" not in subjects.packages()]
    assert entries(pages[f"package-{package}"]) == sorted(names)


def test_the_index_names_every_page(pages):
    below = {page for text in pages.values() for page in re.findall(r"^   ([\w.-]+)$", text, re.MULTILINE)}
    assert pages.keys() - below == {"index"}


def test_names_stand_under_the_subjects_of_all():
    found = subjects.subjects()
    assert found["products"] == [
        "addmm",
        "bmm",
        "dot",
        "einsum",
        "linear",
        "matmul",
        "matmul_bias",
        "matmul_float32",
        "mm",
        "mv",
        "outer",
    ]
    assert sorted(name for names in found.values() for name in names) == dir(rl)


def test_an_object_with_two_names_is_described_once(pages):
    assert "The same as :py:obj:`rooflab.cat`." in pages["names-shapes-and-places"]
    assert "The same as :py:obj:`rooflab.latency`." in pages["package-rooflab.benchmark"]


@pytest.mark.parametrize("op", rl.ops())
def test_every_op_shows_its_ladder(op, pages):
    text = pages[f"op-{op}"]
    for rung in rl.variants(op):
        assert f"   * - ``{rung.name}``\n     - {prose.escaped(rung.idea)}\n" in text
    assert text.count("   * - ``") == len(rl.variants(op))
    assert ("On a GPU" in text, "On the CPU" in text) == tuple(bool(rl.variants(op, kind)) for kind in ("cuda", "cpu"))


@pytest.mark.parametrize("op", [op for op in rl.ops() if op in all_specs()])
def test_every_op_shows_its_formula_and_cases(op, pages):
    text, _ = ops.formula(op)
    assert (
        re.match(r"def \w*cost\(", text)
        and "dtype" in text
        and textwrap.indent(text, "   ").rstrip() in pages[f"op-{op}"]
    )
    if all_specs()[op].bench:
        cases = [case for case in all_specs()[op].bench() if not case[0].startswith("odd ")]
        assert [(case.name, case.dtype) for case in ops.cases(op)] == [case[:2] for case in cases]


def test_costs_and_their_formula(pages):
    matmul = {(case.name, case.dtype): case for case in ops.cases("matmul")}["512", "float32"]
    assert matmul.cells() == ["512", "float32", "134 MMAC", "268 MFLOP", "2.1 MB", "1.05 MB", "85.3"]
    text, numbers = ops.formula("geglu")
    assert "def gradient_cost(" in ops.formula("rms_norm_backward")[0]
    assert numbers == {"flops": 9, "condition": False} and "flops=flops * count" in text
    assert "Here ``flops`` is 5:" in pages["op-softmax"]
    assert ops.formula("kv_append") == ("", {}) and "Cost\n----" not in pages["op-kv_append"]


def test_the_measured_tables_are_those_of_the_ladder_files(pages):
    """Of an op, and of those that share its kernels."""
    for file, op in (("softmax", "log_softmax"), ("reduce", "amax"), ("elementwise", "relu"), ("gelu", "gelu")):
        (path,) = (ROOT / "csrc" / "kernels" / file).glob("*_ladder.cpp")
        block = re.search(
            r"// \[measured[^\n]*\n(.*?)// \[end measured\]", path.read_text(encoding="utf-8"), re.DOTALL
        )[1]
        lines = [line.removeprefix("//").strip() for line in block.splitlines()]
        assert len(lines) > 5 and [line.strip() for line in ops.measured(op)] == lines
        assert all(line in pages[f"op-{op}"] for line in lines)


def test_the_wheel_gets_what_was_measured(monkeypatch, tmp_path):
    built = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert '"${CMAKE_CURRENT_SOURCE_DIR}/assets/bench/*.json"' in built
    assert "DESTINATION rooflab/cli/reference/measured" in built
    monkeypatch.setattr(ops, "MEASURED", tmp_path)
    ops.results.cache_clear()
    assert ops.results() == [] and ops.measured("softmax") == []
    ops.results.cache_clear()


def test_every_command_shows_its_help(pages):
    assert "usage: rooflab paint [-h] [--colour COLOUR]" in pages["commands"] and "which one" in pages["commands"]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("2 * x_ | y, `a*b` and ``c``", r"2 \* x\_ \| y, ``a*b`` and ``c``"),
        ("a `code\nspan`s", "a ``code span``\\ s"),
        ("rl.exp(x), `rl.exp()`.", r":py:obj:`rl.exp <rooflab.exp>`\ (x), :py:obj:`rl.exp() <rooflab.exp>`."),
        ("rl.no_such, `rl.no_such`, rl.nn.", "rl.no_such, ``rl.no_such``, :py:obj:`rl.nn <rooflab.nn>`."),
        ("Two:\n- a*\n- b", "Two:\n\n- a\\*\n- b"),
        ("So:\n\n    x * y", "So:\n\n.. code-block:: python\n\n    x * y"),
        ("So:\n\n    x *  is not", "So:\n\n.. code-block:: text\n\n    x *  is not"),
        ("Notes\n-----\nx\n\n    y*", "Notes\n-----\nx\n\n    y\\*"),
        ("Examples\n--------\n>>> 2 * `x`", "Examples\n--------\n>>> 2 * `x`"),
    ],
)
def test_docstrings_become_restructured_text(text, made):
    assert prose.restructured(text) == made


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, capsys):
    pytest.importorskip("furo")
    (tmp_path / "mine.txt").write_text("text", encoding="utf-8")
    assert main(["docs", "--output", str(tmp_path)]) == 2
    told = f"rooflab docs: --output: {tmp_path} exists and is not empty: name another folder"  # before it builds
    assert capsys.readouterr().err.startswith(told) and len(list(tmp_path.iterdir())) == 1


class Links(HTMLParser):
    """What a page refers to, and the places in it."""

    def __init__(self, text):
        super().__init__()
        self.found, self.loaded, self.places = [], [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places.add(given.get("id", ""))
        if "href" in given and tag == "a":
            self.found.append(given["href"])
        elif tag in ("script", "link", "img"):
            self.loaded.append(given.get("src") or given.get("href") or "")


def dead_links(folder):
    """The links to pages and places that there are not, and what pages would load from elsewhere."""
    read = {path.name: Links(path.read_text(encoding="utf-8")) for path in folder.glob("*.html")}
    dead = []
    for name, links in read.items():
        for link in links.found + links.loaded:
            parts = urlsplit(link)
            if parts.scheme and link not in links.loaded:
                continue
            page = unquote(parts.path) or name
            is_there = not parts.scheme and (folder / page).is_file()
            if not is_there or (page in read and unquote(parts.fragment) not in read[page].places):
                dead.append((name, link))
    return dead


def test_a_dead_link_is_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#x">b</a><a href="https://elsewhere">e</a>', encoding="utf-8")
    (tmp_path / "b.html").write_text(
        '<p id="x"></p><a href="#y">y</a><script src="https://elsewhere/s.js"></script><a href="c.html">c</a>',
        encoding="utf-8",
    )
    assert [link for _, link in sorted(dead_links(tmp_path))] == ["#y", "c.html", "https://elsewhere/s.js"]


@pytest.mark.slow
def test_the_pages(tmp_path, capsys):
    pytest.importorskip("furo")
    folder = tmp_path / "pages"
    assert main(["docs", "--output", str(folder)]) == 0
    printed = capsys.readouterr()
    assert printed.err == "" and str(folder / "index.html") in printed.out
    assert dead_links(folder) == []
    assert len(list(folder.glob("op-*.html"))) == len(rl.ops())
    softmax = (folder / "op-softmax.html").read_text(encoding="utf-8")
    assert (
        all(f"{section}<span" in softmax for section in ("Parameters", "Returns", "Raises"))
        and "Examples</p>" in softmax
    )
    roofline = (folder / "package-rooflab.roofline.html").read_text(encoding="utf-8")
    assert "<strong>tflop_s, p20_tflop_s, p80_tflop_s</strong>" in roofline and " -- " not in softmax
    assert "rooflab._core" not in (folder / "names-counting-timing-profiling.html").read_text(encoding="utf-8")
    assert all((folder / name).is_file() for name in ("search.html", "searchindex.js", "genindex.html"))
    assert [path.name for path in tmp_path.iterdir()] == ["pages"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    pytest.importorskip("furo")
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["docs", "--output", str(tmp_path / "file" / "docs")]) == 2
    assert capsys.readouterr().err.endswith(f"rooflab docs: --output: {tmp_path / 'file' / 'docs'}: Not a directory\n")
