"""What holds for every command: help, JSON on standard output, errors that name options, packages that are missing."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rooflab.cli import _COMMANDS, bench, main
from rooflab.cli.arguments import one_of, told

COST = ["cost", "--model", "llama3-8b", "--length", "128"]


@pytest.mark.parametrize(
    "words", [[], ["lab"], ["bench"], ["train"], ["bench", "lm", "--help"], ["bench", "exp", "-h"]]
)
def test_a_group_of_commands_alone_shows_them(words, capsys):
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    printed = capsys.readouterr()
    assert code == 0 and printed.err == "" and printed.out.startswith(" ".join(["usage: rooflab", *words[:1]]))
    assert len(printed.out.splitlines()) > 8


def undescribed(parser):
    """The arguments of a command and its subcommands whose help says nothing."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in {id(one): one for one in action.choices.values()}.values():
                yield from undescribed(command)
        elif not action.help:
            yield f"{parser.prog} {action.dest}"


@pytest.mark.parametrize(("name", "module"), [(name, module) for name, module, _ in _COMMANDS])
def test_the_help_describes_every_argument(name, module):
    parser = argparse.ArgumentParser(prog=name)
    module.add_arguments(parser)
    assert list(undescribed(parser)) == []


def test_the_help_of_bench_names_its_subcommand(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    assert "\n    lm  " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bench", "matmul", "--device", "tpu"], "rooflab bench: --device: expected cpu, cuda or cuda:N, got 'tpu'"),
        (["bench", "lm", "--device", "tpu"], "rooflab bench lm: --device: expected cpu, cuda"),
        (["bench", "lm", "--only", "7", "--device", "cpu"], "rooflab bench lm: --only: expected 0 to 0, got 7"),
        (
            ["bench", "exp", "--case", "typo"],
            "rooflab bench: --case: no case of exp has 'typo' in its name. There are: ",
        ),
        (["bench", "layer", "--case", "typo", "--device", "cpu"], "rooflab bench: --case: no case of layer has 'typo'"),
        (["bench", "--turns", "3", "exp"], "rooflab bench: name what to benchmark before the options"),
        (["bench", "model", "--peer", "torch"], "rooflab bench: --peer is for ops and for layer"),
        (["machine", "--device", "tpu"], "rooflab machine: --device: expected"),
        ([*COST, "--gpu", "X1"], "rooflab cost: --gpu: no 'X1'; expected one of A6000, "),
        ([*COST, "--batch", "0"], "rooflab cost: --batch: expected a whole number from 1"),
        (["train", "recall", "--num-layers", "1", "--device", "tpu"], "rooflab train recall: --device: expected"),
        (["bench", "lm", "--slurm", "--json", "-"], "--json: the tasks of --slurm leave their rows beside a file"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_errors_are_one_sentence_that_names_options(words, says, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(says) and error.count("\n") == 1 and ": [" not in error, error


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["bench", "exp", "--json"], "file"),
        (["bench", "lm", "--csv"], "file"),
        (["bench", "lm", "--markdown"], "file"),
        (["bench", "report", "--json"], "file"),
        (["bench", "report", "--output"], "folder"),
    ],
)
def test_what_cannot_be_written_is_refused_before_it_is_measured(words, what, monkeypatch, capsys):
    for module in (bench.bench_lm, bench.bench_report, bench):
        monkeypatch.setattr(module, "provenance" if module is bench else "lm_results", None)
    assert main([*words, "/dev/null/new"]) == 2
    assert f"no {what} can be written: '/dev/null/new'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["cost", "--length", "5", "--config"],
        ["train", "lm"],
        ["bench", "report", "--device", "meta:H200", "--compare"],
        ["bench", "lm", "--device", "meta:H200", "--json"],
    ],
)
def test_a_pipe_is_not_waited_for(words, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert main([*words, str(tmp_path / "pipe")]) == 2
    assert "it is a pipe, a socket or a device" in capsys.readouterr().err


def test_the_names_of_ops_are_checked(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["bench", "exp", "sofmax"])
    assert ended.value.code == 2 and "argument OP: no 'sofmax'; did you mean softmax?" in capsys.readouterr().err


def test_the_parameter_of_an_error_becomes_the_option():
    class Given:
        """What argparse gives: options by name."""

        def __contains__(self, name):
            return name in ("vocab_size", "device", "gpu")

    for text, shown in [
        ("[x] vocab_size: too small", "--vocab-size: too small"),
        ("[x] other: too small", "other: too small"),
        ("[meta] name: unknown", "--device: unknown"),
        ("[x] seed: expected more than vocab_size = 3", "seed: expected more than --vocab-size = 3"),
        ("no brackets: a_b", "no brackets: a_b"),
    ]:
        assert told(ValueError(text), Given()) == shown
    assert told(ValueError("[x] hardware: y"), Given(), {"hardware": "gpu"}) == "--gpu: y"
    assert one_of(["a"])("a") == "a"


def test_json_on_standard_output_is_all_that_is_there(capsys, monkeypatch):
    monkeypatch.setattr(bench, "bench_case", lambda *args, **options: [])
    for words in (COST, ["doctor"], ["bench", "exp", "--device", "cpu"]):
        assert main([*words, "--json", "-"]) == 0
        printed = capsys.readouterr()
        assert json.loads(printed.out) and not Path("-").exists()
        assert words == ["bench", "exp", "--device", "cpu"] or printed.err, "the text is on the other stream"


def test_json_on_standard_output_of_a_command_that_fails(capsys):
    assert main([*COST, "--batch", "0", "--json", "-"]) == 2
    assert capsys.readouterr().out == ""


OPTIONAL = [
    "IPython", "furo", "ipykernel", "jupytext", "latex2mathml", "nbclient", "nbconvert", "nbformat", "nh3", "sphinx",
    "tokenizers", "torch",
]  # fmt: skip
FIRST = ("torch",)  # the others take part with --all-tests
EVERY = """
import contextlib, importlib.abc, importlib.util, io, json, sys, traceback
package, folder = sys.argv[1:]

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.partition(".")[0] == package else real(name, *rest)
import importlib.metadata
version = importlib.metadata.version
def absent_version(name):
    if name == package:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)
importlib.metadata.version = absent_version
sys.meta_path.insert(0, Absent())

from rooflab.cli import bench, main
bench.bench_case = lambda *args, **options: []
found = {}
for line in sys.stdin.read().splitlines():
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(line.replace("FOLDER", folder).split())
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            code = traceback.format_exc()[-600:]
    found[line] = (code, err.getvalue())
print(json.dumps(found))
"""
COMMANDS = """--version
doctor
machine --device tpu
cost --model llama3-8b --length 8
cost --model llama3-8b --length 8 --gpu H100 --plot FOLDER/cost.png --html FOLDER/cost.html
bench exp --device cpu
bench exp --device cpu --peer torch
bench lm --device meta:H200 --measure-steps 1
bench lm --device cpu --peer torch
train recall --num-layers 1 --device tpu
train lm FOLDER/none.txt
train lm FOLDER/text.txt --device cpu --tokens bpe --vocab-size 257 --steps 1 --model-size small --attention x
train lm FOLDER/text.txt --device tpu --tokens bpe --vocab-size 257
lab list
lab new FOLDER/labs
lab check FOLDER/none.ipynb
lab run lab99
lab verify lab99
grade lab1 FOLDER/none
docs --output FOLDER"""


@pytest.mark.parametrize(
    "package", [one if one in FIRST else pytest.param(one, marks=pytest.mark.slow) for one in OPTIONAL]
)
@pytest.mark.slow(id=["torch"])
def test_every_command_without_a_package_works_or_says_what_to_install(package, tmp_path):
    (tmp_path / "text.txt").write_text("a text to learn from, again and again. " * 20, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", EVERY, package, str(tmp_path)], input=COMMANDS, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found.keys() == set(COMMANDS.splitlines())
    for line, (code, said) in found.items():
        assert code in (0, 1, 2), f"rooflab {line}\n{code}"
        if package in said:
            assert "pip install" in said and "rooflab[" in said, f"rooflab {line}\n{said}"
    works = {"--version", "doctor", "bench exp --device cpu", "cost --model llama3-8b --length 8"}
    assert all(found[line][0] == 0 for line in works)


@pytest.mark.parametrize(
    "command", ["cost --model gpt2-xl --length 128", "doctor", pytest.param("lab list", marks=pytest.mark.slow)]
)
@pytest.mark.slow(id=["doctor"])
def test_a_reader_that_has_left_is_no_error(command):
    read, write = os.pipe()
    os.close(read)
    at_once = os.environ | {"PYTHONUNBUFFERED": "1"}
    words = [sys.executable, "-m", "rooflab", *command.split()]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, env=at_once)
    os.close(write)
    assert (done.returncode, done.stderr.decode()) == (2, "")


@pytest.mark.slow(command=[["--help"]])
@pytest.mark.parametrize("command", [["--help"], ["doctor"]])
def test_a_closed_output_is_one_sentence(command):
    closes = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, '-m', 'rooflab', *sys.argv[1:]])"
    done = subprocess.run([sys.executable, "-c", closes, *command], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "rooflab: standard output is closed; send it to a file or to /dev/null.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "command", [["doctor"], ["--version"], *(pytest.param(words.split(), marks=pytest.mark.slow) for words in
                                             ("lab list", "--help", "cost --help", ""))]
)  # fmt: skip
def test_a_full_disk_behind_the_output_is_one_sentence(command):
    at_once = os.environ | {"PYTHONUNBUFFERED": "1"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rooflab", *command], stdout=full, stderr=subprocess.PIPE, text=True, env=at_once
        )
    assert done.returncode == 2 and "Traceback" not in done.stderr and "No space left on device" in done.stderr


@pytest.mark.slow(encoding=["utf-8"])
@pytest.mark.parametrize(("encoding", "time"), [("ascii", "us"), ("latin-1", "µs"), ("utf-8", "µs")])
def test_signs_that_an_encoding_lacks_are_written_in_ascii(encoding, time):
    command = [sys.executable, "-m", "rooflab", "cost", "--model", "gpt2", "--length", "3", "--gpu", "T4"]
    done = subprocess.run(command, env=os.environ | {"PYTHONIOENCODING": encoding}, capture_output=True)
    assert f" {time} " in done.stdout.decode(encoding) and b"?" not in done.stdout


def test_letters_that_an_encoding_lacks_do_not_become_others():
    command = [sys.executable, "-m", "rooflab", "cost", "--model", "Zoë…\u00d7", "--length", "3"]
    done = subprocess.run(command, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True)
    assert b"no 'Zo?...x'" in done.stderr
