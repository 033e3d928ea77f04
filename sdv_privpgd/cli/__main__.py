"""Runs the command line as ``python -m sdv_privpgd.cli``."""

import sys

from sdv_privpgd.cli.program import main

sys.exit(main())
