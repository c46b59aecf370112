"""Tests that programs reach every opcode, differences are found, and cases are minimised."""

import copy
import json
import sys
import time
from collections import Counter
from typing import Any

import pytest

from fastevm.bench.programs.assembler import Assembly
from fastevm.core.interpreter.tracer import StepTrace
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import InvalidTransaction
from fastevm.testing.execution import TransactionRunner
from tests.max_wait import MAX_WAIT

from .cases import FORKS, Case, make_case
from .compare import difference
from .judge import question, takes
from .machine import block_of, run, state_of, transaction_of
from .minimise import minimise
from .peers import Peer, PeerError

SEEDS = range(400)
# A worker that repeats its input and writes even more to stderr.
ECHO = """
import sys
print('{"peer": "echo"}', flush=True)
for line in sys.stdin:
    sys.stderr.write(line)
    print(line, end="", flush=True)
"""
LONG = 1_000_000  # bytes of a case: more than a pipe holds (65,536)


def executed(case: Case) -> Counter[str]:
    """Returns how often each opcode was executed."""
    trace = StepTrace(stack_words=0)
    schedule = schedule_for(case.fork)
    runner = TransactionRunner(
        state_of(case.pre), schedule, block=block_of(case, schedule), trace=trace, stepped=True
    )
    for fields in case.transactions:
        try:
            runner.run(transaction_of(fields))
        except InvalidTransaction:
            continue
    records = runner.records + trace.drain()
    return Counter(record["name"] for record in records if not record["error"])


@pytest.mark.parametrize("fork", ["Frontier", "Byzantium", "Osaka"])
def test_programs_reach_every_opcode(fork: str) -> None:
    reached: Counter[str] = Counter()
    for seed in SEEDS:
        reached += executed(make_case(seed, fork))
    missing = set(schedule_for(fork).opcodes) - set(reached) - {"INVALID"}
    assert not {name for name in missing if not name.startswith(("PUSH", "DUP", "SWAP"))}


@pytest.mark.parametrize("fork", FORKS)
def test_most_transactions_succeed_and_some_end_in_every_other_way(fork: str) -> None:
    statuses: Counter[str] = Counter()
    for seed in range(150):
        for done in run(make_case(seed, fork))["transactions"]:
            statuses[done["status"]] += 1
    assert statuses["success"] > statuses.total() // 2
    assert statuses["halt"] and statuses["rejected"]


def test_a_seed_always_makes_the_same_case() -> None:
    assert make_case(5, "Osaka") == make_case(5, "Osaka")
    assert make_case(5, "Osaka") != make_case(6, "Osaka")


def test_a_case_survives_its_text() -> None:
    case = make_case(5, "Prague")
    assert Case.loads(case.dumps()) == case


def changed(outcome: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    copied = copy.deepcopy(outcome)
    inner = copied
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    return copied


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("transactions", 0, "status"), "halt"),
        (("transactions", 0, "gas_used"), 1),
        (("transactions", 0, "output"), "0x77"),
        (("transactions", 0, "logs"), [["0x00", [], "0x"]]),
        (("root",), "0x00"),
        (("state", "0x77"), [1, 0, "0x", {}]),
    ],
)
def test_every_aspect_is_compared(path: tuple[Any, ...], to: Any) -> None:
    outcome = json.loads(json.dumps(run(make_case(5, "Osaka"))))
    assert difference(outcome, outcome) is None
    assert difference(outcome, changed(outcome, *path, to=to))


def test_parts_of_accounts_are_compared() -> None:
    outcome = run(make_case(5, "Osaka"))
    address, (nonce, balance, _, _) = next(iter(outcome["state"].items()))
    theirs = {"transactions": outcome["transactions"]}
    assert difference(outcome, {**theirs, "accounts": {address: {"nonce": nonce}}}) is None
    assert difference(outcome, {**theirs, "accounts": {address: {"balance": balance + 1}}})
    assert difference(outcome, {**theirs, "accounts": {address: {"storage": {"0x99": 1}}}})


@pytest.mark.parametrize(("fork", "comparable"), [("London", True), ("Paris", False)])
def test_empty_accounts_after_the_merge_are_nothing_to_compare(fork: str, comparable: bool) -> None:
    case = make_case(5, fork)
    empty = {"balance": 0, "nonce": 0, "code": "0x", "storage": {}}
    assert (
        question("eels", replace(case, pre=case.pre | {"0x" + "77" * 20: empty})) is not None
    ) == (comparable)


def test_a_case_becomes_as_small_as_what_it_shows() -> None:
    code = Assembly()
    for value in range(40):
        code.push(value)
        code.push(value)
        code.op("SSTORE")
    case = make_case(5, "Osaka")
    address = next(a for a, account in case.pre.items() if account["code"] != "0x")
    fields = {
        "sender": next(iter(case.pre)),
        "to": address,
        "data": "0x0102",
        "gas_limit": 2 * 10**6,
    }
    fields |= {"nonce": 0, "value": 0, "type": 0, "gas_price": 0}
    pre = {**case.pre, address: {**case.pre[address], "code": "0x" + code.assemble().hex()}}
    case = replace(case, pre=pre, block={**case.block, "base_fee": 0}, transactions=[fields] * 2)

    def shows(case: Case) -> bool:
        account = run(case)["state"].get(address)
        return account is not None and account[3].get("0x7") == 7

    case.pre[fields["sender"]] = {"balance": 1, "nonce": 0, "code": "0x", "storage": {}}
    small = minimise(case, shows)
    assert shows(small)
    assert len(small.transactions) == 1
    assert list(small.pre) == [address]
    assert small.pre[address]["code"] == "0x6007600755"


def test_long_cases_and_answers_do_not_stop_each_other() -> None:
    cases = [json.dumps({"number": number, "text": "x" * LONG}) for number in range(20)]
    with Peer("echo", [sys.executable, "-c", ECHO]) as peer:
        answers = list(peer.run_all(cases))
    assert [answer["number"] for answer in answers] == list(range(20))


def test_a_peer_that_ends_is_reported_with_its_words() -> None:
    started = time.monotonic()
    dying = "print('{\"peer\": 1}'); import sys; sys.exit('no more')"
    with (
        Peer("dying", [sys.executable, "-c", dying]) as peer,
        pytest.raises(PeerError, match="dying ended: no more"),
    ):
        peer.run("x" * LONG)
    assert time.monotonic() - started < MAX_WAIT


@pytest.mark.parametrize(
    ("code", "taken"),
    [("0xef0100" + "11" * 20, True), ("0xef01", False), ("0xef0101" + "11" * 20, False)],
)
def test_revm_is_not_asked_about_broken_delegations(code: str, taken: bool) -> None:
    case = make_case(5, "Osaka")
    account = {"balance": 0, "nonce": 1, "code": code, "storage": {}}
    case = replace(case, pre={"0x" + "77" * 20: account})
    assert (takes("revm", case), takes("geth", case)) == (taken, True)
