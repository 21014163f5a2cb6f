"""What holds for the files of every command: none replaces another, and each is written before anything is printed."""

import json
import os
import sys
from pathlib import Path

import pytest
from machine.made_up import ceilings

from rooflab.benchmark.report import running
from rooflab.cli import bench, bench_lm, machine, main, reference
from rooflab.files import check_figure, check_file, check_folder

COST = ["cost", "--model", "llama3-8b", "--length", "8"]
RECALL = ["train", "recall", "--num-layers", "1", "--steps", "2", "--pairs", "2"]
LM = ["train", "lm", "text.txt", "--steps", "1", "--context-length", "4", "--d-model", "8", "--d-ff", "8"]
LM += ["--num-layers", "1", "--num-heads", "1", "--batch-size", "1"]
REPORT = ["bench", "report", "--device", "meta:H200", "--parts", "scaling", "--model-size", "small"]
TEXT = "to be or not to be, that is the question\n" * 8


@pytest.fixture(autouse=True)
def text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([*LM, "--checkpoint", "text.txt"], "--checkpoint: expected another file"),
        ([*LM, "--json", "./text.txt"], "--json: expected another file"),
        ([*LM, "--plot", "link.txt"], "--plot: expected another file"),
        ([*LM, "--checkpoint", "a", "--json", "a"], "--checkpoint and --json: expected two files"),
        ([*RECALL, "--output", "a", "--json", "./a"], "--output and --json: expected two files"),
        ([*COST, "--json", "a", "--csv", "a"], "--json and --csv: expected two files"),
        ([*COST, "--csv", "a", "--html", "here/a"], "--csv and --html: expected two files"),
        (["cost", "--config", "text.txt", "--length", "8", "--csv", "text.txt"], "--csv: expected another file"),
        (["machine", "--json", "a.png", "--plot", "a.png"], "--json and --plot: expected two files"),
        (["bench", "lm", "--json", "a", "--csv", "a"], "--json and --csv: expected two files"),
        ([*REPORT, "--compare", "text.txt", "--json", "text.txt"], "--json: expected another file"),
        (["lab", "grade", "lab1", "text.txt", "--gradescope", "text.txt"], "--gradescope: expected another file"),
        (["lab", "grade", "lab1", "text.txt", "--manual", "m", "--json", "m"], "--json: expected another file"),
    ],
)
def test_no_file_takes_the_place_of_another(words, options, text, capsys):
    (text.parent / "link.txt").symlink_to(text)
    (text.parent / "here").symlink_to(text.parent)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"rooflab {words[0]}: {options}") and said.count("\n") == 1
    assert text.read_text(encoding="utf-8") == TEXT and sorted(os.listdir()) == ["here", "link.txt", "text.txt"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["grade", "lab1", "handed", "--manual", "here/text.txt"], ""),
        (["grade", "lab1", "handed", "--manual", "here/grades.csv"], "--output: expected another folder"),
        (["grade", "lab1", "handed", "--manual", "m", "--roster", "here/gradebook.csv"], "--output: expected another"),
        (["grade", "lab1", "here/alice.json"], "--output: expected another folder"),
        ([*REPORT, "--json", "here/report.md"], "--json and --output: expected two files"),
        ([*REPORT, "--json", "here/figure-3.png"], "--json and --output: expected two files"),
        ([*REPORT, "--compare", "here/rows.json"], "--output: expected another folder"),
        ([*REPORT, "--compare", "link.txt"], "--output: expected another folder"),
        ([*REPORT, "--compare", "text.txt"], "--output: expected another folder"),
        (["lab", "grade", "lab1", "lab1.ipynb", "--json", "lab1.html"], "--json and --output: expected two files"),
        (["lab", "grade", "lab1", "[a].ipynb", "--gradescope", "[a].html"], "--gradescope and --output: expected two"),
        (["lab", "grade", "lab1", "lab1.html"], "--output: expected another folder"),
        (["lab", "run", "lab1", "--json", "lab1_of_the_course.html"], "--json and --output: expected two files"),
    ],
)
def test_no_file_of_the_output_folder_takes_the_place_of_another(words, says, text, capsys):
    (text.parent / "here").symlink_to(text.parent)
    (text.parent / "link.txt").symlink_to(text.parent / "report.html")
    (text.parent / "figure-1.png").symlink_to(text)
    assert main([*words, "--output", str(text.parent)]) == 2
    said = capsys.readouterr().err
    assert (
        says in said
        and said.startswith(f"rooflab {words[0]}: {says}" if says else "There is no")
        and said.count("\n") == 1
    )
    assert text.read_text(encoding="utf-8") == TEXT and len(os.listdir()) == 4


@pytest.mark.parametrize(
    "words",
    [
        [*COST, "--json", "{}", "--csv", "b"],
        [*COST, "--plot", "{}"],
        [*LM, "--checkpoint", "{}"],
        [*RECALL, "--output", "{}"],
        ["train", "lm", "{}"],
        ["cost", "--config", "{}", "--length", "8", "--csv", "a"],
        ["machine", "--plot", "{}.png"],
        ["doctor", "--json", "{}"],
        ["bench", "exp", "--json", "{}"],
        ["bench", "lm", "--csv", "{}", "--json", "a"],
        [*REPORT, "--compare", "{}", "--json", "a"],
        [*REPORT, "--output", "{}"],
        ["grade", "lab1", "{}"],
        ["grade", "lab1", "handed", "--output", "{}"],
        ["lab", "grade", "lab1", "{}.ipynb", "--json", "a"],
        ["lab", "check", "lab1.ipynb", "--json", "{}"],
        ["docs", "--output", "{}"],
    ],
)
@pytest.mark.parametrize("name", ["x" * 300, "loop/a"], ids=["too long", "below a link to itself"])
def test_a_name_that_no_file_can_have_is_a_sentence(words, name, text, capsys):
    (text.parent / "loop").symlink_to("loop")
    assert main([word.format(name) for word in words]) == 2
    out, err = capsys.readouterr()
    assert err.count("\n") == 1 and not out
    assert sorted(os.listdir()) == ["loop", "text.txt"]


