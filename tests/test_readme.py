"""Every command of the README does what it says."""

import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.S)
SHELL = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line]
COMMANDS = [line.split("  #")[0].strip() for line in SHELL]


def fastevm(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "fastevm", *arguments]


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        first or second for first, second in re.findall(r"^make (\w+)|`make (\w+)`", README, re.M)
    }
    assert {"node", "test"} <= named <= targets


@pytest.mark.parametrize("code", [text for kind, text in BLOCKS if kind == "python"])
def test_the_python_examples_run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("python -m fastevm")])
def test_the_spec_commands_print_tables(command: str) -> None:
    arguments = [sys.executable, *command.split()[1:]]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("fastevm conformance")])
def test_the_conformance_commands_are_understood(command: str) -> None:
    words = command.split()
    done = subprocess.run(fastevm(*words[1:3], "--help"), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for option in (word for word in words if word.startswith("--")):
        assert option in done.stdout


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("fastevm node")])
def test_the_node_commands_serve(command: str) -> None:
    shared = ROOT.parent / "shared/rpc-compat"
    words = [str(shared / w) if w in ("genesis.json", "chain.rlp") else w for w in command.split()]
    node = subprocess.Popen(
        fastevm(*words[1:], "--port", "0"), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert node.stdout is not None
        started, url = time.monotonic(), None
        while url is None:
            assert time.monotonic() - started < 10
            found = re.search(r"Listening on (\S+)", node.stdout.readline())
            url = found and f"http://{found[1]}"
        body = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=5) as answer:
            assert b'"result":"0x' in answer.read()
    finally:
        node.terminate()
        assert node.wait(10) == 0
