"""Runs, in the repository, the checks that `make package` runs on an installation."""

import shutil

import pytest

from tests.packaging import installed


def test_the_import_takes_less_than_50_ms() -> None:
    installed.check_import()


def test_a_machine_and_bundles_run() -> None:
    installed.check_machine()


def test_a_node_runs_inside_the_process() -> None:
    installed.check_node()


@pytest.mark.skipif(shutil.which("fastevm") is None, reason="no command is installed")
def test_the_command_is_there() -> None:
    installed.check_command()
