"""Tests that GMP is found inside gmpy2, whether or not gmpy2 is imported."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "imports", ["fastevm.core.primitives.native.gmp", "gmpy2, fastevm.core.primitives.native.gmp"]
)
def test_the_allocator_of_gmp_is_its_own_with_gmpy2_or_without(imports: str) -> None:
    script = f"import sys, {imports}; print('gmpy2' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str("gmpy2," in imports)
