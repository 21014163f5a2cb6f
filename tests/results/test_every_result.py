"""Every result is shown, saved and compared in the same way, whatever it measured and whatever its names hold."""

import copy
import csv
import html.parser
import io
import json
import pickle
import re
import sys

import numpy as np
import pytest
from grading.demo_lab import demo_lab
from machine.made_up import ceilings

import rooflab as rl
from rooflab._stacks import Frame
from rooflab.benchmark import calls, ladder, lm, lm_memory, lm_profile, results
from rooflab.cuda.simt import findings, result, warp_request
from rooflab.grading.classroom.report import Grade
from rooflab.grading.judge import judge, verify
from rooflab.labs import lab3, lab4_speculative, lab5_training
from rooflab.machine import Measured
from rooflab.memory import Allocation, Event, Phase
from rooflab.profiler.averages import KernelAverage, KernelAverages
from rooflab.profiler.host import HostRecord
from rooflab.profiler.host_averages import HostAverages
from rooflab.profiler.records import KernelRecord, Range, Step
from rooflab.profiler.waiting import DeviceWaiting
from rooflab.results import ReadableMixin, ResultMixin, Table
from rooflab.results.counted import SavedCounter, SavedCounts

HOSTILE = '=1+1, "q"; <script>alert(`1`)</script>\n| a | *b* \\ [c](d) & </td>'


def timing(name, n):
    return rl.Timing(np.array([1.0, 2.5, n]), 0.5, name, 1)


def counter(name, n):
    with rl.count() as found, rl.range(name.replace("/", "")):
        rl.ones(n) + 1
    return found


def kernel(name, n):
    shape = (1, 1, n)
    return KernelRecord(name, name, name, name, "gemm", "cpu", 0, 0, 1.5, 2.5, shape, shape, 0, 0, rl.Cost(flops=n), n)


def profile(name, n):
    x = rl.empty(1000 * n, device=rl.meta("H200"))
    with rl.profile() as found, rl.range(name.replace("/", "")):
        x + 1
    return found


def host(name, n):
    return HostRecord("op", name, name, 0, 0, 1.5, 2.5, 1.0, 0.5, 0.25, n, 0, True, name, (Frame(name, n, name),))


def host_averages(name, n):
    return HostAverages([host(name, n)], 10.0, name, by_shape=True, stack_frames=1)


def timeline(name, n):
    with rl.memory.record() as found, rl.range(name.replace("/", "")):
        found.mark(name)
        kept = rl.ones(n)
        kept + 1
    return found


def bench(name, n):
    return results.Result({"kind": "cpu", "name": name}, name, "0.2.0", None, [row(name, n), row("v1", n)])


def row(name, n):
    return ladder.Row(name, name, "float32", name, 1.5, 1.0, float(n), 0.0, float("inf"), {name: (1.0, 0.5, 2.0)})


def step(name, n):
    passes = (lm_profile.Pass(name, n, 1.0, 2.0, {"gemm": 0.5}, name, 2, 0.5, name, 1, 0.25, {"softmax": 0.1}),)
    largest = (lm.Largest(n, 2, name, name, name),)
    case = lm.Case(model_size=name)
    return lm.Result(case, samples_ms=(1.5, 2.5), macs=n, profile=passes, memory={name: {name: n}}, largest=largest)


def memory(name, n):
    use = lm_memory.PhaseUse(name, n, {name: n}, n)
    largest = [lm.Largest(n, 1, name, name, name)]
    return lm_memory.Memory(lm.Case(name), [use], {name: n}, {name: 2}, largest, timeline(name, n))


def call(name, n):
    return calls.CallResult(calls.Call(name, name, ((name, n),), "cpu"), figures={"ms": float("nan")})


def model_cost(name, n):
    return rl.cost.model("llama3-8b", length=n, hardware=ceilings(name=name, peak=ceilings().peak), dtype="bfloat16")


def grade(name, n):
    test = judge.TestResult(name, n, message=name)
    return Grade(
        demo_lab(), name, results=[judge.QuestionResult("q1_1", [test], 0.5)], findings={name: name}, done=True
    )


def report(name, n):
    case = verify.Case("q1_1", "wrong", name, name, name)
    return verify.Report(demo_lab(), name, [verify.Outcome(case, 0, n, 0, name)])


