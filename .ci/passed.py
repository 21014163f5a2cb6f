"""Fails unless most of the tests in a JUnit report passed: `python3 .ci/passed.py REPORT [LEAST]`."""

import sys
import xml.etree.ElementTree as ElementTree


def main(report: str, least: int = 1000) -> int:
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    passed = sum(not any(case.find(what) is not None for what in ("skipped", "failure", "error")) for case in cases)
    print(f"{passed} of {len(cases)} tests passed, the others were skipped or failed; at least {least} must pass")
    return int(passed < least)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:3])))
