"""Tests the persistent hash map against dict: many versions, collisions, threads, leaks."""

import gc
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from fastevm.testing.bytes_map import BytesMap, live_leaves

SEED = 0x0123_4567_89AB_CDEF
SIZES = (20, 32)


def key_of(number: int, size: int = 32) -> bytes:
    return number.to_bytes(size, "big")


def colliding_key(number: int, size: int) -> bytes:
    """Returns one of many keys with the same first hash: their first 8 bytes cancel the seed."""
    return SEED.to_bytes(8, "little") + number.to_bytes(8, "little") + bytes(size - 16)


def contents(version: BytesMap) -> dict[bytes, bytes]:
    return dict(version.items())


@pytest.mark.parametrize("size", SIZES)
def test_an_empty_map_has_nothing(size: int) -> None:
    empty = BytesMap(size)
    assert len(empty) == 0
    assert empty.get(bytes(size)) is None
    assert contents(empty) == {}
    empty.remove(bytes(size))
    assert len(empty.copy()) == 0


@pytest.mark.parametrize("size", [0, 19, 33])
def test_other_key_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="20 or 32 bytes"):
        BytesMap(size)
    with pytest.raises(ValueError, match="32 bytes"):
        BytesMap(32).get(bytes(size))


@pytest.mark.parametrize("size", SIZES)
def test_the_last_byte_of_a_key_counts(size: int) -> None:
    version = BytesMap(size)
    for position in range(size):
        key = bytearray(size)
        key[position] = 1
        version.set(bytes(key), bytes([position]))
    assert len(version) == size
    for position in range(size):
        key = bytearray(size)
        key[position] = 1
        assert version.get(bytes(key)) == bytes([position])


@pytest.mark.parametrize("size", SIZES)
def test_many_keys_come_and_go_in_place(size: int) -> None:
    version = BytesMap(size, seed=SEED)
    model: dict[bytes, bytes] = {}
    rng = random.Random(1)
    for step in range(20_000):
        key = key_of(rng.randrange(3_000), size)
        if rng.random() < 0.4:
            version.remove(key)
            model.pop(key, None)
        else:
            version.set(key, key_of(step, 4))
            model[key] = key_of(step, 4)
        assert len(version) == len(model)
    assert contents(version) == model
    for key in list(model):
        version.remove(key)
    assert len(version) == 0


@pytest.mark.parametrize("size", SIZES)
def test_keys_with_one_full_hash_stay_apart(size: int) -> None:
    version = BytesMap(size, seed=SEED)
    model = {colliding_key(i, size): key_of(i, 2) for i in range(200)}
    older = []
    for key, value in model.items():
        older.append(version.copy())
        version.set(key, value)
    assert contents(version) == model
    assert all(version.get(key) == value for key, value in model.items())
    assert [len(each) for each in older] == list(range(200))
    keys = list(model)
    random.Random(2).shuffle(keys)
    for key in keys[:-1]:
        version.remove(key)
        assert version.get(key) is None
    assert contents(version) == {keys[-1]: model[keys[-1]]}
    assert contents(older[-1]) == dict(list(model.items())[:-1])


class Versions(RuleBasedStateMachine):
    """Versions of a map that branch at random. Each must keep the content of its model."""

    versions = Bundle("versions")
    keys = st.one_of(
        st.integers(0, 40).map(lambda i: colliding_key(i, 32)),
        st.integers(0, 300).map(key_of),
        st.binary(min_size=32, max_size=32),
    )

    def __init__(self) -> None:
        super().__init__()
        self.leaves_before = live_leaves()
        self.alive: list[tuple[BytesMap, dict[bytes, bytes]]] = []

    @rule(target=versions)
    def empty(self) -> int:
        self.alive.append((BytesMap(32, seed=SEED), {}))
        return len(self.alive) - 1

    @rule(target=versions, base=versions)
    def branch(self, base: int) -> int:
        version, model = self.alive[base]
        self.alive.append((version.copy(), dict(model)))
        return len(self.alive) - 1

    @rule(at=versions, key=keys, value=st.binary(max_size=40))
    def put(self, at: int, key: bytes, value: bytes) -> None:
        version, model = self.alive[at]
        version.set(key, value)
        model[key] = value

    @rule(at=versions, items=st.lists(st.tuples(keys, st.binary(max_size=3)), max_size=60))
    def put_many(self, at: int, items: list[tuple[bytes, bytes]]) -> None:
        version, model = self.alive[at]
        version.update(items)
        model.update(items)

    @rule(at=versions, key=keys)
    def remove(self, at: int, key: bytes) -> None:
        version, model = self.alive[at]
        version.remove(key)
        model.pop(key, None)

    @rule(at=versions, data=st.data())
    def remove_known(self, at: int, data: st.DataObject) -> None:
        version, model = self.alive[at]
        if model:
            key = data.draw(st.sampled_from(sorted(model)))
            version.remove(key)
            del model[key]
            assert version.get(key) is None

    @rule(at=versions)
    def clear(self, at: int) -> None:
        self.alive[at] = (BytesMap(32, seed=SEED), {})

    @invariant()
    def every_version_is_its_model(self) -> None:
        for version, model in self.alive:
            assert len(version) == len(model)
            assert contents(version) == model

    def teardown(self) -> None:
        for version, model in self.alive:
            assert all(version.get(key) == value for key, value in model.items())
        self.alive.clear()
        del version, model
        assert live_leaves() == self.leaves_before


TestVersions = Versions.TestCase
TestVersions.settings = settings(max_examples=40, stateful_step_count=30)


