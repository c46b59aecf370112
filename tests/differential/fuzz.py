"""Compares fastevm with its peers on new random programs for a given time.

    python -m tests.differential.fuzz --seconds 600 [--seed N] [--peers eels,pyrevm,geth+revm,self]

The command prints what was compared, and the seed and smallest case of each difference. It also
writes that case to tests/differential/corpus/, which later test runs replay. The peer "self" is
fastevm in other modes: suspended, traced, in slices (tests/metamorphic). Peers joined with + run
the same cases. A default peer that is not installed is skipped with a message. Exit status 1 if
there was a difference.
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

from .cases import ALL_FORKS, FORKS, Case, make_case
from .judge import KNOWN, Verdict, judge, judge_all, judge_together
from .minimise import minimise
from .peers import Peer, PeerError, command_of

CORPUS = Path(__file__).parent / "corpus"
# cases per turn, chosen so that a turn of each peer takes about a second
TURNS = {"eels": 60, "py-evm": 25, "pyrevm": 500, "geth+revm": 500, "self": 50}
SELF = "self"
DEFAULT = ("eels", "py-evm", "pyrevm", "geth+revm", SELF)
TOGETHER = "+"


class Campaign:
    """One run of the fuzzer."""

    def __init__(self, seed: int, names: list[str], stack: ExitStack) -> None:
        self.seeds = iter(range(seed, seed + (1 << 40)))
        self.names = names
        single = [name for group in names for name in group.split(TOGETHER) if name != SELF]
        self.peers = {name: stack.enter_context(Peer(name)) for name in single}
        self.forks: Counter[str] = Counter()
        self.programs: Counter[str] = Counter()
        self.unsupported: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.found: list[Path] = []

    def run(self, until: float, programs: int | None = None) -> None:
        """Runs the peers in rotation until a time, or until each has compared ``programs``."""
        while time.monotonic() < until:
            for name in self.names:
                self.turn(name)
            if programs is not None and min(self.programs[name] for name in self.names) >= programs:
                break

    def turn(self, name: str) -> None:
        """Runs a batch of cases on one peer, or on several peers joined with +.

        Reports the differences after the batch, because minimising a case runs the peer again.
        """
        started = time.monotonic()
        differing = []
        seeds = list(islice(self.seeds, TURNS.get(name, TURNS["eels"])))
        seen: set[int] = set()
        for seed, peer, verdict in self.verdicts(name, seeds):
            if seed not in seen:
                seen.add(seed)
                self.programs[name] += verdict.case.programs
                self.forks[verdict.case.fork] += verdict.case.programs
            self.unsupported[peer] += verdict.unsupported
            if verdict.difference:
                differing.append((seed, peer, verdict))
        self.seconds[name] += time.monotonic() - started
        for seed, peer, verdict in differing:
            self.report(peer, seed, verdict)

    def verdicts(self, name: str, seeds: list[int]) -> Iterator[tuple[int, str, Verdict]]:
        """Yields seed, peer and verdict for each case and each peer of a turn."""
        group = name.split(TOGETHER)
        if len(group) > 1:
            seed_of: dict[int, int] = {}
            forks = [fork for fork in ALL_FORKS if any(fork in KNOWN[each] for each in group)]

            def made() -> Iterator[Case]:
                for seed in seeds:
                    case = make_case(seed, forks[seed % len(forks)])
                    seed_of[id(case)] = seed
                    kept.append(case)
                    yield case

            kept: list[Case] = []  # keeps all cases alive, because `seed_of` uses their ids as keys
            for peer, verdict in judge_together([self.peers[each] for each in group], made()):
                yield seed_of[id(verdict.case)], peer, verdict
            return
        for seed, verdict in self.verdicts_of_one(name, seeds):
            yield seed, name, verdict

    def verdicts_of_one(self, name: str, seeds: list[int]) -> Iterator[tuple[int, Verdict]]:
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
        """Prints the difference, minimises the case and writes it to the corpus."""
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
        """Returns a predicate: whether a case shows the same kind of difference."""
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
            group = name.split(TOGETHER)
            title = " and ".join(
                self.peers[each].title if each in self.peers else "itself" for each in group
            )
            rate = self.programs[name] / max(self.seconds[name], 0.001)
            unsupported = ", ".join(str(self.unsupported[each]) for each in group)
            lines.append(
                f"{title}: {self.programs[name]} programs, {rate:.0f} per second, "
                f"{unsupported} cases not comparable"
            )
        shares = (f"{fork} {self.forks[fork]}" for fork in ALL_FORKS if self.forks[fork])
        lines.append("programs by fork: " + ", ".join(shares))
        lines.append(f"{len(self.found)} differences")
        return "\n".join(lines)


def kind_of(difference: str | None) -> str:
    """Returns a difference without its values and cut off, so that equal kinds are equal."""
    return "" if difference is None else difference.partition(" is ")[0].partition(" of ")[0]


def installed() -> list[str]:
    """Returns the installed default peers. Prints a line for each missing peer."""
    names = []
    for group in DEFAULT:
        found = []
        for name in group.split(TOGETHER):
            try:
                if name != SELF:
                    command_of(name)
                found.append(name)
            except PeerError as reason:
                print(f"skipped: {reason}")
        names.append(TOGETHER.join(found))
    return [name for name in names if name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="first seed (default: a fresh one)")
    parser.add_argument("--programs", type=int, default=None, help="stop after so many per peer")
    parser.add_argument("--peers", default=None, help=f"default: {','.join(DEFAULT)}")
    options = parser.parse_args()
    names = installed() if options.peers is None else options.peers.split(",")
    seed = random.SystemRandom().getrandbits(48) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with ExitStack() as stack:
        campaign = Campaign(seed, names, stack)
        campaign.run(time.monotonic() + options.seconds, options.programs)
        print(campaign.summary())
    return 1 if campaign.found else 0


if __name__ == "__main__":
    sys.exit(main())
