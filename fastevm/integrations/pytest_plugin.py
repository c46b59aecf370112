"""The pytest plugin: chains and machines as fixtures, reset after each test and example.

All fixtures have session scope: ``evm``, ``fastevm_node``, ``chain``, ``accounts``, ``w3``,
``cheats``, ``fork``. ``fastevm_options`` may be overridden. Nothing starts and almost nothing is
imported until a test uses a fixture.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from fastevm.integrations.pytest_isolation import Isolation, ResettableChain, ResettableMachine

NO_ISOLATION: Final = "fastevm_no_isolation"
PACKAGE: Final = "fastevm.integrations"


class Plugin:
    """The chains, machines and reports of a test session."""

    def __init__(self, config: pytest.Config) -> None:
        self.isolation = Isolation()
        self.shows_gas = bool(config.getoption("fastevm_gas_report"))
        self.gas_file: Path | None = config.getoption("fastevm_gas_snapshot")
        self.gas_before = gas_snapshot(config.getoption("fastevm_gas_check"))
        self.shows_coverage = bool(config.getoption("fastevm_coverage"))
        self.lcov_file: Path | None = config.getoption("fastevm_coverage_lcov")
        self.wants_gas = self.shows_gas or self.gas_file is not None or self.gas_before is not None
        self.wants_coverage = self.shows_coverage or self.lcov_file is not None
        self.gas: Any = None
        self.coverage: Any = None
        self.gas_changes: list[str] = []
        self.not_written: list[str] = []

    def add_chain(self, chain: Any) -> None:
        """Isolates the chain of a node. Counts gas and coverage if requested."""
        reports = []
        if self.wants_gas:
            if self.gas is None:
                self.gas = import_module(f"{PACKAGE}.gas_report").GasReport()
            reports.append(self.gas)
        if self.wants_coverage:
            reports.append(self.parts_covered().ChainCoverage(chain, self.coverage))
        self.isolation.add(ResettableChain(chain, reports))

    def machine(self, fork: str) -> Any:
        """Returns a new machine. The machine reports coverage if requested."""
        if not self.wants_coverage:
            return import_module("fastevm.evm.machine").EVM(fork)
        made = self.parts_covered().CoveredEVM(fork)
        made.coverage = self.coverage
        return made

    def parts_covered(self) -> Any:
        """Returns the module of the coverage report.

        Creates the report of the session on first use.
        """
        module = import_module(f"{PACKAGE}.coverage")
        if self.coverage is None:
            self.coverage = module.Coverage()
        return module

    def finish(self) -> bool:
        """Writes the files that options ask for.

        Returns whether all were written and the gas is unchanged.
        """
        try:
            if self.gas is not None and self.gas_file is not None:
                self.gas.save(self.gas_file)
            if self.coverage is not None and self.lcov_file is not None:
                self.lcov_file.write_text(self.coverage.lcov())
        except OSError as error:
            self.not_written.append(str(error))
        if self.gas is not None and self.gas_before is not None:
            self.gas_changes = self.gas.changes(self.gas_before)
        return not self.gas_changes and not self.not_written

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """Yields titles and lines of the reports."""
        if self.shows_gas and self.gas is not None:
            yield "gas used", self.gas.lines()
        yield "gas that differs from the snapshot", self.gas_changes
        yield "files that could not be written", self.not_written
        if self.shows_coverage and self.coverage is not None:
            yield "contracts covered", self.coverage.lines()


def gas_snapshot(path: Path | None) -> Any:
    """Returns the medians in a file, or None without a file. Raises UsageError if unreadable."""
    if path is None:
        return None
    try:
        return import_module(f"{PACKAGE}.gas_report").read_snapshot(path)
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"--fastevm-gas-check: {error}") from None


KEY: Final = pytest.StashKey[Plugin]()
FILES: Final = {
    "gas-snapshot": "write the median gas of each contract and function as JSON",
    "gas-check": "fail if the median gas of a function differs from that in a gas snapshot",
    "coverage-lcov": "write the lines of contracts that were executed in LCOV's format",
}
"""Options that name a file, and what they do."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plugin."""
    group = parser.getgroup("fastevm")
    group.addoption(
        "--fastevm-fork-url", metavar="URL", help="run fastevm_node as a fork of this chain"
    )
    group.addoption("--fastevm-fork-block", metavar="N", help="block to fork from")
    group.addoption("--fastevm-hardfork", metavar="NAME", help="rules of evm and fastevm_node")
    group.addoption(
        "--fastevm-gas-report",
        action="store_true",
        dest="fastevm_gas_report",
        help="report the gas used by transactions at the end, by contract and function",
    )
    group.addoption(
        "--fastevm-coverage",
        action="store_true",
        dest="fastevm_coverage",
        help="report at the end which functions and lines of contracts were executed",
    )
    for name, purpose in FILES.items():
        group.addoption(
            f"--fastevm-{name}",
            type=Path,
            metavar="FILE",
            dest=destination(name),
            help=purpose,
        )


