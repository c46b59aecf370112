"""Registers and runs cases of a Python client. Prints a line of JSON for each outcome."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any, Final

from tests.max_wait import MAX_WAIT

SECONDS: Final = round(MAX_WAIT)  # for one case: clients poll for ever
CASES: Final[list[Callable[[], Any]]] = []


def case(run: Callable[[], Any]) -> Callable[[], Any]:
    """Registers a case. The function raises if the client fails."""
    CASES.append(run)
    return run


def tell() -> None:
    """Runs all cases in order. Also catches BaseException, which some clients raise."""
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
