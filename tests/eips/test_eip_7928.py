"""EIP-7928: Block-level access lists.

A block's header commits to every account and slot that its execution uses, and to their changes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fastevm import Transaction
from fastevm.chain.chain import Chain
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.block_access_list import (
    AccountAccess,
    CodeChange,
    NumberChange,
    SlotChanges,
    access_list_hash,
    decode_access_list,
    encode_access_list,
)
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.transaction.transaction import sign_authorization
from fastevm.core.execution.types import Block, Withdrawal
from fastevm.core.primitives.replace import replace
from fastevm.errors import InvalidBlock, InvalidTransaction
from tests.unit.chain.blocks import new_chain

from .support import (
    CONTRACT,
    KEY,
    MINER,
    OTHER,
    SENDER,
    before_and_after,
    build,
    calling,
    chain_across,
    code_of,
    payment,
    refused_block,
    with_header,
)

BEFORE, AFTER = before_and_after(7928)
THIRD = b"\xe0" * 20
AUTHORITY_KEY = b"\x77" * 32
AUTHORITY = public_key_address(AUTHORITY_KEY)
GAS = 2_000_000

Accesses = dict[bytes, AccountAccess]


def chain_with(alloc: Mapping[bytes, Mapping[str, Any]] | None = None) -> Chain:
    """Returns a chain of the fork whose genesis has a rich SENDER and ``alloc``."""
    return new_chain(
        AFTER,
        alloc={
            address.hex(): {**fields, "code": "0x" + code_of(fields.get("code", b"")).hex()}
            for address, fields in (alloc or {}).items()
        },
    )


def recorded(
    alloc: Mapping[bytes, Mapping[str, Any]] | None = None,
    transactions: Sequence[Transaction] = (),
    **block: Any,
) -> Accesses:
    """Builds a block with these transactions. Returns address -> entry of its access list."""
    chain = chain_with(alloc)
    made = build(chain, transactions=transactions, coinbase=MINER, **block)[0]
    chain.add(made.with_access_list(None))
    assert chain.head.access_list == made.access_list
    assert made.access_list is not None
    return {item.address: item for item in decode_access_list(made.access_list)}


def running(source: str, *, gas: int = GAS, alloc: Any = None, **contract: Any) -> Accesses:
    """Returns the access list of a block whose only transaction calls CONTRACT with ``source``."""
    accounts = {CONTRACT: {"code": source, **contract}, **(alloc or {})}
    return recorded(accounts, [payment(0, value=0, to=CONTRACT, gas_limit=gas)])


def slots(changes: Mapping[int, Mapping[int, int]]) -> tuple[SlotChanges, ...]:
    """Returns slot -> index -> value in the format of an access list."""
    return tuple(
        SlotChanges(key, tuple(NumberChange(at, value) for at, value in values.items()))
        for key, values in changes.items()
    )


# --- header and body ------------------------------------------------------------------------------


def test_the_header_holds_the_hash_from_then_on() -> None:
    chain = chain_across(7928)
    before = build(chain)[0]
    chain.add(before)
    after = build(chain)[0]
    chain.add(after)
    assert (before.header.block_access_list_hash, before.access_list) == (None, None)
    assert after.access_list is not None
    assert after.header.block_access_list_hash == access_list_hash(after.access_list)


def test_a_header_with_another_hash_is_refused() -> None:
    chain = chain_with()
    block = with_header(build(chain)[0], block_access_list_hash=bytes(32)).with_access_list(None)
    assert refused_block(chain, block) == "block_access_list_hash"


def test_a_list_that_is_not_the_header_s_is_refused() -> None:
    chain = chain_with()
    block = build(chain)[0].with_access_list(b"\xc0")
    assert refused_block(chain, block) == "block_access_list_hash"


def test_a_list_before_the_fork_is_refused() -> None:
    block = build(new_chain(BEFORE))[0].with_access_list(b"\xc0")
    assert refused_block(new_chain(BEFORE), block) == "block_access_list"


def corrupted(block: Block, change: AccountAccess) -> Block:
    """Returns the block with a change to one access list entry, and the header's hash to match."""
    assert block.access_list is not None
    found = {item.address: item for item in decode_access_list(block.access_list)}
    found[change.address] = change
    encoded = encode_access_list(found[address] for address in sorted(found))
    changed = with_header(block, block_access_list_hash=access_list_hash(encoded))
    return changed.with_access_list(encoded)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (AccountAccess(OTHER), "block_access_list[0x" + OTHER.hex() + "].balance[1]"),
        (AccountAccess(THIRD), "block_access_list[0x" + THIRD.hex() + "]"),
        (
            AccountAccess(OTHER, (), (5,), (NumberChange(1, 7),)),
            "block_access_list[0x" + OTHER.hex() + "].storage[0x5]",
        ),
    ],
)
def test_a_wrong_list_is_refused_for_its_account_and_slot(
    change: AccountAccess, field: str
) -> None:
    chain = chain_with()
    block = build(chain, transactions=[payment(0, value=7, to=OTHER, gas_limit=GAS)])[0]
    wrong = corrupted(block, change)
    assert refused_block(chain, wrong) == field
    assert refused_block(chain, wrong.with_access_list(None)) == "block_access_list_hash"
    chain.add(block)


