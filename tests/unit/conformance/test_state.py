"""Tests that state tests with correct expectations pass, and that each wrong expectation fails."""

from typing import Any

import pytest

from fastevm.conformance.state import cases, hash_of_logs
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Log
from fastevm.core.primitives.keccak import keccak256

from .made import COINBASE, KEY, RICH, SENDER, TARGET, account, counting, hexed, state_test


def outcome(test: dict[str, Any]) -> str:
    """Runs a test with one entry. Returns "" if it passes, or the expected and found values."""
    ((name, fork, run),) = cases("file.json", {"title": test})
    assert name == f"title[{fork}-0]"
    mismatch = run()
    return "" if mismatch is None else f"{mismatch.expected} | {mismatch.found}"


def test_the_right_root_passes() -> None:
    assert not outcome(state_test("Berlin", *counting(43_106, 43_106)))


def test_a_wrong_root_is_found_and_the_difference_reported() -> None:
    pre, post = counting(43_106, 43_105)
    state = state_test("Berlin", post, post)["pre"]
    reported = outcome(state_test("Berlin", pre, post, entry={"state": state}))
    assert f"{hexed(COINBASE)}: balance: expected 43105, found 43106" in reported


def test_wrong_logs_are_found() -> None:
    gas = 21_000 + 3 * 3 + 375 + 375
    pre, post = counting(gas, gas)
    for accounts in (pre, post):
        accounts[TARGET] = account(code=bytes.fromhex("600760006000a100"))
    log = Log(TARGET, ((7).to_bytes(32, "big"),), b"")
    right = state_test("Berlin", pre, post, entry={"logs": hexed(hash_of_logs((log,)))})
    assert not outcome(right)
    assert outcome(state_test("Berlin", pre, post)).startswith("logs hash")


@pytest.mark.parametrize(
    ("fork", "present", "stays"),
    [
        ("Frontier", False, True),
        ("EIP150", False, True),
        ("EIP158", False, False),
        ("EIP158", True, False),
        ("Cancun", True, False),
    ],
)
def test_a_refused_transaction_still_touches_the_coinbase(
    fork: str, present: bool, stays: bool
) -> None:
    pre = {SENDER: account(balance=5)} | ({COINBASE: account()} if present else {})
    post = {SENDER: account(balance=5)} | ({COINBASE: account()} if stays else {})
    test = state_test(fork, pre, post, entry={"expectException": "TR_NoFunds"})
    assert not outcome(test)


@pytest.mark.parametrize("fork", ["Frontier", "Homestead", "EIP158", "London"])
@pytest.mark.parametrize("rewarded", [False, True])
def test_a_test_that_was_made_without_a_reward_leaves_the_coinbase(
    fork: str, rewarded: bool
) -> None:
    pre = {SENDER: account(balance=5)}
    stays = rewarded and fork in ("Frontier", "Homestead")
    post = pre | ({COINBASE: account()} if stays else {})
    reported = {"expectException": "TR_NoFunds", "state": state_test(fork, post, post)["pre"]}
    assert not outcome(state_test(fork, pre, post, entry=reported))
    wrong = post | {TARGET: account(balance=1)}
    assert outcome(state_test(fork, pre, wrong, entry=reported)).startswith("state root")


def test_a_transaction_that_should_be_refused_must_not_pass() -> None:
    test = state_test("Berlin", *counting(43_106, 43_106), entry={"expectException": "TR_NoFunds"})
    assert outcome(test) == "rejected with TR_NoFunds | accepted"


def test_a_refusal_nobody_asked_for_is_reported() -> None:
    pre, post = counting(43_106, 43_106)
    reported = outcome(state_test("Berlin", pre, post, transaction={"nonce": "0x05"}))
    assert "rejected: nonce too high" in reported


def test_untouched_empty_accounts_stay() -> None:
    pre, post = counting(43_106, 43_106)
    pre[b"\xee" * 20] = post[b"\xee" * 20] = account()
    assert not outcome(state_test("Berlin", pre, post))


def test_the_environment_picks_the_side_of_a_transition() -> None:
    early, late = counting(43_106, 43_106), counting(43_106, 43_106 - 43_106 * 7)
    fork = "BerlinToLondonAt5"
    assert not outcome(state_test(fork, *early, env={"currentNumber": "0x4"}))
    late = counting(43_106 * 9, 43_106 * 2)
    dear = {"currentNumber": "0x5", "currentBaseFee": "0x7"}
    assert not outcome(state_test(fork, *late, env=dear, transaction={"gasPrice": "0x09"}))


def test_signed_bytes_must_say_what_the_fields_say() -> None:
    signed = Transaction.build(nonce=0, gas_price=1, gas_limit=100_000, to=TARGET).sign(KEY)
    states = counting(43_106, 43_106)
    assert not outcome(state_test("Berlin", *states, entry={"txbytes": hexed(signed.raw)}))
    other = Transaction.build(nonce=0, gas_price=2, gas_limit=100_000, to=TARGET).sign(KEY)
    test = state_test("Berlin", *states, entry={"txbytes": hexed(other.raw)})
    with pytest.raises(ValueError, match="differ"):
        outcome(test)


def test_bytes_that_do_not_decode_are_a_refusal() -> None:
    pre = {SENDER: account(balance=RICH)}
    entry = {"txbytes": "0x01c0", "expectException": "TR_RLP"}
    assert not outcome(state_test("Berlin", pre, pre, entry=entry))


def test_numbers_too_big_for_their_field_are_a_refusal() -> None:
    pre = {SENDER: account(balance=RICH)}
    huge = {"value": [f"0x:bigint 0x1{'0' * 64}"]}
    entry = {"expectException": "TR_RLP"}
    assert not outcome(state_test("Berlin", pre, pre, entry=entry, transaction=huge))


def test_fields_of_later_forks_are_left_out() -> None:
    later = {"currentBaseFee": "0x0a", "currentRandom": "0x07", "currentExcessBlobGas": "0x0"}
    assert not outcome(state_test("Berlin", *counting(43_106, 43_106), env=later))


def test_old_blocks_have_the_hash_of_their_number() -> None:
    gas = 21_000 + 3 + 20 + 3 + 22_100
    pre, post = counting(gas, gas)
    for accounts in (pre, post):
        accounts[TARGET]["code"] = bytes.fromhex("600140600055")  # slot 0 = BLOCKHASH(1)
    post[TARGET]["storage"] = {0: int.from_bytes(keccak256(b"1"), "big")}
    assert not outcome(state_test("Berlin", pre, post, env={"currentNumber": "0x2"}))
