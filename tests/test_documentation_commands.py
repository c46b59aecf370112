"""Runs every command of the documentation, except those in `NOT_HERE`, which have a reason.

Pages whose commands depend on each other have their own tests.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fastevm.cli.command_line import parser
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.max_wait import MAX_WAIT

from .pages import DOCS, blocks_of, commands_of, pages
from .shared_data import ROOT

LISTENING = re.compile(r"Listening on (\S+)")
SERVERS = ("node", "dev")

TESTED = {
    "arbitrum.md": "tests/test_arbitrum_page.py",
    "base.md": "tests/test_base_page.py",
    "clients/cast.md": "tests/test_client_pages.py",
    "fork.md": "tests/test_fork_page.py",
    "preconfirmations.md": "tests/test_docs.py",
    "start/features.md": "tests/test_readme.py",
}
"""Pages whose commands another test runs, in the order of the page."""

NOT_HERE = {
    "make dev": "builds; the command it starts is run here",
    "make package": "takes minutes; .ci/run calls it",
    "docker": "needs Docker; tests/test_container_page.py runs the commands inside",
    "pip install": "installs; tests/packaging/check.py tries the wheel",
    ".venv/bin/fastevm --version": "the test of the installation page runs it in this environment",
    "export ETHEREUM_TESTER_CHAIN_BACKEND": "tests/unit/integrations/eth_tester",
    "APE_FOUNDRY_HOST": "needs ape: `make ecosystem`",
    "forge": "needs Foundry: `make ecosystem`",
    "fastevm debug": "needs a transaction; tests/unit/cli/test_debug.py",
    "fastevm import --chain": "needs a file of a real chain; tests/unit/chain/test_block_files.py",
    "fastevm node --chain": "needs the node and the feed of a real chain",
    "fastevm pay webhooks --test": "needs an endpoint; tests/payments/test_command.py",
    "fastevm replay": "needs the file of a failure; tests/unit/integrations/test_hypothesis.py",
    "fastevm stateless verify": "needs a node of mainnet; tests/unit/chain/stateless",
}
"""Beginning of a command -> why the command does not run here."""

COMMANDS_OF_PAGES = [
    pytest.param(command, id=f"{page.relative_to(DOCS).as_posix()}: {command[:50]}")
    for page in pages()
    if page.relative_to(DOCS).as_posix() not in TESTED
    for command in commands_of(page.read_text())
]


def is_not_here(command: str) -> bool:
    return command.startswith(tuple(NOT_HERE))


def words_of(command: str) -> tuple[dict[str, str], list[str]]:
    """Splits a command into environment variables and words. Removes a comment and `&`."""
    words = shlex.split(command, comments=True)
    words = words[:-1] if words[-1] == "&" else words
    variables = {}
    while "=" in words[0]:
        name, _, variables[name] = words.pop(0).partition("=")
    return variables, words


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provides a working directory with the files that the pages mention."""
    (tmp_path / "out").mkdir()
    for block in blocks_of((DOCS / "start/continuous-integration.md").read_text()):
        if block.language == "python":
            (tmp_path / block.title).write_text(block.code)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS_OF_PAGES)
def test_a_command_runs(command: str, folder: Path) -> None:
    variables, words = words_of(command)
    if words[0] == "fastevm":
        parser().parse_args(words[1:])  # raises SystemExit if an option does not exist
    if is_not_here(command):
        return
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(folder)} | variables
    program = {"fastevm": [sys.executable, "-m", "fastevm"], "python": [sys.executable],
               "pytest": [sys.executable, "-m", "pytest", *plugin()]}  # fmt: skip
    words = [*program.get(words[0], [words[0]]), *words[1:]]
    if "fastevm" in words and words[words.index("fastevm") + 1] in SERVERS:
        serves(words, environment)
    elif words[0] == "curl":
        pytest.skip("asks the node that the command before it starts")
    else:
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=MAX_WAIT
        )
        assert done.returncode == 0, done.stdout + done.stderr


def plugin() -> list[str]:
    """Returns the options that load the pytest plugin, if fastevm is not installed."""
    from importlib.metadata import entry_points

    installed = any(found.name == "fastevm" for found in entry_points(group="pytest11"))
    return [] if installed else ["-p", "fastevm.integrations.pytest_plugin"]


def serves(words: list[str], environment: dict[str, str]) -> None:
    """Starts a node on a free port and checks that it answers."""
    if "--port" in words:
        at = words.index("--port")
        words = [*words[:at], *words[at + 2 :]]
    with subprocess.Popen(
        [*words, "--port", "0"], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as node:  # fmt: skip
        try:
            assert node.stdout is not None
            found = next(found for line in node.stdout if (found := LISTENING.search(line)))
            if "--explorer-for" not in words:
                assert JsonRpcClient(f"http://{found[1]}").call("eth_chainId").startswith("0x")
        finally:
            node.terminate()
            node.wait(MAX_WAIT)


def test_the_version_is_the_one_that_the_page_shows() -> None:
    shown = re.search(r"fastevm --version\n(.*)\n", (DOCS / "start/installation.md").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "fastevm", "--version"], cwd=ROOT, capture_output=True, text=True
    )
    assert shown is not None and done.stdout.strip() == shown[1]


def test_the_exceptions_are_commands_of_pages() -> None:
    commands = [command for page in pages() for command in commands_of(page.read_text())]
    for beginning in NOT_HERE:
        assert any(command.startswith(beginning) for command in commands), beginning
    for page in TESTED:
        assert (DOCS / page).is_file(), page


def test_the_configuration_file_is_read(folder: Path) -> None:
    (block,) = [
        block
        for block in blocks_of((DOCS / "start/configuration.md").read_text())
        if block.title == "fastevm.toml"
    ]
    (folder / "fastevm.toml").write_text(block.code)
    words = [sys.executable, "-m", "fastevm", "dev"]
    with subprocess.Popen(
        [*words, "--port", "0"], env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE,
    ) as node:  # fmt: skip
        try:
            assert node.stdout is not None
            found = next(found for line in node.stdout if (found := LISTENING.search(line)))
            assert len(JsonRpcClient(f"http://{found[1]}").call("eth_accounts")) == 5
        finally:
            node.terminate()


def test_every_variable_of_the_product_is_on_the_page_of_configuration() -> None:
    page = (DOCS / "start/configuration.md").read_text()
    read = set()
    for folder in ("fastevm", "rpc"):
        for path in (ROOT / folder).rglob("*.py"):
            if "testing" not in path.parts:
                read |= set(re.findall(r"[\"'](FASTEVM_[A-Z_]*[A-Z])[\"']", path.read_text()))
    assert len(read) > 8
    assert sorted(name for name in read if name not in page) == []
