"""C functions of other packages are found; missing ones raise a clear error."""

import pytest

from fastevm.primitives.native.symbols import has_native_function


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
