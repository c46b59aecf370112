"""Runs viem's own test suites on anvil and on `fastevm dev`, which prool starts.

``python -m tests.ecosystem.development.viem_suites [SUITE ...]`` prints how many cases pass on each
node, and the cases that pass only on anvil. Exit status 1 if there are any.

VIEM_SOURCE names a checkout of viem. Without it, the tag of VERSION is cloned, because the npm
package has no tests. Cases that deploy viem's contracts need ``contracts/generated.ts``, which
viem's ``pnpm contracts:build`` writes. Without that file they fail on both nodes. The suites fork
mainnet. Here they fork an empty chain that begins at the same block number, so cases that read
mainnet's state fail on both nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .clients import FOLDER, HERE, named_anvil, newer_node, npm_install
from .nodes import BASELINE, NODES, OURS, anvil, running

VERSION: Final = "2.55.19"
REPOSITORY: Final = "https://github.com/wevm/viem"
TOOLS: Final = HERE / "viem"
COPY: Final = FOLDER / "viem"
SUITES: Final = {
    "test": "src/actions/test/",
    "public": "src/actions/public/",
    "wallet": "src/actions/wallet/",
}
SECONDS: Final = 3_600.0  # time limit in seconds of one suite on one node
FAILURE: Final = 300  # maximum characters of a failure's text
GENERATED: Final = "contracts/generated.ts"
IMPORTED: Final = re.compile(r"import \{([^}]*)\} from '[^']*contracts/generated\.js'")

Outcomes = dict[str, str | None]  # case -> its error, or None if it passed


@dataclass(frozen=True)
class Fork:
    """A chain that viem's tests fork: the URL that the tests use for it, and the block number."""

    port: int
    chain_id: int
    block: int
    no_mining: bool = False


FORKS: Final = (
    Fork(8545, 1, 22_263_623, no_mining=True),
    Fork(8845, 11_155_111, 8_100_000, no_mining=True),
    Fork(8645, 10, 147_000_000),
)
# a mainnet account that tests send from
RICH: Final = ("0xd8da6bf26964af9d7eed9e03e53415d37aa96045",)
URLS: Final = ("VITE_ANVIL_FORK_URL", "VITE_ANVIL_FORK_URL_SEPOLIA", "VITE_ANVIL_FORK_URL_OPTIMISM")


def checkout() -> Path:
    """Returns the folder in VIEM_SOURCE, or clones the tag."""
    if named := os.environ.get("VIEM_SOURCE"):
        return Path(named).resolve()
    folder = FOLDER / f"viem-{VERSION}"
    if not folder.exists():
        words = ["git", "clone", "--quiet", "--depth", "1", "--branch", f"viem@{VERSION}"]
        if subprocess.run([*words, REPOSITORY, str(folder)], check=False).returncode:
            raise SystemExit(f"no source: name a checkout of viem {VERSION} with VIEM_SOURCE")
    return folder


def prepared(variables: dict[str, str]) -> Path:
    """Returns a copy of viem's source whose imports work without its build."""
    source = checkout()
    version = json.loads((source / "src/package.json").read_text())["version"]
    if version != VERSION:
        print(f"viem {version}, not {VERSION}", file=sys.stderr)
    npm_install(TOOLS, variables)
    shutil.rmtree(COPY, ignore_errors=True)
    for part in ("src", "test", "contracts"):
        shutil.copytree(
            source / part, COPY / part, symlinks=True,
            ignore=shutil.ignore_patterns("node_modules", "lib", "tsconfig*.json"),
        )  # fmt: skip
    (COPY / "tsconfig.json").write_text('{"compilerOptions": {"target": "ES2021"}}')
    (COPY / "node_modules").symlink_to(TOOLS / "node_modules")
    if not (COPY / GENERATED).exists():
        print(f"no {GENERATED}: cases with viem's contracts fail on both nodes", file=sys.stderr)
        (COPY / GENERATED).write_text(stand_ins(COPY))
    return COPY


def stand_ins(source: Path) -> str:
    """Returns TypeScript with an empty contract for each name that the tests import."""
    names: set[str] = set()
    for file in [*source.glob("src/actions/**/*.test.ts"), *source.glob("test/src/*.ts")]:
        for found in IMPORTED.findall(file.read_text(errors="replace")):
            names |= set(re.findall(r"\w+", found))
    item = "export const {} = {{ abi: [], bytecode: {{ object: '0x' }} }} as const\n"
    return "".join(item.format(name) for name in sorted(names))


