# %% [markdown]
# # 2 The report ({points q2})
#
# A measured number is useful only if others can tell how it was measured. So a report names the machine, the dtype, the
# sequence length and the ddof. It also keeps the rows of sizes that did not fit, and says which rows are measured and
# which come from a model. Leaving that out would hide a result.
#
# Write `timing_report(report, rows, machine, dtype, ddof)`. It adds one table of times to `report`, an
# `rl.labs.lab2_report.Report`, and returns the report. `rows` is a list of dicts with the keys `"size"`, `"length"`,
# `"warmup"`, `"mode"`, `"source"`, `"status"`, `"mean_ms"` and `"std_ms"`. The source is `"measured"` or `"modelled"`.
# Both times are `None` where the status is `"OOM"`. A model gives one time, so `"std_ms"` of a modelled row is `None`.
#
# - Each row shows its size, length, number of warm-up steps, mode, source, status, mean and standard deviation. Times
#   have two decimals. Leave a time that is `None` empty.
# - Every column has a header. The headers of the two time columns contain the word mean or std, and their unit, ms. The
#   headers of the other columns contain size, L or length, warm, mode, source and status.
# - The caption contains the machine, the dtype, the unit ms, and the word ddof followed by its value.
# - Do not change `rows`.
#
# `report.table(head, rows, caption)` adds a table; `head` is the tuple of its headers. `report.section(heading)`,
# `report.text(words)` and `report.figure(figure, caption)` add other parts. `report.html()` and `report.markdown()`
# return the page.


# %% nbgrader={"grade_id": "q2", "solution": true}
def timing_report(report, rows, machine, dtype, ddof):
    """Add a table of times to the report, and return the report."""
    ### BEGIN SOLUTION
    shown = []
    for row in rows:
        times = ["" if row[name] is None else f"{row[name]:.2f}" for name in ("mean_ms", "std_ms")]
        names = ("size", "length", "warmup", "mode", "source", "status")
        shown.append((*(row[name] for name in names), *times))
    head = ("size", "L", "warm-up steps", "mode", "source", "status", "mean ms", "std ms")
    report.table(head, shown, f"{machine}, {dtype}, times in ms, standard deviation with ddof = {ddof}")
    return report
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_test", "grade": true, "points": 2}
def check_report(rows, machine, dtype, ddof):
    names = ("size", "length", "warmup", "mode", "source", "status", "mean_ms", "std_ms")
    rows = [dict(zip(names, one, strict=True)) for one in rows]
    seen = measure.call(timing_report, rows, machine, dtype, ddof, through=lab2_written.run_report)
    # The value has the head, the rows and the caption of the table, and the html of the page.
    lab2.assert_report(seen.value, rows, machine, dtype, ddof)
    assert not seen.changed, "timing_report changed the rows that it was given: make new ones"


here, model = "measured", "modelled"
rows = [
    ("small", 128, 5, "forward", here, "ok", 38.3219, 0.3614),
    ("small", 128, 0, "both", here, "ok", 226.39, 441.17),
]
rows += [("xl", 128, 0, "both", model, "ok", 152.5, None), ("2.7B", 512, 5, "forward", here, "OOM", None, None)]
check_report([*rows, ("2.7B", 1024, 0, "train", model, "OOM", None, None)], "A100-SXM4-40GB", "fp32", 0)
check_report(rows[:2], "RTX 4090", "bf16", 1)
### BEGIN HIDDEN TESTS
rows = [("xl", 256, 1, "forward", here, "OOM", None, None), ("xl", 512, 0, "both", model, "OOM", None, None)]
check_report(rows, "RTX 5090", "bf16", 1)
L, w, mean_ms = measure.draw(16, 999), measure.draw(1, 9), measure.draw(100, 9999) / 100
rows = [("large", L, w, "both", here, "ok", mean_ms, 0.25), ("large", L + 1, 0, "train", model, "ok", mean_ms, None)]
check_report([*rows, ("tiny", 9, 0, "forward", here, "ok", 0.5, 0.0)], f"machine {L}", "fp16", 1)
### END HIDDEN TESTS

# %% [markdown]
# The next cell makes your own report, in about two minutes. Its first table has all five sizes: `course_report.run`
# measures the shortest steps for a minute. What is too long or too large for your machine is counted and modelled, as
# on an A100 with 40 GB. `rooflab bench report` gives the same as a command, with more lengths and parts.
# `report.save(folder)` writes the page as HTML and as Markdown, with its figures. If you do the optional part, you can
# add its tables in the same way.

# %%
from rooflab.benchmark import report as course_report

settings = course_report.Settings(device, context_lengths=(128, 512), measure_steps=3)
found = course_report.run(settings, ("step",), minutes=2)
machine = found.machines(result.case for result in found.every())
report = lab2_report.Report("Lab 2: benchmark, profile and fit a transformer")
report.section("Times")
timing_report(report, lab2_report.timing_rows(found), machine, "fp32", 0)
report.section("Precision")
report.table(("sum in", "terms in", "1000 x 0.01"), accumulation_rows, "0.01 added up a thousand times")
report.table(("tensor", "autocast float16", "autocast bfloat16"), dtype_rows, "dtypes in ToyModel(20, 5), B = 4")
report.section("Memory")
peak_head = (
    "L",
    "inference GiB",
    "forward GiB",
    "step GiB",
    "step, gradients kept GiB",
    "R: forward GiB",
    "R: step GiB",
)
report.table(peak_head, peak_rows, "2.7B, B = 4, fp32, counted without memory, GiB; the original's in brackets")
report.figure(
    rl.plots.plot_memory_timelines(timelines, binary=True),
    "2.7B, B = 4, L = 256, fp32: what is held in a forward pass and in a step",
)
with tempfile.TemporaryDirectory() as folder:
    html, markdown = report.save(folder)
    print(f"{html.name}: {html.stat().st_size / 1e3:.0f} kB, {markdown.name}: {markdown.stat().st_size / 1e3:.0f} kB")
report

# %% [markdown]
# Now write your conclusions about your own rows. Which of them ran out of memory, and which part of the memory
# (weights, optimizer, activations) made it too large? How do the times grow with the size and with L, and does F of
# 1.1.2 explain it? Which of your conclusions rest on modelled rows?

# %% [markdown] nbgrader={"grade_id": "q2_text", "solution": true}
# *What I find about my rows:*