def destination(name: str) -> str:
    """Returns the attribute that holds the value of an option in `FILES`."""
    return f"fastevm_{name.replace('-', '_')}"


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers of the plugin.

    Raises UsageError if options contradict each other or a file cannot be read.
    """
    named = [name for name in FILES if config.getoption(destination(name)) is not None]
    if named and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(f"--fastevm-{named[0]} needs all tests in one process: without -n")
    config.stash[KEY] = Plugin(config)
    config.addinivalue_line("markers", f"{NO_ISOLATION}: keep the changes of this test to chains")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the files. The session fails if a file cannot be written or if the gas differs."""
    is_fine = session.config.stash[KEY].finish()
    if not is_fine and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Writes the reports."""
    for title, lines in config.stash[KEY].sections():
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.write_line(line)


# --- isolation ---


@pytest.fixture(scope="module", autouse=True)
def _fastevm_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Undoes the changes of a module's fixtures at its end."""
    with request.config.stash[KEY].isolation.scope("module"):
        yield


@pytest.fixture(scope="class", autouse=True)
def _fastevm_class(request: pytest.FixtureRequest) -> Iterator[None]:
    """Undoes the changes of a class's fixtures at its end."""
    isolation = request.config.stash[KEY].isolation
    with nullcontext() if request.cls is None else isolation.scope("class"):
        yield


@pytest.fixture(autouse=True)
def _fastevm_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Undoes the changes of a test and its fixtures at its end."""
    isolation = request.config.stash[KEY].isolation
    with nullcontext() if is_kept(request.node) else isolation.scope("function"):
        yield


def is_kept(item: pytest.Item) -> bool:
    """Returns whether the changes of a test are kept."""
    return item.get_closest_marker(NO_ISOLATION) is not None


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    """Keeps the changes of a fixture with a wide scope when narrower scopes end."""
    if fixturedef.scope == "function":
        return (yield)
    with request.config.stash[KEY].isolation.fixture(fixturedef.scope):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Undoes the changes of each example of a Hypothesis test."""
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    inner = getattr(handle, "inner_test", None)
    if handle is None or inner is None or is_kept(item):
        return (yield)
    handle.inner_test = isolated(inner, item.config.stash[KEY].isolation)
    try:
        return (yield)
    finally:
        handle.inner_test = inner


def isolated(inner: Callable[..., Any], isolation: Isolation) -> Callable[..., Any]:
    """Wraps the function of an example so that its changes are undone."""

    @wraps(inner)
    def example(*args: Any, **named: Any) -> Any:
        with isolation.scope("example"):
            return inner(*args, **named)

    @wraps(inner)
    async def awaited(*args: Any, **named: Any) -> Any:
        with isolation.scope("example"):
            return await inner(*args, **named)

    return awaited if inspect.iscoroutinefunction(inner) else example


# --- fixtures ---


@pytest.fixture(scope="session")
def fastevm_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of the node, see `LocalNode`. Override this fixture in conftest.py."""
    named = {
        "fork_url": "--fastevm-fork-url",
        "fork_block_number": "--fastevm-fork-block",
        "hardfork": "--fastevm-hardfork",
    }
    found = {name: request.config.getoption(option) for name, option in named.items()}
    return {name: value for name, value in found.items() if value is not None}


@pytest.fixture(scope="session")
def fastevm_node(request: pytest.FixtureRequest, fastevm_options: dict[str, Any]) -> Iterator[Any]:
    """A `LocalNode` that mines a block for each transaction. Its ``listen()`` starts a server."""
    with import_module(f"{PACKAGE}.local_node").LocalNode(**fastevm_options) as node:
        yield node


@pytest.fixture(scope="session")
def chain(request: pytest.FixtureRequest, fastevm_node: Any) -> Any:
    """A `Chain` that controls the node."""
    made = import_module(f"{PACKAGE}.chain_control").Chain(fastevm_node)
    request.config.stash[KEY].add_chain(made)
    return made


@pytest.fixture(scope="session")
def accounts(chain: Any) -> list[Any]:
    """The funded accounts: addresses as str, each with its ``key``."""
    return chain.accounts  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def w3(chain: Any) -> Any:
    """A ``Web3`` on the node. The first account is the default account."""
    web3 = import_module("web3")
    made = web3.Web3(import_module(f"{PACKAGE}.web3").FastevmProvider(chain.node))
    made.eth.default_account = chain.accounts[0]
    return made


@pytest.fixture(scope="session")
def evm(request: pytest.FixtureRequest) -> Any:
    """An `EVM`, reset after each test."""
    plugin = request.config.stash[KEY]
    machine = plugin.machine(request.config.getoption("--fastevm-hardfork") or "osaka")
    plugin.isolation.add(ResettableMachine(machine))
    return machine


@pytest.fixture(scope="session")
def cheats(evm: Any) -> Any:
    """The `Cheats` of ``evm``, installed at Foundry's address as well."""
    return import_module(f"{PACKAGE}.cheat_codes").Cheats(evm).install()


@pytest.fixture(scope="session")
def fork(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """A function ``fork(url, block)`` that returns a forked `Chain`, cached by its arguments."""
    made: dict[Any, Any] = {}
    plugin = request.config.stash[KEY]

    def forked(url: str, block: int | None = None, **options: Any) -> Any:
        key = (url, block, *sorted(options.items()))
        if key not in made:
            if block is not None:
                options["fork_block_number"] = block
            node = import_module(f"{PACKAGE}.local_node").LocalNode(fork_url=url, **options)
            made[key] = import_module(f"{PACKAGE}.chain_control").Chain(node)
            plugin.add_chain(made[key])
        return made[key]

    yield forked
    for each in made.values():
        each.node.stop()
