"""Tests that executing a built block gives the same result, and that rejections change nothing."""

import threading
from types import SimpleNamespace

import pytest
import rlp

from fastevm.conformance.pre_states import Recorded
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.block.block import BlockBuilder, execute_block
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header, Withdrawal
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.simulation.runner import Runner
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.errors import FastevmError, InvalidBlock, InvalidTransaction
from tests.unit.core.trie.reference import root_of

KEY = b"\x11" * 32
SENDER = public_key_address(KEY)
RECIPIENT = b"\x22" * 20
COINBASE = b"\x33" * 20
BEACON_ROOTS = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")
HISTORY = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
REQUESTS = (
    bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002"),
    bytes.fromhex("0000bbddc7ce488642fb579f8b00f3a590007251"),
)
# SSTORE(0, CALLDATALOAD(0))
STORE = bytes.fromhex("5f355f55")
# LOG1 with the topic 7 and two bytes of data, then LOG0 with the same data.
LOGGER = bytes.fromhex("600760025fa160025fa0")
# Returns three zero bytes.
THREE = bytes.fromhex("60035ff3")


def state():
    accounts = {SENDER: {"balance": 10**20}, RECIPIENT: {"code": LOGGER}}
    accounts |= {address: {"code": b"\x00"} for address in REQUESTS}
    return Layer.of(accounts)


def parent_header(schedule, **changes):
    """Returns a header with all fields of its fork."""
    rules = schedule.parameters
    fields = {"gas_limit": 30_000_000}
    if not rules["proof_of_stake"]:
        fields["difficulty"] = 0x20000
    if rules["has_base_fee"]:
        fields["base_fee_per_gas"] = 10**9
    if rules["has_withdrawals"]:
        fields["withdrawals_root"] = bytes(32)
    if rules["has_blobs"]:
        fields |= {"excess_blob_gas": 0, "blob_gas_used": 0}
        fields["parent_beacon_block_root"] = bytes(32)
    if rules["has_requests"]:
        fields["requests_hash"] = bytes(32)
    return Header(**fields | changes)


def builder(layer=None, fork="Osaka", gas_limit=30_000_000, **options):
    schedule = schedule_for(fork)
    parent = parent_header(schedule, gas_limit=gas_limit)
    header = draft_header(
        parent, schedule, timestamp=12, coinbase=COINBASE, parent_beacon_block_root=b"\x0b" * 32
    )
    options = {"withdrawals": ()} | options if schedule.parameters["has_withdrawals"] else options
    return BlockBuilder(
        state() if layer is None else layer,
        header,
        schedule,
        chain_id=1,
        deposit_contract=b"\x0d" * 20,
        ancestors=[parent.hash],
        **options,
    )


def call(nonce, to=RECIPIENT, **fields):
    fields = {"gas_limit": 100_000, "gas_price": 2 * 10**9} | fields
    return Transaction.build(nonce=nonce, to=to, **fields).sign(KEY)


def independent_root(items):
    return root_of({rlp.encode(index): item for index, item in enumerate(items)})


@pytest.mark.parametrize("count", [0, 1, 2, 17, 130, 260])
def test_ordered_roots_are_those_of_an_independent_trie(count):
    items = [bytes([i % 251 + 1]) * (i % 70 + 1) for i in range(count)]
    assert ordered_root(items) == independent_root(items)


@pytest.mark.parametrize("fork", ["Frontier", "Byzantium", "Berlin", "London", "Osaka"])
def test_a_sealed_block_executes_to_the_same_result(fork):
    made = builder(fork=fork)
    made.begin()
    for nonce in range(3):
        made.add(call(nonce))
    block, built = made.seal()
    executed = execute_block(
        state(),
        block,
        schedule_for(fork),
        chain_id=1,
        deposit_contract=b"\x0d" * 20,
        ancestors=[block.header.parent_hash],
    )
    assert executed.state_root == built.state_root == block.header.state_root
    assert executed.receipts == built.receipts
    assert block.header.receipts_root == independent_root([r.rlp() for r in built.receipts])
    assert block.header.transactions_root == independent_root([t.raw for t in block.transactions])
    assert block.header.gas_used == built.receipts[-1].cumulative_gas_used


