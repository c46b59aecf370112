"""Tests the fees of OP-stack chains in receipts, transactions and estimates."""

import json

import pytest

from fastevm.core.execution.op_stack.l1_attributes import BEDROCK_SELECTOR, DEPOSITOR, L1Attributes
from fastevm.core.execution.op_stack.predeploys import L1_BLOCK
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.simulation.values import CallRequest
from fastevm.core.spec.schedule import schedule_for
from fastevm.rpc_types.blocks import block_from_json, block_json
from fastevm.rpc_types.l1_fees import L1FeeMembers
from fastevm.rpc_types.receipts import ReceiptWriter
from fastevm.rpc_types.transactions import mined_transaction_json, transaction_from_json
from tests.op_stack_data import hex_data, input_of, vectors_of

REAL = [vector for vector in vectors_of("l1fee") if "attributes" in vector]
ATTRIBUTES = [Transaction.decode(hex_data(v["raw"])) for v in vectors_of("deposit")]
ISTHMUS = next(t for t in ATTRIBUTES if t.data[:4].hex() == "098999be")
JOVIAN = next(t for t in ATTRIBUTES if t.data[:4].hex() == "3db6be2b")


def receipt(**fields):
    given = {
        "tx_type": 126,
        "status": 1,
        "post_state": None,
        "cumulative_gas_used": 50_000,
        "logs": (),
        "bloom": bytes(256),
        "gas_used": 50_000,
        "effective_gas_price": 0,
        "deposit_nonce": 77,
        "deposit_receipt_version": 1,
    }
    return Receipt(**{**given, **fields})


def attributes_transaction(attributes, selector):
    return Transaction.build(
        type=126,
        source_hash=bytes(32),
        sender=DEPOSITOR,
        to=L1_BLOCK,
        gas_limit=1_000_000,
        data=attributes.calldata(selector),
    )


@pytest.mark.parametrize("vector", REAL, ids=[vector["id"] for vector in REAL])
def test_a_real_transaction_has_its_published_fee(vector):
    first, own = Transaction.decode(hex_data(vector["attributes"])), input_of(vector)
    members = L1FeeMembers((first,), schedule_for(vector["rules"])).of(Transaction.decode(own))
    params = vector["params"]
    assert int(members["l1Fee"], 16) == vector["l1Fee"]
    assert int(members["l1GasUsed"], 16) == vector["l1GasUsed"]
    assert int(members["l1GasPrice"], 16) == params["l1BaseFee"]
    assert int(members["l1BlobBaseFee"], 16) == params["l1BlobBaseFee"]
    assert int(members["l1BaseFeeScalar"], 16) == params["baseFeeScalar"]
    assert int(members["l1BlobBaseFeeScalar"], 16) == params["blobBaseFeeScalar"]
    assert "l1FeeScalar" not in members


def test_before_ecotone_the_scalar_is_a_decimal():
    known = L1Attributes(base_fee=10**9, fee_overhead=188, fee_scalar=684_000)
    first = attributes_transaction(known, BEDROCK_SELECTOR)
    members = L1FeeMembers((first,), schedule_for("regolith")).of(first)
    assert members == {
        "l1GasPrice": "0x3b9aca00",
        "l1FeeScalar": "0.684",
        "l1Fee": "0x0",
        "l1GasUsed": "0x0",
    }


def test_operator_fee_and_footprint_appear_with_their_forks():
    jovian = L1FeeMembers((JOVIAN,), schedule_for("jovian")).of(JOVIAN)
    assert "daFootprintGasScalar" in jovian
    known = L1Attributes(operator_fee_constant=9)
    first = attributes_transaction(known, ISTHMUS.data[:4])
    isthmus = L1FeeMembers((first,), schedule_for("isthmus")).of(first)
    assert isthmus["operatorFeeScalar"] == "0x0"
    assert isthmus["operatorFeeConstant"] == "0x9"
    assert "daFootprintGasScalar" not in isthmus
    none = attributes_transaction(L1Attributes(), ISTHMUS.data[:4])
    assert "operatorFeeScalar" not in L1FeeMembers((none,), schedule_for("isthmus")).of(none)


def test_a_block_without_attributes_tells_nothing():
    members = L1FeeMembers((), schedule_for("karst"))
    assert members.text(JOVIAN) == b""
    assert members.estimate(CallRequest(), 21_000)["l1Fee"] == "0x0"


def test_an_estimate_tells_the_fee_of_a_transaction_with_a_signature():
    members = L1FeeMembers((JOVIAN,), schedule_for("jovian"))
    small = members.estimate(CallRequest(to=bytes(20)), 21_000)
    large = members.estimate(CallRequest(to=bytes(20), data=bytes(range(256)) * 4), 90_000)
    assert int(small["l1Fee"], 16) < int(large["l1Fee"], 16)
    assert small["l1GasUsed"] == hex(1600)


def test_the_receipt_of_a_deposit_is_written_with_its_nonce_and_fees():
    members = L1FeeMembers((JOVIAN,), schedule_for("jovian"))
    text = ReceiptWriter(bytes(32), 5, 6).receipt(
        receipt(blob_gas_used=0), JOVIAN, 0, 0, members.text(JOVIAN)
    )
    found = json.loads(text)
    assert (found["type"], found["depositNonce"], found["depositReceiptVersion"]) == (
        "0x7e",
        "0x4d",
        "0x1",
    )
    assert (found["l1Fee"], found["blobGasUsed"]) == ("0x0", "0x0")
    assert "blobGasPrice" not in found


@pytest.mark.parametrize("transaction", ATTRIBUTES, ids=lambda item: item.hash.hex()[:8])
def test_a_deposit_is_written_and_read(transaction):
    block = Block(Header(number=5, base_fee_per_gas=7), (transaction,))
    found = mined_transaction_json(block, 0, bytes(32), receipt())
    assert (found["nonce"], found["depositReceiptVersion"]) == ("0x4d", "0x1")
    assert (found["gasPrice"], found["v"], found["yParity"], found["mint"]) == ("0x0",) * 4
    assert found["sourceHash"] == "0x" + transaction.source_hash.hex()
    assert ("isSystemTx" in found) == transaction.is_system
    assert "chainId" not in found
    assert "accessList" not in found
    assert transaction_from_json(found) == transaction


def test_a_block_with_deposits_is_written_and_read():
    sealed = Block(Header(number=5, base_fee_per_gas=7), (JOVIAN,))
    found = block_json(sealed, sealed.hash, full=True, receipts=(receipt(),))
    assert found["transactions"][0]["nonce"] == "0x4d"
    assert block_from_json(found).transactions == (JOVIAN,)
