"""Tables of notebooks: aligned in a terminal, a table in a browser."""

import numpy as np
import pytest

from rooflab.results import Table

NAN = float("nan")


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


def test_a_table_in_markdown():
    table = Table(("op", "n"), [("a_b|c", 1024), ("<i>&amp;", None)], "A *title*", "a note")
    assert table.shown().to_markdown().split("\n") == [
        "A \\*title\\*",
        "",
        "| op | n |",
        "|---|---:|",
        "| a_b\\|c | 1,024 |",
        "| &lt;i>&amp;amp; |  |",
        "",
        "a note",
    ]


def test_markup_of_a_cell_is_escaped_and_names_stay_as_they_are():
    words = ("_a_", "a_b_c", "~~b~~", "$x$ and $y$", "*c*", "`d`", "__init__", "v2_x")
    (row,) = Table(["n"] * len(words), [words]).to_markdown().split("\n")[2:]
    assert row == r"| \_a\_ | a_b_c | \~\~b\~\~ | \$x\$ and \$y\$ | \*c\* | \`d\` | \_\_init\_\_ | v2_x |"


def test_a_table_as_csv_is_exact_and_no_formula():
    cells = [("=1+1", 1 / 3), ("-2", None), ("-", float("nan")), ("@SUM(A1)", float("inf")), ("a,b", [1, 2])]
    lines = Table(("name", "value"), cells).to_csv().splitlines()
    assert lines == ["name,value", "'=1+1,0.3333333333333333", "-2,", "-,", "'@SUM(A1),inf", '"a,b","[1, 2]"']


def test_labels_stand_left_and_heads_may_have_lines():
    table = Table(("question", "of\nfour", "n"), [("1.1", "3", "-"), ("10.2", "-", "-")], labels=1)
    assert table.lines() == ["            of", "question  four  n", "1.1          3  -", "10.2         -  -"]
    assert (
        str(Table((), (), note="nothing yet")) == "nothing yet" and Table((), (), note="a")._repr_html_() == "<p>a</p>"
    )


def test_a_cell_of_several_lines_stays_in_its_row():
    table = Table(("name", "n"), [("a\nb", 1)])
    assert str(table).split("\n") == ["name  n", "a b   1"] and "| a b | 1 |" in table.to_markdown()


def test_a_table_of_dicts_has_a_column_for_each_key():
    table = Table.of([{"a": 1}, {"b": 2, "a": 3}], ("c",))
    assert (table.head, table.rows) == (("c", "a", "b"), [(None, 1, None), (None, 3, 2)])


def test_a_column_of_dashes_is_one_of_words():
    assert Table(("op", "n"), [("-", "-"), ("-", "1")]).lines() == ["op  n", "-   -", "-   1"]


def test_a_table_that_is_read_has_the_same_cells():
    cells = [NAN, float("inf"), -float("inf"), "NaN", "'NaN", "-Infinity", "nan", (1, (2, "NaN")), None, True]
    cells += [
        1.5,
        np.float32(0.1),
        np.int64(3),
        {"a": [NAN, "Infinity"]},
        np.array([[1, 2]]),
        [np.array([NAN])],
    ]
    table = Table([str(i) for i in range(len(cells))], [cells], "title", "note", 1)
    again = Table.from_json(table.to_json())
    assert again == table and again.to_json() == table.to_json()
    assert [type(cell) for cell in again.rows[0]][:9] == [float] * 3 + [str] * 4 + [tuple, type(None)]
    assert again.to_csv() == Table.from_json(again.to_json()).to_csv()
    assert Table("a", [[1]]) != Table("a", [[1.0]]) and Table("a", [[[1]]]) == Table("a", [[(1,)]])
    for text in ('{"head": ["a"], "rows": [[1]], "unheard_of": 1}', '{"head": ["a"]}', "[]", '{"head": 1, "rows": []}'):
        with pytest.raises(ValueError, match=r"\[Table"):
            Table.from_json(text)


@pytest.mark.parametrize("nan", [float("nan"), np.float32("nan"), np.float16("nan"), np.float64("nan")])
def test_every_unknown_number_is_an_empty_cell(nan):
    assert Table("ab", [[nan, 1]]).to_csv() == "a,b\n,1\n"
