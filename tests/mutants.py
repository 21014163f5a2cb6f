"""Faults that tests must notice: applies each of tests/mutants.txt in a copy of the tree and prints those that survive.

    python tests/mutants.py                       all faults in Python
    python tests/mutants.py --sample 10 --seed x  ten of them, always the same ones for a seed
    python tests/mutants.py --build 'make -C {}'  those in C++; the command makes the extension of the copy at {}
    python tests/mutants.py roofline              those whose file or text has this word

An entry of the list is a file and the tests that must fail, then the text to replace and what replaces it:

    == python/rooflab/units.py | tests/test_units.py
    - "GB/s": (1e9, "B/s"),
    + "GB/s": (2**30, "B/s"),

Before the faults comes a control: if tests do not pass without a fault, their faults are left out. With --passed there
is none, because the whole suite has just passed. Faults in CUDA kernels need a GPU.
The exit code is 0 if all were noticed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import rooflab

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "mutants.txt"
SECONDS = 300  # for the tests of one fault, which may hang


@dataclass(frozen=True)
class Fault:
    """`old`, found once in `file`, is replaced by `new`; one of `tests` must then fail."""

    file: str
    tests: tuple[str, ...]
    old: str
    new: str

    @property
    def needs_build(self) -> bool:
        is_compiled_here = self.file.startswith("csrc/")  # what lies in python/ is compiled when it is used
        return is_compiled_here and self.tests != ("tests/test_layering.py",)

    @property
    def needs_gpu(self) -> bool:
        return self.file.endswith((".cu", ".cuh"))

    def __str__(self) -> str:
        return f"{self.file}: {self.old!r} -> {self.new!r}"

    def applied(self, tree: Path) -> str:
        """The file's text with the fault."""
        text = (tree / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self}: the text is there {text.count(self.old)} times")
        return text.replace(self.old, self.new)


def faults(path: Path = LIST) -> list[Fault]:
    """The committed list."""
    found = []
    for entry in path.read_text(encoding="utf-8").split("\n== ")[1:]:
        head, *lines = entry.strip("\n").split("\n")
        file, tests = head.split(" | ")
        old, new = ("\n".join(line[2:] for line in lines if line.startswith(sign)) for sign in "-+")
        found.append(Fault(file, tuple(shlex.split(tests)), old, new))
    return found


def copy_tree(to: Path) -> None:
    """All files that git knows or would add, and the built extension."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    for extension in Path(rooflab.__file__).parent.glob("_core.*.so"):
        shutil.copy2(extension, to / "python" / "rooflab" / extension.name)


def outcome(tests: tuple[str, ...], tree: Path, shows: bool = False) -> str:
    """ "passed", "failed", or why that is not known. With `shows`, it prints what pytest says of tests that fail."""
    # The copy must win over an installed package, in programs that tests start as well.
    environment = os.environ | {"PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--all-tests", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer in {SECONDS} seconds"
    if shows and done.returncode:
        print(done.stdout[-4000:], done.stderr[-1000:], flush=True)
    if done.returncode == 1 or done.returncode < 0:  # a crash is noticed too
        return "failed"
    if done.returncode == 4 and "ImportError while loading conftest" in done.stdout + done.stderr:
        return "failed"  # the package cannot be imported
    if done.returncode == 2 and "Interrupted: 1 error during collection" in done.stdout:
        return "failed"
    return "passed" if done.returncode == 0 else f"no answer, pytest's exit code is {done.returncode}"


class Trees:
    """Copies of the tree, each for one fault at a time."""

    def __init__(self, places: list[Path], build: str | None) -> None:
        self.build, self.free = build, queue.SimpleQueue[Path]()
        for place in places:
            copy_tree(place)
            self.make(place)
            self.free.put(place)

    def make(self, place: Path) -> None:
        if self.build:
            subprocess.run(self.build.replace("{}", str(place)), shell=True, check=True, capture_output=True)

    def outcome(self, tests: tuple[str, ...]) -> str:
        """The outcome of tests without a fault."""
        place = self.free.get()
        try:
            return outcome(tests, place, shows=True)
        finally:
            self.free.put(place)

    def verdict(self, fault: Fault) -> str:
        """ "noticed", "survived", or why that is not known."""
        place = self.free.get()
        path = place / fault.file
        right = path.read_text(encoding="utf-8")
        try:
            path.write_text(fault.applied(place), encoding="utf-8")
            self.make(place)
            found = outcome(fault.tests, place)
        except (ValueError, subprocess.CalledProcessError) as error:
            found = str(error)
        finally:
            path.write_text(right, encoding="utf-8")
            self.free.put(place)
        return {"failed": "noticed", "passed": "survived"}.get(found, found)


def survivors(chosen: list[Fault], build: str | None, jobs: int, passed: bool = False) -> list[str]:
    """Apply the faults, `jobs` at a time. Says in words which were not noticed. `passed`: without the control."""
    with contextlib.ExitStack() as folders, ThreadPoolExecutor(jobs) as pool:
        made = [folders.enter_context(tempfile.TemporaryDirectory(prefix="rooflab-mutants-")) for _ in range(jobs)]
        trees = Trees([Path(folder) for folder in made], build)
        tests = [] if passed else sorted({fault.tests for fault in chosen})
        broken = [one for one, found in zip(tests, pool.map(trees.outcome, tests), strict=True) if found != "passed"]
        missed = [f"does not pass without a fault: {' '.join(one)}" for one in broken]
        left = [fault for fault in chosen if fault.tests not in broken]
        for number, (fault, verdict) in enumerate(zip(left, pool.map(trees.verdict, left), strict=True), start=1):
            print(f"[{number}/{len(left)}] {verdict}: {fault}", flush=True)
            if verdict != "noticed":
                missed.append(f"{verdict}: {fault} | {' '.join(fault.tests)}")
        return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only faults that have one of these words")
    parser.add_argument("--sample", type=int, help="that many, chosen by the seed")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (default: 1)")
    parser.add_argument("--passed", action="store_true", help="without a control: the whole suite has just passed")
    parser.add_argument("--build", help="faults in C++: the command that builds a copy at {}")
    options = parser.parse_args()
    chosen = [fault for fault in faults() if fault.needs_build == bool(options.build)]
    if options.words:
        chosen = [fault for fault in chosen if any(word in str(fault) for word in options.words)]
    if not rooflab.cuda.is_available() and any(fault.needs_gpu for fault in chosen):
        chosen = [fault for fault in chosen if not fault.needs_gpu]
        print(f"Faults in CUDA kernels are left out: {rooflab.cuda.unavailable_reason()}")
    if options.sample:
        chosen = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
    missed = survivors(chosen, options.build, options.jobs, options.passed)
    print(f"{len(chosen)} faults, {len(missed)} not noticed", *missed, sep="\n")
    return bool(missed) or not chosen


if __name__ == "__main__":
    sys.exit(main())
