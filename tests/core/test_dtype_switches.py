"""A new dtype must not compile before every switch over dtypes handles it: no `default` takes it in."""

import re
from pathlib import Path

import pytest

import rooflab as rl

CSRC = Path(rl.__file__).parents[2] / "csrc"


def switches(text):
    """The bodies of all switches, inner ones too."""
    for start in re.finditer(r"\bswitch \(", text):
        at = depth = text.index("{", start.end())
        depth = 0
        for end in range(at, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                yield text[at:end]
                break


@pytest.mark.skipif(not CSRC.is_dir(), reason="the sources are not here")
def test_switches_over_dtypes_have_no_default():
    found = []
    for path in sorted(CSRC.rglob("*")):
        if path.suffix in (".cpp", ".h", ".cu", ".cuh"):
            for body in switches(path.read_text(encoding="utf-8")):
                outer = re.sub(r"switch \(.*?\n\s*}\n", "", body, flags=re.DOTALL)
                found += [path.name] if "DType::k" in outer and "default:" in outer else []
    assert found == []


def test_the_search_finds_a_default():
    text = "switch (dtype) {\n  case DType::kFloat32: return f();\n  default: return g();\n}\n"
    assert [body.count("default:") for body in switches(text)] == [1]
