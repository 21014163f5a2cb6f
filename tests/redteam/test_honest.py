"""Honest notebooks that look odd keep their full marks, and other code beside an answer costs nothing."""

import copy
import json

import pytest
from grading.demo_lab import RIGHT, TRUSTED, demo_lab
from redteam.attack import graded

from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab import release
from rooflab.grading.lab.repair import read_submission

# label: the cell for the number
NUMBERS = {
    "a magic for the time": "%%time\ncorner = 50.39",
    "a magic in a line": "%time corner = 50.39",
    "captured": "%%capture out\ncorner = 50.39",
    "plots inline": "%matplotlib inline\n%config InlineBackend.figure_format = 'svg'\ncorner = 50.39",
    "reloads modules": "%load_ext autoreload\n%autoreload 2\ncorner = 50.39",
    "a shell line": "!nvidia-smi\ncorner = 50.39",
    "files of a shell line": "files = !ls\ncorner = 50.39 + len(files)",
    "help": "np.zeros?\ncorner = 50.39",
    "installs a package": "%pip install -q numpy\ncorner = 50.39",
    "awaits": "import asyncio\nawait asyncio.sleep(0)\ncorner = 50.39",
    "a figure": "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 2])\nplt.show()\n"
    "corner = 50.39",
    "shows a result": "corner = 50.39\ndisplay(corner)\ncorner",
    "prints much": "print('x' * 10**6)\ncorner = 50.39",
    "prints to standard error": "import sys\nprint('x' * 10**6, file=sys.stderr)\ncorner = 50.39",
    "warns": "import warnings\nwarnings.warn('careful')\nnp.log(np.zeros(1))\ncorner = 50.39",
    "carriage returns": "corner = 0.0\r\ncorner += 50.39\r\n",
    "tabs": "if True:\n\tcorner = 50.39",
    "names that are not English": "Ecke_größe = 50.39\ncorner = Ecke_größe  # 角 ✓",
    "a thread that ends": "import threading\nt = threading.Thread(target=print)\nt.start(), t.join()\ncorner = 50.39",
    "a pool": "from concurrent.futures import ThreadPoolExecutor as P\nwith P(2) as p:\n"
    "    corner = sum(p.map(float, [50, 0.39]))",
    "its own file": "open('notes.txt', 'w').write('50.39')\ncorner = float(open('notes.txt').read())",
    "a temporary file": "import tempfile\nwith tempfile.TemporaryFile() as f:\n    f.write(b'x')\ncorner = 50.39",
    "random numbers": "import random\nrandom.seed(0), random.random(), np.random.default_rng().random()\n"
    "corner = 50.39",
    "the garbage collector": "import gc\ngc.collect()\ncorner = 50.39",
    "a type checker's words": "from __future__ import annotations\nfrom typing import Final\n"
    "corner: Final[float] = 50.39",
    "a dataclass": "from dataclasses import dataclass\n@dataclass\nclass C:\n    x: float = 50.39\ncorner = C().x",
    "names like ours": "np2 = np\nlist_ = [1]\nsum = 50.39\ncorner = sum",
    "timed by itself": "import time\nt = time.perf_counter()\ntime.sleep(0.01)\n"
    "corner = 50.39 + 0 * (time.perf_counter() - t)",
    "an error that it catches": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    corner = 50.39",
    "asks for the frame": "import inspect\nname = inspect.currentframe().f_code.co_name\ncorner = 50.39",
}

LAST = "return out"
PRODUCTS = {
    "an array in Fortran's order": "return np.asfortranarray(out)",
    "a view": "return np.concatenate([out, out])[: len(out)]",
    "an array that cannot be written": "out.flags.writeable = False\n    return out",
    "another byte order": "return out.astype('>f8')",
    "numbers counted on the way": "global calls\n    calls = globals().get('calls', 0) + 1\n    return out",
    "a wrapper": "return out\nimport functools\n@functools.lru_cache\ndef helper():\n    pass\nplain = gemm\n"
    "@functools.wraps(plain)\ndef gemm(*args, **kwargs):\n    return plain(*args, **kwargs)",
    "an object that is called": "return out\nclass Gemm:\n    product = staticmethod(gemm)\n"
    "    def __call__(self, a, b):\n        return self.product(a, b)\ngemm = Gemm()",
    "a method": "return out\nclass G:\n    def run(self, a, b, f=gemm):\n        return f(a, b)\ngemm = G().run",
    "a partial call": "return out\nimport functools\ngemm = functools.partial(gemm)",
}


@pytest.mark.slow(but_every=3)
@pytest.mark.parametrize("code", NUMBERS.values(), ids=NUMBERS)
def test_a_cell_with_more_in_it(code):
    assert graded("q2_1", code) == (3, "")


@pytest.mark.parametrize("last", PRODUCTS.values(), ids=PRODUCTS)
def test_a_function_made_otherwise(last):
    assert graded("q1", RIGHT.replace(LAST, last)) == (5, "")


