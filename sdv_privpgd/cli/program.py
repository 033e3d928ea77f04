"""Runs a command, shows its errors and warnings, and returns its exit status to the shell."""

import sys
import warnings
from collections.abc import Sequence

from sdv_privpgd.cli import interrupts
from sdv_privpgd.cli.arguments import parser
from sdv_privpgd.cli.saying import CommandError, say, say_warning


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line and returns the exit status."""
    parsed = parser().parse_args(arguments)
    with warnings.catch_warnings(), interrupts.raised():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = say_warning
        try:
            parsed.run(parsed)
        except CommandError as error:
            say(str(error))
            return 1
        except BrokenPipeError:  # the reader has closed the pipe
            sys.stdout = None
        except KeyboardInterrupt as interrupt:
            getattr(parsed, "say_spent", _say_nothing_spent)()
            say("interrupted")
            return interrupts.exit_status(interrupt)
        except Exception as error:  # noqa: BLE001 - its text may hold a value of the table
            say(f"failed with {type(error).__name__}; its text is withheld.")
            return 1
    return 0


def _say_nothing_spent() -> None:
    """Where no command has come so far that it could spend anything."""
    say("Nothing was spent.")
