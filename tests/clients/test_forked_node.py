"""Tests viem and cast on a forked node."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fastevm.bench.node.compared import start_anvil
from fastevm.bench.node.launch import NodeProcess, fastevm_node, wait_for
from fastevm.bench.node.load import LoadError
from fastevm.node.dev_accounts import dev_accounts
from tests.max_wait import MAX_WAIT

from .conftest import running_node
from .test_javascript import HERE, reported
from .test_op_stack import CAST, LIMIT

COUNTER = "5f54600101805f555f52600760205fa160205ff3"  # the counter contract of common.mjs
INITCODE = f"0x6014600a5f3960145ff3{COUNTER}"
SENDER = "0x" + dev_accounts(1)[0].address.hex()
BOB = "0x" + "b0" * 20

VIEM = {
    "call": 3,
    "pay and wait": "success",
    "count": ["success", 1, True],
    "receipt before the fork": ["success", 2],
    "logs across the border": [[1, False], [2, False], [3, True]],
    "storage on both sides": [2, 3],
    "blocks on both sides": [True, True],
    "traces on both sides": [2, 3],
    "simulate blocks": [4, 5],
}


@dataclass(frozen=True, slots=True)
class Counted:
    """An upstream whose counter is at two, and the hash of its last transaction."""

    url: str
    counter: str
    last: str


@pytest.fixture(scope="module", params=["fastevm", "anvil"])
def upstream(request: pytest.FixtureRequest) -> Iterator[Counted]:
    """Provides a fastevm upstream, then anvil. Skips anvil if npm cannot install it."""
    if request.param == "anvil" and shutil.which("npm") is None:
        pytest.skip("needs npm")
    try:
        node: NodeProcess = start_anvil() if request.param == "anvil" else fastevm_node("--instant")
    except LoadError as reason:
        pytest.skip(str(reason))
    with node:

        def sent(**fields: str) -> dict[str, str]:
            fields = {"from": SENDER, "gas": "0x30d40", **fields}
            tx_hash = node.ask("eth_sendTransaction", fields)
            return wait_for(
                lambda: node.ask("eth_getTransactionReceipt", tx_hash), MAX_WAIT, "not mined"
            )

        counter = sent(data=INITCODE)["contractAddress"]
        last = [sent(to=counter) for _ in range(2)][-1]
        yield Counted(node.url, counter, last["transactionHash"])


@pytest.fixture
def fork(upstream: Counted) -> Iterator[str]:
    """Provides the URL of a forked node that mines a block for every transaction."""
    options = ("--fork-url", upstream.url, "--no-storage-caching", "--instant")
    with running_node(*options, "--dialect", "geth") as url:
        yield url


@pytest.mark.skipif(
    shutil.which("node") is None or not (HERE / "node_modules").is_dir(),
    reason="needs Node.js and npm, which `make test` uses where they are installed",
)
def test_programs_on_viem_see_one_chain(upstream: Counted, fork: str) -> None:
    assert reported("viem_fork", fork, 2, upstream.counter, upstream.last) == VIEM


@pytest.mark.skipif(CAST is None, reason="needs cast, which npm brings with `make test`")
def test_commands_of_cast_see_one_chain(upstream: Counted, fork: str) -> None:
    def cast(*words: str) -> str:
        command = [str(CAST), *words, "--rpc-url", fork]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    counter, key = upstream.counter, "0x" + dev_accounts(3)[2].private_key.hex()
    border = int(json.loads(cast("receipt", upstream.last, "--json"))["blockNumber"], 16)
    assert int(cast("call", counter), 16) == 3
    receipt = json.loads(cast("send", counter, "--private-key", key, "--json"))
    assert receipt["status"] == "0x1" and int(receipt["blockNumber"], 16) > border
    tx_hash = receipt["transactionHash"]
    logs = json.loads(cast("logs", "--address", counter, "--from-block", "0", "--json"))
    assert [int(log["data"], 16) for log in logs] == [1, 2, 3]
    assert [int(log["blockNumber"], 16) > border for log in logs] == [False, False, True]
    assert int(cast("storage", counter, "0"), 16) == 3
    assert int(cast("storage", counter, "0", "--block", str(border)), 16) == 2
    assert int(cast("balance", BOB)) == 0
    assert int(cast("nonce", "0x" + dev_accounts(3)[2].address.hex())) == 1
    for item, gas in ((tx_hash, receipt["gasUsed"]), (upstream.last, None)):
        used = gas or json.loads(cast("receipt", item, "--json"))["gasUsed"]
        assert f"Gas used: {int(used, 16)}" in cast("run", item)
        assert json.loads(cast("rpc", "debug_traceTransaction", item))["gas"] == int(used, 16)
