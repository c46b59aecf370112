"""Tests that a program prints the same with pyrevm and with fastevm's drop-in replacement."""

import os
import subprocess
import sys
from pathlib import Path

from tests.max_wait import MAX_WAIT

from .peers import ROOT, WORKERS, python_of


def printed(python: Path | str, module: str) -> list[str]:
    """Runs the program with a module in an interpreter. Returns the printed lines."""
    environ = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [python, "-B", WORKERS / "revm_names.py", module], cwd=ROOT, capture_output=True,
        text=True, timeout=MAX_WAIT, env=environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_program_of_pyrevm_gives_the_same() -> None:
    ours = printed(sys.executable, "fastevm.integrations.pyrevm")
    theirs = printed(python_of("pyrevm"), "pyrevm")
    assert len(ours) > 150
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []
