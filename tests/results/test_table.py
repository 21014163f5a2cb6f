"""Tables of notebooks: aligned in a terminal, a table in a browser."""

import pytest

from rooflab.results import Table


def test_a_table_in_a_terminal():
    table = Table(("L", "version", "ms"), [(256, "naive", "0.61"), (1024, "flash", "~12.5")], "B = 8", "one machine")
    assert str(table).split("\n") == [
        "B = 8",
        "   L  version     ms",
        " 256  naive     0.61",
        "1024  flash    ~12.5",
        "one machine",
    ]


def test_a_table_in_a_browser():
    page = Table(("<a>", "n"), [("x & y", 3)], "<title>", "note")._repr_html_()
    assert '<th style="text-align:left">&lt;a&gt;</th>' in page and "<caption>&lt;title&gt;</caption>" in page
    assert '<td style="text-align:left">x &amp; y</td><td style="text-align:right">3</td>' in page
    assert page.endswith("<p>note</p>")


def test_a_row_is_as_long_as_the_head():
    with pytest.raises(ValueError, match=r"\[Table\] row: expected 2 cells, got 3"):
        Table(("a", "b"), [(1, 2, 3)])
    assert str(Table(("a", "b"), [])) == "a  b"
