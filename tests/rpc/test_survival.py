"""Tests that a killed node loses nothing that it promised, and that its follower continues."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench.node.launch import NodeProcess, fastevm_node, wait_for
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.dev_chain import DEV_CHAIN_ID as CHAIN_ID
from fastevm.rpc_client.messages import RpcRefusal
from tests.max_wait import MAX_WAIT

KEY = dev_accounts(1)[0].private_key
BOB = "0x" + "b0" * 20
ZERO = "0x" + "00" * 32
# init code of a contract that executes PUSH0 PUSH0 LOG0
LOGGER_INIT = "635f5fa0005f526004601cf3"
TIMES = ("--block-time", "500ms", "--slice-interval", "50")


class Pair:
    """A builder, its follower, and the next nonce of the first account."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nonce = 0
        self.builder = fastevm_node(*TIMES, "--datadir", str(path / "builder"))
        self.follower = fastevm_node(
            *TIMES, "--datadir", str(path / "follower"),
            "--upstream-url", self.builder.url, "--preconf-url", self.builder.feed,
        )  # fmt: skip

    def start(self) -> None:
        self.builder.start()
        self.follower.start()

    def send(self, **fields: Any) -> str:
        """Sends the next transaction of the first account to the builder. Returns its hash."""
        members = {
            "chain_id": CHAIN_ID,
            "gas_limit": 100_000,
            "value": 1,
            "to": bytes.fromhex(BOB[2:]),
        } | fields
        prices = {"max_fee_per_gas": 10**11, "max_priority_fee_per_gas": 10**9}
        made = Transaction.build(**{**members, **prices, "nonce": self.nonce}).sign(KEY)
        self.nonce += 1
        return self.builder.ask("eth_sendRawTransaction", "0x" + made.raw.hex())

    def stop(self) -> None:
        self.follower.stop()
        self.builder.stop()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    try:
        pair.start()
        yield pair
    finally:
        pair.stop()


def head(node: NodeProcess) -> int:
    return int(node.ask("eth_blockNumber"), 16)


def chain(node: NodeProcess, last: int) -> list[Any]:
    """Returns the blocks up to ``last`` with receipts and logs."""
    found = []
    for number in range(last + 1):
        block = node.ask("eth_getBlockByNumber", hex(number), True)
        found += [block, node.ask("eth_getBlockReceipts", hex(number))]
    span = {"fromBlock": "0x0", "toBlock": hex(last)}
    return [*found, node.ask("eth_getLogs", span), node.ask("eth_getBalance", BOB, hex(last))]


def receipt(node: NodeProcess, tx_hash: str, *, sealed: bool = True) -> Any:
    def found() -> Any:
        answer = node.ask("eth_getTransactionReceipt", tx_hash)
        return answer if answer and (not sealed or answer["blockHash"] != ZERO) else None

    return wait_for(found, MAX_WAIT, f"no receipt of {tx_hash}")


def follows(pair: Pair, at_least: int = 0) -> None:
    """Waits until the follower has the builder's head, or its parent, and serves slices."""

    def at_the_head() -> bool:
        last = head(pair.builder)
        metrics = pair.follower.metrics()
        return last >= at_least and last - head(pair.follower) <= 1 and metrics["pending_served"]

    wait_for(at_the_head, MAX_WAIT, "the follower does not follow")


def same(pair: Pair) -> None:
    """Asserts that builder and follower have the same chain."""
    last = head(pair.builder)
    wait_for(lambda: head(pair.follower) >= last, MAX_WAIT, "the follower stays behind")
    assert chain(pair.follower, last) == chain(pair.builder, last)


