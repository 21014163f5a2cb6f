"""What results look like at the prompt and in a notebook: short lines, and tables."""

import re

import numpy as np
from machine.made_up import ceilings

import rooflab as rl
from rooflab.results import Table


def cells(page):
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]


def test_text_is_escaped_and_numbers_stand_right():
    page = Table(["<op>", "n"], [["a < b & c", 3]], note="5 > 4").to_html()
    assert cells(page) == [["&lt;op&gt;", "n"], ["a &lt; b &amp; c", "3"]]
    assert '<td style="text-align:right">3</td>' in page and '<td style="text-align:left">a' in page
    assert page.endswith("<p>5 &gt; 4</p>")


def test_a_timing_is_a_line():
    timing = rl.Timing(np.linspace(1, 2, 101), 0.0, "cpu")
    assert repr(timing) == "Timing(1.5 ms (p20 1.2 ms, p80 1.8 ms, n=101), on cpu)"


def test_a_timing_is_a_table_of_one_row():
    page = rl.Timing(np.linspace(1, 2, 101), 0.0003, "cuda:0")._repr_html_()
    assert cells(page) == [
        ["calls", "median", "p20", "p80", "mean", "std", "least", "most"],
        ["101", "1.5 ms", "1.2 ms", "1.8 ms", "1.5 ms", "292 µs", "1 ms", "2 ms"],
    ]
    assert "<p>On cuda:0. The median lies between " in page and " A call that does nothing takes 300 ns.</p>" in page
    one = rl.Timing(np.array([0.25]), 0.0, "cpu")._repr_html_()
    assert cells(one) == [["calls", "time"], ["1", "250 µs"]] and one.endswith("<p>On cpu.</p>")


def test_memory_is_a_table_in_the_units_of_its_size():
    a = rl.ones(1000, 1000)
    with rl.memory.record() as timeline:
        use = rl.benchmark_memory(lambda: rl.exp(a) + 1)
        b = rl.exp(a)
    head, row = cells(use._repr_html_())
    assert head == ["peak, above resident", "resident before", "retained after"]
    assert (row[0], row[2]) == ("8 MB", "4 MB")
    assert cells(timeline._repr_html_()) == [["op", "held at the peak"], ["exp", "4 MB"], ["add", "4 MB"]]
    assert str(timeline) in timeline._repr_html_() and b.nbytes == 4_000_000
    assert rl.memory.record()._repr_html_() == "<p>Timeline(not started)</p>"


def test_counts_are_a_line_and_a_table():
    x = rl.ones(1000)
    with rl.count() as c:
        x + 1
        rl.gelu(x)
    assert repr(c) == (
        "count(ops=2, launches=2, host_calls=2, macs=0, flops=9000, bytes_read=8000, bytes_written=8000, "
        "allocations=2, bytes_allocated=8000, peak_bytes=4000)"
    )
    head, *rows = cells(c._repr_html_())
    assert head == ["op", "ops", "launches", "host calls", "flops", "bytes read", "bytes written", "bytes allocated"]
    assert ["gelu", "1", "1", "1", "8,000", "4,000", "4,000", "4,000"] in rows
    assert rows[-1] == ["total", "2", "2", "2", "9,000", "8,000", "8,000", "8,000"]
    assert "peak 4000 B above what was held" in c._repr_html_()
    assert c._repr_html_().count('<td style="text-align:right">') == (len(head) - 1) * len(rows)


def test_averages_of_kernels_are_a_line_and_a_table():
    x = rl.ones(1000)
    with rl.profile() as prof:
        rl.gelu(x)
        rl.gelu(x)
    averages = prof.key_averages()
    assert repr(averages) == "KernelAverages(1 row, 2 kernels; print() shows the table)"
    head, row = cells(averages._repr_html_())
    assert head[:4] == ["kernel", "op", "category", "calls"] and row[1:4] == ["gelu", "elementwise", "2"]
    assert [row[3] for row in cells(averages._repr_html_())[1:]] == [str(a.calls) for a in averages]
    assert re.search(
        r"<p>2 kernels in 1 step, [\d.]+ [µnm]s of kernel time. They ran on cpu; times by .+.</p>$",
        averages._repr_html_(),
    )
    assert prof.devices == ["cpu"] and "2 kernels on cpu" in repr(prof)


def test_ceilings_are_a_line_and_a_table():
    known = ceilings(busy="1 of 2 cores was busy")
    assert repr(known) == (
        "Ceilings(AMD EPYC 7763 64-Core Processor (cpu): copy 14 GB/s, float32 120 GFLOP/s, bfloat16 100 GFLOP/s)"
    )
    head, *rows = cells(known._repr_html_())
    assert head[1] == "measured (p20 .. p80)" and len(head) == len(rows[0])
    assert [row[0] for row in rows][:2] == ["DRAM copy bandwidth", "DRAM read bandwidth"]
    assert "1 of 2 cores was busy" in known._repr_html_()


def test_empty_cells_stand_as_those_beside_them():
    page = Table(["ms", "none", "words"], [["1.5", "", ""], ["", "", "a"]]).to_html()
    assert page.count('<td style="text-align:right">') == 2 and '<td style="text-align:right">1.5</td>' in page
