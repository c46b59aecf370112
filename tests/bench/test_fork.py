"""Tests that the benchmark of forks makes the same calls on every engine and reports medians."""

import json
from pathlib import Path

import pytest

from fastevm.bench import fork
from fastevm.bench.fork import Figures
from fastevm.bench.node.load import LoadError
from fastevm.bench.remote import market, market_nodes, sides


@pytest.fixture
def own_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides anvil and the other peers, so that only a fastevm node is forked."""

    def missing(*_: object) -> None:
        raise LoadError("it is not here")

    monkeypatch.setattr(market_nodes, "start_anvil", missing)
    monkeypatch.setattr(sides, "anvil_binary", missing)
    monkeypatch.setattr(
        sides, "PEER_KINDS", [sides.PEER_KINDS[0].__class__("pyrevm", "", "", False)]
    )
    monkeypatch.setattr(market_nodes, "BUSY_TRANSACTIONS", 20)


def test_it_measures_without_peers(own_only: None, tmp_path: Path) -> None:
    said: list[str] = []
    found = fork.measure(said.append, latencies=[0], rounds=1, quick=True)
    assert any("anvil is left out" in line for line in said)
    asked = {(row["question"], row["state"], row["side"]) for row in found["rows"]}
    for question in ("balanceOf", "multicall", "swap of 5 pools", "50 bundles"):
        assert {(question, state, "fastevm") for state in ("cold", "warm", "disk")} <= asked
        assert (question, "warm", "local") in asked
    assert ("block of 200", "cold", "fastevm") in asked
    for row in found["rows"]:
        if row["side"] == "local" or row["state"] == "warm":
            assert row["requests"] == 0
    assert json.loads(json.dumps(found)) == found
    assert "multicall" in fork.table(found)


def test_ratios_are_against_ours() -> None:
    found = {
        (50, "multicall", "cold", "fastevm"): Figures([0.1, 0.2, 0.3]),
        (50, "multicall", "cold", "anvil"): Figures([4.0]),
    }
    (row,) = fork.ratios(found)
    assert (row["side"], row["times_ours"]) == ("anvil", 20.0)


def test_the_swap_pays_what_the_formula_says() -> None:
    local = sides.Local(0)
    local.open("", 0)
    _, (output,) = local.run([[market.swap()]])
    assert int.from_bytes(output, "big") == market.expected_swap()


def test_a_bundle_ends_where_it_began() -> None:
    local = sides.Local(0)
    local.open("", 0)
    once = local.run([market.bundle(3)])[1]
    assert local.run([market.bundle(3)] * 2)[1] == once * 2
