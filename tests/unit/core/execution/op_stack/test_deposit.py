"""Tests the encoding of deposits, and the changes that a failed deposit keeps.

Source: OP Stack specification, deposits. The kinds of failure come from op-geth.
"""

import pytest

from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_rules import check_transaction
from fastevm.core.execution.types import Header, Receipt
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction, TransactionDecodeError
from tests.op_stack_data import hex_data, vectors_of

SENDER, TARGET = b"\xaa" * 20, b"\xbb" * 20
RETURNS = bytes.fromhex("00")
REVERTS = bytes.fromhex("60006000fd")
HALTS = bytes.fromhex("fe")
STORES = bytes.fromhex("600160005500")
GAS = 100_000


def deposit(**fields):
    given = {"source_hash": b"\x01" * 32, "sender": SENDER, "to": TARGET, "gas_limit": GAS}
    return Transaction.build(type=126, **{**given, **fields})


def builder_on(layer, fork, gas_limit=30_000_000):
    schedule = schedule_for(fork)
    parent = Header(gas_limit=gas_limit, base_fee_per_gas=7, timestamp=10)
    draft = draft_header(parent, schedule, timestamp=12)
    withdrawals = () if draft.withdrawals_root is not None else None
    builder = BlockBuilder(
        layer,
        draft,
        schedule,
        chain_id=10,
        deposit_contract=bytes(20),
        withdrawals=withdrawals,
    )
    builder.begin()
    return builder


def run(transaction, code=RETURNS, fork="karst", **sender):
    layer = Layer.of({SENDER: {"nonce": 5, **sender}, TARGET: {"code": code}})
    builder = builder_on(layer, fork)
    receipt = builder.add(transaction)
    return receipt, builder.snapshot()


@pytest.mark.parametrize("vector", vectors_of("deposit"), ids=lambda vector: vector["id"])
def test_a_deposit_of_a_real_block_decodes_and_encodes(vector):
    raw = hex_data(vector["raw"])
    found = Transaction.decode(raw)
    assert found.hash == hex_data(vector["hash"])
    assert found.source_hash == hex_data(vector["sourceHash"])
    assert (found.sender, found.to) == (hex_data(vector["from"]), hex_data(vector["to"]))
    assert (found.mint, found.value) == (vector["mint"], vector["value"])
    assert (found.gas_limit, found.is_system) == (vector["gas"], vector["isSystemTx"])
    fields = ("source_hash", "sender", "to", "mint", "value", "gas_limit", "is_system", "data")
    again = Transaction.build(type=126, **{name: getattr(found, name) for name in fields})
    assert again.raw == raw


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source_hash": b"\x01" * 31}, "source_hash: expected 32 bytes"),
        ({"sender": b"\x01"}, "from: expected 20 bytes"),
        ({"to": b"\x01"}, "to: expected nothing or 20 bytes"),
        ({"mint": 2**128}, "mint: expected an integer below 2"),
        ({"gas_limit": 2**64}, "gas_limit: expected an integer below 2"),
    ],
)
def test_a_field_that_does_not_fit_is_named(change, message):
    with pytest.raises(TransactionDecodeError, match=message):
        deposit(**change)


def test_a_deposit_has_no_field_of_other_transactions():
    with pytest.raises(TypeError, match="a deposit has no field 'nonce'"):
        deposit(nonce=1)
    with pytest.raises(ValueError, match="a deposit is not signed"):
        deposit().sign(b"\x01" * 32)
    with pytest.raises(ValueError, match="a deposit is not signed"):
        deposit().signing_hash()


def test_nobody_can_submit_a_deposit():
    for fork in ("karst", "osaka"):
        with pytest.raises(InvalidTransaction, match="transaction type not supported"):
            check_transaction(deposit(), schedule_for(fork), chain_id=10)


def test_ethereum_has_no_deposits():
    builder = builder_on(Layer.empty(), "osaka")
    with pytest.raises(InvalidTransaction, match="transaction type not supported"):
        builder.add(deposit())


def test_a_deposit_mints_moves_value_and_pays_nothing():
    receipt, layer = run(deposit(mint=100, value=40))
    assert (receipt.status, receipt.gas_used, receipt.effective_gas_price) == (1, 21_000, 0)
    assert (receipt.deposit_nonce, receipt.deposit_receipt_version) == (5, 1)
    assert (layer.balance(SENDER), layer.balance(TARGET)) == (60, 40)
    assert layer.nonce(SENDER) == 6


def test_a_deposit_that_reverts_keeps_mint_and_reports_its_gas():
    receipt, layer = run(deposit(mint=100, value=40), REVERTS)
    assert (receipt.status, receipt.gas_used) == (0, 21_006)
    assert (layer.balance(SENDER), layer.balance(TARGET), layer.nonce(SENDER)) == (100, 0, 6)


