"""Runs published test suites of other libraries on fastevm and on their usual engine.

``python -m tests.ecosystem.suites [NAME ...]`` runs each suite in its own environment, on one
engine after the other, and prints counts and CPU seconds as Markdown. Exit status 1 if fewer tests
pass on fastevm than on the usual engine. Environments, sources and logs stay in ``build/suites``.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tomllib
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.ecosystem.development.nodes import dev, running

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "suites"
OURS = "fastevm"
HOURS = 4.0  # time limit in hours of one run
TESTER = "ETHEREUM_TESTER_CHAIN_BACKEND"
BACKENDS = {
    OURS: {TESTER: "fastevm.integrations.eth_tester.Backend"},
    "py-evm": {TESTER: "eth_tester.backends.pyevm.PyEVMBackend"},
}
TESTER_PACKAGES = (
    "eth-tester==0.14.0b1", "py-evm==0.12.1b1", "pytest==8.*", "pytest-asyncio>=0.18.1,<0.23",
    "pytest-mock", "flaky", "hypothesis==6.*", "pyunormalize<17",
)  # fmt: skip
BOA_PACKAGES = (
    "titanoboa==0.2.8",
    "vyper==0.4.3",
    "pytest==8.*",
    "pytest-cov",
    "hypothesis<6.140",
)
# web3.py's distributions contain its tests, but not the `conftest.py` at the root of the
# repository.
WEB3_ROOT = ("conftest.py", HERE / "web3_root_fixtures.py")
IN_PROCESS = "test_in_process.py"
PYTEST = ("pytest", "-o", "addopts=", "-q", "-p", "no:cacheprovider", "--tb=line")
ON_FASTEVM = {"PYTEST_ADDOPTS": "-p fastevm.integrations.boa_pytest"}
OUTCOME = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed)")


@dataclass(frozen=True)
class Suite:
    """A test suite, and how to run it on fastevm.

    ``engines``: name -> environment variables. ``source``: the distribution that contains the
    tests. ``change``: a file of the distribution, a text in it, and what replaces the text for
    fastevm. ``additions``: files of the distribution, and our files that are appended to them for
    every engine. ``repository``: address and tag to clone if no distribution has the tests.
    ``node``: the environment variable that names the development node. ``project``: a folder with a
    user's project. ``program``: the module that tests the project.
    """

    packages: tuple[str, ...]
    tests: tuple[str, ...]
    engines: dict[str, dict[str, str]] = field(default_factory=lambda: BACKENDS)
    source: str | None = None
    change: tuple[str, str, str] | None = None
    additions: tuple[tuple[str, Path], ...] = ()
    repository: tuple[str, str] | None = None
    node: str | None = None
    project: Path | None = None
    program: tuple[str, ...] = PYTEST


VYPER = ("builtins", "codegen", "examples", "venom")
# Tests that are left out before Cancun: vyper compiles them for its default fork whatever the
# option says. pyrevm can run them, because it reads lower-case names of forks as its newest fork.
# It also ends no transaction, so it never removes self-destructed code.
NOT_BEFORE_CANCUN = tuple(
    f"--deselect=tests/functional/codegen/features/{name}"
    for name in (
        "test_custom_errors.py",
        "test_selfdestruct.py::test_selfdestruct_preserves_prior_storage_writes",
    )
)


NAMES = ("from pyrevm import", "from fastevm.integrations.pyrevm import")
VYPER_PACKAGES = (
    "vyper==0.5.0b1", "pytest==8.*", "pytest-xdist<3.4", "eth-abi==5.*", "lark==1.1.9",
    "py-evm==0.12.1b1", "hypothesis[lark]==6.*", "pyrevm==0.3.7", "eth-account==0.12.2",
    "eth-stdlib==0.2.7", "hexbytes>=1.2", "setuptools",
)  # fmt: skip


# These tests read mainnet's state from an endpoint.
NOT_ON_MAINNET = ("-k", "not (revm_fork or fork_storage or balances_fork)")


# These tests expect an estimate that is thousands of gas too high, or a node that accepts a
# transaction of another chain.
PY_EVM_ALONE = tuple(
    f"--deselect=tests/core/{name}"
    for name in (
        "contracts/test_contract_estimate_gas.py::test_estimate_gas_accepts_latest_block",
        "contracts/test_contract_estimate_gas.py::test_async_estimate_gas_accepts_latest_block",
        "eth-module/test_transactions.py::test_eth_send_raw_blob_transaction",
        "eth-module/test_transactions.py::test_async_send_raw_blob_transaction",
        # This test measures wall time.
        "contracts/test_contract_init.py::test_async_init_multiple_contracts_performance",
    )
)


def vyper(fork: str) -> Suite:
    """Returns the suite of vyper's functional tests under the rules of a fork."""
    return Suite(
        packages=VYPER_PACKAGES,
        tests=(
            "-m", "not fuzzing", "--evm-backend", "revm", "--evm-version", fork,
            *(f"tests/functional/{name}" for name in VYPER),
            *(NOT_BEFORE_CANCUN if fork in ("shanghai", "london") else ()),
        ),
        engines={"pyrevm": {}, OURS: {}},
        source="vyper==0.5.0b1",
        change=("tests/evm_backends/revm_env.py", *NAMES),
    )  # fmt: skip


