"""Tests the persistent map of words against dict: versions, equal hashes, leaks."""

import gc
import random
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from fastevm.core.primitives.slab import records_in_use
from fastevm.testing.persistent_map import (
    WordDict,
    allocate,
    refuse_chunks,
    release,
    seed,
)

LARGEST = 2**256 - 1
BUCKET_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24)  # in lines; a node has 2 lines


def colliding_key(number: int) -> int:
    """Returns one of many keys with the same first hash: their lowest limb cancels the seed."""
    return seed() | number << 64


def filled(items: dict[int, int]) -> WordDict:
    version = WordDict()
    for key, value in items.items():
        version.set(key, value)
    return version


def test_an_empty_map_has_nothing() -> None:
    empty = WordDict()
    assert not empty
    assert empty.get(0) == 0
    empty.set(7, 0)
    empty.prefetch([1, 2])
    assert not empty.copy()
    assert dict(empty.items()) == {}


def test_the_key_zero_is_a_key() -> None:
    version = WordDict()
    version.set(0, 5)
    assert version.get(0) == 5
    version.set(0, 0)
    assert not version


def test_each_bit_of_a_key_counts() -> None:
    model = {1 << bit: bit + 1 for bit in range(256)} | {0: LARGEST, LARGEST: 3}
    version = filled(model)
    assert dict(version.items()) == model
    assert all(version.get(key) == value for key, value in model.items())


def test_many_keys_come_and_go_in_place() -> None:
    version = WordDict()
    model: dict[int, int] = {}
    rng = random.Random(1)
    for step in range(1, 30_000):
        key = rng.randrange(3_000)
        if rng.random() < 0.4:
            version.set(key, 0)
            model.pop(key, None)
        else:
            version.set(key, step)
            model[key] = step
        assert version.get(key) == model.get(key, 0)
    version.prefetch(list(range(20)))
    assert dict(version.items()) == model
    for key in list(model):
        version.set(key, 0)
    assert not version


def test_keys_with_one_full_hash_stay_apart() -> None:
    model = {colliding_key(number): number + 1 for number in range(100)}
    older = []
    version = WordDict()
    for key, value in model.items():
        older.append(version.copy())
        version.set(key, value)
    assert dict(version.items()) == model
    assert [len(list(each.items())) for each in older] == list(range(100))
    version.prefetch(list(model)[:16])
    keys = list(model)
    random.Random(2).shuffle(keys)
    for key in keys:
        assert version.get(key) == model[key]
        version.set(key, 0)
        assert version.get(key) == 0
    assert not version
    assert dict(older[-1].items()) == dict(list(model.items())[:-1])


class Versions(RuleBasedStateMachine):
    """Versions of a map that branch at random. Each must keep the content of its model."""

    versions = Bundle("versions")
    keys = st.one_of(
        st.integers(0, 30).map(colliding_key), st.integers(0, 300), st.integers(0, LARGEST)
    )
    values = st.one_of(st.just(0), st.integers(1, LARGEST))

    def __init__(self) -> None:
        super().__init__()
        self.records = records_in_use()["records"]
        self.alive: list[tuple[WordDict, dict[int, int]]] = []

    @rule(target=versions)
    def empty(self) -> int:
        self.alive.append((WordDict(), {}))
        return len(self.alive) - 1

    @rule(target=versions, base=versions)
    def branch(self, base: int) -> int:
        version, model = self.alive[base]
        self.alive.append((version.copy(), dict(model)))
        return len(self.alive) - 1

    @rule(at=versions, items=st.lists(st.tuples(keys, values), max_size=60))
    def put(self, at: int, items: list[tuple[int, int]]) -> None:
        version, model = self.alive[at]
        for key, value in items:
            version.set(key, value)
            model[key] = value
            if not value:
                del model[key]

    @rule(at=versions, data=st.data())
    def remove_known(self, at: int, data: st.DataObject) -> None:
        version, model = self.alive[at]
        if model:
            key = data.draw(st.sampled_from(sorted(model)))
            version.set(key, 0)
            del model[key]
            assert version.get(key) == 0

    @rule(at=versions)
    def clear(self, at: int) -> None:
        self.alive[at] = (WordDict(), {})

    @invariant()
    def every_version_is_its_model(self) -> None:
        for version, model in self.alive:
            assert bool(version) == bool(model)
            assert dict(version.items()) == model

    def teardown(self) -> None:
        for version, model in self.alive:
            assert all(version.get(key) == value for key, value in model.items())
        self.alive.clear()
        del version, model
        assert records_in_use()["records"] == self.records


TestVersions = Versions.TestCase
TestVersions.settings = settings(max_examples=40, stateful_step_count=30)


