"""Checks the messages of a feed, and lists the values that a follower cannot check.

Source: OP Stack specification, subblocks and flashblocks; L1 attributes deposited transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastevm.chain.config import MS_PER_SECOND, ChainConfig
from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.block.fees import next_excess_blob_gas
from fastevm.core.execution.block.header_draft import later_fields
from fastevm.core.execution.block.validation import validate_header
from fastevm.core.execution.op_stack.l1_attributes import (
    attributes_of,
    attributes_selector,
    attributes_source_hash,
)
from fastevm.core.execution.op_stack.predeploys import message_passer_root
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import EMPTY_ROOT, LATER_FIELDS, ZERO_HASH, Header
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.errors import FastevmError
from fastevm.rpc_types.feed import FeedBase, FeedSlice

# name of the sequencer's signature, which messages lack: only TLS protects the connection
SIGNATURE = "signature"
UNKNOWN_WITHOUT_L1 = ("gas_limit", "prev_randao", "parent_beacon_block_root", "deposits")
UNKNOWN_WITHOUT_CONSENSUS = ("prev_randao", "parent_beacon_block_root")


class Divergence(FastevmError):
    """A message of a feed breaks a rule, or its execution gives another result."""


def draft_of(base: FeedBase, parent: Header, schedule: ForkSchedule) -> Header:
    """Returns the draft header of the block that a feed started on ``parent``."""
    given = {row.name: getattr(base, row.name, None) for row in LATER_FIELDS}
    if schedule.parameters["has_blobs"]:
        given["excess_blob_gas"] = next_excess_blob_gas(parent, schedule)
    return Header(
        parent_hash=base.parent_hash,
        coinbase=base.fee_recipient,
        number=base.block_number,
        gas_limit=base.gas_limit,
        timestamp=base.timestamp,
        extra_data=base.extra_data,
        mix_hash=base.prev_randao,
        **later_fields(schedule, given, parent),
    )


def announced_header(draft: Header, transactions_root: bytes, message: FeedSlice) -> Header:
    """Returns the header that a message describes for the block so far, without executing it.

    ``draft``: see `draft_of`. ``transactions_root``: 32 bytes, over all transactions so far. If the
    message has a block hash, it must be the hash of this header.
    """
    tells_withdrawals = draft.withdrawals_root is not None and message.withdrawals_root != ZERO_HASH
    return replace(
        draft,
        state_root=message.state_root,
        transactions_root=transactions_root,
        receipts_root=message.receipts_root,
        logs_bloom=message.logs_bloom,
        gas_used=message.gas_used,
        withdrawals_root=message.withdrawals_root if tells_withdrawals else draft.withdrawals_root,
        blob_gas_used=None if draft.blob_gas_used is None else message.blob_gas_used or 0,
    )


def check_draft(draft: Header, parent: Header, schedule: ForkSchedule, config: ChainConfig) -> None:
    """Raises InvalidBlock if a block with this draft is invalid as a child of ``parent``.

    Checks the base fee, the form of the extra data, the timestamp and, if the rules limit it, the
    gas limit. Does not compare the parent's hash.
    """
    step = config.least_timestamp_step
    if config.fixed_block_time:
        step = config.block_time_ms // MS_PER_SECOND
        if step and draft.timestamp != parent.timestamp + step:
            expected = parent.timestamp + step
            raise Divergence(f"timestamp: expected {expected}, found {draft.timestamp}")
    validate_header(
        replace(draft, parent_hash=parent.hash), parent, schedule, least_timestamp_step=step
    )


def check_parent(last: FeedSlice, base: FeedBase) -> None:
    """Raises Divergence if the parent of a new block is not the block of the last slice.

    Only a slice with a state root has the hash of the final block.
    """
    if ZERO_HASH not in (last.state_root, last.block_hash) and base.parent_hash != last.block_hash:
        raise Divergence(f"block {base.block_number} has another parent than slice {last.id}")


def check_attributes(
    transactions: Sequence[Transaction],
    number: int,
    schedule: ForkSchedule,
    parent_schedule: ForkSchedule,
) -> None:
    """Raises Divergence if a block with deposits does not begin with the L1 attributes.

    In the first block of a fork, the attributes still have the form of the previous fork,
    ``parent_schedule``. The source hash must match the attributes. The values of the attributes are
    not checked, because this node does not read L1.
    """
    if not schedule.parameters["has_deposits"]:
        return
    found = attributes_of(tuple(transactions[:1]))
    if found is None:
        raise Divergence(f"block {number} does not begin with the L1 attributes")
    first = transactions[0]
    forms = {attributes_selector(schedule), attributes_selector(parent_schedule)}
    if first.data[:4] not in forms:
        raise Divergence(f"L1 attributes: selector 0x{first.data[:4].hex()} of another fork")
    expected = attributes_source_hash(found)
    if first.source_hash != expected:
        raise Divergence(f"L1 attributes: the source hash is not 0x{expected.hex()}")


def check_gas(transaction: Transaction, left: int) -> None:
    """Raises Divergence if a transaction's gas limit exceeds the ``left`` gas of its block.

    Deposits count like other transactions; only system transactions (before Regolith) do not count.
    Without this check, a deposit with a gas limit of 2^62 could run forever.
    """
    if transaction.gas_limit > left and not transaction.is_system:
        limit = transaction.gas_limit
        raise Divergence(f"a transaction of {limit} gas, of which the block has {left} left")


def with_withdrawals(pending: PendingBlock, message: FeedSlice) -> PendingBlock:
    """Returns the pending block with the withdrawals root of the message, if the message has
    one.
    """
    if message.withdrawals_root == ZERO_HASH or pending.header.withdrawals_root is None:
        return pending
    header = replace(pending.header, withdrawals_root=message.withdrawals_root)
    return replace(pending, header=header)


def check_outcome(pending: PendingBlock, message: FeedSlice, schedule: ForkSchedule) -> None:
    """Raises Divergence if the execution of a slice gave another result than announced.

    Compares gas, receipts root, bloom and, if present, blob gas. Compares state root and
    withdrawals root only if they are not zero. ``pending`` must have the message's withdrawals
    root.
    """
    header, layer = pending.header, pending.layer
    named: list[tuple[str, bytes | int | None, bytes | int | None]] = [
        ("gas used", header.gas_used, message.gas_used),
        ("receipts root", header.receipts_root, message.receipts_root),
        ("logs bloom", header.logs_bloom, message.logs_bloom),
    ]
    if message.blob_gas_used is not None and header.blob_gas_used is not None:
        named.append(("blob gas used", header.blob_gas_used, message.blob_gas_used))
    if message.withdrawals_root != ZERO_HASH and header.withdrawals_root is not None:
        found = EMPTY_ROOT
        if schedule.parameters["commits_to_withdrawals"]:
            found = message_passer_root(layer)
        named.append(("withdrawals root", found, message.withdrawals_root))
    if message.state_root != ZERO_HASH:
        named.append(("state root", layer.state_root(), message.state_root))
        if message.block_hash != ZERO_HASH:
            announced = replace(header, state_root=message.state_root)
            named.append(("block hash", announced.hash, message.block_hash))
    for name, result, expected in named:
        if result != expected:
            raise Divergence(f"slice {message.id}: another {name} than announced")


def unverified(message: FeedSlice, schedule: ForkSchedule) -> tuple[str, ...]:
    """Returns the names of values that this node cannot check in a message, or that the message
    lacks.
    """
    rules = schedule.parameters
    deposits = bool(rules["has_deposits"])
    found = [*(UNKNOWN_WITHOUT_L1 if deposits else UNKNOWN_WITHOUT_CONSENSUS), SIGNATURE]
    checks = {
        "state_root": message.state_root != ZERO_HASH,
        "block_hash": ZERO_HASH not in (message.block_hash, message.state_root),
        "withdrawals_root": message.withdrawals_root != ZERO_HASH or not rules["has_withdrawals"],
        "blob_gas_used": message.blob_gas_used is not None or not rules["has_blobs"],
    }
    return tuple(found + [name for name, known in checks.items() if not known])
