"""CI counts the tests that passed, so that a run of few is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

COUNT = Path(__file__).resolve().parents[1] / ".ci" / "passed.py"
REPORT = """<testsuites><testsuite><testcase name="a"/><testcase name="b"><system-out>x</system-out></testcase>
<testcase name="c"><skipped/></testcase><testcase name="d"><failure/></testcase><testcase name="e"><error/></testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize(("least", "code"), [(2, 0), (3, 1)])
def test_skipped_and_failed_tests_do_not_count(tmp_path, least, code):
    path = tmp_path / "report.xml"
    path.write_text(REPORT, encoding="utf-8")
    done = subprocess.run([sys.executable, COUNT, path, str(least)], capture_output=True, text=True)
    assert done.returncode == code and done.stdout.startswith("2 of 5 tests passed")
