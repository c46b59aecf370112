"""Compares random Amsterdam blocks on fastevm with a second implementation of the rules.

    python -m tests.differential.amsterdam [--programs N] [--seed S] [--rules S|F]

``--rules S`` selects the rules of April 2026, ``--rules F`` the frozen rules that networks run.
Without ``--rules``, both rule sets run. The command prints each difference with its seed, the
smallest case for the first difference of each kind, and how often each rule was reached. Exit
status 1 if there was a difference.
"""

import argparse
import sys
from itertools import count

from tests.differential.cases import Case
from tests.differential.minimise import minimise
from tests.differential.peers import Peer

from .blocks import run
from .generator import RULE_SETS
from .judge import Tally, block_difference, differences

AT_ONCE = 50
MOST_SHOWN = 25


def kind_of(found: str | None) -> str:
    """Returns the part of a difference before its values. It names the difference's kind."""
    return "" if found is None else found.partition(" is ")[0].partition(" of ")[0]


def smallest(peer: Peer, case: Case, found: str) -> tuple[Case, str]:
    """Returns a smaller case with a difference of the same kind."""

    def ask(candidate: Case) -> str | None:
        return block_difference(run(candidate), peer.run(candidate.dumps()))

    def shows(candidate: Case) -> bool:
        try:
            return kind_of(ask(candidate)) == kind_of(found)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
            return False

    small = minimise(case, shows)
    return small, ask(small) or found


def compare(peer: Peer, rules: str, seed: int, programs: int) -> int:
    """Compares programs under a rule set. Returns how many cases differ."""
    tally, found = Tally(), []
    for first in count(seed, AT_ONCE):
        seeds = range(first, first + AT_ONCE)
        found += list(differences(peer, seeds, RULE_SETS[rules], tally))
        if tally.programs >= programs or len(found) >= MOST_SHOWN:
            break
    shown: set[str] = set()
    for place, case, words in found:
        if kind_of(words) in shown:
            print(f"{rules}, seed {place}: {words[:2000]}")
            continue
        shown.add(kind_of(words))
        small, small_words = smallest(peer, case, words)
        print(f"\n{rules}, seed {place}: {words[:2000]}\nsmallest: {small_words[:2000]}")
        print(small.dumps())
    print(f"{rules}: {tally}; {len(found)} differences", flush=True)
    print(tally.reach(rules), flush=True)
    return len(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--programs", type=int, default=5_000, help="per rule set")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--rules", choices=sorted(RULE_SETS), default=None)
    options = parser.parse_args()
    with Peer("amsterdam") as peer:
        found = [
            compare(peer, rules, options.seed, options.programs)
            for rules in ([options.rules] if options.rules else sorted(RULE_SETS))
        ]
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
