"""Sends twenty payments one by one, and twenty concurrently, with each client to each node."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from eth_account import Account
from web3 import Web3

from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.max_wait import MAX_WAIT

from .conftest import running_node
from .test_javascript import HERE, LIMIT, needs_javascript, reported

COUNT = 20
BOB = Web3.to_checksum_address("0x" + "b0" * 20)
KEYS = ["0x" + account.private_key.hex() for account in dev_accounts(6)]
PROFILES: dict[str, tuple[str, ...]] = {
    "preconf": (),
    "geth": ("--dialect", "geth"),
    "blocks of 200 ms": ("--block-time", "200ms"),
    "dev": (),
}
CAST = next(iter(HERE.glob("node_modules/@foundry-rs/cast-*/bin/cast")), None)


@pytest.fixture(scope="module", params=PROFILES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Provides the URL of a node for each profile of options."""
    module = ("fastevm", "dev") if request.param == "dev" else ("fastevm.rpc",)
    with running_node(*PROFILES[request.param], module=module) as found:
        yield found


@needs_javascript
def test_viem_and_ethers(url: str) -> None:
    assert reported("sends", url, 1, KEYS[2]) == {
        "viem, one after another": COUNT,
        "viem, at once": COUNT,
        "ethers, one after another": COUNT,
        "ethers, at once": COUNT,
    }


def test_web3(url: str) -> None:
    w3 = Web3(Web3.HTTPProvider(url))
    alice = Account.from_key(KEYS[3])

    def signed(_: int) -> bytes:
        fields = {
            "to": BOB,
            "value": 1,
            "gas": 21_000,
            "nonce": w3.eth.get_transaction_count(alice.address, "pending"),
            "chainId": w3.eth.chain_id,
            "maxFeePerGas": w3.eth.gas_price * 2,
            "maxPriorityFeePerGas": w3.eth.max_priority_fee,
        }
        return w3.eth.send_raw_transaction(alice.sign_transaction(fields).raw_transaction)

    def unlocked(_: int) -> bytes:
        return w3.eth.send_transaction({"from": payer, "to": BOB, "value": 1})

    payer = w3.eth.accounts[4]
    sent = [signed(index) for index in range(COUNT)]
    with ThreadPoolExecutor(COUNT) as pool:
        sent += pool.map(unlocked, range(COUNT))
    receipts = [w3.eth.wait_for_transaction_receipt(item, MAX_WAIT, 0.05) for item in sent]
    assert [receipt.status for receipt in receipts] == [1] * len(sent)
    mined = [receipt for receipt in receipts if "preconfirmed" not in receipt]
    assert all(w3.eth.get_block(item.blockHash).number == item.blockNumber for item in mined)


@pytest.mark.skipif(CAST is None, reason="needs cast, which npm brings with `make test`")
def test_cast_over_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "node.ipc"

    def cast(*words: str) -> str:
        command = [str(CAST), *words, "--rpc-url", str(path)]
        return subprocess.run(
            command, capture_output=True, check=True, timeout=LIMIT
        ).stdout.decode()

    with running_node("--ipc", str(path), module=("fastevm", "dev")):
        cast("send", BOB, "--value", "1", "--private-key", KEYS[0])
        assert cast("balance", BOB).strip() == "1"
    assert not path.exists()


@pytest.mark.skipif(CAST is None, reason="needs cast, which npm brings with `make test`")
def test_cast(url: str) -> None:
    def cast(*words: str) -> str:
        command = [str(CAST), *words, "--rpc-url", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def pay(nonce: int) -> str:
        return cast(
            *("send", BOB, "--value", "1", "--gas-limit", "21000", "--async"),
            *("--private-key", KEYS[5], "--nonce", str(nonce)),
        )

    def next_nonce() -> int:
        return int(cast("nonce", account.address, "--block", "pending"))

    account = Account.from_key(KEYS[5])
    sent = [pay(next_nonce()) for _ in range(COUNT)]
    first = next_nonce()
    with ThreadPoolExecutor(COUNT) as pool:
        sent += pool.map(pay, range(first, first + COUNT))
    cast("receipt", sent[-1])  # waits for the last receipt
    with JsonRpcClient(url) as node:
        receipts = [node.call("eth_getTransactionReceipt", item) for item in sent]
    assert [receipt["status"] for receipt in receipts] == ["0x1"] * len(sent)
