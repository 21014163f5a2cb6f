"""`rooflab train recall`: what it prints, writes and refuses; how well it learns is tested with Lab 6."""

import json

import pytest

import rooflab as rl
from rooflab.cli import main, train

SHORT = ["train", "recall", "--num-layers", "1", "--device", "cpu"]


def test_a_run_is_written_and_loads_again(tmp_path, capsys):
    weights, report = tmp_path / "w.safetensors", tmp_path / "run.json"
    options = ["--pairs", "3", "--steps", "7", "--every", "3", "--seed", "5", "--output", str(weights)]
    assert main([*SHORT, *options, "--json", str(report)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 layer of attention, 18,624 parameters, 3 pairs, on cpu; ")
    assert [line.split()[1] for line in lines[1:-1]] == ["3", "6", "7"]
    assert lines[-1] == "90 % not reached in 7 steps"
    run = json.loads(report.read_text(encoding="utf-8"))
    assert (run["num_layers"], run["pairs"], run["steps"], run["seed"], run["device"]) == (1, 3, 7, 5, "cpu")
    assert len(run["losses"]) == 7 and run["accuracies"].keys() == {"3", "6", "7"}
    assert sum(tensor.numel() for tensor in rl.load(weights).values()) == 18624


def test_the_same_seed_gives_the_same_curve(tmp_path):
    curves = []
    for number, seed in enumerate("334"):
        path = tmp_path / f"{number}.json"
        assert main([*SHORT, "--pairs", "2", "--steps", "5", "--seed", seed, "--json", str(path)]) == 0
        curves.append(json.loads(path.read_text(encoding="utf-8"))["losses"])
    assert curves[0] == curves[1] != curves[2]


def test_the_last_line_names_the_step(monkeypatch, capsys):
    scores = iter([0.2, 0.9, 0.4, 0.95])
    monkeypatch.setattr(train.lab6, "recall_accuracy", lambda *_: next(scores))
    assert main([*SHORT, "--pairs", "2", "--steps", "4", "--every", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "90 % reached at step 2"


@pytest.mark.parametrize("option", ["--num-layers", "--pairs", "--steps", "--every"])
@pytest.mark.parametrize("value", ["0", "-2", "1.5", "two", "²"])
def test_numbers_that_are_none_are_refused(option, value, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*SHORT, f"{option}={value}"])
    assert stopped.value.code == 2
    assert f"argument {option}: expected a whole number of 1 or more, got {value!r}" in capsys.readouterr().err


def test_a_bad_seed_and_missing_layers_are_refused(capsys):
    with pytest.raises(SystemExit):
        main([*SHORT, "--seed=-1"])
    assert "argument --seed: expected a whole number of 0 or more, got '-1'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "recall"])
    assert "--num-layers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--device", "tpu"], "tpu"),
        (["--output", "/"], "no file can be written: '/'"),
        (["--pairs", "1000000000000"], "allocate"),
        (["--output", "absent/w.safetensors"], "no file can be written: 'absent"),
        (["--json", "absent/run.json"], "no file can be written: 'absent"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(arguments, says, capsys, monkeypatch):
    monkeypatch.setattr(train.lab6, "training", None)  # nothing may be trained before the refusal
    assert main([*SHORT, *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("rooflab train recall: ") and says in error and error.count("\n") == 1


def test_ctrl_c_stops_it(monkeypatch, capsys, tmp_path):
    def stops(*_, **__):
        yield 1, 3.0
        raise KeyboardInterrupt

    monkeypatch.setattr(train.lab6, "training", stops)
    assert main([*SHORT, "--output", str(tmp_path / "w"), "--json", str(tmp_path / "j")]) == 130
    assert capsys.readouterr().err == "Stopped.\n" and list(tmp_path.iterdir()) == []
