"""Times cases on engines in interleaved rounds, after each engine has given the right outcome."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from fastevm.bench.engines.evms import Engine, PeerError, Prepared
from fastevm.bench.programs.cases import Case

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int  # measurements of each case on each engine
    seconds: float  # thread CPU time to spend on one measurement, which has at least one run
    slow_rounds: int  # rounds on engines that are a hundred times slower
    slow_limit: float  # seconds; on slow engines, a case with a longer first run is not repeated
    slow_gas: float  # cases with more gas are not run on slow engines


THOROUGH = Effort(rounds=9, seconds=0.012, slow_rounds=2, slow_limit=1.0, slow_gas=20e6)
QUICK = Effort(rounds=3, seconds=0.003, slow_rounds=1, slow_limit=0.05, slow_gas=150e3)


@dataclass
class Figures:
    """The measurements: seconds of a full case for each round, and what was skipped and why."""

    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)  # cases in which fastevm gave a wrong outcome
    notes: list[str] = field(default_factory=list)

    def median(self, case: str, engine: str) -> float | None:
        """Returns the median of the rounds in seconds, or None if the case was not measured."""
        rounds = self.seconds.get(case, {}).get(engine)
        return statistics.median(rounds) if rounds else None


@dataclass
class Entry:
    """A case on an engine that gave the right outcome, ready to be timed."""

    case: Case
    engine: Engine
    runs: int
    rounds: int
    scale: float


class Runner:
    """Checks the outcome of every case on every engine, then times it."""

    def __init__(self, engines: list[Engine], effort: Effort, report: Report) -> None:
        self.engines = engines
        self.effort = effort
        self.report = report
        self.figures = Figures()

    def measure(self, cases: list[Case]) -> Figures:
        """Returns all figures of the cases on the engines."""
        entries = [entry for case in cases for entry in self.prove(case)]
        for number in range(max((entry.rounds for entry in entries), default=0)):
            self.report(f"round {number + 1}")
            for entry in entries:
                if number < entry.rounds:
                    spent = entry.engine.time(entry.case, entry.runs) / entry.runs
                    self.add(entry.case, entry.engine, spent * entry.scale)
        return self.figures

    def add(self, case: Case, engine: Engine, seconds: float) -> None:
        by_engine = self.figures.seconds.setdefault(case.name, {})
        by_engine.setdefault(engine.name, []).append(seconds)

    def prove(self, case: Case) -> list[Entry]:
        """Returns the engines with the expected outcome, or none if fastevm's outcome is wrong."""
        found: list[Entry] = []
        for engine in self.engines:
            expected = case.expected(engine.slow)
            if engine.slow and expected.gas_used > self.effort.slow_gas:
                self.note(case, engine, "too long for this engine")
                continue
            try:
                prepared = engine.prepare(case)
            except PeerError as error:
                self.note(case, engine, str(error))
                continue
            difference = prepared.outcome.difference(expected)
            if difference and not self.excused(case, engine, prepared):
                if engine.name == "fastevm":
                    self.figures.failures.append(f"{case.name}: {difference}")
                    return []
                self.note(case, engine, difference)
                continue
            self.plan(case, engine, prepared, found)
        return found

    def excused(self, case: Case, engine: Engine, prepared: Prepared) -> bool:
        """Returns whether the peer charges less only because it treats prepared slots as warm.

        Such a peer does less work than the case requires. The time of such a peer is kept, although
        this favours the peer.
        """
        expected = case.expected(engine.slow)
        outcome = prepared.outcome
        if not prepared.warm_slots or outcome.gas_used >= expected.gas_used:
            return False
        if (outcome.output, outcome.success) != (expected.output, expected.success):
            return False
        missing = expected.gas_used - outcome.gas_used
        self.note(case, engine, f"prepared slots are warm, {missing} gas less than expected")
        return True

    def note(self, case: Case, engine: Engine, text: str) -> None:
        self.figures.notes.append(f"{case.name} on {engine.name}: {text}")

    def plan(self, case: Case, engine: Engine, prepared: Prepared, entries: list[Entry]) -> None:
        """Decides how often to run the case.

        A first run above the slow limit counts as the only run.
        """
        effort = self.effort
        scale = case.scale(engine.slow)
        if engine.slow and prepared.seconds > effort.slow_limit:
            self.add(case, engine, prepared.seconds * scale)
            return
        once = engine.time(case, 1)
        runs = max(1, int(effort.seconds / max(once, 1e-7)))
        rounds = effort.slow_rounds if engine.slow else effort.rounds
        entries.append(Entry(case, engine, runs, rounds, scale))
