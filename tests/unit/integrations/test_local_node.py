"""Tests that an in-process node answers like a remote node, and ends when it is freed."""

import gc
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fastevm.integrations.local_node import LocalNode, NodeError, words_of
from tests.max_wait import MAX_WAIT
from tests.shared_data import ROOT

THREAD = "fastevm-node"


@pytest.fixture(scope="module")
def node() -> Iterator[LocalNode]:
    with LocalNode() as made:
        yield made


def node_threads() -> int:
    return sum(thread.name == THREAD for thread in threading.enumerate())


def test_a_node_answers_and_has_funded_accounts(node: LocalNode) -> None:
    assert node.request("eth_chainId") == hex(node.chain_id) == "0x7a69"
    first = node.accounts[0]
    assert first == "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    assert first.key == "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
    assert int(node.request("eth_getBalance", [first, "latest"]), 16) == 10_000 * 10**18


def test_a_transaction_is_mined_at_once(node: LocalNode) -> None:
    payer, payee = node.accounts[:2]
    tx = node.request("eth_sendTransaction", [{"from": payer, "to": payee, "value": "0x1"}])
    assert node.request("eth_getTransactionReceipt", [tx])["status"] == "0x1"


def test_bytes_among_the_params_become_hex(node: LocalNode) -> None:
    code = bytes.fromhex("5f5ff3")
    node.request("anvil_setCode", ["0x" + "c0" * 20, code])
    assert node.request("eth_getCode", [b"\xc0" * 20, "latest"]) == "0x5f5ff3"


def test_a_refusal_has_code_message_and_data(node: LocalNode) -> None:
    with pytest.raises(NodeError) as unknown:
        node.request("eth_nothing")
    assert unknown.value.code == -32601
    reverting = {"to": "0x" + "c1" * 20, "data": "0x"}
    node.request("anvil_setCode", ["0x" + "c1" * 20, "0x60015f5260205ffd"])
    with pytest.raises(NodeError) as reverted:
        node.request("eth_call", [reverting, "latest"])
    assert reverted.value.code == 3
    assert int(reverted.value.data, 16) == 1


def test_many_threads_ask_at_once(node: LocalNode) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: node.request("eth_chainId"), range(200)))
    assert set(found) == {"0x7a69"}


def test_options_are_those_of_the_command_line() -> None:
    assert words_of({"block_time": 2, "no_mining": True, "quiet": False, "listen": ["a", "b"]}) == [
        "--block-time=2", "--no-mining", "--listen=a", "--listen=b",
    ]  # fmt: skip
    with LocalNode(chain_id=5, accounts=1, no_mining=True) as node:
        assert node.chain_id == 5
        (only,) = node.accounts
        node.request("eth_sendTransaction", [{"from": only, "to": only}])
        assert node.request("eth_blockNumber") == "0x0"
        node.request("evm_mine")
        assert node.request("eth_blockNumber") == "0x1"


@pytest.mark.parametrize(
    ("command", "options", "reported"),
    [
        ("dev", {"blok_time": 1}, "blok-time"),
        ("dev", {"block_time": "soon"}, "soon"),
        ("dev", {"celo": True}, "Ethereum"),
        ("devil", {}, "devil"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    command: str, options: dict[str, object], reported: str
) -> None:
    with pytest.raises(ValueError, match=reported):
        LocalNode(command, **options)


def test_a_node_of_slices_moves_its_pending_block() -> None:
    thresholds = gc.get_threshold()
    with LocalNode("node", slice_interval=50, block_time="400ms") as node:
        assert gc.get_threshold() == thresholds, "garbage collection is the program's affair"
        payer, payee = node.accounts[:2]
        tx = node.request("eth_sendTransaction", [{"from": payer, "to": payee, "value": "0x1"}])
        limit = time.monotonic() + MAX_WAIT
        while (receipt := node.request("eth_getTransactionReceipt", [tx])) is None:
            assert time.monotonic() < limit
            time.sleep(0.01)
        assert receipt["status"] == "0x1"


def test_programs_outside_may_be_let_in(node: LocalNode) -> None:
    url = node.listen()
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "eth_chainId"}).encode()
    asked = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=MAX_WAIT) as answer:
        assert json.load(answer) == {"jsonrpc": "2.0", "id": 7, "result": "0x7a69"}


def test_a_stopped_node_says_so() -> None:
    before = node_threads()
    node = LocalNode()
    node.stop()
    node.stop()
    assert node_threads() == before
    with pytest.raises(ConnectionError, match="stopped"):
        node.request("eth_chainId")


def test_a_forgotten_node_ends() -> None:
    before = node_threads()
    node = LocalNode()
    assert node_threads() == before + 1
    del node
    gc.collect()
    assert node_threads() == before


def test_the_chain_is_written_at_the_end_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with LocalNode(state=file) as node:
        node.request("anvil_mine", ["0x3"])
    with LocalNode(state=file) as node:
        assert node.request("eth_blockNumber") == "0x3"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_does_not_wait_for_ever() -> None:
    program = """
import os
from fastevm.integrations.local_node import LocalNode
node = LocalNode()
if os.fork() == 0:
    try:
        node.request("eth_chainId")
    except ConnectionError:
        os._exit(7)
    os._exit(8)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=MAX_WAIT, cwd=ROOT
    )
    assert (done.stdout, done.stderr) == ("7\n", "")
