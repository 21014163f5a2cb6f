"""A sweep of `rooflab bench lm` as a job array of Slurm: one task for each case.

Each task writes the rows of its case into a file of its own, so that no two tasks write the same file; `gathered` reads
them.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from .lm import Result
from .lm_results import Origin, load, write

TASK = "SLURM_ARRAY_TASK_ID"


def rows_folder(file: Path) -> Path:
    """Where the tasks leave their rows for a results file: "rows.json" has the folder "rows.json.tasks".

    Examples
    --------
    >>> rows_folder(Path("out/rows.json")).name
    'rows.json.tasks'
    """
    return file.with_name(file.name + ".tasks")


def script(command: Sequence[str], tasks: int, file: Path, options: Iterable[str] = ()) -> str:
    """The text of a job array that runs a command once for each case.

    Parameters
    ----------
    command : sequence of str
        Measures the whole sweep, ``["rooflab", "bench", "lm", ...]``; a task adds ``--only NUMBER --json FILE`` to it.
    tasks : int
        How many cases there are.
    file : Path
        The results file of the sweep.
    options : iterable of str
        Options of sbatch, such as ``--partition=gpu`` and ``--gres=gpu:1``.

    Examples
    --------
    >>> print(script(["rooflab", "bench", "lm"], 3, Path("rows.json")).splitlines()[2])
    #SBATCH --array=0-2
    """
    folder = rows_folder(file.resolve())
    for option in options:
        if not re.fullmatch(r"-[^\n]+", option):
            raise ValueError(f"[bench] slurm: expected options of sbatch such as --partition=gpu, got {option!r}")
    lines = ["#!/bin/bash", "#SBATCH --job-name=rooflab-bench-lm", f"#SBATCH --array=0-{tasks - 1}"]
    lines += [f"#SBATCH --output={folder}/%a.log", *(f"#SBATCH {option}" for option in options)]
    rows = f'{shlex.quote(str(folder))}/"${TASK}".json'
    lines += ["set -eu", f"cd {shlex.quote(str(Path.cwd()))}"]
    lines += [f'exec {shlex.join(command)} --only "${TASK}" --json {rows}']
    return "\n".join(lines) + "\n"


def submit(command: Sequence[str], tasks: int, file: Path, options: Iterable[str] = ()) -> tuple[Path, str]:
    """Write the script beside the results file and hand it to sbatch.

    Parameters
    ----------
    command, tasks, file, options
        As `script` takes them.

    Returns
    -------
    Path
        The script.
    str
        The job's number.

    Raises
    ------
    ValueError
        If there is no sbatch, or it refuses; the script is written nevertheless.
    """
    path = rows_folder(file.resolve()) / "array.sbatch"
    write(path, script(command, tasks, file, options))
    sbatch = shutil.which("sbatch")
    if sbatch is None:
        raise ValueError(f"[bench] slurm: no sbatch on PATH; {path} is written, submit it where Slurm is installed")
    done = subprocess.run([sbatch, "--parsable", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise ValueError(f"[bench] slurm: sbatch refused {path}: {said}")
    return path, done.stdout.strip().partition(";")[0]  # "number;cluster"


def this_command() -> list[str]:
    """How a task starts the same program: this Python, whatever its PATH."""
    return [sys.executable, "-m", "rooflab"]


def rows_of_tasks(file: Path) -> list[Path]:
    """The files that tasks have written so far, by the number of the task; others in their folder do not count."""
    files = [path for path in rows_folder(file).glob("*.json") if path.stem.isdecimal()]
    return sorted(files, key=lambda path: int(path.stem))


def gathered(file: Path) -> tuple[list[Result], Origin]:
    """The rows that the tasks of a results file have written so far, and where they come from.

    Raises
    ------
    ValueError
        If there are none, or their machines or versions differ.
    """
    folder = rows_folder(file)
    found = [load(path) for path in rows_of_tasks(file)]
    if not found:
        raise ValueError(f"[bench] slurm: no task has left rows in {folder} yet")
    origin = found[0][1]
    for _, other in found:
        if other != origin:
            raise ValueError(f"[bench] slurm: the tasks ran on different machines: {origin}, and {other}")
    return [result for results, _ in found for result in results], origin
