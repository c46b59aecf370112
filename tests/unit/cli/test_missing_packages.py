"""Tests that a command whose packages are missing names the extra that installs them."""

import builtins
import sys
import tomllib
from typing import Any

import pytest

from fastevm.cli.command_line import EXTRAS, main
from fastevm.errors import install_command
from tests.shared_data import ROOT


def test_every_extra_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("words", [["pay", "list"], ["pay", "list", "--help"]])
def test_a_command_without_its_packages_names_the_extra(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = builtins.__import__

    def missing(name: str, *more: Any) -> Any:
        if name.partition(".")[0].startswith("eth_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, *more)

    for name in list(sys.modules):
        if name.startswith("fastevm.payments"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", missing)
    assert main(words) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert install_command("payments") in error
