"""Tests the Merkle-Patricia trie against official vectors and a reference model."""

import gc
import io
import json
import random
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rlp
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from fastevm.core.trie.trie import EMPTY_ROOT, Trie, ordered_root
from tests.shared_data import SHARED

from .reference import keccak256, root_of

VECTORS = SHARED / "fixtures/trie_tests.tar.zst"


def official_cases() -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yields name, case, and whether the keys are hashed."""
    if not VECTORS.exists():
        return
    archive_bytes = zstandard.ZstdDecompressor().stream_reader(VECTORS.open("rb")).read()
    with tarfile.open(fileobj=io.BytesIO(archive_bytes)) as archive:
        for member in archive.getmembers():
            found = archive.extractfile(member)
            if found is None or "nextprev" in member.name:
                continue
            for name, case in json.load(found).items():
                yield f"{Path(member.name).stem}-{name}", case, "secure" in member.name.lower()


CASES = list(official_cases())


def text_or_hex(value: str) -> bytes:
    return bytes.fromhex(value[2:]) if value.startswith("0x") else value.encode()


@pytest.mark.skipif(not CASES, reason="the shared fixtures are not here")
@pytest.mark.parametrize(("case", "secure"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_official_roots(case: dict[str, Any], secure: bool) -> None:
    trie = Trie()
    items = case["in"].items() if isinstance(case["in"], dict) else case["in"]
    for key, value in items:
        path = keccak256(text_or_hex(key)) if secure else text_or_hex(key)
        if value is None:
            trie.delete(path)
        else:
            trie.put(path, text_or_hex(value))
    assert trie.root().hex() == case["root"][2:]


# Keys that are prefixes of each other, for branches with values, extensions and embedded nodes.
short_keys = st.lists(st.sampled_from([0x00, 0x01, 0x10, 0x11, 0xF0]), max_size=4).map(bytes)
keys = st.one_of(short_keys, st.binary(max_size=6), st.binary(min_size=32, max_size=32))
values = st.one_of(st.binary(min_size=1, max_size=3), st.binary(min_size=1, max_size=70))
maps = st.dictionaries(keys, values, max_size=40)


def trie_of(items: dict[bytes, bytes]) -> Trie:
    trie = Trie()
    for key, value in items.items():
        trie.put(key, value)
    return trie


@given(maps)
@settings(max_examples=300)
def test_the_root_is_that_of_the_reference(items: dict[bytes, bytes]) -> None:
    trie = trie_of(items)
    assert trie.root() == root_of(items)
    assert all(trie.get(key) == value for key, value in items.items())


@given(maps, st.sets(keys, max_size=20), st.randoms())
@settings(max_examples=200)
def test_any_order_of_puts_and_deletes_gives_the_same_root(
    items: dict[bytes, bytes], others: set[bytes], rng: random.Random
) -> None:
    gone = others - set(items)
    trie = trie_of(dict.fromkeys(gone, b"gone"))
    trie.root()
    steps = [*((key, b"") for key in gone), *items.items()]
    rng.shuffle(steps)
    for number, (key, value) in enumerate(steps):
        trie.put(key, value)
        if number % 5 == 0:
            trie.root()
    assert trie.root() == root_of(items)
    assert all(trie.get(key) is None for key in gone)
    for key in items:
        trie.delete(key)
    assert trie.root() == EMPTY_ROOT


class Versions(RuleBasedStateMachine):
    """Versions of a trie. Each branches from a hashed or unhashed version, and stays unchanged."""

    versions = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.alive: list[tuple[Trie, dict[bytes, bytes]]] = []

    @rule(target=versions, items=maps)
    def start(self, items: dict[bytes, bytes]) -> int:
        self.alive.append((trie_of(items), dict(items)))
        return len(self.alive) - 1

    @rule(target=versions, base=versions, hashed=st.booleans())
    def branch(self, base: int, hashed: bool) -> int:
        trie, model = self.alive[base]
        if hashed:
            assert trie.root() == root_of(model)
        self.alive.append((trie.copy(), dict(model)))
        return len(self.alive) - 1

    @rule(at=versions, items=st.dictionaries(keys, values, max_size=8))
    def put(self, at: int, items: dict[bytes, bytes]) -> None:
        trie, model = self.alive[at]
        for key, value in items.items():
            trie.put(key, value)
        model.update(items)

    @rule(at=versions, data=st.data())
    def delete(self, at: int, data: st.DataObject) -> None:
        trie, model = self.alive[at]
        key = data.draw(st.sampled_from(sorted(model)) if model else keys)
        trie.delete(key)
        model.pop(key, None)

    @rule(at=versions)
    def forget(self, at: int) -> None:
        self.alive[at] = (Trie(), {})

    @invariant()
    def every_version_is_readable(self) -> None:
        for trie, model in self.alive:
            assert all(trie.get(key) == value for key, value in model.items())

    def teardown(self) -> None:
        for trie, model in self.alive:
            assert trie.root() == root_of(model)


TestVersions = Versions.TestCase
TestVersions.settings = settings(max_examples=60, stateful_step_count=20)


def test_an_empty_trie_has_the_empty_root() -> None:
    trie = Trie()
    trie.delete(b"nothing")
    assert trie.root() == EMPTY_ROOT == keccak256(b"\x80")
    assert trie.get(b"") is None


def test_an_empty_value_deletes() -> None:
    trie = trie_of({b"a": b"1", b"b": b"2"})
    trie.put(b"a", b"")
    assert trie.get(b"a") is None
    assert trie.root() == root_of({b"b": b"2"})


def test_a_value_that_does_not_change_keeps_the_root_shared() -> None:
    trie = trie_of({bytes([i]): b"x" * 40 for i in range(200)})
    root = trie.root()
    other = trie.copy()
    other.put(b"\x05", b"x" * 40)
    assert other.root() == root


def test_long_keys_are_bounded() -> None:
    trie = trie_of({bytes(length): b"v" for length in range(257)})
    assert trie.root() == root_of({bytes(length): b"v" for length in range(257)})
    with pytest.raises(ValueError, match="at most 256 bytes, not 257"):
        trie.put(bytes(257), b"v")
    assert trie.get(bytes(257)) is None
    for length in range(257):
        trie.delete(bytes(length))
    assert trie.root() == EMPTY_ROOT


@pytest.mark.parametrize("size", [55, 56, 255, 256, 65_535, 65_536, 300_000])
def test_values_of_any_size(size: int) -> None:
    items = {b"key": bytes(size), b"other": b"\x01" * size, b"ke": b"short"}
    assert trie_of(items).root() == root_of(items)


@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 127, 128, 129, 130, 255, 256, 257, 400, 66_000])
def test_an_ordered_root_is_that_of_the_trie_over_indices(count: int) -> None:
    items = [bytes([1 + i % 250]) * (1 + i * 7 % 90) for i in range(count)]
    trie = Trie()
    for index, item in enumerate(items):
        trie.put(rlp.encode(index), item)
    assert ordered_root(items) == trie.root()
    if count <= 400:
        assert ordered_root(items) == root_of({rlp.encode(i): v for i, v in enumerate(items)})


@pytest.mark.parametrize("size", [64 * 1024 - 1, 64 * 1024, 2**24 + 3])
@pytest.mark.parametrize("others", [[], [b"x"] * 3, [b"x" * 700] * 140, [b"x" * 70_000] * 2])
@pytest.mark.parametrize("at", [0, 1, -1])
def test_an_ordered_root_with_a_long_item(size: int, others: list[bytes], at: int) -> None:
    items = list(others)
    items.insert(at % (len(items) + 1), bytes(range(256)) * (size // 256) + b"y" * (size % 256))
    trie = Trie()
    for index, item in enumerate(items):
        trie.put(rlp.encode(index), item)
    assert ordered_root(items) == trie.root()


def test_an_ordered_root_refuses_an_empty_item() -> None:
    with pytest.raises(ValueError, match="item 1 is empty"):
        ordered_root([b"a", b"", b"c"])


def test_a_version_costs_only_the_paths_that_change() -> None:
    keys = [keccak256(i.to_bytes(4, "big")) for i in range(5_000)]
    trie = trie_of(dict.fromkeys(keys, b"v" * 70))
    trie.root()
    tracemalloc.start()
    try:
        versions = []
        for key in keys[:100]:
            versions.append(trie.copy())
            trie.put(key, b"w" * 70)
            trie.root()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 100 * 2_000
    assert len({version.root() for version in versions}) == 100


def test_memory_goes_back_when_the_last_version_goes() -> None:
    def work() -> None:
        rng = random.Random(7)
        versions = [Trie()]
        for step in range(3_000):
            trie = rng.choice(versions)
            if rng.random() < 0.02:
                versions.append(trie.copy())
            if rng.random() < 0.01 and len(versions) > 3:
                versions.pop(rng.randrange(len(versions)))
            key = rng.randrange(400).to_bytes(rng.choice((2, 3)), "big")
            trie.put(key, bytes(step % 40))
            if rng.random() < 0.05:
                trie.prove(key)

    work()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        base, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            work()
        gc.collect()
        rest, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rest - base < 4_096


def test_without_memory_nothing_changes() -> None:
    hooks = pytest.importorskip("_testcapi")
    items = {keccak256(bytes([i]))[: 2 + i % 3]: b"v" * (i + 1) for i in range(60)}
    base = trie_of(items)
    root = base.root()
    refused = 0
    for number, key in enumerate([*items, b"", *(bytes([i, 7]) for i in range(60))]):
        for shared in (False, True):
            trie = base.copy() if shared else trie_of(items)
            for value in (b"", b"new" * 20):
                for allowed in range(8):
                    hooks.set_nomemory(allowed, allowed + 1)
                    try:
                        trie.put(key, value)
                    except MemoryError:
                        hooks.remove_mem_hooks()
                        refused += 1
                    else:
                        hooks.remove_mem_hooks()
                        break
                    assert trie.get(key) == (items.get(key) if value == b"" else None), number
            assert trie.root() == root_of({**items, key: b"new" * 20})
    assert refused > 100
    assert base.root() == root
