"""Tests that a fork learns the rate limit of an endpoint from its rejections."""

from collections.abc import Iterator

import pytest

from fastevm.fork import rate_limit
from fastevm.fork.rate_limit import LIMITED_SECONDS, MIN_RATE, SLOWER, TokenBucket

RATE = 100.0


class Clock:
    """A clock. Only the test advances it."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(rate_limit, "monotonic", made)
    yield made


def limited(bucket: TokenBucket, clock: Clock, units: float = 1_000) -> None:
    bucket.limited(units, clock.now)
    clock.now += 0.001


def test_nothing_is_delayed_before_a_refusal(clock: Clock) -> None:
    bucket = TokenBucket(RATE)
    assert [bucket.take(10 * RATE) for _ in range(5)] == [0.0] * 5


def test_after_a_refusal_units_left_over_are_spent_first(clock: Clock) -> None:
    """Rejected requests cost nothing, so 40 of 100 units were used, and 60 are left."""
    bucket = TokenBucket(RATE)
    bucket.answered(40, clock.now)
    limited(bucket, clock)
    assert bucket.take(60) == 0.0
    assert bucket.take(50) == pytest.approx(0.5, abs=0.01)
    clock.now += 0.5
    assert bucket.take(50) == 0.0


def test_a_refusal_of_what_should_have_passed_empties_the_bucket(clock: Clock) -> None:
    bucket = TokenBucket(RATE)
    limited(bucket, clock, 20)
    assert bucket.take(50) == pytest.approx(0.5, abs=0.01)


def test_a_request_above_the_capacity_waits_for_a_full_bucket(clock: Clock) -> None:
    bucket = TokenBucket(RATE)
    limited(bucket, clock, 20)
    assert bucket.take(5 * RATE) == pytest.approx(1.0, abs=0.01)
    clock.now += 1.0
    assert bucket.take(5 * RATE) == 0.0
    assert bucket.take(10) > 1.0, "it is paid for afterwards"


def test_refusals_of_throttled_requests_decrease_the_rate_until_the_throttling_ends(
    clock: Clock,
) -> None:
    bucket = TokenBucket(RATE)
    first = clock.now
    limited(bucket, clock)
    bucket.limited(1_000, first)
    assert bucket.rate == RATE, "it was sent before the throttling began"
    together = clock.now
    bucket.limited(10, together)
    clock.now += 0.001
    bucket.limited(10, together)
    assert bucket.rate == RATE * SLOWER, "both were sent at the first rate"
    for _ in range(20):
        limited(bucket, clock, 10)
    assert bucket.rate == MIN_RATE
    clock.now += LIMITED_SECONDS + 1
    assert bucket.take(10 * RATE) == 0.0
    assert bucket.rate == RATE


def test_rate_zero_never_throttles(clock: Clock) -> None:
    bucket = TokenBucket(0)
    limited(bucket, clock)
    assert bucket.take(1_000) == 0.0
