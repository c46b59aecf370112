"""Tests, with small sizes, the measurements that are not defined by a file of cases."""

import pytest

from fastevm.bench.engines import call_overhead, state_growth, token_block


def test_a_call_from_python_is_measured_in_microseconds():
    found = call_overhead.measure()
    assert call_overhead.LIMITS.keys() < found.keys()
    assert all(0 < value < 10_000 for value in found.values())


def test_growth_reads_and_writes_the_slots_of_a_state():
    found = state_growth.measure_size(256)
    assert found["slots"] == 256
    assert found["cold_read_ns"] > 0 and found["root_ns_per_node"] > 0


@pytest.mark.parametrize(("slots", "touched", "nodes"), [(2, 1, 2), (16, 1, 2), (10**6, 1, 6)])
def test_nodes_touched_by_one_leaf_are_its_path(slots, touched, nodes):
    assert state_growth.nodes_touched(slots, touched) == pytest.approx(nodes, abs=0.01)


def test_a_block_of_transfers_gives_its_own_roots():
    found = token_block.measure(transfers=5)
    assert found["gas"] > 5 * 30_000
    assert found["Mgas per second, senders known"] > 0


def test_calls_alone_are_given_in_gas_per_time_for_each_engine():
    found = {"gas": 60_000, "transfers": 2}
    times = {"erc20/transfer": {"fastevm": 2.0, "py-evm": 300.0}}
    assert token_block.calls_alone(found, times) == {
        "Mgas per second of the calls alone, fastevm": 15_000.0,
        "Mgas per second of the calls alone, py-evm": 100.0,
    }
    assert token_block.calls_alone(found, {}) == {}
