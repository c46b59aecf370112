"""Tests that long work stops when its client disconnects, and that its thread is free again."""

import time

import pytest

from fastevm.bench.node.launch import ServerThread, wait_for
from tests.max_wait import MAX_WAIT

from .simulating import ENDLESS, A, C, sent, wait_for_rest, wait_until


@pytest.mark.parametrize("extra", [{}, {"returnCallTree": False}, {"nobodyKnowsIt": 1}])
def test_a_simulation_ends_with_its_connection(
    unhurried: ServerThread, extra: dict[str, object]
) -> None:
    with sent(unhurried, "eth_simulateV1", [ENDLESS | extra, "latest"]):
        wait_until(unhurried, 1)
        workers = unhurried.server.workers
        wait_for(lambda: workers.long.running, MAX_WAIT, "it is never taken for long")
    wait_until(unhurried, 0)
    wait_for_rest(unhurried)


def test_calls_that_last_go_to_the_lane_of_simulations(unhurried: ServerThread) -> None:
    call = {"from": A, "to": C, "gas": hex(2**62)}
    params = [call, "latest", {C: {"code": "0x5b5f56"}}]
    workers = unhurried.server.workers
    with sent(unhurried, "eth_call", params):
        wait_until(unhurried, 1)
        time.sleep(0.2)  # after this time the loop again tries calls itself
        with sent(unhurried, "eth_call", params):
            wait_until(unhurried, 2)
            limit = workers.long.client_limit
            assert limit is not None
            while workers.long.running + workers.long.waiting != 2:
                time.sleep(0.01)  # gives both jobs time to become long jobs
            assert workers.long.running == min(limit, 2)
            assert not workers.short.running
    wait_until(unhurried, 0)
    wait_for_rest(unhurried)
