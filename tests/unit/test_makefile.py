"""Tests that `make` replaces outdated environments, and `make clean` removes everything."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.shared_data import ROOT

NODE_MODULES = "examples/node_modules"
IGNORED = {"*.egg-info/": "fastevm.egg-info", "*.so": "fastevm/evm/machine.so", "/*.whl": "a.whl"}


def make(folder: Path, *words: str) -> str:
    """Runs `make` without the variables that an outer `make` sets. Returns the output."""
    environment = {
        k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "PYTHON", "VENV")
    }
    done = subprocess.run(
        ["make", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def environment(folder: Path, command: str) -> None:
    """Creates an environment with up-to-date packages. Its Python is a shell command."""
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{command}\n")
    python.chmod(0o755)
    (folder / ".venv/.node").touch()


def test_an_environment_that_fits_is_kept(folder: Path) -> None:
    environment(folder, f'exec {sys.executable} "$@"')
    assert "rm -rf" not in make(folder, "-n", ".venv/.node")
    assert "rm -rf" not in make(folder, "-n", ".venv/.node", f"PYTHON={sys.executable}")


@pytest.mark.parametrize("command", ["exit 127", "exit 1"])
def test_an_environment_without_a_usable_python_is_replaced(folder: Path, command: str) -> None:
    environment(folder, command)
    planned = make(folder, "-n", ".venv/.node")
    assert "rm -rf .venv" in planned
    assert "pip install" in planned


def test_an_environment_of_another_version_than_the_named_python_is_replaced(folder: Path) -> None:
    environment(folder, f'exec {sys.executable} "$@"')
    other = folder / "python3.99"
    other.write_text("#!/bin/sh\necho 3 99\n")
    other.chmod(0o755)
    assert "rm -rf .venv" in make(folder, "-n", ".venv/.node", f"PYTHON={other}")


def test_clean_removes_every_ignored_file(folder: Path) -> None:
    patterns = [
        line for line in (ROOT / ".gitignore").read_text().splitlines() if line and line[0] != "#"
    ]
    assert "build/" in patterns
    template = folder / "fastevm/core/interpreter/loop.pyx.in"
    for pattern in patterns:
        if pattern.startswith("/fastevm"):
            (folder / f"{pattern[1:]}.in").parent.mkdir(parents=True, exist_ok=True)
            (folder / f"{pattern[1:]}.in").touch()
        path = folder / IGNORED.get(pattern, pattern.strip("/").replace("*", ""))
        path.parent.mkdir(parents=True, exist_ok=True)
        if pattern.endswith("/") or pattern == ".venv*":
            path.mkdir()
            (path / "file").touch()
        else:
            path.touch()
    (folder / NODE_MODULES).mkdir(parents=True)
    make(folder, "clean")
    assert (folder / ".venv").exists()
    make(folder, "distclean")
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    kept = {p.relative_to(folder).as_posix() for p in template.parent.glob("*.in")}
    assert left == {"Makefile", "pyproject.toml", *kept}
    assert not list(folder.rglob("node_modules"))


def test_a_build_in_a_pipe_says_how_far_it_is(folder: Path) -> None:
    """The pipe closes when the build ends."""
    compiler = 'case "$1" in setup.py) echo "[7/9] Compiling x"; sleep 0.6;; esac'
    environment(folder, f'case "$1" in -c) exec {sys.executable} "$@";; esac; {compiler}')
    began = time.monotonic()
    assert "[7/9] Compiling x" in make(folder, "runtime", "PROGRESS_SECONDS=0.2")
    assert "[7/9]" not in make(folder, "runtime", "PROGRESS_SECONDS=60")
    assert time.monotonic() - began < 50


@pytest.mark.parametrize("command", ["dev", "node"])
def test_both_nodes_have_a_target(folder: Path, command: str) -> None:
    environment(folder, f'exec {sys.executable} "$@"')
    assert f"-m fastevm {command} --port 1" in make(folder, "-n", command, "ARGS=--port 1")
