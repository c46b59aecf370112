"""Tests the node's benchmark: the load generator's parser, the page and the aims."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastevm import EVM
from fastevm.bench import cadence, rpc
from fastevm.bench.node import sending, suite
from fastevm.bench.node.content import ANSWER, deployment
from fastevm.bench.node.load import LoadError, Sample, batch_of, http, size_of
from fastevm.bench.report import page
from fastevm.rpc_client.messages import request_body

FIGURES = {"cpu_us": 10.0, "per_second": 1000.0, "p50_us": 20.0, "p99_us": 40.0, "failures": 0}


def found(own: float, other: float) -> dict[str, Any]:
    """Returns a benchmark document with one case in one mode."""
    by_node = {
        "fastevm": FIGURES | {"cpu_us": own},
        "anvil": FIGURES | {"cpu_us": other},
    }
    sent = {
        name: {f"{what}_{unit}": 5.0 for what in ("accepted", "included")
               for unit in ("cpu_us", "per_second")}
        for name in ("fastevm", "anvil")
    }  # fmt: skip
    document: dict[str, Any] = {
        "time": "2026-01-01T00:00:00+00:00",
        "start": {"fastevm": {"version": "v", "seconds": 0.7, "megabytes": 60.0}},
        "rpc": {"storage": {"1 connection": by_node, "batches of 100": by_node}},
        "sending": {"single": sent},
        "logs": {"process": {"none": 0.1}, "http": {"none": by_node}},
        "simulate": {"transfer": {"own": 5.0}, "threads": {"simulation": 1.9}, "empty": 0.4},
        "cadence": {"missed": 0},
    }
    return document | {"aims": suite.start_aims(document["start"]) + rpc.aims(document["rpc"])}


def test_the_size_of_an_answer_is_in_its_head() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\ncontent-type: x\r\n\r\n"
    assert size_of(head + b"some") == len(head) + 12
    for bad in (b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"):
        with pytest.raises(LoadError):
            size_of(bad)


def test_requests_are_whole() -> None:
    body = batch_of([request_body("eth_chainId", []), request_body("eth_blockNumber", [], 2)])
    head, _, rest = http(body).partition(b"\r\n\r\n")
    assert rest == body
    assert f"Content-Length: {len(body)}".encode() in head
    assert [entry["id"] for entry in json.loads(body)] == [1, 2]


def test_a_sample_counts_calls_not_requests() -> None:
    sample = Sample(100, latencies=[0.001, 0.002, 0.009], seconds=0.5, cpu=0.003)
    assert sample.calls == 300
    assert sample.rate == 600
    assert sample.cpu_per_call == pytest.approx(1e-5)
    assert (sample.quantile(0.5), sample.quantile(0.99)) == (0.002, 0.009)


def test_what_is_deployed_has_its_code_and_storage() -> None:
    machine = EVM()
    address = machine.deploy(deployment(ANSWER, {1: 5, 2**255: 7})).created_address
    assert address is not None
    assert machine.code(address) == ANSWER
    assert machine.storage(address, 1) == 5
    assert machine.storage(address, 2**255) == 7


def test_aims_speak_of_cpu_and_ask_more_of_batches() -> None:
    aims = {row["name"]: row["met"] for row in found(own=15.0, other=10.0)["aims"]}
    assert aims == {
        "start to first answer": False,
        "memory at the start": True,
        "storage, 1 connection": True,
        "storage, batches of 100": False,
    }
    assert not sending.aims({"single": found(1, 1)["sending"]["single"]})[1]["met"]


def test_the_page_keeps_what_another_run_found(tmp_path: Path) -> None:
    page.write(tmp_path, node_found=found(15.0, 10.0))
    text = (tmp_path / "index.html").read_text()
    assert "storage, batches of 100" in text
    assert "<svg" in text
    page.write(tmp_path)
    assert (tmp_path / "index.html").read_text() == text


def test_the_table_names_what_is_missed() -> None:
    text = suite.table(found(15.0, 10.0) | {"logs": {"process": {}, "http": {}}})
    assert "2 of 4 aims met" in text


def test_the_cadence_is_held_against_its_aims() -> None:
    spread = {"p50": 1.0, "p99": 9.0, "max": 60.0}
    found = {"missed": 1, "lateness_ms": spread, "visible_ms": spread, "trivial_ms": spread}
    rows = {row["name"]: row["met"] for row in cadence.aims(found)}
    assert rows == {
        "slices missed": False,
        "lateness of slices, p99": True,
        "lateness of slices, largest": False,
        "a transaction visible, p99": True,
        "trivial requests under load, p99": True,
    }
