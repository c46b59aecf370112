"""Starts an example. If its extra is missing, prints the command that installs the extra."""

import sys
from collections.abc import Callable
from importlib import import_module

from fastevm.errors import install_command


def start(module: str, extra: str) -> int:
    """Imports ``module`` and runs its ``main``. Returns the exit code."""
    try:
        main: Callable[[], int] = import_module(module).main
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("examples", "fastevm"):
            raise
        hint = "" if "pip install" in str(error) else f": {install_command(extra)}"
        print(f"{module.rpartition('.')[0]}: {error}{hint}", file=sys.stderr)
        return 1
    return main()
