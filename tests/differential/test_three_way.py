"""Tests that random programs have equal results on fastevm, geth and revm, Frontier to Amsterdam.

Compares status, gas used, output and logs of each transaction, and the final state root. For more
programs run `python -m tests.differential.fuzz --peers geth+revm --programs 1000000`.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from fastevm.core.primitives.replace import replace

from .cases import ALL_FORKS, make_case
from .judge import KNOWN, judge_together
from .peers import COMPILED, Peer, PeerError

FIRST_SEED = 2_000_000
CASES = 60  # cases per fork


@pytest.fixture(scope="module")
def peers() -> Iterator[list[Peer]]:
    """Starts geth and revm. Skips the tests if they are not built."""
    with ExitStack() as stack:
        try:
            yield [stack.enter_context(Peer(name)) for name in COMPILED]
        except PeerError as reason:
            pytest.skip(str(reason))


@pytest.mark.parametrize("fork", ALL_FORKS)
def test_programs_do_the_same_on_three_engines(peers: list[Peer], fork: str) -> None:
    cases = (make_case(FIRST_SEED + number, fork) for number in range(CASES))
    compared: Counter[str] = Counter()
    differing = []
    # Reads all verdicts before any assertion: the next test would read unread answers.
    for name, verdict in judge_together(peers, cases):
        compared[name] += not verdict.unsupported
        if verdict.difference:
            differing.append(f"{name}: {verdict.difference}\n{verdict.case.dumps()}")
    assert not differing, "\n\n".join(differing)
    assert all(compared[name] > CASES // 2 for name in COMPILED if fork in KNOWN[name])


def test_another_outcome_is_a_difference_on_both(peers: list[Peer]) -> None:
    """The peers get a case with another balance. The comparison must report the different root."""
    case = make_case(FIRST_SEED, "Cancun")
    ours = list(judge_together(peers, [case]))
    assert not any(verdict.difference for _, verdict in ours)
    other = {**case.pre, "0x" + "77" * 20: {"balance": 1, "nonce": 0, "code": "0x", "storage": {}}}
    richer = replace(case, pre=other)
    for peer in peers:
        (before,), (after,) = (list(peer.run_all([each.dumps()])) for each in (case, richer))
        assert before["root"] != after["root"]
