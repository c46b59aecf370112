"""Makes state tests in the official format for single rules."""

from typing import Any

from fastevm.conformance.state import hash_of_logs
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.state.layer import Layer

KEY = bytes(31) + b"\x01"
SENDER = public_key_address(KEY)
TARGET, COINBASE = b"\x11" * 20, b"\xcc" * 20
COUNTER = bytes.fromhex("6001600055")  # slot 0 = 1
RICH = 10**18


def hexed(value: int | bytes) -> str:
    return hex(value) if isinstance(value, int) else f"0x{value.hex()}"


def account(**fields: Any) -> dict[str, Any]:
    empty = {"balance": 0, "nonce": 0, "code": b"", "storage": {}}
    return empty | fields


def state_test(
    fork: str, pre: dict[bytes, dict[str, Any]], post: dict[bytes, dict[str, Any]], **changes: Any
) -> dict[str, Any]:
    """Returns a test with one entry, which expects the state root of ``post``.

    ``changes``: members that replace those of ``entry``, ``transaction`` or ``env``.
    """
    accounts = {
        hexed(address): {
            "balance": hexed(fields["balance"]),
            "nonce": hexed(fields["nonce"]),
            "code": hexed(fields["code"]),
            "storage": {hexed(k): hexed(v) for k, v in fields["storage"].items()},
        }
        for address, fields in pre.items()
    }
    entry = {
        "hash": hexed(Layer.of(post).state_root()),
        "logs": hexed(hash_of_logs(())),
        "indexes": {"data": 0, "gas": 0, "value": 0},
    }
    transaction = {
        "data": ["0x"],
        "gasLimit": ["0x0186a0"],
        "value": ["0x00"],
        "gasPrice": "0x01",
        "nonce": "0x00",
        "secretKey": hexed(KEY),
        "to": hexed(TARGET),
    }
    env = {
        "currentCoinbase": hexed(COINBASE),
        "currentDifficulty": "0x020000",
        "currentGasLimit": "0x05f5e100",
        "currentNumber": "0x01",
        "currentTimestamp": "0x03e8",
    }
    entry.update(changes.pop("entry", {}))
    transaction.update(changes.pop("transaction", {}))
    env.update(changes.pop("env", {}))
    return {"env": env, "pre": accounts, "transaction": transaction, "post": {fork: [entry]}}


def counting(gas: int, coinbase: int) -> tuple[dict[bytes, Any], dict[bytes, Any]]:
    """Returns the states before and after a call that sets a slot and uses ``gas``.

    ``coinbase``: balance of the coinbase after the call.
    """
    pre = {SENDER: account(balance=RICH), TARGET: account(code=COUNTER)}
    post = {
        SENDER: account(balance=RICH - gas, nonce=1),
        TARGET: account(code=COUNTER, storage={0: 1}),
        COINBASE: account(balance=coinbase),
    }
    return pre, post
