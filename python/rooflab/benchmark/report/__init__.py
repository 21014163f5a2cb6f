"""The report that a course ends in: `rooflab bench report`.

    from rooflab.benchmark import report
    settings = report.Settings(device="cpu", model_sizes=("small", "medium"), context_lengths=(128, 256))
    rows = report.run(settings, ("step", "memory"), file=Path("rows.json"), minutes=5)
    report.written(rows, ("step", "memory")).save("report")

Its rows are those of `rooflab bench lm`, in one file of JSON. A case that is measured is a row, and a case that would
take too long is counted and modelled on a meta device. Each part is a module here that says which cases it needs, and
writes its tables and figures from their rows.
"""

from .document import lacking, written
from .parts import PARTS, Part, calls, cases
from .running import measure, run, run_calls
from .settings import WARMUP_STEPS, Rows, Settings

__all__ = [
    "PARTS", "WARMUP_STEPS", "Part", "Rows", "Settings", "calls", "cases", "lacking", "measure", "run", "run_calls",
    "written",
]  # fmt: skip
