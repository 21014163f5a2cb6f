"""The report: which cases are measured and which are modelled, and what its tables say of them."""

import dataclasses

import pytest
from benchmark.reports import A100, HERE, LAPTOP, MODELLED, tables

import rooflab as rl
from rooflab.benchmark import calls, lm_memory, report, sweep
from rooflab.benchmark.lm import Case, Result
from rooflab.benchmark.report import choice, comparison, kernels, published, running
from rooflab.labs import lab2
from rooflab.profiler import modelled as modelled_launches
from rooflab.results import Report

PARTS = ("step", "warmup", "kernels", "precision", "memory", "compile")


@pytest.fixture(scope="module")
def modelled():
    both = report.run(MODELLED, ("step", "memory")).every()
    small = dataclasses.replace(MODELLED, model_sizes=("small",), context_lengths=(128,))
    return report.Rows(MODELLED, [*both, *report.run(small, ("precision", "compile")).every()], "A100 SXM 40GB")


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


def test_the_shortest_cases_are_measured_until_the_time_is_used_up(monkeypatch):
    cases = [Case("small", warmup_steps=5, measure_steps=1, mode=mode) for mode in ("train", "forward", "both")]
    macs = dict(zip(cases, (10**6, 5, 10), strict=True))  # at 1 FLOP/s 10 steps are 2e7, 100 and 200 s
    monkeypatch.setattr(choice, "macs", macs.get)
    monkeypatch.setattr(choice, "predicted", lambda case: {"parameters": 4, "logits": 6})
    long, *cases = cases

    def chosen(limit, done=(), free=100.0):
        return choice.affordable([long, *cases], done, {"float32": 1.0}, limit, free)

    assert chosen(99) == [] and chosen(100) == cases[:1] and chosen(299) == cases[:1] and chosen(301) == cases[:2]
    assert chosen(1e9) == [*cases, long] and chosen(1e9, free=14) == [], "a case takes at most 70 % of the memory"
    done = [Result(cases[0], samples_ms=(30e3,), warmup_ms=(30e3,) * 5)]  # 180 s, and 120 s for steps beside
    assert chosen(1, done) == cases[:1] and chosen(499, done) == cases[:1] and chosen(501, done) == cases[:2]
    fast = [Result(cases[0], samples_ms=(1.0,))]  # which was estimated to take 100 s
    assert chosen(299, fast) == cases[:1] and chosen(301, fast) == cases[:2]


def test_cases_of_the_warm_up_study_come_last():
    cold, warm = Case("small", warmup_steps=0), Case("small", warmup_steps=5)
    limit = choice.seconds(warm, {"float32": 1.0}) * 1.01
    assert choice.affordable([cold, warm], [], {"float32": 1.0}, limit, 1e12) == [warm]


@pytest.mark.slow
def test_the_work_of_a_case_is_known_before_it_runs(modelled):
    for result in modelled.every():
        if result.status == "ok":
            assert choice.macs(result.case) == result.macs
            if not result.case.mixed_precision:
                assert sum(choice.predicted(result.case).values()) == pytest.approx(result.peak_bytes, rel=0.6)


def test_products_are_as_fast_as_they_are_timed(monkeypatch):
    monkeypatch.setattr(
        rl, "latency", lambda function, a, b, **options: Result(Case(), samples_ms=(float(a.shape[0]),))
    )
    assert choice.products_per_second("cpu", ["float32"]) == {"float32": pytest.approx(2 * 1024**3 / 1.024)}