def test_either_side_is_killed_and_both_end_with_the_same_chain(pair: Pair) -> None:
    created = receipt(pair.builder, pair.send(to=None, value=0, data=bytes.fromhex(LOGGER_INIT)))
    logger = bytes.fromhex(created["contractAddress"][2:])
    sent = [pair.send(), pair.send(to=logger, value=0)]
    follows(pair, at_least=2)

    before = head(pair.builder)
    wanted = chain(pair.builder, before)
    sent += [pair.send(to=logger, value=0) for _ in range(3)]
    promised = receipt(pair.builder, sent[-1], sealed=False)
    pair.builder.kill()
    wait_for(
        lambda: not pair.follower.metrics()["feed_connected"], MAX_WAIT, "nobody noticed"
    )  # fmt: skip
    pair.builder.start()
    assert chain(pair.builder, before) == wanted
    kept = receipt(pair.builder, sent[-1])
    promised.pop("preconfirmed", None)
    assert {**kept, "blockHash": ZERO, "logs": []} == {**promised, "blockHash": ZERO, "logs": []}
    sent.append(pair.send())
    follows(pair, at_least=head(pair.builder) + 1)

    pair.follower.kill()
    sent += [pair.send(to=logger, value=0) for _ in range(3)]
    missed = receipt(pair.builder, sent[-1])
    pair.follower.start()
    follows(pair, at_least=int(missed["blockNumber"], 16) + 1)
    assert pair.follower.ask("eth_getTransactionReceipt", sent[-1]) == missed
    for tx_hash in sent:
        assert receipt(pair.follower, tx_hash) == receipt(pair.builder, tx_hash)
    same(pair)


def test_killed_again_and_again_under_load_nothing_that_was_answered_is_lost(pair: Pair) -> None:
    sent = []
    for round_ in range(4):
        target = pair.builder if round_ % 2 == 0 else pair.follower
        for _ in range(20):
            sent.append(pair.send())
        target.kill()
        target.start()
    for tx_hash in sent:
        assert receipt(pair.builder, tx_hash)["status"] == "0x1"
    follows(pair)
    same(pair)
    assert int(pair.follower.ask("eth_getBalance", BOB, "latest"), 16) == len(sent)


@pytest.fixture
def upstream() -> Iterator[NodeProcess]:
    """Provides a node without a data directory, which begins a new chain whenever it starts."""
    node = fastevm_node(*TIMES)
    try:
        node.start()
        yield node
    finally:
        node.stop()


def begin_anew(upstream: NodeProcess) -> str:
    """Restarts the node with a different genesis. Returns the hash of the new genesis."""
    upstream.kill()
    upstream.command += ["--genesis-time", "1700000000"]
    upstream.start()
    return first_block(upstream)


def first_block(node: NodeProcess) -> str:
    return node.ask("eth_getBlockByNumber", "0x0", False)["hash"]


def test_a_follower_starts_over_when_its_upstream_began_anew(
    upstream: NodeProcess, tmp_path: Path
) -> None:
    follower = fastevm_node(
        *TIMES, "--datadir", str(tmp_path),
        "--upstream-url", upstream.url, "--preconf-url", upstream.feed,
    )  # fmt: skip
    try:
        follower.start()
        wait_for(lambda: head(follower) >= 1, MAX_WAIT, "it does not follow")
        first, second = first_block(follower), begin_anew(upstream)
        assert second != first
        wait_for(lambda: first_block(follower) == second, MAX_WAIT, "it stays on the old chain")
        wait_for(lambda: head(follower) >= 1, MAX_WAIT, "it does not follow the new chain")
        (aside,) = tmp_path.glob("abandoned-*")
        assert first in (aside / "genesis.json").read_text()
    finally:
        follower.stop()


def test_a_follower_that_shall_not_start_over_ends_with_an_error(
    upstream: NodeProcess, tmp_path: Path
) -> None:
    errors = tmp_path / "errors"
    source = ("--upstream-url", upstream.url)
    follower = fastevm_node(*TIMES, *source, "--foreign-chain", "stop", log=errors)
    try:
        follower.start()
        begin_anew(upstream)
        assert follower.process is not None
        assert follower.process.wait(MAX_WAIT) == 1
        assert "is on another chain: its block 0 is 0x" in errors.read_text()
    finally:
        follower.stop()


def test_two_nodes_do_not_share_a_directory(pair: Pair, tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    second = fastevm_node("--datadir", str(tmp_path / "builder"), log=errors)
    try:
        with pytest.raises(RuntimeError, match="ended with 1"):
            second.start()
    finally:
        second.stop()
    assert "is in use by another node (process" in errors.read_text()
    with pytest.raises(RpcRefusal):
        pair.builder.ask("eth_noSuchMethod")
