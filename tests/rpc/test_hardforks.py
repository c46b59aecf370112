"""Tests ``fastevm dev --hardfork`` under every fork with requests that common tools make."""

import argparse
from collections.abc import Iterator
from typing import Any

import pytest
from eth_account import Account

from fastevm.bench.node.launch import ServerThread
from fastevm.core.spec.forks import FORKS
from fastevm.rpc.dev import command

from .test_dev_node import KEY, RECEIVER, Client

# Every name of anvil's --hardfork, in order -> the fork whose rules apply.
NAMES = {
    "frontier": "Frontier", "homestead": "Homestead", "dao": "Homestead",
    "tangerine": "TangerineWhistle", "spuriousDragon": "SpuriousDragon", "byzantium": "Byzantium",
    "constantinople": "Constantinople", "petersburg": "Petersburg", "istanbul": "Istanbul",
    "muirGlacier": "MuirGlacier", "berlin": "Berlin", "london": "London",
    "arrowGlacier": "ArrowGlacier", "grayGlacier": "GrayGlacier", "paris": "Paris",
    "shanghai": "Shanghai", "cancun": "Cancun", "prague": "Prague", "osaka": "Osaka",
    "bpo1": "BPO1", "bpo2": "BPO2", "amsterdam": "Amsterdam", "latest": "Osaka",
}  # fmt: skip
ORDER = [fork.name for fork in FORKS]
POSITIONS = {name: ORDER.index(fork) for name, fork in NAMES.items()}
COINBASE = "0x" + "00" * 20
# Stores 7 in slot 1, emits a log and returns 42, with opcodes that every fork has.
CODE = "600760015560006000a0602a60005260206000f3"
INIT = "0x601480600b6000396000f3" + CODE


def since(name: str, fork: str) -> bool:
    return POSITIONS[name] >= ORDER.index(fork)


class Chain:
    """A development node under the rules of one fork, with the requests of tools."""

    def __init__(self, name: str, node: Any, client: Client) -> None:
        self.name, self.node, self.client = name, node, client
        self.result = client.result
        self.sender = client.result("eth_accounts")[0]

    def since(self, fork: str) -> bool:
        return since(self.name, fork)

    def mined(self, **fields: Any) -> Any:
        """Sends a transaction from an account of the node. Returns its receipt."""
        tx_hash = self.result("eth_sendTransaction", {"from": self.sender, **fields})
        return self.result("eth_getTransactionReceipt", tx_hash)

    def balance(self, address: str) -> int:
        return int(self.result("eth_getBalance", address, "latest"), 16)


def node_of(*options: str) -> Any:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.node_of(parser.parse_args(options))


@pytest.fixture(scope="module", params=NAMES)
def chain(request: pytest.FixtureRequest) -> Iterator[Chain]:
    node = node_of("--hardfork", request.param)
    with ServerThread(node) as server:
        yield Chain(request.param, node, Client(server.url("geth")))


def test_every_block_has_the_rules_of_the_fork(chain: Chain) -> None:
    chain.result("evm_mine")
    head = chain.node.chain.head.hash
    assert chain.node.chain.schedule_of(head).fork.name == NAMES[chain.name]


def test_a_mined_block_has_the_members_of_the_fork_and_no_reward(chain: Chain) -> None:
    before = chain.balance(COINBASE)
    chain.result("anvil_mine", "0x3")
    block = chain.result("eth_getBlockByNumber", "latest", False)
    assert block["difficulty"] == ("0x0" if chain.since("Paris") else "0x20000")
    assert ("baseFeePerGas" in block) == chain.since("London")
    assert ("withdrawals" in block) == chain.since("Shanghai")
    assert ("excessBlobGas" in block) == chain.since("Cancun")
    assert ("requestsHash" in block) == chain.since("Prague")
    assert ("slotNumber" in block) == chain.since("Amsterdam")
    assert ("blockAccessListHash" in block) == chain.since("Amsterdam")
    assert chain.balance(COINBASE) == before


