"""The report: which cases are measured and which are modelled, and what its tables say of them."""

import dataclasses

import pytest

import rooflab as rl
from rooflab.benchmark import lm, lm_results, report, sweep
from rooflab.benchmark.lm import Case, Result
from rooflab.benchmark.report import choice, comparison, kernels
from rooflab.results import Report

A100 = rl.meta("A100 SXM 40GB")
MODELLED = report.Settings(A100, model_sizes=("small", "2.7B"), context_lengths=(128, 256))
LAPTOP = dataclasses.replace(MODELLED, device="cpu", model_sizes=("small",))
HERE = lm_results.Origin({"kind": "cpu", "name": "A laptop", "threads": 2}, "1.0")


@pytest.fixture(scope="module")
def modelled():
    both = report.run(MODELLED, ("step", "memory")).every()
    small = dataclasses.replace(MODELLED, model_sizes=("small",), context_lengths=(128,))
    return report.Rows(MODELLED, [*both, *report.run(small, ("precision", "compile")).every()], "A100 SXM 40GB")


def tables(rows, *parts, compare=None):
    """The tables of some parts, as lists of cells, with the head first."""
    text = report.written(rows, parts, compare).markdown()
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    return [[line.strip("| ").split(" | ") for line in (block[0], *block[2:])] for block in blocks]


def measured(case, ms=3.0):
    """What a laptop would measure of a case, with the profile and the memory of the model."""
    if case.warmup_steps != report.WARMUP_STEPS:
        return [Result(case, samples_ms=(ms, 2 * ms), warmup_ms=(ms,) * case.warmup_steps)]
    model = sweep.measure(LAPTOP.modelled(case), profile=True, memory=True)[0][0]
    return [dataclasses.replace(model, case=case, samples_ms=(ms, 3 * ms), warmup_ms=(ms,) * case.warmup_steps)]


def test_parts_share_cases():
    assert set(report.cases(MODELLED, ["step"])) == set(report.cases(MODELLED, ["step", "kernels", "memory"]))
    assert {case.mixed_precision for case in report.cases(MODELLED, ["precision"])} == {"", "bfloat16"}
    assert {case.compile for case in report.cases(MODELLED, ["compile"])} == {False, True}
    assert report.cases(MODELLED, ["warmup"]) == [], "a model has no warm-up"
    warmups = {(case.mode, case.warmup_steps) for case in report.cases(LAPTOP, ["warmup"])}
    assert warmups == {(mode, steps) for mode in ("forward", "both") for steps in (0, 1, 5)}
    assert len(report.cases(report.Settings(), ["step"])) == 5 * 4 * 3


def test_the_shortest_cases_are_measured_until_the_time_is_used_up():
    cases = [Case("a", warmup_steps=5, measure_steps=1, mode=mode) for mode in ("forward", "both", "train")]
    macs = dict(zip(cases, (5, 10, 10**6), strict=True))  # at 1 FLOP/s 10 steps are 100, 200 and 2e7 s
    models = {case: Result(case, macs=macs[case], peak_bytes=10) for case in cases}

    def chosen(limit, done=(), free=100.0, models=models):
        return choice.affordable(cases, models, done, {"float32": 1.0}, limit, free)

    assert chosen(99) == [] and chosen(100) == cases[:1] and chosen(299) == cases[:1] and chosen(301) == cases[:2]
    assert chosen(1e9) == cases and chosen(1e9, free=14) == [], "a case takes at most 70 % of the memory"
    full = models | {cases[0]: Result(cases[0], status=lm.OUT_OF_MEMORY)}
    assert chosen(1e9, models=full) == cases[1:]
    done = [Result(cases[0], samples_ms=(30e3,), warmup_ms=(30e3,) * 5)]  # 180 s, and 120 s for steps beside
    assert chosen(1, done) == cases[:1] and chosen(499, done) == cases[:1] and chosen(501, done) == cases[:2]
    fast = [Result(cases[0], samples_ms=(1.0,))]  # which was estimated to take 100 s
    assert chosen(299, fast) == cases[:1] and chosen(301, fast) == cases[:2]


def test_cases_of_the_warm_up_study_come_last():
    cold, warm = Case("a", warmup_steps=0), Case("a", warmup_steps=5)
    models = {case: Result(case, macs=1) for case in (cold, warm)}
    assert choice.affordable([cold, warm], models, [], {"float32": 1.0}, 40, 1.0) == [warm]


def test_products_are_as_fast_as_they_are_timed(monkeypatch):
    monkeypatch.setattr(
        rl, "latency", lambda function, a, b, **options: Result(Case(), samples_ms=(float(a.shape[0]),))
    )
    assert choice.products_per_second("cpu", ["float32"]) == {"float32": pytest.approx(2 * 1024**3 / 1.024)}


