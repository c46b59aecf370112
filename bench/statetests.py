"""Times official state tests on fastevm's runner and on py-evm, with the same cases in one run.

    python -m fastevm.bench.statetests [--files N] [--cases N] [--rounds N] [--limit SECONDS]
        [--seed N]

A seeded sample takes files from the directories of every archive, and some cases over all forks
from each file. For each file py-evm runs the cases in a separate process (`make peers`), then
fastevm runs those that py-evm passes, alternately for several rounds. Both read the file, make the
state, run the transaction and compare the root. Times are medians of thread CPU time. Left out are
files that are slow by design, cases that py-evm gets wrong (it lacks EIP-7610), and cases in which
py-evm exceeds the limit. All of them would favour fastevm. Exit status 1 if fastevm fails a case, 2
without anything to time.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Final

from fastevm.bench.engines.evms import PEER_KINDS, Peer, PeerError
from fastevm.bench.options import SHARED
from fastevm.conformance import state
from fastevm.conformance.runner import Selection, run_file
from fastevm.conformance.sources import SourceError, test_files

MODULE: Final = "on_py_evm_statetests"
AIM: Final = 50  # factor by which fastevm must be faster in total
UNKNOWN: Final = {"Osaka"}  # forks that the installed py-evm does not have
SHOWN: Final = 5  # number of directories with the smallest ratios

Tests = dict[str, Any]  # name -> test, as in a file
Label = tuple[str, str, int]  # test, fork, position in the fork's list


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of each side for some cases.

    ``alone``: seconds of py-evm's transactions and roots, without reading and preparing the state.
    """

    cases: int
    fastevm: float
    py_evm: float
    alone: float

    @property
    def ratio(self) -> float:
        return self.py_evm / max(self.fastevm, 1e-9)


