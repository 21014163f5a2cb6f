"""Fails unless so many tests of a JUnit report passed: `python3 .ci/passed.py REPORT LEAST`.

A run that skips nearly everything, or finds few tests, passes for pytest.
"""

import sys
import xml.etree.ElementTree as ElementTree


def main(report: str, least: int) -> int:
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    passed = sum(not any(case.find(what) is not None for what in ("skipped", "failure", "error")) for case in cases)
    print(f"{passed} of {len(cases)} tests passed, the others were skipped or failed; at least {least} must pass")
    return int(passed < least)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
