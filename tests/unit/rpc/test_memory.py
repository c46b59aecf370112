"""Freed memory serves again: large answers do not ask the system for every page each time."""

import os
import platform
import subprocess
import sys

import pytest

from tests.shared_data import ROOT

SCRIPT = """
import resource
from fastevm.rpc.memory import KEPT, keep_freed_memory
keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
size = KEPT // 16
first = faults()
kept = [b"x" * size for _ in range(2)]
del kept
once = faults() - first
for _ in range(50):
    kept = [b"x" * size for _ in range(2)]
    del kept
print(once, faults() - first)
"""


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="its malloc is another one")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this malloc has no such options")
def test_large_pieces_are_cleared_by_the_system_only_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    once, always = map(int, done.stdout.split())
    assert always < 5 * once  # without it: fifty times
