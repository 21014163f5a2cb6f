"""Grades a class: each notebook by a command of its own, with a time limit, and with one file of results per student.

A notebook that cannot be graded costs no other one its grade. A student's file says which notebook, lab and rooflab the
result comes from, so that a second run grades only what is new or has changed.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import rooflab
from rooflab.files import is_full, replacing
from rooflab.grading.classroom import marking, report, roster, tables
from rooflab.grading.classroom.marking import Deadline, Manual
from rooflab.grading.classroom.submissions import Handed
from rooflab.grading.jail import cgroup, folders, sandbox
from rooflab.grading.judge.judge import EXPERIMENTS_S, SLACK_S
from rooflab.grading.lab.model import Lab, LabError, first_line, label
from rooflab.grading.lab.printable import table_cell
from rooflab.grading.measure import kernel

START_S = 120.0  # for imports and the report, on a slow machine
ROOM_BYTES = 2**25  # in TMPDIR, to grade a notebook
HARMLESS = re.compile(r"[+@-]?[\w.@-]*")  # no formula, although a spreadsheet may take it for one
_COLUMNS = """
student notebook status total out_of points manual_points manual_out_of late_penalty bonus bonus_out_of pending comment
handed_in late isolated why"""
COLUMNS = _COLUMNS.split()


class Batch:
    """Grades what a class handed in for one lab; results go to `folder`, a JSON and an HTML file per student."""

    def __init__(self, lab: Lab, folder: Path, trusted: bool, gpu: bool = False) -> None:
        assert lab.folder
        self.lab, self.source, self.folder, self.trusted, self.gpu = lab, lab.folder, folder, trusted, gpu
        slack_s = EXPERIMENTS_S + SLACK_S
        self.limit_s = START_S + sum(lab.limits(question).seconds + slack_s for question in lab.questions)
        self.running: set[subprocess.Popen] = set()
        self.stopping = False
        self.lock = threading.Lock()
        code = [f"{cell.key}\0{cell.source}\0{cell.options}" for cell in lab.cells if cell.role != "text"]
        self.graded_by = {"rooflab": rooflab.__version__, "lab": hashlib.sha256("\0".join(code).encode()).hexdigest()}

    def known(self, one: Handed) -> dict[str, Any] | None:
        """The result of an earlier run, if it is of this very notebook, lab and rooflab, as isolated as now, and final:
        where kernels can be run, points that were pending can be decided.
        """
        result = self.stored(one)
        if not (one.path and result and result["status"] == "done"):
            return None
        return None if result.get("pending") and kernel.can_run() else result

    def stored(self, one: Handed) -> dict[str, Any] | None:
        """The result in a student's file, or the failure, if it is of this very notebook, lab and rooflab."""
        result = self.read(one)
        ours = {"isolated": not self.trusted, **self._origin(one)}
        return result if result == result | ours and result.get("status") in ("done", "failed") else None

    def with_seed(self, one: Handed) -> Handed:
        """`one` with the seed of an earlier grade of the same notebook, so that the same inputs are drawn again."""
        result = self.read(one)
        seed = result.get("seed") if self.is_of(result, one) else None
        return replace(one, seed=seed if type(seed) is int and seed >= 0 else None)

    def is_of(self, result: Mapping[str, Any], one: Handed) -> bool:
        """Whether a result is of this very notebook, whatever its student was called."""
        return result.get("sha256") == self._origin(one)["sha256"]

    def forget(self, one: Handed) -> None:
        """Remove a student's result, so that the next one can be seen to be new."""
        self._file(one, "json").unlink(missing_ok=True)

    def lost(self, one: Handed, why: str) -> dict[str, Any]:
        """Write and return the result of a student who gets no grade, with the reason. An older page goes."""
        made = {"lab": self.lab.name, "status": "failed", "isolated": not self.trusted, "why": why}
        result = made | self._origin(one)
        self._write(one, result)
        self._file(one, "html").unlink(missing_ok=True)
        return result

    def complete(
        self, result: dict[str, Any], one: Handed, deadline: Deadline | None, manual: Manual
    ) -> dict[str, Any]:
        """Add to a result, and to its file, what does not come from grading: time of handing in, points by hand."""
        more: dict[str, Any] = {"handed_in": "", "late": None, "late_penalty": 0}
        more |= marking.out_of(result, self.lab, manual)
        marks, left_out = marking.fitting(marking.of(manual, one.student), result.get("questions", ()), self.lab)
        notes = (
            [left_out, one.note, result.get("no_report", "")] if result["status"] == "done" else [result.get("why", "")]
        )
        try:
            time = marking.handed_in(one)
            more["handed_in"] = time.isoformat() if time else ""
            if deadline:
                more["late"] = marking.is_late(one, deadline)
                if one.path:
                    more["late_penalty"], said = marking.penalty(one, deadline, more.get("out_of", 0))
                    notes.append(said)
        except (OSError, ValueError, OverflowError) as error:
            notes.append(f"It is not known when this was handed in: {first_line(error)}.")
        more["why"] = " ".join(filter(None, notes))
        whole = marking.merged(result | more, {(one.student, question): mark for question, mark in marks.items()})
        if whole != result:
            self._write(one, whole)
        report.add_by_hand(self._file(one, "html"), whole, marks)
        return whole

    def grade(self, handed: list[Handed], jobs: int) -> Generator[dict[str, Any]]:
        """Results as they come, `jobs` at a time. Closing the iterator ends what is running."""
        cgroup.parent()  # here, so that the commands find it prepared
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for done in as_completed([pool.submit(self._one, one) for one in handed]):
                    yield done.result()
            finally:
                with self.lock:
                    self.stopping = True
                    for process in self.running:
                        _end(process)
                pool.shutdown(cancel_futures=True)

    def write_table(self, results: list[dict[str, Any]]) -> Path:
        """All results as `grades.csv`."""
        path = self.folder / "grades.csv"
        with tables.writing(path) as file:
            rows = csv.DictWriter(file, COLUMNS, restval="", extrasaction="ignore")
            rows.writeheader()
            for result in sorted(results, key=lambda result: result["student"]):
                rows.writerow({name: table_cell(value) for name, value in result.items()})
        return path

    def write_gradebook(self, results: list[dict[str, Any]], handed: Mapping[str, Handed]) -> Path:
        """The total, what lateness took off, and the points of each question as `gradebook.csv`, with the columns by
        which a roster names its students, so that a learning platform can read it. A student without a grade has no
        points, and neither have two that the roster has as one.
        """
        path = self.folder / "gradebook.csv"
        names = dict.fromkeys(name for one in handed.values() for name, _ in one.listed) or {"student": None}
        questions = [label(question) for question in self.lab.questions]
        extra = dict.fromkeys(question for result in results for question in result.get("manual", ()))
        columns = {f"{self.lab.name} {question}": question for question in dict.fromkeys([*questions, *extra])}
        with tables.writing(path) as file:
            first = [f"{self.lab.name} total"]
            first += [f"{self.lab.name} late"] * any(result.get("late_penalty") for result in results)
            rows = csv.DictWriter(file, [*names, *first, *columns], restval="", extrasaction="ignore")
            rows.writeheader()
            shown = next((name for name in names if name.casefold() in roster.NAMES), next(iter(names)))
            apart = {student for students in roster.listed_twice(handed.values()) for student in students}
            for result in sorted(results, key=lambda result: result["student"]):
                listed = {name: _as_listed(name, text) for name, text in handed[result["student"]].listed}
                row: dict[str, Any] = listed or {shown: table_cell(result["student"])}
                has_points = "total" in result and result["student"] not in apart
                row[f"{self.lab.name} total"] = result["total"] if has_points else ""
                row[f"{self.lab.name} late"] = -result.get("late_penalty", 0) if has_points else ""
                points = {one["question"]: one["points"] for one in result.get("questions", ())}
                for column, question in columns.items():
                    given = [of[question] for of in (points, result.get("manual", {})) if question in of]
                    row[column] = sum(given) if given and has_points else ""
                rows.writerow(row)
        return path

    def _one(self, one: Handed) -> dict[str, Any]:
        try:
            return self._result(one)
        except LabError:
            raise
        except Exception as error:  # whatever it is, it costs no other student a grade
            check_room()
            if is_full(error):
                raise
            return self.lost(one, f"It could not be graded: {first_line(error)}.")

    def _result(self, one: Handed) -> dict[str, Any]:
        with folders.temporary("copy") as folder:
            made = self._graded(one, Path(folder)) if one.path else {"why": one.problem}
            if self.stopping:  # a command that was ended has no result
                return {}
            if "why" in made or "no_report" in made:
                check_room()
            if "why" in made:
                return self.lost(one, made["why"])
            result = made | self._origin(one)
            if not (Path(folder) / f"{one.student}.html").exists():
                result["no_report"] = result.get("no_report") or "There is no report."
                self._file(one, "html").unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError), replacing(self._file(one, "html")) as page:
                shutil.copy(Path(folder) / f"{one.student}.html", page)
            self._write(one, result)
            return result

    def read(self, one: Handed) -> dict[str, Any]:
        """What stands in a student's file, or nothing."""
        try:
            result = json.loads(self._file(one, "json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return result if isinstance(result, dict) else {}

    def _write(self, one: Handed, result: dict[str, Any]) -> None:
        with replacing(self._file(one, "json")) as unfinished:
            unfinished.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")

    def _graded(self, one: Handed, folder: Path) -> dict[str, Any]:
        """What `rooflab lab grade` says of a copy, or {"why": why it gave no grade}."""
        assert one.path
        notebook, result = folder / f"{one.student}.ipynb", folder / "grade.json"
        try:
            shutil.copy(one.path, notebook)
        except FileNotFoundError:
            return {"why": f"{one.path.name} was there when the run began, and is gone now."}
        command = [sys.executable, "-P", "-m", "rooflab", "lab", "grade", self.lab.name, str(notebook)]
        command += ["--labs", str(self.source.parent), "--output", str(folder), "--json", str(result)]
        command += ["--trusted"] * self.trusted + ["--gpu"] * self.gpu
        command += ["--seed", str(one.seed)] * (one.seed is not None)
        with self.lock:
            if self.stopping:
                return {}
            process = subprocess.Popen(
                command,
                env=os.environ | sandbox.IDLE_THREADS,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self.running.add(process)
        try:
            said = process.communicate(timeout=self.limit_s)[1]
        except subprocess.TimeoutExpired:
            _end(process)
            process.communicate()
            said = f"Grading took longer than {self.limit_s:g} s in all."
        finally:
            with self.lock:
                self.running.discard(process)
        try:
            made = json.loads(result.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            made = {}
        if made.get("status") != "done":
            lines = said.strip().splitlines() or [f"The command ended with exit code {process.returncode}."]
            return {"why": lines[-1][:300]}
        return (
            made | {"no_report": said.strip().splitlines()[-1][:300]} if process.returncode and said.strip() else made
        )

    def _origin(self, one: Handed) -> dict[str, Any]:
        content = b""
        with contextlib.suppress(OSError):  # grading it says why
            content = one.path.read_bytes() if one.path else b""
        name = one.path.name if one.path else ""
        digest = hashlib.sha256(content).hexdigest()
        return {"student": one.student, "notebook": name, "sha256": digest, "graded_by": self.graded_by}

    def _file(self, one: Handed, kind: str) -> Path:
        return self.folder / f"{one.student}.{kind}"


def _as_listed(name: str, text: str) -> object:
    """A cell of the roster for a system that imports it: a login such as @ada stays, and what a spreadsheet would run
    is quoted.
    """
    return text if name.casefold() in roster.ID_COLUMNS and HARMLESS.fullmatch(text) else table_cell(text)


def check_room() -> None:
    """Raise LabError if TMPDIR is too full to grade in, which is no fault of a student's."""
    place = tempfile.gettempdir()
    free = shutil.disk_usage(place).free
    if free < ROOM_BYTES:
        raise LabError(
            f"The folder for temporary files, {place}, is full: {free >> 20} MiB are free, and a notebook needs "
            f"{ROOM_BYTES >> 20}. Make room there, or set TMPDIR to another folder."
        )


def _end(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