def test_a_transfer_needs_nothing_but_its_ends(chain: Chain) -> None:
    before = chain.balance(RECEIVER)
    receipt = chain.mined(to=RECEIVER, value="0x5")
    assert chain.balance(RECEIVER) == before + 5
    assert int(receipt["gasUsed"], 16) == (204_600 if chain.since("Amsterdam") else 21_000)
    assert len(receipt["logs"]) == chain.since("Amsterdam")
    assert ("status" in receipt, "root" in receipt) == (
        chain.since("Byzantium"),
        not chain.since("Byzantium"),
    )
    sent = chain.result("eth_getTransactionByHash", receipt["transactionHash"])
    assert sent["type"] == ("0x2" if chain.since("London") else "0x0")
    assert sent["from"] == chain.sender


def test_a_wallet_sends_what_the_fork_knows(chain: Chain) -> None:
    account = Account.from_key(KEY)
    nonce = int(chain.result("eth_getTransactionCount", account.address, "latest"), 16)
    fields: dict[str, Any] = {"to": RECEIVER, "value": 1, "gas": 50_000, "nonce": nonce}
    fields["gasPrice"] = int(chain.result("eth_gasPrice"), 16)
    if chain.since("SpuriousDragon"):
        fields["chainId"] = 31_337
    if chain.since("Berlin"):
        fields["accessList"] = [{"address": RECEIVER, "storageKeys": []}]
    raw = Account.sign_transaction(fields, KEY).raw_transaction.hex()
    tx_hash = chain.result("eth_sendRawTransaction", "0x" + raw.removeprefix("0x"))
    receipt = chain.result("eth_getTransactionReceipt", tx_hash)
    assert receipt["type"] == ("0x1" if chain.since("Berlin") else "0x0")
    assert receipt.get("status", "0x1") == "0x1"


def test_a_contract_is_deployed_called_and_leaves_a_log(chain: Chain) -> None:
    contract = chain.mined(data=INIT)["contractAddress"]
    assert chain.result("eth_getCode", contract, "latest") == "0x" + CODE
    answer = chain.result("eth_call", {"to": contract}, "latest")
    assert int(answer, 16) == 42
    receipt = chain.mined(to=contract)
    assert len(receipt["logs"]) == 1
    assert int(chain.result("eth_getStorageAt", contract, "0x1", "latest"), 16) == 7
    found = chain.result("eth_getLogs", {"address": contract, "fromBlock": "0x0"})
    assert found == receipt["logs"]
    estimate = int(chain.result("eth_estimateGas", {"from": chain.sender, "to": contract}), 16)
    assert (15_000 if chain.since("Amsterdam") else 21_000) < estimate < 60_000
    traced = chain.result("debug_traceTransaction", receipt["transactionHash"])
    assert traced["gas"] == int(receipt["gasUsed"], 16)
    assert chain.result("eth_getBlockReceipts", receipt["blockNumber"]) == [receipt]


def test_fees_are_reported(chain: Chain) -> None:
    assert int(chain.result("eth_gasPrice"), 16) > 0
    history = chain.result("eth_feeHistory", "0x2", "latest", [50])
    assert any(int(fee, 16) for fee in history["baseFeePerGas"]) == chain.since("London")


def test_the_chain_goes_back_to_a_snapshot(chain: Chain) -> None:
    number = chain.result("eth_blockNumber")
    snapshot = chain.result("evm_snapshot")
    chain.mined(to=RECEIVER, value="0x1")
    chain.mined(to=RECEIVER, value="0x1")
    assert chain.result("evm_revert", snapshot) is True
    assert chain.result("eth_blockNumber") == number
    chain.result("evm_mine")
    assert int(chain.result("eth_blockNumber"), 16) == int(number, 16) + 1


def test_several_transactions_share_a_block(chain: Chain) -> None:
    chain.result("evm_setAutomine", False)
    payment = {"from": chain.sender, "to": RECEIVER, "value": "0x1"}
    sent = [chain.result("eth_sendTransaction", payment) for _ in range(3)]
    pending = chain.result("eth_getBlockByNumber", "pending", False)
    chain.result("evm_mine")
    chain.result("evm_setAutomine", True)
    receipts = [chain.result("eth_getTransactionReceipt", item) for item in sent]
    assert pending["transactions"] == sent
    assert len({receipt["blockHash"] for receipt in receipts}) == 1
    assert [int(receipt["cumulativeGasUsed"], 16) for receipt in receipts] == [
        21_000,
        42_000,
        63_000,
    ]
    if not chain.since("Byzantium"):
        assert len({receipt["root"] for receipt in receipts}) == 3


