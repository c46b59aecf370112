"""Tests viem's OP-stack actions, and cast on an OP-stack development chain."""

import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc_client.blocking import JsonRpcClient

from .conftest import running_node
from .test_javascript import HERE, reported

CAST = next(HERE.glob("node_modules/@foundry-rs/cast-*/bin/cast*"), None)
ALICE, BOB = "0x" + "a1" * 20, "0x" + "b0" * 20
L1_BLOCK = "0x4200000000000000000000000000000000000015"
ORACLE = "0x420000000000000000000000000000000000000F"
MESSAGE_PASSER = "0x4200000000000000000000000000000000000016"
LIMIT = 30.0  # time limit in seconds of one cast command

VIEM = {
    "pay and see the fee": ["success", True, True, "0x146b"],
    "fees of L1": [True, True, True, 0],
    "fees in all": [True, True],
    "fees of a contract": [True, True, True, True],
    "deposit": ["success", "0x7e", 0, 5],
    "deposit a contract": "0x5f5fa000",
    "what a block begins with": ["deposit", 0, 66, None],
    "call the portal of L1": ["0xe9e05c42", 5],
    "withdraw": [1, 1, True, True, True],
}


@pytest.fixture(scope="module")
def l2() -> Iterator[str]:
    """Provides the URL of an OP-stack node with short blocks."""
    with running_node("--op", "--block-time", "400ms", "--slice-interval", "100") as found:
        yield found


@pytest.fixture(scope="module")
def op_mainnet() -> Iterator[str]:
    """Provides a node with OP Mainnet's chain id, by which cast recognises the OP stack."""
    options = ("--op", "--chain-id", "10", "--block-time", "400ms", "--slice-interval", "100")
    with running_node(*options) as found:
        yield found


@pytest.mark.skipif(
    shutil.which("node") is None or not (HERE / "node_modules").is_dir(),
    reason="needs Node.js and npm, which `make test` uses where they are installed",
)
def test_programs_on_viem_see_an_l2(l2: str) -> None:
    # Not tested are the actions that call L1 contracts (getL2Output, getTimeToNextL2Output,
    # proveWithdrawal, finalizeWithdrawal, and their forms that wait), because L1 is only simulated.
    assert reported("viem_op", l2, 2) == VIEM


@pytest.mark.skipif(CAST is None, reason="needs cast, which npm brings with `make test`")
class TestCast:
    def run(self, url: str, *words: str) -> str:
        command = [str(CAST), *words, "--rpc-url", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def test_deposits_and_their_receipts(self, l2: str) -> None:
        wanted = {"from": ALICE, "to": BOB, "mint": "0x7", "value": "0x7"}
        tx_hash = json.loads(self.run(l2, "rpc", "fastevm_deposit", json.dumps(wanted)))
        receipt = json.loads(self.run(l2, "receipt", tx_hash, "--json"))
        assert (receipt["status"], receipt["type"]) == ("0x1", "0x7e")
        assert receipt["depositReceiptVersion"] == "0x1"
        found = json.loads(self.run(l2, "tx", tx_hash, "--json"))
        assert (found["mint"], found["from"]) == ("0x7", ALICE)

    def test_payments_tell_their_fee(self, l2: str) -> None:
        key = "0x" + dev_accounts(6)[5].private_key.hex()
        words = ("send", BOB, "--value", "1", "--private-key", key, "--json")
        tx_hash = json.loads(self.run(l2, *words))["transactionHash"]
        receipt = json.loads(self.run(l2, "receipt", tx_hash, "--json"))
        assert receipt["status"] == "0x1"
        assert int(receipt["l1Fee"], 16) > 0

    def test_a_payment_is_replayed_behind_the_deposits(self, op_mainnet: str) -> None:
        key = "0x" + dev_accounts(1)[0].private_key.hex()
        words = ("send", BOB, "--value", "1", "--private-key", key, "--json")
        receipt = json.loads(self.run(op_mainnet, *words))
        assert "Gas used: 21000" in self.run(op_mainnet, "run", receipt["transactionHash"])

    def test_the_size_of_a_block_on_l1_is_estimated(self, op_mainnet: str) -> None:
        number = self.run(op_mainnet, "block-number")
        answer = self.run(op_mainnet, "da-estimate", number)
        assert answer.startswith(f"Estimated data availability size for block {number} with")

    def test_predeploys_answer(self, l2: str) -> None:
        code = self.run(l2, "implementation", L1_BLOCK)
        assert code.lower() == "0xc0d3c0d3c0d3c0d3c0d3c0d3c0d3c0d3c0d30015"
        number = self.run(l2, "call", L1_BLOCK, "number()(uint64)", "--block", "latest")
        origin = JsonRpcClient(l2).call("optimism_syncStatus")["unsafe_l2"]["l1origin"]
        assert abs(int(number.split()[0]) - origin["number"]) <= 1
        fee = self.run(l2, "call", ORACLE, "getL1Fee(bytes)(uint256)", "0x1234")
        assert int(fee.split()[0]) > 0

    def test_withdrawals_are_estimated(self, l2: str) -> None:
        signature = "initiateWithdrawal(address,uint256,bytes)"
        payer = "0x" + dev_accounts(1)[0].address.hex()
        words = ("estimate", MESSAGE_PASSER, signature, BOB, "21000", "0x")
        assert int(self.run(l2, *words, "--value", "1", "--from", payer)) > 21_000

    def test_the_block_commits_to_withdrawals(self, l2: str) -> None:
        number = self.run(l2, "block-number")
        block = json.loads(self.run(l2, "block", number, "--json"))
        root = self.run(l2, "storage-root", MESSAGE_PASSER, "--block", number)
        assert root == block["withdrawalsRoot"]
