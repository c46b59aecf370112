"""Serves one peer over standard input and output, with a line of JSON per request and response.

The peer's own Python runs it as a script: ``python worker.py on_pyrevm``. A peer's module has a
function ``prepare`` that returns programs to time, or a function ``answer`` for its own requests.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any


def timed(run: "Callable[[], object]", runs: int) -> float:
    """Returns the thread CPU seconds of a number of runs."""
    rounds = range(runs)
    start = time.thread_time_ns()
    for _ in rounds:
        run()
    return (time.thread_time_ns() - start) / 1e9


class Worker:
    """Keeps the prepared programs of one engine by name."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.programs: dict[str, Any] = {}

    def answer(self, request: "dict[str, Any]") -> "dict[str, Any]":
        """Handles a request: ``hello``, ``prepare``, ``time`` or ``forget``."""
        kind = request["do"]
        if kind == "hello":
            return {"version": self.engine.version()}
        name = request["name"]
        if kind == "prepare":
            program = self.engine.prepare(request["environment"], request["case"], request["slow"])
            start = time.thread_time_ns()
            found = program.outcome()
            self.programs[name] = program
            return {"outcome": found, "seconds": (time.thread_time_ns() - start) / 1e9}
        if kind == "time":
            return {"seconds": timed(self.programs[name].run, request["runs"])}
        del self.programs[name]
        return {}


def main() -> None:
    """Handles requests until the input ends. An exception becomes an error response."""
    # output that an engine prints must not mix with responses
    answers, sys.stdout = sys.stdout, sys.stderr
    engine = importlib.import_module(sys.argv[1])
    answer = getattr(engine, "answer", None) or Worker(engine).answer
    for line in sys.stdin:
        try:
            found = answer(json.loads(line))
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"[:500]}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
