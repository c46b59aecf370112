"""Runs the program and the node of the Arbitrum page against a fake endpoint."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastevm.bench.node.launch import NodeProcess
from tests.max_wait import MAX_WAIT

from .pages import blocks_of, commands_of
from .shared_data import ROOT
from .unit.fork.arbitrum_endpoint import FIRST, L1_FIRST, L1_PRICE, ArbitrumEndpoint
from .unit.fork.fake_endpoint import HEAD

PAGE = (ROOT / "docs/arbitrum.md").read_text()
ADDRESS = "127.0.0.1:8545"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ArbitrumEndpoint]:
    fake = ArbitrumEndpoint()
    yield fake
    fake.close()


def test_the_program_reads_both_chains(endpoint: ArbitrumEndpoint, tmp_path: Path) -> None:
    [program] = [block.code for block in blocks_of(PAGE) if block.language == "python"]
    program = program.replace(f"http://{ADDRESS}", endpoint.url)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=MAX_WAIT,
        env=os.environ | {"FASTEVM_FORK_CACHE": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"block {FIRST + HEAD} of L1 {L1_FIRST + HEAD}",
        "version 61 ArbOS61",
        f"price on L1 {L1_PRICE} wei",
    ]


def test_the_node_starts(
    endpoint: ArbitrumEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTEVM_FORK_CACHE", str(tmp_path))
    [command] = commands_of(PAGE)
    words = shlex.split(command.replace(f"http://{ADDRESS}", endpoint.url))
    at = words.index("--port")
    del words[at : at + 2]
    with NodeProcess([sys.executable, "-m", *words, "-q"]) as node, node.client() as client:
        assert client.call("eth_blockNumber") == hex(FIRST + HEAD)
        client.call("evm_mine")
        block = client.call("eth_getBlockByNumber", "latest", False)
        assert block["l1BlockNumber"] == hex(L1_FIRST + HEAD + 1)
