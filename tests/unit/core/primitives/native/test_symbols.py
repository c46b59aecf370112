"""Tests that C functions of other packages are found, and the errors for missing functions."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fastevm.core.primitives.native.symbols import has_native_function
from tests.max_wait import MAX_WAIT


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("coincurve._libsecp256k1", "secp256k1_ecdsa_recover"),
        ("ckzg", "blst_map_to_g1"),
        ("gmpy2.gmpy2", "__gmpz_powm"),
    ],
)
def test_the_functions_this_project_lives_on_are_there(module: str, name: str) -> None:
    assert has_native_function(module, name)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("coincurve._libsecp256k1", "no_such_function"),
        ("no_such_module", "function"),
        ("no_such_package.module", "function"),
        ("sys", "function"),
        ("json", "function"),
    ],
)
def test_what_is_not_there_is_not_found(module: str, name: str) -> None:
    assert not has_native_function(module, name)


@pytest.mark.skipif(sys.platform != "linux", reason="what is mapped is read from /proc")
def test_modules_are_opened_on_a_thread_before_they_are_loaded() -> None:
    spec = find_spec("gmpy2.gmpy2")
    assert spec is not None and spec.origin is not None
    program = """
import sys, time
from fastevm.core.primitives.native.symbols import open_ahead
maps = lambda: open("/proc/self/maps").read()
assert sys.argv[1] not in maps()
assert open_ahead(["/no/such/file", sys.argv[1]])
while sys.argv[1] not in maps():
    time.sleep(0.001)
import gmpy2
print(gmpy2.mpz(6) * 7)
"""
    words = [sys.executable, "-c", program, str(Path(spec.origin))]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=MAX_WAIT)
    assert done.stdout == "42\n"
