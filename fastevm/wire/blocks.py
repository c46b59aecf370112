"""Blocks, headers, uncles and withdrawals as JSON values, with the members that each fork has.

Shapes are those of deployed nodes: quantities without leading zeros, no ``totalDifficulty``.
"""

from typing import Any

from fastevm.types import Block, Header, Withdrawal
from fastevm.wire.text.hex import hex_bytes, quantity
from fastevm.wire.transactions import mined_transaction_json

Json = dict[str, Any]


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
    """Return the members that came with London, Shanghai, Cancun and Prague, where present."""
    numbers = {
        "baseFeePerGas": header.base_fee_per_gas,
        "blobGasUsed": header.blob_gas_used,
        "excessBlobGas": header.excess_blob_gas,
    }
    hashes = {
        "withdrawalsRoot": header.withdrawals_root,
        "parentBeaconBlockRoot": header.parent_beacon_block_root,
        "requestsHash": header.requests_hash,
    }
    answer: Json = {name: quantity(v) for name, v in numbers.items() if v is not None}
    answer.update({name: hex_bytes(v) for name, v in hashes.items() if v is not None})
    return answer


def block_json(block: Block, block_hash: bytes, *, full: bool, is_pending: bool = False) -> Json:
    """Return a block object; ``full`` puts transaction objects in place of hashes.

    ``is_pending``: the block is pre-confirmed, so that its transactions have no block hash.
    """
    answer = header_json(block.header, block_hash)
    place = None if is_pending else block_hash
    answer["size"] = quantity(block.size)
    answer["uncles"] = [hex_bytes(ommer.hash) for ommer in block.ommers]
    answer["transactions"] = (
        [mined_transaction_json(block, i, place) for i in range(len(block.transactions))]
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


def uncle_json(ommer: Header) -> Json:
    """Return an uncle as a block object without transactions."""
    answer = header_json(ommer, ommer.hash)
    answer["size"] = quantity(Block(ommer).size)
    answer["uncles"] = []
    return answer
