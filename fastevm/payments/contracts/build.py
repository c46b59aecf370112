"""Compiles the contracts: ``python -m fastevm.payments.contracts.build`` writes the artifacts.

Also compiles the predeploys of OP-stack development chains. Uses the npm package ``solc`` at a
pinned version, installed into a temporary directory. Artifacts have no metadata hash, so equal
sources give equal bytes everywhere.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastevm.payments.contracts import CONTRACTS

HERE = Path(__file__).parent
PREDEPLOYS = HERE.parents[1] / "node" / "op_stack"
# Folder of sources and artifacts -> names of the deployable contracts.
Folders = Mapping[Path, tuple[str, ...]]
FOLDERS: Folders = {HERE: CONTRACTS, PREDEPLOYS: ("L1Block", "GasPriceOracle")}

COMPILER = "0.8.30"
# Old enough that the code runs on every fork since the Merge.
EVM_VERSION = "paris"
OPTIMIZER_RUNS = 200
TIMEOUT = 300.0  # seconds, for installation and for compilation


class BuildError(Exception):
    """The compiler reports an error or warning."""


class InstallError(BuildError):
    """The compiler cannot be installed: no Node.js, or no package registry."""


def standard_input(folders: Folders = FOLDERS) -> dict[str, Any]:
    """Returns sources and settings as solc's standard JSON input."""
    paths = [path for folder in folders for path in sorted(folder.glob("sources/*.sol"))]
    return {
        "language": "Solidity",
        "sources": {path.name: {"content": path.read_text()} for path in paths},
        "settings": {
            "evmVersion": EVM_VERSION,
            "optimizer": {"enabled": True, "runs": OPTIMIZER_RUNS},
            "metadata": {"bytecodeHash": "none", "appendCBOR": False},
            "outputSelection": {
                "*": {"*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"]}
            },
        },
    }


def run(command: list[str], directory: Path, text: str, failure: type[BuildError]) -> str:
    """Runs a command and returns its standard output. Raises ``failure`` with its error output."""
    # Into a file, because solcjs exits before all its output is written to a pipe.
    with (directory / "printed").open("w+") as printed:
        try:
            done = subprocess.run(
                command, cwd=directory, input=text, stdout=printed, stderr=subprocess.PIPE,
                text=True, timeout=TIMEOUT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise failure(f"{command[0]} took more than {TIMEOUT:.0f} s") from None
        if done.returncode:
            raise failure(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
        printed.seek(0)
        return printed.read()


def compiled(folders: Folders = FOLDERS) -> dict[str, dict[str, Any]]:
    """Compiles the contracts; returns artifacts by name. Raises BuildError, also for warnings."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise InstallError("compiling the contracts needs node and npm in PATH")
    with tempfile.TemporaryDirectory(prefix="fastevm-solc-") as name:
        directory = Path(name)
        install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", f"solc@{COMPILER}"]
        run([npm, *install], directory, "", InstallError)
        solc = [str(directory / "node_modules/.bin/solcjs"), "--standard-json"]
        printed = run(solc, directory, json.dumps(standard_input(folders)), BuildError)
    output = json.loads(printed[printed.index("{") :])  # skip a message about SMT solvers
    if complaints := [error["formattedMessage"] for error in output.get("errors", ())]:
        raise BuildError("\n".join(complaints))
    return {
        name: artifact_of(name, source, unit[name])
        for source, unit in output["contracts"].items()
        for name in unit
        if name in placed(folders)
    }


def artifact_of(name: str, source: str, unit: dict[str, Any]) -> dict[str, Any]:
    return {
        "contractName": name,
        "sourceName": source,
        "compiler": {"name": "solc", "version": COMPILER},
        "settings": {"evmVersion": EVM_VERSION, "optimizerRuns": OPTIMIZER_RUNS},
        "abi": unit["abi"],
        "bytecode": "0x" + unit["evm"]["bytecode"]["object"],
        "deployedBytecode": "0x" + unit["evm"]["deployedBytecode"]["object"],
    }


def placed(folders: Folders = FOLDERS) -> dict[str, Path]:
    """Returns the path of each contract's artifact."""
    return {
        name: folder / "artifacts" / f"{name}.json"
        for folder, names in folders.items()
        for name in names
    }


def stored(name: str, folders: Folders = FOLDERS) -> Any:
    """Returns the artifact in the source tree, or None if there is none."""
    path = placed(folders)[name]
    return json.loads(path.read_text()) if path.exists() else None


def main(arguments: list[str] | None = None, folders: Folders = FOLDERS) -> int:
    """Writes the artifacts. With --check, reports whether the stored artifacts are up to date."""
    parser = argparse.ArgumentParser(prog="fastevm.payments.contracts.build", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if an artifact is stale"
    )
    check = parser.parse_args(arguments).check
    try:
        artifacts = compiled(folders)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 2
    stale = [name for name, artifact in artifacts.items() if artifact != stored(name, folders)]
    for name in stale:
        print(f"{name}: {'stale' if check else 'written'}")
        if not check:
            text = json.dumps(artifacts[name], indent=1) + "\n"
            placed(folders)[name].write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
