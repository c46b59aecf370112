"""Tests that large answers reuse freed memory, and that memory unused for long is returned."""

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

# Allocates megabytes between small pieces, frees only the megabytes, and prints how many megabytes
# stay resident.
SCATTERED = """
import time
from fastevm.rpc.memory import MEGABYTE, give_back_freed_memory, keep_freed_memory, resident
keep_freed_memory()
before = resident()
if %s:
    give_back_freed_memory(0.05)
large, small = [], []
for _ in range(48):
    large.append(b"x" * MEGABYTE)
    small.append(b"x" * 1_000)
del large
ends = time.monotonic() + 2.0
while resident() - before > 20 * MEGABYTE and time.monotonic() < ends:
    time.sleep(0.05)
print((resident() - before) // MEGABYTE)
"""


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="its malloc is another one")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this malloc has no such options")
def test_large_pieces_are_cleared_by_the_system_only_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    once, always = map(int, done.stdout.split())
    assert always < 5 * once  # fifty times as many page faults without the setting


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer's malloc is another one")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this malloc has no such function")
def test_what_lies_free_below_pieces_in_use_goes_back() -> None:
    left = {}
    for is_given_back in (False, True):
        done = subprocess.run(
            [sys.executable, "-c", SCATTERED % is_given_back],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        left[is_given_back] = int(done.stdout)
    assert left[False] > 40
    assert left[True] < 20