@pytest.mark.parametrize("check", [check_file, check_folder, check_figure])
def test_a_name_that_no_file_can_have_is_refused_before_the_work(check):
    check(Path("x" * 255))
    with pytest.raises(OSError, match="File name too long") as raised:
        check(Path("x" * 256))
    assert Path(raised.value.filename).name == "x" * 256


def test_links_to_themselves_are_files_apart(capsys):
    for name in ("a", "b"):
        os.symlink(name, name)
    assert main([*COST, "--csv", "a", "--html", "b"]) == 0  # no file is at the end of such a link


def test_devices_take_several_outputs():
    assert main([*COST, "--json", "/dev/null", "--csv", "/dev/null"]) == 0


@pytest.mark.parametrize(
    "words",
    [[*COST, "--csv"], [*COST, "--plot"], [*LM, "--checkpoint"], [*RECALL, "--output"], ["bench", "lm", "--markdown"]],
)
def test_a_dash_is_standard_output_for_json_alone(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*words, "-"])
    assert ended.value.code == 2 and "only --json takes - for standard output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ([*COST, "--gpu", ""], "--gpu"),
        ([*COST, "--gpu="], "--gpu"),
        ([*COST, "--csv", ""], "--csv"),
        ([*RECALL, "--device", ""], "--device"),
        (["bench", "exp", "--case", ""], "--case"),
        (["train", "lm", ""], "arguments"),
        (["lab", "build", ""], "arguments"),
        (["lab", "list", "--labs="], "--labs"),
    ],
)
def test_an_empty_text_is_no_value(words, option, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err == f"rooflab {words[0]}: {option}: expected a value, got an empty text\n"


class Closed:
    """Standard output whose reader has left."""

    def write(self, text):
        raise BrokenPipeError

    def flush(self):
        pass

    def fileno(self):
        raise OSError


class ClosedAfter(Closed):
    """One whose reader leaves as soon as some words come."""

    def __init__(self, words):
        self.words = words

    def write(self, text):
        if self.words in text:
            raise BrokenPipeError


def measured(*arguments, **options):
    return ceilings()


@pytest.mark.parametrize(
    ("words", "last"),
    [
        ([*COST, "--json", "a", "--csv", "b", "--html", "c"], ""),
        ([*COST, "--gpu", "H100", "--plot", "a"], ""),
        (["machine", "--json", "a", "--plot", "b"], ""),
        (["doctor", "--json", "a"], ""),
        ([*LM, "--json", "a", "--checkpoint", "b", "--plot", "c"], "step      1"),
        ([*RECALL, "--json", "a", "--output", "b"], "step     2"),
        (["bench", "lm", "--device", "meta:H200", "--mode", "all", "--json", "a", "--csv", "b"], "mode "),
        (["bench", "exp", "--case", "float16", "--turns", "1", "--json", "a"], "exp"),
    ],
)
def test_what_was_asked_for_is_written_before_it_is_printed(words, last, monkeypatch):
    monkeypatch.setattr(machine, "measure", measured)
    monkeypatch.setattr(sys, "stdout", ClosedAfter(last))
    assert main(words) == 2
    named = [word for word in words if len(word) == 1 and word.isalpha()]
    assert [name for name in named if not os.path.getsize(name)] == []


def stops(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("owner", "name", "words"),
    [
        (machine, "measure", ["machine", "--refresh"]),
        (reference, "replacing", ["docs"]),
        (bench, "bench_case", ["bench", "exp", "--json", "rows.json"]),
        (bench_lm.sweep, "measure", ["bench", "lm", "--json", "rows.json"]),
        (running, "measure", [*REPORT[:4], "--parts", "step", "--model-size", "small", "--output", "there"]),
    ],
)
def test_ctrl_c_is_a_sentence_that_names_no_file_without_one(owner, name, words, monkeypatch, capsys):
    monkeypatch.setattr(owner, name, stops)
    assert main(words) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "Stopped."


def test_ctrl_c_leaves_the_rows_of_an_older_run_unnamed(monkeypatch, capsys, tmp_path):
    words = ["bench", "exp", "--case", "float16", "--turns", "1", "--json", "rows.json"]
    assert main(words) == 0
    old = (tmp_path / "rows.json").read_text(encoding="utf-8")
    monkeypatch.setattr(bench, "bench_case", stops)
    assert main(words) == 130
    assert capsys.readouterr().err == "Stopped.\n"
    assert (tmp_path / "rows.json").read_text(encoding="utf-8") == old


def test_a_loss_says_what_it_is_the_mean_of(capsys, tmp_path):
    assert main([*LM, "--steps", "3", "--every", "2", "--json", "a"]) == 0
    losses = json.loads((tmp_path / "a").read_text(encoding="utf-8"))["losses"]
    lines = capsys.readouterr().out.splitlines()[-2:]
    means = [sum(losses[:2]) / 2, sum(losses[1:]) / 2]
    assert lines == [
        f"step {step:6}   loss {mean:6.3f} (mean of 2 steps)" for step, mean in zip((2, 3), means, strict=True)
    ]
