"""Run a solved notebook in a Jupyter kernel, with one line of progress per cell.

The kernel runs in a jail like that of student code, and may start processes there. It communicates over sockets in a
folder that the jail shares with this process, so neither needs a network.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import rooflab
from rooflab.grading.jail import folders, jail, sandbox, worker_command
from rooflab.grading.lab.model import Lab, Limits

CELL_TIMEOUT_S = 600
MEMORY_GB = 16.0  # of the whole notebook
LONGEST_FOLDER = 70  # characters: systems take 100 or so for the path of a socket


def execute(
    lab: Lab,
    notebook: Any,
    folder: str,
    say: Callable[[str], None],
    working_on: Callable[[str], AbstractContextManager],
    isolated: bool,
) -> list[str]:
    """Fill the notebook's outputs in place. Files that it writes go to `folder`, or are removed if it is `isolated`.

    `say` is called for each cell that was run, and `working_on` makes a context in which a cell runs. Returns a
    sentence for each cell that failed.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    with contextlib.ExitStack() as held:
        short = "/tmp" if len(tempfile.gettempdir()) > LONGEST_FOLDER else None
        sockets = held.enter_context(folders.temporary("report", short))
        home = held.enter_context(folders.temporary("report"))
        kind: type = AsyncKernelManager
        started: dict[str, Any] = {}
        if isolated:
            kind = _jailed(lab, len(notebook.cells), sockets, home, held)
            started = {"env": _environment(home), "independent": True}  # it ends with the jail
        manager = kind(kernel_name="python3", transport="ipc", ip=f"{sockets}/kernel")
        manager.connection_file = f"{sockets}/kernel.json"
        where = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, km=manager, timeout=CELL_TIMEOUT_S, resources=where)
        client.owns_km = True  # so that the kernel is shut down with the client
        with client.setup_kernel(**started):
            return _run(client, lab, notebook, say, working_on)


def _jailed(lab: Lab, cells: int, sockets: str, home: str, held: contextlib.ExitStack) -> type:
    """A kernel manager whose kernels run in the jail."""
    from jupyter_client.manager import AsyncKernelManager

    limits = Limits(seconds=CELL_TIMEOUT_S * cells, memory_gb=MEMORY_GB)
    hidden = [str(lab.folder.parent)] if lab.folder else []
    group = sandbox.group(limits)
    if group:
        held.callback(group.remove)

    class Jailed(AsyncKernelManager):
        def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
            argv = [*super().format_kernel_cmd(extra_arguments), "--quiet"]
            return sandbox.command(
                argv, limits, home, True, hidden, group, shared=[jail.given(sockets)], processes=True
            )

    return Jailed


def _environment(home: str) -> dict[str, str]:
    """The worker's environment, but with plots in the notebook and with the rooflab of this process."""
    made = sandbox.environment(home)
    del made["MPLBACKEND"]
    places = [str(Path(rooflab.__file__).parents[1]), *worker_command.libraries()]
    return made | {"PYTHONPATH": os.pathsep.join(places)}


def _run(client: Any, lab: Lab, notebook: Any, say: Callable, working_on: Callable) -> list[str]:
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    code = [index for index, cell in enumerate(notebook.cells) if cell.cell_type == "code" and cell.source.strip()]
    failed: list[str] = []
    for number, index in enumerate(code, 1):
        key, start = lab.cells[index].key, time.monotonic()
        try:
            with working_on(f"[{number}/{len(code)}] {key}"):
                client.execute_cell(notebook.cells[index], index)
        except CellExecutionError as error:
            failed.append(f"Cell {key} failed: {error.ename}: {error.evalue}")
        except CellTimeoutError:
            failed.append(f"Cell {key} took longer than {CELL_TIMEOUT_S} s.")
        except DeadKernelError:
            failed.append(f"Cell {key} ended the kernel.")
            return failed
        say(f"[{number}/{len(code)}] {key} ({time.monotonic() - start:.1f} s)")
    return failed
