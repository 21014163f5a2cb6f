"""`python3 python/rooflab/cli/doctor`: the page before rooflab is installed, by any Python 3.8 or newer."""

import argparse
import importlib
import os
import sys

if __name__ == "__main__":
    # Last, because the modules beside this folder are no top-level ones.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    doctor = importlib.import_module("doctor")
    parser = argparse.ArgumentParser(prog="doctor", description="What this machine has, and what that makes possible.")
    doctor.add_arguments(parser)
    sys.exit(doctor.main(parser.parse_args()))
