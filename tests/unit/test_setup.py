"""Tests that setup.py initialises local variables of compiled code in every kind of build."""

import json
import os
import subprocess
import sys

import pytest

from tests.shared_data import ROOT

pytest.importorskip("setuptools", reason="setup.py needs setuptools")

ZERO = "-ftrivial-auto-var-init=zero"
PATTERN = "-ftrivial-auto-var-init=pattern"
USUAL = "fastevm/simulate/batch.pyx"
HOT = "fastevm/core/interpreter/loop.pyx"  # in its package, initialising costs too much
# Loads setup.py with a command that compiles nothing. Prints the flags of two extensions.
SCRIPT = """
import json, runpy, sys
sources = sys.argv[1:]
sys.argv = ["setup.py", "egg_info", "--help"]
found = runpy.run_path("setup.py")
print(json.dumps([found["extension"]("x", [s]).extra_compile_args for s in sources]))
"""


def flags(compiler: str = "true", **settings: str) -> tuple[list[str], list[str]]:
    """Returns the flags of an ordinary and of a hot source. ``compiler``: a shell command.

    ``true`` accepts every flag, ``false`` accepts none.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FASTEVM_")}
    shown = subprocess.check_output(
        [sys.executable, "-c", SCRIPT, USUAL, HOT],
        cwd=ROOT, env=kept | settings | {"CC": compiler}, text=True,
    )  # fmt: skip
    usual, hot = json.loads(shown.splitlines()[-1])
    return usual, hot


def test_a_release_initialises_variables_with_zeros() -> None:
    usual, hot = flags()
    assert ZERO in usual
    assert PATTERN not in usual
    assert not {ZERO, PATTERN} & {*hot}


@pytest.mark.parametrize("kind", [{"FASTEVM_DEBUG": "1"}, {"FASTEVM_SANITIZE": "address"}])
def test_a_checked_build_initialises_all_variables_with_a_pattern(kind: dict[str, str]) -> None:
    for found in flags(**kind):
        assert PATTERN in found
        assert ZERO not in found


def test_a_compiler_without_the_flag_still_builds() -> None:
    for found in flags("false"):
        assert found
        assert not {ZERO, PATTERN} & {*found}