@given(st.lists(st.integers(0, LARGEST), unique=True, max_size=120), st.randoms())
@settings(max_examples=50)
def test_order_does_not_matter(keys: list[int], rng: random.Random) -> None:
    version = filled({key: key + 1 & LARGEST or 1 for key in keys})
    kept = set(keys[::2])
    gone = [key for key in keys if key not in kept]
    rng.shuffle(gone)
    for key in gone:
        version.set(key, 0)
    assert dict(version.items()) == {key: key + 1 & LARGEST or 1 for key in kept}


def test_a_snapshot_costs_only_the_paths_that_change() -> None:
    version = filled(dict.fromkeys(range(20000), 1))
    records = records_in_use()["records"]
    snapshots = []
    for key in range(100):
        snapshots.append(version.copy())
        version.set(key, 2)
    assert records_in_use()["records"] - records <= 100 * 6  # a change copies 5 nodes and a bucket
    assert snapshots[0].get(0) == 1
    assert snapshots[1].get(0) == 2
    assert snapshots[99].get(99) == 1


def derive(base: WordDict, version: WordDict, number: int) -> WordDict:
    """Edits the keys ``number``, ``number`` + 16, ... of a version. No other thread edits them."""
    for key in range(number, 9_600, 16):
        version.set(key, number + 2)
        assert base.get(key) == (1 if key < 5_000 else 0)
    return version


def test_threads_derive_versions_from_one_shared_root() -> None:
    records = records_in_use()["records"]
    base = filled(dict.fromkeys(range(5000), 1))
    copies = [base.copy() for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        derived = list(pool.map(derive, [base] * 16, copies, range(16)))
    model = dict.fromkeys(range(5000), 1)
    assert dict(base.items()) == model
    for number, version in enumerate(derived):
        changed = dict.fromkeys(range(number, 9600, 16), number + 2)
        assert dict(version.items()) == model | changed
    del derived, copies, base, version
    gc.collect()
    assert records_in_use()["records"] == records


def hoard(lines: int) -> list[int]:
    """Allocates all free records of a size, so that none is left. Returns them."""
    taken = [allocate(lines)]
    refuse_chunks(True)
    while record := allocate(lines):
        taken.append(record)
    refuse_chunks(False)
    return taken


def put_with(version: WordDict, key: int, value: int, allowed: dict[int, int]) -> bool:
    """Writes a key with only ``allowed`` free records per size. Returns whether they sufficed."""
    hoards = {lines: hoard(lines) for lines in allowed}
    refuse_chunks(True)
    try:
        for lines, count in allowed.items():
            for _ in range(count):
                release(hoards[lines].pop(), lines)
        version.set(key, value)
    except MemoryError:
        return False
    finally:
        refuse_chunks(False)
        for lines, records in hoards.items():
            for record in records:
                release(record, lines)
    return True


def test_without_memory_nothing_changes() -> None:
    model = dict.fromkeys(range(200), 1) | {colliding_key(key): 1 for key in range(20)}
    base = filled(model)
    records = records_in_use()["records"]
    edits = [(3, 2), (4, 0), (1_000, 2), (1_001, 2), (colliding_key(99), 2), (colliding_key(5), 0)]
    refused = 0
    for key, value in edits:
        changed = {k: v for k, v in (model | {key: value}).items() if v}
        for nodes in range(17):  # colliding keys diverge fifteen levels below the root
            for buckets in range(2):
                version = base.copy()
                allowed = dict.fromkeys(BUCKET_SIZES, 20 * buckets) | {2: nodes}
                done = put_with(version, key, value, allowed)
                refused += not done
                assert dict(version.items()) == (changed if done else model)
                del version
                assert records_in_use()["records"] == records
    assert 60 < refused < 6 * 34
    assert dict(base.items()) == model


@settings(max_examples=60, deadline=None)
@given(seeded=st.integers(0, 2**32), keys=st.integers(1, 400), collide=st.booleans())
def test_the_differences_of_two_versions_are_those_of_their_contents(
    seeded: int, keys: int, collide: bool
) -> None:
    rng = random.Random(seeded)

    def edit(version: WordDict, count: int) -> None:
        for _ in range(count):
            number = rng.randrange(keys)
            key = colliding_key(number) if collide else number
            version.set(key, rng.choice((0, 0, 1, 2, LARGEST)))

    base = WordDict()
    edit(base, rng.randrange(2 * keys))
    before, after = base.copy(), base.copy()
    edit(before, rng.randrange(keys))
    edit(after, rng.randrange(keys))
    old, new = dict(before.items()), dict(after.items())
    found = before.differences(after)
    wanted = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    assert sorted(found) == sorted(wanted)
    assert base.differences(base.copy()) == []
