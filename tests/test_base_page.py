"""Runs the programs of the Base page against a local node."""

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO

import pytest

from fastevm.bench.node.launch import NodeProcess, wait_for
from tests.max_wait import MAX_WAIT

from .pages import blocks_of, commands_of
from .shared_data import ROOT

PAGE = (ROOT / "docs/base.md").read_text()
PROGRAM = "".join(block.code for block in blocks_of(PAGE) if block.language == "python")
NODE, *FOLLOWERS = (
    shlex.split(line) for line in commands_of(PAGE) if line.startswith("fastevm node")
)


@pytest.fixture(scope="module")
def node() -> Iterator[NodeProcess]:
    found = NodeProcess([sys.executable, "-m", "fastevm", *NODE[1:], "-q"])
    found.start()
    try:
        yield found
    finally:
        found.stop()


def test_a_stablecoin_is_created_and_its_payer_kept_from_paying(node: NodeProcess) -> None:
    printed = StringIO()
    with redirect_stdout(printed):
        exec(PROGRAM.replace("127.0.0.1:8545", f"127.0.0.1:{node.port}"), {})
    code, paid, millis, refused = printed.getvalue().splitlines()
    assert (code, paid) == ("0xef", "1 2")
    assert int(re.sub("^0x", "", millis), 16 if millis.startswith("0x") else 10) % 200 == 0
    assert refused == "True"


@pytest.mark.parametrize("words", FOLLOWERS, ids=["whole state", "fetched state"])
def test_a_second_node_follows(node: NodeProcess, words: list[str]) -> None:
    at = words.index("--port")
    options = [item.replace(":8545", f":{node.port}") for item in words[1:at] + words[at + 2 :]]
    with NodeProcess([sys.executable, "-m", "fastevm", *options, "-q"]) as follower:
        number = int(node.ask("eth_blockNumber"), 16) + 2
        block = ("eth_getBlockByNumber", hex(number), True)
        found = wait_for(lambda: follower.ask(*block), MAX_WAIT, "it does not follow")
        assert found == node.ask(*block)