def web3_modules(file: str, *nodes: str, own: tuple[tuple[str, Path], ...] = ()) -> Suite:
    """Returns the suite of web3.py's tests for go-ethereum, without tests of peers."""
    folder = "tests/integration/go_ethereum"
    return Suite(
        (*TESTER_PACKAGES, "web3==7.16.0", "py-geth>=5"),
        (f"{folder}/{file}", "-k", "not Admin"),
        engines={node if node == "anvil" else OURS: {"DEVELOPMENT_NODE": node} for node in nodes},
        source="web3==7.16.0",
        additions=(
            WEB3_ROOT,
            (f"{folder}/conftest.py", HERE / "development" / "web3_module_fixtures.py"),
            *((f"{folder}/{name}", path) for name, path in own),
        ),
    )


SUITES = {
    "eth-tester": Suite(TESTER_PACKAGES, (str(HERE / "eth_tester_cases.py"),)),
    "web3-integration": Suite(
        (*TESTER_PACKAGES, "web3==7.16.0"), ("tests/integration/test_ethereum_tester.py",),
        source="web3==7.16.0", additions=(WEB3_ROOT,),
    ),
    "web3-core": Suite(
        (*TESTER_PACKAGES, "web3==7.16.0"), ("tests/core", *PY_EVM_ALONE), source="web3==7.16.0",
        additions=(WEB3_ROOT,),
    ),
    "web3-modules": web3_modules("test_goethereum_http.py", "anvil", "fastevm dev"),
    "web3-modules-ws": web3_modules("test_goethereum_ws", "anvil", "fastevm dev"),
    "web3-in-process": web3_modules(
        IN_PROCESS, "in process", own=((IN_PROCESS, HERE / "web3_in_process.py"),)
    ),
    "titanoboa": Suite(
        BOA_PACKAGES,
        (
            "tests/unitary", "--ignore=tests/unitary/jupyter",
            "--ignore=tests/unitary/contracts/vvm", "--ignore=tests/unitary/test_ipython.py",
        ),
        engines={"py-evm": {}, OURS: ON_FASTEVM},
        repository=("https://github.com/vyperlang/titanoboa", "v0.2.8"),
    ),
    "titanoboa-environment": Suite(
        BOA_PACKAGES,
        (str(ROOT / "tests/unit/integrations/test_boa.py"), "--noconftest",
         "--import-mode=importlib"),
        engines={OURS: {}},
    ),
    "moccasin": Suite(
        ("moccasin==0.4.4", "snekmate==0.1.2", *BOA_PACKAGES), (),
        engines={"py-evm": {}, OURS: ON_FASTEVM}, project=HERE / "moccasin",
        program=("moccasin", "test", "--no-install"),
    ),
    "pyrevm": Suite(
        VYPER_PACKAGES, ("tests", *NOT_ON_MAINNET), engines={"pyrevm": {}, OURS: {}},
        change=("tests/test_evm.py", *NAMES),
        repository=("https://github.com/paradigmxyz/pyrevm", "v0.3.7"), node="FORK_URL",
    ),
    **{f"vyper-{fork}": vyper(fork) for fork in ("prague", "cancun", "shanghai", "london")},
}  # fmt: skip


def environment(suite: Suite) -> Path:
    """Creates the suite's environment if it is missing. Returns the path of its Python."""
    name = re.sub(r"\W+", "-", suite.source or suite.packages[0])
    folder = FOLDER / f"venv-{name}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
        install = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, *suite.packages], check=True)
        # Installs the suite's pinned requirements first. Our pins only name tested versions, and
        # most agree.
        names = [need for need in needs if not need.startswith("pycryptodome")]
        subprocess.run([*install, *names], check=True)
        (folder / "ready").touch()
    return python