def launch(name, n):
    counts = result.KernelCounts(flops=n, global_loads=result.Access(requests=n, bytes=4))
    found = findings.Finding("race", name, 1)
    request = request_of(name, n)
    return result.Launch(name, (1, 1, 1), (32, 1, 1), "count", name, counts, {1: counts}, [request], [found], 1)


def request_of(name, n):
    return warp_request.WarpRequest(1, "global", "load", name, 4, (0, 1), (0, n), 1)


def sweep(name, n):
    row = {"forward_ms": 1.0, "backward_ms": 2.0, "held_bytes": 4.0 * n}
    return lab3.Sweep((256, 512), (16,), {(256, 16): row}, {(512, 16): {**row, name: 1.0}})


def speculation(name, n):
    return lab4_speculative.Speculation([name], n, 1, 1, [(np.ones(n), np.ones(n))])


def part(name, n):
    return model_cost(name, n).parts[0]


EVERY = {
    "Access": lambda name, n: result.Access(requests=n),
    "Allocation": lambda name, n: Allocation(name, name, name, n, False, None, 1.5),
    "Call": lambda name, n: calls.Call(name, name, ((name, n),), name),
    "CallResult": call,
    "Case": lambda name, n: lm.Case(name, n),
    "Ceilings": lambda name, n: ceilings(name=name, busy=name, threads=n),
    "Cost": lambda name, n: rl.Cost(flops=n),
    "Counts": lambda name, n: counter(name, n).by_op["add"],
    "DeviceWaiting": lambda name, n: DeviceWaiting(name, 10.0 * n, 5.0, 1.5, None),
    "Event": lambda name, n: Event(0.5, n, name, name, name, n, 0),
    "Finding": lambda name, n: findings.Finding(name, name, n),
    "Grade": grade,
    "Held": lambda name, n: lab5_training.Held(n, 0, 1, 2, 3, 4),
    "HostAverage": lambda name, n: host_averages(name, n)[0],
    "HostAverages": host_averages,
    "HostRecord": host,
    "KernelAverage": lambda name, n: KernelAverage(name, name, name, n, 1.0, 1.0, 1.0, 1.0, 0.0, float("nan"), name),
    "KernelAverages": lambda name, n: profile(name, n).key_averages(),
    "KernelCounts": lambda name, n: launch(name, n).counts,
    "KernelRecord": kernel,
    "Largest": lambda name, n: lm.Largest(n, 1, name, name, name),
    "Launch": launch,
    "Measured": lambda name, n: Measured(1.0, 0.5, float(n), "us", 3, name),
    "Memory": memory,
    "MemoryUse": lambda name, n: rl.MemoryUse(n, 0, -1),
    "ModelCost": model_cost,
    "Part": part,
    "Pass": lambda name, n: step(name, n).profile[0],
    "Phase": lambda name, n: Phase(name, range(1, n + 2), 0.0, 1.0),
    "PhaseUse": lambda name, n: lm_memory.PhaseUse(name, n, {name: n}, 0),
    "Point": lambda name, n: rl.roofline.Point(name, float(n)),
    "Profile": profile,
    "Range": lambda name, n: Range(name, n, 0.0, 1.0),
    "Report": report,
    "Result of bench": bench,
    "Result of bench lm": step,
    "Row": row,
    "SavedCounter": lambda name, n: copy.copy(counter(name, n)),
    "SavedCounts": lambda name, n: SavedCounts(ops=n),
    "Speculation": speculation,
    "Step of a cost": lambda name, n: rl.cost.model("llama3-8b", length=n).parts[0].steps[0],
    "Step": lambda name, n: Step(n, 0.0, 1.0),
    "Sweep": sweep,
    "Table": lambda name, n: Table((name, "n"), [(name, n), (None, -1)], name, name),
    "Timeline": timeline,
    "Timing": timing,
    "WarpRequest": request_of,
    "Work": lambda name, n: rl.cost.model("llama3-8b", length=n).total.work,
    "count": counter,
}
every = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)


