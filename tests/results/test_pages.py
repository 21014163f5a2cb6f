"""A report of tables and figures, as a page and as Markdown."""

import pytest

import rooflab as rl
from rooflab.results import Report


def test_a_report_keeps_all_that_it_is_given(tmp_path):
    report = Report("a < b")
    report.section("Times")
    report.text("as measured & read")
    report.table(("size", "ms"), [("small", 38.32), ("xl", "OOM")], "A100, fp32, ms")
    report.table(("kernel",), [("a|b <c>",)], "by name")
    report.file("page.html", lambda path: path.write_text("<p>whole</p>", encoding="utf-8"), "the page & more")
    report.figure(rl.plots.plot_lines({"F": {1: 1.0, 2: 3.0}}, "FLOP", "work"), "work")
    page, text = (path.read_text(encoding="utf-8") for path in report.save(tmp_path))
    for part in ("38.32", "OOM", "A100, fp32, ms", "Times"):
        assert part in page and part in text
    assert "| a\\|b &lt;c> |" in text and "a|b &lt;c&gt;" in page, "a bar ends no cell"
    assert '<a href="page.html">the page &amp; more</a>' in page and "[the page &amp; more](page.html)" in text
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "<p>whole</p>"
    assert "a &lt; b" in page and "&amp; read" in page and "data:image/png;base64," in page
    assert (tmp_path / "figure-5.png").stat().st_size > 1000 and "![work](figure-5.png)" in text
    with pytest.raises(ValueError, match="caption"):
        report.table(("a",), [(1,)], " ")


def test_captions_and_headings_are_no_markup(tmp_path):
    report = Report("a*b*")
    report.section("[x]")
    report.table(("n",), [(1,)], "x_i of *all*, _here_, ~5 ms, $3$")
    report.file("a 1#.txt", lambda path: path.write_text("", encoding="utf-8"), "the ]( page")
    text = report.markdown()
    for part in (
        "# a\\*b\\*",
        "## \\[x\\]",
        r"*x_i of \*all\*, \_here\_, \~5 ms, \$3\$*",
        r"[the \]( page](a%201%23.txt)",
    ):
        assert part in text
    assert 'href="a%201%23.txt"' in report.html()


def test_a_long_report_begins_with_its_sections():
    report = Report("Many")
    for heading in ("One", "Two <b>", "Three"):
        assert "#part-1" not in report.html()
        report.section(heading)
    page = report.html()
    assert '<a href="#part-2">Two &lt;b&gt;</a>' in page and '<h2 id="part-2">Two &lt;b&gt;</h2>' in page
