"""Tests the facilitator over HTTP: answers, statuses and authorization."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from fastevm.payments import InvalidTerms
from fastevm.payments.x402 import (
    Facilitator,
    FileGrants,
    Payment,
    Paywall,
    RemoteFacilitator,
    Reply,
    Request,
    Sale,
    Unavailable,
    application,
)
from fastevm.payments.x402.auth_capture import NUMBERS, TEXTS, AuthCapture, dated
from fastevm.payments.x402.exact import DOMAIN
from fastevm.payments.x402.messages import decode_header, encode_header

from .servers import exchange
from .street import CHAIN_ID, Served, Street
from .test_attacks import header_of


def body_of(town: Street, version: int = 2) -> dict[str, Any]:
    offer = town.offer()
    payload = town.buyer().payload(offer)
    if version == 1:
        payment: dict[str, Any] = {"scheme": "exact", "network": "base-sepolia"}
        requirements = {
            **{key: value for key, value in offer.show().items() if key != "amount"},
            "network": "base-sepolia",
            "maxAmountRequired": str(offer.amount),
            "resource": "http://shop.test/weather",
            "description": "",
            "mimeType": "",
            "outputSchema": None,
        }
    else:
        payment, requirements = {"accepted": offer.show()}, offer.show()
    return {
        "x402Version": version,
        "paymentPayload": {"x402Version": version, "payload": payload, **payment},
        "paymentRequirements": requirements,
    }


@pytest.mark.parametrize("version", [1, 2])
async def test_both_versions_are_verified_and_settled(town: Street, version: int) -> None:
    async with (
        Served(application(Facilitator([town.settler()]))) as served,
        aiohttp.ClientSession(served.url) as session,
    ):
        body = body_of(town, version)
        async with session.post("/verify", json=body) as answer:
            assert await answer.json() == {"isValid": True, "payer": town.payer.address}
        for key, success in (("mine", True), ("mine", True), ("theirs", False), ("", False)):
            headers = {"Idempotency-Key": key}
            async with session.post("/settle", json=body, headers=headers) as answer:
                content = await answer.json()
                assert (answer.status, content["success"]) == (200, success), content
                assert content["network"] == ("base-sepolia" if version == 1 else "eip155:84532")
                assert content.get("errorReason") == (None if success else "duplicate_settlement")
        for key in ("x" * 256, "\u00e9"):
            headers = {"Idempotency-Key": key}
            async with session.post("/settle", json=body, headers=headers) as answer:
                assert answer.status == 400
        async with session.get("/health") as answer:
            assert (await answer.json())["healthy"]


BAD = {
    "no JSON": b"{",
    "an array": b"[]",
    "a key twice": b'{"x402Version":2,"x402Version":2}',
    "a fraction": b'{"x402Version":2.0}',
    "nothing": b"{}",
    "too long": b'{"a":"' + b"a" * 200_000 + b'"}',
    "too deep": b"[" * 100_000,
}


NO_TEXT: tuple[Any, ...] = ([], {}, True, 1, [[]], {"a": 1}, 10**30)
NO_NUMBER: tuple[Any, ...] = ([], {}, True, -1, "", "x", "1e3", 2**256, [1])
EXTRA = {
    **dict.fromkeys(TEXTS, NO_TEXT),
    **dict.fromkeys(NUMBERS, NO_NUMBER),
}


@pytest.mark.parametrize("scheme", ["exact", "auth-capture"])
@pytest.mark.parametrize("path", ["/verify", "/settle"])
async def test_a_member_of_the_wrong_type_is_a_bad_request(
    town: Street, path: str, scheme: str
) -> None:
    settler = town.settler()
    hold = dated(town.hold(settler.account), int(time.time()))
    offer = hold if scheme == "auth-capture" else town.offer()
    payload = town.buyer().payload(offer)

    def message(extra: Any = None, **changes: Any) -> dict[str, Any]:
        shown = {**offer.show(), **changes}
        shown["extra"] = {**shown["extra"], **extra} if isinstance(extra, dict) else shown["extra"]
        payment = {"x402Version": 2, "payload": payload, "accepted": shown}
        return {"x402Version": 2, "paymentPayload": payment, "paymentRequirements": shown}

    checked = EXTRA if scheme == "auth-capture" else dict.fromkeys(DOMAIN, NO_TEXT)
    async with (
        Served(application(Facilitator([settler], [AuthCapture()]))) as served,
        aiohttp.ClientSession(served.url) as session,
    ):

        async def post(body: dict[str, Any]) -> tuple[int, str]:
            async with session.post(path, json=body) as answer:
                return answer.status, await answer.text()

        for name, values in checked.items():
            for value in values:
                status, text = await post(message({name: value}))
                assert status == 400 and f"extra.{name}" in text, (name, value, status, text)
                body = message()  # the request's offer differs from the payer's copy
                body["paymentRequirements"] = message({name: value})["paymentRequirements"]
                status, text = await post(body)
                assert status in (200, 400) and '"isValid": true' not in text, (name, value, text)
        for name in offer.show():
            for value in ([], {}, True, -1, "", [[]], {"a": []}):
                status, text = await post(message(**{name: value}))
                assert status in (200, 400), (name, value, status, text)
        for name in payload:
            for value in ([], {}, True, -1, "", [[]], {"a": []}):
                body = message()
                body["paymentPayload"]["payload"] = {**payload, name: value}
                status, text = await post(body)
                assert status == 400, (name, value, status, text)
        assert not town.open[0].orders()


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("path", ["/verify", "/settle"])
async def test_what_is_no_message_is_a_bad_request(name: str, path: str) -> None:
    async with (
        Served(application(Facilitator([]))) as served,
        aiohttp.ClientSession(served.url) as session,
        session.post(path, data=BAD[name]) as answer,
    ):
        content = await answer.json()
        assert answer.status == 400, content
        assert content.get("invalidReason", content.get("errorReason")) == "invalid_payload"


async def test_a_token_keeps_strangers_out() -> None:
    async with (
        Served(application(Facilitator([]), "secret")) as served,
        aiohttp.ClientSession(served.url) as session,
    ):
        async with session.get("/supported") as answer:
            assert answer.status == 401
        async with session.get("/health") as answer:
            assert answer.status == 200
        headers = {"Authorization": "Bearer secret"}
        async with session.get("/supported", headers=headers) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("sent", [b"Bearer s\xe9cret", b"Bearer \xff\xfe", b"\xc3\xa9", b""])
async def test_a_token_that_is_no_text_is_refused(sent: bytes) -> None:
    async with Served(application(Facilitator([]), "secret")) as served:
        request = b"GET /supported HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: "
        status, answer = await exchange(
            int(served.url.rsplit(":", 1)[1]), request + sent + b"\r\n\r\n"
        )
    assert status == 401
    assert b"expected the header Authorization: Bearer TOKEN" in answer


@pytest.mark.parametrize(
    "token", ["", " ", "two words", "line\n", "s\u00e9cret", "\udcff", "x" * 4_097]
)
def test_a_token_that_no_header_can_contain_is_refused(token: str) -> None:
    with pytest.raises(InvalidTerms, match="token") as caught:
        application(Facilitator([]), token)
    assert not token.strip() or token not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "no value"),
        ("Bearer ", "no value"),
        ("Bearer secret\n", "printable latin-1"),
        ("Bearer secret\u20ac", "printable latin-1"),
        ("Bearer secret\udcff", "printable latin-1"),
    ],
)
def test_a_token_that_a_facilitator_cannot_read_is_refused(value: str, text: str) -> None:
    with pytest.raises(InvalidTerms, match=text) as caught:
        RemoteFacilitator("http://127.0.0.1:9", {"Authorization": value})
    assert "secret" not in str(caught.value)


async def test_paid_resources_that_ask_for_it_are_listed(town: Street) -> None:
    body = body_of(town)
    payment = body["paymentPayload"]
    payment["resource"] = {"url": "http://shop.test/weather"}
    payment["extensions"] = {"bazaar": {"info": {"input": {"type": "http", "method": "GET"}}}}
    async with (
        Served(application(Facilitator([town.settler()]))) as served,
        aiohttp.ClientSession(served.url) as session,
    ):
        async with session.post("/settle", json=body) as answer:
            assert (await answer.json())["success"]
        async with session.get("/discovery/resources?type=http&limit=5") as answer:
            content = await answer.json()
            assert content["pagination"] == {"limit": 5, "offset": 0, "total": 1}
            (item,) = content["items"]
            assert item["resource"] == "http://shop.test/weather"
            assert item["accepts"][0]["network"] == f"eip155:{CHAIN_ID}"
        for query in ("limit=0", "limit=101", "limit=x", "type=ftp"):
            async with session.get(f"/discovery/resources?{query}") as answer:
                assert answer.status == 400


@pytest.mark.parametrize(
    "info", [{"input": []}, {"input": "x"}, {"input": {"type": []}}, "x", None]
)
async def test_a_wish_of_the_payer_never_fails_a_settlement(town: Street, info: Any) -> None:
    body = body_of(town)
    body["paymentPayload"]["resource"] = {"url": "http://shop.test/weather"}
    body["paymentPayload"]["extensions"] = {"bazaar": {"info": info}}
    async with (
        Served(application(Facilitator([town.settler()]))) as served,
        aiohttp.ClientSession(served.url) as session,
        session.post("/settle", json=body) as answer,
    ):
        assert (await answer.json())["success"]


async def test_a_payer_cannot_replace_what_another_seller_lists(town: Street) -> None:
    other = town.offer(pay_to=town.accounts[5].address)
    wanted = [
        ("http://shop.test/weather", town.offer()),
        ("http://shop.test/weather", other),
        ("javascript:alert(1)", other),
    ]
    async with Facilitator([town.settler()]) as facilitator:
        for url, offer in wanted:
            members = {
                "x402Version": 2,
                "payload": town.buyer().payload(offer),
                "accepted": offer.show(),
                "resource": {"url": url},
                "extensions": {"bazaar": {"info": {}}},
            }
            assert (await facilitator.settle(Payment.read(members), offer)).success
        (item,) = facilitator.resources(None, 10, 0)["items"]
    assert item["accepts"][0]["payTo"] == town.offer().pay_to


async def test_a_facilitator_that_is_down_leaves_the_outcome_open(town: Street) -> None:

    remote = RemoteFacilitator("http://127.0.0.1:9")
    offer = town.offer()
    payment = town.payment(offer)
    with pytest.raises(Unavailable):
        await remote.verify(payment, offer)
    assert (await remote.settle(payment, offer)).pending
    await remote.close()


async def test_a_remote_facilitator_follows_no_redirect_and_bounds_answers(town: Street) -> None:
    reached: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        kind = request.match_info["kind"]
        reached.append(kind)
        assert b"bazaar" in await request.read() and b"pay_secret" not in await request.read()
        if kind == "redirects":
            raise web.HTTPTemporaryRedirect(f"/parts/{request.match_info['path']}")
        parts = web.StreamResponse()
        await parts.prepare(request)
        body = b'{"isValid": true, "success": true}' + b" " * (200_000 if kind == "long" else 0)
        for at in range(0, len(body), 10_000 if kind == "long" else 10):
            await parts.write(body[at : at + (10_000 if kind == "long" else 10)])
            await asyncio.sleep(0.01)
        return parts

    app = web.Application()
    app.router.add_post("/{kind}/{path}", answer)
    offer = town.offer()
    extensions = {"payment-identifier": {"info": {"id": "pay_secret" + "0" * 20}}, "bazaar": {}}
    members = {"x402Version": 2, "payload": town.buyer().payload(offer), "accepted": offer.show()}
    payment = Payment.read({**members, "extensions": extensions})
    async with Served(app) as served:
        for kind in ("redirects", "long"):
            remote = RemoteFacilitator(f"{served.url}/{kind}")
            with pytest.raises(Unavailable):
                await remote.verify(payment, offer)
            assert (await remote.settle(payment, offer)).pending
            await remote.close()
        assert reached == ["redirects"] * 2 + ["long"] * 2
        remote = RemoteFacilitator(f"{served.url}/parts")
        assert (await remote.verify(payment, offer)).valid
        assert (await remote.settle(payment, offer, "mine")).success
        await remote.close()


def vendor_of(town: Street, settle: Callable[[], web.Response]) -> web.Application:
    """Returns the facilitator of another vendor, which accepts every payment as valid.

    ``settle()`` returns its answer to a settlement.
    """

    async def verified(_: web.Request) -> web.Response:
        return web.json_response({"isValid": True, "payer": town.payer.address})

    async def settled(_: web.Request) -> web.Response:
        return settle()

    app = web.Application()
    app.router.add_post("/verify", verified)
    app.router.add_post("/settle", settled)
    return app


def failed(status: int = 200, **members: Any) -> web.Response:
    """Returns another vendor's answer to a settlement that failed."""
    failure = {"success": False, "transaction": "", "network": "eip155:84532"}
    return web.json_response({**failure, **members}, status=status)


