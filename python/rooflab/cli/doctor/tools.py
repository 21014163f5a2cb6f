"""The programs that build rooflab and open the labs."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from .finding import BAD, INSTALL, LABS, LESS, NOTEBOOKS, Finding, install, pip_install
from .system import System

OLDEST_PYTHON = (3, 11)
OLDEST = {"g++": 11, "clang": 14, "Apple clang": 15}
OTHERS = tuple(f"g++-{number}" for number in range(15, 10, -1)) + tuple(f"clang++-{n}" for n in range(21, 13, -1))
UV = (
    "`python3 -m venv .uv && .uv/bin/pip install uv`, then `.uv/bin/uv venv --clear --seed --python 3.12 .venv` and "
    "`source .venv/bin/activate`"
)
NEEDED = ("nbformat", "jupytext")  # for `lab check`; the others open and execute notebooks
LAB_MODULES = (*NEEDED, "ipykernel", "jupyterlab", "nbclient", "nbconvert", "jinja2")


def python(system: System, is_installed: bool) -> Finding:
    """The Python that runs this."""
    found = f"{system.python} ({_short(system, system.executable)})"
    if tuple(map(int, system.python.split(".")[:2])) < OLDEST_PYTHON:
        mend = f"rooflab needs Python 3.11 or newer, and uv brings one without an administrator: {UV}."
        return Finding("Python", found, BAD, mend, (INSTALL, LABS))
    if not is_installed and not system.exists(system.headers):
        mend = f"Its headers are missing: {install(system, 'python3-dev', 'python3-devel')}; or use uv's Python: {UV}."
        return Finding("Python", found, LESS, mend, (INSTALL,))
    if not is_installed and not system.has("ensurepip"):
        mend = f"It cannot make virtual environments: {install(system, 'python3-venv', 'python3')}; or: {UV}."
        return Finding("Python", found, LESS, mend)
    return Finding("Python", found)


def _short(system: System, path: str) -> str:
    """A path without the user's name."""
    home = system.home().rstrip("/")
    return "~" + path[len(home) :] if home and path.startswith(home + "/") else path


class Compiler(NamedTuple):
    """A C++ compiler; `number` is its major version."""

    command: str
    kind: str
    number: int
    version: str

    @property
    def is_new_enough(self) -> bool:
        return self.number >= OLDEST[self.kind]


def compilers(system: System) -> list[Compiler]:
    """The compilers that are here, first the one that a build takes."""
    if system.platform == "darwin" and not system.output("xcode-select", "-p"):
        return []  # /usr/bin/c++ is there all the same, and opens a window
    named = [system.environ["CXX"]] if system.environ.get("CXX") else ["c++", "g++", "clang++"]
    found = []
    for command in (*named, *OTHERS):
        told = system.output(*shlex.split(command), "--version")
        kind = "Apple clang" if "Apple" in told else "clang" if "clang" in told else "g++"
        version = re.search(r"version (\d+)\S*" if "clang" in kind else r"\)\s(\d+)\S*", told)
        if version:
            text = version[0].replace("version ", "").strip(") \n")
            found.append(Compiler(command, kind, int(version[1]), text))
    return found


def compiler(system: System, is_installed: bool) -> Finding:
    """The C++ compiler, which a build from source needs."""
    found = compilers(system)
    state = LESS if is_installed else BAD
    modules = " (on a cluster: `module load gcc`)" if "MODULESHOME" in system.environ else ""
    by_hand = "run `xcode-select --install`" if system.platform == "darwin" else install(system, "g++", "gcc-c++")
    if not found:
        mend = f"A build from source needs a C++ compiler: {by_hand}{modules}."
        return Finding("compiler", "none", state, mend, (INSTALL,))
    first = found[0]
    told = f"{first.kind} {first.version} ({first.command})"
    if first.is_new_enough:
        return Finding("compiler", told)
    newer = next((one.command for one in found if one.is_new_enough), "")
    way = f"build with `CXX={newer} pip install ...`" if newer else by_hand.replace("g++`", "g++-12`") + modules
    mend = f"It is too old, because g++ 11 and clang 14 are the oldest that compile rooflab: {way}."
    return Finding("compiler", told, state, mend, (INSTALL,))


def cuda_toolkit(system: System) -> Finding:
    """The compiler of CUDA, which a build for GPUs needs."""
    homes = [system.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if system.environ.get(name)]
    places = [system.environ.get("CUDACXX", ""), *(f"{home}/bin/nvcc" for home in homes)]  # in the order of a build
    places += [system.which("nvcc"), "/usr/local/cuda/bin/nvcc", f"{system.libraries}/nvidia/cu13/bin/nvcc"]
    for place in filter(None, places):
        if version := re.search(r"release (\d+\.\d+)", system.output(place, "--version")):
            old = tuple(map(int, version[1].split("."))) < (12, 5)
            needs = "; a build for GPUs needs 12.5 or newer" * old
            return Finding("CUDA toolkit", f"{version[1]} ({_short(system, place)}){needs}")
    return Finding("CUDA toolkit", "none; only a build for GPUs needs one")


def jupyter(system: System, is_installed: bool) -> Finding:
    """What `pip install 'rooflab[labs]'` brings. Where rooflab is not installed, that would ask the public index."""
    missing = [name for name in LAB_MODULES if not system.has(name)]
    if not missing:
        return Finding("Jupyter", "everything that labs need")
    stops = (NOTEBOOKS, LABS) if set(missing) & set(NEEDED) else (NOTEBOOKS,)
    command = "`pip install 'rooflab[labs]'`" if is_installed else pip_install(system)
    mend = f"Install it into this environment: {command}."
    return Finding("Jupyter", f"missing: {', '.join(missing)}", LESS, mend, stops)


def git(system: System) -> Finding:
    """Git, which makes a clone."""
    version = system.output("git", "--version").split()
    return Finding("git", version[2] if len(version) > 2 else "none; only a clone needs it")
