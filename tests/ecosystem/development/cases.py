"""Registers the cases of a Python client, runs them, and prints each outcome as a line of JSON."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any, Final

from tests.max_wait import MAX_WAIT

# Time limit of one case, because some clients poll forever.
SECONDS: Final = round(MAX_WAIT)
CASES: Final[list[Callable[[], Any]]] = []


def case(run: Callable[[], Any]) -> Callable[[], Any]:
    """Registers a function as a case. It passes if the function raises no exception."""
    CASES.append(run)
    return run


def tell() -> None:
    """Runs all cases in order and prints the outcomes.

    Also catches exceptions that are no Exception, because some clients raise them.
    """
    signal.signal(signal.SIGALRM, _late)
    for run in CASES:
        reported: dict[str, Any] = {"name": run.__name__.replace("_", " ")}
        signal.alarm(SECONDS)
        try:
            run()
            reported["value"] = True
        except BaseException as error:
            reported["error"] = f"{type(error).__name__}: {error}"[:400]
        finally:
            signal.alarm(0)
        print(json.dumps(reported), flush=True)


def _late(*_: Any) -> None:
    raise TimeoutError(f"not done within {SECONDS} seconds")
