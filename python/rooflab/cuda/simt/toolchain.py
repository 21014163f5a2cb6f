"""The machine's C++ compiler, and what it has built before.

Everything is kept by its content in the user's cache folder: the two programs of the runtime, and each kernel's
library. A file appears there whole or not at all, so several processes can build the same file.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from platformdirs import user_cache_path

from ...files import replacing
from .. import program
from .assembly import Site, check_calls, complete
from .front_end import Translation
from .names import HEADERS
from .pieces import alignments
from .stores import storing

RUNTIME = HEADERS.parent
_PROGRAMS = {
    "runner": [
        *("runner", "confine", "hooks", "scheduler", "faults", "intrinsics", "special", "print", "matrix_product"),
        "fiber",
    ],
    "accountant": ["accountant", "warp_merge", "shared_shadow", "global_shadow", "request"],
}
_PROGRAM_FLAGS = [
    "-std=c++17",
    "-O2",
    "-fno-omit-frame-pointer",
    "-rdynamic",
    "-static-libstdc++",
    "-static-libgcc",
    "-ldl",
]
_KERNEL_FLAGS = [
    "-x", "c++", "-std=gnu++17", "-S", "-g1", "-gstatement-frontiers", "-fPIC", "-fvisibility=hidden",
    "-fno-exceptions", "-fno-rtti", "-fno-builtin", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off",
    "-fno-math-errno", "-fno-finite-loops", "-fno-jump-tables", "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables", "-fno-optimize-sibling-calls", "-fno-threadsafe-statics", "-Wall",
    "-fno-delete-null-pointer-checks",  # else a kernel that stores through null may vanish, and the launch succeeds
    # A large frame meets the page below its stack; else it would lie in another thread's.
    "-fstack-clash-protection", "--param=stack-clash-protection-guard-size=12",
    "-Wno-sign-compare",  # as nvcc: threadIdx.x has no sign, and int has one
    "-Wno-unknown-pragmas", "-Wno-stringop-overflow", "-Wno-array-bounds", "-Wno-attributes", "-Werror=vla",
    # What C++ leaves undefined and this machine does otherwise than a GPU.
    "-fsanitize=integer-divide-by-zero,shift-exponent,float-cast-overflow", "-fno-sanitize-recover=all",
]  # fmt: skip
# Blocks stay in the order of the source, none is there twice and no loop is changed: counts are those of the program as
# it is written. Without points-to analysis and induction variables, an access to a local array through its address has
# its hook too, and one without a hook has its base in the frame pointer.
_CHECKED_FLAGS = [
    "-O1", "-fno-omit-frame-pointer", "-fno-reorder-blocks", "-fno-reorder-blocks-and-partition",
    "-fno-toplevel-reorder", "--param=max-jump-thread-duplication-stmts=0", "-fno-tree-loop-im", "-fno-tree-pta",
    "-fno-ivopts", "-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fsanitize=thread",
    "--param=tsan-distinguish-volatile=1",
    "-fsanitize=bounds-strict,object-size,return,unreachable,alignment",
    "-fsanitize-coverage=trace-pc",
]  # fmt: skip
# A GPU accesses a structure with an alignment of its own as one. Else the members that are used are accesses.
_WHOLE_FLAGS = ["-fno-tree-sra", "-fno-ipa-sra"]
_RULES = ("assembly", "pieces", "stores")  # the modules that decide what is made of a compiled source
_SECONDS = 30.0  # for one source
_INSTALL = (
    "on a cluster module load gcc, without an administrator conda install gxx, or have one run apt-get install g++ "
    "(dnf install gcc-c++ libstdc++-static)"
)
_MESSAGE = re.compile(
    r"^([^\s:]+):(\d+):(?:\d+:)? (?:((?:fatal )?error|warning): (.*)"
    r"|  required from here|note: in expansion of macro .*)$",
    re.MULTILINE,
)
_BEFORE_CASE = "a variable before the first case of a switch is not supported: declare it before the switch"
_UNION = "a union that holds a float4 or its like cannot be copied as a whole here: copy the member that was set"


class NoCompiler(RuntimeError):
    """Kernels cannot be run on this machine's CPU; the message says what to install."""


class CompilerError(Exception):
    """What the compiler says, with the lines of the source."""


@dataclass(frozen=True)
class Library:
    """A compiled source: its file, its sites, each kernel's parameters and bytes of static shared memory, whether each
    says that it stores something, and the compiler's warnings.
    """

    path: Path
    sites: list[Site]
    parameters: list[str]
    shared: list[int]
    storing: list[bool]
    log: str


