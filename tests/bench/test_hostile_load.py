"""Tests the benchmark of expensive requests: it sends all of them, and reports the aims."""

import json

import pytest

from fastevm.bench.cadence import spread
from fastevm.bench.node.content import Content
from fastevm.bench.node.hostile_load import AIMS, HostileLoad, aims, hostile_bodies


def test_the_four_kinds_of_long_answers() -> None:
    content = Content("0x01", "0x02", "0x03", "0x1", "0x04", ())
    asked = {name: json.loads(body)["method"] for name, body in hostile_bodies(content).items()}
    assert list(asked) == list(asked.values())
    assert list(asked) == ["debug_traceCall", "eth_simulateV1", "eth_getLogs", "txpool_content"]


def test_the_spread_is_in_milliseconds() -> None:
    assert spread([0.001] * 98 + [0.05, 0.2], 2) == {"p50": 1.0, "p99": 200.0, "max": 200.0}


@pytest.mark.parametrize("late", [9.0, 11.0])
def test_an_aim_is_met_or_missed(late: float) -> None:
    found = {name: {"p99": 1.0} for _, name, _, _ in AIMS} | {"lateness": {"p99": late}}
    assert [row["met"] for row in aims(found)] == [True, True, late < 10]


def test_a_short_run_asks_and_reports() -> None:
    load = HostileLoad()
    try:
        found = load.run(1.0, 4)
        assert load.node.ask("txpool_status")["queued"] != "0x0"
        counts = load.node.metrics()
    finally:
        load.close()
    assert all(row["value"] >= 0 for row in aims(found))
    assert 0 < found["eth_blockNumber"]["p50"] <= found["eth_blockNumber"]["max"]
    for method in ("debug_traceCall", "eth_getLogs", "txpool_content"):
        assert any(method in name for name in counts), method