def test_a_laptop_measures_what_it_can_and_models_the_rest(tmp_path, monkeypatch):
    path, asked = tmp_path / "rows.json", []
    monkeypatch.setattr(choice, "products_per_second", lambda device, dtypes: dict.fromkeys(dtypes, 1e12))

    def measure(case, progress):
        if case.is_model:
            return sweep.measure(case, profile=True, memory=True)[0]
        asked.append(case)
        return measured(case)

    monkeypatch.setattr(report, "measure", measure)
    # 19 steps of small 128: forward 2.4 s, both 7.2 s, train 7.2 s; 256: forward 4.9 s, both 14.7 s
    options = {"file": path, "origin": HERE}
    rows = report.run(LAPTOP, ("step",), minutes=14.7 / 60, **options)
    wanted = [(128, "forward"), (256, "forward"), (128, "both")]
    assert sorted((case.context_length, case.mode) for case in asked) == sorted(wanted)
    (table,) = tables(rows, "step")
    sources = {(int(row[1]), row[2]): row[3] for row in table[1:]}
    assert len(sources) == 6 and sources[128, "forward"] == "measured" and sources[256, "full step"] == "modelled"
    assert sum(word == "measured" for word in sources.values()) == 3
    text = report.written(rows, ("step",)).markdown()
    assert "3 cases are measured on this machine" in text and "modelled as on A100 SXM 40GB" in text
    assert "A laptop (measured) and A100 SXM 40GB (modelled, not measured), float32, B=4, V=10000." in text
    again = report.run(LAPTOP, ("step",), minutes=14.7 / 60, **options)
    assert len(asked) == 3 and again.every() == rows.every(), "what the file holds is not measured again"
    report.run(LAPTOP, ("step",), minutes=5, **options)
    assert len(asked) == 6, "more time measures more"


def test_without_a_limit_all_is_measured(monkeypatch):
    asked = []
    monkeypatch.setattr(report, "measure", lambda case, progress: asked.append(case) or measured(case))
    rows = report.run(LAPTOP, ("step",), origin=HERE)
    assert len(asked) == 6 and not any(case.is_model for case in asked)
    assert "All times are measured on this machine." in report.written(rows, ()).markdown()


def test_a_step_is_a_row_with_its_totals_or_its_lack_of_memory(modelled):
    (table,) = tables(modelled, "step")
    head, rows = table[0], table[1:]
    assert len(rows) == 12 and len(head) == 14
    full = [row[:5] for row in rows if row[4] == "out of memory"]
    assert full == [["2.7B", str(n), "full step", "modelled", "out of memory"] for n in (128, 256)]
    case = next(r for r in modelled.every() if r.case.mode == "both" and r.case.model_size == "small")
    row = next(row for row in rows if row[:3] == ["small", "128", "forward + backward"])
    assert row[5:11] == ["-", "1", "-", f"{case.mean_ms:.4g}", f"{case.mean_ms:.4g}", "-"]
    assert row[11:] == [f"{case.tflop_s:.3g}", f"{case.share_of_peak:.1%}", f"{case.peak_bytes / 2**30:.2f}"]


def test_warm_ups_stand_beside_each_other():
    cases = report.cases(LAPTOP, ["warmup"])
    rows = report.Rows(LAPTOP, [measured(case)[0] for case in cases if case.mode == "both"], "A laptop")
    (table,) = tables(rows, "warmup")
    assert [row[3:] for row in table[1:3]] == [
        ["0", "2", "-", "9", "4.5", "1.5", "3", "6"], ["1", "2", "3", "9", "4.5", "1.5", "3", "6"],
    ]  # fmt: skip
    assert table[3][3:9] == ["5", "2", "15", "12", "6", "3"]
    models = report.Rows(LAPTOP, [Result(LAPTOP.modelled(case), samples_ms=(1.0,)) for case in cases], "A laptop")
    assert tables(models, "warmup") == [] and "No warm-up was measured" in report.written(models, ["warmup"]).markdown()