@functools.cache
def compiler() -> str:
    """The path of g++.

    Raises
    ------
    NoCompiler
        Where there is none, it is clang or lacks its static library, or the system is not Linux.
    """
    if _given:
        return _given[0]
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise NoCompiler("backend='simt' runs on Linux on x86-64 and aarch64; Windows has it in WSL 2")
    if not (found := shutil.which("g++")):
        raise NoCompiler(f"backend='simt' needs g++: {_INSTALL}")
    path = os.path.abspath(found)  # by this name: a link to ccache is g++ only under its own
    if "clang" in _said(path, "--version"):
        raise NoCompiler(f"backend='simt' needs GNU's g++, and {path} is clang: {_INSTALL}")
    if not os.path.isabs(_said(path, "-print-file-name=libstdc++.a")):  # Red Hat's is a package of its own
        raise NoCompiler(f"backend='simt' needs libstdc++.a, which {path} lacks: {_INSTALL}")
    return path


@functools.cache
def wild_locals() -> list[str]:
    """The flags, from g++ 12 on, by which local variables that nobody set hold wild values: a sum without a beginning
    would mostly begin with 0 on this machine. One that cannot hold them is an error.
    """
    major = _said(compiler(), "-dumpversion").partition(".")[0]
    flags = ["-ftrivial-auto-var-init=pattern", "-Werror=trivial-auto-var-init"]
    return flags if major.isdigit() and int(major) >= 12 else []


@functools.cache
def programs() -> tuple[Path, Path]:
    """The runner and the accountant, built at their first use."""
    if _given:
        return _given[1]
    with ThreadPoolExecutor() as pool:
        runner, accountant = pool.map(_program, _PROGRAMS)
    return runner, accountant


def use(path: str, runner: Path, accountant: Path) -> None:
    """Use this compiler, and programs that were built before, where neither would be found."""
    global _given
    _given = path, (runner, accountant)
    compiler.cache_clear()
    programs.cache_clear()


@functools.cache
def folders() -> list[Path]:
    """The folders that g++ needs: itself, the compiler proper, assembler, linker, headers and libraries. None
    where there is no g++.
    """
    try:
        path = compiler()
    except NoCompiler:
        return []
    asked = [f"-print-prog-name={name}" for name in ("cc1plus", "as", "ld", "collect2")]
    asked += [f"-print-file-name={name}" for name in ("libgcc.a", "libm.so", "libc.so.6", "include")]
    found = [Path(path), Path(_said(path, "-print-sysroot") or "-") / "usr"]
    found += [Path(_said(path, question)) for question in asked]
    there = [one for one in found if one.is_absolute() and one.exists()]
    return sorted({folder for one in there for folder in (one.parent, one.resolve().parent)})


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, errors="replace").stdout.strip()


def _program(name: str) -> Path:
    sources = [RUNTIME / f"{part}.cpp" for part in _PROGRAMS[name]]
    texts = [path.read_text(encoding="utf-8") for path in [*sources, *_headers()]]
    path = _folder() / f"{name}-{_key([_identity(), *_PROGRAM_FLAGS, *texts])}"
    if not path.exists():
        with replacing(path) as unfinished:
            try:
                _run([compiler(), *map(str, sources), "-o", str(unfinished), *_PROGRAM_FLAGS])
            except CompilerError as error:  # no fault of a kernel's source
                raise NoCompiler(
                    f"backend='simt' needs a g++ that builds its programs, and {compiler()} says: {error}"
                ) from None
    return path