@pytest.mark.parametrize(
    ("transaction", "code"),
    [
        (deposit(mint=100), HALTS),
        (deposit(mint=100, gas_limit=21_010), STORES),
        (deposit(mint=100, gas_limit=20_999), RETURNS),
        (deposit(mint=100, value=101), RETURNS),
        (deposit(mint=100, is_system=True), RETURNS),
        (deposit(mint=100, to=None, data=bytes(49_153), gas_limit=5_000_000), RETURNS),
        (deposit(mint=100, data=b"\x01" * 1_000, gas_limit=40_000), RETURNS),
    ],
    ids=["halt", "out of gas", "intrinsic gas", "value", "system", "init code", "floor"],
)
def test_a_deposit_that_fails_keeps_mint_and_costs_its_gas_limit(transaction, code):
    receipt, layer = run(transaction, code)
    assert (receipt.status, receipt.gas_used) == (0, transaction.gas_limit)
    assert receipt.logs == ()
    assert (layer.balance(SENDER), layer.nonce(SENDER)) == (100, 6)


def test_a_creation_uses_the_nonce_before_the_deposit():
    receipt, layer = run(deposit(to=None, data=bytes.fromhex("60006000f3")))
    assert receipt.status == 1
    assert receipt.contract_address is not None
    assert layer.nonce(receipt.contract_address) == 1
    failed, _ = run(deposit(to=None, data=bytes.fromhex("60006000f3"), gas_limit=1))
    assert failed.contract_address == receipt.contract_address


@pytest.mark.parametrize(("is_system", "gas"), [(False, GAS), (True, 0)])
def test_before_regolith_a_deposit_reports_its_limit_or_nothing(is_system, gas):
    receipt, layer = run(deposit(is_system=is_system), fork="bedrock")
    assert (receipt.status, receipt.gas_used) == (1, gas)
    assert (receipt.deposit_nonce, receipt.deposit_receipt_version) == (None, None)
    assert layer.nonce(SENDER) == 6


def test_a_deposit_that_a_block_has_no_room_for_is_refused_and_mints_nothing():
    builder = builder_on(Layer.empty(), "karst", gas_limit=GAS - 1)
    with pytest.raises(InvalidTransaction, match="gas limit reached"):
        builder.add(deposit(mint=5))
    assert builder.snapshot().balance(SENDER) == 0
    old = builder_on(Layer.empty(), "bedrock", gas_limit=GAS - 1)
    assert old.add(deposit(is_system=True)).status == 1


def test_the_cap_of_a_transaction_does_not_bind_a_deposit():
    receipt, _ = run(deposit(gas_limit=2**24 + 1))
    assert receipt.status == 1


def test_a_deposit_runs_the_code_that_its_target_delegates_to():
    delegate = b"\xcc" * 20
    layer = Layer.of({TARGET: {"code": b"\xef\x01\x00" + delegate}, delegate: {"code": STORES}})
    builder = builder_on(layer, "isthmus")
    assert builder.add(deposit()).status == 1
    assert builder.snapshot().storage(TARGET, 0) == 1


@pytest.mark.parametrize("vector", vectors_of("receipt"), ids=lambda vector: vector["id"])
def test_the_receipt_commits_to_the_nonce_from_canyon_on(vector):
    receipt = Receipt(
        tx_type=126,
        status=1,
        post_state=None,
        cumulative_gas_used=vector["cumulativeGasUsed"],
        logs=(),
        bloom=bytes(256),
        gas_used=0,
        effective_gas_price=0,
        deposit_nonce=vector["depositNonce"],
        deposit_receipt_version=vector.get("depositReceiptVersion"),
    )
    assert receipt.rlp() == hex_data(vector.get("inRoot") or vector["raw"])


def test_extra_data_of_a_draft_goes_on_with_the_parents_parameters():
    jovian, holocene = schedule_for("jovian"), schedule_for("holocene")
    parent = Header(gas_limit=10**7, base_fee_per_gas=7, extra_data=b"\0" + b"\0\0\0\x07\0\0\0\x05")
    assert draft_header(parent, holocene, timestamp=1).extra_data == parent.extra_data
    assert draft_header(parent, jovian, timestamp=1).extra_data == (
        b"\1" + b"\0\0\0\x07\0\0\0\x05" + bytes(8)
    )
    bare = replace(parent, extra_data=b"")
    assert draft_header(bare, holocene, timestamp=1, extra_data=b"x").extra_data == (
        b"\0" + (250).to_bytes(4, "big") + (6).to_bytes(4, "big")
    )


def test_a_block_of_the_op_stack_collects_no_requests():
    result = builder_on(Layer.empty(), "karst").finish()
    assert result.requests == ()
    assert result.requests_hash is not None
