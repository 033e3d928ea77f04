"""Programs in processes of their own. None has a time limit: pytest ends a test that hangs."""

import os
import subprocess
import sys


def python(*arguments, cwd=None, **environment) -> subprocess.CompletedProcess:
    """What Python said when it was started with these arguments."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def python_says(*arguments, **options) -> str:
    """What Python printed; it must have ended well."""
    done = python(*arguments, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