def library(translation: Translation, *, is_checked: bool) -> Library:
    """Compile a translated source; at once if this was done before.

    Parameters
    ----------
    translation : Translation
        From `front_end.translate`.
    is_checked : bool
        With the hooks that check and record each access; without them it is as fast as the compiler makes it.

    Raises
    ------
    CompilerError
        When the source has errors.
    Refused
        When the assembly does what a kernel may not do.
    """
    flags = [*_KERNEL_FLAGS, *wild_locals(), *(_CHECKED_FLAGS if is_checked else ["-O2"])]
    flags += _WHOLE_FLAGS if translation.aligns else []
    rules = [(Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8") for name in _RULES]
    headers = [path.read_text(encoding="utf-8") for path in _headers()]
    made = _folder() / _key([_identity(), *flags, *rules, *headers, translation.text])
    code, facts = made.with_suffix(".so"), made.with_suffix(".json")
    if not facts.exists():  # the last one that is written
        _build(translation, flags, code, facts)
    known = json.loads(facts.read_text(encoding="utf-8"))
    sites = [Site(**site) for site in known.pop("sites")]
    return Library(code, sites, **known)


def _build(translation: Translation, flags: list[str], code: Path, facts: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kinds = ("cpp", "s", "dump", "early", "classes")
        source, assembly, dump, early, classes = (Path(folder) / f"kernel.{kind}" for kind in kinds)
        source.write_text(translation.text, encoding="utf-8")
        command = [compiler(), *flags, f"-I{HEADERS}", str(source), "-o", str(assembly)]
        command += [f"-fdump-tree-optimized-uid={dump}", f"-fdump-tree-forwprop1={early}"]
        command += [f"-fdump-lang-class={classes}"]
        try:
            log = _run(command)
        except CompilerError as error:
            if "always_inline" not in str(error):
                raise
            log = _run([*command, "-DRL_RECURSION"])  # a function that calls itself
        dumps = (dump, early, classes)
        form, said, listed = (path.read_text(encoding="utf-8") if path.exists() else "" for path in dumps)
        completed = complete(assembly.read_text(encoding="utf-8"), alignments(form, listed), translation.places)
        if form:
            check_calls(form)
        elif any(parameters != "-" for parameters in completed.parameters):  # there are functions
            raise NoCompiler(f"backend='simt' needs what -fdump-tree-optimized writes, and {compiler()} writes nothing")
        assembly.write_text(completed.text, encoding="utf-8")
        with replacing(code) as unfinished:
            # No start files: nothing of the library runs but a kernel. Its addresses are read-only once it is loaded.
            link = ["-shared", "-nostartfiles", "-nostdlib", "-Wl,-z,now,-z,relro,-z,noexecstack", "-lgcc", "-lm"]
            _run([compiler(), str(assembly), "-o", str(unfinished), *link])
    known = {
        "sites": [asdict(site) for site in completed.sites], "parameters": completed.parameters,
        "shared": completed.shared, "storing": storing(said, len(completed.parameters)), "log": log,
    }  # fmt: skip
    with replacing(facts) as unfinished:
        unfinished.write_text(json.dumps(known), encoding="utf-8")


def _run(command: list[str]) -> str:
    """What the compiler says, with the lines of the source."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        said, code = program.run(command, _SECONDS, environment)
    except TimeoutError:
        raise CompilerError(f"the compiler was not done after {_SECONDS:g} s") from None
    told = "\n".join(_messages(said))
    if code != 0:
        raise CompilerError(told or said.strip())
    return told


def _messages(said: str) -> list[str]:
    """Errors and warnings by the source's lines: one within a header is told of the line that asked for it."""
    found: list[str] = []
    asked = within = ""  # who asked for a header's template, which stands before, or macro, which stands behind
    for match in _MESSAGE.finditer(said):
        file, line, kind, what = match.groups()
        place = f"{file}({line})" if file in ("source", "kernels") else ""
        if kind and place:
            if "[-Werror=trivial-auto-var-init]" in what:
                what = _BEFORE_CASE
            if re.match("union member .* with non-trivial 'rl_vector", what):
                what = _UNION
                if found and "deleted function" in found[-1]:  # which nobody wrote
                    place = found.pop().partition(":")[0]
            found.append(f"{place}: {kind}: {what}")
        elif kind and "error" in kind:
            within = f"{kind}: {what.removeprefix('static assertion failed: ')}"
        elif "required from" in match[0]:
            asked = place
        if within and (asked or (place and not kind)):
            found.append(f"{asked or place}: {within}")
            within = ""
    of_source = [message for message in found if message.startswith("source")]
    told = [message for message in of_source if not message.endswith(" declared void")]  # because a type is not known
    return list(dict.fromkeys(told or of_source or found))


_given: tuple[str, tuple[Path, Path]] | None = None


def _headers() -> list[Path]:
    return sorted([*RUNTIME.glob("*.h"), *HEADERS.glob("*.h")])


@functools.cache
def _identity() -> str:
    """Tells this compiler from any other, and from its next version."""
    path = compiler()
    known = os.stat(path)
    return f"{path} {known.st_size} {known.st_mtime_ns}"


def _folder() -> Path:
    folder = user_cache_path("rooflab") / "simt"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _key(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]
