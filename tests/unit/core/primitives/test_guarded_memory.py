"""Tests memory between guard pages: all of it can be used, and an overrun ends the process."""

import mmap
import signal
import subprocess
import sys

import pytest

from fastevm.testing.primitives import write_guarded

SIZES = (1, 32, mmap.PAGESIZE - 1, mmap.PAGESIZE, 3 * mmap.PAGESIZE + 32)


@pytest.mark.parametrize("size", SIZES)
def test_both_ends_can_be_written(size: int) -> None:
    assert write_guarded(size, 0) == write_guarded(size, size - 1) == 7


@pytest.mark.parametrize("at", [-1, 2 * mmap.PAGESIZE])
def test_a_byte_outside_ends_the_process(at: int) -> None:
    script = (
        "from fastevm.testing.primitives import write_guarded\n"
        f"write_guarded({2 * mmap.PAGESIZE}, {at})"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    # a build with the address sanitizer reports the access and exits instead
    assert ended.returncode == -signal.SIGSEGV or b"AddressSanitizer" in ended.stderr


def test_memory_that_does_not_exist_is_reported() -> None:
    with pytest.raises(MemoryError):
        write_guarded(2**62, 0)
