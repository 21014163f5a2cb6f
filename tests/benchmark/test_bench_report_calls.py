"""The report's tables of calls: versions of attention, their growth, and which of them are measured, once."""

import dataclasses

from benchmark.reports import A100, HERE, LAPTOP, MODELLED, tables

from rooflab.benchmark import calls, lm, lm_results, report
from rooflab.benchmark.report import choice, running, scaling

SIZES = (("L", 256), ("d", 64)), (("L", 1024), ("d", 64))


def attention_rows(*measured):
    """Rows of attention at two lengths, on the model and, for some lengths, measured too."""
    found = []
    for size in SIZES:
        for place, version in enumerate(calls.ATTENTION, start=1):
            figures = {"forward_ms": 1.0 * place, "backward_ms": 2.0 * place, "held_bytes": place * 2**20}
            call = calls.Call("attention", version, size, A100)
            found.append(calls.CallResult(call, figures=figures))
            if dict(size)["L"] in measured:
                figures = {name: 10 * value for name, value in figures.items()}
                found.append(calls.CallResult(dataclasses.replace(call, device="cpu"), figures=figures))
    return report.Rows(LAPTOP, [], "A laptop", found)


def test_versions_of_attention_stand_side_by_side_from_one_source():
    (table,) = tables(attention_rows(256), "attention")
    assert table[0][:5] == ["L", "d", "times", "written out: forward ms", "written out: backward ms"]
    assert table[1] == ["256", "64", "measured", "10", "20", "10.0", "20", "40", "20.0", "30", "60", "30.0"]
    assert table[2] == ["1024", "64", "modelled", "1", "2", "1.0", "2", "4", "2.0", "3", "6", "3.0"]
    text = report.written(attention_rows(256), ["attention"]).markdown()
    assert "3 of the cases and calls are measured on this machine" in text
    figure = next(
        line for line in report.written(attention_rows(256, 1024), ["attention"])._parts if line[0] == "figure"
    )
    assert figure[2].startswith("A laptop (measured), float32"), "a figure names the machine that it shows alone"
    rows = attention_rows(256)
    del rows._of_call[calls.Call("attention", "flash", SIZES[0], "cpu")]
    assert tables(rows, "attention")[0][1][2] == "modelled", "versions are compared on one machine"


def test_growth_is_shown_in_absolute_numbers():
    found = [calls.CallResult(call, figures={"ms": 2.0}) for call in scaling.calls(MODELLED)]
    products, waves, mlp = tables(report.Rows(MODELLED, [], "A100 SXM 40GB", found), "scaling")
    assert products[4] == ["1024", "modelled", "2", "1.074"] and ["1793", "modelled", "2", "5.764"] in waves
    assert len(mlp) == 1 + 4 * 5 and mlp[5] == ["dim", "5", "1280", "modelled", "2", "1.00"]
    grown = dataclasses.replace(found[-1], figures={"ms": 5.0})  # steps x 5
    *_, mlp = tables(report.Rows(MODELLED, [], "A100 SXM 40GB", [*found, grown]), "scaling")
    assert mlp[-1] == ["steps", "5", "10", "modelled", "5", "2.50"]


def test_the_shortest_calls_are_measured_in_all_their_versions():
    models = {
        calls.Call("attention", version, size): calls.CallResult(
            calls.Call("attention", version, size, A100),
            figures={"forward_ms": 1000.0 * dict(size)["L"], "peak_bytes": 10},
        )
        for size in SIZES
        for version in ("a", "b")
    }
    short, long = list(models)[:2], list(models)[2:]  # 2 x 7 calls of 256 s, and of 1024 s

    def chosen(limit, slower=1.0, free=100.0, known=()):
        return choice.affordable_calls(models, known, slower, limit, free)

    assert chosen(3583) == [] and chosen(3584) == short and chosen(3584, slower=2) == []
    assert chosen(5 * 3584) == short + long and chosen(5 * 3584 - 1) == short and chosen(1e9, free=14) == []
    assert chosen(1, known=set(long)) == long
    full = {call: calls.CallResult(call, lm.OUT_OF_MEMORY) for call in models}
    assert choice.affordable_calls(full, (), 1.0, 1e9, 1e9) == []


def test_calls_are_measured_once_and_kept(tmp_path, monkeypatch):
    asked, path = [], tmp_path / "rows.json"
    few = [calls.Call("product", "", (("N", N),), "cpu") for N in (64, 128)]
    part = dataclasses.replace(report.PARTS["scaling"], calls=lambda settings: few)
    monkeypatch.setitem(report.PARTS, "scaling", part)
    monkeypatch.setattr(choice, "products_per_second", lambda device, dtypes: dict.fromkeys(dtypes, 1e9))
    real = running.measure_call
    monkeypatch.setattr(running, "measure_call", lambda call: asked.append(call.device) or real(call))
    models = [real(dataclasses.replace(call, device=A100)).figures["ms"] for call in few]
    seconds = [ms / 1e3 * 7 * 19.5e12 / 1e9 for ms in models]  # 2 + 5 calls, at the ratio of the products' speeds
    # Of the time 0.55 are for measuring, and here only calls are measured.
    short, long = 1.01 * seconds[0] / 60 / 0.55, 1.01 * sum(seconds) / 60 / 0.55
    for minutes, devices in ((short, [A100, A100, "cpu"]), (short, []), (long, ["cpu"])):
        asked.clear()
        rows = report.run(LAPTOP, ["scaling"], file=path, origin=HERE, minutes=minutes)
        assert asked == devices
    assert [result.call for result in rows.each_call(few)] == few
    assert [result.call.device for result in lm_results.load_calls(path, HERE)] == [A100, A100, "cpu", "cpu"]