SENT = "0x" + "ab" * 32
# Name -> the facilitator's answer (members and status), and whether the payer may sign again.
FAILURES: dict[str, tuple[dict[str, Any], int, bool]] = {
    "balance": ({"errorReason": "insufficient_funds"}, 200, True),
    "signature": ({"errorReason": "invalid_exact_evm_payload_signature"}, 200, True),
    "simulation": ({"errorReason": "invalid_exact_evm_transaction_simulation_failed"}, 200, True),
    "payload, 400": ({"errorReason": "invalid_payload"}, 400, True),
    "reverted, final": (
        {"errorReason": "invalid_exact_evm_transaction_failed", "transaction": SENT, "final": True},
        200, True,
    ),
    "balance, 500": ({"errorReason": "insufficient_funds"}, 500, False),
    "balance, but sent": ({"errorReason": "insufficient_funds", "transaction": SENT}, 200, False),
    "reverted": ({"errorReason": "invalid_transaction_state", "transaction": SENT}, 200, False),
    "reverted, unnamed": ({"errorReason": "invalid_transaction_state"}, 200, False),
    "not executed": ({"errorReason": "invalid_exact_evm_failed_to_execute_transfer"}, 200, False),
    "unexpected": ({"errorReason": "unexpected_settle_error"}, 200, False),
    "timeout": ({"errorReason": "settlement_timeout"}, 200, False),
    "confirmation": ({"errorReason": "transaction_confirmation_timed_out"}, 200, False),
    "invalid timeout": ({"errorReason": "invalid_transaction_timed_out"}, 200, False),
    "own word": ({"errorReason": "Something went wrong"}, 200, False),
    "no reason": ({}, 200, False),
    "null": ({"errorReason": None}, 200, False),
    "list": ({"errorReason": ["invalid_payload"]}, 200, False),
    "final is no boolean": ({"errorReason": "unexpected_settle_error", "final": 1}, 200, False),
}  # fmt: skip


