"""Compares fastevm with its peers on fresh random programs for a given time.

    python -m tests.differential.fuzz --seconds 600 [--seed N] [--peers eels,py-evm,pyrevm,self]

Prints what was compared, and for each difference the seed and the smallest case that shows it,
which is also written to tests/differential/corpus/ and so replayed by every later test run. The
peer "self" is fastevm under other circumstances: suspended, traced, in slices (tests/metamorphic).
Ends with status 1 when there was a difference.
"""

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from tests.metamorphic.relations import broken_relation

from .cases import FORKS, Case, make_case
from .judge import KNOWN, Verdict, judge, judge_all
from .minimise import minimise
from .peers import Peer

CORPUS = Path(__file__).parent / "corpus"
# Cases per turn: each peer gets about a second.
TURNS = {"eels": 60, "py-evm": 25, "pyrevm": 500, "self": 50}
SELF = "self"


class Campaign:
    """One run of the fuzzer."""

    def __init__(self, seed: int, names: list[str], stack: ExitStack) -> None:
        self.seeds = iter(range(seed, seed + (1 << 40)))
        self.peers = {name: stack.enter_context(Peer(name)) for name in names if name != SELF}
        self.names = names
        self.programs: Counter[str] = Counter()
        self.unsupported: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.found: list[Path] = []

    def run(self, until: float) -> None:
        """Give the peers turns until the time is over."""
        while time.monotonic() < until:
            for name in self.names:
                self.turn(name)

    def turn(self, name: str) -> None:
        """A batch of cases for one peer. Reports come last: they ask the peer again."""
        started = time.monotonic()
        differing = []
        for seed, verdict in self.verdicts(name, list(islice(self.seeds, TURNS[name]))):
            self.programs[name] += verdict.case.programs
            self.unsupported[name] += verdict.unsupported
            if verdict.difference:
                differing.append((seed, verdict))
        self.seconds[name] += time.monotonic() - started
        for seed, verdict in differing:
            self.report(name, seed, verdict)

    def verdicts(self, name: str, seeds: list[int]) -> Iterator[tuple[int, Verdict]]:
        forks = KNOWN.get(name, FORKS)
        cases = {seed: make_case(seed, forks[seed % len(forks)]) for seed in seeds}
        if name == SELF:
            for seed, case in cases.items():
                yield seed, Verdict(case, broken_relation(case))
            return
        seed_of = {id(case): seed for seed, case in cases.items()}
        for verdict in judge_all(self.peers[name], cases.values()):
            yield seed_of[id(verdict.case)], verdict

    def report(self, name: str, seed: int, verdict: Verdict) -> None:
        """Say it, make it small, and keep it."""
        print(f"\n{name} differs on seed {seed}, {verdict.case.fork}: {verdict.difference}")
        small = minimise(verdict.case, self.shows(name, verdict))
        small_verdict = self.again(name, small)
        text = small.dumps(indent=1)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        path = CORPUS / f"{name}-{small.fork.lower()}-{digest}.json"
        CORPUS.mkdir(exist_ok=True)
        about = f"seed {seed}: {small_verdict.difference}"
        content = {"peer": name, "about": about, **asdict(small)}
        path.write_text(json.dumps(content, indent=1) + "\n")
        self.found.append(path)
        print(f"smallest case ({small_verdict.difference}) in {path}:\n{text}")

    def again(self, name: str, case: Case) -> Verdict:
        if name == SELF:
            return Verdict(case, broken_relation(case))
        return judge(self.peers[name], case)

    def shows(self, name: str, verdict: Verdict) -> Callable[[Case], bool]:
        """Whether a smaller case shows a difference of the same kind."""
        kind = kind_of(verdict.difference)

        def predicate(case: Case) -> bool:
            try:
                return kind_of(self.again(name, case).difference) == kind
            except (ArithmeticError, LookupError, TypeError, ValueError):
                return False

        return predicate

    def summary(self) -> str:
        lines = []
        for name in self.names:
            title = self.peers[name].title if name in self.peers else "itself"
            rate = self.programs[name] / max(self.seconds[name], 0.001)
            lines.append(
                f"{title}: {self.programs[name]} programs, {rate:.0f} per second, "
                f"{self.unsupported[name]} cases not comparable"
            )
        lines.append(f"{len(self.found)} differences")
        return "\n".join(lines)


def kind_of(difference: str | None) -> str:
    """The words of a difference before its values."""
    return "" if difference is None else difference.partition(" is ")[0].partition(" of ")[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="first seed (default: a fresh one)")
    parser.add_argument("--peers", default=",".join((*KNOWN, SELF)))
    options = parser.parse_args()
    seed = random.SystemRandom().getrandbits(48) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with ExitStack() as stack:
        campaign = Campaign(seed, options.peers.split(","), stack)
        campaign.run(time.monotonic() + options.seconds)
        print(campaign.summary())
    return 1 if campaign.found else 0


if __name__ == "__main__":
    sys.exit(main())
