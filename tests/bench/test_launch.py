"""Tests that each node that tests and benchmarks launch is one process, which ends with its use."""

import sys
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench.node import compared
from fastevm.bench.node.compared import ComparedNode, start_anvil
from fastevm.bench.node.launch import NodeProcess

# A program that writes its process id to a file and answers every request with that id.
PROGRAM = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Answer(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": hex(os.getpid())})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

with open(sys.argv[1], "a") as file:
    print(os.getpid(), file=file)
HTTPServer.allow_reuse_address = True
HTTPServer(("127.0.0.1", int(sys.argv[-1])), Answer).serve_forever()
"""


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """Provides a file to which started processes write their ids."""
    return tmp_path / "started"


@pytest.fixture
def command(started: Path) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(started)]


def alive(started: Path) -> list[int]:
    """Returns the ids of started processes that still run."""
    pids = [int(line) for line in started.read_text().split()]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_node_that_runs_is_not_started_again_by_with(command: list[str], started: Path) -> None:
    with ComparedNode("some", command) as node:
        assert alive(started) == [int(node.ask("eth_blockNumber"), 16)]
    assert alive(started) == []


def test_a_node_is_one_process(command: list[str], started: Path) -> None:
    node = NodeProcess(command)
    node.start()
    with pytest.raises(RuntimeError, match="runs already"):
        node.start()
    node.kill()
    assert alive(started) == []
    with node:
        assert len(alive(started)) == 1
    assert alive(started) == []


def test_a_node_that_cannot_be_measured_is_ended(
    command: list[str], started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(node: Any) -> int:
        raise OSError("no memory to read")

    monkeypatch.setattr(ComparedNode, "memory", failing)
    with pytest.raises(OSError, match="no memory"):
        ComparedNode("some", command)
    assert alive(started) == []


def test_an_anvil_ends_with_what_used_it(
    tmp_path: Path, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "anvil"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.argv.insert(1, {str(started)!r})\n")
    program.write_text(program.read_text() + PROGRAM)
    program.chmod(0o755)
    monkeypatch.setattr(compared, "anvil_binary", lambda: program)
    with start_anvil():
        assert len(alive(started)) == 1
    assert alive(started) == []


def test_a_process_that_ends_at_once_is_reported() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        NodeProcess([sys.executable, "-c", "raise SystemExit(3)"]).start()