def test_the_gas_limit_bounds_the_items() -> None:
    chain = chain_with()
    # Without transactions, only the system contracts are listed, without slots.
    contracts = len(recorded())
    assert build(chain, gas_limit=2_000 * contracts)[0].access_list is not None
    with pytest.raises(InvalidBlock, match=f"at most {contracts - 1} items, found {contracts}"):
        build(chain, gas_limit=2_000 * contracts - 1)


def test_a_given_list_is_measured_before_the_block_runs() -> None:
    chain = chain_with()
    encoded = encode_access_list(AccountAccess(n.to_bytes(20, "big")) for n in range(1, 20_000))
    block = with_header(build(chain)[0], block_access_list_hash=access_list_hash(encoded))
    with pytest.raises(InvalidBlock, match="at most 15000 items, found 19999 items"):
        chain.add(block.with_access_list(encoded))


# --- what adds an account to the access list ------------------------------------------------------


def test_sender_recipient_and_coinbase_are_in_the_list_with_their_balances_and_the_nonce() -> None:
    found = recorded(transactions=[payment(0, value=7, to=OTHER, gas_limit=GAS)])
    assert found[OTHER] == AccountAccess(OTHER, balance_changes=(NumberChange(1, 7),))
    assert found[SENDER].nonce_changes == (NumberChange(1, 1),)
    assert [change.at for change in found[SENDER].balance_changes] == [1]
    assert [change.at for change in found[MINER].balance_changes] == [1]


def test_the_recipient_of_no_value_is_in_the_list_without_changes() -> None:
    found = recorded(transactions=[payment(0, value=0, to=OTHER)])
    assert found[OTHER] == AccountAccess(OTHER)


def test_a_coinbase_that_earns_nothing_is_in_the_list_of_a_block_with_transactions_only() -> None:
    chain = chain_with()
    price = build(chain)[0].header.base_fee_per_gas
    found = recorded(transactions=[payment(0, value=0, gas_price=price)])
    assert found[MINER] == AccountAccess(MINER)
    assert MINER not in recorded()


@pytest.mark.parametrize("mnemonic", ["BALANCE", "EXTCODESIZE", "EXTCODEHASH"])
def test_an_account_that_is_asked_about_is_in_the_list(mnemonic: str) -> None:
    assert running(f"0x{THIRD.hex()} {mnemonic}")[THIRD] == AccountAccess(THIRD)


def test_an_account_whose_code_is_copied_is_in_the_list() -> None:
    assert THIRD in running(f"0 0 0 0x{THIRD.hex()} EXTCODECOPY")


