"""Grades a class on a cluster: a manifest, a job array of Slurm with a chunk of notebooks per task, and their results.

The folder of results has to be where all nodes see it, and so do rooflab and the lab sources. A task grades its chunk
as `rooflab grade` does, and writes one file per student. So the next run grades whatever a lost task has left.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from rooflab.files import replacing
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.classroom.submissions import Handed
from rooflab.grading.lab.model import LabError, from_source

FOLDER = "slurm"  # below that of the results
POLL_S = 1.0
SETTLE_S = 10.0  # until a file that a node wrote is seen over a network disk
SCRIPT = """#!/bin/sh
exec {command} "$SLURM_ARRAY_TASK_ID"
"""


def write_manifest(batch: Batch, todo: Sequence[Handed], jobs: int, chunk: int) -> Path:
    """Write which task grades which notebooks, and all else that a task needs to know, as JSON."""
    folder = batch.folder / FOLDER
    folder.mkdir(exist_ok=True)
    paths = [str(one.path.absolute()) if one.path else "" for one in todo]
    rows = [
        {"student": one.student, "path": path, "problem": one.problem, "seed": one.seed}
        for one, path in zip(todo, paths, strict=True)
    ]
    tasks = [rows[start : start + chunk] for start in range(0, len(rows), chunk)]
    manifest = {
        "lab": str(batch.source.absolute()),
        "folder": str(batch.folder.absolute()),
        "trusted": batch.trusted,
        "gpu": batch.gpu,
        "jobs": jobs,
        "tasks": tasks,
    }
    path = folder / "manifest.json"
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return path


def grade(
    batch: Batch, todo: Sequence[Handed], jobs: int, chunk: int, options: str
) -> Generator[dict[str, Any], None, None]:
    """Submit a job array and give results as they come. Closing the iterator cancels the job.

    Parameters
    ----------
    jobs : int
        Notebooks that a task grades at a time, and processors that it asks for.
    chunk : int
        Notebooks of a task.
    options : str
        More options of sbatch, such as ``--partition=short --time=60``.

    Raises
    ------
    LabError
        There is no Slurm here, or it refuses the job.
    """
    if shutil.which("sbatch") is None:
        raise LabError("sbatch is missing: use --slurm on a machine from which jobs can be submitted.")
    manifest = write_manifest(batch, todo, jobs, chunk)
    for one in todo:
        batch.forget(one)
    script = manifest.with_name("task.sh")
    task = [sys.executable, "-P", "-m", "rooflab.grading.classroom.slurm", str(manifest.absolute())]
    with replacing(script) as unfinished:
        unfinished.write_text(SCRIPT.format(command=shlex.join(task)), encoding="utf-8")
    tasks = -(-len(todo) // chunk)
    command = ["sbatch", "--parsable", "--wait", f"--array=0-{tasks - 1}", f"--cpus-per-task={jobs}"]
    command += [f"--job-name=rooflab-{batch.lab.name}", f"--output={manifest.absolute().parent / 'task-%a.log'}"]
    waiting = subprocess.Popen(
        [*command, *shlex.split(options), str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert waiting.stdout and waiting.stderr
    job = waiting.stdout.readline().strip().split(";")[0]
    if not job:
        raise LabError(f"Slurm did not take the job: {(waiting.stderr.read().strip() or 'sbatch says nothing')[:300]}")
    left = list(todo)
    try:
        yield from _collected(batch, left, waiting)
    finally:
        if left:
            with contextlib.suppress(OSError):
                subprocess.run(["scancel", job], capture_output=True, check=False)
        waiting.kill()  # sbatch polls only every half minute; a job whose results are all here ends by itself
        waiting.communicate()


def _collected(batch: Batch, left: list[Handed], waiting: subprocess.Popen) -> Generator[dict[str, Any], None, None]:
    """Results as their files come; a notebook that has none when the job has ended is a failure."""
    end = float("inf")
    while left and time.monotonic() < end:
        if waiting.poll() is not None:
            end = min(end, time.monotonic() + SETTLE_S)
        found = [(one, result) for one in left if (result := batch.stored(one))]
        for one, result in found:
            left.remove(one)
            yield result
        if not found:
            time.sleep(POLL_S)
    while left:
        yield batch.lost(left.pop(0), "The job ended without a grade; its log is in the folder slurm.")


def run_task(manifest: Path, number: int) -> None:
    """Grade the notebooks of one task. If Slurm starts it again because its node was lost, it goes on where it was."""
    told = json.loads(manifest.read_text(encoding="utf-8"))
    batch = Batch(from_source(Path(told["lab"])), Path(told["folder"]), told["trusted"], told["gpu"])
    ours = [
        Handed(one["student"], Path(one["path"]) if one["path"] else None, one["problem"], one["seed"])
        for one in told["tasks"][number]
    ]
    for result in batch.grade([one for one in ours if not batch.stored(one)], told["jobs"]):
        print(result["student"], result["status"], flush=True)


if __name__ == "__main__":
    run_task(Path(sys.argv[1]), int(sys.argv[2]))
