"""Serves one peer over standard input and output, a line of JSON for each request and answer.

Started as a script by the peer's own Python: ``python worker.py on_pyrevm``. A module either has
programs to prepare and time, or a function ``answer`` for requests of its own kind.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any


def timed(run: "Callable[[], object]", runs: int) -> float:
    """Thread CPU seconds of a number of runs."""
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
        """Carry out one request: ``hello``, ``prepare``, ``time`` or ``forget``."""
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
    """Answer until the input ends; an error becomes an answer, and the worker lives on."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what an engine prints is no answer
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
