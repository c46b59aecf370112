"""testing_*: builds blocks from given attributes, for test suites."""

from collections.abc import Sequence
from typing import Any

import fastevm
from fastevm.core.execution.types import Block, Header, Receipt, Withdrawal
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.core.primitives.replace import replace
from fastevm.errors import InvalidTransaction, TransactionDecodeError
from fastevm.node.production import BlockAttributes, assemble_block
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import DATA, HASH
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.development import attempt
from fastevm.rpc_types.blocks import withdrawal_json
from fastevm.rpc_types.overrides import decode_withdrawal
from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_address,
    decode_bytes,
    decode_hash,
    decode_uint64,
    object_fault,
)
from fastevm.rpc_types.transactions import Json


def decode_attributes(value: Any) -> BlockAttributes:
    """Decode payload attributes (engine API)."""
    if not isinstance(value, dict):
        raise object_fault(value, "engine.PayloadAttributes")
    withdrawals = value.get("withdrawals")
    if withdrawals is not None and not isinstance(withdrawals, list):
        raise object_fault(withdrawals, "[]*types.Withdrawal")
    root = value.get("parentBeaconBlockRoot")
    where = "PayloadAttributes"
    return BlockAttributes(
        timestamp=decode_uint64(value.get("timestamp"), field=f"{where}.timestamp"),
        coinbase=decode_address(
            value.get("suggestedFeeRecipient"), field=f"{where}.suggestedFeeRecipient"
        ),
        prev_randao=decode_hash(value.get("prevRandao"), field=f"{where}.prevRandao"),
        parent_beacon_block_root=(
            bytes(32) if root is None else decode_hash(root, field=f"{where}.parentBeaconBlockRoot")
        ),
        withdrawals=tuple(_withdrawal(entry) for entry in withdrawals or ()),
    )


def decode_transactions(value: Any) -> list[fastevm.Transaction]:
    """Decode raw transactions in canonical form."""
    if not isinstance(value, list):
        raise object_fault(value, "[]hexutil.Bytes")
    try:
        return [fastevm.Transaction.decode(decode_bytes(raw)) for raw in value]
    except TransactionDecodeError as error:
        raise DecodeError(str(error)) from None


@method(
    "testing_buildBlockV1",
    HASH,
    Param(decode_attributes),
    Param(decode_transactions, optional=True),
    DATA,
    run_on=RunOn.WORKER,
)
@long_running
def build_block(
    context: Context,
    parent_hash: bytes,
    attributes: BlockAttributes,
    transactions: list[fastevm.Transaction] | None,
    extra_data: bytes,
) -> Json:
    """Return the payload of a block with exactly the given transactions.

    With null, uses the transactions of the pool. The chain does not change. Raises RpcError if a
    transaction cannot be included.
    """
    parent = context.node.chain.block_by_hash(parent_hash)
    if parent is None:
        raise RpcError("server_error", "unknown parent block")
    block, result = assembled(context, parent, attributes, transactions, extra_data)
    return {
        "executionPayload": _payload_json(block),
        "blockValue": quantity(_value(block.header, result.receipts)),
        "blobsBundle": {"commitments": [], "proofs": [], "blobs": []},
        "executionRequests": [hex_bytes(request) for request in result.requests],
        "shouldOverrideBuilder": False,
    }


@method(
    "testing_commitBlockV1",
    Param(decode_attributes),
    Param(decode_transactions, optional=True),
    Param(decode_bytes, optional=True, default=b""),
    run_on=RunOn.WORKER,
)
@long_running
def commit_block(
    context: Context,
    attributes: BlockAttributes,
    transactions: list[fastevm.Transaction] | None,
    extra_data: bytes,
) -> str:
    """Build a block on the head as testing_buildBlockV1 does, and import it. Returns its hash.

    The chain does not change if the block cannot be built or the timestamp is above MAX_TIMESTAMP,
    after which no block would have a timestamp.
    """
    node = context.node
    attempt(node.producer.clock.check, attributes.timestamp)
    with node.producer.lock:
        block, _ = assembled(context, node.chain.head, attributes, transactions, extra_data)
        node.add_block(block)
    return hex_bytes(block.hash)


def assembled(
    context: Context,
    parent: Block,
    attributes: BlockAttributes,
    transactions: list[fastevm.Transaction] | None,
    extra_data: bytes,
) -> tuple[Block, Any]:
    """Build a block on ``parent`` and return it with its result.

    The block has exactly ``transactions``, or with None the executable transactions of the pool.
    """
    if transactions is None:
        by_sender = context.node.pool.executable().values()
        transactions = [by_nonce[nonce] for by_nonce in by_sender for nonce in sorted(by_nonce)]
    chain: Any = context.node.chain
    try:
        attributes = replace(attributes, extra_data=extra_data)
        return assemble_block(chain, parent, attributes, transactions)
    except InvalidTransaction as error:
        raise RpcError("server_error", error.message) from error


def _withdrawal(value: Any) -> Withdrawal:
    return decode_withdrawal(value, field="PayloadAttributes.withdrawals")


def _value(header: Header, receipts: Sequence[Receipt]) -> int:
    """Return the tips that the block's producer earns, in wei."""
    base_fee = header.base_fee_per_gas or 0
    return sum(entry.gas_used * (entry.effective_gas_price - base_fee) for entry in receipts)


def _payload_json(block: Block) -> Json:
    """Return an ExecutionPayloadV3 (engine API), with later members if they are set."""
    header = block.header
    answer: Json = {
        "parentHash": hex_bytes(header.parent_hash),
        "feeRecipient": hex_bytes(header.coinbase),
        "stateRoot": hex_bytes(header.state_root),
        "receiptsRoot": hex_bytes(header.receipts_root),
        "logsBloom": hex_bytes(header.logs_bloom),
        "prevRandao": hex_bytes(header.mix_hash),
        "blockNumber": quantity(header.number),
        "gasLimit": quantity(header.gas_limit),
        "gasUsed": quantity(header.gas_used),
        "timestamp": quantity(header.timestamp),
        "extraData": hex_bytes(header.extra_data),
        "baseFeePerGas": quantity(header.base_fee_per_gas or 0),
        "blockHash": hex_bytes(header.hash),
        "transactions": [hex_bytes(transaction.raw) for transaction in block.transactions],
    }
    if block.withdrawals is not None:
        answer["withdrawals"] = [withdrawal_json(entry) for entry in block.withdrawals]
    if header.blob_gas_used is not None:
        answer["blobGasUsed"] = quantity(header.blob_gas_used)
        answer["excessBlobGas"] = quantity(header.excess_blob_gas or 0)
    return answer
