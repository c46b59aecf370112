"""Tests that every input gets a JSON-RPC answer and crashes no handler."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastevm import simulate
from fastevm.node import genesis_node
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.dispatch.dispatcher import METHODS
from fastevm.rpc.limits import Limits

from .conftest import Caller

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(
        [
            "0x",
            "0x0",
            "0x1",
            "latest",
            "pending",
            "earliest",
            "0x" + "00" * 20,
            "0x" + "00" * 32,
            "0x" + "ff" * 32,
            "0x7fffffffffffffff",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "fromBlock",
                    "toBlock",
                    "blockHash",
                    "address",
                    "topics",
                    "to",
                    "from",
                    "data",
                    "gas",
                    "nonce",
                    "value",
                    "code",
                    "blockStateCalls",
                    "calls",
                    "stateOverrides",
                    "blockOverrides",
                    "blockNumber",
                    "balance",
                    "state",
                    "accessList",
                    "authorizationList",
                    "storageKeys",
                    "0x1111111111111111111111111111111111111111",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)

GENESIS = {"config": {"chainId": 1, "terminalTotalDifficulty": 0, "shanghaiTime": 0}, "alloc": {}}


class Probe:
    """A caller with a separate loop, for tests that Hypothesis repeats."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        node: Any = genesis_node(GENESIS)
        simulator: Any = simulate
        self.caller = Caller(node, DIALECTS["geth"], Limits(), simulator)

    def answer(self, body: bytes) -> Any:
        raw = self.loop.run_until_complete(self.caller.dispatcher.answer(body))
        return json.loads(raw) if raw else None

    def close(self) -> None:
        self.caller.workers.close()
        self.loop.close()


@pytest.fixture(scope="module")
def probe() -> Iterator[Probe]:
    probe = Probe()
    yield probe
    probe.close()


def check(answer: Any) -> None:
    """Validates an answer object against JSON-RPC 2.0, section 5."""
    assert answer["jsonrpc"] == "2.0"
    assert ("result" in answer) != ("error" in answer)
    assert set(answer) <= {"jsonrpc", "id", "result", "error"}
    if "error" in answer:
        error = answer["error"]
        assert isinstance(error["code"], int)
        assert isinstance(error["message"], str)
        assert error["message"] != "method handler crashed"


@pytest.mark.parametrize("method", sorted(METHODS))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(params=st.lists(JSON, max_size=4))
def test_any_params_of_any_method_get_an_answer(
    probe: Probe, method: str, params: list[Any]
) -> None:
    request = {"jsonrpc": "2.0", "id": 5, "method": method, "params": params}
    answer = probe.answer(json.dumps(request).encode())
    check(answer)
    assert answer["id"] == 5


@settings(max_examples=300)
@given(body=JSON)
def test_any_json_gets_an_answer(probe: Probe, body: Any) -> None:
    answer = probe.answer(json.dumps(body).encode())
    for entry in answer if isinstance(answer, list) else [answer]:
        check(entry)


@settings(max_examples=300)
@given(body=st.binary(max_size=200))
def test_any_bytes_get_an_answer(probe: Probe, body: bytes) -> None:
    answer = probe.answer(body)
    for item in answer if isinstance(answer, list) else [answer]:
        check(item)


@settings(max_examples=200)
@given(
    members=st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "extra"]),
        JSON | st.just("2.0") | st.sampled_from(["eth_chainId", "eth_getLogs", "eth_getProof"]),
    )
)
def test_any_request_object_gets_an_answer_or_is_a_notification(
    probe: Probe, members: dict[str, Any]
) -> None:
    answer = probe.answer(json.dumps(members).encode())
    if answer is None:
        assert "id" not in members
    else:
        check(answer)