@pytest.mark.parametrize("mnemonic", ["CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"])
def test_a_called_account_is_in_the_list(mnemonic: str) -> None:
    assert running(calling(mnemonic, THIRD))[THIRD] == AccountAccess(THIRD)


def gas_used(source: str, alloc: Mapping[bytes, Mapping[str, Any]] | None = None) -> int:
    """Returns the gas of a transaction that calls CONTRACT with this code."""
    chain = chain_with({CONTRACT: {"code": source}, **(alloc or {})})
    block, _ = build(chain, transactions=[payment(0, value=0, to=CONTRACT, gas_limit=GAS)])
    chain.add(block)
    return chain.receipts_of(block.hash)[0].gas_used


@pytest.mark.parametrize("after", ["BALANCE", "0 CALL", "0 STATICCALL", "SELFDESTRUCT"])
def test_what_cannot_pay_for_the_access_leaves_no_trace(after: str) -> None:
    source = f"0 0 0 0 0 0x{THIRD.hex()} {after}"
    used = gas_used(source)
    assert THIRD in running(source, gas=used)
    assert THIRD not in running(source, gas=used - 1)


def test_a_call_that_cannot_pay_for_the_delegate_reads_the_account_only() -> None:
    delegated = {AUTHORITY: {"code": b"\xef\x01\x00" + THIRD}}
    source = f"0 0 0 0 0 0x{AUTHORITY.hex()} 0 CALL"
    used = gas_used(source, delegated)
    assert THIRD in running(source, gas=used, alloc=delegated)
    found = running(source, gas=used - 1, alloc=delegated)
    assert AUTHORITY in found and THIRD not in found


def test_a_precompile_that_is_called_is_in_the_list() -> None:
    identity = (4).to_bytes(20, "big")
    assert running(calling("CALL", identity))[identity] == AccountAccess(identity)


def test_an_eip_2930_list_alone_puts_nothing_into_the_list() -> None:
    listed = Transaction.build(
        type=1,
        chain_id=1,
        gas_price=2 * 10**9,
        gas_limit=GAS,
        to=OTHER,
        access_list=[(THIRD, [1])],
    ).sign(KEY)
    assert THIRD not in recorded(transactions=[listed])


def test_what_an_eip_2930_list_warms_is_recorded_once_it_is_read() -> None:
    listed = Transaction.build(
        type=1,
        chain_id=1,
        gas_price=2 * 10**9,
        gas_limit=GAS,
        to=CONTRACT,
        access_list=[(THIRD, []), (CONTRACT, [1, 2])],
    ).sign(KEY)
    code = f"0x{THIRD.hex()} BALANCE 1 SLOAD"
    found = recorded({CONTRACT: {"code": code}}, [listed])
    assert found[THIRD] == AccountAccess(THIRD)
    assert found[CONTRACT] == AccountAccess(CONTRACT, storage_reads=(1,))


def test_a_creation_transaction_records_nonce_and_code_of_the_contract() -> None:
    deploys = code_of("0x00 0 MSTORE8 1 0 RETURN")
    made = payment(0, value=5, to=None, data=deploys, gas_limit=GAS)
    found = recorded(transactions=[made])
    created = next(item for item in found.values() if item.code_changes)
    assert created.code_changes == (CodeChange(1, b"\x00"),)
    assert created.nonce_changes == (NumberChange(1, 1),)
    assert created.balance_changes == (NumberChange(1, 5),)


def test_a_create_without_balance_does_not_reach_its_destination() -> None:
    poor = running("0 0 1 CREATE")
    assert poor[CONTRACT] == AccountAccess(CONTRACT)
    fine = running("0 0 0 CREATE")
    assert fine[CONTRACT].nonce_changes == (NumberChange(1, 1),)
    assert len(fine) == len(poor) + 1


