"""Runs every command of the page on forks against a local node."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fastevm.bench.node.launch import NodeProcess

from .pages import commands_of
from .shared_data import ROOT

PAGE = (ROOT / "docs/fork.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)
SHELL = commands_of(PAGE)
NODES = [shlex.split(line) for line in SHELL if line.startswith("fastevm node")]
REQUESTS = [line for line in SHELL if line.startswith("curl")]
OTHERS = [line for line in SHELL if not line.startswith(("curl", "fastevm node"))]
PROGRAMS = [text for kind, text in BLOCKS if kind == "python"]
FASTEVM = [sys.executable, "-m", "fastevm"]
LIMIT = 30.0  # time limit in seconds of one command
OUTPUTS = ("ether", "wei between the two blocks", "1000 bundles succeeded", "followed: True True")


class Pair(NamedTuple):
    """The running nodes: upstream, fork, saved fork and following fork, and their cache."""

    upstream: NodeProcess
    fork: NodeProcess
    kept: NodeProcess
    follower: NodeProcess
    cache: Path

    def here(self, text: str) -> str:
        """Returns a text of the page with the ports of the running nodes in place of the page's."""
        text = text.replace("127.0.0.1:8545", f"127.0.0.1:{self.upstream.port}")
        text = text.replace("127.0.0.1:8546", f"127.0.0.1:{self.fork.port}")
        text = text.replace("127.0.0.1:8548", f"127.0.0.1:{self.kept.port}")
        return text.replace("127.0.0.1:8547", f"127.0.0.1:{self.follower.port}")

    def run(self, command: list[str]) -> str:
        """Runs a command. Returns its standard output. Fails if the command fails."""
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT,
            env=os.environ | {"FASTEVM_FORK_CACHE": str(self.cache)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    first, *others = NODES
    directory = tmp_path_factory.mktemp("datadir")
    upstream = NodeProcess([*FASTEVM, *first[1:], "-q"])
    forks = []
    for other in others:
        at = other.index("--port")
        words = [*other[1:at], *other[at + 2 :]]
        words = [word.replace("127.0.0.1:8545", f"127.0.0.1:{upstream.port}") for word in words]
        words = [str(directory) if word == "staging" else word for word in words]
        forks.append(NodeProcess([*FASTEVM, *words, "-q", "--no-storage-caching"]))
    fork, kept, follower = forks
    upstream.start()
    try:
        yield Pair(upstream, fork, kept, follower, tmp_path_factory.mktemp("cache"))
    finally:
        for node in (fork, kept, follower, upstream):
            node.stop()


@pytest.mark.parametrize(("program", "words"), list(zip(PROGRAMS, OUTPUTS, strict=True)))
def test_the_programs_run(pair: Pair, program: str, words: str) -> None:
    assert words in pair.run([sys.executable, "-c", pair.here(program)])


@pytest.mark.parametrize("line", OTHERS)
def test_the_commands_run(pair: Pair, line: str) -> None:
    assert pair.run([*FASTEVM, *shlex.split(line)[1:]])


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_forked_node_answers(pair: Pair) -> None:
    pair.fork.start()
    balance, block = (
        json.loads(pair.run(shlex.split(pair.here(line))))["result"] for line in REQUESTS[:2]
    )
    assert int(balance, 16) == 10_000 * 10**18
    assert block == pair.upstream.ask("eth_getBlockByNumber", "0x0", False)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_kept_fork_goes_back_to_its_snapshot(pair: Pair) -> None:
    pair.kept.start()
    saved, restored = (
        json.loads(pair.run(shlex.split(pair.here(line))))["result"] for line in REQUESTS[2:4]
    )
    assert int(saved["blockNumber"], 16) >= 0 and restored is True
    pair.kept.stop()
    pair.kept.start()
    assert pair.kept.ask("fastevm_snapshots") == {"before-upgrade": saved}


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_node_that_follows_answers(pair: Pair) -> None:
    head = int(pair.upstream.ask("eth_blockNumber"), 16)
    pair.follower.start()
    pending = json.loads(pair.run(shlex.split(pair.here(REQUESTS[4]))))["result"]
    assert int(pending["number"], 16) >= head


def test_every_option_that_it_names_exists(pair: Pair) -> None:
    text = pair.run([*FASTEVM, "node", "--help"])
    named = set(re.findall(r"`(--[a-z-]+)`", PAGE))
    assert named and all(option in text for option in named)
