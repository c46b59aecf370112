"""Makes inputs of the state-transition tool, and reads its outputs as values."""

import io
import json
from typing import Any

import pytest

from fastevm.__main__ import main
from fastevm.core.crypto.secp256k1 import public_key_address

KEY = bytes(31) + b"\x05"
SENDER = "0x" + public_key_address(KEY).hex()
TARGET, COINBASE = "0x" + "11" * 20, "0x" + "cc" * 20
ROOT = "0x" + "00" * 32

# fork -> members of its environment that `env_of` adds to the members of all forks
LATER: dict[str, dict[str, Any]] = {
    "frontier": {"currentDifficulty": "0x20000"},
    "london": {"currentDifficulty": "0x20000", "currentBaseFee": "0x7"},
    "paris": {"currentRandom": "0x0", "currentBaseFee": "0x7"},
    "shanghai": {"currentRandom": "0x0", "currentBaseFee": "0x7", "withdrawals": []},
}
LATER["cancun"] = LATER["shanghai"] | {
    "parentBeaconBlockRoot": ROOT,
    "currentExcessBlobGas": "0x0",
}


def env_of(fork: str, **changes: Any) -> dict[str, Any]:
    """Returns the environment of a fork. A change of None removes the member."""
    common = {
        "currentCoinbase": COINBASE,
        "currentGasLimit": "0x1c9c380",
        "currentNumber": "0x5",
        "currentTimestamp": "0x3e8",
    }
    env = common | LATER[fork] | changes
    return {name: value for name, value in env.items() if value is not None}


def transaction(**changes: Any) -> dict[str, Any]:
    """Returns an unsigned transaction to TARGET."""
    return {
        "nonce": "0x0",
        "gas": "0x186a0",
        "gasPrice": "0x64",
        "value": "0x0",
        "to": TARGET,
        "input": "0x",
        "secretKey": "0x" + KEY.hex(),
    } | changes


def alloc(code: str = "0x") -> dict[str, Any]:
    """Returns the accounts before the transactions: a rich sender, and TARGET with ``code``."""
    return {
        SENDER: {"balance": "0xde0b6b3a7640000"},
        TARGET: {"balance": "0x0", "code": code, "storage": {"0x1": "0x2"}},
    }


def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    inputs: dict[str, Any],
    *options: str,
    fork: str = "london",
) -> tuple[int, dict[str, Any]]:
    """Runs ``t8n`` with ``inputs`` on standard input. Returns exit code, and output or error."""
    streams = ["--input.alloc=stdin", "--input.env=stdin", "--input.txs=stdin"]
    streams += ["--output.alloc=stdout", "--output.result=stdout", "--output.body=stdout"]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(inputs)))
    code = main(["t8n", *streams, f"--state.fork={fork}", *options])
    printed = capsys.readouterr()
    return code, json.loads(printed.out) if code == 0 else {"error": printed.err}
