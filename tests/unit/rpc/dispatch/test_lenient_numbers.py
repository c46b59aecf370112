"""Tests quantities such as 5, "17" and "0x05", which only a development node accepts."""

from typing import Any

import pytest

from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.dispatch.lenient_numbers import MAX_DEPTH, decoded, strict
from fastevm.rpc_types.quantity import DecodeError, decode_uint64
from tests.unit.rpc.conftest import MakeCaller
from tests.unit.rpc.fakes import FakeNode, chain_of

A, B = "0x" + "aa" * 20, "0x" + "bb" * 20
DEV = DIALECTS["geth"].of_development()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, "0x5"),
        ("17", "0x11"),
        ("0x0005", "0x5"),
        ("0x0", "0x0"),
        ("0x00", "0x0"),
        ({"nonce": 7, "value": "10", "data": "10", "gas": "0x01"},
         {"nonce": "0x7", "value": "0xa", "data": "10", "gas": "0x1"}),
        ([{"calls": [{"value": 1}]}, "0x01", 3], [{"calls": [{"value": "0x1"}]}, "0x01", 3]),
        ({A: {"balance": 1, "stateDiff": {"0x01": 3}}},
         {A: {"balance": "0x1", "stateDiff": {"0x01": 3}}}),
    ],
)  # fmt: skip
def test_quantities_get_their_strict_form(given: Any, expected: Any) -> None:
    assert strict(given) == expected


@pytest.mark.parametrize(
    "given", [True, None, -1, 1.5, "", "x", "0x", "latest", "9" * 81, {"nonce": True}, "²"]
)
def test_what_is_no_quantity_stays(given: Any) -> None:
    assert strict(given) == given


def test_only_so_much_is_looked_through() -> None:
    given: Any = {"value": 1}
    for _ in range(MAX_DEPTH + 1):
        given = [given]
    assert strict(given) == given
    assert strict(given[0]) != given[0]


def test_the_strict_form_decides_and_the_first_fault_is_reported() -> None:
    assert decoded(decode_uint64, "5", DEV) == 5
    for dialect, value, words in (
        (DIALECTS["geth"], "5", "without 0x prefix"),
        (DEV, True, "non-string"),
        (DEV, 2**64, "non-string"),
    ):
        with pytest.raises(DecodeError, match=words):
            decoded(decode_uint64, value, dialect)


REQUESTS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("eth_call", ({"from": A, "to": B, "value": 0, "nonce": 0, "gas": 100_000}, "latest")),
    ("eth_estimateGas", ({"from": A, "to": B, "value": "0", "gasPrice": 0},)),
    ("eth_getBlockByNumber", (1, False)),
    ("eth_getStorageAt", (A, 0, "latest")),
    ("eth_getTransactionByBlockNumberAndIndex", ("0x1", 0)),
    ("eth_getLogs", ({"fromBlock": 0, "toBlock": "1"},)),
)


@pytest.mark.parametrize(("method", "params"), REQUESTS, ids=[name for name, _ in REQUESTS])
async def test_methods_take_them_on_a_development_node_alone(
    make_caller: MakeCaller, method: str, params: tuple[Any, ...]
) -> None:
    node = FakeNode(chain_of(2))
    answer = await make_caller(node, dialect="geth", develops=True).ask(method, *params)
    assert answer.get("error", {}).get("code") != -32602, answer
    code, _ = await make_caller(node, dialect="geth").error(method, *params)
    assert code == -32602
