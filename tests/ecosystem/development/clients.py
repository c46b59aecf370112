"""Runs published clients, case by case, on anvil and on `fastevm dev`.

``python -m tests.ecosystem.development.clients [NAME ...]`` prints how many cases pass on each
node, and the cases that fail on `fastevm dev`. Exit status 1 if a case passes on anvil but fails on
`fastevm dev`. The environments of the clients stay in ``build/development`` and beside the
programs. ``--install`` creates the environments and runs nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from fastevm.bench.node.compared import anvil_binary
from fastevm.node.dev_accounts import dev_accounts
from tests.ecosystem import suites

from .nodes import BASELINE, NODES, OURS, running

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
FOLDER: Final = ROOT / "build" / "development"
SAMPLES: Final = ROOT / "tests" / "clients" / "javascript"
SECONDS: Final = 900.0  # time limit in seconds for all cases of one client
INSTALLS: Final = 4  # environments that are installed at the same time
WEB3_SUITES: Final = ["web3-modules"]
KEYS: Final = ["0x" + account.private_key.hex() for account in dev_accounts(2)]
# Hardhat 3 rejects the older versions that many systems have.
NODE_24: Final = "node@24.21.0"

Outcomes = dict[str, str | None]  # case -> its error, or None if it passed


@dataclass(frozen=True)
class Client:
    """A program that tests a client.

    ``command``: returns the program's command for a node's URL and the folder of the environment.
    ``npm``: a folder with a package.json to install. ``pip``: requirements to install in a separate
    environment. ``newer_node``: the client needs a newer Node.js than the installed one.
    ``starts_node``: the client starts the node itself, as ``anvil`` from the PATH. ``upstream``:
    the program gets the URL of a further node as last argument.
    """

    command: Callable[[str], list[str]]
    npm: Path | None = None
    pip: tuple[str, ...] = ()
    newer_node: bool = False
    starts_node: bool = False
    upstream: bool = False

    def words(self, url: str) -> list[str]:
        """Returns the command that runs the client on a node's URL."""
        return self.command(url)


def script(folder: Path, name: str, *more: str) -> Callable[[str], list[str]]:
    """Returns a command for Node.js: the script, the URL, the first account's key, and ``more``."""
    return lambda url: ["node", str(folder / name), url, KEYS[0], *more]


def python(name: str) -> Callable[[str], list[str]]:
    """Returns the command of a Python program in this folder, in the client's environment."""
    return lambda url: ["python", str(HERE / f"{name}.py"), url, KEYS[0]]


def cast(url: str) -> list[str]:
    """Returns the command that runs every command of cast."""
    program = str(SAMPLES / "node_modules" / ".bin" / "cast")
    return [sys.executable, "-m", f"{__package__}.cast_commands", url, KEYS[0], program]


JAVASCRIPT: Final = HERE / "javascript"
CLIENTS: Final[dict[str, Client]] = {
    **{
        f"viem, mode {mode}": Client(
            script(SAMPLES, "with_viem_test.mjs", mode), SAMPLES, upstream=True
        )
        for mode in ("anvil", "hardhat", "ganache")
    },
    "many sends": Client(script(SAMPLES, "with_sends.mjs", KEYS[1]), SAMPLES),
    "hardhat-network-helpers 1": Client(
        lambda _: ["node", str(HERE / "hardhat2" / "helpers.mjs")], HERE / "hardhat2"
    ),
    "hardhat-network-helpers 3": Client(
        lambda _: ["node", str(HERE / "hardhat3" / "helpers.mjs")], HERE / "hardhat3",
        newer_node=True,
    ),
    "ethers 6": Client(script(JAVASCRIPT, "ethers_dev.mjs"), JAVASCRIPT),
    "web3.js 4": Client(script(JAVASCRIPT, "web3js_dev.mjs"), JAVASCRIPT),
    "OpenZeppelin test helpers": Client(
        script(HERE / "openzeppelin", "helpers.cjs"), HERE / "openzeppelin"
    ),
    "cast": Client(cast, SAMPLES),
    "forge": Client(script(HERE / "forge", "commands.mjs"), HERE / "forge"),
    "titanoboa": Client(python("titanoboa_network"), pip=("titanoboa==0.2.8",)),
    "wake": Client(python("wake_chain"), pip=("eth-wake==4.22.2",)),
    "Ponder": Client(script(HERE / "ponder", "start.mjs"), HERE / "ponder"),
    "Subsquid": Client(script(HERE / "subsquid", "cases.mjs"), HERE / "subsquid"),
    "alto": Client(script(HERE / "bundler", "alto.mjs"), HERE / "bundler"),
    "ethereum-etl": Client(
        python("ethereum_etl_exports"), pip=("ethereum-etl==2.4.2", "setuptools<80")
    ),
    "ape-foundry": Client(
        python("ape_foundry_node"), pip=("eth-ape==0.8.51", "ape-foundry==0.8.12"),
        starts_node=True,
    ),
}  # fmt: skip


def npm_install(folder: Path, environment: Mapping[str, str]) -> None:
    """Installs the packages of a folder's package.json, unless they are already installed."""
    mark, wanted = folder / "node_modules" / ".installed", (folder / "package.json").read_text()
    if mark.exists() and mark.read_text() == wanted:
        return
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    subprocess.run(["npm", "install", *quiet], cwd=folder, env=environment, check=True)
    mark.write_text(wanted)


