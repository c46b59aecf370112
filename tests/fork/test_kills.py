"""Kills processes that fetch into the same cache. No cached value may ever be wrong."""

import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastevm.bench.options import child_environment
from fastevm.bench.remote.market_nodes import Upstream
from fastevm.bench.remote.proxy import Proxy
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.errors import ForkError
from fastevm.fork.remote_source import RemoteSource
from tests.fork import fetching, truth
from tests.shared_data import ROOT

LATENCY = 0.01  # latency of the endpoint in seconds
FIRST_ANSWER = 30.0  # seconds within which a process must fetch its first value
MOST_WAIT = 0.25  # maximum seconds that a process fetches before it is killed
SIDE_BY_SIDE = 2  # number of processes that use the cache at the same time


def begin(url: str, block: int, folder: Path, seed: int) -> subprocess.Popen[str]:
    """Starts `fetching` in a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fork.fetching", url, str(block), str(folder), str(seed)],
        cwd=ROOT, env=child_environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def cached(folder: Path, block_hash: bytes) -> Found:
    """Parses the cache file of a block, independently of the code that wrote it."""
    found = Found()
    (path,) = folder.glob("*.sqlite")
    with sqlite3.connect(path) as file:
        assert file.execute("pragma integrity_check").fetchone() == ("ok",)
        (block,) = file.execute("select id from block where hash = ?", [block_hash]).fetchone()
        codes = dict(file.execute("select hash, code from code"))
        rows = file.execute(
            "select address, balance, nonce, code from account where block=?", [block]
        )
        for address, balance, nonce, code in rows:
            found.accounts[address] = RemoteAccount(
                int.from_bytes(balance, "big"), int.from_bytes(nonce, "big"),
                codes[code] if code else b"",
            )  # fmt: skip
        rows = file.execute("select address, slot, value from slot where block = ?", [block])
        for address, slot, value in rows:
            found.slots[address, int.from_bytes(slot, "big")] = int.from_bytes(value, "big")
        rows = file.execute("select number, hash from block_hash where block = ?", [block])
        found.block_hashes.update(rows)
    assert all(keccak256(code) == name for name, code in codes.items())
    return found


def kill_often(own: Upstream, folder: Path, kills: int, seed: int) -> None:
    """Starts processes, kills each at a random time, then checks all cached values."""
    chance = random.Random(seed)
    block = own.head - 1
    block_hash = bytes.fromhex(own.ask("eth_getBlockByNumber", hex(block), False)["hash"][2:])
    with Proxy(own.url, latency=LATENCY) as proxy:
        for number in range(0, kills, SIDE_BY_SIDE):
            running = [
                begin(proxy.url, block, folder, seed + number + at) for at in range(SIDE_BY_SIDE)
            ]
            try:
                assert running[0].stdout is not None
                assert running[0].stdout.readline()
                for each in running:
                    time.sleep(chance.random() * MOST_WAIT)
                    each.kill()
            finally:
                for each in running:
                    each.kill()
                    each.wait(FIRST_ANSWER)
                    if each.stdout is not None:
                        each.stdout.close()
        found = cached(folder, block_hash)
        assert len(found.slots) >= fetching.SLOTS_AT_ONCE
        assert not truth.differences(own, found, block)
        check_offline(own, proxy.url, folder, block, found)


def check_offline(own: Upstream, url: str, folder: Path, block: int, found: Found) -> None:
    """Checks that cached values are read offline, and that an error names a missing value."""
    with RemoteSource.open(url, block, cache=folder, offline=True, progress=False) as source:
        again = source.fetch(Wanted(set(found.accounts), set(found.slots)))
        assert again.slots.items() >= found.slots.items()
        assert again.accounts.items() >= found.accounts.items()
        missing = (truth.NOBODY, truth.ABSENT_SLOT)
        with pytest.raises(ForkError, match=truth.NOBODY.hex()):
            source.fetch(Wanted(slots={missing}))


def test_a_few_kills_leave_no_wrong_value(own: Upstream, tmp_path: Path) -> None:
    kill_often(own, tmp_path, kills=6, seed=1)


@pytest.mark.slow
@pytest.mark.skipif("not config.getoption('--many-kills')", reason="takes two minutes")
def test_a_hundred_kills_leave_no_wrong_value(own: Upstream, tmp_path: Path) -> None:
    kill_often(own, tmp_path, kills=100, seed=100)
