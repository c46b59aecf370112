"""Asks peers about cases, each in the form that it understands, and reports where they differ."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .cases import FORKS, Case, Fields
from .compare import difference
from .machine import Outcome, as_free_message, run, with_signatures, without_refused
from .peers import Peer

# The forks each peer knows.
KNOWN = {
    "eels": tuple(fork for fork in FORKS if fork != "Constantinople"),
    "py-evm": FORKS[: FORKS.index("Osaka")],
    "pyrevm": ("Cancun",),
}


@dataclass
class Verdict:
    """What comparing one case gave: a difference in words, or None."""

    case: Case
    difference: str | None
    unsupported: bool = False


def question(peer: str, case: Case) -> tuple[Case, Outcome] | None:
    """The case as the peer can run it, and what fastevm says of it; None if it cannot."""
    if case.fork not in KNOWN[peer]:
        return None
    if peer == "eels":
        return None if has_impossible_accounts(case) else (case, run(case))
    if peer == "py-evm":
        if any(map(is_bare_storage, case.pre.values())):
            return None
        accepted, outcome = without_refused(case, run(case))
        return with_signatures(accepted), outcome
    message = as_free_message(case)
    if message is None:
        return None
    outcome = run(message)
    return None if outcome["transactions"][0]["status"] == "rejected" else (message, outcome)


def has_impossible_accounts(case: Case) -> bool:
    """Empty accounts after the merge, where there are none (EIP-7523).

    The executable specification no longer deletes them when they are touched (EIP-161).
    """
    return FORKS.index(case.fork) >= FORKS.index("Paris") and any(
        not account["balance"] and not account["nonce"] and account["code"] == "0x"
        for account in case.pre.values()
    )


def is_bare_storage(account: Fields) -> bool:
    """Storage without code and nonce, where py-evm creates a contract against EIP-7610."""
    return bool(account["storage"]) and account["code"] == "0x" and account["nonce"] == 0


def judge(peer: Peer, case: Case) -> Verdict:
    """Compare one case."""
    (verdict,) = judge_all(peer, [case])
    return verdict


def judge_all(peer: Peer, cases: Iterable[Case]) -> Iterator[Verdict]:
    """Compare many cases; the peer works while the next ones are made."""
    asked: list[tuple[Case, Outcome]] = []
    skipped: list[Case] = []

    def questions() -> Iterator[str]:
        for case in cases:
            found = question(peer.name, case)
            if found is None:
                skipped.append(case)
                continue
            asked.append((case, found[1]))
            yield found[0].dumps()

    for theirs in peer.run_all(questions()):
        case, ours = asked.pop(0)
        if "unsupported" in theirs:
            yield Verdict(case, None, unsupported=True)
        else:
            yield Verdict(case, difference(ours, theirs))
    for case in skipped:
        yield Verdict(case, None, unsupported=True)
