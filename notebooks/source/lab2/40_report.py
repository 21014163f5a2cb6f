# %% [markdown]
# # 2 The report ({points q2})
#
# A measured number is useful only if others can tell how it was measured. So a report names the machine, the dtype, the
# sequence length and the ddof. It also keeps the rows of sizes that did not fit. Leaving them out would hide a result.
#
# Write `timing_report(report, rows, machine, dtype, ddof)`. It adds one table of times to `report`, an
# `rl.labs.lab2_report.Report`, and returns the report. `rows` is a list of dicts with the keys `"size"`, `"length"`,
# `"warmup"`, `"mode"`, `"status"`, `"mean_ms"` and `"std_ms"`. The last two are `None` where the status is `"OOM"`.
#
# - Each row shows its size, length, number of warm-up steps, mode, status, mean and standard deviation. Times have two
#   decimals. Leave the times of an OOM row empty.
# - Every column has a head. The heads of the two time columns contain the word mean or std, and their unit, ms.
# - The caption contains the machine, the dtype, the unit ms, and the word ddof followed by its value.
#
# `report.table(head, rows, caption)` adds a table. `report.section(heading)`, `report.text(words)` and
# `report.figure(figure, caption)` add other parts. `report.html()` and `report.markdown()` return the page.


# %% nbgrader={"grade_id": "q2", "solution": true}
def timing_report(report, rows, machine, dtype, ddof):
    """Add a table of times to the report, and return the report."""
    ### BEGIN SOLUTION
    shown = []
    for row in rows:
        times = ["" if row[name] is None else f"{row[name]:.2f}" for name in ("mean_ms", "std_ms")]
        shown.append((row["size"], row["length"], row["warmup"], row["mode"], row["status"], *times))
    head = ("size", "L", "warm-up steps", "mode", "status", "mean ms", "std ms")
    report.table(head, shown, f"{machine}, {dtype}, times in ms, standard deviation with ddof = {ddof}")
    return report
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_test", "grade": true, "points": 2}
def check_report(rows, machine, dtype, ddof):
    rows = [
        dict(zip(("size", "length", "warmup", "mode", "status", "mean_ms", "std_ms"), one, strict=True)) for one in rows
    ]
    found = measure.call(timing_report, rows, machine, dtype, ddof, through=lab2_written.run_report).value
    lab2.assert_report(found, rows, machine, dtype, ddof)


rows = [("small", 128, 5, "forward", "ok", 38.3219, 0.3614), ("small", 128, 0, "both", "ok", 226.391, 441.172)]
check_report([*rows, ("2.7B", 1024, 5, "forward", "OOM", None, None)], "A100-SXM4-40GB", "fp32", 0)
check_report(rows, "RTX 4090", "bf16", 1)
### BEGIN HIDDEN TESTS
check_report(
    [("xl", 256, 1, "forward", "OOM", None, None), ("xl", 512, 1, "both", "OOM", None, None)], "RTX 5090", "bf16", 1
)
L, w, mean_ms = measure.draw(16, 999), measure.draw(1, 9), measure.draw(100, 9999) / 100
check_report(
    [("large", L, w, "both", "ok", mean_ms, 0.25), ("tiny", 9, 0, "forward", "ok", 0.5, 0.0)], "laptop", "fp32", 1
)
### END HIDDEN TESTS

# %% [markdown]
# Here is your own report: the results of the core on one page. `report.save(folder)` writes it as HTML and as Markdown,
# with its figures. Would a reader who has never seen your machine understand each table? If you do the optional part,
# you can add its tables in the same way.

# %%
machine = rl.cuda.properties().name if device == "cuda" else "CPU"
report = lab2_report.Report("Lab 2: benchmark, profile and fit a transformer")
report.section("Times")
timing_rows = [
    {
        "size": row["size"],
        "length": 128,
        "warmup": 1,
        "mode": mode,
        **{key: row[mode][key] for key in ("status", "mean_ms", "std_ms")},
    }
    for row in own_rows
    for mode in ("forward", "both")
]
timing_report(report, timing_rows, machine, "fp32", own_rows[0]["forward"]["ddof"])
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
