"""Tests following an OP-stack chain: the checks of each feed format."""

from typing import Any

import pytest

from fastevm.core.execution.op_stack.predeploys import L2_TO_L1_MESSAGE_PASSER
from fastevm.core.primitives.replace import replace

from .op_feeding import OpSink, OpSource, op_genesis, provisional, subblock

# For each fork, the upgrades that `forked` activates. Genesis has the rules of Granite.
FORKS = {
    "granite": {},
    "holocene": {"holoceneTime": 0},
    "isthmus": {"holoceneTime": 0, "isthmusTime": 0},
    "jovian": {"holoceneTime": 0, "isthmusTime": 0, "jovianTime": 0},
    "karst": {"holoceneTime": 0, "isthmusTime": 0, "jovianTime": 0, "karstTime": 0},
}


def forked(fork: str, delay: int = 0) -> dict[str, Any]:
    """Returns a genesis that activates ``fork`` in block 1, or ``delay`` seconds later."""
    genesis = op_genesis()
    start = int(genesis["timestamp"], 16)
    times = dict.fromkeys(FORKS[fork], start + 1 + delay)
    return {**genesis, "config": {**genesis["config"], **times}}


@pytest.fixture
def genesis() -> dict[str, Any]:
    return forked("isthmus")


@pytest.mark.parametrize("fork", FORKS)
@pytest.mark.parametrize("form", [lambda message: message, provisional, subblock])
def test_a_block_is_followed_in_every_form(fork: str, form: Any) -> None:
    genesis = forked(fork)
    source, sink = OpSource(genesis), OpSink(genesis)
    for number in (1, 2):
        sink.receive(form(source.begin()), form(source.slice()))
        # the first block of Jovian or a later fork may contain only deposits
        payments = (source.payment(),) if number == 2 else ()
        sink.receive(form(source.slice(*payments)))
        assert sink.position() == (number, 2)
        block = source.seal()
        pending = sink.node.pending()
        assert [transaction.hash for transaction in pending.transactions] == [
            transaction.hash for transaction in block.transactions
        ]
        assert pending.header.receipts_root == block.header.receipts_root
        sink.node.add_block(block.rlp())
        assert sink.node.metrics_registry.get("reconcile_mismatch_total") == 0
    assert sink.node.metrics_registry.get("feed_divergence_total") == 0
    assert sink.node.chain.head == source.chain.head


@pytest.mark.parametrize("times", [(), ("canyonTime",), ("canyonTime", "ecotoneTime")])
@pytest.mark.parametrize("delay", [1, 2])
def test_the_first_block_of_an_old_fork_is_followed(times: tuple[str, ...], delay: int) -> None:
    genesis = op_genesis("base-sepolia")
    kept = {key: at for key, at in genesis["config"].items() if not key.endswith("Time")}
    at = int(genesis["timestamp"], 16) + delay
    genesis["config"] = {**kept, "regolithTime": 0, **dict.fromkeys(times, at)}
    source, sink = OpSource(genesis), OpSink(genesis)
    blocks = []
    for _ in range(3):  # the second and third block arrive while their parent is pending
        sink.receive(source.begin(), source.slice(source.payment()))
        blocks.append(source.seal())
    assert sink.position() == (3, 1)
    for block in blocks:
        sink.node.add_block(block.rlp())
    assert sink.node.metrics_registry.get("reconcile_mismatch_total") == 0
    assert sink.node.metrics_registry.get("feed_divergence_total") == 0


def test_a_withdrawal_changes_the_root_that_a_message_tells(genesis: dict[str, Any]) -> None:
    source, sink = OpSource(genesis), OpSink(genesis)
    roots = [source.begin().withdrawals_root]
    messages = [source.slice(source.payment(L2_TO_L1_MESSAGE_PASSER)), source.slice()]
    roots += [message.withdrawals_root for message in messages]
    block = source.seal()
    assert roots[0] != roots[1] == roots[2] == block.header.withdrawals_root
    source, sink = OpSource(genesis), OpSink(genesis)
    sink.receive(source.begin(), source.slice(source.payment(L2_TO_L1_MESSAGE_PASSER)))
    assert sink.position() == (1, 1)
    assert sink.node.pending().header.withdrawals_root == roots[1]
    sink.receive(subblock(source.slice()))
    assert sink.node.pending().header.withdrawals_root == bytes(32)
    sink.receive(replace(source.slice(), withdrawals_root=roots[0]))
    assert sink.position() is None