def sources(suite: Suite, python: Path, engine: str) -> Path:
    """Unpacks the distribution and changes it for fastevm. Returns the working folder."""
    if suite.repository is not None:
        return changed(suite, cloned(*suite.repository, engine), engine)
    if suite.project is not None:
        folder = FOLDER / f"{suite.project.name}-{engine}"
        return Path(shutil.copytree(suite.project, folder, dirs_exist_ok=True))
    if suite.source is None:
        return ROOT
    name = suite.source.replace("==", "-")
    archive = FOLDER / f"{name}.tar.gz"
    if not archive.exists():
        command = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", FOLDER]
        subprocess.run([python, "-m", "pip", *command, suite.source], check=True)
    folder = FOLDER / f"{name}-{engine}"
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    folder = changed(suite, folder / name, engine)
    for file, ours in suite.additions:
        text = ours.read_text().replace("from __future__ import annotations\n", "")
        with (folder / file).open("a") as end:
            end.write(text)
    return folder


def changed(suite: Suite, folder: Path, engine: str) -> Path:
    """Changes the suite's file for fastevm, unless it is already changed. Returns the folder."""
    if suite.change is not None and engine == OURS:
        file, before, after = suite.change
        text = (folder / file).read_text()
        if before not in text and after not in text:
            raise SystemExit(f"{file} has no {before!r}")
        (folder / file).write_text(text.replace(before, after))
    return folder


def cloned(address: str, tag: str, engine: str) -> Path:
    """Clones a repository at a tag. Each engine has its own clone."""
    folder = FOLDER / f"{address.rpartition('/')[2]}-{tag}-{engine}"
    if not folder.exists():
        clone = ["git", "clone", "--quiet", "--depth=1", "--branch", tag, address, folder]
        if subprocess.run(clone).returncode != 0:
            raise SystemExit(f"{address} at {tag} cannot be cloned; no distribution has its tests")
    return folder


def run(name: str, engine: str) -> tuple[dict[str, int], float]:
    """Runs a suite on an engine. Returns outcome -> number of tests, and CPU seconds."""
    suite = SUITES[name]
    python = environment(suite)
    folder = sources(suite, python, engine)
    environ = os.environ | suite.engines[engine] | {"PYTHONPATH": f"{ROOT}"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [python, "-m", *suite.program]
    with ExitStack() as stack:
        if suite.node is not None:
            environ[suite.node] = stack.enter_context(running(dev())).url
        done = subprocess.run(
            [*command, *suite.tests], cwd=folder, env=environ, capture_output=True, text=True,
            timeout=HOURS * 3600,
        )  # fmt: skip
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    (FOLDER / f"{name}-{engine}.log").write_text(done.stdout + done.stderr)
    last = next((line for line in reversed(done.stdout.splitlines()) if " in " in line), "")
    counts = {kind.rstrip("s"): int(count) for count, kind in OUTCOME.findall(last)}
    if not counts:
        raise SystemExit(f"{name} on {engine} did not run: see {FOLDER}/{name}-{engine}.log")
    return counts, seconds


def install(names: list[str]) -> None:
    """Installs the environments and archives of suites."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names:
        try:
            sources(SUITES[name], environment(SUITES[name]), OURS)
        except (subprocess.CalledProcessError, SystemExit) as error:
            print(f"{name} could not be installed: {error}", file=sys.stderr)


def main() -> int:
    """Runs the suites and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem.suites", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SUITES)}")
    names = parser.parse_args().names or list(SUITES)
    if unknown := [name for name in names if name not in SUITES]:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    print("| suite | engine | passed | failed | errors | CPU s |\n|---|---|---|---|---|---|")
    behind = False
    for name in names:
        passed = {}
        for engine in SUITES[name].engines:
            counts, seconds = run(name, engine)
            passed[engine] = counts.get("passed", 0)
            found = " | ".join(str(counts.get(kind, 0)) for kind in ("passed", "failed", "error"))
            print(f"| {name} | {engine} | {found} | {seconds:.1f} |", flush=True)
        behind |= passed[OURS] < max(passed.values())
    return int(behind)


if __name__ == "__main__":
    sys.exit(main())
