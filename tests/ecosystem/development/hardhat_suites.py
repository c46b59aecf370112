"""Runs contract test suites on Hardhat's in-process network, on anvil and on `fastevm dev`.

``python -m tests.ecosystem.development.hardhat_suites [NAME ...]`` prints how many tests pass on
each node and the seconds, and the tests that pass on Hardhat's network but fail on another node.
Exit status 1 if such a test fails on `fastevm dev`, unless only Hardhat can pass it.

No package contains these tests. For each suite, an environment variable names a clone of its
repository. The suite's tag is cloned from there into ``build/suites``, and compiler and packages
come from npm. Without the variable, the suite is skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .clients import Outcomes, newer_node
from .nodes import BASELINE, NODES, OURS, running

ROOT: Final = Path(__file__).parents[3]
SUITES: Final = ROOT / "build" / "suites"
HARDHAT: Final = "Hardhat"  # name of Hardhat's in-process network in the output
NETWORKS: Final = (HARDHAT, BASELINE, OURS)
HOURS: Final = 2.0
# Name of the configuration that wraps the suite's own configuration.
CONFIG: Final = "fastevm.config"
REPORT: Final = "fastevm-report.json"
# used because mocha's own reporter fails on errors that contain a BigInt
REPORTER: Final = "fastevm-reporter.cjs"

# Options for both nodes that correspond to the default settings of Hardhat's network.
OPTIONS: Final = (
    "--disable-code-size-limit",
    "--gas-limit",
    "100000000",
    "--no-request-size-limit",
)

# `fastevm dev` returns an error if a sent transaction fails, as Hardhat's network does. anvil
# cannot, so its configuration has no fixed gas limit: the estimate before the send then fails
# instead.
NETWORK_NAMES: Final = {HARDHAT: "hardhat", BASELINE: "target", OURS: "localhost"}
# On Hardhat's network each block has a later timestamp than its parent. anvil has no option for
# this.
MORE_OPTIONS: Final = {
    BASELINE: (),
    OURS: ("--throw-on-transaction-failures", "--increasing-timestamps"),
}

WRAPPER: Final = """
const { subtask } = require("hardhat/config");
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require("hardhat/builtin-tasks/task-names");
const found = require("./%(config)s");
const config = found.default ?? found;
// The compiler of npm: nothing is fetched.
subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async ({ solcVersion }) => {
  const folder = `fastevm-solc-${solcVersion}`;
  const compilerPath = require.resolve(`${folder}/soljson.js`);
  const longVersion = require(folder).version().replace(/\\.Emscripten.*/, "");
  return { version: solcVersion, longVersion, compilerPath, isSolcJs: true };
});
// The gas limit that Hardhat's network gives every transaction: some tests depend on it.
// hardhat-ethers sends it to a network called localhost; on others it sends estimates.
const gas = config.networks?.hardhat?.gas ?? 2 ** 24;
const url = process.env.NODE_URL ?? "http://127.0.0.1:8545";
const target = { url, gas, timeout: 120_000 };
const localhost = target;
const mocha = { ...config.mocha, reporter: `${__dirname}/%(reporter)s`, timeout: 120_000 };
module.exports = { ...config, mocha, networks: { ...config.networks, target, localhost } };
"""

REPORTING: Final = """
module.exports = function (runner) {
  const told = [];
  runner.on("pass", (test) => told.push([test.fullTitle(), null]));
  runner.on("fail", (test, error) => told.push([test.fullTitle(), String(error.message)]));
  const write = require("node:fs").writeFileSync;
  runner.once("end", () => write(process.env.REPORT, JSON.stringify(told)));
};
"""


@dataclass(frozen=True)
class Suite:
    """A test suite. ``variable``: the environment variable that names the clone.

    ``config``: the module with the suite's configuration. ``hardhat_only``: test -> why only
    Hardhat can pass it.
    """

    variable: str
    tag: str
    compiler: str
    config: str = "hardhat.config"
    typescript: bool = False
    hardhat_only: Mapping[str, str] = field(default_factory=dict)


LIST: Final = {
    "openzeppelin": Suite(
        "FASTEVM_OPENZEPPELIN",
        "v5.7.0",
        "0.8.35",
        hardhat_only={
            "ERC4337Utils userOp values returns gasPrice": "BASEFEE is 0 in calls that offer no"
            " price, as on go-ethereum; anvil and fastevm dev give the base fee",
            "ERC2771Forwarder executeBatch with tampered requests bubbles out of gas forced by the"
            " relayer": "estimates for a sender that cannot pay the value, which go-ethereum and"
            " anvil refuse, too",
        },
    ),
    "safe": Suite(
        "FASTEVM_SAFE",
        "v1.5.0",
        "0.7.6",
        typescript=True,
        hardhat_only={
            "SafeToL2Setup L2 setupToL2 changes the expected storage slot without touching the"
            " most important ones": "compares stack words of a trace without 0x",
            "SignMessageLib signMessage can be used only via DELEGATECALL opcode": "expects an"
            " error text that Hardhat derives from the compiled sources",
        },
    ),
}


class Absent(Exception):
    """Raised if a suite is not available or cannot be installed."""


def prepared(name: str) -> Path:
    """Installs a suite with its packages and the wrapping configuration. Returns the folder.

    Raises Absent.
    """
    suite = LIST[name]
    source = os.environ.get(suite.variable)
    if source is None:
        raise Absent(f"set {suite.variable} to a clone of its repository")
    folder = SUITES / f"{name}-{suite.tag}"
    if not folder.exists():
        words = ["git", "clone", "--quiet", "--branch", suite.tag, source, str(folder)]
        if subprocess.run(words, check=False).returncode != 0:
            raise Absent(f"{source} has no tag {suite.tag}")
    mark = folder / "node_modules" / ".installed"
    if not mark.exists():
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"]
        compiler = f"fastevm-solc-{suite.compiler}@npm:solc@{suite.compiler}"
        if subprocess.run(
            ["npm", "install", *quiet, compiler], cwd=folder, env=variables(), check=False
        ).returncode:
            raise Absent("npm could not install its packages")
        mark.touch()
    extension = "ts" if suite.typescript else "js"
    names = {"config": suite.config, "reporter": REPORTER}
    (folder / f"{CONFIG}.{extension}").write_text(WRAPPER.lstrip() % names)
    (folder / REPORTER).write_text(REPORTING.lstrip())
    return folder


def variables() -> dict[str, str]:
    """Returns the environment variables for npm and Hardhat. Their PATH has a supported Node.js."""
    path = f"{newer_node()}{os.pathsep}{os.environ['PATH']}"
    quiet = {"HARDHAT_DISABLE_TELEMETRY_PROMPT": "true", "TS_NODE_TRANSPILE_ONLY": "1"}
    # The JavaScript compiler needs more memory than Node.js allows by default.
    memory = {"NODE_OPTIONS": "--max-old-space-size=8192"}
    return os.environ | quiet | memory | {"PATH": path, "CI": "true"}


def hardhat(name: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs a Hardhat command in the folder of a suite."""
    folder, suite = prepared(name), LIST[name]
    config = f"{CONFIG}.{'ts' if suite.typescript else 'js'}"
    program = [str(folder / "node_modules" / ".bin" / "hardhat"), "--config", config, *words]
    return subprocess.run(
        program, cwd=folder, env=variables() | more, capture_output=True, text=True,
        timeout=HOURS * 3600, check=False,
    )  # fmt: skip