CONTAINERS = {
    "an ordered dict": ("import collections\ndef refuse(x):\n    return collections.OrderedDict(a=x)", "== {'a': 2}"),
    "a dict with a default": (
        "import collections\ndef refuse(x):\n    d = collections.defaultdict(list)\n    d['a'].append(x)\n    return d",
        "== {'a': [2]}",
    ),
    "a counter": ("import collections\ndef refuse(x):\n    return collections.Counter('aa')", "== {'a': 2}"),
    "a named tuple": (
        "import typing\nclass P(typing.NamedTuple):\n    x: float\n    y: int = 1\ndef refuse(x):\n    return [P(x)]",
        "== [(2, 1)]",
    ),
    "scalars of NumPy": ("def refuse(x):\n    return {np.int64(1): np.float64(x)}", "== {1: 2.0}"),
    "a tuple for a list": ("def refuse(x):\n    return (x, np.float32(x))", "== (2, 2)"),
}


@pytest.mark.parametrize("code, equal", CONTAINERS.values(), ids=CONTAINERS)
def test_common_containers(code, equal):
    assert graded("b2_2", code, f"assert refuse(2) {equal}, 'another value'") == (3, "")


def solved() -> dict:
    return json.loads(release.dumps(release.build(demo_lab(), solved=True)))


def place(whole: dict, key: str) -> int:
    return next(
        n for n, cell in enumerate(whole["cells"]) if cell["metadata"].get("nbgrader", {}).get("grade_id") == key
    )


def own(source: str, number: int = 0) -> dict:
    return {
        "cell_type": "code",
        "id": f"own{number}",
        "metadata": {},
        "outputs": [],
        "source": source,
        "execution_count": None,
    }


def split(whole):
    at = place(whole, "b2_2")
    body = "".join(whole["cells"][at]["source"])
    whole["cells"][at]["source"] = body.replace("def refuse", "def checked")
    whole["cells"].insert(at + 1, own("refuse = checked"))


def merged(whole):
    at, cell = place(whole, "q1"), whole["cells"].pop(place(whole, "b2_2"))
    whole["cells"][at]["source"] = "".join(whole["cells"][at]["source"]) + "\n\n" + "".join(cell["source"])


def without_metadata(whole):
    for cell in whole["cells"]:
        cell["metadata"] = {}


def without_ids(whole):
    for cell in whole["cells"]:
        del cell["id"]
    whole["nbformat_minor"] = 4


def copied(whole):
    for key in ("q1", "q2_1"):
        whole["cells"].append(copy.deepcopy(whole["cells"][place(whole, key)]) | {"id": f"copy-{key}"})


def reversed_order(whole):
    whole["cells"].reverse()


def only_answers(whole):
    whole["cells"] = [cell for cell in whole["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")]


def experiments(whole):
    for number, code in enumerate(("1 / 0", "SIDE = 99\nimport numpy", "gemm(np.eye(2), np.eye(2))", "%%bash\nls")):
        whole["cells"].insert(place(whole, "q1_test") + 1, own(code, number))


def a_long_experiment(whole):
    whole["cells"].insert(place(whole, "q2_1_test") + 1, own("import time\ntime.sleep(1)"))


def notes(whole):
    whole["cells"].insert(3, {"cell_type": "markdown", "id": "note", "metadata": {}, "source": ["# mine\n", "text"]})


def trusted_and_coloured(whole):
    whole["metadata"] = {"kernelspec": {"name": "my-env", "display_name": "π", "language": "python"}, "colab": {"x": 1}}
    for cell in whole["cells"]:
        cell["metadata"] |= {
            "trusted": True,
            "tags": ["mine"],
            "colab": {"base_uri": "x"},
            "jupyter": {"source_hidden": True},
        }


def source_in_lines(whole):
    for cell in whole["cells"]:
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)


NOTEBOOKS = [
    split, merged, without_metadata, without_ids, copied, reversed_order, only_answers, experiments, a_long_experiment,
    notes, trusted_and_coloured, source_in_lines,
]  # fmt: skip


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize(
    "change, encoding, ends",
    [
        *(pytest.param(change, "utf-8", "\n", id=change.__name__) for change in NOTEBOOKS),
        pytest.param(notes, "utf-8-sig", "\n", id="a byte order mark"),
        pytest.param(notes, "utf-8", "\r\n", id="carriage returns"),
    ],
)
def test_a_changed_notebook(change, encoding, ends, tmp_path):
    whole = solved()
    change(whole)
    path = tmp_path / "my.ipynb"
    path.write_text(json.dumps(whole, indent=1), encoding=encoding, newline=ends)
    lab = demo_lab()
    submission, judge = read_submission(lab, path), Judge(lab, TRUSTED)
    lost = {}
    for question in lab.questions:
        result = judge.grade_question(question, submission)
        if result.earned < result.points:
            lost[question] = result.tests[0].message
    assert not lost
