"""Tests the block time that `Chain` derives from its polls, and the pauses between polls."""

from typing import cast

import pytest

from fastevm.payments.chain import (
    LONGEST_BLOCK_SECONDS,
    PASS_SECONDS,
    USUAL_BLOCK_SECONDS,
    Chain,
    Head,
)
from fastevm.payments.node import NodeClient
from fastevm.payments.policy import Policy


@pytest.fixture
def chain() -> Chain:
    return Chain(cast(NodeClient, None), 1, Policy(poll=0.2))


def looks(chain: Chain, block_seconds: float, seconds: float, *, start: float = 0.0) -> int:
    """Polls at the intervals of `Chain.pause` for ``seconds``. Returns the number of polls."""
    now, count = start, 0
    while now < start + seconds:
        number = int(now // block_seconds)
        chain.look(Head(number, f"0x{number:x}", int(now)), now)
        now += chain.pause()
        count += 1
    return count


def test_a_head_that_stands_still_is_looked_at_less_and_less_often(chain: Chain) -> None:
    chain.block_seconds = 1.0
    assert looks(chain, 12.0, 12.0) <= 12
    assert chain.block_seconds == pytest.approx(12.0, abs=6.0)
    assert looks(chain, 12.0, 36.0, start=12.0) <= 12
    assert chain.block_seconds == pytest.approx(12.0, abs=6.0)


def test_several_blocks_between_two_looks_shorten_the_time(chain: Chain) -> None:
    chain.block_seconds = 12.0
    looks(chain, 2.0, 60.0)
    assert chain.block_seconds == pytest.approx(2.0, abs=1.0)


def test_a_chain_that_stops_is_looked_at_once_in_half_the_longest_block(chain: Chain) -> None:
    looks(chain, 10_000.0, 9_000.0)
    assert chain.block_seconds == LONGEST_BLOCK_SECONDS


def test_looks_with_nothing_on_its_way_say_nothing_of_the_time(chain: Chain) -> None:
    for index in range(100):
        chain.look(Head(7, "0x7", 0), index * 0.5)
    assert chain.block_seconds == USUAL_BLOCK_SECONDS


def test_looks_far_apart_say_nothing_of_the_time(chain: Chain) -> None:
    apart = 2 * chain.pause() + PASS_SECONDS + 0.1
    for index in range(10):
        chain.look(Head(7, "0x7", 0), index * apart)
        chain.pause()
    chain.look(Head(17, "0x11", 0), 10 * apart)
    assert chain.block_seconds == USUAL_BLOCK_SECONDS
