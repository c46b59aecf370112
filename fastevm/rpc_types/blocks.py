"""Blocks, headers, uncles and withdrawals as JSON, written and read, with each fork's members.

Shapes are those of deployed nodes: quantities without leading zeros, no ``totalDifficulty``.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.pow.rewards import block_rewards
from fastevm.core.execution.types import EMPTY_LIST_HASH, Block, Header, Receipt, Withdrawal
from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.errors import InvalidBlock
from fastevm.rpc_types.transactions import mined_transaction_json, transaction_from_json

Json = dict[str, Any]

# Header field -> JSON member, where the member is not the field's name in camel case.
HEADER_MEMBERS: Final = {
    "ommers_hash": "sha3Uncles",
    "coinbase": "miner",
    "receipts_root": "receiptsRoot",
    "logs_bloom": "logsBloom",
}
HEADER_BYTES: Final = {
    "parent_hash", "ommers_hash", "coinbase", "state_root", "transactions_root", "receipts_root",
    "logs_bloom", "extra_data", "mix_hash", "nonce", "withdrawals_root",
    "parent_beacon_block_root", "requests_hash", "block_access_list_hash",
}  # fmt: skip


def header_json(header: Header, block_hash: bytes) -> Json:
    """Return the members that a header alone gives."""
    answer: Json = {
        "difficulty": quantity(header.difficulty),
        "extraData": hex_bytes(header.extra_data),
        "gasLimit": quantity(header.gas_limit),
        "gasUsed": quantity(header.gas_used),
        "hash": hex_bytes(block_hash),
        "logsBloom": hex_bytes(header.logs_bloom),
        "miner": hex_bytes(header.coinbase),
        "mixHash": hex_bytes(header.mix_hash),
        "nonce": hex_bytes(header.nonce),
        "number": quantity(header.number),
        "parentHash": hex_bytes(header.parent_hash),
        "receiptsRoot": hex_bytes(header.receipts_root),
        "sha3Uncles": hex_bytes(header.ommers_hash),
        "stateRoot": hex_bytes(header.state_root),
        "timestamp": quantity(header.timestamp),
        "transactionsRoot": hex_bytes(header.transactions_root),
    }
    answer.update(_later_members(header))
    return answer


def _later_members(header: Header) -> Json:
    """Return the members that came with London and the forks after it, where present."""
    numbers = {
        "baseFeePerGas": header.base_fee_per_gas,
        "blobGasUsed": header.blob_gas_used,
        "excessBlobGas": header.excess_blob_gas,
        "slotNumber": header.slot_number,
    }
    hashes = {
        "withdrawalsRoot": header.withdrawals_root,
        "parentBeaconBlockRoot": header.parent_beacon_block_root,
        "requestsHash": header.requests_hash,
        "blockAccessListHash": header.block_access_list_hash,
    }
    answer: Json = {name: quantity(v) for name, v in numbers.items() if v is not None}
    answer.update({name: hex_bytes(v) for name, v in hashes.items() if v is not None})
    return answer


def block_json(
    block: Block,
    block_hash: bytes,
    *,
    full: bool,
    is_pending: bool = False,
    receipts: Sequence[Receipt] = (),
) -> Json:
    """Return a block object; ``full`` puts transaction objects in place of hashes.

    ``is_pending``: the block is pre-confirmed, so that its transactions have no block hash.
    ``receipts`` tell the nonces of deposits.
    """
    answer = header_json(block.header, block_hash)
    place = None if is_pending else block_hash
    answer["size"] = quantity(block.size)
    answer["uncles"] = [hex_bytes(ommer.hash) for ommer in block.ommers]
    answer["transactions"] = (
        [
            mined_transaction_json(block, i, place, receipt)
            for i, (_, receipt) in enumerate(zip_longest(block.transactions, receipts))
        ]
        if full
        else [hex_bytes(transaction.hash) for transaction in block.transactions]
    )
    if block.withdrawals is not None:
        answer["withdrawals"] = [withdrawal_json(entry) for entry in block.withdrawals]
    return answer


def withdrawal_json(withdrawal: Withdrawal) -> Json:
    """Return a withdrawal; its amount is in gwei."""
    return {
        "index": quantity(withdrawal.index),
        "validatorIndex": quantity(withdrawal.validator_index),
        "address": hex_bytes(withdrawal.address),
        "amount": quantity(withdrawal.amount),
    }


def issuance_json(block: Block, schedule: ForkSchedule) -> Json:
    """Return the wei that a block created for its miner and those of its uncles, in Otterscan's
    form; zeros under proof of stake."""
    *uncles, own = [wei for _, wei in block_rewards(block, schedule)] or [0]
    amounts = {"blockReward": own, "uncleReward": sum(uncles), "issuance": own + sum(uncles)}
    return {name: quantity(amount) for name, amount in amounts.items()}


def uncle_json(ommer: Header) -> Json:
    """Return an uncle as a block object without transactions."""
    answer = header_json(ommer, ommer.hash)
    answer["size"] = quantity(Block(ommer).size)
    answer["uncles"] = []
    return answer


# --- reading --------------------------------------------------------------------------------------


def block_from_rlp(raw: bytes) -> Block:
    """The block whose RLP is exactly ``raw``; ValueError says what is wrong."""
    try:
        return decode_block(raw)
    except InvalidBlock as error:
        raise ValueError(str(error)) from None


def block_from_json(found: Mapping[str, Any]) -> Block:
    """A post-merge block with full transaction objects; ValueError names a wrong member.

    ValueError too when the block does not hash to its ``hash``.
    """
    header = header_from_json(found)
    if header.ommers_hash != EMPTY_LIST_HASH:
        raise ValueError("block: its uncles are not in the JSON")
    withdrawals = found.get("withdrawals")
    block = Block(
        header,
        tuple(transaction_from_json(one) for one in found.get("transactions") or ()),
        withdrawals=None if withdrawals is None else tuple(map(_read_withdrawal, withdrawals)),
    )
    if block.hash != read_bytes(found.get("hash"), "hash", 32):
        raise ValueError(f"block {header.number}: its header does not hash to its hash")
    return block


def header_from_json(found: Mapping[str, Any]) -> Header:
    """The header of a block object; ValueError names a wrong member. Its hash is not compared."""
    return Header(**_header_fields(found))


def _header_fields(found: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in Header.__dataclass_fields__:
        if name.startswith("_"):
            continue
        first, *rest = name.split("_")
        member = HEADER_MEMBERS.get(name) or first + "".join(part.title() for part in rest)
        value = found.get(member)
        if value is None:
            continue
        fields[name] = (
            read_bytes(value, member) if name in HEADER_BYTES else read_number(value, member)
        )
    return fields


def _read_withdrawal(found: Mapping[str, Any]) -> Withdrawal:
    return Withdrawal(
        index=_read_number(found, "index"),
        validator_index=_read_number(found, "validatorIndex"),
        address=read_bytes(found["address"], "withdrawals", 20),
        amount=_read_number(found, "amount"),
    )


def _read_number(found: Mapping[str, Any], name: str) -> int:
    return read_number(found.get(name), name)
