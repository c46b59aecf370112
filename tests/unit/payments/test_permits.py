"""Tests the permit collector, whose address depends only on the operator and the recipient."""

import pytest
from eth_utils.crypto import keccak

from fastevm.payments import Authorization, InvalidTerms, Kind, Order, Permit, Signature, Terms
from fastevm.payments.contracts import artifact
from fastevm.payments.permits import CREATE2_PROXY, collector_of, deployment_of, permit_call

from .test_authorization import PAYER, SEPOLIA, SHOP

TERMS = Terms(payer=PAYER, recipient=SHOP, value=10, valid_after=0, valid_before=1_000)
SIGNATURE = Signature(b"\x01" * 32 + b"\x02" * 32 + b"\x1b")


def test_the_address_is_that_of_create2_and_differs_by_operator_and_recipient() -> None:
    to, data = deployment_of(PAYER, SHOP)
    assert to == CREATE2_PROXY and data[:32] == bytes(32)
    digest = keccak(b"\xff" + bytes.fromhex(to[2:]) + data[:32] + keccak(data[32:]))
    assert collector_of(PAYER, SHOP).lower() == "0x" + digest[12:].hex()
    others = {collector_of(PAYER, SHOP), collector_of(SHOP, PAYER), collector_of(SHOP, SHOP)}
    assert len(others) == 3


def test_a_capture_names_token_payer_value_deadline_and_memo() -> None:
    spender = collector_of(SHOP, SHOP)
    made = Authorization(SEPOLIA, TERMS, Kind.PERMIT, Permit(spender, 4))
    to, data = permit_call(Order(id="order-1", authorization=made), SIGNATURE)
    assert to == spender
    expected = artifact("PermitCollector").encode(
        "capture", SEPOLIA.token, PAYER, 10, 999, TERMS.nonce, 27, b"\x01" * 32, b"\x02" * 32
    )
    assert data == expected


def test_other_authorizations_and_long_signatures_are_refused() -> None:
    with pytest.raises(InvalidTerms, match="expected a permit"):
        permit_call(Order(id="order-1", authorization=Authorization(SEPOLIA, TERMS)), SIGNATURE)
    made = Authorization(SEPOLIA, TERMS, Kind.PERMIT, Permit(SHOP, 0))
    with pytest.raises(InvalidTerms, match="66 bytes"):
        permit_call(Order(id="order-1", authorization=made), Signature(bytes(66)))