def test_no_result_is_left_out():
    def below(kind):
        return {kind}.union(*(below(one) for one in kind.__subclasses__()))

    def named(kinds):  # a dataclass with slots is made twice, under one name
        return {f"{kind.__module__}.{kind.__name__}" for kind in kinds if not kind.__name__.startswith("_")}

    covered = [kind for make in EVERY.values() for kind in type(make("name", 3)).__mro__]
    assert named(below(ResultMixin)) <= named(covered)


def test_averages_of_one_profile_with_and_without_its_host_differ():
    kernels = [kernel("exp", 1)]
    with_host = [KernelAverages(kernels, 1, "", host_averages("exp", 1)) for _ in range(2)]
    assert with_host[0] == with_host[1] and with_host[0] != KernelAverages(kernels, 1)


class Parsed(html.parser.HTMLParser):
    """Elements that are open, and those that there were."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@every
def test_shown_as_text_and_as_html(make):
    one = make(HOSTILE, 3)
    assert isinstance(str(one), str) and isinstance(repr(one), str) and str(one)
    page = Parsed(one._repr_html_())
    assert page.open == [] and "table" in page.seen and "script" not in page.seen


@every
def test_markdown_is_one_table_and_no_markup_of_names(make):
    lines = make(HOSTILE, 3).to_markdown().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows}) == 1 and len(rows) > 2
    assert not re.search(r"<script|(?<!\\)\*b", "\n".join(lines))


@every
def test_csv_is_read_by_others_as_it_was_meant(make):
    text = make(HOSTILE, 3).to_csv()
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert rows and {len(row) for row in rows} == {len(head)} and len(set(head)) == len(head)
    cells = [cell for row in (head, *rows) for cell in row]
    assert not [cell for cell in cells if cell.startswith("=")], "no name is a formula"
    assert text.count(HOSTILE.replace('"', '""')) == sum(cell.count(HOSTILE) for cell in cells if cell[:1] != "[")


@every
def test_json_is_strict_and_holds_the_names(make):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    one = make(HOSTILE, 3)
    assert json.loads(one.to_json(), parse_constant=refuse) == json.loads(one.to_json(indent=2))
    with pytest.raises(TypeError, match=r"\[to_json\] indent: .* got 'a.json'; it returns the text"):
        one.to_json("a.json")  # a file's name would stand before each line
    assert isinstance(one.to_dict(), dict)


@every
def test_read_from_what_was_saved(make):
    one = make(HOSTILE, 3)
    if not isinstance(one, (ReadableMixin, rl.Cost, rl.Counts, rl.count, Table)):
        assert not hasattr(one, "from_json"), "what cannot be read does not promise it"
        return
    again = type(one).from_json(one.to_json())
    assert again == one and str(again).partition("(")[2] == str(one).partition("(")[2]
    if not isinstance(one, Table):
        with pytest.raises(ValueError, match="unheard_of"):
            type(one).from_dict({**one.to_dict(), "unheard_of": 1})
        with pytest.raises(ValueError, match="expected Mapping, got list"):
            type(one).from_dict([])


@every
def test_a_data_frame_has_the_rows_of_the_csv(make):
    pandas = pytest.importorskip("pandas")
    one = make("name", 3)
    frame, read = one.to_pandas(), pandas.read_csv(io.StringIO(one.to_csv()))
    assert list(frame.columns) == list(read.columns) and len(frame) == len(read) > 0
    for name in frame.select_dtypes("number"):
        assert np.allclose(frame[name].astype(float), read[name].astype(float), rtol=1e-12, equal_nan=True), name


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("Ceilings", 6), ("Grade", 1), ("KernelAverages", 1), ("Memory", 1), ("ModelCost", 10), ("Profile", 1),
        ("Report", 4), ("Result of bench", 2), ("Result of bench lm", 1), ("Sweep", 2), ("Timeline", 3), ("count", 2),
    ],
)  # fmt: skip
def test_a_row_for_each_thing_that_was_measured(name, rows):
    """Of ceilings a figure, of a cost a part and the total, of a memory a phase, of counts an op ..."""
    assert len(list(csv.reader(io.StringIO(EVERY[name]("name", 3).to_csv())))) == 1 + rows


def test_a_row_of_kernels_that_was_saved_without_its_device_is_read():
    saved = {name: value for name, value in EVERY["KernelAverage"]("gelu", 3).to_dict().items() if name != "device"}
    assert KernelAverage.from_dict(saved).device == ""
    assert KernelAverage(*saved.values()).calls == 3


def test_what_is_in_a_dict_is_settled_too():
    row = calls.CallResult(calls.Call("mlp"), figures={"peak_bytes": np.int64(3)})
    assert type(row.figures["peak_bytes"]) is float and calls.CallResult.from_json(row.to_json()) == row


@every
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_and_pickles_are_equal(make, again):
    one = make(HOSTILE, 3)
    other = again(one)
    assert (other == one) is True and (one == other) is True and (other != one) is False
    saved = {rl.Counts: SavedCounts, rl.count: SavedCounter}
    assert type(other) is saved.get(type(one), type(one)) and other.to_json() == one.to_json()
    assert other._repr_html_() == one._repr_html_()
    arrays = (
        [held for held in vars(other).values() if isinstance(held, np.ndarray)] if hasattr(other, "__dict__") else []
    )
    assert not any(array.flags.writeable for array in arrays)


@every
def test_what_differs_is_not_equal(make):
    one = make("name", 3)
    for other in (make("name", 4), None, 3, "name", {}, object(), timing("other", 5), rl.Cost(flops=5)):
        assert (one == other) is False and (one != other) is True
    assert (one == one) is True and one in [None, one]


def test_a_list_of_results_is_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(profile("mlp", 3).kernels)
    assert list(frame["op"]) == ["add"] and frame["cost"][0].flops == 3000


def test_without_pandas_one_sentence_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"\[to_pandas\] pandas is not installed; run: pip install pandas"):
        timing("cpu", 1).to_pandas()


def test_what_is_not_done_is_shown_and_not_saved():
    for one, other in ((rl.memory.record(), rl.memory.record()), (rl.profile(), rl.profile())):
        assert "not started" in one._repr_html_() and (one == other) is False and (one == one) is True
        for use in (one.to_dict, one.to_csv, one.to_json, lambda one=one: pickle.dumps(one)):
            with pytest.raises(RuntimeError, match="once the with-block has ended"):
                use()


def test_the_rows_of_a_counter_add_up_to_its_total():
    with rl.count() as counted:
        _ = rl.ones(3) + 1
    *rows, total = counted.to_markdown().partition("\n\n")[0].splitlines()[2:]
    (*ops, user), total = ([row.split("|")[1:-1] for row in rows], total.split("|")[1:-1])
    assert user[0].strip() == "user" and int(user[-1]) == 12 and not any(map(int, user[1:-1]))
    assert [int(n) for n in total[1:]] == [sum(int(row[i]) for row in (*ops, user)) for i in range(1, len(total))]
    with rl.count() as counted:
        rl.exp(rl.empty(0))
    assert "user" not in counted.to_markdown()


def test_equal_counts_have_equal_hashes_and_a_counter_has_none():
    one, other = (counter("a", 3).by_op["add"] for _ in range(2))
    assert len({one, other, copy.copy(one)}) == 1 and len({rl.Cost(flops=1), rl.Cost(flops=1)}) == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter("a", 3))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"device": 3}, r"\[Timing.device\] expected str, got int"),
        ({"rounds": True}, r"\[Timing.rounds\] expected int, got bool"),
        ({"rounds": 1.5}, r"\[Timing.rounds\] expected int, got float"),
        ({"samples_ms": ["a"]}, r"\[Timing.samples_ms\] expected float, got str"),
        ({"samples_ms": 1.0}, r"\[Timing.samples_ms\] expected list, got float"),
    ],
)
def test_a_field_of_another_type_is_named(change, said):
    with pytest.raises(ValueError, match=said):
        rl.Timing.from_dict({**timing("cpu", 1).to_dict(), **change})


def test_a_field_that_is_missing_is_named():
    with pytest.raises(ValueError, match=r"\[Timing\] the field 'device' is missing"):
        rl.Timing.from_dict({"samples_ms": [1.0], "overhead_ms": 0.0})
    assert rl.Timing.from_dict({"samples_ms": [1], "overhead_ms": 0, "device": "cpu"}).rounds == 1


def test_an_array_is_read_in_its_order():
    one = timing("cpu", 7.0)
    assert rl.Timing.from_json(one.to_json()).samples_ms.tolist()[::2] == [1.0, 7.0]
