"""Work that lasts, over real sockets: it ends with its client, and leaves a thread to others."""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.rpc.limits import Limits

from .conftest import recorded_node
from .simulating import A, C, one_block

ENDLESS = one_block(
    {"from": A, "to": C},
    state={C: {"code": "0x5b5f56"}},
    block={"gasLimit": hex(2**62)},
)
LONG = 60.0  # seconds that a simulation may run here
SOON = 3.0


@pytest.fixture
def patient() -> Iterator[ServerThread]:
    """A server that lets a request run as long as it likes."""
    server = ServerThread(
        recorded_node(), limits=Limits(call_gas=0, call_time=LONG, request_time=LONG)
    )
    server.start()
    yield server
    server.stop()


def wait_until(server: ServerThread, jobs: int) -> float:
    """Seconds until so many jobs run."""
    started = time.monotonic()
    while server.server.workers.in_flight != jobs and time.monotonic() - started < SOON:
        time.sleep(0.01)
    assert server.server.workers.in_flight == jobs
    return time.monotonic() - started


def wait_for_rest(server: ServerThread) -> None:
    """Until no thread of the workers runs anything."""
    started = time.monotonic()
    while server.server.workers._running and time.monotonic() - started < SOON:
        time.sleep(0.01)
    assert not server.server.workers._running


def sent(server: ServerThread, method: str, params: list[Any]) -> socket.socket:
    """A connection that has asked something."""
    url = urlsplit(server.url("preconf"))
    call = {"id": 1, "jsonrpc": "2.0", "method": method, "params": params}
    body = json.dumps(call).encode()
    head = f"POST / HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
    client = socket.create_connection((url.hostname, url.port))
    client.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return client


@pytest.mark.parametrize("extra", [{}, {"returnCallTree": False}, {"nobodyKnowsIt": 1}])
def test_a_simulation_ends_with_its_connection(
    patient: ServerThread, extra: dict[str, object]
) -> None:
    with sent(patient, "eth_simulateV1", [ENDLESS | extra, "latest"]):
        wait_until(patient, 1)
        time.sleep(0.1)
        assert patient.server.workers._running
    wait_until(patient, 0)
    wait_for_rest(patient)


def test_calls_that_last_go_to_the_lane_of_simulations(patient: ServerThread) -> None:
    call = {"from": A, "to": C, "gas": hex(2**62)}
    params = [call, "latest", {C: {"code": "0x5b5f56"}}]
    workers = patient.server.workers
    with sent(patient, "eth_call", params):
        wait_until(patient, 1)
        time.sleep(0.2)  # until calls are tried on the loop again
        with sent(patient, "eth_call", params):
            wait_until(patient, 2)
            assert not workers._light
            assert workers._heavy_running == min(workers.heavy_limit, 2)
            assert len(workers._heavy) == max(2 - workers.heavy_limit, 0)
    wait_until(patient, 0)
    wait_for_rest(patient)
