"""Tests the benchmark of a watch beside a node: slices processed, changes sent, and output."""

from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fastevm.bench import watch_beside_node
from fastevm.bench.watch import ESCROW, KINDS, LENDING, POOL, RANGE_BYTES, TOKEN, person
from fastevm.bench.watch_beside_node import (
    PARTS,
    RANGE,
    TRANSFERS,
    Bench,
    Follower,
    Load,
    Part,
    report,
)
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Node, dev_node
from fastevm.simulate import Watch


class Clock:
    """A fake clock. Only work advances it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


class FakeWatch:
    """A fake watch, whose steps are given.

    ``work``: for each step, its seconds and the bundles that are still stale after it.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.work: list[tuple[float, int]] = []
        # slice number of each call of `advance`; None for `refresh`
        self.calls: list[int | None] = []

    def advance(self, state: Any, *, slice_index: int, budget: float) -> SimpleNamespace:
        return self._step(slice_index)

    def refresh(self, *, budget: float) -> SimpleNamespace:
        return self._step(None)

    def _step(self, called: int | None) -> SimpleNamespace:
        seconds, stale = self.work.pop(0)
        self.calls.append(called)
        self.clock.now += seconds
        return SimpleNamespace(ran=7, stale=stale)


class FollowerStand:
    """A benchmark follower without a thread, with a fake clock, node and watch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        self.watch = FakeWatch(self.clock)
        monkeypatch.setattr(watch_beside_node, "time", self.clock)
        view = SimpleNamespace(state=lambda: None)
        monkeypatch.setattr(
            watch_beside_node, "View", SimpleNamespace(of_pending=lambda node, pending: view)
        )
        self.follower = Follower(cast(Node, None), cast(Watch, self.watch))

    def slice(self, index: int) -> None:
        """Publishes a slice."""
        published = SimpleNamespace(slice_index=index, published=self.clock.now)
        self.follower.wake(cast(Any, published))


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> FollowerStand:
    return FollowerStand(monkeypatch)


def test_a_slice_is_fresh_when_all_its_answers_are(harness: FollowerStand) -> None:
    harness.watch.work = [(0.1, 3), (0.05, 0)]
    harness.slice(0)
    harness.follower.step()
    assert harness.follower.is_behind
    assert harness.follower.steps == []
    harness.follower.step()
    assert harness.follower.steps == pytest.approx([0.15])
    assert harness.follower.ran == [14]
    assert not harness.follower.is_behind
    assert harness.watch.calls == [0, None]


def test_a_late_step_continues_with_the_newest_slice_and_counts_the_skipped(
    harness: FollowerStand,
) -> None:
    harness.watch.work = [(0.1, 5), (0.2, 0)]
    harness.slice(0)
    harness.follower.step()
    for index in (1, 2):
        harness.slice(index)
        harness.clock.now += 0.2
    harness.follower.step()
    assert harness.watch.calls == [0, 2]
    assert harness.follower.steps == pytest.approx([0.7, 0.6, 0.4])


def test_a_slice_that_comes_during_a_step_is_not_fresh_after_it(harness: FollowerStand) -> None:
    follower, watch = harness.follower, harness.watch
    advance = watch.advance

    def interrupted(state: Any, *, slice_index: int, budget: float) -> SimpleNamespace:
        if slice_index == 0:
            harness.slice(1)
        return advance(state, slice_index=slice_index, budget=budget)

    watch.advance = interrupted  # type: ignore[method-assign]
    watch.work = [(0.05, 0), (0.02, 0)]
    harness.slice(0)
    follower.step()
    assert follower.steps == pytest.approx([0.05])
    assert follower.is_behind
    follower.step()
    assert follower.steps == pytest.approx([0.05, 0.07])


def test_slices_of_a_part_without_the_watch_are_neither_run_nor_counted(
    harness: FollowerStand,
) -> None:
    harness.follower.is_paused = True
    harness.slice(0)
    harness.follower.step()
    assert (harness.watch.calls, harness.follower.steps) == ([], [])
    assert not harness.follower.is_behind
    harness.follower.is_paused = False
    harness.watch.work = [(0.01, 0)]
    harness.slice(1)
    harness.follower.step()
    assert harness.follower.steps == pytest.approx([0.01])


def test_a_slice_stores_as_many_values_as_questions_shall_run() -> None:
    count = 40_000
    node = dev_node()
    load = Load(node, count)
    touched = count // 10
    sent = [Transaction.decode(raw) for raw in load.slice(touched)]
    to = Counter(cast(bytes, transaction.to) for transaction in sent)
    swapped = [address for address in POOL if to[address]]
    assert len(swapped) == 1
    stored: Counter[bytes] = Counter()
    for transaction in sent:
        if len(transaction.data) == RANGE_BYTES:
            first, end = (int.from_bytes(transaction.data[at : at + 32], "big") for at in (0, 32))
            assert 0 < end - first <= RANGE
            assert int.from_bytes(person(0), "big") <= first
            assert end <= int.from_bytes(person(count // KINDS), "big")
            stored[cast(bytes, transaction.to)] += end - first
    rest = touched - count // KINDS // len(POOL)
    assert stored == {TOKEN: rest * 0.4, ESCROW: rest * 0.3, LENDING: rest * 0.3}
    assert len(sent) == TRANSFERS + 1 + sum(to[address] for address in (TOKEN, ESCROW, LENDING))
    nonces: defaultdict[bytes | None, list[int]] = defaultdict(list)
    sent += [Transaction.decode(raw) for raw in load.slice(touched)]
    for transaction in sent:
        nonces[transaction.sender].append(transaction.nonce)
    assert len(nonces) == len(node.accounts)
    assert all(each == list(range(len(each))) for each in nonces.values())


class FakeBench:
    """A benchmark with fixed figures. Each part with the watch is ``late`` milliseconds late."""

    def __init__(self, late: float, fresh: float) -> None:
        self.count = 1_000
        self.late, self.fresh = late, fresh
        self.parts: list[tuple[bool, int, int]] = []

    def part(self, figures: Part, touched: int, slices: int, *, watches: bool) -> None:
        self.parts.append((watches, touched, slices))
        figures.lateness += [self.late if watches else 0.5] * slices
        figures.control += [1.0] * slices
        if watches:
            figures.fresh += [self.fresh] * slices
            figures.ran += [touched] * slices


@pytest.mark.parametrize(
    ("late", "fresh", "met", "remark"),
    [(3.0, 15.0, True, ""), (3.0, 25.0, False, ", missed"), (11.0, 15.0, False, "")],
)
def test_a_report_alternates_and_compares_with_the_aims(
    capsys: pytest.CaptureFixture[str], late: float, fresh: float, met: bool, remark: str
) -> None:
    bench = FakeBench(late, fresh)
    assert report(cast(Bench, bench), 0.01, 20, 4 * PARTS) is met
    assert bench.parts == [(True, 10, 8), (False, 10, 8)] * (PARTS // 2)
    printed = capsys.readouterr().out
    assert f"1% touched: 10 runs a slice, fresh after p50 {fresh:.1f} ms" in printed
    assert f"(aim: 20 ms{remark})" in printed
    assert f"with the watch: lateness of slices p50 {late:.1f} ms" in printed
    assert "without it:     lateness of slices p50 0.5 ms" in printed
