"""Makes the same history on two nodes: contracts that call each other, and transactions to them.

Accounts, nonces and code are equal on both nodes, so addresses and traces are equal too.
"""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import request_body
from tests.max_wait import MAX_WAIT
from tests.unit.core.interpreter.programs import asm, store_initcode

SENDER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
NOBODY = "0x" + "77" * 20
IDENTITY = bytes(19) + b"\x04"
PAUSE = 0.02  # seconds between two requests for a receipt
REVERT_DATA = (
    bytes.fromhex("08c379a0")
    + (32).to_bytes(32, "big")
    + (2).to_bytes(32, "big")
    + b"no".ljust(32, b"\0")
)


@dataclass
class Side:
    """A node with the history. ``receipts``: name of a transaction -> its receipt."""

    client: JsonRpcClient
    receipts: dict[str, Any] = field(default_factory=dict)

    def ask(self, method: str, *params: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.client.send(request_body(method, params)))
        return answer

    def result(self, method: str, *params: Any) -> Any:
        answer = self.ask(method, *params)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def hash(self, name: str) -> str:
        return str(self.receipts[name]["transactionHash"])

    def block(self, name: str) -> str:
        return str(self.receipts[name]["blockNumber"])

    def contract(self, name: str) -> str:
        return str(self.receipts[name]["contractAddress"])

    def send(self, name: str, **fields: Any) -> None:
        """Sends a transaction and stores its receipt."""
        transaction = {"from": SENDER, "gas": hex(1_000_000)} | fields
        tx_hash = self.result("eth_sendTransaction", transaction)
        for _ in range(round(MAX_WAIT / PAUSE)):
            receipt = self.result("eth_getTransactionReceipt", tx_hash)
            if receipt is not None:
                self.receipts[name] = receipt
                return
            time.sleep(PAUSE)
        raise AssertionError(f"no receipt for {name}")

    def deploy(self, name: str, code: bytes, value: int = 0) -> bytes:
        """Creates a contract. Returns its address."""
        data = "0x" + initcode(code).hex()
        self.send(name, data=data, gas=hex(3_000_000), value=hex(value))
        return bytes.fromhex(self.contract(name)[2:])


def initcode(code: bytes) -> bytes:
    """Returns init code that deploys ``code``."""
    offset = 0
    while True:
        head = asm(len(code), offset, 0, "CODECOPY", len(code), 0, "RETURN")
        if len(head) == offset:
            return head + code
        offset = len(head)


def call(kind: str, target: bytes, value: int | None = None, output: int = 0) -> bytes:
    """Returns code that makes a call of one kind, with four bytes of input."""
    values = [] if value is None else [value]
    return asm(output, 0, 4, 28, *values, target, 100_000, f"{kind} POP")


def caller_code(echo: bytes, fails: bytes, halts: bytes, dies: bytes) -> bytes:
    """Returns code that makes every kind of call and creation, writes storage and emits a log."""
    child = asm(1, 0, "MSTORE8", 1, 0, "RETURN")
    return b"".join(
        (
            asm(0xDEADBEEF, 0, "MSTORE"),
            call("CALL", echo, 1, output=32),
            asm(0xDEADBEEF, 0, "MSTORE"),
            call("DELEGATECALL", echo),
            call("CALLCODE", echo, 0),
            call("STATICCALL", echo),
            call("CALL", fails, 0),
            call("CALL", halts, 0),
            call("CALL", dies, 0),
            store_initcode(child) + asm(len(child), 0, 0, "CREATE POP"),
            store_initcode(child) + asm(7, len(child), 0, 0, "CREATE2 POP"),
            asm(0, "SLOAD", 1, "ADD", 0, "SSTORE", 42, 1, "SSTORE", 1, "SLOAD POP"),
            asm(0x55, 0, 0, "LOG1", 0, 0, "RETURN"),
        )
    )


def play(side: Side) -> Side:
    """Makes the history on a node. Returns the node."""
    echo = side.deploy("echo", asm("CALLVALUE", 0, "MSTORE", 32, 0, "RETURN"))
    words = [REVERT_DATA[at : at + 32].ljust(32, b"\0") for at in range(0, len(REVERT_DATA), 32)]
    stores = [asm(int.from_bytes(w, "big"), 32 * i, "MSTORE") for i, w in enumerate(words)]
    fails = side.deploy("fails", b"".join(stores) + asm(len(REVERT_DATA), 0, "REVERT"))
    dies = side.deploy("dies", asm(echo, "SELFDESTRUCT"), 5)
    halts = side.deploy("halts", asm("INVALID"))
    side.deploy("caller", caller_code(echo, fails, halts, dies))
    side.deploy("hasher", call("STATICCALL", IDENTITY) + asm("STOP"))
    last_words = asm(echo, "SELFDESTRUCT")
    create = asm(len(last_words), 0, 2, "CREATE POP STOP")
    side.deploy("nursery", store_initcode(last_words) + create)
    side.send("calls", to=side.contract("caller"), data="0x11223344", value="0xa")
    side.send("reverted", to=side.contract("fails"))
    side.send("halted", to=side.contract("halts"))
    side.send("transfer", to=NOBODY, value="0x3", gas=hex(21_000))
    side.send("destroyed", to=side.contract("dies"))
    side.send("short life", to=side.contract("nursery"), value="0x9")
    side.send("precompile", to=side.contract("hasher"))
    side.send("no contract", data="0xfe", gas=hex(100_000))
    side.send("refused contract", data="0x" + asm(0, 0, "REVERT").hex(), gas=hex(100_000))
    return side


def without(value: Any, names: frozenset[str]) -> Any:
    """Returns a JSON value without the members ``names``, at any depth."""
    if isinstance(value, dict):
        return {key: without(item, names) for key, item in value.items() if key not in names}
    return [without(item, names) for item in value] if isinstance(value, list) else value
