"""Helps tests of eth_simulateV1: builds payloads, sends them, and hashes the returned headers."""

import json
import socket
import time
from typing import Any
from urllib.parse import urlsplit

from fastevm.bench.node.launch import ServerThread
from fastevm.core.execution.types import Header
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import request_body
from tests.max_wait import MAX_WAIT
from tests.shared_data import RECORDED

A, B, C = ("0x" + byte * 20 for byte in ("a1", "b0", "c0"))
RICH = {A: {"balance": hex(10**30)}}

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


def recorded_simulations() -> dict[str, Any]:
    """Returns name -> request, for the recorded requests of eth_simulateV1."""
    return {
        path.stem: json.loads(line[3:])
        for path in sorted((RECORDED / "tests/eth_simulateV1").glob("*.io"))
        for line in path.read_text().splitlines()
        if line.startswith(">> ")
    }


def post(url: str, body: bytes) -> Any:
    """Posts a body. Returns the parsed answer."""
    with JsonRpcClient(url, timeout=MAX_WAIT) as client:
        return json.loads(client.send(body))


def ask(url: str, payload: Any, block: Any = "latest") -> Any:
    """Sends a payload to eth_simulateV1. Returns the whole answer."""
    return post(url, request_body("eth_simulateV1", [payload, block]))


def blocks(url: str, payload: Any) -> Any:
    """Returns the simulated blocks for a payload. Fails if the node rejects it."""
    answer = ask(url, payload)
    assert "result" in answer, answer
    return answer["result"]


def refusal(url: str, payload: Any) -> tuple[int, str]:
    """Returns code and message of the error for a payload. Fails if the node accepts it."""
    answer = ask(url, payload)
    assert "error" in answer, answer
    return answer["error"]["code"], answer["error"]["message"]


def one_block(*calls: Any, state: Any = None, block: Any = None, **flags: Any) -> dict[str, Any]:
    """Returns a payload with one block of calls."""
    entry = {"calls": calls, "stateOverrides": state or {}, "blockOverrides": block or {}}
    return {"blockStateCalls": [entry], **flags}


ENDLESS = one_block(
    {"from": A, "to": C},
    state={C: {"code": "0x5b5f56"}},
    block={"gasLimit": hex(2**62)},
)


def header_hash(shown: dict[str, Any]) -> str:
    """Returns Keccak-256 of the header that a block object describes."""
    fields: dict[str, Any] = {
        name: bytes.fromhex(shown[member][2:])
        for name, member in MEMBERS.items()
        if member in shown
    }
    for name, member in NUMBERS.items():
        if member in shown:
            fields[name] = int(shown[member], 16)
    return "0x" + Header(**fields).hash.hex()


def wait_until(server: ServerThread, jobs: int) -> float:
    """Waits until this many jobs run on the server's workers. Returns the seconds waited."""
    started = time.monotonic()
    while server.server.workers.in_flight != jobs and time.monotonic() - started < MAX_WAIT:
        time.sleep(0.01)
    assert server.server.workers.in_flight == jobs
    return time.monotonic() - started


def wait_for_rest(server: ServerThread) -> None:
    """Waits until no worker thread of the server is busy."""
    started = time.monotonic()
    workers = server.server.workers
    while workers.short.running + workers.long.running and time.monotonic() - started < MAX_WAIT:
        time.sleep(0.01)
    assert not workers.short.running + workers.long.running


def sent(server: ServerThread, method: str, params: list[Any]) -> socket.socket:
    """Sends a request and does not wait for the answer. Returns the connection."""
    url = urlsplit(server.url("preconf"))
    call = {"id": 1, "jsonrpc": "2.0", "method": method, "params": params}
    body = json.dumps(call).encode()
    head = f"POST / HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
    client = socket.create_connection((url.hostname, url.port))
    client.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return client
