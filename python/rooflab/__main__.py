"""`python -m rooflab` is the command `rooflab`."""

import sys

from rooflab.cli import main

if __name__ == "__main__":
    sys.exit(main())
