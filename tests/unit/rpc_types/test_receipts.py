"""Tests the JSON text of receipts: members by fork and type, and the outcome in a feed."""

import json
from typing import Any

import pytest

from fastevm.core.execution.types import Log, Receipt, Transaction
from fastevm.rpc_types.receipts import ReceiptWriter

HASH, SENDER, TO = b"\x11" * 32, b"\x22" * 20, b"\x33" * 20
WRITER = ReceiptWriter(HASH, 2**64 - 1, 7)
LOGS = (Log(TO, (b"\x01" * 32, b"\x02" * 32), b"\x03"), Log(SENDER, (), b""))


def receipt(**fields: Any) -> Receipt:
    values: dict[str, Any] = {
        "tx_type": 2, "status": 1, "post_state": None, "cumulative_gas_used": 50_000, "logs": LOGS,
        "bloom": b"\x80" + bytes(255), "gas_used": 29_000, "effective_gas_price": 2**200,
    }  # fmt: skip
    return Receipt(**{**values, **fields})


def transaction(to: bytes | None = TO) -> Transaction:
    return Transaction.build(sender=SENDER, gas_price=1, to=to)


def shown(entry: Receipt, sent: Transaction) -> dict[str, Any]:
    reported: dict[str, Any] = json.loads(WRITER.receipt(entry, sent, 3, 9))
    return reported


def test_a_receipt_has_the_members_of_the_specification() -> None:
    sent = transaction()
    reported = shown(receipt(), sent)
    logs = reported.pop("logs")
    assert reported == {
        "blockHash": "0x" + "11" * 32,
        "blockNumber": "0xffffffffffffffff",
        "contractAddress": None,
        "cumulativeGasUsed": "0xc350",
        "effectiveGasPrice": hex(2**200),
        "from": "0x" + "22" * 20,
        "gasUsed": "0x7148",
        "logsBloom": "0x80" + "00" * 255,
        "status": "0x1",
        "to": "0x" + "33" * 20,
        "transactionHash": "0x" + sent.hash.hex(),
        "transactionIndex": "0x3",
        "type": "0x2",
    }
    assert [log["logIndex"] for log in logs] == ["0x9", "0xa"]
    assert [log["data"] for log in logs] == ["0x03", "0x"]
    assert logs[0]["topics"] == ["0x" + "01" * 32, "0x" + "02" * 32]
    assert {log["transactionIndex"] for log in logs} == {"0x3"}


def test_a_creation_has_no_receiver_and_names_its_contract() -> None:
    reported = shown(receipt(contract_address=TO), transaction(to=None))
    assert (reported["to"], reported["contractAddress"]) == (None, "0x" + "33" * 20)


def test_an_early_receipt_has_a_root_in_place_of_a_status() -> None:
    reported = shown(receipt(status=None, post_state=HASH), transaction())
    assert reported["root"] == "0x" + "11" * 32
    assert "status" not in reported


def test_blobs_have_members_of_their_own() -> None:
    reported = shown(receipt(blob_gas_used=131_072, blob_gas_price=2**70), transaction())
    assert (reported["blobGasUsed"], reported["blobGasPrice"]) == ("0x20000", hex(2**70))


def test_the_outcome_is_part_of_the_receipt() -> None:
    sent = transaction()
    outcome = json.loads(b"{%b}" % WRITER.outcome(receipt(), sent, 3, 9))
    assert outcome.items() <= shown(receipt(), sent).items()
    assert set(outcome) == {
        "contractAddress", "cumulativeGasUsed", "gasUsed", "logs", "logsBloom", "status"
    }  # fmt: skip


def test_a_log_that_left_the_chain_says_so() -> None:
    assert json.loads(WRITER.log(LOGS[0], HASH, 0, 0, True))["removed"] is True


def test_values_that_are_no_receipt_are_refused() -> None:
    with pytest.raises(OverflowError):
        WRITER.receipt(receipt(gas_used=2**64), transaction(), 0, 0)
    with pytest.raises(TypeError):
        WRITER.receipt(receipt(bloom="0x"), transaction(), 0, 0)
