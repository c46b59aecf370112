"""Times hashes, encodings, maps and tries (pytest-benchmark)."""

import pytest

from fastevm.core.crypto.secp256k1 import recover_signer, sign
from fastevm.core.primitives.bloom import BloomQuery
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.rlp import decode, encode
from fastevm.core.trie.trie import Trie, ordered_root
from fastevm.testing.bytes_map import BytesMap

LEAVES = [(keccak256(number.to_bytes(4, "big")), b"\x05" * 40) for number in range(1000)]
NESTED = [[b"\x01" * 32, b"", [b"\x02" * 20, b"\x03"]] for _ in range(100)]


@pytest.mark.parametrize("size", [32, 64, 136, 65536])
def test_keccak(benchmark, size):
    assert len(benchmark(keccak256, bytes(size))) == 32


def test_rlp_encoding(benchmark):
    assert benchmark(encode, NESTED)


def test_rlp_decoding(benchmark):
    assert benchmark(decode, encode(NESTED)) == NESTED


def test_a_bloom_scan_over_ten_thousand_blocks(benchmark):
    query = BloomQuery([[b"\x11" * 20]])
    assert benchmark(query.scan, bytes(256 * 10_000)) == []


def test_a_map_of_a_thousand_keys(benchmark):
    def build():
        found = BytesMap(32)
        found.update(LEAVES)
        return found

    assert len(benchmark(build)) == len(LEAVES)


def test_a_trie_of_a_thousand_leaves_with_its_root(benchmark):
    def build():
        found = Trie()
        for key, value in LEAVES:
            found.put(key, value)
        return found.root()

    assert len(benchmark(build)) == 32


def test_one_leaf_changed_of_a_thousand(benchmark):
    trie = Trie()
    for key, value in LEAVES:
        trie.put(key, value)
    trie.root()

    def change():
        copy = trie.copy()
        copy.put(LEAVES[500][0], b"\x06")
        return copy.root()

    assert benchmark(change) != trie.root()


def test_the_root_of_a_list(benchmark):
    assert len(benchmark(ordered_root, [value for _, value in LEAVES])) == 32


def test_signer_recovery(benchmark):
    y_parity, r, s = sign(bytes([7] * 32), bytes([1] * 32))
    assert len(benchmark(recover_signer, bytes([7] * 32), y_parity, r, s)) == 20
