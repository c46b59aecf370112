"""Tests methods that send a transaction and wait for its receipt (EIP-7966)."""

from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Mining, dev_node

from .block_names import SENDER, ask, result
from .test_forked_node import COUNTER, accounts, counting


@pytest.fixture(params=["preconf", "geth"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(dev_node(mining=Mining.INSTANT)) as server:
        yield server


def test_a_nonce_behind_a_gap_is_not_pooled(server: ServerThread, dialect: str) -> None:
    with server.client(dialect) as client:
        sent = hex_bytes(counting(accounts()[0], 0, to=COUNTER))
        assert result(client, "eth_sendRawTransactionSync", sent)["status"] == "0x1"
        early = hex_bytes(counting(accounts()[0], 3))
        wanted = {"code": 6, "message": "nonce gap: next nonce 1, tx nonce 3", "data": "0x1"}
        assert ask(client, "eth_sendRawTransactionSync", early, 50)["error"] == wanted
        fields = {"from": SENDER, "to": SENDER, "nonce": "0x3"}
        assert ask(client, "eth_sendTransactionSync", fields, 50)["error"] == wanted
        assert result(client, "txpool_status") == {"pending": "0x0", "queued": "0x0"}
        # eth_sendRawTransaction queues a transaction with a nonce gap
        result(client, "eth_sendRawTransaction", early)
        assert result(client, "txpool_status") == {"pending": "0x0", "queued": "0x1"}


def test_what_waits_in_the_pool_counts(dialect: str) -> None:
    with ServerThread(dev_node(mining=Mining.MANUAL)) as server, server.client(dialect) as client:
        result(client, "eth_sendRawTransaction", hex_bytes(counting(accounts()[0], 0)))
        error = ask(client, "eth_sendRawTransactionSync", hex_bytes(counting(accounts()[0], 1)), 1)
        assert error["error"]["code"] == 4
        assert result(client, "txpool_status") == {"pending": "0x2", "queued": "0x0"}