def test_the_kernels_that_lead_are_named_with_their_share(modelled):
    leading, classes, products, attention = tables(modelled, "kernels")
    row = next(row for row in leading if row[:3] == ["small", "128", "forward"])
    assert row[6:8] == ["matmul_cuda_library (matmul)", "109"] and row[9] == "92.1%"
    assert "matmul" not in row[10] and int(row[11]) % 12 == 0 and float(row[12]) < float(row[8])
    adamw = next(row for row in leading if row[:3] == ["small", "128", "optimizer"])
    assert adamw[6].endswith("(adamw)") and adamw[10] == "the same"
    assert [row[2] for row in leading if row[:2] == ["2.7B", "128"]] == ["forward", "backward"], "the step does not fit"
    assert classes[0][3] == "gemm" and classes[1][3] == "92.1%"
    step = kernels.profiled(modelled, Case("small", 128, mode="train", device=A100))
    busy = sum(one.busy_ms for one in step.profile)
    share = sum(one.classes.get("gemm", 0) for one in step.profile) / busy
    assert products[1] == ["small", "128", "modelled", "92.1%", f"{share:.1%}"]
    assert next(row for row in products if row[0] == "2.7B")[4] == "the step does not fit"
    softmax, both, _, ratio = map(float, attention[1][3:])
    bandwidth, peak = 1.555e12, 19.5e12
    scores = 4 * 12 * 128 * 128
    assert softmax == pytest.approx(12 * 2 * 4 * scores / bandwidth * 1e3, rel=1e-3)
    assert both >= 12 * 2 * 2 * scores * 64 / peak * 1e3 * (1 - 1e-3) and ratio == pytest.approx(
        softmax / both, abs=5e-3
    )


def test_16_bits_stand_beside_32(modelled):
    times, shares = tables(modelled, "precision")
    row = next(row for row in times if row[:3] == ["small", "128", "forward"])
    full, short = float(row[4]), float(row[5])
    assert full > 2 * short and float(row[6]) == pytest.approx(full / short, abs=0.01)
    assert float(row[9]) == pytest.approx(float(row[8]) - float(row[7]), abs=0.011)
    step = next(row for row in times if row[2] == "full step")
    copies = 2 * (128_625_408 - 10_000 * 768 - 25 * 768)  # of the weights of products
    assert float(step[9]) == pytest.approx(0, abs=0.03) and copies / 2**30 > 0.2, "the optimizer's peak has no copies"
    row = next(row for row in shares if row[:3] == ["small", "128", "forward"])
    assert row[4].startswith("92% / ") and int(row[4].split("/")[1].strip(" %")) < 70


def test_memory_is_counted_where_it_does_not_fit(modelled):
    peaks, classes, largest = tables(modelled, "memory")
    assert peaks[0] == ["size", "pass", "L=128, GiB", "L=256, GiB"]
    assert ["2.7B", "full step", "50.77", "50.78"] in peaks
    row = next(row for row in classes if row[:3] == ["full step", "128", "optimizer"])
    held = dict(zip(classes[0], row, strict=True))
    assert (held["parameters"], held["gradients"], held["optimizer state"]) == ("12.69", "12.69", "25.38")
    assert ["forward", "128", "20.0", "4 B L I"] in [row[:4] for row in largest]
    assert ["full step", "256", "100.0", "4 D I"] in [row[:4] for row in largest]


def test_a_compiled_model_stands_beside_the_eager_one(modelled):
    (table,) = tables(modelled, "compile")
    row = next(row for row in table if row[:3] == ["small", "128", "full step"])
    eager, compiled = float(row[4]), float(row[5])
    assert compiled < eager and float(row[6]) == pytest.approx(eager / compiled, abs=0.01)
    assert int(row[8]) < int(row[7]) == 735


def test_two_machines_are_compared_case_by_case(modelled):
    other = [dataclasses.replace(measured(case)[0], peak_bytes=2**30) for case in report.cases(LAPTOP, ["step"])]
    table = tables(modelled, "step", compare=(other, HERE))[-1]
    assert len(table) == 7 and table[0][6:10] == ["times there", "ms here", "ms there", "there / here"]
    row = next(row for row in table if row[:3] == ["small", "128", "full step"])
    assert row[3:7] == ["composed", "5", "modelled, A100 SXM 40GB", "measured"]
    assert (
        float(row[9]) == pytest.approx(float(row[8]) / float(row[7]), rel=0.01) and row[8] == "6" and row[11] == "1.00"
    )
    said = report.written(modelled, (), (other, HERE)).markdown()
    assert "Beside A laptop" in said and "There: A laptop, threads 2" in said
    with pytest.raises(ValueError, match="no case in common"):
        comparison.write(Report("r"), modelled, modelled.every(), HERE)  # the same model of the same machine


def test_a_report_is_written_with_its_figures_and_pages(modelled, tmp_path):
    page, text = report.written(modelled, report.PARTS).save(tmp_path)
    html = page.read_text(encoding="utf-8")
    assert html.count("<h2") == len(report.PARTS) and html.count("data:image/png") == 1 + 2 + 2 + 2
    assert "http" not in html, "the page needs no network"
    assert '<a href="memory-2.7B-train.html">' in html and (tmp_path / "memory-2.7B-train.html").stat().st_size > 10**5
    assert text.read_text(encoding="utf-8").count("![") == 7