def newer_node() -> Path:
    """Installs a newer Node.js, unless it is already installed.

    Returns the folder of its programs.
    """
    folder = FOLDER / "node"
    programs = folder / "node_modules" / "node" / "bin"
    if not programs.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", NODE_24]
        subprocess.run(command, cwd=folder, check=True)
    return programs


def pip_install(packages: tuple[str, ...]) -> Path:
    """Creates an environment with these packages. Returns its ``bin`` folder."""
    folder = FOLDER / ("venv-" + packages[0].split("==")[0])
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(command, check=True)
        (folder / "ready").touch()
    return folder / "bin"


def named_anvil(name: str, folder: Path) -> Path:
    """Returns a folder with a program ``anvil``, which starts the node with the given name."""
    program = folder / "anvil"
    if name == BASELINE:
        words = f'"{anvil_binary()}"'
    else:
        words = f'PYTHONPATH="{ROOT}" "{sys.executable}" -m fastevm dev'
    program.write_text(f'#!/bin/sh\n{"exec env " if name != BASELINE else "exec "}{words} "$@"\n')
    program.chmod(0o755)
    return folder


def environment(client: Client) -> dict[str, str]:
    """Installs what a client requires. Returns the environment variables of its program."""
    found = os.environ | {"HARDHAT_DISABLE_TELEMETRY_PROMPT": "true", "NO_COLOR": "1"}
    found["PYTHONPATH"] = str(ROOT)
    if client.newer_node:
        found["PATH"] = f"{newer_node()}{os.pathsep}{found['PATH']}"
    if client.npm is not None:
        npm_install(client.npm, found)
    if client.pip:
        found["PATH"] = f"{pip_install(client.pip)}{os.pathsep}{found['PATH']}"
    return found


def install(names: list[str]) -> None:
    """Installs the environments of clients, anvil, and web3.py's tests.

    If something cannot be installed, the tests that need it are skipped.
    """
    tasks: dict[str, Callable[[], object]] = {"web3.py": partial(suites.install, WEB3_SUITES)}
    places = set()
    # Starts with the slowest installations.
    for name in sorted(names, key=lambda name: len(CLIENTS[name].pip), reverse=True):
        client = CLIENTS[name]
        if (place := (client.npm, client.pip)) not in places:
            places.add(place)
            tasks[name] = partial(environment, client)
    tasks["anvil"] = anvil_binary
    with ThreadPoolExecutor(INSTALLS) as pool:
        begun = {name: pool.submit(task) for name, task in tasks.items()}
    for name, task in begun.items():
        if error := task.exception():
            print(f"{name} could not be installed: {error}", file=sys.stderr)


def outcomes(text: str) -> Outcomes:
    """Parses the outcomes in a program's output."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith('{"name"')]
    return {line["name"]: line.get("error") for line in lines}


def run(client: Client, name: str) -> Outcomes:
    """Runs every case of a client on the node with this name."""
    variables = environment(client)
    with tempfile.TemporaryDirectory() as scratch:
        if client.starts_node:
            folder = named_anvil(name, Path(scratch))
            variables |= {"PATH": f"{folder}{os.pathsep}{variables['PATH']}", "HOME": scratch}
            return reported(client.words(""), variables)
        with running(NODES[name]()) as node:
            variables["NODE_URL"] = node.url
            if not client.upstream:
                return reported(client.words(node.url), variables, client.npm)
            with running(NODES[BASELINE]()) as upstream:
                upstream.ask("anvil_mine", "0x5")
                return reported([*client.words(node.url), upstream.url], variables, client.npm)


def reported(
    words: list[str], variables: Mapping[str, str], folder: Path | None = None
) -> Outcomes:
    """Runs a program. Returns the outcomes that it prints."""
    program = shutil.which(words[0], path=variables["PATH"]) or words[0]
    done = subprocess.run(
        [program, *words[1:]], env=variables, cwd=folder, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    if found := outcomes(done.stdout):
        return found
    raise SystemExit(f"{' '.join(words)} told nothing: {(done.stderr or done.stdout)[-2000:]}")


def main() -> int:
    """Runs the clients and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem.development.clients")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {'; '.join(CLIENTS)}")
    parser.add_argument("--install", action="store_true", help="make environments, try nothing")
    parser.add_argument("--only", choices=NODES, help="one node instead of both")
    chosen = parser.parse_args()
    names = chosen.names or list(CLIENTS)
    if unknown := [name for name in names if name not in CLIENTS]:
        parser.error(f"no client {', '.join(unknown)}; there are {'; '.join(CLIENTS)}")
    if chosen.install:
        install(names)
        return 0
    nodes = [chosen.only] if chosen.only else list(NODES)
    print(f"| client | cases | {' | '.join(nodes)} |\n|---|---|{'---|' * len(nodes)}")
    behind = False
    for name in names:
        found = {node: run(CLIENTS[name], node) for node in nodes}
        cases = dict.fromkeys(case for cases in found.values() for case in cases)
        passed = {
            node: [case for case in cases if reported.get(case, "") is None]
            for node, reported in found.items()
        }
        counts = " | ".join(str(len(passed[node])) for node in nodes)
        print(f"| {name} | {len(cases)} | {counts} |", flush=True)
        for case in cases:
            for node in nodes:
                if case not in passed[node]:
                    print(f"    {node}: {case}: {found[node].get(case, 'not reached')[:300]!r}")
        behind |= (
            OURS in passed and BASELINE in passed and not set(passed[BASELINE]) <= set(passed[OURS])
        )
    return int(behind)


if __name__ == "__main__":
    sys.exit(main())
