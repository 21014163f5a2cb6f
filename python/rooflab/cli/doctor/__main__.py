"""`python3 python/rooflab/cli/doctor`: the page before rooflab is installed, by any Python 3.8 or newer."""

import argparse
import importlib
import os
import sys

TOO_OLD = """rooflab needs Python 3.11 or newer, and this is {}.{}: run `module load python` where there are modules, or
install uv as its own page says and run `uv venv --clear --seed --python 3.12 .venv`."""

if __name__ == "__main__":
    if sys.version_info < (3, 8):  # noqa: UP036  # it cannot read the modules below; it can read this, as Python 2 can
        sys.exit(TOO_OLD.format(*sys.version_info))
    # Last, because the modules beside this folder are no top-level ones.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    doctor = importlib.import_module("doctor")
    parser = argparse.ArgumentParser(prog="doctor", description="What this machine has, and what that makes possible.")
    doctor.add_arguments(parser)
    sys.exit(doctor.main(parser.parse_args()))
