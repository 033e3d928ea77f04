"""Runs the experiment that is named, with its options."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # of experiments, not of their files

from benchmarks.experiment import main  # noqa: E402

main(sys.argv[1:])
