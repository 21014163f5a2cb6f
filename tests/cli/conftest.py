"""A class of three."""

import pytest
from grading.demo_lab import SOURCE

from rooflab.cli import main


@pytest.fixture
def handed(tmp_path, capsys, monkeypatch):
    """Notebooks of a class in the folder `handed` of the working directory: ada's has one answer, bob's is broken."""
    monkeypatch.chdir(tmp_path)
    assert main(["lab", "build", "--labs", str(SOURCE.parent), "--output", "handed"]) == 0
    folder = tmp_path / "handed"
    text = (folder / "lab9_demo.ipynb").read_text(encoding="utf-8")
    (folder / "lab9_demo.ipynb").rename(folder / "eve.ipynb")
    (folder / "ada.ipynb").write_text(text.replace("corner = None  # your number", "corner = 50.39"), encoding="utf-8")
    (folder / "bob.ipynb").write_text("{", encoding="utf-8")
    capsys.readouterr()
    return folder
