"""Reads and writes blocks, headers, uncles and withdrawals as JSON, with each fork's members.

The formats are those of deployed nodes: quantities without leading zeros, no ``totalDifficulty``.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Final

from fastevm.core.execution.arbitrum.header import HeaderInfo, is_arbitrum
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.op_stack.base_time import timestamp_millis
from fastevm.core.execution.pow.rewards import block_rewards
from fastevm.core.execution.types import (
    EMPTY_LIST_HASH,
    HEADER_FIELDS,
    JSON_FIELDS,
    Block,
    Header,
    Receipt,
    Withdrawal,
)
from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.errors import InvalidBlock
from fastevm.rpc_types.transactions import mined_transaction_json, transaction_from_json

Json = dict[str, Any]

_WRITERS: Final = tuple(
    (row.json, quantity if row.kind == "int" else hex_bytes) for row in JSON_FIELDS
)
_written_values: Final = attrgetter(*(row.name for row in JSON_FIELDS))


def header_json(header: Header, block_hash: bytes, timestamp_ms: int | None = None) -> Json:
    """Returns the members of a header, except fields that the header's fork does not have.

    ``timestamp_ms``: the timestamp in Unix milliseconds if a transaction of the block sets it
    (Base, Denim). A header of Arbitrum also has the members that Arbitrum's nodes add.
    """
    answer: Json = {
        member: write(value)
        for (member, write), value in zip(_WRITERS, _written_values(header), strict=True)
        if value is not None
    }
    answer["hash"] = hex_bytes(block_hash)
    if timestamp_ms is not None:
        answer["timestampMs"] = quantity(timestamp_ms)
    if is_arbitrum(header):
        info = HeaderInfo.of(header.mix_hash)
        answer["l1BlockNumber"] = quantity(info.l1_number)
        answer["sendCount"] = quantity(info.send_count)
        answer["sendRoot"] = hex_bytes(header.extra_data)
    return answer


def head_json(block: Block, block_hash: bytes) -> Json:
    """Returns the header of a block, with the milliseconds that its transactions set."""
    return header_json(block.header, block_hash, block_millis(block))


def block_millis(block: Block) -> int | None:
    """Returns the timestamp of a block in milliseconds, or None if blocks have whole seconds."""
    return timestamp_millis(block.header, block.transactions)


def block_json(
    block: Block,
    block_hash: bytes,
    *,
    full: bool,
    is_pending: bool = False,
    receipts: Sequence[Receipt] = (),
) -> Json:
    """Returns a block object. With ``full``, it has transaction objects instead of hashes.

    ``is_pending``: the block is pre-confirmed, so its transactions have no block hash. ``receipts``
    are needed only if the block has deposits, because receipts contain the nonces of deposits.
    """
    answer = head_json(block, block_hash)
    shown_hash = None if is_pending else block_hash
    answer["size"] = quantity(block.size)
    answer["uncles"] = [hex_bytes(ommer.hash) for ommer in block.ommers]
    answer["transactions"] = (
        [
            mined_transaction_json(block, i, shown_hash, receipt)
            for i, (_, receipt) in enumerate(zip_longest(block.transactions, receipts))
        ]
        if full
        else [hex_bytes(transaction.hash) for transaction in block.transactions]
    )
    if block.withdrawals is not None:
        answer["withdrawals"] = [withdrawal_json(entry) for entry in block.withdrawals]
    return answer


def withdrawal_json(withdrawal: Withdrawal) -> Json:
    """Returns a withdrawal. Its amount is in gwei."""
    return {
        "index": quantity(withdrawal.index),
        "validatorIndex": quantity(withdrawal.validator_index),
        "address": hex_bytes(withdrawal.address),
        "amount": quantity(withdrawal.amount),
    }


def issuance_json(block: Block, schedule: ForkSchedule) -> Json:
    """Returns the block rewards in wei of the miner and of the uncles' miners.

    The format is that of Otterscan. Rewards are zero under proof of stake.
    """
    *uncles, own = [wei for _, wei in block_rewards(block, schedule)] or [0]
    amounts = {"blockReward": own, "uncleReward": sum(uncles), "issuance": own + sum(uncles)}
    return {name: quantity(amount) for name, amount in amounts.items()}


def uncle_json(ommer: Header) -> Json:
    """Returns an uncle as a block object without transactions."""
    answer = header_json(ommer, ommer.hash)
    answer["size"] = quantity(Block(ommer).size)
    answer["uncles"] = []
    return answer


# --- reading --------------------------------------------------------------------------------------


def block_from_rlp(raw: bytes) -> Block:
    """Decodes a block from its exact RLP. Raises ValueError with the reason."""
    try:
        return decode_block(raw)
    except InvalidBlock as error:
        raise ValueError(str(error)) from None


def block_from_json(found: Mapping[str, Any]) -> Block:
    """Reads a post-merge block with full transaction objects.

    Raises ValueError for an invalid member, or if the block's hash differs from its ``hash``.
    """
    header = header_from_json(found)
    if header.ommers_hash != EMPTY_LIST_HASH:
        raise ValueError("block: its uncles are not in the JSON")
    withdrawals = found.get("withdrawals")
    block = Block(
        header,
        tuple(transaction_from_json(item) for item in found.get("transactions") or ()),
        withdrawals=None if withdrawals is None else tuple(map(_read_withdrawal, withdrawals)),
    )
    if block.hash != read_bytes(found.get("hash"), "hash", 32):
        raise ValueError(f"block {header.number}: its header does not hash to its hash")
    return block


def header_from_json(found: Mapping[str, Any]) -> Header:
    """Reads the header of a block object. Ignores the hash.

    Raises ValueError for invalid members.
    """
    fields: dict[str, Any] = {
        row.name: (read_number if row.kind == "int" else read_bytes)(value, row.json)
        for row in HEADER_FIELDS
        if (value := found.get(row.json)) is not None
    }
    return Header(**fields)


def _read_withdrawal(found: Mapping[str, Any]) -> Withdrawal:
    return Withdrawal(
        index=_read_number(found, "index"),
        validator_index=_read_number(found, "validatorIndex"),
        address=read_bytes(found["address"], "withdrawals", 20),
        amount=_read_number(found, "amount"),
    )


def _read_number(found: Mapping[str, Any], name: str) -> int:
    return read_number(found.get(name), name)
