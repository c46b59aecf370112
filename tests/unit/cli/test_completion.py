"""Tests completion: candidates for the word under the cursor, and the scripts of the shells."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fastevm.cli.command_line import COMMANDS, main
from fastevm.cli.completion import SCRIPTS, candidates


def test_commands_are_completed() -> None:
    assert set(candidates([""])) == set(COMMANDS)
    assert candidates(["s"]) == [name for name in COMMANDS if name.startswith("s")]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["node", "--dialect", ""], ["geth", "preconf"]),
        (["node", "--slice-int"], ["--slice-interval"]),
        (["db", "ver"], ["verify"]),
        (["db", "verify", "--dat"], ["--datadir"]),
        (["fork", "cache", "st"], ["stats"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["node", "--genesis", ""], []),  # the shell completes file names
        (["nonsense", ""], []),
    ],
)
def test_options_subcommands_and_choices_are_completed(
    typed: list[str], expected: list[str]
) -> None:
    found = candidates(typed)
    assert found == expected or (typed[-1] == "" and not expected and found == list(COMMANDS))


def test_hidden_options_are_not_completed() -> None:
    assert "--celo" not in candidates(["dev", "--c"])


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_scripts_are_valid(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([program, "-n"], input=script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    program = tmp_path / "fastevm"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m fastevm "$@"\n')
    program.chmod(0o755)
    use = "COMP_WORDS=(fastevm node --dia); COMP_CWORD=2; _fastevm; echo ${COMPREPLY[@]}"
    done = subprocess.run(
        ["bash", "-c", f'PATH={tmp_path}:$PATH; eval "$(fastevm completion bash)"; {use}'],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "--dialect\n", done.stderr
