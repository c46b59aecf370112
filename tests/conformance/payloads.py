"""Converts blockchain tests to engine tests, whose payloads a consensus client could deliver."""

from collections.abc import Mapping
from typing import Any

from fastevm.chain.chain import Chain
from fastevm.conformance.access_lists import list_of
from fastevm.conformance.blockchain import config_of, genesis_of
from fastevm.conformance.fields import accounts_of, bytes_of
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.types import Block
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock

Json = dict[str, Any]


def hexed(value: int | bytes | None) -> str | None:
    """Returns hex with 0x in the Engine API's format."""
    if value is None:
        return None
    return hex(value) if isinstance(value, int) else "0x" + value.hex()


def payload_of(block: Block, requests: list[bytes] | None) -> Json:
    """Returns the parameters with which engine_newPayload delivers a block."""
    header = block.header
    fields = {
        "parentHash": hexed(header.parent_hash),
        "feeRecipient": hexed(header.coinbase),
        "stateRoot": hexed(header.state_root),
        "receiptsRoot": hexed(header.receipts_root),
        "logsBloom": hexed(header.logs_bloom),
        "prevRandao": hexed(header.mix_hash),
        "blockNumber": hexed(header.number),
        "gasLimit": hexed(header.gas_limit),
        "gasUsed": hexed(header.gas_used),
        "timestamp": hexed(header.timestamp),
        "extraData": hexed(header.extra_data),
        "baseFeePerGas": hexed(header.base_fee_per_gas),
        "blobGasUsed": hexed(header.blob_gas_used),
        "excessBlobGas": hexed(header.excess_blob_gas),
        "slotNumber": hexed(header.slot_number),
        "blockAccessList": hexed(block.access_list),
        "blockHash": hexed(header.hash),
        "transactions": [hexed(transaction.raw) for transaction in block.transactions],
        "withdrawals": None if block.withdrawals is None else [
            {
                "index": hexed(item.index),
                "validatorIndex": hexed(item.validator_index),
                "address": hexed(item.address),
                "amount": hexed(item.amount),
            }
            for item in block.withdrawals
        ],
    }  # fmt: skip
    params: list[Any] = [{key: value for key, value in fields.items() if value is not None}]
    version = 1 if block.withdrawals is None else 2
    if header.parent_beacon_block_root is not None:
        hashes = [hexed(h) for made in block.transactions for h in made.blob_versioned_hashes]
        params += [hashes, hexed(header.parent_beacon_block_root)]
        version = 3
    if requests is not None:
        params.append([hexed(request) for request in requests])
        version = 4
    if header.block_access_list_hash is not None:
        version = 5
    return {"params": params, "newPayloadVersion": str(version), "forkchoiceUpdatedVersion": "3"}


def engine_test(test: Mapping[str, Any]) -> Json | None:
    """Returns a blockchain test as an engine test, or None if payloads cannot express its blocks.

    A block's RLP does not contain its requests, so each block is executed to find them.
    """
    chain = Chain(config_of(test), genesis_of(test), Layer.of(accounts_of(test["pre"])))
    payloads = []
    for item in test["blocks"]:
        requests: list[bytes] = []
        try:
            block = decode_block(bytes_of(item["rlp"])).with_access_list(list_of(item))
            if block.header.difficulty or block.ommers or block.header.nonce != bytes(8):
                return None
            requests = list(chain.add(block).requests or ())
        except InvalidBlock:
            if "expectException" not in item or not is_decodable(item):
                return None
        payload = payload_of(block, None if block.header.requests_hash is None else requests)
        if "expectException" in item:
            payload["validationError"] = item["expectException"]
        payloads.append(payload)
    kept = {key: test[key] for key in ("pre", "lastblockhash", "genesisBlockHeader", "config")}
    posts = {key: test[key] for key in ("postState", "postStateHash", "_info") if key in test}
    return {"network": test["network"], "engineNewPayloads": payloads, **kept, **posts}


def is_decodable(item: Mapping[str, Any]) -> bool:
    """Returns whether a payload can express a block that must be rejected."""
    try:
        return decode_block(bytes_of(item["rlp"])).number > 0
    except InvalidBlock:
        return False
