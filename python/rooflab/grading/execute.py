"""Run a solved notebook in a Jupyter kernel, with a line of progress a cell."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rooflab.grading.lab import Lab

CELL_TIMEOUT_S = 600


def execute(
    lab: Lab,
    notebook: Any,
    folder: str,
    say: Callable[[str], None],
    working_on: Callable[[str], AbstractContextManager],
) -> list[str]:
    """Fill the notebook's outputs in place; files that it writes go to `folder`.

    `say` is told each cell that was run, and `working_on` makes a context in which a cell runs. Returns a sentence for
    each cell that failed.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as sockets:
        manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{sockets}/kernel")
        where = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, km=manager, timeout=CELL_TIMEOUT_S, resources=where)
        client.owns_km = True  # so that the kernel is shut down with the client
        with client.setup_kernel():
            return _run(client, lab, notebook, say, working_on)


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