@contextmanager
def upstreams() -> Iterator[list[dict[str, Any]]]:
    """Starts empty chains to fork. Yields their ids and block numbers, for servers.mjs."""
    with ExitStack() as stack:
        found = []
        for fork in FORKS:
            chain = anvil("--chain-id", str(fork.chain_id), "--number", str(fork.block))
            url = stack.enter_context(running(chain)).url
            for address in RICH:
                chain.ask("anvil_setBalance", address, hex(1_000 * 10**18))
            found.append(
                {"port": fork.port, "chainId": fork.chain_id, "forkUrl": url}
                | {"forkBlockNumber": fork.block, "noMining": fork.no_mining}
            )
        yield found


def outcomes(report: dict[str, Any], source: Path) -> Outcomes:
    """Returns the outcome of every case in vitest's report that was not skipped."""
    found: Outcomes = {}
    for file in report["testResults"]:
        name = Path(file["name"]).relative_to(source / "src/actions").as_posix()
        if file["status"] == "failed" and not file["assertionResults"]:
            found[name] = file["message"][:FAILURE]
        for case in file["assertionResults"]:
            if case["status"] in ("passed", "failed"):
                words = " ".join(case["failureMessages"])[:FAILURE] or "failed"
                found[f"{name}: {case['fullName']}"] = words if case["status"] == "failed" else None
    return found


def run(suite: str, node: str, source: Path, variables: dict[str, str], retries: int) -> Outcomes:
    """Runs a suite on the node with this name. Returns the outcomes of its cases."""
    report = FOLDER / f"viem-{suite}-{node.replace(' ', '-')}.json"
    report.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch, upstreams() as forks:
        folder = named_anvil(node, Path(scratch))
        more = {"VIEM_SOURCE": str(source), "NODE_BINARY": str(folder / "anvil"), "HOME": scratch}
        more |= {"FORKS": json.dumps(forks), "VIEM_RETRIES": str(retries)}
        more |= dict(zip(URLS, (fork["forkUrl"] for fork in forks), strict=True))
        words = ["node", str(TOOLS / "node_modules/vitest/vitest.mjs"), "run", "--config"]
        words += [str(TOOLS / "suites.config.mjs"), "--reporter=json", f"--outputFile={report}"]
        program = shutil.which(words[0], path=variables["PATH"]) or words[0]
        done = subprocess.run(
            [program, *words[1:], SUITES.get(suite, suite)], env=variables | more, cwd=source,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    if not report.exists():
        raise SystemExit(f"{suite} on {node} did not run: {(done.stderr or done.stdout)[-2000:]}")
    return outcomes(json.loads(report.read_text()), source)


def main() -> int:
    """Runs the suites and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem.development.viem_suites")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--only", choices=NODES, help="one node instead of both")
    parser.add_argument("--retries", type=int, default=1, help="of a case; viem's own runs have 3")
    chosen = parser.parse_args()
    nodes = [chosen.only] if chosen.only else list(NODES)
    FOLDER.mkdir(parents=True, exist_ok=True)
    variables = os.environ | {"NO_COLOR": "1", "VITE_NETWORK_TRANSPORT_MODE": "http"}
    variables["PATH"] = f"{newer_node()}{os.pathsep}{variables['PATH']}"
    source = prepared(variables)
    print(f"| suite | cases | {' | '.join(nodes)} |\n|---|---|{'---|' * len(nodes)}")
    behind = False
    for suite in chosen.suites or SUITES:
        found = {node: run(suite, node, source, variables, chosen.retries) for node in nodes}
        cases = dict.fromkeys(case for reported in found.values() for case in reported)
        passed = {node: [case for case in cases if reported.get(case, "") is None]
                  for node, reported in found.items()}  # fmt: skip
        counts = " | ".join(str(len(passed[node])) for node in nodes)
        print(f"| {suite} | {len(cases)} | {counts} |", flush=True)
        if OURS in nodes:
            missed = set(passed.get(BASELINE, cases)) - set(passed[OURS])
            for case in sorted(missed):
                print(f"    {case}: {found[OURS].get(case, 'not reached')!r}")
            behind |= bool(missed)
    return int(behind)


if __name__ == "__main__":
    sys.exit(main())
