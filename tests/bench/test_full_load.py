"""Tests the full-load benchmark: memory figures from samples, and reports of failures."""

from types import SimpleNamespace

import pytest

from fastevm.bench.node.full_load import (
    FLAT_BYTES,
    NOISE_BYTES,
    WARM_TRANSACTIONS,
    Growth,
    Moment,
    Stream,
    growth,
    verdict,
)
from fastevm.bench.node.load import LoadError


def moments(each: float, count: int = 64, step: int = 1_000, trimmed: int = 0) -> list[Moment]:
    """Returns samples of memory that grows by ``each`` bytes per transaction.

    ``trimmed``: bytes that are missing in every second sample, as after freeing memory.
    """
    return [
        Moment(
            round(100 * 2**20 + each * n * step) - trimmed * (n % 2), WARM_TRANSACTIONS + n * step
        )
        for n in range(count)
    ]


def test_what_is_kept_of_a_transaction_is_found() -> None:
    found = growth(moments(1_000.0))
    assert found is not None
    assert found.total / found.transactions == pytest.approx(1_000.0)
    assert not found.is_flat
    assert "NOT FLAT: +45.78 MB" in verdict(found)
    assert "+1000.0 bytes for each of 48,000 transactions" in verdict(found)


@pytest.mark.parametrize("trimmed", [0, 64 * 2**20])
def test_freed_memory_that_comes_and_goes_is_no_growth(trimmed: int) -> None:
    found = growth(moments(0.0, trimmed=trimmed))
    assert found is not None
    assert found.is_flat
    assert verdict(found).startswith("flat: +0.00 MB")


def test_the_time_in_which_a_node_fills_does_not_count() -> None:
    early = [Moment(n, n) for n in range(0, WARM_TRANSACTIONS, 1_000)]
    assert growth(early) is None
    assert "too short" in verdict(growth(early))
    assert growth(early + moments(0.0)) == growth(moments(0.0))


@pytest.mark.parametrize(
    ("total", "transactions", "flat"),
    [
        (NOISE_BYTES, 10, True),
        (NOISE_BYTES + 1, 10, False),
        (FLAT_BYTES * 10**6, 10**6, True),
        (FLAT_BYTES * 10**6 + 1, 10**6, False),
        (-(10**9), 10**6, True),
    ],
)
def test_the_limit_is_noise_or_a_few_bytes_each(total: int, transactions: int, flat: bool) -> None:
    assert Growth(total, transactions).is_flat is flat


class Broken:
    """A sender of transactions whose node does not answer."""

    sent = 0

    def __init__(self) -> None:
        self.load, self.node = self, self
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def load_of(self, connections: int) -> "Broken":
        return self

    def transfers(self, count: int, target: bytes) -> list[object]:
        raise LoadError("the server closed a connection")


def test_a_stream_that_breaks_is_a_failure() -> None:
    sending = Broken()
    sending.node = SimpleNamespace(load=sending.load_of)  # type: ignore[assignment]
    stream = Stream(sending)  # type: ignore[arg-type]
    stream.run()
    assert (stream.failures, stream.fault) == (1, "the server closed a connection")
    assert sending.closed == 1, "the connections that would stand idle"
