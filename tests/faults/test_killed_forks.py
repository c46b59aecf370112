"""Tests that a killed forked node with a data directory loses no change that it reported."""

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.chain.retention import ChainLimits
from fastevm.chain.storage import DataDirectory, state_snapshot
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Mining, Node, dev_node, forked_node
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.remote.options import ForkOptions

KILLS = int(os.environ.get("FASTEVM_TEST_KILLS", "6"))
LONGEST = 0.4  # maximum seconds between the first report and the kill
COUNTER, BOB = b"\xc0" * 20, b"\xb0" * 20
COUNTER_CODE = "0x6007546001018060075560005260206000a000"  # adds 1 to slot 7 and logs the sum
SENDER = dev_accounts(1)[0]
Picture = tuple[int, bytes, int, int, int, int]


def opened(path: Path, url: str) -> Node:
    return forked_node(
        ForkOptions(urls=(url,)),
        mining=Mining.MANUAL,
        accounts=1,
        directory=DataDirectory(path),
        limits=ChainLimits(blocks=4),
    )


def picture(node: Node) -> Picture:
    """Returns the head, and the values that steps change, to compare before and after a kill."""
    head = node.chain.head
    layer = node.chain.layer_of(head.hash)
    clock = node.producer.clock.offset
    return (
        head.number, head.hash, layer.storage(COUNTER, 7), layer.balance(BOB),
        len(node.development.required().snapshots()), clock,
    )  # fmt: skip


def step(node: Node, number: int) -> None:
    """Makes the change number ``number``, with a development method or a transaction."""
    control: Any = node.development.required()
    kind = number % 5
    if kind == 0:
        control.amend({hex_bytes(BOB): {"balance": hex(number + 1)}})
    elif kind == 1:
        control.time.increase(1)
    elif kind == 2 and len(control.snapshots()) < 50:
        control.snapshot()
    elif kind == 3 and number % 30 == 3 and control.snapshots():
        control.revert(max(control.snapshots()))
    else:
        nonce = node.chain.layer_of(node.chain.head.hash).nonce(SENDER.address)
        transaction = Transaction.build(
            to=COUNTER, gas_limit=100_000, chain_id=31_337, nonce=nonce, max_fee_per_gas=10**11,
            max_priority_fee_per_gas=1,
        )  # fmt: skip
        if not len(node.pool):  # A transaction in the pool is from a step that a kill interrupted.
            node.submit(transaction.sign(SENDER.private_key).raw)
        node.mine()


def work_until_killed(path: Path, url: str, pipe: Connection, first: int) -> None:
    """Makes changes until killed, and reports a picture after each.

    The limits are lowered, so that every step may write a state snapshot.
    """
    state_snapshot.FORK_SNAPSHOT_GAS = 5 * state_snapshot.BLOCK_GAS  # type: ignore[misc]
    state_snapshot.MIN_PAUSE = 0  # type: ignore[misc]
    node, number = opened(path, url), first
    pipe.send(picture(node))
    while True:
        step(node, number)
        number += 1
        pipe.send(picture(node))


@pytest.fixture
def upstream() -> Iterator[ServerThread]:
    node = dev_node(mining=Mining.MANUAL, accounts=1, timestamp=1_700_000_000)
    node.development.required().amend({hex_bytes(COUNTER): {"code": COUNTER_CODE}})
    node.mine(3)
    with ServerThread(node) as server:
        yield server


def test_no_reported_change_of_a_fork_is_missing_after_kills(
    upstream: ServerThread, tmp_path: Path
) -> None:
    rng, context = random.Random(KILLS), multiprocessing.get_context("spawn")
    path, saved, steps = tmp_path / "data", 0, 0
    before: Picture | None = None
    for _ in range(KILLS):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(
            target=work_until_killed, args=(path, upstream.url(), writer, steps)
        )
        process.start()
        writer.close()
        reported = [reader.recv()]
        assert before in (None, reported[0])
        time.sleep(rng.random() * LONGEST)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        # The pipe ends with the process, or with a message that the kill cut off.
        with contextlib.suppress(EOFError, OSError):
            while reader.poll():
                reported.append(reader.recv())
        steps += len(reported) - 1
        saved += (path / "state.snapshot").stat().st_size > 200
        node = opened(path, upstream.url())
        before = picture(node)
        if before != reported[-1]:  # The node may have written one more step than it reported.
            assert before[0] - reported[-1][0] in (0, 1) or steps % 30 == 3
            assert before[2] - reported[-1][2] in (0, 1) or steps % 30 == 3
            steps += 1
        node.remote.close()
        assert node.directory is not None
        node.directory.close()
    assert saved and steps > KILLS
