"""Runs every command of the README and of the features page."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from fastevm.bench.node.launch import NodeProcess

from .shared_data import RECORDED, ROOT
from .unit.cli.support import alloc, env_of, transaction
from .unit.conformance.made import counting, state_test

README = (ROOT / "README.md").read_text()
FEATURES = (ROOT / "docs/start/features.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README + FEATURES, re.S)
SHELL = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line]
CONSOLE = [
    line
    for kind, text in BLOCKS
    if kind == "console"
    for line in text.replace("\\\n", "").splitlines()
]
COMMANDS = [line.split("  #")[0].strip() for line in SHELL]

# Command -> why it does not run here: another test runs it, or it would take too long.
ELSEWHERE = {
    "make dev": "builds; `fastevm dev` is run here",
    "make node": "builds; `fastevm node` is run here",
    "make test": "runs this test",
    "make merchant": "tests/examples/test_merchant_command.py",
    "make check": "runs linters and tests",
    "fastevm bench --node --quick": "takes minutes; tests/bench/test_node.py has its parts",
}


def fastevm(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "fastevm", *arguments]


def run(command: list[str], folder: Path) -> str:
    """Runs a command. Returns its output. Fails if the command fails."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands_of(beginning: str) -> list[str]:
    return [command for command in COMMANDS if command.startswith(beginning)]


def prints_a_table(command: str, folder: Path) -> None:
    assert len(run(fastevm(*command.split()[1:]), folder).splitlines()) > 5


def serves(command: str, folder: Path) -> None:
    for name in ("genesis.json", "chain.rlp"):
        shutil.copy((RECORDED / name).required, folder)
    words = [str(folder / word) if "." in word else word for word in command.split()]
    node = NodeProcess(fastevm(*words[1:], "-q"))
    node.start()
    assert node.ask("eth_chainId").startswith("0x")
    assert node.stop() == 0


def passes_official_tests(command: str, folder: Path) -> None:
    pre_and_post = counting(43_106, 43_106)
    (folder / "TESTS").mkdir()
    (folder / "TESTS/one.json").write_text(json.dumps({"one": state_test("Berlin", *pre_and_post)}))
    assert "1 passed" in run(fastevm(*command.split()[1:]), folder)


def asks_a_node(command: str, folder: Path) -> None:
    case = (RECORDED / "tests/eth_chainId").required
    shutil.copytree(case, folder / "RECORDED/eth_chainId")
    node = NodeProcess(
        fastevm("node", "--dialect", "geth", "--genesis", str((RECORDED / "genesis.json").required))
    )
    node.start()
    try:
        assert "1 passed" in run(fastevm(*command.split()[1:-1], node.url), folder)
    finally:
        node.stop()


def traces_a_state_test(command: str, folder: Path) -> None:
    test = state_test("Berlin", *counting(43_106, 43_106))
    (folder / "test.json").write_text(json.dumps({"one": test}))
    assert '"pass": true' in run(fastevm(*command.split()[1:]), folder)


def makes_a_transition(command: str, folder: Path) -> None:
    files = {"alloc": alloc(), "env": env_of("cancun"), "txs": [transaction()]}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    run(fastevm(*command.split()[1:]), folder)
    assert len(json.loads((folder / "result.json").read_text())["receipts"]) == 1


def times_a_program(command: str, folder: Path) -> None:
    words = [*command.split()[1:], "--match", "empty/*", "--peers", ""]
    assert "empty/stop" in run(fastevm(*words), folder)


RUNS: dict[str, Callable[[str, Path], None]] = {
    "fastevm spec": prints_a_table,
    "fastevm dev": serves,
    "fastevm node": serves,
    "fastevm conformance all": passes_official_tests,
    "fastevm conformance rpc": asks_a_node,
    "fastevm statetest": traces_a_state_test,
    "fastevm t8n": makes_a_transition,
    "fastevm bench": times_a_program,
}


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        first or second for first, second in re.findall(r"^make (\w+)|`make (\w+)`", README, re.M)
    }
    assert {"node", "test"} <= named <= targets


@pytest.mark.parametrize("code", [text for kind, text in BLOCKS if kind == "python"])
def test_the_python_examples_run(code: str, tmp_path: Path) -> None:
    run([sys.executable, "-c", code], tmp_path)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in ELSEWHERE])
def test_a_command_does_what_it_says(command: str, tmp_path: Path) -> None:
    (beginning,) = (name for name in RUNS if command.startswith(name))
    RUNS[beginning](command, tmp_path)


def test_the_excuses_are_commands_of_the_readme() -> None:
    assert ELSEWHERE.keys() <= set(COMMANDS)


def test_a_follower_finds_the_leader_as_the_console_shows(tmp_path: Path) -> None:
    commands = [line.removeprefix("$ ").split() for line in CONSOLE if line.startswith("$ fastevm")]
    leader_words, follower_words = commands
    leader = NodeProcess(fastevm(*in_folder(leader_words, tmp_path), "-q"))
    leader.start()
    port = f"127.0.0.1:{leader.port}"
    words = [word.replace("127.0.0.1:8545", port) for word in in_folder(follower_words, tmp_path)]
    at = words.index("--port")
    follower = NodeProcess(fastevm(*words[:at], *words[at + 2 :], "-q"))
    try:
        follower.start()
        first = leader.ask("eth_getBlockByNumber", "0x0", False)
        assert follower.ask("eth_getBlockByNumber", "0x0", False) == first
    finally:
        follower.stop()
        leader.stop()


def in_folder(words: list[str], folder: Path) -> list[str]:
    """Returns a command's words after the program's name, with the data directory in ``folder``."""
    at = words.index("--datadir") + 1
    return [*words[1:at], str(folder / words[at]), *words[at + 1 :]]


def test_links_of_the_readme_are_absolute_and_lead_to_files() -> None:
    """Package indexes show the README without the repository, so relative links would not work."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    repository = project["urls"]["Repository"]
    raw = repository.replace("github.com", "raw.githubusercontent.com")
    links = re.findall(r"\]\(([^)]+)\)|src=\"([^\"]+)\"", README)
    paths = []
    for link in (first or second for first, second in links):
        for base in (f"{repository}/blob/main/", f"{raw}/main/"):
            if link.startswith(base):
                paths.append(link.removeprefix(base))
        assert link.startswith("https://"), link
    assert len(paths) > 8
    for path in paths:
        assert (ROOT / path).is_file(), path


def test_the_readme_has_three_numbers_of_the_results() -> None:
    results = (ROOT / "bench/RESULTS.md").read_text()
    assert "| `balanceOf` from Python, us | 2.5 | 0.92 |" in results
    assert "| all | 87 | 0.29 |" in results  # the README says 3.4 times, which is 1 / 0.29
    assert "| 0.92 µs | 3.4 times | 200 ms |" in README
