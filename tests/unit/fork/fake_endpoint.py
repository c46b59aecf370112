"""A fake HTTP endpoint. Tests choose its state, capabilities and faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import RemoteAccount

CHAIN_ID = 4242
HEAD = 20


class RpcError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


@dataclass
class HttpFault:
    """An HTTP status and body that replace an answer. Status 0 closes the connection instead."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1


def block_hash(number: int, branch: int = 0) -> bytes:
    return bytes([branch]) + b"\xbb" * 27 + number.to_bytes(4, "big")


def block(number: int, branch: int = 0) -> dict[str, Any]:
    return {
        "number": hex(number),
        "hash": "0x" + block_hash(number, branch).hex(),
        "parentHash": "0x" + block_hash(number - 1, branch).hex() if number else "0x" + "00" * 32,
        "timestamp": hex(1_700_000_000 + 12 * number),
        "miner": "0x" + "c0" * 20,
        "baseFeePerGas": "0x7",
        "gasLimit": hex(30_000_000),
        "transactions": [],
    }


class FakeEndpoint:
    """A node with one state for all blocks. ``bodies`` has every request.

    ``methods``: further methods by name. ``refused``: names of methods that are not served.
    ``faults`` replace the first answers, one per request. ``batch_limit``: larger batches are
    rejected. ``by_number``: accepts block numbers only. ``tamper`` may change an answer before it
    is sent.
    """

    def __init__(self) -> None:
        self.accounts: dict[bytes, RemoteAccount] = {}
        self.slots: dict[tuple[bytes, int], int] = {}
        self.methods: dict[str, Callable[..., Any]] = {}
        self.refused: set[str] = set()
        self.faults: list[HttpFault] = []
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.batch_limit = 10_000
        self.by_number = False
        self.branch = 0
        self.chain_id = CHAIN_ID
        self.latency = 0.0
        self.tamper: Callable[[Any], Any] = lambda answer: answer
        self.connections = 0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()

    def asked(self, method: str) -> list[Any]:
        """Returns the parameters of all calls to a method."""
        return [call["params"] for call in self.calls() if call["method"] == method]

    def calls(self) -> list[Any]:
        return [
            item for body in self.bodies for item in (body if isinstance(body, list) else [body])
        ]

    def forget(self) -> None:
        self.bodies.clear()

    def answer(self, asked: Any) -> Any:
        if not isinstance(asked, list):
            return self._one(asked)
        if len(asked) > self.batch_limit:
            error = {"code": -32600, "message": f"batch too large, max {self.batch_limit}"}
            return {"jsonrpc": "2.0", "id": None, "error": error}
        return [self._one(item) for item in reversed(asked)]  # JSON-RPC allows any order in a batch

    def _one(self, asked: Any) -> Any:
        head = {"jsonrpc": "2.0", "id": asked["id"]}
        try:
            return {**head, "result": self._result(asked["method"], asked["params"])}
        except RpcError as error:
            return {**head, "error": error.error}

    def _result(self, method: str, params: list[Any]) -> Any:
        own = self.methods.get(method) or getattr(self, method, None)
        if own is None or method in self.refused or method[:4] not in ("eth_", "debu", "web3"):
            raise RpcError(-32601, f"the method {method} does not exist/is not available")
        return own(*params)

    def check_block(self, parameter: Any) -> None:
        if isinstance(parameter, dict):
            if self.by_number:
                raise RpcError(-32602, "invalid argument 1: cannot unmarshal object into string")
            if parameter["blockHash"] not in {
                block(n, self.branch)["hash"] for n in range(HEAD + 1)
            }:
                raise RpcError(-32000, "header for hash not found")

    def eth_chainId(self) -> str:
        return hex(self.chain_id)

    def eth_getBlockByNumber(self, tag: str, full: bool) -> Any:
        below = {"latest": 0, "safe": 2, "finalized": 4}
        number = HEAD - below[tag] if tag in below else int(tag, 16)
        return block(number, self.branch) if number <= HEAD else None

    def eth_getBlockByHash(self, digest: str, full: bool) -> Any:
        found = [block(n, self.branch) for n in range(HEAD + 1)]
        return next((item for item in found if item["hash"] == digest), None)

    def account(self, address: str) -> RemoteAccount:
        return self.accounts.get(bytes.fromhex(address[2:]), RemoteAccount(0, 0))

    def eth_getBalance(self, address: str, at: Any) -> str:
        self.check_block(at)
        return hex(self.account(address).balance)

    def eth_getTransactionCount(self, address: str, at: Any) -> str:
        self.check_block(at)
        return hex(self.account(address).nonce)

    def eth_getCode(self, address: str, at: Any) -> str:
        self.check_block(at)
        return "0x" + self.account(address).code.hex()

    def slot(self, address: str, slot: str) -> str:
        value = self.slots.get((bytes.fromhex(address[2:]), int(slot, 16)), 0)
        return "0x" + value.to_bytes(32, "big").hex()

    def eth_getStorageAt(self, address: str, slot: str, at: Any) -> str:
        self.check_block(at)
        return self.slot(address, slot)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                fake.connections += 1

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with fake._lock:
                    fake.bodies.append(asked)
                    fake.headers.append(dict(self.headers))
                    fault = fake.faults[0] if fake.faults else None
                    if fault is not None:
                        fault.times -= 1
                        if fault.times <= 0:
                            fake.faults.pop(0)
                fake._closed.wait(fake.latency)
                if fault is not None:
                    self.fail(fault)
                else:
                    self.reply(200, json.dumps(fake.tamper(fake.answer(asked))).encode())

            def fail(self, fault: HttpFault) -> None:
                if fault.status == 0:
                    self.close_connection = True
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + fault.body)
                else:
                    self.reply(fault.status, fault.body, fault.headers)

            def reply(
                self, status: int, body: bytes, headers: dict[str, str] | None = None
            ) -> None:
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        return Handler


