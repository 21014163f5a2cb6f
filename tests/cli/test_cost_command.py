"""`rooflab cost`: what it prints and writes, and one sentence for what it cannot do."""

import json

import pytest

import rooflab as rl
from rooflab.cli import main

GPT2 = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 128, "vocab_size": 100}
ASKED = ["--model", "llama3-8b", "--gpu", "H100", "--length", "4096", "--mode", "decode"]


def test_it_prints_the_table_and_writes_every_form(tmp_path, capsys):
    expected = rl.cost.model("llama3-8b", length=4096, mode="decode", hardware="H100")
    files = {kind: tmp_path / f"cost.{kind}" for kind in ("json", "csv", "html", "plot")}
    files["plot"] = tmp_path / "cost.png"
    options = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    assert main(["cost", *ASKED, *options]) == 0
    said = capsys.readouterr()
    assert said.out == f"{expected}\n" and said.err == ""
    assert json.loads(files["json"].read_text(encoding="utf-8")) == json.loads(json.dumps(expected.to_dict()))
    assert files["csv"].read_text(encoding="utf-8") == expected.to_csv()
    page = files["html"].read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and expected._repr_html_() in page
    assert files["plot"].read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cost.csv", "cost.html", "cost.json", "cost.png"]


def test_every_option_reaches_the_cost(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GPT2), encoding="utf-8")
    options = ["--batch", "3", "--length", "7", "--dtype", "float32", "--attention", "composed"]
    assert main(["cost", "--config", str(path), *options, "--convention", "analysis"]) == 0
    asked = {"batch": 3, "length": 7, "dtype": "float32", "attention": "composed"}
    expected = rl.cost.model(rl.cost.from_config(path), convention=rl.cost.Convention.ANALYSIS, **asked)
    assert capsys.readouterr().out == f"{expected}\n"


def test_figures_given_replace_those_of_the_datasheet(capsys):
    """Courses and rented machines differ from the datasheet: 300 GB/s for a T4, for example."""
    asked = ["cost", "--model", "gpt2", "--length", "128", "--json", "-"]
    for options, bandwidth, peak in (
        (["--gpu", "T4", "--bandwidth", "300"], 300e9, 65e12),
        (["--gpu", "T4", "--peak", "8.1"], 320e9, 8.1e12),
        (["--bandwidth", "100", "--peak", "2"], 100e9, 2e12),
        (["--gpu", "T4", "--dtype", "bfloat16", "--peak", "4"], 320e9, 4e12),
    ):
        assert main([*asked, *options]) == 0
        told = json.loads(capsys.readouterr().out)
        total = told["total"]
        assert told["machine"].endswith(" as given")
        assert total["memory_s"] == pytest.approx((total["bytes_read"] + total["bytes_written"]) / bandwidth)
        assert total["compute_s"] == pytest.approx(total["flops"] / peak)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--model", "gpt9", "--length", "5"], "--model: no 'gpt9'; did you mean gpt2"),
        (["--model", "gpt2", "--length", "5", "--gpu", "H101"], "--gpu: no 'H101'; expected one of A6000"),
        (["--model", "gpt2", "--length", "0"], "--length: expected a whole number from 1"),
        (["--model", "gpt2", "--length", "5", "--batch", str(2**70)], "--batch: expected a whole number from 1"),
        (["--model", "gpt2", "--length", "2000"], "gpt2 has positions for 1024 tokens"),
        (["--model", "gpt2", "--length", "5", "--gpu", "T4", "--dtype", "bfloat16"], "T4 has no bfloat16 peak"),
        (["--model", "gpt2", "--length", "5", "--plot", "x.png"], "--plot needs a machine: give --gpu, or"),
        (["--model", "gpt2", "--length", "5", "--peak", "3"], "without --gpu, a machine needs both"),
        (["--model", "gpt2", "--length", "5", "--gpu", "T4", "--bandwidth", "0"], "--bandwidth: expected a positive"),
        (["--model", "gpt2", "--length", "5", "--gpu", "T4", "--peak", "nan"], "--peak: expected a positive number"),
        (["--config", "absent.json", "--length", "5"], "absent.json"),
        (["--model", "gpt2", "--length", "5", "--json", "absent/cost.json"], "absent/cost.json"),
        (["--model", "gpt2", "--length", "5", "--gpu", "T4", "--plot", "cost.nothing"], "nothing"),
    ],
)
def test_it_says_what_is_wrong(options, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["cost", *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("rooflab cost: ") and sentence in error and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [["--length", "5"], ["--model", "gpt2"], [*ASKED, "--config", "x.json"]])
def test_a_model_and_a_length_are_needed(options, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["cost", *options])
    assert ended.value.code == 2


def test_a_config_that_is_nested_too_deep_is_one_sentence(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    assert main(["cost", "--config", str(path), "--length", "8"]) == 2
    assert capsys.readouterr().err.endswith("it is not JSON: lists or objects are nested too deep\n")
