"""Tests a node that is killed at any time, including while it writes its state or block index."""

import contextlib
import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

from fastevm.chain.retention import ChainLimits
from fastevm.chain.storage import DataDirectory, state_snapshot
from fastevm.node import Mining, Node, dev_node

KILLS = int(os.environ.get("FASTEVM_TEST_KILLS", "6"))
LONGEST = 0.4  # maximum seconds between the first new block and the kill


def opened(path: Path) -> Node:
    directory = DataDirectory(path)
    limits = ChainLimits(blocks=4)
    return dev_node(mining=Mining.MANUAL, accounts=1, directory=directory, limits=limits)


def mine_until_killed(path: Path, pipe: Connection) -> None:
    """Mines blocks until killed, and reports each hash. Every block may write a snapshot."""
    state_snapshot.SNAPSHOT_GAS = 5 * state_snapshot.BLOCK_GAS  # type: ignore[misc]
    state_snapshot.MIN_PAUSE = 0  # type: ignore[misc]
    node = opened(path)
    while True:
        pipe.send(node.mine()[0].hash)


def test_no_reported_block_is_missing_after_kills(tmp_path: Path) -> None:
    rng, context = random.Random(11), multiprocessing.get_context("spawn")
    path, saved = tmp_path / "data", 0
    known: list[bytes | None] = []
    for _ in range(KILLS):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=mine_until_killed, args=(path, writer))
        process.start()
        writer.close()
        known.append(reader.recv())
        time.sleep(rng.random() * LONGEST)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        # The pipe ends with the process, or with a message that the kill cut off.
        with contextlib.suppress(EOFError, OSError):
            while reader.poll():
                known.append(reader.recv())
        saved += (path / "blocks.index").exists()
        node = opened(path)
        chain = node.chain
        # The node may have written one more block than it reported.
        assert chain.head.number - len(known) in (0, 1)
        for number, block_hash in enumerate(known, 1):
            block = chain.block_by_number(number)
            assert block is not None and block.hash == block_hash
        known = [chain.canonical_hash(number) for number in range(1, chain.head.number + 1)]
        assert node.directory is not None
        node.directory.close()
    assert saved
