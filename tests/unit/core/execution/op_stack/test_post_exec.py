"""Tests the post-exec transaction of Lagoon, which refunds gas at the end of a block.

Source: OP Stack specification, Lagoon, post-exec transactions and sequencer-defined metering.
"""

import pytest

from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.op_stack.post_exec import post_exec_transaction
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_rules import check_transaction
from fastevm.core.execution.types import Header
from fastevm.core.primitives import rlp
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock, InvalidTransaction
from tests.op_stack_data import hex_data, vectors_of

KEY = b"\x01" * 32
ETHER = 10**18
BASE_FEE, TIP = 1_000, 50
COINBASE, TARGET = b"\xcc" * 20, b"\xbb" * 20
BASE_FEE_VAULT = bytes.fromhex("4200000000000000000000000000000000000019")
OPERATOR_VAULT = bytes.fromhex("420000000000000000000000000000000000001b")
L1_BLOCK = bytes.fromhex("4200000000000000000000000000000000000015")
OPERATOR_SCALAR, OPERATOR_CONSTANT = 3, 7
SLOT_8 = (OPERATOR_SCALAR << 64) | OPERATOR_CONSTANT
DEPOSIT = Transaction.build(
    type=126, source_hash=bytes(32), sender=b"\xaa" * 20, to=TARGET, gas_limit=50_000
)
TRANSFER = Transaction.build(
    type=2,
    chain_id=10,
    gas_limit=30_000,
    max_fee_per_gas=2_000,
    max_priority_fee_per_gas=TIP,
    to=TARGET,
    value=1,
).sign(KEY)
NUMBER = 42


def execute(*transactions, fork="lagoon", gas_limit=30_000_000):
    schedule = schedule_for(fork)
    parent = Header(number=NUMBER - 1, gas_limit=gas_limit, base_fee_per_gas=BASE_FEE, timestamp=10)
    draft = draft_header(parent, schedule, timestamp=12, coinbase=COINBASE)
    layer = Layer.of({TRANSFER.sender: {"balance": ETHER}, L1_BLOCK: {"storage": {8: SLOT_8}}})
    builder = BlockBuilder(
        layer, draft, schedule, chain_id=10, deposit_contract=bytes(20), withdrawals=()
    )
    builder.begin()
    builder.add_all(transactions)
    return draft, builder.finish()


@pytest.mark.parametrize("vector", vectors_of("postExec"), ids=lambda vector: vector["id"])
def test_the_encoding_is_the_published_one(vector):
    found = post_exec_transaction(vector["blockNumber"], vector["entries"])
    assert found.raw == hex_data(vector["raw"])
    assert found.hash == hex_data(vector["hash"])
    assert (found.type, found.sender, found.gas_limit) == (125, bytes(20), 0)
    assert found.data == found.raw[1:]


def test_gas_is_given_back_to_the_sender_by_all_who_got_it():
    refund = 1_000
    header, before = execute(DEPOSIT, TRANSFER)
    _, after = execute(DEPOSIT, TRANSFER, post_exec_transaction(NUMBER, [(1, refund)]))
    used = before.receipts[1].gas_used
    assert after.receipts[1].gas_used == used - refund
    assert after.gas_used == before.gas_used - refund
    assert after.receipts[2].cumulative_gas_used == after.gas_used
    price, fee = header.base_fee_per_gas + TIP, header.base_fee_per_gas

    def gained(address):
        return after.layer.balance(address) - before.layer.balance(address)

    operator = refund * OPERATOR_SCALAR * 100
    assert gained(TRANSFER.sender) == refund * price + operator
    assert gained(COINBASE) == -refund * TIP
    assert gained(BASE_FEE_VAULT) == -refund * fee
    assert gained(OPERATOR_VAULT) == -operator


def test_its_own_receipt_has_no_gas_and_no_logs():
    _, result = execute(DEPOSIT, TRANSFER, post_exec_transaction(NUMBER, [(1, 5)]))
    own = result.receipts[2]
    assert (own.tx_type, own.status, own.gas_used, own.logs) == (125, 1, 0, ())
    assert own.blob_gas_used == 0
    assert own.rlp()[0] == 125


def test_the_gas_limit_counts_what_is_given_back():
    second = Transaction.build(
        type=2,
        chain_id=10,
        nonce=1,
        gas_limit=21_000,
        max_fee_per_gas=2_000,
        to=TARGET,
    ).sign(KEY)
    transactions = (DEPOSIT, TRANSFER, second, post_exec_transaction(NUMBER, [(1, 10_000)]))
    assert execute(*transactions, gas_limit=71_000)[1].gas_used == 53_000
    with pytest.raises(InvalidBlock, match="gas limit reached"):
        execute(*transactions, gas_limit=62_999)


@pytest.mark.parametrize(
    ("number", "refunds", "message"),
    [
        (NUMBER + 1, [(1, 5)], "block number 42"),
        (NUMBER, [], "a refund"),
        (NUMBER, [(0, 5)], "no deposit"),
        (NUMBER, [(1, 0)], "a refund above 0"),
        (NUMBER, [(2, 5)], "an index below 2"),
        (NUMBER, [(1, 5), (1, 5)], "an index above 1"),
        (NUMBER, [(1, 21_001)], "post-exec refund exceeds the gas used"),
    ],
)
def test_a_transaction_that_breaks_a_rule_makes_the_block_invalid(number, refunds, message):
    with pytest.raises(InvalidBlock, match=message):
        execute(DEPOSIT, TRANSFER, post_exec_transaction(number, refunds))


def test_it_stands_last_once_and_has_a_known_version():
    refunds = post_exec_transaction(NUMBER, [(1, 5)])
    with pytest.raises(InvalidBlock, match="nothing after it"):
        execute(DEPOSIT, TRANSFER, refunds, refunds)
    unknown = Transaction.decode(b"\x7d" + rlp.encode([2, NUMBER, [[1, 5]]]))
    with pytest.raises(InvalidBlock, match="version 1"):
        execute(DEPOSIT, TRANSFER, unknown)


def test_before_lagoon_there_is_none_and_nobody_can_submit_it():
    refunds = post_exec_transaction(NUMBER, [(1, 5)])
    with pytest.raises(InvalidBlock, match="transaction type not supported"):
        execute(DEPOSIT, TRANSFER, refunds, fork="karst")
    with pytest.raises(InvalidTransaction, match="transaction type not supported"):
        check_transaction(refunds, schedule_for("lagoon"), chain_id=10)
    with pytest.raises(ValueError, match="is not signed"):
        refunds.sign(KEY)