@given(st.lists(st.binary(min_size=20, max_size=20), unique=True, max_size=80), st.randoms())
@settings(max_examples=50)
def test_order_does_not_matter(keys: list[bytes], rng: random.Random) -> None:
    version = BytesMap(20)
    for key in keys:
        version.set(key, key)
    kept = set(keys[::2])
    gone = [key for key in keys if key not in kept]
    rng.shuffle(gone)
    for key in gone:
        version.remove(key)
    assert contents(version) == {key: key for key in kept}


def test_memory_goes_back_when_the_last_version_goes() -> None:
    def work() -> None:
        rng = random.Random(3)
        versions = [BytesMap(20)]
        for step in range(3_000):
            version = rng.choice(versions)
            if rng.random() < 0.02:
                versions.append(version.copy())
            if rng.random() < 0.01 and len(versions) > 3:
                versions.pop(rng.randrange(len(versions)))
            key = key_of(rng.randrange(500), 20)
            if rng.random() < 0.3:
                version.remove(key)
            else:
                version.set(key, bytes(step % 50))

    work()
    leaves = live_leaves()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        rest, _ = tracemalloc.get_traced_memory()
        base = rest
        for _ in range(3):
            work()
        gc.collect()
        rest, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert live_leaves() == leaves
    assert rest - base < 4_096


def test_a_snapshot_costs_only_the_paths_that_change() -> None:
    version = BytesMap(32)
    version.update([(key_of(i), b"") for i in range(20_000)])
    tracemalloc.start()
    try:
        snapshots = []
        for i in range(100):
            snapshots.append(version.copy())
            version.set(key_of(i), b"x")
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 100 * 2_500
    assert all(len(each) == 20_000 for each in snapshots)


def derive(base: BytesMap, version: BytesMap, number: int) -> BytesMap:
    """Edits the keys ``number``, ``number`` + 16, ... of a version. No other thread edits them."""
    for part in range(10):
        keys = [key_of(i * 16 + number) for i in range(part * 60, part * 60 + 60)]
        version.update([(key, key_of(number, 1)) for key in keys])
        assert base.get(key_of(number)) == b"base"
    return version


def test_threads_derive_versions_from_one_shared_root() -> None:
    leaves = live_leaves()
    base = BytesMap(32)
    base.update([(key_of(i), b"base") for i in range(5_000)])
    copies = [base.copy() for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        derived = list(pool.map(derive, [base] * 16, copies, range(16)))
    assert contents(base) == {key_of(i): b"base" for i in range(5_000)}
    for number, version in enumerate(derived):
        expected = {key_of(i): b"base" for i in range(5_000)}
        expected.update({key_of(i * 16 + number): key_of(number, 1) for i in range(600)})
        assert contents(version) == expected
    del derived, copies, base, version
    gc.collect()
    assert live_leaves() == leaves


def test_without_memory_nothing_changes() -> None:
    hooks = pytest.importorskip("_testcapi")
    items = {key_of(i, 20): b"old" for i in range(40)}
    items.update({colliding_key(i, 20): b"old" for i in range(20)})
    base = BytesMap(20, seed=SEED)
    base.update(list(items.items()))
    leaves = live_leaves()
    refused = 0
    for key in [*items, *(key_of(1_000 + i, 20) for i in range(40)), colliding_key(99, 20)]:
        for action in ("set", "remove"):
            version = base.copy()
            for allowed in range(40):
                hooks.set_nomemory(allowed, allowed + 1)
                try:
                    version.set(key, b"new") if action == "set" else version.remove(key)
                except MemoryError:
                    hooks.remove_mem_hooks()
                    refused += 1
                else:
                    hooks.remove_mem_hooks()
                    break
                assert version.get(key) == items.get(key)
                assert len(version) == len(items)
            expected = {**items, key: b"new"}
            if action == "remove":
                del expected[key]
            assert contents(version) == expected
    del version
    assert refused > 100
    assert contents(base) == items
    assert live_leaves() == leaves


@pytest.mark.parametrize("size", SIZES)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), keys=st.integers(1, 400), collide=st.booleans())
def test_the_differences_of_two_versions_are_those_of_their_contents(
    size: int, seed: int, keys: int, collide: bool
) -> None:
    rng = random.Random(seed)
    base = BytesMap(size, seed=SEED)

    def edit(version: BytesMap, count: int) -> None:
        for _ in range(count):
            number = rng.randrange(keys)
            key = colliding_key(number, size) if collide else key_of(number, size)
            if rng.random() < 0.4:
                version.remove(key)
            else:
                version.set(key, bytes([rng.randrange(256)]))

    edit(base, rng.randrange(2 * keys))
    before, after = base.copy(), base.copy()
    edit(before, rng.randrange(keys))
    edit(after, rng.randrange(keys))
    old, new = contents(before), contents(after)
    found = before.differences(after)
    assert len(found) == len({key for key, _, _ in found})
    assert all((was, now) == (old.get(key), new.get(key)) for key, was, now in found)
    wanted = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    assert wanted <= {key for key, _, _ in found}
    assert base.differences(base.copy()) == []


def test_differences_do_not_visit_what_two_versions_share() -> None:
    base = BytesMap(32)
    base.update([(key_of(number), b"x") for number in range(5_000)])
    after = base.copy()
    after.set(key_of(7), b"y")
    after.remove(key_of(8))
    after.set(key_of(9_999), b"z")
    found = {key: both for key, *both in base.differences(after)}
    assert found == {
        key_of(7): [b"x", b"y"],
        key_of(8): [b"x", None],
        key_of(9_999): [None, b"z"],
    }
