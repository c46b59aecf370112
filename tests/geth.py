"""Starts a real geth for tests: a development chain with a counter contract."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench.node.launch import HOST, free_port, wait_for
from fastevm.bench.peers.compiled import PROGRAMS, NotBuilt
from fastevm.chain.system_contracts import SYSTEM_CONTRACTS
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal
from tests.max_wait import MAX_WAIT

CHAIN_ID = 1337
DEVELOPER = "71562b71999873db5b286df957af199ec94617f7"  # the account that geth --dev unlocks
INDEXING = "transaction indexing is in progress"
# Increments slot 7 and logs the new value.
COUNTER_CODE = "6007546001018060075560005260206000a000"
CREATION = f"0x60{len(COUNTER_CODE) // 2:02x}600c60003960{len(COUNTER_CODE) // 2:02x}6000f3"
PRICES = {"gas": hex(200_000), "maxFeePerGas": hex(10**11), "maxPriorityFeePerGas": "0x1"}


def genesis() -> dict[str, Any]:
    """Returns a genesis file that activates every fork up to Osaka at the start.

    geth's own development chain activates Bogota without Amsterdam, which no network does.
    """
    blocks = (
        "homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg",
        "istanbul", "berlin", "london",
    )  # fmt: skip
    contracts = {at: fields | {"balance": "0x0"} for at, fields in SYSTEM_CONTRACTS.items()}
    blobs = {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716}
    return {
        "config": {
            "chainId": CHAIN_ID,
            **{f"{name}Block": 0 for name in blocks},
            **{f"{name}Time": 0 for name in ("shanghai", "cancun", "prague", "osaka")},
            "terminalTotalDifficulty": 0,
            "depositContractAddress": "0x" + "00" * 20,
            "blobSchedule": {"cancun": blobs | {"target": 3, "max": 6}, "prague": blobs},
        },
        "gasLimit": hex(30_000_000),
        "difficulty": "0x0",
        "baseFeePerGas": hex(10**9),
        "alloc": contracts | {DEVELOPER: {"balance": hex(10**24)}},
    }


class Geth:
    """Runs geth --dev, which mines a block for each transaction. Use it in a `with` statement."""

    def __init__(self, program: Path) -> None:
        self.folder = tempfile.mkdtemp(prefix="fastevm-geth-")
        port, ports = free_port(), str(free_port())
        self.url = f"http://{HOST}:{port}"
        file = Path(self.folder) / "genesis.json"
        file.write_text(json.dumps(genesis()))
        subprocess.run(
            [program, "init", "--datadir", self.folder, file], check=True, capture_output=True
        )
        self.process = subprocess.Popen(
            [
                program, "--dev", "--datadir", self.folder, "--gcmode", "archive",
                "--http", "--http.addr", HOST, "--http.port", str(port),
                "--http.api", "eth,debug,net,web3,txpool",
                "--authrpc.port", ports, "--port", "0", "--nodiscover", "--ipcdisable",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.client = JsonRpcClient(self.url)
        try:
            wait_for(self.answers, MAX_WAIT, "geth did not start")
            self.account: str = self.client.call("eth_accounts")[0]
            self.counter: str = self.send(data=CREATION + COUNTER_CODE)["contractAddress"]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Geth":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def answers(self) -> bool:
        """Returns whether the node answers requests."""
        if self.process.poll() is not None:
            raise RuntimeError(f"geth ended with status {self.process.returncode}")
        try:
            return self.client.call("eth_chainId") is not None
        except OSError:
            return False

    def send(self, **fields: Any) -> dict[str, Any]:
        """Sends a transaction from geth's account. Returns the receipt."""
        tx_hash = self.client.call("eth_sendTransaction", {"from": self.account} | PRICES | fields)
        receipt: dict[str, Any] = wait_for(
            lambda: self.receipt(tx_hash), MAX_WAIT, "geth did not mine the transaction"
        )
        assert receipt["status"] == "0x1"
        return receipt

    def receipt(self, tx_hash: str) -> dict[str, Any] | None:
        """Returns a receipt, or None while the transaction is pending or not indexed yet."""
        try:
            found: dict[str, Any] | None = self.client.call("eth_getTransactionReceipt", tx_hash)
        except RpcRefusal as refusal:
            if INDEXING not in str(refusal):
                raise
            return None
        return found

    def count(self) -> dict[str, Any]:
        """Calls the counter in a transaction in a block of its own. Returns the receipt."""
        return self.send(to=self.counter)

    def close(self) -> None:
        """Ends the process and deletes its data."""
        self.client.close()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def geth_or_skip() -> Geth:
    """Starts geth. Skips the test if geth is not built."""
    try:
        return Geth(PROGRAMS["geth"].found())
    except NotBuilt as reason:
        pytest.skip(str(reason))
