"""Tests the error texts that only a development node has."""

import pytest

from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.errors import RpcError, wire_error

GETH = DIALECTS["geth"]
DEV = GETH.of_development()
ODD = "json: cannot unmarshal hex string of odd length into Go {} of type hexutil.Bytes"
FIELD = ODD.format("struct field TransactionArgs.data")
STATE = "the state of block 3 (0x11) is no longer kept"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (FIELD, "data: odd number of hex digits"),
        (ODD.format("value"), "value: odd number of hex digits"),
        (STATE, f"{STATE}; --preserve-historical-states keeps it in the file of --state"),
        ("another", "another"),
    ],
)
def test_a_development_node_says_what_to_do(message: str, words: str) -> None:
    error = RpcError("server_error", message)
    assert wire_error(error, DEV)["message"] == words
    assert wire_error(error, GETH)["message"] == message


def test_a_block_above_the_head_is_named_by_a_development_node() -> None:
    error = RpcError("above_head", head=1, number=2457)
    message = "BlockOutOfRangeError: block height is 1 but requested was 2457"
    assert wire_error(error, DEV) == {"code": -32602, "message": message}
    assert wire_error(error, GETH) == {"code": -32000, "message": "header not found"}