def test_anvil_names_the_fork(chain: Chain) -> None:
    reported = chain.result("anvil_nodeInfo")["hardFork"]
    assert reported.lower().replace("merge", "paris") == NAMES[chain.name].lower()


def test_traces_replay_what_the_rules_did(chain: Chain) -> None:
    receipt = chain.mined(data=INIT)
    tree = chain.result(
        "debug_traceTransaction", receipt["transactionHash"], {"tracer": "callTracer"}
    )
    assert (tree["type"], tree["gasUsed"]) == ("CREATE", receipt["gasUsed"])


def test_an_impersonated_account_sends(chain: Chain) -> None:
    somebody = "0x" + "ab" * 20
    chain.result("anvil_setBalance", somebody, hex(10**20))
    chain.result("anvil_impersonateAccount", somebody)
    assert chain.mined(**{"from": somebody, "to": RECEIVER, "value": "0x1"})["from"] == somebody


def test_the_chain_begins_anew(chain: Chain) -> None:
    chain.result("anvil_reset")
    assert chain.result("eth_blockNumber") == "0x0"
    chain.mined(to=RECEIVER, value="0x5")
    assert chain.balance(RECEIVER) == 5
    assert chain.balance(COINBASE) < 10**16  # the coinbase gets fees but no block reward


def test_a_dump_is_loaded_again(chain: Chain) -> None:
    chain.mined(to=RECEIVER, value="0x5")
    held = chain.balance(RECEIVER)
    dump = chain.result("anvil_dumpState")
    chain.result("anvil_reset")
    assert chain.result("anvil_loadState", dump) is True
    assert chain.balance(RECEIVER) == held


def test_two_branches_replace_each_other(chain: Chain) -> None:
    chain.mined(to=RECEIVER, value="0x5")
    chain.result("anvil_mine", "0x3")
    number = chain.result("eth_blockNumber")
    before = chain.result("eth_getBlockByNumber", "latest", False)["hash"]
    chain.result("anvil_reorg", 2, [])
    assert chain.result("eth_blockNumber") == number
    assert chain.result("eth_getBlockByNumber", "latest", False)["hash"] != before
    chain.result("anvil_rollback", 2)
    assert int(chain.result("eth_blockNumber"), 16) == int(number, 16) - 2


def test_a_fork_of_a_chain_takes_older_rules_too() -> None:
    with ServerThread(node_of()) as upstream:
        url = upstream.url("geth")
        node = node_of("--fork-url", url, "--hardfork", "frontier", "--no-storage-caching")
        with ServerThread(node) as server:
            chain = Chain("frontier", node, Client(server.url("geth")))
            assert "root" in chain.mined(to=RECEIVER, value="0x5")
            assert chain.balance(RECEIVER) == 5
            assert chain.balance(COINBASE) < 10**16  # the coinbase gets fees but no block reward


@pytest.mark.parametrize(("name", "words"), [("Lisbon", "unknown fork"), ("isthmus", "OP stack")])
def test_a_name_of_no_fork_of_mainnet_is_refused(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"hardfork: .*{words}"):
        node_of("--hardfork", name)


def test_amsterdam_charges_for_new_accounts_and_logs_the_ether_that_moves() -> None:
    fresh = "0x" + "fe" * 20
    with ServerThread(node_of("--hardfork", "amsterdam")) as server:
        chain = Chain("amsterdam", server, Client(server.url("geth")))
        receipt = chain.mined(to=fresh, value="0x5")
        block = chain.result("eth_getBlockByNumber", "latest", False)
        again = chain.mined(to=fresh, value="0x5")
    assert int(receipt["gasUsed"], 16) == 21_000 + 183_600
    # A block counts the larger of regular gas and state gas. Here it is the state gas.
    assert int(block["gasUsed"], 16) == 183_600
    assert int(again["gasUsed"], 16) == 21_000
    assert [log["address"] for log in receipt["logs"]] == ["0x" + "ff" * 19 + "fe"]
    assert block["slotNumber"] == "0x1"
    assert len(block["blockAccessListHash"]) == 66