@pytest.mark.parametrize("upfront", [False, True])
async def test_only_a_failure_that_moved_no_money_asks_for_another_payment(
    town: Street, upfront: bool
) -> None:
    said: dict[str, Any] = {}

    def settle() -> web.Response:
        members, status, _ = FAILURES[said["name"]]
        return failed(status, **members)

    async def run() -> Reply:
        return Reply(200, [], b"secret weather")

    offer = town.offer()
    async with Served(vendor_of(town, settle)) as served:
        remote = RemoteFacilitator(served.url)
        wall = Paywall(remote, {"GET /weather": Sale([offer], upfront=upfront)})
        for name, (_, _, again) in FAILURES.items():
            said["name"] = name
            made = header_of(town.buyer().payload(offer), offer)
            headers = {key.lower(): value for key, value in made.items()}
            asked = Request("GET", "/weather", "http://shop.example/weather", headers)
            answers = [await wall.handle(asked, run) for _ in range(2)]
            assert {answer.status for answer in answers} == {402 if again else 503}, name
            assert all(b"secret" not in answer.body for answer in answers)
        await remote.close()


async def test_a_refusal_after_an_unclear_settlement_is_no_402(
    town: Street, tmp_path: Path
) -> None:
    """The facilitator reports a missing balance, which this payment itself may have spent."""
    answers: list[web.Response] = []

    def failure(**members: Any) -> web.Response:
        return failed(errorReason="insufficient_funds", **members)

    async def run() -> Reply:
        return Reply(200, [], b"secret weather")

    offer = town.offer()
    async with Served(vendor_of(town, lambda: answers.pop(0))) as served:
        for last, status in ((failure(), 503), (failure(final=True), 402)):
            made = header_of(town.buyer().payload(offer), offer)
            headers = {key.lower(): value for key, value in made.items()}
            request = Request("GET", "/weather", "http://shop.example/weather", headers)
            answers += [web.Response(status=502), failure(), last]
            for expected in (503, 503, status):
                # as if each request reached another process of the server
                grants = FileGrants(tmp_path / "grants.db")
                remote = RemoteFacilitator(served.url)
                wall = Paywall(remote, {"GET /weather": Sale([offer])}, grants=grants)
                assert (await wall.handle(request, run)).status == expected
                await remote.close()


def test_headers_hold_what_they_are_given() -> None:

    content = {"text": "Käse – 1 €", "number": 2**256 - 1}
    assert decode_header(encode_header(content)) == content
    assert json.loads(json.dumps(content)) == content