def delegating(*tuples: tuple[bytes, int, int]) -> Transaction:
    """Returns a transaction whose authorizations AUTHORITY signed.

    ``tuples``: address, nonce, chain.
    """
    return Transaction.build(
        type=4,
        chain_id=1,
        to=OTHER,
        gas_limit=GAS,
        max_fee_per_gas=2 * 10**9,
        authorization_list=[
            sign_authorization(AUTHORITY_KEY, chain_id=chain_id, address=address, nonce=nonce)
            for address, nonce, chain_id in tuples
        ],
    ).sign(KEY)


def test_a_delegation_is_a_change_of_code_and_its_target_is_not_read() -> None:
    found = recorded(transactions=[delegating((THIRD, 0, 1))])
    assert found[AUTHORITY].code_changes == (CodeChange(1, b"\xef\x01\x00" + THIRD),)
    assert found[AUTHORITY].nonce_changes == (NumberChange(1, 1),)
    assert THIRD not in found


def test_a_delegation_that_is_taken_back_at_once_leaves_the_nonce_only() -> None:
    found = recorded(transactions=[delegating((THIRD, 0, 1), (bytes(20), 1, 1))])
    assert found[AUTHORITY] == AccountAccess(AUTHORITY, nonce_changes=(NumberChange(1, 2),))


def test_an_authority_is_in_the_list_once_its_signature_is_recovered() -> None:
    assert recorded(transactions=[delegating((THIRD, 5, 1))])[AUTHORITY] == AccountAccess(AUTHORITY)
    assert AUTHORITY not in recorded(transactions=[delegating((THIRD, 0, 7))])


def test_the_code_that_a_call_runs_by_delegation_is_read() -> None:
    delegated = {AUTHORITY: {"code": b"\xef\x01\x00" + THIRD}}
    assert THIRD in running(calling("CALL", AUTHORITY), alloc=delegated)
    assert THIRD not in running(f"0x{AUTHORITY.hex()} EXTCODESIZE", alloc=delegated)


def test_withdrawals_count_after_the_last_transaction_even_if_they_are_zero() -> None:
    paid = (Withdrawal(0, 0, OTHER, 3), Withdrawal(1, 0, THIRD, 0))
    found = recorded(transactions=[payment(0, value=1, to=OTHER, gas_limit=GAS)], withdrawals=paid)
    assert found[OTHER].balance_changes == (NumberChange(1, 1), NumberChange(2, 1 + 3 * 10**9))
    assert found[THIRD] == AccountAccess(THIRD)


# --- slots ----------------------------------------------------------------------------------------


def test_a_slot_is_read_or_changed_and_never_both() -> None:
    found = running("1 SLOAD 2 SLOAD 9 2 SSTORE", storage={"0x1": "0x5"})
    assert found[CONTRACT] == AccountAccess(CONTRACT, slots({2: {1: 9}}), storage_reads=(1,))


def test_writing_the_value_that_is_there_is_a_read() -> None:
    assert running("5 1 SSTORE", storage={"0x1": "0x5"})[CONTRACT].storage_reads == (1,)


def test_a_slot_that_returns_to_its_value_in_one_transaction_is_a_read() -> None:
    assert running("1 1 SSTORE 0 1 SSTORE")[CONTRACT] == AccountAccess(CONTRACT, storage_reads=(1,))


def test_a_slot_has_a_change_for_each_transaction_that_changes_it() -> None:
    code = "1 SLOAD 1 ADD 1 SSTORE"
    calls = [payment(n, value=0, to=CONTRACT, gas_limit=GAS) for n in range(2)]
    found = recorded({CONTRACT: {"code": code}}, calls)
    assert found[CONTRACT].storage_changes == slots({1: {1: 1, 2: 2}})


def test_a_later_transaction_that_changes_nothing_leaves_the_earlier_change() -> None:
    calls = [payment(n, value=0, to=CONTRACT, gas_limit=GAS) for n in range(2)]
    found = recorded({CONTRACT: {"code": "7 1 SSTORE"}}, calls)
    assert found[CONTRACT].storage_changes == slots({1: {1: 7}})


