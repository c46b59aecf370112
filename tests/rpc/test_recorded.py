"""Tests that every recorded request gets the recorded answer, including error messages."""

import io
import json
import time

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.conformance.rpc import run_directory
from fastevm.rpc_client.messages import request_body

from .conftest import RECORDED

TESTS = RECORDED / "tests"
METHODS = sorted(folder.name for folder in TESTS.iterdir() if folder.is_dir())


@pytest.mark.parametrize("method", METHODS)
def test_recorded_answers(live: ServerThread, method: str) -> None:
    # All methods share the node's state, so they run in alphabetical order.
    output = io.StringIO()
    report = run_directory(TESTS, live.url("geth"), methods=[method], output=output)
    assert report.tally.failed == 0, output.getvalue()
    assert report.tally.passed > 0
    assert report.messages == []


def test_an_answer_of_twenty_megabytes_comes_in_time(live: ServerThread) -> None:
    body = request_body("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "0x3"}])
    started = time.process_time()
    with live.client("geth") as client:
        raw = client.send(body)
    assert time.process_time() - started < 5
    assert len(raw) > 20_000_000
    large = [log for log in json.loads(raw)["result"] if len(log["data"]) == 2 + 2 * 190_000]
    assert len(large) == 56