@pytest.mark.slow
def test_a_laptop_measures_what_it_can_and_models_the_rest(tmp_path, monkeypatch):
    path, asked = tmp_path / "rows.json", []
    monkeypatch.setattr(choice, "products_per_second", lambda device, dtypes: dict.fromkeys(dtypes, 1e12))

    def measure(case, progress):
        if case.is_model:
            return sweep.measure(case, profile=True, memory=True)[0]
        asked.append(case)
        return measured(case)

    monkeypatch.setattr(running, "measure", measure)
    # 19 steps of small 128: forward 2.4 s, both 7.2 s, train 7.2 s; 256: forward 4.9 s, both 14.7 s
    options = {"file": path, "origin": HERE}
    minutes = 14.7 / 60 / 0.55  # the share for measuring
    rows = report.run(LAPTOP, ("step",), minutes=minutes, **options)
    wanted = [(128, "forward"), (256, "forward"), (128, "both")]
    assert sorted((case.context_length, case.mode) for case in asked) == sorted(wanted)
    (table,) = tables(rows, "step")
    sources = {(int(row[1]), row[2]): row[3] for row in table[1:]}
    assert len(sources) == 6 and sources[128, "forward"] == "measured" and sources[256, "full step"] == "modelled"
    assert sum(word == "measured" for word in sources.values()) == 3
    text = report.written(rows, ("step",)).markdown()
    assert "3 of the cases and calls are measured on this machine" in text and "modelled as on A100 SXM 40GB" in text
    assert "A laptop (measured) and A100 SXM 40GB (modelled, not measured), float32, B=4, V=10000." in text
    again = report.run(LAPTOP, ("step",), minutes=minutes, **options)
    assert len(asked) == 3, "what the file holds is not measured again"
    assert {result.case: result for result in again.every()} == {result.case: result for result in rows.every()}
    report.run(LAPTOP, ("step",), minutes=5, **options)
    assert len(asked) == 6, "more time measures more"