def compiled(name: str) -> None:
    """Compiles a suite. Raises Absent if the suite cannot be installed."""
    done = hardhat(name, "compile", "--quiet")
    if done.returncode:
        raise SystemExit(f"{name} could not be compiled: {done.stderr[-2000:]}")


def outcomes(name: str, network: str, files: Sequence[str] = ()) -> tuple[Outcomes, float]:
    """Returns test title -> error (None if the test passed), and the seconds of the run."""
    report = prepared(name) / REPORT
    report.unlink(missing_ok=True)
    words = ["test", "--no-compile", "--network", NETWORK_NAMES[network], *files]
    if network == HARDHAT:
        began = time.monotonic()
        done = hardhat(name, *words, REPORT=str(report))
        seconds = time.monotonic() - began
    else:
        with running(NODES[network](*OPTIONS, *MORE_OPTIONS[network])) as node:
            began = time.monotonic()
            done = hardhat(name, *words, REPORT=str(report), NODE_URL=node.url)
            seconds = time.monotonic() - began
    if not report.exists():
        raise SystemExit(f"{name} on {network} did not run: {(done.stderr + done.stdout)[-2000:]}")
    reported: Outcomes = {}
    # title -> how often it has occurred, because some titles occur twice
    times: Counter[str] = Counter()
    for title, error in json.loads(report.read_text()):
        times[title] += 1
        reported[title if times[title] == 1 else f"{title} ({times[title]})"] = error
    return reported, seconds


def main() -> int:
    """Runs the suites and prints the table."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(LIST)}")
    parser.add_argument("--only", choices=NETWORKS, action="append", help="a network")
    parser.add_argument("--files", nargs="+", default=[], help="files of tests in the suite")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.names if name not in LIST]:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(LIST)}")
    is_behind = False
    print("| suite | network | passed | failed | s |\n|---|---|---|---|---|")
    for name in chosen.names or list(LIST):
        try:
            compiled(name)
        except Absent as reason:
            print(f"{name} skipped: {reason}", file=sys.stderr)
            continue
        found = {}
        for network in chosen.only or NETWORKS:
            found[network], seconds = outcomes(name, network, chosen.files)
            failed = [title for title, error in found[network].items() if error is not None]
            passed = len(found[network]) - len(failed)
            print(f"| {name} | {network} | {passed} | {len(failed)} | {seconds:.1f} |", flush=True)
        expected = found.get(HARDHAT, {})
        for network, reported in found.items():
            lost = behind(expected, reported)
            known = LIST[name].hardhat_only
            is_behind |= network == OURS and not lost.keys() <= known.keys()
            for title, error in lost.items():
                print(f"    {network}: {title}: {known.get(title, repr(error[:300]))}")
    return int(is_behind)


def behind(expected: Outcomes, found: Outcomes) -> dict[str, str]:
    """Returns the tests that pass in ``expected`` but not in ``found``, with their errors."""
    passed = [title for title, error in expected.items() if error is None]
    reported = {title: found.get(title, "not run") for title in passed}
    return {title: error for title, error in reported.items() if error is not None}


if __name__ == "__main__":
    sys.exit(main())