def test_a_receipt_says_what_happened():
    made = builder()
    made.begin()
    first, second = made.add(call(0)), made.add(call(1, to=None, data=b"\xfe"))
    assert (first.status, second.status) == (1, 0)
    assert [len(log.topics) for log in first.logs] == [1, 0]
    assert first.logs[0].address == RECIPIENT
    assert first.logs[0].topics == ((7).to_bytes(32, "big"),)
    assert second.logs == ()
    assert second.gas_used == 100_000
    assert second.cumulative_gas_used == first.gas_used + 100_000
    assert first.contract_address is None
    assert second.contract_address == keccak256(rlp.encode([SENDER, 1]))[12:]
    assert first.effective_gas_price == 2 * 10**9
    assert made.receipts == (first, second)


def test_the_bloom_holds_addresses_and_topics():
    made = builder()
    made.begin()
    receipt = made.add(call(0))
    expected = bytearray(256)
    for value in (RECIPIENT, (7).to_bytes(32, "big")):
        digest = keccak256(value)
        for at in (0, 2, 4):
            bit = int.from_bytes(digest[at : at + 2], "big") & 2047
            expected[255 - bit // 8] |= 1 << bit % 8
    assert receipt.bloom == bytes(expected)
    assert made.finish().logs_bloom == bytes(expected)


def test_before_byzantium_a_receipt_holds_the_state_after_its_transaction():
    made = builder(fork="Frontier")
    made.begin()
    receipts, roots = [], []
    for nonce in range(2):
        receipts.append(made.add(call(nonce)))
        roots.append(made.snapshot().state_root())
    assert [r.post_state for r in receipts] == roots
    assert [r.status for r in receipts] == [None, None]


def test_a_refused_transaction_changes_nothing():
    made, expected = builder(), builder()
    made.begin()
    expected.begin()
    for built in (made, expected):
        built.add(call(0))
    for refused in (call(0), call(5), call(1, gas_limit=2**24 + 1), call(1, value=10**21)):
        with pytest.raises(InvalidTransaction):
            made.add(refused)
    for built in (made, expected):
        built.add(call(1))
    assert made.seal()[0] == expected.seal()[0]


def test_gas_is_limited_by_the_block():
    made = builder(gas_limit=250_000)
    made.begin()
    made.add(call(0, to=None, data=b"\xfe"))
    made.add(call(1, to=None, data=b"\xfe"))
    with pytest.raises(InvalidTransaction) as caught:
        made.add(call(2))
    assert caught.value.code == "block_gas_limit"
    assert made.gas_used == 200_000


def blobs(nonce, count, to=RECIPIENT):
    return Transaction.build(
        type=3,
        nonce=nonce,
        to=to,
        gas_limit=100_000,
        max_fee_per_gas=2 * 10**9,
        max_fee_per_blob_gas=5,
        blob_versioned_hashes=[b"\x01" * 32] * count,
    ).sign(KEY)


def test_blobs_are_limited_by_the_block():
    made = builder()
    made.begin()
    receipt = made.add(blobs(0, 6))
    assert (receipt.blob_gas_used, receipt.blob_gas_price) == (6 * 2**17, 1)
    with pytest.raises(InvalidTransaction) as caught:
        made.add(blobs(1, 4))
    assert (caught.value.code, caught.value.have, caught.value.want) == ("too_many_blobs", 10, 9)
    made.add(blobs(1, 3))
    block, result = made.seal()
    assert block.header.blob_gas_used == result.blob_gas_used == 9 * 2**17


def test_a_snapshot_is_the_state_so_far_and_stays_so():
    made = builder()
    made.begin()
    before = made.snapshot()
    made.add(call(0, value=3))
    first = made.snapshot()
    made.add(call(1, value=4))
    assert [layer.balance(RECIPIENT) for layer in (before, first, made.snapshot())] == [0, 3, 7]
    assert made.snapshot().nonce(SENDER) == 2
    assert first.nonce(SENDER) == 1


def test_snapshots_do_not_change_the_block():
    made, expected = builder(), builder()
    for built in (made, expected):
        built.begin()
        for nonce in range(3):
            built.add(call(nonce, value=nonce))
            if built is made:
                built.snapshot().state_root()
    assert made.seal()[0] == expected.seal()[0]


def test_the_system_contracts_are_called_at_the_start():
    accounts = {BEACON_ROOTS: {"code": STORE}, HISTORY: {"code": STORE}}
    made = builder(state().with_accounts(accounts))
    made.begin()
    layer = made.snapshot()
    assert layer.storage(BEACON_ROOTS, 0) == int.from_bytes(b"\x0b" * 32, "big")
    assert layer.storage(HISTORY, 0) == int.from_bytes(made.header.parent_hash, "big")
    assert made.gas_used == 0


def test_system_calls_do_not_read_the_account_that_they_come_from():
    remote = RemoteState(Recorded({HISTORY: {"nonce": 1, "code": STORE}}))

    def begin():
        made = builder(Layer.remote(remote))
        made.begin()
        return made.snapshot()

    layer = remote.run_resolved(begin)
    assert layer.storage(HISTORY, 0) == int.from_bytes(builder(state()).header.parent_hash, "big")
    assert remote.known_values().accounts.keys() == {BEACON_ROOTS, HISTORY}


def test_missing_or_failing_contracts_at_the_start_are_passed_over():
    made = builder(state().with_accounts({BEACON_ROOTS: {"code": b"\xfe"}}))
    made.begin()
    assert (
        made.snapshot().state_root()
        == state().with_accounts({BEACON_ROOTS: {"code": b"\xfe"}}).state_root()
    )


def test_the_output_of_the_request_contracts_is_what_is_requested():
    made = builder(state().with_accounts({REQUESTS[1]: {"code": THREE}}))
    made.begin()
    assert made.finish().requests == (b"\x02" + bytes(3),)


def test_logs_of_system_calls_are_in_no_receipt():
    made = builder(state().with_accounts({REQUESTS[0]: {"code": LOGGER}}))
    made.begin()
    made.add(call(0, to=COINBASE))
    result = made.finish()
    assert result.logs_bloom == bytes(256)
    assert result.receipts[0].logs == ()


def test_a_malformed_deposit_makes_the_block_invalid():
    topic = "649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5"
    code = bytes.fromhex("7f" + topic + "60205fa1")
    made = builder(state().with_accounts({b"\x0d" * 20: {"code": code}}))
    made.begin()
    made.add(call(0, to=b"\x0d" * 20))
    with pytest.raises(InvalidBlock) as caught:
        made.finish()
    assert caught.value.field == "deposits"


def test_withdrawals_to_nobody_leave_no_empty_account():
    made = builder(withdrawals=[Withdrawal(0, 0, b"\x44" * 20, 0)])
    made.begin()
    assert made.finish().layer.account(b"\x44" * 20) is None


def test_a_root_that_nobody_wants_is_not_computed():
    made = builder()
    made.begin()
    block, result = made.seal(state_root=False)
    assert block.header.state_root == result.state_root == bytes(32)


def test_the_steps_have_an_order():
    made = builder()
    with pytest.raises(FastevmError, match="has not begun"):
        made.add(call(0))
    made.begin()
    with pytest.raises(FastevmError, match="has begun"):
        made.begin()
    made.seal()
    with pytest.raises(FastevmError, match="is sealed"):
        made.add(call(0))


def test_receipts_are_asked_for_by_index():
    made = builder()
    made.begin()
    with pytest.raises(IndexError):
        made.receipt(0)


def test_a_block_in_use_is_refused_to_threads_and_to_its_own_function():
    refused = []

    def try_to(use):
        try:
            use()
        except RuntimeError as error:
            refused.append(str(error))

    def root_of(layer):
        for use in (
            lambda: made.add(call(1)), lambda: made.add_all([call(1)]), made.seal, made.snapshot,
            lambda: made.receipts, lambda: made.receipts_root, lambda: made.logs_bloom,
            made.access_list, lambda: made.gas_used, lambda: made.blob_gas_used,
        ):  # fmt: skip
            try_to(use)
            other = threading.Thread(target=try_to, args=[use])
            other.start()
            other.join()
        return b"\x07" * 32

    made = builder(fork="Homestead", root_of=root_of)
    made.begin()
    made.add(call(0))
    assert len(refused) == 20
    assert {"this block is in use" in each for each in refused} == {True}
    assert made.receipts[0].post_state == b"\x07" * 32
    assert made.seal()[0].transactions == made.transactions


def test_a_root_of_another_size_is_refused():
    made = builder(fork="Homestead", root_of=lambda layer: b"short")
    made.begin()
    with pytest.raises(ValueError):
        made.add(call(0))


def test_a_builder_is_set_up_once():
    made = builder()
    made.begin()
    made.add(call(0))
    with pytest.raises(RuntimeError):
        made.__init__(
            Layer.empty(), made.header, made.schedule, chain_id=1, deposit_contract=bytes(20)
        )
    assert len(made.seal()[0].transactions) == 1


def view(**changes):
    """Returns a view of a block of ``builder``, with only the members that a runner reads."""
    draft, schedule = builder().header, schedule_for("Osaka")
    config = SimpleNamespace(**{"chain_id": 1, "deposit_contract": b"\x0d" * 20} | changes)
    return SimpleNamespace(
        layer=state(), header=draft, schedule=schedule, config=config, ancestors=()
    )


def test_a_runner_opens_blocks_in_turn_and_a_refused_one_leaves_the_block_before():
    runner = Runner()
    for count in (2, 1):
        runner.open(view(), withdrawals=())
        assert (runner.receipts, runner.transactions, runner.gas_used) == ((), (), 0)
        runner.begin()
        for nonce in range(count):
            assert len(runner.add(call(nonce)).logs) == 2
    with pytest.raises(ValueError, match="deposit_contract: expected 20 bytes, found 1"):
        runner.open(view(deposit_contract=b"\x0d"), withdrawals=())
    block, result = runner.seal()
    assert (len(block.transactions), len(result.receipts)) == (1, 1)


def test_a_runner_opens_no_block_while_another_thread_uses_it():
    refused = []

    class Asked(Runner):
        def rewards(self, draft):
            other = threading.Thread(target=open_it)
            other.start()
            other.join()
            return super().rewards(draft)

    def open_it():
        with pytest.raises(RuntimeError, match="this block is in use") as caught:
            runner.open(view(), withdrawals=())
        refused.append(caught.value)

    runner = Asked()
    runner.open(view(), withdrawals=())
    runner.begin()
    runner.add(call(0))
    assert len(runner.seal()[0].transactions) == len(refused) == 1


FAR = bytes.fromhex("6001621e8480526004621e8480a0")


def test_a_block_is_the_same_in_the_memory_of_one_that_was_dropped():
    def made():
        fresh = builder()
        fresh.begin()
        fresh.add_all([call(0)])
        fresh.add(call(1))
        return fresh

    block, first = made().seal()
    large = builder(state().with_accounts({RECIPIENT: {"code": FAR}}))
    large.begin()
    assert large.add(call(0, gas_limit=16_000_000)).status == 1
    large.cancel()
    with pytest.raises(InvalidTransaction, match="abort"):
        large.add(call(1))
    del large
    again = made()
    assert [transaction.nonce for transaction in again.transactions] == [0, 1]
    same, second = again.seal()
    assert (same, second.state_root) == (block, first.state_root)


def test_a_block_that_is_being_made_cannot_be_used() -> None:
    """While ``__init__`` runs, another thread must not use the builder: it could read freed memory.

    ``__init__`` iterates over ``ommers``, which starts that thread.
    """
    made = BlockBuilder.__new__(BlockBuilder)
    found: list[BaseException | None] = []

    def use(action) -> None:
        try:
            action()
        except RuntimeError as error:
            found.append(error)
        else:
            found.append(None)

    def ommers():
        other = threading.Thread(target=use, args=(made.snapshot,))
        other.start()
        other.join()
        yield from ()

    options = {"chain_id": 1, "deposit_contract": bytes(20), "ommers": ommers()}
    header = draft_header(
        parent_header(schedule_for("London")), schedule_for("London"), timestamp=12,
        coinbase=COINBASE,
    )  # fmt: skip
    made.__init__(state(), header, schedule_for("London"), **options)
    assert [str(error) for error in found] == [
        "this block is in use; give each thread a block of its own"
    ]
    assert made.snapshot().state_root() == state().state_root()
