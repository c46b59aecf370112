"""Runs cases on peers, in the form that each peer supports, and reports differences."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .cases import ALL_FORKS, FORKS, Case, Fields
from .compare import difference
from .machine import Outcome, as_free_message, run, with_signatures, without_refused
from .peers import COMPILED, Peer

# The forks that each peer supports.
KNOWN = {
    "eels": tuple(fork for fork in FORKS if fork != "Constantinople"),
    "py-evm": FORKS[: FORKS.index("Osaka")],
    "pyrevm": ("Cancun",),
    "geth": ALL_FORKS,
    # revm has no rules of its own for Constantinople: it uses those of Petersburg.
    "revm": tuple(fork for fork in ALL_FORKS if fork != "Constantinople"),
}
DELEGATION_DIGITS = len("0xef0100") + 2 * 20
UNPAID_CODE = "contract creation code storage out of gas"


@dataclass
class Verdict:
    """The result of a comparison. ``difference``: a description, or None."""

    case: Case
    difference: str | None
    unsupported: bool = False


def question(peer: str, case: Case) -> tuple[Case, Outcome] | None:
    """Returns the case in a form that the peer can run, with fastevm's outcome of that form.

    Returns None if the peer cannot run the case.
    """
    if case.fork not in KNOWN[peer]:
        return None
    if peer in COMPILED:
        return (case, run(case)) if takes(peer, case) else None
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
    """Returns whether the case has empty accounts after the merge, which EIP-7523 rules out.

    The executable specification no longer deletes touched empty accounts (EIP-161).
    """
    return FORKS.index(case.fork) >= FORKS.index("Paris") and any(
        not account["balance"] and not account["nonce"] and account["code"] == "0x"
        for account in case.pre.values()
    )


def is_bare_storage(account: Fields) -> bool:
    """Returns whether an account has storage but no code and nonce (EIP-7610)."""
    return bool(account["storage"]) and account["code"] == "0x" and account["nonce"] == 0


def judge(peer: Peer, case: Case) -> Verdict:
    """Compares one case."""
    (verdict,) = judge_all(peer, [case])
    return verdict


def judge_all(peer: Peer, cases: Iterable[Case]) -> Iterator[Verdict]:
    """Compares many cases with one peer. The peer runs while the next cases are made.

    Yields the cases that the peer cannot run last.
    """
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
            yield Verdict(case, difference(ours, in_our_terms(case, theirs)))
    for case in skipped:
        yield Verdict(case, None, unsupported=True)


def takes(peer: str, case: Case) -> bool:
    """Returns whether geth or revm can run the case.

    Both lack EIP-7610, which concerns no real chain. revm panics when it loads code that begins
    like a delegation (0xef01) but is none. No chain has such code.
    """
    return (
        case.fork in KNOWN[peer]
        and not any(map(is_bare_storage, case.pre.values()))
        and not (peer == "revm" and any(map(is_broken_delegation, case.pre.values())))
    )


def is_broken_delegation(account: Fields) -> bool:
    """Returns whether the code begins with 0xef01 but is no delegation of EIP-7702."""
    code: str = account["code"]
    whole = code.startswith("0xef0100") and len(code) == DELEGATION_DIGITS
    return code.startswith("0xef01") and not whole


def judge_together(
    peers: Sequence[Peer], cases: Iterable[Case], ahead: int = 8
) -> Iterator[tuple[str, Verdict]]:
    """Compares each case with several peers that run the case unchanged.

    fastevm runs each case once. The peers run a case while the next cases are made. Yields a peer's
    name and its verdict, in the order of the cases. ``ahead``: how many cases may wait for the
    peers.
    """
    waiting: deque[tuple[Case, Outcome, list[Peer]]] = deque()
    for case in cases:
        asked = [peer for peer in peers if takes(peer.name, case)]
        text = case.dumps()
        for peer in asked:
            peer.send(text)
        for peer in peers:
            if peer not in asked:
                yield peer.name, Verdict(case, None, unsupported=True)
        waiting.append((case, run(case), asked))
        if len(waiting) > ahead:
            yield from answers_of(*waiting.popleft())
    while waiting:
        yield from answers_of(*waiting.popleft())


def answers_of(case: Case, ours: Outcome, peers: list[Peer]) -> Iterator[tuple[str, Verdict]]:
    """Reads the outcomes of the peers that run the case. Yields the verdicts."""
    for peer in peers:
        theirs = peer.read()
        unsupported = "unsupported" in theirs
        found = None if unsupported else difference(ours, in_our_terms(case, theirs))
        yield peer.name, Verdict(case, found, unsupported=unsupported)


def in_our_terms(case: Case, theirs: Outcome) -> Outcome:
    """Returns a peer's outcome with each failure reported as in receipts.

    In Frontier, a creation that cannot pay for its code succeeds and leaves no code. geth reports
    it as a failure.
    """
    if case.fork == "Frontier":
        for done in theirs.get("transactions", ()):
            if done["status"] == "halt" and done["reason"] == UNPAID_CODE:
                done["status"] = "success"
                done.pop("output", None)
    return theirs
