"""Compares control methods with anvil's: results must be equal, and dumps load on either node."""

import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fastevm.bench.node.compared import start_anvil
from fastevm.bench.node.launch import NodeProcess, ServerThread
from fastevm.bench.node.load import LoadError
from fastevm.node import Mining, dev_node
from tests.max_wait import MAX_WAIT
from tests.rpc.test_dev_node import Client

ALICE, BOB, CAROL = ("0x" + byte * 20 for byte in ("a1", "b0", "ca"))
ETHER = hex(10**18)
# returns the value of the slot keccak256(both arguments)
READS_TWO = "0x6004355f5260243560205260405f20545f5260205ff3"
CREATION = "0x602a600052600160206000a1602a60015560006000f3"  # emits a log, and sets slot 1 to 42


@pytest.fixture(scope="module")
def anvil() -> Iterator[NodeProcess]:
    if shutil.which("npm") is None:
        pytest.skip("needs npm, which brings anvil")
    try:
        node = start_anvil()
    except LoadError as reason:
        pytest.skip(str(reason))
    with node:
        yield node


@pytest.fixture
def client() -> Iterator[Client]:
    live = ServerThread(dev_node(mining=Mining.INSTANT))
    live.start()
    yield Client(live.url("geth"))
    live.stop()


class Chains:
    """Sends the same requests to anvil and fastevm, and compares the answers."""

    def __init__(self, anvil: NodeProcess, client: Client) -> None:
        self.anvil, self.client = anvil, client

    def same(self, method: str, *params: Any) -> Any:
        """Returns the answer to a request. Fails if the nodes' answers differ."""
        theirs, ours = self.anvil.ask(method, *params), self.client.result(method, *params)
        assert theirs == ours, method
        return ours

    def each(self, method: str, *params: Any) -> tuple[Any, Any]:
        """Returns the answers of anvil and of fastevm."""
        return self.anvil.ask(method, *params), self.client.result(method, *params)


@pytest.fixture
def chains(anvil: NodeProcess, client: Client) -> Chains:
    anvil.ask("anvil_reset")
    return Chains(anvil, client)


def test_control_answers_as_anvil_does(chains: Chains) -> None:
    chains.same("anvil_setBalance", ALICE, ETHER)
    chains.same("anvil_addBalance", ALICE, "5")
    chains.same("tenderly_setBalance", BOB, 7)
    chains.same("anvil_impersonateAccount", ALICE)
    assert chains.same("eth_accounts")[10:] == [ALICE]
    payment = {"from": ALICE, "to": BOB, "value": "0x5", "gas": "0x5208", "gasPrice": hex(10**10)}
    for tx_hash, item in zip(
        chains.each("eth_sendTransaction", payment), (chains.anvil, chains.client), strict=True
    ):
        ask = item.ask if item is chains.anvil else item.result
        shown = ask("eth_getTransactionByHash", mined(ask, tx_hash))
        assert (shown["from"], shown["s"], shown["v"], shown["nonce"]) == (
            ALICE, "0x0", hex(2 * 31337 + 35), "0x0",
        )  # fmt: skip
    assert chains.same("eth_getBalance", ALICE, "latest") == hex(10**18 - 21_000 * 10**10)
    assert chains.same("eth_getBalance", BOB, "latest") == "0xc"
    chains.same("anvil_stopImpersonatingAccount", ALICE)
    chains.same("anvil_setCoinbase", CAROL)
    assert chains.same("eth_coinbase") == CAROL
    assert chains.same("evm_setBlockGasLimit", hex(90_000_000)) is True
    chains.same("anvil_setNextBlockBaseFeePerGas", "0x5")
    chains.each("evm_mine")
    blocks = chains.each("eth_getBlockByNumber", "latest", False)
    for member in ("number", "miner", "gasLimit", "baseFeePerGas"):
        assert blocks[0][member] == blocks[1][member]
    chains.same("anvil_dropAllTransactions")
    chains.same("anvil_setLoggingEnabled", True)
    theirs, ours = chains.each("anvil_nodeInfo")
    assert theirs.keys() == ours.keys()
    assert theirs["environment"].keys() == ours["environment"].keys()
    theirs, ours = chains.each("hardhat_metadata")
    assert ours.keys() - theirs.keys() == set()


def test_tokens_are_dealt_as_in_anvil(chains: Chains) -> None:
    chains.same("anvil_setCode", CAROL, READS_TWO)
    chains.same("anvil_dealERC20", ALICE, CAROL, "0x7")
    chains.same("anvil_setERC20Allowance", ALICE, BOB, CAROL, "0x9")
    words = [item[2:].zfill(64) for item in (ALICE, BOB)]
    balance = {"to": CAROL, "data": "0x70a08231" + words[0]}
    allowance = {"to": CAROL, "data": "0xdd62ed3e" + "".join(words)}
    assert int(chains.same("eth_call", balance, "latest"), 16) == 7
    assert int(chains.same("eth_call", allowance, "latest"), 16) == 9


