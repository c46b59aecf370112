"""Tests regular gas and state gas: what a transaction pays, and what its block counts.

Expected values under the devnet of April 2026 come from its public tests (for transactions see
`test_worked_examples.py`). Values under Amsterdam follow from the constants of EIP-2780, EIP-8037
and EIP-8038.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from fastevm import Transaction
from fastevm.chain import system_contracts
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.transaction.transaction import sign_authorization
from fastevm.core.execution.types import Block
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.errors import InvalidBlock
from tests.unit.chain.blocks import ETHER, KEY, SENDER, build, new_chain, payment

APRIL = "amsterdam-2026-04"
AMSTERDAM = "Amsterdam"
CONTRACT = b"\xc0" * 20
CALLEE = b"\xca" * 20
OTHER = b"\xd0" * 20
FRESH = b"\xf0" * 20
SIGNERS = tuple(bytes([number]) * 32 for number in range(1, 11))
GAS = 15_000_000
SET = "6001600055"
SET_AND_CLEAR = "60016000556000600055"
REVERT = "60006000fd"
DELEGATION = "ef0100"

BYTE = 1_174  # state gas at a gas limit of 120 million
ACCOUNT, SLOT = 112 * BYTE, 32 * BYTE
NEW_ACCOUNT, NEW_SLOT, NEW_DELEGATION = 183_600, 97_920, 35_190

SYSTEM_CONTRACTS = (
    (system_contracts.BEACON_ROOTS, system_contracts.BEACON_ROOTS_CODE),
    (system_contracts.HISTORY_STORAGE, system_contracts.HISTORY_STORAGE_CODE),
    (system_contracts.WITHDRAWAL_REQUESTS, system_contracts.WITHDRAWAL_REQUESTS_CODE),
    (system_contracts.CONSOLIDATION_REQUESTS, system_contracts.CONSOLIDATION_REQUESTS_CODE),
)

Accounts = Mapping[bytes, Mapping[str, Any]]


def made(
    fork: str, transactions: list[Transaction], accounts: Accounts, limit: int = 120_000_000
) -> tuple[Block, Any]:
    """Builds a block of these transactions on ``accounts`` and an account OTHER."""
    alloc = {OTHER.hex(): {"balance": "0x1"}}
    for address, fields in accounts.items():
        code = "0x" + str(fields.get("code", ""))
        alloc[address.hex()] = {**fields, "code": code}
    chain = new_chain(fork, alloc=alloc, gasLimit=limit)
    return build(chain, transactions=transactions)


def spent(
    fork: str, transaction: Transaction, accounts: Accounts | None = None, **block: Any
) -> tuple[int, int]:
    """Returns the gas used by a transaction, and by a block with only this transaction."""
    _, result = made(fork, [transaction], accounts or {}, **block)
    return result.receipts[0].gas_used, result.gas_used


def running(fork: str, code: str, *, gas: int = GAS, **rest: Any) -> tuple[int, int]:
    """Returns the gas used by a call to CONTRACT with this code, and by a block with only it."""
    limit = {"limit": rest.pop("limit")} if "limit" in rest else {}
    accounts = {CONTRACT: {"code": code, **rest.pop("contract", {})}, **rest.pop("accounts", {})}
    return spent(fork, payment(0, value=0, to=CONTRACT, gas_limit=gas, **rest), accounts, **limit)


def creating(fork: str, data: bytes, *, gas: int = GAS, **fields: Any) -> tuple[int, int]:
    """Returns the gas used by a creation transaction, and by a block with only it."""
    found = payment(0, to=None, data=data, gas_limit=gas, **({"value": 0} | fields))
    return spent(fork, found)


def authorizing(fork: str, tuples: list[tuple[bytes, int]], **fields: Any) -> tuple[int, int]:
    """Returns the gas used by a transaction with authorizations, and by a block with only it.

    ``tuples``: (key, nonce) of each authorization.
    """
    accounts = fields.pop("accounts", {})
    signed = [
        sign_authorization(key, chain_id=1, address=CALLEE, nonce=nonce) for key, nonce in tuples
    ]
    values: dict[str, Any] = {
        "to": OTHER, "gas_limit": GAS, "max_fee_per_gas": 2 * 10**9, "max_priority_fee_per_gas": 0
    }  # fmt: skip
    values["authorization_list"] = signed
    built = Transaction.build(type=4, chain_id=1, nonce=0, **(values | fields))
    return spent(fork, built.sign(KEY), accounts)


def authorities(count: int) -> Accounts:
    return {public_key_address(key): {"balance": "0x1"} for key in SIGNERS[:count]}


# --- the devnet of April 2026 ---------------------------------------------------------------------


def test_receipts_count_what_was_paid_and_the_header_the_larger_sum() -> None:
    contracts = [bytes([number]) * 20 for number in (0xA1, 0xA2, 0xA3)]
    calls = [payment(n, value=0, to=to, gas_limit=GAS) for n, to in enumerate(contracts)]
    _, result = made(APRIL, calls, {to: {"code": SET} for to in contracts})
    assert [r.cumulative_gas_used for r in result.receipts] == [63_574, 127_148, 190_722]
    assert result.gas_used == 112_704


def clearing_block(limit: int) -> Any:
    """Builds a block of two calls: one clears ten slots for a refund, one uses 21,064 gas."""
    clears = "".join(f"5f60{slot:02x}55" for slot in range(10))
    storage = {hex(slot): "0x1" for slot in range(10)}
    calls = [
        payment(0, value=0, to=CONTRACT, gas_limit=71_050),
        payment(1, value=0, to=OTHER, data=b"\0", gas_limit=21_064),
    ]
    return made(APRIL, calls, {CONTRACT: {"code": clears, "storage": storage}}, limit)[1]


def test_a_block_counts_gas_before_refunds() -> None:
    result = clearing_block(92_114)
    assert result.gas_used == 92_114
    assert [r.cumulative_gas_used for r in result.receipts] == [56_840, 77_904]
    with pytest.raises(InvalidBlock, match="gas limit reached"):
        clearing_block(92_113)


def test_the_state_gas_of_earlier_transactions_takes_room_in_the_block() -> None:
    stores = "".join(f"600160{slot:02x}55" for slot in range(50))

    def block(gas: int) -> None:
        calls = [
            payment(0, value=0, to=CONTRACT, gas_limit=GAS),
            payment(1, value=0, to=OTHER, gas_limit=gas, gas_price=10**9),
        ]
        made(APRIL, calls, {CONTRACT: {"code": stores}}, 100_000_000)

    block(98_142_600)
    with pytest.raises(InvalidBlock, match="gas limit reached"):
        block(98_142_601)


@pytest.mark.parametrize(
    ("limit", "gas"), [(42_000, (21_000, 21_001)), (16_777_316, (16_798_317,))]
)
def test_a_transaction_needs_room_in_both_dimensions(limit: int, gas: tuple[int, ...]) -> None:
    calls = [payment(n, value=0, to=OTHER, gas_limit=item) for n, item in enumerate(gas)]
    with pytest.raises(InvalidBlock, match="gas limit reached"):
        made(APRIL, calls, {}, limit)


def test_the_state_gas_of_a_creation_needs_no_room_for_regular_gas() -> None:
    calls = [
        payment(0, value=0, to=CONTRACT, gas_limit=1 << 24),
        payment(1, value=0, to=None, gas_limit=30_000 + 112 * 150),
    ]
    limit = (1 << 24) + 30_001
    _, result = made(APRIL, calls, {CONTRACT: {"code": "fe"}}, limit)
    assert result.gas_used == limit - 1


def test_a_block_without_transactions_needs_gas_for_its_access_list() -> None:
    contracts = {address: {"code": code.hex()} for address, code in SYSTEM_CONTRACTS}
    made(APRIL, [], contracts, 30_000)
    with pytest.raises(InvalidBlock, match="block_access_list: expected at most 14"):
        made(APRIL, [], contracts, 29_999)


# --- Amsterdam ------------------------------------------------------------------------------------


def to_account(value: int, to: bytes, accounts: Accounts | None = None) -> tuple[int, int]:
    return spent(AMSTERDAM, payment(0, value=value, to=to, gas_limit=GAS), accounts)


def test_a_transaction_pays_for_what_it_touches() -> None:
    assert to_account(0, SENDER) == to_account(5, SENDER) == (12_000, 12_000)
    assert to_account(0, OTHER) == to_account(0, FRESH) == (15_000, 15_000)
    assert to_account(1, OTHER) == (21_000, 21_000)
    assert to_account(1, FRESH) == (21_000 + NEW_ACCOUNT, NEW_ACCOUNT)


def test_a_delegated_recipient_costs_the_access_to_its_delegate() -> None:
    accounts = {OTHER: {"code": DELEGATION + CALLEE.hex()}, CALLEE: {"code": "00"}}
    assert to_account(0, OTHER, accounts) == (18_000, 18_000)
    assert to_account(1, OTHER, accounts) == (24_000, 24_000)
    accounts = {
        SENDER: {"code": DELEGATION + CALLEE.hex(), "balance": hex(ETHER)},
        CALLEE: {"code": "00"},
    }
    assert to_account(0, SENDER, accounts) == (15_000, 15_000)


def test_a_recipient_that_delegates_to_a_precompile_pays_a_warm_access() -> None:
    identity = bytes(19) + b"\x04"
    accounts = {OTHER: {"code": DELEGATION + identity.hex()}}
    assert to_account(0, OTHER, accounts) == (15_100, 15_100)


def test_the_destination_of_a_creation_that_cannot_be_paid_is_listed() -> None:
    transaction = payment(0, to=None, data=b"", gas_limit=30_000, value=0)
    _, result = made(AMSTERDAM, [transaction], {})
    assert result.receipts[0].status == 0
    listed = [item[0] for item in rlp.decode(result.access_list)]
    assert result.receipts[0].contract_address in listed


def test_a_creation_transaction_pays_for_a_new_account_once_it_runs() -> None:
    assert creating(AMSTERDAM, b"") == (24_000 + NEW_ACCOUNT, NEW_ACCOUNT)
    assert creating(AMSTERDAM, b"", value=1) == (24_000 + NEW_ACCOUNT, NEW_ACCOUNT)
    assert creating(AMSTERDAM, b"", gas=24_000) == (24_000, 24_000)


def test_a_new_slot_costs_state_gas_and_a_write() -> None:
    assert running(AMSTERDAM, SET) == (125_026, NEW_SLOT)


def test_a_slot_that_is_zero_again_gives_its_state_gas_back() -> None:
    regular = 15_000 + 4 * 3 + 2_100 + 10_000 + 100
    paid, counted = running(AMSTERDAM, SET_AND_CLEAR)
    assert (paid, counted) == (regular - regular // 5, regular)


def test_state_gas_that_a_callee_gives_back_is_regular_gas_of_its_caller_again() -> None:
    """The caller pays for a new slot with regular gas. Its callee clears the slot.

    The caller then needs the refunded gas for memory.
    """
    delegatecall = "5f5f5f5f73" + CALLEE.hex() + "5af4"
    code = SET + delegatecall + "5f6202000052"  # MSTORE at a high offset costs 45,083 gas
    clearing = {CALLEE: {"code": "5f5f55"}}
    before = 15_000 + 6 + 2_100 + 10_000 + 13 + 3_000 + 104 + 45_083
    paid = running(AMSTERDAM, code, gas=before + NEW_SLOT - 40_000, accounts=clearing)
    assert paid == (before - 10_000, before)


def test_a_failed_transaction_pays_no_state_gas() -> None:
    regular = 15_000 + 4 * 3 + 2_100 + 10_000
    assert running(AMSTERDAM, SET + REVERT) == (regular, regular)
    assert running(AMSTERDAM, SET + "fe") == (GAS, GAS)


def test_a_halt_keeps_the_reservoir() -> None:
    assert running(AMSTERDAM, SET + "fe", gas=20_000_000) == (1 << 24, 1 << 24)


def test_gas_above_the_cap_is_for_state_only() -> None:
    gas_left = "5a60005260206000f3"
    assert running(AMSTERDAM, gas_left, gas=40_000_000)[1] < 16_000
    slots = "".join(f"600160{slot:02x}55" for slot in range(200))
    paid, counted = running(AMSTERDAM, slots, gas=40_000_000)
    assert counted == 200 * NEW_SLOT
    assert paid == 15_000 + 200 * (6 + 12_100) + counted


def test_a_call_that_fails_gives_the_account_back() -> None:
    call = "600060006000600060017{}{}5af100"
    rich = {"contract": {"balance": "0x1"}}
    code = call.format("3", FRESH.hex())
    paid, counted = running(AMSTERDAM, code, **rich)
    regular = 15_000 + 6 * 3 + 2 + 3_000 + 11_300 - 2_300
    assert (paid, counted) == (regular + NEW_ACCOUNT, NEW_ACCOUNT)
    assert running(AMSTERDAM, code) == (regular, regular)


def test_a_creation_pays_for_a_destination_that_is_absent() -> None:
    paid, counted = running(AMSTERDAM, "600060006000f000")
    assert (paid, counted) == (15_000 + 9 + 12_000 + NEW_ACCOUNT, NEW_ACCOUNT)
    poor = running(AMSTERDAM, "600060006001f000")
    assert poor == (15_000 + 9 + 12_000,) * 2


def test_a_creation_at_an_address_with_ether_pays_for_no_account() -> None:
    destination = keccak256(rlp.encode([CONTRACT, b""]))[12:]
    accounts = {destination: {"balance": "0x1"}}
    paid = running(AMSTERDAM, "600060006000f000", accounts=accounts)
    assert paid == (15_000 + 9 + 12_000,) * 2


def test_only_a_call_of_the_account_itself_makes_an_account() -> None:
    callcode = "5f5f5f5f600173" + FRESH.hex() + "5ff2"
    paid = running(AMSTERDAM, callcode, contract={"balance": "0x1"})
    assert paid == (15_000 + 16 + 3_000 + 11_300 - 2_300,) * 2


def test_a_revert_gives_back_the_state_gas_of_callees_that_succeeded() -> None:
    code = "5f5f5f5f5f73" + CALLEE.hex() + "5af1" + REVERT
    paid = running(AMSTERDAM, code, accounts={CALLEE: {"code": SET}})
    assert paid == (15_000 + 15 + 3_000 + 12_106 + 6,) * 2


def test_an_authorization_pays_for_account_write_and_delegation() -> None:
    base = 15_000 + 7_816
    item = [(SIGNERS[0], 0)]
    assert authorizing(AMSTERDAM, item, accounts=authorities(1)) == (
        base + 9_000 + NEW_DELEGATION,
        NEW_DELEGATION,
    )
    state = NEW_ACCOUNT + NEW_DELEGATION
    assert authorizing(AMSTERDAM, item) == (base + 9_000 + state, state)
    twice = [(SIGNERS[0], 0), (SIGNERS[0], 1)]
    assert authorizing(AMSTERDAM, twice) == (base + 7_816 + 9_000 + state, state)
    wrong = [(SIGNERS[0], 7)]
    assert authorizing(AMSTERDAM, wrong) == (base, base)


def delegating(tuples: list[tuple[int, bytes]], **fields: Any) -> int:
    """Returns what authorizations cost in addition to the intrinsic gas.

    ``tuples``: (nonce, delegate) of each authorization.
    """
    signed = [
        sign_authorization(SIGNERS[0], chain_id=1, address=delegate, nonce=nonce)
        for nonce, delegate in tuples
    ]
    paid, _ = authorizing(AMSTERDAM, [], authorization_list=signed, **fields)
    return paid - 15_000 - 7_816 * len(tuples)


def test_a_delegation_is_paid_whatever_an_invalid_authorization_before_it_would_have_set() -> None:
    account = {public_key_address(SIGNERS[0]): {"nonce": "0x5"}}
    tuples = [(3, CALLEE), (5, OTHER)]
    assert delegating(tuples, accounts=account) == 9_000 + NEW_DELEGATION


def test_a_delegation_that_is_cleared_and_set_again_is_paid_once() -> None:
    paid = 9_000 + NEW_DELEGATION
    new = {public_key_address(SIGNERS[0]): {"balance": "0x1"}}
    assert delegating([(0, CALLEE), (1, bytes(20)), (2, OTHER)], accounts=new) == paid


def test_a_delegation_that_stood_before_the_transaction_is_not_paid_when_it_is_set_again() -> None:
    old = {public_key_address(SIGNERS[0]): {"code": DELEGATION + CALLEE.hex(), "nonce": "0x1"}}
    assert delegating([(1, OTHER)], accounts=old) == 9_000
    assert delegating([(1, bytes(20)), (2, OTHER)], accounts=old) == 9_000
    assert delegating([(1, OTHER), (2, bytes(20)), (3, OTHER)], accounts=old) == 9_000


def test_authorizations_that_cannot_be_paid_are_taken_back_with_the_whole_message() -> None:
    gas = 15_000 + 7_816 + 9_000 + NEW_DELEGATION
    item = [(SIGNERS[0], 0)]
    assert authorizing(AMSTERDAM, item, gas_limit=gas) == (gas, gas)


def test_the_gas_limit_has_a_cap_of_its_own() -> None:
    with pytest.raises(InvalidBlock, match="gas limit"):
        running(AMSTERDAM, "00", gas=2**32, gas_price=10**9, limit=2**33)
