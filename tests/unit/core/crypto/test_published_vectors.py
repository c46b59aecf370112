"""Tests recovery with Wycheproof's signatures and libsecp256k1's edge cases.

Both are in the source archive of electrum-ecc, which `make .venv/.vectors` downloads.
"""

import functools
import hashlib
import json
import os
import re
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fastevm.core.crypto.secp256k1 import recover
from fastevm.testing.secp256k1 import ORDER, PRIME, compare, use_lanes

FOLDER = Path(sys.prefix, "vectors")
SECP256K1 = "libsecp256k1/src/"
WYCHEPROOF = SECP256K1 + "wycheproof/ecdsa_secp256k1_sha256_bitcoin_test.json"
LIBRARY_TESTS = SECP256K1 + "modules/recovery/tests_impl.h"


@functools.cache
def published(name: str) -> str:
    """Returns the text of the file in the archive whose path ends with ``name``."""
    archives = sorted(FOLDER.glob("electrum_ecc-*.tar.gz"))
    if not archives:
        if os.environ.get("CI"):
            pytest.fail("`make .venv/.vectors` was not run")
        pytest.skip("no archive of vectors: make .venv/.vectors")
    with tarfile.open(archives[-1]) as archive:
        for member in archive:
            if member.name.endswith(name):
                content = archive.extractfile(member)
                assert content is not None
                return content.read().decode()
    raise LookupError(name)


def strict_der(signature: bytes) -> tuple[int, int] | None:
    """Returns r and s of a signature in DER, or None if the encoding is invalid."""

    def integer(at: int) -> tuple[int, int] | None:
        if len(signature) < at + 3 or signature[at] != 2:
            return None
        size = signature[at + 1]
        data = signature[at + 2 : at + 2 + size]
        if not 0 < size < 128 or len(data) != size or data[0] >= 128:
            return None
        if size > 1 and data[0] == 0 and data[1] < 128:
            return None
        return int.from_bytes(data, "big"), at + 2 + size

    if len(signature) < 8 or signature[0] != 0x30 or signature[1] != len(signature) - 2:
        return None
    r = integer(2)
    s = integer(r[1]) if r else None
    return (r[0], s[0]) if r and s and s[1] == len(signature) else None


def signers(digest: bytes, r: int, s: int) -> list[bytes]:
    """Returns the public keys that recovery finds with parity 0 and with parity 1."""
    found = []
    for parity in (0, 1):
        try:
            found.append(recover(digest, parity, r, s))
        except ValueError:
            continue
    return found


def wycheproof() -> list[tuple[bytes, dict[str, Any]]]:
    """Returns all cases, each with the public key (x || y) of its group."""
    return [
        (bytes.fromhex(group["publicKey"]["uncompressed"])[1:], case)
        for group in json.loads(published(WYCHEPROOF))["testGroups"]
        for case in group["tests"]
    ]


def test_wycheproof_signers_are_recovered_and_forgers_are_not() -> None:
    counts: Counter[str] = Counter()
    for key, case in wycheproof():
        numbers = strict_der(bytes.fromhex(case["sig"]))
        if numbers is None or max(numbers).bit_length() > 256:
            assert case["result"] == "invalid", case["tcId"]
            counts["not encoded"] += 1
            continue
        digest = hashlib.sha256(bytes.fromhex(case["msg"])).digest()
        signed = key in signers(digest, *numbers)
        if case["result"] == "valid" and numbers[0] < PRIME - ORDER and not signed:
            counts["x of R is r + n"] += 1  # needs parity 2 or 3, which Ethereum does not have
            continue
        if signed and case["result"] == "invalid" and numbers[1] > ORDER // 2:
            counts["high s"] += 1  # transactions reject a high s (EIP-2), recovery does not
            continue
        assert signed == (case["result"] == "valid"), case["tcId"]
        counts["signed" if signed else "refused"] += 1
    assert counts["x of R is r + n"] == 1
    assert counts["high s"] > 1
    assert counts["signed"] == 161 and counts["refused"] > 50 and counts["not encoded"] > 100


def test_wycheproof_in_lanes() -> None:
    signatures = []
    for _, case in wycheproof():
        numbers = strict_der(bytes.fromhex(case["sig"]))
        if numbers and 0 < numbers[0] < ORDER and 0 < numbers[1] < ORDER:
            digest = hashlib.sha256(bytes.fromhex(case["msg"])).digest()
            z = int.from_bytes(digest, "big")
            signatures += [(z, parity, *numbers) for parity in (0, 1)]
    try:
        assert use_lanes("portable") == "open"
        found = compare(signatures)
    finally:
        use_lanes("processor")
    assert len(signatures) > 350
    assert found["wrong"] == 0 and found["agreed"] > 300


def arrays(name: str) -> list[bytes]:
    """Returns the byte arrays in libsecp256k1's C test function with this name."""
    body = published(LIBRARY_TESTS).partition(f"static void {name}(")[2].partition("\n}\n")[0]
    found = re.findall(r"unsigned char \w+\[\d+\] = \{(.*?)\};", body, re.S)
    return [
        bytes(
            int(hexadecimal, 16) if hexadecimal else ord(character)
            for hexadecimal, character in re.findall(r"(0x[0-9a-fA-F]{2})|'(.)'", text)
        )
        for text in found
    ]


def test_border_cases_of_libsecp256k1() -> None:
    message, zero_key, four, *_ = arrays("test_ecdsa_recovery_edge_cases")
    assert (len(message), len(zero_key), len(four)) == (32, 64, 64)

    def numbers(signature: bytes) -> tuple[int, int]:
        return int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")

    # With one parity, the recovered point is infinity. Only the other parity gives a key.
    assert len(signers(message, *numbers(zero_key))) == 1
    # With r = s = 4, the parities 0 and 1 give two keys. Keys with x = r + n would need parity 2 or
    # 3, which Ethereum does not have.
    assert len(set(signers(message, *numbers(four)))) == 2
    for parity in (2, 3):
        with pytest.raises(ValueError):
            recover(message, parity, 4, 4)
    assert signers(message, 0, 4) == signers(message, 4, 0) == []
    assert signers(message, ORDER, 4) == signers(message, ORDER + 4, 4) == []