class Ways:
    """Implements methods that only some nodes have, for ``FakeEndpoint.methods``.

    ``touched``: the accounts and slots that every call accesses. ``wrong``: added to the values
    that these methods return.
    """

    def __init__(self, fake: FakeEndpoint) -> None:
        self.fake = fake
        self.touched: dict[bytes, list[int]] = {}
        self.wrong = 0

    def serve(self, *names: str) -> None:
        for name in names:
            self.fake.methods[name] = getattr(self, name)

    def debug_traceCall(self, call: Any, at: Any, options: Any) -> Any:
        assert options["tracer"] == "prestateTracer"
        found = {}
        for address, slots in self.touched.items():
            account = self.fake.account("0x" + address.hex())
            entry: dict[str, Any] = {"balance": hex(account.balance + self.wrong)}
            if account.nonce:
                entry["nonce"] = account.nonce
            if account.code:
                entry["code"] = "0x" + account.code.hex()
            keys = ["0x" + slot.to_bytes(32, "big").hex() for slot in slots]
            entry["storage"] = {key: self.fake.slot("0x" + address.hex(), key) for key in keys}
            found["0x" + address.hex()] = entry
        return found

    def eth_createAccessList(self, call: Any, at: Any) -> Any:
        entries = [
            {"address": "0x" + item.hex(), "storageKeys": [hex(slot) for slot in slots]}
            for item, slots in self.touched.items()
        ]
        return {"accessList": entries, "gasUsed": "0x5208"}

    def eth_getStorageValues(self, asked: Any, at: Any) -> Any:
        return {address.upper().replace("0X", "0x"): self._values(address, slots)
                for address, slots in asked.items()}  # fmt: skip

    def eth_simulateV1(self, payload: Any, at: Any) -> Any:
        [block] = payload["blockStateCalls"]
        for call in block["calls"]:
            assert call["to"] in block["stateOverrides"]
        return [{"calls": [{"returnData": self._read(call)} for call in block["calls"]]}]

    def eth_call(self, call: Any, at: Any, overrides: Any) -> Any:
        assert call["to"] in overrides
        return self._read(call)

    def eth_getAccountInfo(self, address: str, at: Any) -> Any:
        account = self.fake.account(address)
        return {
            "balance": hex(account.balance + self.wrong),
            "nonce": hex(account.nonce),
            "code": "0x" + account.code.hex(),
        }

    def eth_getAccount(self, address: str, at: Any) -> Any:
        account = self.fake.account(address)
        return {
            "balance": hex(account.balance),
            "nonce": hex(account.nonce),
            "codeHash": "0x" + keccak256(account.code).hex(),
        }

    def _read(self, call: Any) -> str:
        data = call["input"][2:]
        slots = ["0x" + data[at : at + 64] for at in range(0, len(data), 64)]
        return "0x" + "".join(value[2:] for value in self._values(call["to"], slots))

    def _values(self, address: str, slots: list[str]) -> list[str]:
        values = [int(self.fake.slot(address.lower(), slot), 16) + self.wrong for slot in slots]
        return ["0x" + value.to_bytes(32, "big").hex() for value in values]