def test_the_next_block_begins_on_the_pending_one(genesis: dict[str, Any]) -> None:
    source, sink = OpSource(genesis), OpSink(genesis)
    for _ in range(2):
        sink.receive(source.begin(), source.slice(source.payment()))
        source.seal()
    assert sink.position() == (2, 1)


def change_base(message: Any, **changes: Any) -> Any:
    return replace(message, base=replace(message.base, **changes))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: change_base(m, base_fee_per_gas=m.base.base_fee_per_gas + 1),
        lambda m: change_base(m, timestamp=m.base.timestamp + 1),
        lambda m: change_base(m, timestamp=m.base.timestamp - 1),
        lambda m: change_base(m, extra_data=b""),
        lambda m: change_base(m, extra_data=bytes(17)),
        lambda m: change_base(m, extra_data=b"\x01" + m.base.extra_data[1:]),
        lambda m: replace(m, gas_used=m.gas_used + 1),
        lambda m: replace(m, receipts_root=b"\x01" * 32),
        lambda m: replace(m, logs_bloom=b"\x01" * 256),
        lambda m: replace(m, blob_gas_used=1),
        lambda m: replace(m, withdrawals_root=b"\x01" * 32),
        lambda m: replace(m, state_root=b"\x01" * 32),
        lambda m: replace(m, block_hash=b"\x01" * 32),
        lambda m: replace(m, transactions=()),
        lambda m: replace(m, post_exec_tx=b"\x7d\xc0"),
    ],
)
def test_a_first_message_that_breaks_a_rule_begins_nothing(
    genesis: dict[str, Any], change: Any
) -> None:
    source, sink = OpSource(genesis), OpSink(genesis)
    message = source.begin()
    sink.receive(change(message))
    assert sink.position() is None
    assert sink.node.metrics_registry.get("feed_divergence_total") == 1
    sink.receive(message)
    assert sink.position() == (1, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"source_hash": b"\x01" * 32},
        {"to": b"\x42" + bytes(19)},
        {"sender": b"\x42" + bytes(19)},
        {"data": bytes(164)},
        {"data": bytes.fromhex("098999be") + bytes(172)},
        {"data": bytes.fromhex("440a5e20") + bytes(163)},
    ],
)
def test_a_block_must_begin_with_the_attributes(
    genesis: dict[str, Any], changes: dict[str, Any]
) -> None:
    source, sink = OpSource(genesis), OpSink(genesis)
    timestamp = source.chain.head.header.timestamp + 1
    sink.receive(source.begin(source.attributes(timestamp, **changes)))
    assert sink.position() is None
    assert sink.node.metrics_registry.get("feed_divergence_total") == 1


def test_two_messages_for_one_place_withdraw_the_block(genesis: dict[str, Any]) -> None:
    source, sink = OpSource(genesis), OpSink(genesis)
    first, second = source.begin(), source.slice(source.payment())
    sink.receive(first, second, first, second)
    assert sink.position() == (1, 1)
    sink.receive(replace(second, gas_used=1))
    assert sink.position() is None
    metrics = sink.node.metrics_registry
    assert metrics.get('feed_sequence_total{verdict="duplicate"}') == 2
    assert metrics.get('feed_sequence_total{verdict="conflict"}') == 1


def test_a_hash_without_a_state_root_is_counted_only(genesis: dict[str, Any]) -> None:
    source, sink = OpSource(genesis), OpSink(genesis)
    sink.receive(replace(source.begin(), state_root=bytes(32), block_hash=b"\x01" * 32))
    assert sink.position() == (1, 0)
    assert sink.node.metrics_registry.get("feed_provisional_hash_mismatch_total") == 1


def test_what_is_not_checked_is_named(genesis: dict[str, Any]) -> None:
    source, sink = OpSource(genesis), OpSink(genesis)
    assert sink.follower.unverified is None
    always = {"gas_limit", "prev_randao", "parent_beacon_block_root", "deposits", "signature"}
    first = source.begin()
    sink.receive(first)
    assert set(sink.follower.unverified) == always
    sink.receive(provisional(source.slice()))
    assert set(sink.follower.unverified) == always | {"state_root", "block_hash"}
    sink.receive(replace(subblock(source.slice()), blob_gas_used=None))
    left = {"state_root", "block_hash", "withdrawals_root", "blob_gas_used"}
    assert set(sink.follower.unverified) == always | left