class Clock:
    """Time that passes only where a test lets it."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.mark.slow
def test_the_time_is_for_measuring_first_and_then_for_models_and_the_next_run_goes_on(tmp_path, monkeypatch):
    clock, asked, path = Clock(), [], tmp_path / "rows.json"
    monkeypatch.setattr(running, "time", clock)
    monkeypatch.setattr(choice, "products_per_second", lambda device, dtypes: dict.fromkeys(dtypes, 1e15))

    def measure(case, progress):
        asked.append((case.is_model, case.context_length, case.mode))
        clock.now += 10.0 if not case.is_model else 5.0
        return measured(case) if not case.is_model else sweep.measure(case, profile=True, memory=True)[0]

    monkeypatch.setattr(running, "measure", measure)
    options = {"file": path, "origin": HERE, "minutes": 20 / 60}
    rows = report.run(LAPTOP, ("step",), **options)  # 11 s for measuring, in which two cases begin
    assert [is_model for is_model, *_ in asked] == [False] * 2, "after 20 s no model is made"
    assert {one[1:] for one in asked} == {(128, "forward"), (256, "forward")}
    said = report.lacking(rows, ("step",))
    assert said.startswith("4 of 6 rows are neither measured nor modelled yet.")
    assert said in report.written(rows, ("step",)).markdown()
    asked.clear()
    rows = report.run(LAPTOP, ("step",), **options)
    assert [is_model for is_model, *_ in asked] == [False] * 2 and report.lacking(rows, ("step",)).startswith("2 of")
    path.unlink()
    asked.clear()
    options["minutes"] = 0.6  # 19.8 s for measuring, and models until 32.4 s are over
    rows = report.run(LAPTOP, ("step",), **options)
    assert [is_model for is_model, *_ in asked] == [False, False, True, True, True]
    assert report.lacking(rows, ("step",)).startswith("1 of 6 rows")


def test_what_stands_beside_a_modelled_case_is_modelled_too():
    cases = report.cases(LAPTOP, ("precision",))
    short = {case for case in cases if case.context_length == 128 and case.mode == "forward"}
    one = next(case for case in short if case.mixed_precision)
    missing = running._to_model(cases, short - {one})
    assert set(missing) == set(cases) and missing[-1] in short and missing[-1] != one
    assert set(running._to_model(cases, short)) == set(cases) - short


@pytest.mark.slow
def test_models_are_made_again_when_the_gap_has_been_measured(tmp_path, monkeypatch):
    path, options = tmp_path / "rows.json", {"origin": HERE}
    few = dataclasses.replace(MODELLED, model_sizes=("small",), context_lengths=(128,))
    rows = report.run(few, ("step",), file=path, **options)
    assert all("2 us between launches (assumed" in result.model for result in rows.every())
    assert "2 us between launches (assumed" in report.written(rows, ("step",)).markdown()
    monkeypatch.setattr(modelled_launches, "GAP_US", 9.0)
    again = report.run(few, ("step",), file=path, **options)
    for before, after in zip(rows.every(), again.every(), strict=True):
        assert after.mean_ms == pytest.approx(before.mean_ms + 7e-3 * before.launches)
        assert "9 us between launches" in after.model
    call = calls.Call("product", "", (("N", 64),), A100)
    found = calls.measure(call)
    assert "9 us between launches" in found.model and running._is_current(found)
    monkeypatch.setattr(modelled_launches, "GAP_US", 2.0)
    assert not running._is_current(found)


def test_without_a_limit_all_is_measured(monkeypatch):
    asked = []
    monkeypatch.setattr(running, "measure", lambda case, progress: asked.append(case) or measured(case))
    rows = report.run(LAPTOP, ("step",), origin=HERE)
    assert len(asked) == 6 and not any(case.is_model for case in asked)
    assert "All times are measured on this machine." in report.written(rows, ()).markdown()


@pytest.mark.slow
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


def test_a_measured_row_goes_before_a_modelled_one():
    case, other = report.cases(LAPTOP, ["warmup"])[:2]
    models = [Result(LAPTOP.modelled(one), samples_ms=(1.0,)) for one in (case, other)]
    rows = report.Rows(LAPTOP, [*models, Result(case, samples_ms=(2.0,))], "A laptop")
    assert [row.case for row in rows.of([case, other])] == [case, LAPTOP.modelled(other)]


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


@pytest.mark.slow
def test_no_table_is_without_rows(modelled):
    text = report.written(report.Rows(modelled.settings, [], "A laptop")).markdown()
    assert "|" not in text and text.count("No row yet for a table of ") > 8
    some = modelled.of(report.cases(modelled.settings, ["step"]))[:1]
    peaks = tables(report.Rows(modelled.settings, some, "A laptop"), "memory")[0]
    assert [row[:2] for row in peaks[1:]] == [["small", "forward"]]


@pytest.mark.slow
def test_a_step_without_a_profile_is_not_said_to_lack_memory(modelled):
    known = modelled.of(report.cases(modelled.settings, ["kernels"]))
    passes = [one for one in known if one.case.mode != "train"]
    bare = [dataclasses.replace(one, profile=()) for one in known if one.case.mode == "train"]
    for results, expected in ((passes, "no row yet"), (passes + bare, "not profiled")):
        products = tables(report.Rows(modelled.settings, results, "A laptop"), "kernels")[2]
        assert next(row for row in products if row[0] == "small")[4] == expected


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
    assert next(row for row in products if row[0] == "2.7B")[4] == "out of memory"
    softmax, both, _, ratio = map(float, attention[1][3:])
    bandwidth, peak = 1.555e12, 19.5e12
    scores = 4 * 12 * 128 * 128
    assert softmax == pytest.approx(12 * 2 * 4 * scores / bandwidth * 1e3, rel=1e-3)
    assert both >= 12 * 2 * 2 * scores * 64 / peak * 1e3 * (1 - 1e-3) and ratio == pytest.approx(
        softmax / both, abs=5e-3
    )


def test_a_measured_profile_stands_beside_the_clock(modelled):
    case = next(result for result in modelled.every() if result.case.mode == "forward" and result.profile)
    here = dataclasses.replace(
        case, case=dataclasses.replace(case.case, device="cpu"), samples_ms=(30.0, 50.0), profiled_ms=44.0
    )
    rows = report.Rows(LAPTOP, [here], "A laptop")
    table = next(one for one in tables(rows, "kernels") if "by the clock, ms" in one[0])
    assert table[1:] == [["small", "128", "forward", "40", "44", f"{case.profile[0].busy_ms:.4g}", "+10.0%"]]
    assert len(tables(modelled, "kernels")) == 4, "a model has no clock"


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


@pytest.mark.slow
def test_memory_is_counted_where_it_does_not_fit(modelled):
    peaks, _, classes, largest = tables(modelled, "memory")
    assert peaks[0] == ["size", "pass", "L=128, GiB", "L=256, GiB"]
    assert ["2.7B", "full step", "50.77", "50.78"] in peaks
    row = next(row for row in classes if row[:3] == ["full step", "128", "optimizer"])
    held = dict(zip(classes[0], row, strict=True))
    assert (held["parameters"], held["gradients"], held["optimizer state"]) == ("12.69", "12.69", "25.38")
    assert ["forward", "128", "20.0", "4 B L I"] in [row[:4] for row in largest]
    assert ["full step", "256", "100.0", "4 D I"] in [row[:4] for row in largest]


@pytest.mark.slow
def test_published_peaks_are_explained_tensor_by_tensor(modelled):
    for L, (_, forward, *_) in lab2.ORIGINAL_PEAKS.items():  # counted with the course's own model
        case = Case("2.7B", L)
        predicted = lm_memory.predicted(case)
        kept = sum(predicted[name] for name in ("parameters", "saved activations", "logits"))
        assert (kept + sum(published.more_bytes(case).values())) / 2**30 == pytest.approx(forward, abs=0.006)
        assert published.FORWARD_GIB[L] == lab2.R_PEAKS[L][0]
    table = tables(modelled, "memory")[1]
    assert [row[0] for row in table] == ["L", "128", "256"]
    for row in table[1:]:
        here, *more = map(float, row[1:6])
        whole, third, together, said, left = map(float, row[6:])
        assert here + sum(more) == pytest.approx(whole, abs=0.03) and whole + third == pytest.approx(
            together, abs=0.015
        )
        assert said - together == pytest.approx(left, abs=0.015) and 0 < left < 0.4
    nothing = Report("other sizes")
    other = report.Rows(dataclasses.replace(MODELLED, batch_size=2), [], "A100 SXM 40GB")
    published.write(nothing, other, modelled.every())
    assert "|" not in nothing.markdown()


def test_a_compiled_model_stands_beside_the_eager_one(modelled):
    table, passes = tables(modelled, "compile")
    row = next(row for row in table if row[:3] == ["small", "128", "full step"])
    eager, compiled = float(row[4]), float(row[5])
    assert compiled < eager and float(row[6]) == pytest.approx(eager / compiled, abs=0.01)
    assert int(row[8]) < int(row[7]) == 735
    assert [row[2] for row in passes[1:]] == ["forward", "backward", "optimizer"]
    assert sum(float(row[4]) for row in passes[1:]) == pytest.approx(eager, rel=0.01) and passes[3][6] == "1.00"


def test_a_speedup_is_the_eager_time_over_the_compiled_one(modelled):
    case = Case("small", 128, mode="train", device=A100)
    eager = modelled.get(case)
    passes = tuple(dataclasses.replace(one, range_ms=one.range_ms / 4) for one in eager.profile)
    fast = dataclasses.replace(
        eager, case=dataclasses.replace(case, compile=True), samples_ms=(eager.mean_ms / 2,), profile=passes
    )
    table, by_pass = tables(report.Rows(MODELLED, [eager, fast], "A100 SXM 40GB"), "compile")
    assert [row[6] for row in table[1:]] == ["2.00"] and [row[6] for row in by_pass[1:]] == ["4.00"] * 3


@pytest.mark.slow
def test_two_machines_are_compared_case_by_case(modelled):
    often = dataclasses.replace(LAPTOP, measure_steps=30)
    other = [dataclasses.replace(measured(case)[0], peak_bytes=2**30) for case in report.cases(often, ["step"])]
    table = tables(modelled, "step", compare=(other, HERE))[-1]
    assert len(table) == 7 and table[0][6:10] == ["times there", "ms here", "ms there", "there / here"]
    row = next(row for row in table if row[:3] == ["small", "128", "full step"])
    assert row[3:7] == ["composed", "5", "modelled, A100 SXM 40GB", "measured"]
    assert (
        float(row[9]) == pytest.approx(float(row[8]) / float(row[7]), rel=0.01) and row[8] == "6" and row[11] == "1.00"
    )
    said = report.written(modelled, (), (other, HERE)).markdown()
    assert "Beside A laptop" in said and "There: A laptop, threads 2" in said
    same = Report("r")
    comparison.write(same, modelled, modelled.every(), HERE)  # the same model of the same machine
    assert "no case in common" in same.markdown() and "|" not in same.markdown()


def test_a_report_is_written_with_its_figures_and_pages(modelled, tmp_path):
    page, text = report.written(modelled, PARTS).save(tmp_path)
    html = page.read_text(encoding="utf-8")
    assert html.count("<h2") == len(PARTS) and html.count("data:image/png") == 1 + 2 + 2 + 2
    assert "http" not in html, "the page needs no network"
    assert '<a href="memory-2.7B-train.html">' in html and (tmp_path / "memory-2.7B-train.html").stat().st_size > 10**5
    assert text.read_text(encoding="utf-8").count("![") == 7
