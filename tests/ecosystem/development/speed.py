"""Times the tests of two projects, and the start of a node, on anvil and `fastevm dev` in turn.

``python -m tests.ecosystem.development.speed [ROUNDS]`` prints medians as Markdown: wall seconds
and the node's CPU seconds for a Hardhat project with 50 tests and for a viem project with 100
tests, and the seconds from a node's start to its first answer. With ``start`` before ROUNDS, only
the start is measured.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Final

import fastevm
import fastevm.rpc
from fastevm.bench.node.launch import NodeProcess
from fastevm.bench.node.load import cpu_seconds

from .clients import CLIENTS, HERE, environment
from .nodes import NODES, running

SECONDS: Final = 300.0  # time limit in seconds of one run
PROJECTS: Final[dict[str, tuple[str, list[str]]]] = {
    "Hardhat, 50 tests": ("hardhat2", ["node_modules/.bin/hardhat", "test", "--no-compile"]),
    "viem, 100 tests": ("javascript", ["node", "--test", "viem_suite.mjs"]),
}
INSTALLED: Final = {"hardhat2": "hardhat-network-helpers 1", "javascript": "ethers 6"}


def timed(folder: Path, words: list[str], variables: dict[str, str]) -> float:
    """Returns the seconds that a program takes. Fails if its exit status is not 0."""
    began = time.monotonic()
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed: {(done.stdout + done.stderr)[-3000:]}")
    return time.monotonic() - began


def started(node: NodeProcess) -> tuple[float, float]:
    """Returns wall and CPU seconds from the start of a node's process to its first answer."""
    seconds = node.start()
    processor = cpu_seconds(node.pid)
    node.kill()
    return seconds, processor


def starts(rounds: int) -> None:
    """Prints the start times of both nodes, and of a Python interpreter that does nothing.

    Bytecode is compiled beforehand, as an installation does. Otherwise, with
    PYTHONDONTWRITEBYTECODE, every start would compile edited modules.
    """
    for package in (fastevm, fastevm.rpc):
        compileall.compile_dir(package.__path__[0], quiet=1)
    found: dict[str, list[tuple[float, float]]] = {}
    bare = []
    for _ in range(rounds):
        for name, start in NODES.items():
            found.setdefault(name, []).append(started(start()))
        bare.append(timed(HERE, [sys.executable, "-c", "pass"], dict(os.environ)))
    print(f"| seconds to the first answer, {rounds} rounds | median | least | CPU |")
    print("|---|---|---|---|")
    for name, pairs in found.items():
        seconds, processor = zip(*pairs, strict=True)
        print(f"| {name} | {median(seconds):.3f} | {min(seconds):.3f} | {median(processor):.2f} |")
    print(f"| (Python alone) | {median(bare):.3f} | {min(bare):.3f} | |")


def main() -> None:
    """Measures and prints."""
    if sys.argv[1:2] == ["start"]:
        starts(int(sys.argv[2]) if len(sys.argv) > 2 else 15)
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for name, (folder, words) in PROJECTS.items():
            variables = os.environ | environment(CLIENTS[INSTALLED[folder]])
            for node_name, start in NODES.items():
                node = start()
                with running(node):
                    variables["NODE_URL"] = node.url
                    before = cpu_seconds(node.pid)
                    seconds = timed(HERE / folder, words, variables)
                    processor = cpu_seconds(node.pid) - before
                found.setdefault(name, {}).setdefault(node_name, []).append(seconds)
                of_node = f"{name}: CPU of the node"
                found.setdefault(of_node, {}).setdefault(node_name, []).append(processor)
        for node_name, start in NODES.items():
            node = start()
            seconds = node.start()
            node.kill()
            found.setdefault("start to first answer", {}).setdefault(node_name, []).append(seconds)
    print(f"| seconds, median of {rounds} | {' | '.join(NODES)} |\n|---|{'---|' * len(NODES)}")
    for name, by_node in found.items():
        figures = " | ".join(f"{median(by_node[node]):.2f}" for node in NODES)
        print(f"| {name} | {figures} |")


if __name__ == "__main__":
    main()
