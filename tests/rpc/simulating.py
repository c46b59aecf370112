"""What the tests of eth_simulateV1 share: asking a live node, and hashing the header it shows."""

import json
from typing import Any

from fastevm.types import Header
from fastevm.wire.client.blocking import JsonRpcClient
from fastevm.wire.client.messages import request_body

A, B, C = ("0x" + byte * 20 for byte in ("a1", "b0", "c0"))
RICH = {A: {"balance": hex(10**30)}}
TIMEOUT = 20.0

MEMBERS = {
    "parent_hash": "parentHash",
    "ommers_hash": "sha3Uncles",
    "coinbase": "miner",
    "state_root": "stateRoot",
    "transactions_root": "transactionsRoot",
    "receipts_root": "receiptsRoot",
    "logs_bloom": "logsBloom",
    "extra_data": "extraData",
    "mix_hash": "mixHash",
    "nonce": "nonce",
    "withdrawals_root": "withdrawalsRoot",
    "parent_beacon_block_root": "parentBeaconBlockRoot",
    "requests_hash": "requestsHash",
}
NUMBERS = {
    "difficulty": "difficulty",
    "number": "number",
    "gas_limit": "gasLimit",
    "gas_used": "gasUsed",
    "timestamp": "timestamp",
    "base_fee_per_gas": "baseFeePerGas",
    "blob_gas_used": "blobGasUsed",
    "excess_blob_gas": "excessBlobGas",
}


def post(url: str, body: bytes) -> Any:
    """The parsed answer to a body."""
    with JsonRpcClient(url, timeout=TIMEOUT) as client:
        return json.loads(client.send(body))


def ask(url: str, payload: Any, block: Any = "latest") -> Any:
    """The whole answer of eth_simulateV1."""
    return post(url, request_body("eth_simulateV1", [payload, block]))


def blocks(url: str, payload: Any) -> Any:
    """The simulated blocks of a payload that is accepted."""
    answer = ask(url, payload)
    assert "result" in answer, answer
    return answer["result"]


def refusal(url: str, payload: Any) -> tuple[int, str]:
    """Code and message for a payload that is refused."""
    answer = ask(url, payload)
    assert "error" in answer, answer
    return answer["error"]["code"], answer["error"]["message"]


def one_block(*calls: Any, state: Any = None, block: Any = None, **flags: Any) -> dict[str, Any]:
    """A payload of one block."""
    entry = {"calls": calls, "stateOverrides": state or {}, "blockOverrides": block or {}}
    return {"blockStateCalls": [entry], **flags}


def header_hash(shown: dict[str, Any]) -> str:
    """Keccak-256 of the header whose members a block object shows."""
    fields: dict[str, Any] = {
        name: bytes.fromhex(shown[member][2:])
        for name, member in MEMBERS.items()
        if member in shown
    }
    for name, member in NUMBERS.items():
        if member in shown:
            fields[name] = int(shown[member], 16)
    return "0x" + Header(**fields).hash.hex()
