"""Runs the command line as ``python -m sdv_privpgd.cli``."""

import sys

from sdv_privpgd.cli.start import main

sys.exit(main())
