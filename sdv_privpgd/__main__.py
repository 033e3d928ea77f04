"""Runs the command line as ``python -m sdv_privpgd``."""

import sys

from sdv_privpgd.cli.start import main

if __name__ == "__main__":
    sys.exit(main())