def test_blocks_are_replaced_as_in_anvil(chains: Chains) -> None:
    sender = chains.same("eth_accounts")[0]
    payment = {"from": sender, "to": BOB, "value": "0x1", "gas": "0x5208"}
    for _ in range(3):
        theirs, ours = chains.each("eth_sendTransaction", payment)
        mined(chains.anvil.ask, theirs)
        mined(chains.client.result, ours)
    pairs = [[{**payment, "value": "0x7"}, 0], [{**payment, "value": "0x9"}, 1]]
    chains.same("anvil_reorg", 2, pairs)
    assert chains.same("eth_blockNumber") == "0x3"
    assert chains.same("eth_getBalance", BOB, "latest") == "0x11"
    assert chains.same("eth_getTransactionCount", sender, "pending") == "0x3"
    chains.same("anvil_rollback", 2)
    assert chains.same("eth_blockNumber") == "0x1"
    assert chains.same("eth_getTransactionCount", sender, "pending") == "0x1"
    for method, params in (("anvil_rollback", [9]), ("anvil_reorg", [9, []])):
        assert chains.client.ask(method, *params)["error"]["code"] == -32602


def fill(ask: Any) -> list[str]:
    """Mines the creation of a contract that logs, and a payment of an impersonated account.

    Waits for the receipt after each send, because anvil answers before it mines. Returns the
    hashes.
    """
    ask("anvil_setBalance", ALICE, ETHER)
    ask("anvil_impersonateAccount", ALICE)
    sender = ask("eth_accounts")[0]
    creation = {"from": sender, "gas": hex(200_000), "data": CREATION}
    payment = {"from": ALICE, "to": BOB, "value": "0x5"}
    return [mined(ask, ask("eth_sendTransaction", item)) for item in (creation, payment)]


def mined(ask: Any, tx_hash: str) -> str:
    """Waits for the receipt of ``tx_hash`` and returns the hash."""
    until = time.monotonic() + MAX_WAIT
    while ask("eth_getTransactionReceipt", tx_hash) is None:
        assert time.monotonic() < until, tx_hash
        time.sleep(0.01)
    return tx_hash


def test_a_dump_of_anvil_loads_here(chains: Chains) -> None:
    created, _ = fill(chains.anvil.ask)
    dump = chains.anvil.ask("anvil_dumpState")
    assert chains.client.result("anvil_loadState", dump) is True
    head = chains.same("eth_blockNumber")
    for number in range(int(head, 16) + 1):
        theirs, ours = chains.each("eth_getBlockByNumber", hex(number), False)
        assert theirs["hash"] == ours["hash"]
    theirs, ours = chains.each("eth_getTransactionReceipt", created)
    assert {name: ours[name] for name in ("logsBloom", "gasUsed", "contractAddress", "status")} == {
        name: theirs[name] for name in ("logsBloom", "gasUsed", "contractAddress", "status")
    }
    assert [our["data"] for our in ours["logs"]] == [their["data"] for their in theirs["logs"]]
    assert chains.same("eth_getStorageAt", ours["contractAddress"], "0x1", "latest")[-2:] == "2a"
    for account in (ALICE, BOB):
        chains.same("eth_getBalance", account, "latest")
        chains.same("eth_getTransactionCount", account, "latest")
    logs = chains.client.result("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})
    assert [log["address"] for log in logs] == [ours["contractAddress"]]
    block = chains.client.result("eth_getBlockByNumber", "latest", True)
    assert [item["from"] for item in block["transactions"]] == [ALICE]


def test_a_dump_of_this_node_loads_in_anvil(chains: Chains) -> None:
    created, paid = fill(chains.client.result)
    dump = chains.client.result("hardhat_dumpState")
    assert chains.anvil.ask("hardhat_loadState", dump) is True
    assert chains.same("eth_blockNumber") == "0x2"
    for number in range(3):
        theirs, ours = chains.each("eth_getBlockByNumber", hex(number), False)
        assert theirs["hash"] == ours["hash"]
    theirs, ours = chains.each("eth_getTransactionReceipt", created)
    assert theirs["contractAddress"] == ours["contractAddress"]
    assert [our["data"] for our in ours["logs"]] == [their["data"] for their in theirs["logs"]]
    assert chains.same("eth_getStorageAt", ours["contractAddress"], "0x1", "latest")[-2:] == "2a"
    assert chains.anvil.ask("eth_getTransactionByHash", paid)["from"] == ALICE
    chains.same("eth_getBalance", ALICE, "latest")
    chains.anvil.ask("evm_mine")
    assert chains.anvil.ask("eth_blockNumber") == "0x3"
