"""Tests that traces of pre-confirmed transactions do not change when their block is sealed."""

from eth_utils import to_checksum_address

from .test_dev_node import LOGGER_INIT, Client, client

__all__ = ["client"]

WITH_LOGS = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}


def test_a_pre_confirmed_transaction_has_a_trace(client: Client) -> None:
    created = client.receipt(client.send(data=LOGGER_INIT))
    tx_hash = client.send(to=to_checksum_address(created["contractAddress"]))
    receipt = client.receipt(tx_hash)
    early = client.result("debug_traceTransaction", tx_hash, WITH_LOGS)
    assert early["gasUsed"] == receipt["gasUsed"]
    assert [log["index"] for log in early["logs"]] == [receipt["logs"][0]["logIndex"]]
    client.sealed(tx_hash)
    assert client.result("debug_traceTransaction", tx_hash, WITH_LOGS) == early
