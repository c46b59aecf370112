"""Tests what a user sees without the extra ``payments``."""

import subprocess
import sys

import pytest

from fastevm.errors import install_command
from tests.max_wait import MAX_WAIT

# Hides the packages of the extra from a new interpreter.
WITHOUT = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("eth_account", "eth_abi", "eth_utils", "eth_keys"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, timeout=MAX_WAIT
    )


def test_the_import_names_the_extra() -> None:
    done = run("import fastevm.payments")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: No module named 'eth_account'")
    assert last.endswith(f"fastevm.payments needs: {install_command('payments')}")


def test_the_help_works_without_the_extra() -> None:
    done = run("from fastevm.__main__ import main; main(['pay', '--help'])")
    assert done.returncode == 0 and done.stderr == ""
    assert "refund" in done.stdout and install_command("payments") in " ".join(done.stdout.split())


@pytest.mark.parametrize("example", ["merchant", "paid_api"])
def test_an_example_names_the_extra(example: str) -> None:
    code = f"import runpy; runpy.run_module('examples.{example}', run_name='__main__')"
    done = run(code)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith(f"examples.{example}: No module named 'eth_")
    assert done.stderr.count(install_command("payments")) == 1


def test_a_command_names_the_extra() -> None:
    for words in (["pay", "list"], ["pay", "refund", "--help"], ["pay", "facilitator"]):
        done = run(f"import sys; from fastevm.__main__ import main; sys.exit(main({words!r}))")
        assert done.returncode == 1 and "Traceback" not in done.stderr
        assert done.stderr.count(install_command("payments")) == 1
