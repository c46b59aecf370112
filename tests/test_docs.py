"""Runs every command of the page on pre-confirmations against a local sequencer."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from fastevm.bench.node.launch import NodeProcess, wait_for

from .pages import commands_of
from .shared_data import ROOT

PAGE = (ROOT / "docs/preconfirmations.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)
SHELL = commands_of(PAGE)
NODES = [shlex.split(line) for line in SHELL if line.startswith("fastevm node --op")]
REQUESTS = [line for line in SHELL if line.startswith("curl")]
LIMIT = 20.0  # time limit in seconds of one command


class Pair(NamedTuple):
    """The running sequencer and its follower."""

    sequencer: NodeProcess
    follower: NodeProcess

    def here(self, text: str) -> str:
        """Returns a text of the page with the ports of the running nodes in place of the page's."""
        text = text.replace("127.0.0.1:8545", f"127.0.0.1:{self.sequencer.port}")
        return text.replace("127.0.0.1:8546", f"127.0.0.1:{self.follower.port}")


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    program = [sys.executable, "-m", "fastevm"]
    first, second = NODES
    sequencer = NodeProcess([*program, *first[1:], "-q"])
    at = second.index("--port")
    words = [*second[1:at], *second[at + 2 :]]
    words = [word.replace("127.0.0.1:8545", f"127.0.0.1:{sequencer.port}") for word in words]
    follower = NodeProcess([*program, *words, "-q"])
    sequencer.start()
    try:
        follower.start()
        wait_for(lambda: follower.metrics().get("pending_served"), LIMIT, "nothing is followed")
        yield Pair(sequencer, follower)
    finally:
        follower.stop()
        sequencer.stop()


def run(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_requests_are_answered(pair: Pair) -> None:
    pending, deposit, ready = (run(shlex.split(pair.here(line))) for line in REQUESTS)
    block = json.loads(pending)["result"]
    assert block["transactions"][0]["type"] == "0x7e"
    assert "unverified" in json.loads(ready)
    tx_hash = json.loads(deposit)["result"]
    ask = pair.follower.ask
    wait_for(lambda: ask("eth_getTransactionReceipt", tx_hash), LIMIT, "the deposit does not come")
    assert ask("eth_getTransactionReceipt", tx_hash)["status"] == "0x1"


@pytest.mark.parametrize("code", [text for kind, text in BLOCKS if kind == "python"])
def test_the_program_sees_its_payment(pair: Pair, code: str) -> None:
    assert "pre-confirmed after" in run([sys.executable, "-c", pair.here(code)])


def test_the_follower_knows_the_form_of_the_feed(pair: Pair) -> None:
    metrics = pair.follower.metrics()
    assert [name for name in metrics if 'feed_form{form="subblocks"' in name]
