"""Tests payments with a hold in the escrow: every check, and the reason of each rejection."""

import time
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from fastevm.core.primitives.replace import replace
from fastevm.payments.escrow import V1_1, PaymentInfo, held
from fastevm.payments.x402 import Facilitator, Paywall, Sale, payment_middleware
from fastevm.payments.x402.auth_capture import AuthCapture, dated, dated_as

from .street import CHAIN_ID, PRICE, Served, Street, read_payment

ZERO = "0x" + "00" * 20
STRANGER = "0x000000000000000000000000000000000000dEaD"


def offered(town: Street, operator: str, at: int | None = None, **changes: Any) -> Any:
    return dated(town.hold(operator, **changes), at or int(time.time()))


async def test_a_hold_is_taken_once(town: Street) -> None:
    settler = town.settler()
    offer = offered(town, settler.account)
    payment = read_payment(offer, town.buyer().payload(offer))
    async with Facilitator([settler], [AuthCapture()]) as facilitator:
        kinds = {kind["scheme"]: kind for kind in facilitator.supported()["kinds"]}
        assert kinds["auth-capture"]["extra"] == {"captureAuthorizer": settler.account}
        assert (await facilitator.verify(payment, offer)).valid
        first = await facilitator.settle(payment, offer, "mine")
        again = await facilitator.settle(payment, offer, "mine")
        assert first.success and again.success and again.transaction == first.transaction
        verified = await facilitator.verify(payment, offer)
        assert verified.reason == "invalid_auth_capture_evm_payment_already_collected"
    (order,) = settler.store.orders()
    key = PaymentInfo.from_json(order.annex).hash(CHAIN_ID, V1_1.escrow)
    assert await held(town.client, V1_1.escrow, key) == (True, PRICE, 0)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another operator": ({"captureAuthorizer": STRANGER}, {}, "operator_not_admitted"),
    "captured by the handler": ({"captureMode": "sync"}, {}, "missing_receiver_authorizer"),
    "another flow": ({"paymentFlow": "authorization"}, {}, "unsupported_payment_flow"),
    "another escrow": ({"authCaptureEscrow": STRANGER}, {}, "extra"),
    "a policy": ({"policy": STRANGER}, {}, "policy"),
    "relayed captures": ({"receiverAuthorizer": STRANGER}, {}, "lifecycle_not_relayed"),
    "Permit2": ({"assetTransferMethod": "permit2"}, {}, "unsupported_asset_transfer_method"),
    "fees upside down": ({"minFeeBps": 5}, {}, "extra"),
    "refunds end first": ({"refundDeadlineSeconds": 60}, {}, "deadline_ordering"),
    "captures end too early": ({"captureDeadlineSeconds": 100}, {}, "deadline_ordering"),
    "another salt": ({}, {"salt": "0x" + "11" * 32}, "nonce_mismatch"),
    "another signature": ({}, {"signature": "0x" + "11" * 65}, "signature"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_wrong_is_named(town: Street, name: str) -> None:
    changes, payload, word = REFUSED[name]
    settler = town.settler()
    at = int(time.time())
    good = offered(town, settler.account, at)
    made = town.buyer().payload(good)
    offer = replace(offered(town, settler.account, at, extra=changes), chain_id=CHAIN_ID)
    async with Facilitator([settler], [AuthCapture()]) as facilitator:
        answer = await facilitator.verify(read_payment(offer, {**made, **payload}), offer)
    assert answer.reason == "invalid_auth_capture_evm_" + word, answer


async def test_deadlines_count_from_the_request(town: Street) -> None:
    """The payer returns deadlines that it received some seconds before."""
    settler = town.settler()
    async with Facilitator([settler], [AuthCapture()]) as facilitator:
        wall = Paywall(facilitator, {"GET /room": Sale([town.hold(settler.account)])})

        async def room(request: web.Request) -> web.Response:
            return web.json_response({"room": 7})

        app = web.Application(middlewares=[payment_middleware(wall)])
        app.router.add_get("/room", room)
        async with Served(app) as served, aiohttp.ClientSession() as session:
            answer = await town.buyer().get(session, served.url + "/room")
    assert answer.status == 200, answer


async def test_a_facilitator_sends_nothing_to_a_contract_that_does_not_exist(town: Street) -> None:
    settler = town.settler()
    facilitator = Facilitator([settler], [AuthCapture()])
    await town.client.call("anvil_setCode", V1_1.escrow, "0x")
    offer = offered(town, settler.account)
    payment = town.payment(offer)
    for answer in (
        await facilitator.verify(payment, offer),
        await facilitator.settle(payment, offer),
    ):
        assert answer.reason == "invalid_auth_capture_evm_simulation_failed"
        assert answer.message == f"there is no contract at {V1_1.escrow} on chain {CHAIN_ID}"
    assert settler.store.orders() == []


def test_deadlines_of_one_s_own_are_not_taken() -> None:
    from fastevm.payments.x402 import Requirements

    offer = Requirements(
        scheme="auth-capture", chain_id=CHAIN_ID, asset=STRANGER, pay_to=STRANGER, amount=1,
        extra={"captureDeadlineSeconds": 100, "refundDeadlineSeconds": 200},
    )  # fmt: skip
    given = dated(offer, 1_000)
    # Nothing checks the payload here, so its values are arbitrary.
    signed = {"from": STRANGER, "to": STRANGER, "value": "1", "validAfter": "0"}
    signed |= {"validBefore": "1050", "nonce": "0x" + "01" * 32}
    payload = {"signature": "0x" + "00" * 65, "authorization": signed}
    payment = read_payment(given, payload)
    assert payment.chooses(dated_as(offer, payment, 1_050))
    forged = replace(given, extra={**given.extra, "captureDeadline": 9_999})
    payment = read_payment(forged, payload)
    assert not payment.chooses(dated_as(offer, payment, 1_050))
    late = read_payment(given, payload)
    assert not late.chooses(dated_as(offer, late, 5_000))
