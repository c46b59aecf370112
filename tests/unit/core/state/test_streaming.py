"""Tests that streamed states are restored with the same root, and damaged data is rejected."""

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fastevm.core.state.layer import Layer
from fastevm.core.state.streaming import StateReader, write_state

WORDS = some.integers(0, 2**256 - 1)
ACCOUNTS = some.dictionaries(
    some.binary(min_size=20, max_size=20),
    some.fixed_dictionaries(
        {
            "balance": WORDS,
            "nonce": some.integers(0, 2**64 - 1),
            "code": some.sampled_from([b"", b"\x00", b"\x60\x01" * 40, bytes(300)]),
            "storage": some.dictionaries(WORDS, WORDS, max_size=6),
        }
    ),
    max_size=12,
)


def chunks_of(layer: Layer) -> list[bytes]:
    found: list[bytes] = []
    write_state(layer, found.append)
    return found


def read(chunks: list[bytes]) -> Layer:
    reader = StateReader()
    for chunk in chunks:
        reader.add(chunk)
    return reader.finish()


def content(layer: Layer) -> dict:
    return {
        address: (layer.account(address), layer.code(address), layer.storage_items(address))
        for address in layer.addresses()
    }


@given(ACCOUNTS)
def test_a_state_comes_back_as_it_was(accounts: dict) -> None:
    layer = Layer.of(accounts)
    again = read(chunks_of(layer))
    assert content(again) == content(layer)
    assert again.state_root() == layer.state_root()
    changed = {bytes(20): {"balance": 5, "storage": {1: 2}}}
    assert again.with_accounts(changed).state_root() == layer.with_accounts(changed).state_root()


def test_a_large_account_spans_chunks_and_batches() -> None:
    rng = random.Random(3)
    storage = {rng.getrandbits(256): rng.getrandbits(256) for _ in range(300_000)}
    few = {bytes([n] * 20): {"nonce": n, "code": bytes([n % 3]) * 5} for n in range(1, 200)}
    layer = Layer.of({bytes(20): {"nonce": 1, "storage": storage}, **few})
    chunks = chunks_of(layer)
    assert len(chunks) > 15 and max(map(len, chunks)) < 2**20 + 200
    again = read(chunks)
    assert again.state_root() == layer.state_root()
    assert again.storage_items(bytes(20)) == storage


def test_equal_codes_are_written_once() -> None:
    code = b"\x5b" * 20_000
    layer = Layer.of({bytes([n] * 20): {"code": code} for n in range(100)})
    assert sum(map(len, chunks_of(layer))) < 40_000


def test_what_the_sink_raises_ends_the_stream() -> None:
    def full(chunk: bytes) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_state(Layer.of({bytes(20): {"nonce": 1}}), full)


def test_damaged_chunks_are_refused_or_give_another_root() -> None:
    rng = random.Random(4)
    layer = Layer.of(
        {bytes([n] * 20): {"nonce": n, "code": bytes(n), "storage": {n: n}} for n in range(1, 9)}
    )
    whole = b"".join(chunks_of(layer))
    for _ in range(2_000):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        if damaged == whole:
            continue
        try:
            again = read([bytes(damaged)])
        except ValueError:
            continue
        if again.state_root() == layer.state_root():
            assert content(again) == content(layer)


def test_streams_need_no_memory_beside_a_chunk() -> None:
    rng = random.Random(5)
    storage = {rng.getrandbits(256): 1 for _ in range(200_000)}
    layer = Layer.of({bytes(20): {"nonce": 1, "storage": storage}})
    reader, sizes = StateReader(), []
    tracemalloc.start()
    try:
        write_state(layer, lambda chunk: sizes.append(len(chunk)))
        written = tracemalloc.get_traced_memory()[1]
        write_state(layer, reader.add)
        current, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 6 * 2**20
    assert written < 2.5 * 2**20
    assert peak - current < 2.5 * 2**20  # the peak contains the restored state
    assert reader.finish().state_root() == layer.state_root()
