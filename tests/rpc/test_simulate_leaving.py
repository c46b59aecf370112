"""A client that leaves takes its simulation with it: over a real socket."""

import json
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from rpc.limits import Limits

from .conftest import LiveServer, recorded_node
from .simulating import A, C, one_block

ENDLESS = one_block(
    {"from": A, "to": C},
    state={C: {"code": "0x5b5f56"}},
    block={"gasLimit": hex(2**62)},
)
LONG = 60.0  # seconds that a simulation may run here
SOON = 3.0


@pytest.fixture
def patient() -> Iterator[LiveServer]:
    """A server that lets a request run as long as it likes."""
    server = LiveServer(
        recorded_node(), limits=Limits(call_gas=0, call_time=LONG, request_time=LONG)
    )
    server.start()
    yield server
    server.stop()


def wait_until(server: LiveServer, jobs: int) -> float:
    """Seconds until so many jobs run."""
    started = time.monotonic()
    while server.server.workers.in_flight != jobs and time.monotonic() - started < SOON:
        time.sleep(0.01)
    assert server.server.workers.in_flight == jobs
    return time.monotonic() - started


def wait_for_rest(server: LiveServer) -> None:
    """Until no thread of the workers runs anything."""
    started = time.monotonic()
    while server.server.workers._running and time.monotonic() - started < SOON:
        time.sleep(0.01)
    assert not server.server.workers._running


@pytest.mark.parametrize("extra", [{}, {"returnCallTree": False}, {"nobodyKnowsIt": 1}])
def test_a_simulation_ends_with_its_connection(
    patient: LiveServer, extra: dict[str, object]
) -> None:
    url = urlsplit(patient.url("preconf"))
    call = {"id": 1, "jsonrpc": "2.0", "method": "eth_simulateV1"}
    body = json.dumps(call | {"params": [ENDLESS | extra, "latest"]}).encode()
    head = f"POST / HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((url.hostname, url.port)) as client:
        client.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_until(patient, 1)
        time.sleep(0.1)
        assert patient.server.workers._running
    wait_until(patient, 0)
    wait_for_rest(patient)
