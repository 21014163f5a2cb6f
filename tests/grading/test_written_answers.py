"""An answer in words of each lab is found, whatever became of its cell."""

import nbformat
import pytest
from grading.demo_lab import SOURCE
from nbformat.v4 import new_markdown_cell, new_raw_cell

from rooflab.grading.lab import model, release
from rooflab.grading.lab.repair import repair

SOURCES = model.find_sources(SOURCE.parents[3] / model.SOURCES)


@pytest.mark.slow(but_every=3)
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_each_written_answer_is_found(source):
    lab = model.from_source(source)
    cells = release.build(lab).cells
    prose = {cell.key: model.label(cell.question) for cell in lab.cells if cell.role == "prose"}
    asked = [raw.metadata.get("nbgrader", {}).get("grade_id") in prose for raw in cells]
    written = {question: f"Of {question}." for question in prose.values()}
    texts = iter(written[question] for question in prose.values())
    own = [
        (raw, new_markdown_cell(next(texts)) if is_asked else None) for raw, is_asked in zip(cells, asked, strict=True)
    ]
    ways = {
        "without its marks": [[new or raw] for raw, new in own],
        "as a raw cell": [[new_raw_cell(new.source) if new else raw] for raw, new in own],
        "above its cell": [[new, raw] if new else [raw] for raw, new in own],
        "below its cell": [[raw, new] if new else [raw] for raw, new in own],
    }
    for way, found in ways.items():
        submission = repair(lab, nbformat.from_dict([one for few in found for one in few]))
        assert submission.findings == written, way
        assert not any("not answered" in line for line in submission.repairs), way


def test_there_are_labs_with_written_answers():
    assert len(SOURCES) >= 7
