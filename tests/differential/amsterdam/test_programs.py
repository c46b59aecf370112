"""Tests that random Amsterdam blocks have equal results on fastevm and on a second implementation.

Compares status, gas paid, refund, output and logs of each transaction, the block's gas after each
transaction, requests, the access list, every account and the state root. For more programs run
``python -m tests.differential.amsterdam``.
"""

from collections.abc import Callable
from typing import Any

import pytest

from fastevm.core.primitives.hex import hex_bytes
from tests.differential.cases import ETHER, PEOPLE, Case
from tests.differential.peers import Peer

from .generator import RULE_SETS, SYSTEM_CONTRACTS
from .judge import Tally, differences

FIRST_SEED = 1_000_000
BLOCKS = 150
# More than 70 of about 100 rules must be reached. 10,000 blocks reach all rules that can be
# reached.
MOST_RULES_OF_ALL = 70
CONTRACT = hex_bytes(b"\xc0" * 20)
SENDER = hex_bytes(PEOPLE[0])
CALLEE = "ca" * 20
BLOCK = {
    "chain_id": 1, "number": 1, "timestamp": 1000, "gas_limit": 120_000_000,
    "coinbase": hex_bytes(b"\xcb" * 20), "difficulty": 0, "prev_randao": 0, "base_fee": 7,
    "excess_blob_gas": 0, "slot_number": 0, "withdrawals": [],
}  # fmt: skip


@pytest.mark.parametrize("rules", RULE_SETS)
def test_blocks_do_the_same(peer: Callable[[str], Peer], rules: str) -> None:
    tally = Tally()
    seeds = range(FIRST_SEED, FIRST_SEED + BLOCKS)
    found = [
        f"seed {seed}: {words}\n{case.dumps()}"
        for seed, case, words in differences(peer("amsterdam"), seeds, RULE_SETS[rules], tally)
    ]
    assert not found, "\n\n".join(found)
    assert tally.programs > 1_000
    assert tally.unsupported < BLOCKS // 10
    assert tally.transactions["success"] > BLOCKS // 2
    assert sum(map(bool, tally.reached.values())) > MOST_RULES_OF_ALL


def case_of(rules: str, code: str, to: str | None = CONTRACT, **fields: Any) -> Case:
    """Returns a block that calls a contract with ``code``. CALLEE writes slots, then reverts."""
    callee = "6001600055600060005560006000fd"
    pre = {
        SENDER: {"balance": ETHER, "nonce": 0, "code": "0x", "storage": {}},
        CONTRACT: {"balance": 0, "nonce": 1, "code": "0x" + code, "storage": {}},
        "0x" + CALLEE: {"balance": 0, "nonce": 1, "code": "0x" + callee, "storage": {}},
    }
    for address, system_code in SYSTEM_CONTRACTS:
        account = {"balance": 0, "nonce": 1, "code": hex_bytes(system_code), "storage": {}}
        pre[hex_bytes(address)] = account
    transaction = {
        "sender": SENDER, "to": to, "data": "0x", "nonce": 0, "value": 0, "type": 0,
        "gas_limit": 1_000_000, "gas_price": 10, **fields,
    }  # fmt: skip
    return Case(RULE_SETS[rules], BLOCK, pre, [transaction])


@pytest.mark.parametrize(
    ("rules", "code", "fields", "gas"),
    [
        ("S", "6001600055", {}, (63_574, 26_006, 37_568)),
        ("S", "60016000556000600055", {}, (23_312, 26_112, 0)),
        ("S", "600160005560006000fd", {}, (26_012, 26_012, 0)),
        ("S", "60006000526000600160006000f011600055", {}, (204_088, 35_032, 169_056)),
        ("S", "", {"to": None, "data": "0x00"}, (161_494, 30_006, 131_488)),
        ("S", "", {"to": None, "gas_limit": 161_488}, (161_488, 30_000, 131_488)),
        ("F", "6001600055", {}, (125_026, 27_106, 97_920)),
        ("F", "", {"to": None}, (207_600, 24_000, 183_600)),
        ("F", "", {"to": SENDER, "value": 1}, (12_000, 12_000, 0)),
        ("F", "", {"value": 1}, (21_000, 21_000, 0)),
        ("F", "", {"to": "0x" + "dd" * 20, "value": 1}, (204_600, 21_000, 183_600)),
    ],
)
def test_the_transcription_gives_known_figures(
    peer: Callable[[str], Peer], rules: str, code: str, fields: Any, gas: tuple[int, int, int]
) -> None:
    outcome = peer("amsterdam").run(case_of(rules, code, **fields).dumps())
    (done,) = outcome["transactions"]
    assert (done["gas_used"], done["regular"], done["state"]) == gas


def test_the_transcription_loses_what_a_failing_frame_was_credited_under_the_rules_of_april(
    peer: Callable[[str], Peer],
) -> None:
    code = f"6000600060006000600073{CALLEE}5af100"
    paid = {}
    for rules in RULE_SETS:
        outcome = peer("amsterdam").run(case_of(rules, code).dumps())
        (done,) = outcome["transactions"]
        paid[rules] = done["gas_used"] - done["regular"] - done["state"]
    assert paid == {"S": 37_568, "F": 0}
