"""Blocks, transactions, receipts and logs as JSON values, with the members that each era has.

Shapes follow what deployed nodes answer: quantities without leading zeros, r and s as quantities,
the price of a mined transaction is what it paid, unprotected transactions have no chainId.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import fastevm
from fastevm.rpc.context import View
from fastevm.types import Block, Header, Receipt, Withdrawal

LEGACY, ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE = range(5)
DYNAMIC_FEES: Final = frozenset((DYNAMIC_FEE, BLOB, SET_CODE))

NOBODY: Final = bytes(20)  # the sender of an unsigned transaction that names none

Json = dict[str, Any]


class Event(Protocol):
    """A log, mined or simulated."""

    @property
    def address(self) -> bytes: ...
    @property
    def topics(self) -> tuple[bytes, ...]: ...
    @property
    def data(self) -> bytes: ...


def hex_bytes(data: bytes) -> str:
    """Return 0x-hex of bytes, two digits each."""
    return "0x" + data.hex()


def hex_word(value: int) -> str:
    """Return 0x-hex of 32 bytes."""
    return "0x" + value.to_bytes(32, "big").hex()


def quantity(value: int) -> str:
    """Return 0x-hex of an integer without leading zeros."""
    return hex(value)


def checksum_address(address: bytes) -> str:
    """Return an address in mixed case (EIP-55)."""
    digits = address.hex()
    marks = fastevm.keccak256(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if mark > "7" else digit for digit, mark in zip(digits, marks, strict=False)
    )


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


def block_json(view: View, *, full: bool) -> Json:
    """Return a block object; ``full`` puts transaction objects in place of hashes."""
    block = view.block
    answer = header_json(block.header, view.hash)
    answer["size"] = quantity(block.size)
    answer["uncles"] = [hex_bytes(ommer.hash) for ommer in block.ommers]
    answer["transactions"] = (
        [mined_transaction_json(view, index) for index in range(len(block.transactions))]
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


def mined_transaction_json(view: View, index: int) -> Json:
    """Return transaction ``index`` of a block; a pre-confirmed one has no block hash yet."""
    header, transaction = view.block.header, view.block.transactions[index]
    answer = transaction_json(transaction, base_fee=header.base_fee_per_gas)
    answer["blockHash"] = None if view.pending is not None else hex_bytes(view.hash)
    answer["blockNumber"] = quantity(header.number)
    answer["blockTimestamp"] = quantity(header.timestamp)
    answer["transactionIndex"] = quantity(index)
    return answer


def transaction_json(transaction: Any, *, base_fee: int | None = None) -> Json:
    """Return a transaction object, in the pool when no block's ``base_fee`` is given.

    ``gasPrice`` is then the fee cap; the members that place it in a block are null.
    """
    kind = transaction.type
    answer: Json = {
        "blockHash": None,
        "blockNumber": None,
        "blockTimestamp": None,
        "from": hex_bytes(transaction.sender or NOBODY),
        "gas": quantity(transaction.gas_limit),
        "gasPrice": quantity(_price(transaction, base_fee)),
        "hash": hex_bytes(transaction.hash),
        "input": hex_bytes(transaction.data),
        "nonce": quantity(transaction.nonce),
        "to": None if transaction.to is None else hex_bytes(transaction.to),
        "transactionIndex": None,
        "value": quantity(transaction.value),
        "type": quantity(kind),
        "v": quantity(transaction.v),
        "r": quantity(transaction.r),
        "s": quantity(transaction.s),
    }
    if transaction.chain_id is not None:
        answer["chainId"] = quantity(transaction.chain_id)
    if kind != LEGACY:
        answer["accessList"] = access_list_json(transaction.access_list)
        answer["yParity"] = quantity(transaction.v)
    if kind in DYNAMIC_FEES:
        answer["maxFeePerGas"] = quantity(transaction.max_fee_per_gas)
        answer["maxPriorityFeePerGas"] = quantity(transaction.max_priority_fee_per_gas)
    if kind == BLOB:
        answer["maxFeePerBlobGas"] = quantity(transaction.max_fee_per_blob_gas)
        hashes = transaction.blob_versioned_hashes
        answer["blobVersionedHashes"] = [hex_bytes(versioned) for versioned in hashes]
    if kind == SET_CODE:
        signed = transaction.authorization_list
        answer["authorizationList"] = [_authorization_json(entry) for entry in signed]
    return answer


def access_list_json(access_list: Any) -> list[Json]:
    """Return an access list of (address, slots) pairs."""
    return [
        {"address": hex_bytes(address), "storageKeys": [hex_word(slot) for slot in slots]}
        for address, slots in access_list
    ]


def _authorization_json(entry: Any) -> Json:
    return {
        "chainId": quantity(entry.chain_id),
        "address": hex_bytes(entry.address),
        "nonce": quantity(entry.nonce),
        "yParity": quantity(entry.y_parity),
        "r": quantity(entry.r),
        "s": quantity(entry.s),
    }


def _price(transaction: Any, base_fee: int | None) -> int:
    if base_fee is None or transaction.type not in DYNAMIC_FEES:
        return int(transaction.max_fee_per_gas)
    return int(transaction.effective_gas_price(base_fee))


def receipt_text(
    view: View, index: int, first_log: int, receipts: Sequence[Receipt] | None = None
) -> bytes:
    """Return the receipt of transaction ``index``; ``first_log`` is its first log's index."""
    receipt = (view.receipts if receipts is None else receipts)[index]
    return view.writer.receipt(receipt, view.block.transactions[index], index, first_log)


def block_receipts_text(view: View) -> bytes:
    """Return the receipts of all transactions of a block."""
    receipts, answer, first_log = view.receipts, [], 0
    for index, receipt in enumerate(receipts):
        answer.append(receipt_text(view, index, first_log, receipts))
        first_log += len(receipt.logs)
    return b"[%b]" % b",".join(answer)


def log_text(
    view: View, entry: Event, tx_index: int, log_index: int, *, removed: bool = False
) -> bytes:
    """Return a log object; ``log_index`` counts over the block."""
    transaction = view.block.transactions[tx_index]
    return view.writer.log(entry, transaction.hash, tx_index, log_index, removed)
