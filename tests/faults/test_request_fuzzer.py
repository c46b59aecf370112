"""Runs the request fuzzer briefly in a separate process, and checks exit status and coverage."""

import os
import random
import subprocess
import sys
from pathlib import Path

from fastevm.rpc.dispatch.registry import METHODS, namespace_of
from fastevm.rpc.transport.access import PUBLIC_NAMESPACES
from tests.faults.request_fuzzer import LEFT_OUT, fault_of, methods, systematic
from tests.faults.request_values import OBJECTS, VALUES, decoder_name, members_of
from tests.shared_data import ROOT

MESSAGES = int(os.environ.get("FASTEVM_REQUESTS", "20000" if os.environ.get("CI") else "4000"))
SECONDS = 600


def test_no_request_ends_the_node_or_crashes_a_handler(tmp_path: Path) -> None:
    seed = random.randrange(2**31)
    last = tmp_path / "last"
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.request_fuzzer", "--messages", str(MESSAGES),
         "--seed", str(seed), "--last", str(last)],
        cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    requests = last.read_bytes().replace(b"\0", b"")[-8000:] if last.exists() else b""
    report = f"seed {seed}: {done.stdout[-4000:]} {done.stderr[-4000:]} {requests!r}"
    assert done.returncode == 0, report


def test_every_public_method_is_asked() -> None:
    public = {name for name in METHODS if namespace_of(name) in PUBLIC_NAMESPACES}
    sockets_only = {"eth_subscribe", "eth_unsubscribe"}
    assert public - set(methods()) - LEFT_OUT - sockets_only == set()


def test_every_parameter_of_a_public_method_has_values() -> None:
    names = {
        decoder_name(param)
        for name in methods()
        if namespace_of(name) in PUBLIC_NAMESPACES
        for param in METHODS[name].params
        if not members_of(param)
    }
    assert names - set(VALUES) == set()


def test_every_triple_of_members_of_a_call_is_tried() -> None:
    members = OBJECTS["decode_call"]
    wanted = len(members) * (len(members) - 1) * (len(members) - 2) // 6
    seen = set()
    for name, params in systematic(random.Random(1)):
        found = params[0] if name == "eth_estimateGas" and params else None
        if isinstance(found, dict) and len(found) == 3 and set(found) <= set(members):
            seen.add(frozenset(found))
    assert len(seen) >= wanted


def test_answers_that_are_wrong_are_faults() -> None:
    body = b"{}"
    assert fault_of(b'{"jsonrpc":"2.0","id":1,"result":1}', 1, body) is None
    assert fault_of(b'{"jsonrpc":"2.0","id":2,"result":1}', 1, body)
    assert fault_of(b'{"jsonrpc":"2.0","id":1}', 1, body)
    assert fault_of(b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', 1, body)
    assert fault_of(b"", 1, body)
    crash = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"method handler crashed"}}'
    assert fault_of(crash, 1, body)
