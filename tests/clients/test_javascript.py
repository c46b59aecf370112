"""Runs programs that use the npm packages ethers and viem, on Node.js."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fastevm.node.dev_accounts import dev_accounts

HERE = Path(__file__).parent / "javascript"
LIMIT = 60.0  # time limit in seconds for all programs of a client

needs_javascript = pytest.mark.skipif(
    shutil.which("node") is None or not (HERE / "node_modules").is_dir(),
    reason="needs Node.js and npm, which `make test` uses where they are installed",
)
pytestmark = needs_javascript

ETHERS = {
    "chain id": 31337,
    "fees": 4,
    "pay and wait": 1,
    "pay three times at once": [1, 1, 1],
    "wait for two blocks": 1,
    "deploy and read": {"code": True, "slot": 1, "same": True, "logs": 1},
    "too poor": "INSUFFICIENT_FUNDS",
    "blocks over a socket": True,
    "pending transactions over a socket": 66,
}
VIEM = {
    "pay and wait": "success",
    "wait for two blocks": "success",
    "send and wait in one request": "0x1",
    "simulate blocks": [["success"], ["success", "success"]],
    "fees": [2, True],
    "estimate": 21000,
    "access list": [],
    "proof": True,
    "delegate": ["success", "0xef0100" + "b0".rjust(40, "0")],
    "blocks over a socket": True,
    "events through a filter": 1,
    "pending transactions through a filter": 1,
}


def reported(client: str, url: str, payer: int, *more: str) -> dict[str, Any]:
    """Runs all programs of a client. Returns program -> its value, or the text of its error.

    ``more``: further arguments of the programs.
    """
    key = "0x" + dev_accounts(payer + 1)[payer].private_key.hex()
    command = ["node", str(HERE / f"with_{client}.mjs"), url, key, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["name"]: line.get("value", line.get("error")) for line in lines}


def test_programs_on_ethers_do_what_they_are_written_for(url: str) -> None:
    assert reported("ethers", url, 1) == ETHERS


def test_programs_on_viem_do_what_they_are_written_for(url: str) -> None:
    assert reported("viem", url, 2) == VIEM