def test_a_value_that_returns_in_a_later_transaction_is_two_changes() -> None:
    code = "1 SLOAD ISZERO 1 SSTORE"
    calls = [payment(n, value=0, to=CONTRACT, gas_limit=GAS) for n in range(2)]
    found = recorded({CONTRACT: {"code": code}}, calls)
    assert found[CONTRACT].storage_changes == slots({1: {1: 1, 2: 0}})


def test_reads_and_writes_of_a_reverted_frame_stay_as_reads() -> None:
    callee = {"code": f"3 SLOAD 1 2 SSTORE 0x{OTHER.hex()} BALANCE 0 0 REVERT"}
    found = running(calling("CALL", THIRD), alloc={THIRD: callee})
    assert found[THIRD] == AccountAccess(THIRD, storage_reads=(2, 3))
    assert found[OTHER] == AccountAccess(OTHER)


def test_a_transaction_that_halts_leaves_its_reads_and_the_sender_s_changes() -> None:
    found = running("3 SLOAD 1 2 SSTORE INVALID")
    assert found[CONTRACT] == AccountAccess(CONTRACT, storage_reads=(2, 3))
    assert found[SENDER].nonce_changes == (NumberChange(1, 1),)


def test_sstore_below_the_sentry_reads_nothing() -> None:
    found = running(calling("CALL", THIRD, gas=2_300), alloc={THIRD: {"code": "1 1 SSTORE"}})
    assert found[THIRD] == AccountAccess(THIRD)


# --- destroyed contracts, invalid transactions, system calls --------------------------------------


def test_a_contract_that_destroys_itself_where_it_was_made_has_reads_only() -> None:
    init = code_of(f"1 SLOAD 1 2 SSTORE 0x{OTHER.hex()} SELFDESTRUCT")
    found = recorded(transactions=[payment(0, value=0, to=None, data=init, gas_limit=GAS)])
    gone = next(item for item in found.values() if item.storage_reads == (1, 2))
    assert gone == AccountAccess(gone.address, storage_reads=(1, 2))
    assert found[OTHER] == AccountAccess(OTHER)


def test_the_beneficiary_of_a_contract_that_stays_gets_its_balance() -> None:
    found = running(f"0x{OTHER.hex()} SELFDESTRUCT", balance=hex(9))
    assert found[OTHER].balance_changes == (NumberChange(1, 9),)
    assert found[CONTRACT] == AccountAccess(CONTRACT, balance_changes=(NumberChange(1, 0),))


def test_a_transaction_that_is_refused_leaves_no_trace() -> None:
    chain = chain_with({CONTRACT: {"code": "1 SLOAD"}})
    schedule = chain.schedule_for_child(chain.head, 12)
    builder = BlockBuilder(
        chain.layer_of(chain.head.hash),
        replace(draft_header(chain.head.header, schedule, timestamp=12), coinbase=MINER),
        schedule,
        chain_id=1,
        deposit_contract=bytes(20),
        withdrawals=(),
    )
    builder.begin()
    with pytest.raises(InvalidTransaction):
        builder.add(payment(3, value=0, to=CONTRACT, gas_limit=GAS))
    empty = builder.access_list()
    builder.add(payment(0, value=1, to=OTHER, gas_limit=GAS))
    with pytest.raises(InvalidTransaction):
        builder.add(payment(0, value=0, to=CONTRACT, gas_limit=GAS))
    block = builder.seal()[0]
    assert empty is not None
    assert block.access_list is not None
    assert SENDER not in {item.address for item in decode_access_list(empty)}
    assert {SENDER, MINER, OTHER} < {item.address for item in decode_access_list(block.access_list)}
    assert CONTRACT not in {item.address for item in decode_access_list(block.access_list)}
    chain.add(block)


def test_system_contracts_are_in_the_list_even_without_code() -> None:
    found = recorded()
    assert {address[-2:].hex() for address in found} >= {"7002", "7251", "2935", "ac02"}
    assert SENDER not in found