def chosen_files(files: int, seed: int) -> dict[str, set[str]]:
    """Returns the chosen paths by archive.

    Takes equally many paths from every archive, from the archive's directories in rotation.
    """
    manifest = json.loads((SHARED / "fixtures" / "manifest.json").read_text())
    strata: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for file in manifest["files"]:
        if file["format"] == "state_test" and not file.get("slow") and known(file["forks"]):
            directory = file["path"].rpartition("/")[0]
            strata[file["suite"]][directory].append(file["path"])
    choose = random.Random(seed)
    share = -(-files // len(strata))
    return {suite: set(in_turn(list(strata[suite].values()), share, choose)) for suite in strata}


def in_turn(strata: list[list[str]], count: int, choose: random.Random) -> Iterator[str]:
    """Yields ``count`` items from the lists in rotation, in a random order."""
    choose.shuffle(strata)
    for stratum in strata:
        choose.shuffle(stratum)
    return islice((item for row in zip_longest(*strata) for item in row if item), count)


def known(forks: Mapping[str, int]) -> bool:
    """Returns whether py-evm supports any of the forks."""
    return any(fork not in UNKNOWN and fork != "Amsterdam" for fork in forks)


def cases_of(tests: Tests) -> list[Label]:
    """Returns all cases of a file that run under a fork of py-evm."""
    return [
        (title, fork, position)
        for title, test in tests.items()
        for fork, entries in test["post"].items()
        if known({fork: 1})
        for position in range(len(entries))
    ]


def reduced(tests: Tests, labels: Sequence[Label]) -> Tests:
    """Returns the file with only the labelled cases."""
    kept: Tests = {}
    for title, fork, position in labels:
        test = kept.setdefault(title, tests[title] | {"post": {}})
        test["post"].setdefault(fork, []).append(tests[title]["post"][fork][position])
    return kept


def time_fastevm(name: str, content: bytes) -> tuple[float, str]:
    """Returns the seconds of fastevm's runner on a file, and the first failure or an empty text."""
    started = time.thread_time()
    tally = run_file(state.cases, Selection(), name, content)
    seconds = time.thread_time() - started
    return seconds, f"{name}: {tally.failures[0]}" if tally.failures else ""


class Comparison:
    """One run: timings by directory, omitted tests with reasons, and failures of fastevm."""

    def __init__(self, peer: Peer, limit: float, rounds: int) -> None:
        self.peer = peer
        self.limit = limit
        self.rounds = rounds
        self.by_directory: dict[str, list[Timing]] = defaultdict(list)
        self.left_out: Counter[str] = Counter()
        self.failures: list[str] = []

    def add(self, suite: str, name: str, tests: Tests) -> None:
        """Times a file on both sides alternately and keeps the median round."""
        timings = []
        for _ in range(self.rounds):
            tests, reading, making, running = self.ask(tests)
            if not tests:
                return
            ours, fault = time_fastevm(name, json.dumps(tests).encode())
            if fault:
                self.failures.append(fault)
                return
            cases = len(cases_of(tests))
            timings.append(Timing(cases, ours, reading + making + running, running))
        directory = f"{suite}/{name.rpartition('/')[0].rpartition('/')[2]}"
        self.by_directory[directory].append(median(timings))

    def ask(self, tests: Tests) -> tuple[Tests, float, float, float]:
        """Runs a file on py-evm. Returns the passed cases, and the seconds by phase."""
        labels = cases_of(tests)
        answer = self.peer.ask(do="run", content=json.dumps(tests), cases=labels, limit=self.limit)
        passed, making, running = [], 0.0, 0.0
        for label, (why, before, after) in zip(labels, answer["cases"], strict=True):
            if why:
                self.left_out[why] += 1
            else:
                passed.append(label)
                making, running = making + before, running + after
        return reduced(tests, passed), answer["reading"], making, running

    def total(self) -> Timing:
        """Returns the sum of all timings."""
        return added([timing for timings in self.by_directory.values() for timing in timings])

    def table(self) -> str:
        """Formats the figures as text."""
        total = self.total()
        ratios = {directory: added(found).ratio for directory, found in self.by_directory.items()}
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        low = sorted(ratios, key=ratios.__getitem__)[:SHOWN]
        left = ", ".join(f"{count} {why}" for why, count in self.left_out.most_common())
        return "\n".join(
            (
                f"{total.cases} cases of {len(ratios)} directories, left out: {left or 0}",
                f"fastevm {total.fastevm:.3f} s, py-evm {self.peer.version} {total.py_evm:.2f} s "
                f"({total.alone:.2f} s without reading and making states)",
                f"fastevm is {total.ratio:.0f} times as fast in total (aim: {AIM}), "
                f"{total.alone / total.fastevm:.0f} times without py-evm's reading and making, "
                f"{mean:.0f} times in the geometric mean of directories",
                "lowest: " + ", ".join(f"{directory} {ratios[directory]:.0f}" for directory in low),
            )
        )


def median(timings: Sequence[Timing]) -> Timing:
    """Returns the median of the rounds for each side."""
    return Timing(
        timings[-1].cases,
        statistics.median(t.fastevm for t in timings),
        statistics.median(t.py_evm for t in timings),
        statistics.median(t.alone for t in timings),
    )


def added(timings: Sequence[Timing]) -> Timing:
    """Returns the sum of timings."""
    return Timing(
        sum(t.cases for t in timings),
        sum(t.fastevm for t in timings),
        sum(t.py_evm for t in timings),
        sum(t.alone for t in timings),
    )


def compare(arguments: argparse.Namespace, peer: Peer) -> Comparison:
    """Times the sample and prints progress."""
    choose, done = random.Random(arguments.seed), 0
    comparison = Comparison(peer, arguments.limit, arguments.rounds)
    for suite, paths in sorted(chosen_files(arguments.files, arguments.seed).items()):
        for name, content in test_files([SHARED / "fixtures" / f"{suite}.tar.zst"]):
            if name in paths:
                tests = json.loads(content)
                labels = cases_of(tests)
                taken = choose.sample(labels, min(arguments.cases, len(labels)))
                comparison.add(suite, name, reduced(tests, taken))
                done += 1
                if done % 20 == 0:
                    print(f"{done} files", file=sys.stderr, flush=True)
    return comparison


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.statetests")
    parser.add_argument("--files", type=int, default=250, help="files to take (%(default)s)")
    parser.add_argument("--cases", type=int, default=6, help="of each file at most (%(default)s)")
    parser.add_argument(
        "--limit", type=float, default=5.0, help="seconds that py-evm may take for a case"
    )
    parser.add_argument("--rounds", type=int, default=3, help="median of so many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write timings by directory here")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Compares, and prints the figures."""
    arguments = options(argv)
    kind = next(kind for kind in PEER_KINDS if kind.name == "py-evm")
    python = kind.python()
    try:
        if python is None:
            raise PeerError(f"no environment .venv-{kind.name}: `make peers` builds it")
        peer = Peer(kind.name, MODULE, python, kind.slow)
        try:
            comparison = compare(arguments, peer)
        finally:
            peer.close()
    except (PeerError, SourceError, OSError) as error:
        print(f"bench.statetests: {error}", file=sys.stderr)
        return 2
    if not comparison.by_directory:
        print("bench.statetests: py-evm passed no case", file=sys.stderr)
        return 2
    print(comparison.table())
    for failure in comparison.failures:
        print(f"bench.statetests: {failure}", file=sys.stderr)
    if arguments.json:
        rows = {directory: asdict(added(t)) for directory, t in comparison.by_directory.items()}
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return int(bool(comparison.failures))


if __name__ == "__main__":
    sys.exit(main())
