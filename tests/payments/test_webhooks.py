"""Tests webhooks: stored with the change, signed, delivered in order, replayed and streamed."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from http.client import HTTPMessage
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from multidict import CIMultiDict
from starlette.datastructures import Headers as StarletteHeaders
from werkzeug.datastructures import EnvironHeaders

from fastevm.payments import (
    DeliveryState,
    InvalidTerms,
    Merchant,
    MovementKind,
    State,
    Trigger,
    UnknownOrder,
    Vault,
)
from fastevm.payments.outbox import DRAFTED, MOVEMENT_TYPES, RECEIVED, TYPES
from fastevm.payments.webhooks import (
    NOT_PUBLIC_WHY,
    UNDECRYPTABLE,
    Sender,
    add_endpoint,
    new_secret,
    rotate_secret,
    signature,
    stream,
    verified,
)
from tests.max_wait import MAX_WAIT

from .market import KEY, Market
from .stores import BOTH

STORES = BOTH
VAULT = Vault([KEY])
LIFE = [
    "payment.drafted", "payment.signed", "payment.authorized", "capture.submitted",
    "capture.included", "capture.confirmed",
]  # fmt: skip


class Receiver:
    """A shop's endpoint. It answers with the statuses in ``answers``, then always with 200."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.refuses: set[str] = set()
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        status = self.answers.pop(0) if self.answers else 200
        if json.loads(body)["data"]["order"] in self.refuses:
            status = 500
        if status < 300:
            self.got.append((dict(request.headers), body))
        headers = {"location": self.url} if status == 302 else {"retry-after": "0"}
        return web.Response(status=status, headers=headers)

    def types(self, order_id: str) -> list[str]:
        bodies = [json.loads(body) for _, body in self.got]
        return [body["type"] for body in bodies if body["data"]["order"] == order_id]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    app = web.Application()
    app.router.add_post("/hook", made.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    made.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/hook"  # type: ignore[attr-defined]
    yield made
    await runner.cleanup()


async def paid(market: Market, merchant: Merchant, *names: str) -> None:
    for name in names:
        await market.stored(merchant, name)
        await merchant.capture(name, until=State.CAPTURING)
    market.mine()
    for name in names:
        assert (await merchant.wait(name, State.PAID, MAX_WAIT)).paid


async def emptied(sender: Sender) -> None:
    while await sender.once():
        pass


def sender_of(merchant: Merchant, **options: Any) -> Sender:
    return Sender(merchant.store, VAULT, private=True, schedule=(0.0,), **options)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_headers_that_are_not_ascii_are_not_verified(name: str) -> None:
    now = str(int(time.time()))
    headers = {"webhook-id": "evt_1", "webhook-timestamp": now, "webhook-signature": "v1,AAAA"}
    for value in ("\udcff", "\u00ff", "\u00b2"):
        assert not verified(new_secret(), headers | {name: value}, b"")


@pytest.mark.parametrize("spelled", [str.title, str.upper, str])
def test_names_of_headers_have_any_case(spelled: Any) -> None:
    secret, now = new_secret(), int(time.time())
    headers = {
        "webhook-id": "evt_1", "webhook-timestamp": str(now),
        "webhook-signature": signature(secret, "evt_1", now, b"{}"),
    }  # fmt: skip
    assert verified(secret, {spelled(name): value for name, value in headers.items()}, b"{}")


def test_the_headers_of_every_framework_are_accepted() -> None:
    secret, now = new_secret(), int(time.time())
    named = {
        "Webhook-Id": "evt_1", "Webhook-Timestamp": str(now),
        "Webhook-Signature": signature(secret, "evt_1", now, b"{}"),
    }  # fmt: skip
    of_http_server = HTTPMessage()
    for name, value in named.items():
        of_http_server[name] = value
    raw = [(name.lower().encode(), value.encode()) for name, value in named.items()]
    of_flask = EnvironHeaders({f"HTTP_{k.upper().replace('-', '_')}": v for k, v in named.items()})
    for headers in (of_http_server, of_flask, StarletteHeaders(raw=raw), CIMultiDict(named)):
        assert verified(secret, headers, b"{}"), type(headers)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("secret", (None, {}, b"")), ("headers", ("x", None, b"")), ("headers", ("x", [], b"")),
        ("body", ("x", {}, "{}")), ("body", ("x", {}, None)),
    ],
)  # fmt: skip
def test_arguments_of_wrong_types_are_named(name: str, given: Any) -> None:
    with pytest.raises(InvalidTerms, match=f"^{name}: expected"):
        verified(*given)


async def test_a_life_is_reported_in_order_and_signed(still: Market, receiver: Receiver) -> None:
    merchant = still.merchant()
    secret = add_endpoint(merchant.store, VAULT, "shop", receiver.url)
    await paid(still, merchant, "order-1", "order-2")
    sender = sender_of(merchant)
    await emptied(sender)
    for name in ("order-1", "order-2"):
        assert receiver.types(name) == LIFE
    for headers, body in receiver.got:
        assert verified(secret, headers, body)
        assert not verified(secret, headers, body + b" ")
        assert not verified(new_secret(), headers, body)
        assert not verified(secret, headers, body, now=1.0)
        assert len(body) < 20_000
    sequences = [json.loads(body)["data"]["sequence"] for _, body in receiver.got]
    assert sorted(sequences) == sorted([1, 2, 3, 4, 5, 6] * 2)
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 12
    assert merchant.store.backlog() == (0, 0.0)
    await sender.close()


async def test_a_failed_change_leaves_no_notice(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    before = merchant.store.newest_notice()
    with pytest.raises(Exception, match="does not allow"):
        merchant.store.change("order-1", Trigger.REACH_DEPTH)
    assert merchant.store.newest_notice() == before


@pytest.mark.parametrize("status", [500, 404, 302, 429])
async def test_what_is_not_taken_is_tried_again_before_anything_later_of_its_order(
    still: Market, receiver: Receiver, status: int
) -> None:
    merchant = still.merchant()
    add_endpoint(merchant.store, VAULT, "shop", receiver.url)
    await paid(still, merchant, "order-1")
    receiver.answers = [status] * 3
    sender = sender_of(merchant)
    await emptied(sender)
    assert receiver.types("order-1") == LIFE
    done = merchant.store.deliveries("shop", DeliveryState.DONE)
    assert done[0].attempts == 4
    assert [item.attempts for item in done[1:]] == [1] * 5
    await sender.close()


async def test_one_order_that_fails_holds_up_no_other(still: Market, receiver: Receiver) -> None:
    merchant = still.merchant()
    add_endpoint(merchant.store, VAULT, "shop", receiver.url)
    add_endpoint(merchant.store, VAULT, "dead", "http://127.0.0.1:1/hook")
    await paid(still, merchant, "order-1", "order-2")
    receiver.refuses = {"order-1"}
    sender = Sender(merchant.store, VAULT, private=True, schedule=(60.0,))
    await emptied(sender)
    assert receiver.types("order-1") == []
    assert receiver.types("order-2") == LIFE
    waiting = merchant.store.deliveries("shop", DeliveryState.WAITING)
    assert [item.notice.order_id for item in waiting] == ["order-1"] * 6
    assert [item.attempts for item in waiting] == [1, 0, 0, 0, 0, 0]
    await sender.close()


async def test_several_senders_deliver_in_order_and_nothing_twice(
    still: Market, receiver: Receiver
) -> None:
    merchant = still.merchant()
    add_endpoint(merchant.store, VAULT, "shop", receiver.url)
    await paid(still, merchant, *(f"order-{number}" for number in range(4)))
    senders = [sender_of(still.merchant()) for _ in range(3)]
    await asyncio.gather(*(emptied(sender) for sender in senders))
    await emptied(senders[0])
    assert len(receiver.got) == 24
    for number in range(4):
        assert receiver.types(f"order-{number}") == LIFE
    for sender in senders:
        await sender.close()


async def test_an_endpoint_that_is_gone_is_disabled_and_a_replay_brings_everything(
    still: Market, receiver: Receiver
) -> None:
    merchant = still.merchant()
    store = merchant.store
    add_endpoint(store, VAULT, "shop", receiver.url)
    await paid(still, merchant, "order-1")
    receiver.answers = [410]
    sender = sender_of(merchant)
    await emptied(sender)
    (endpoint,) = store.endpoints()
    assert endpoint.disabled
    assert receiver.got == []
    assert {delivery.state for delivery in store.deliveries("shop")} == {DeliveryState.WAITING}
    assert store.backlog() == (0, 0.0), "what waits for a disabled endpoint is no backlog"
    assert await sender.once() == 0
    await paid(still, merchant, "order-2")  # not stored for this endpoint, but a replay delivers it
    store.change_endpoint("shop", disabled=False)
    await emptied(sender)
    assert receiver.types("order-1") == LIFE
    assert receiver.types("order-2") == []
    assert store.replay("shop", 1) == 12
    await emptied(sender)
    assert receiver.types("order-1") == LIFE + LIFE
    assert receiver.types("order-2") == LIFE
    assert store.replay("shop", 1, 2) == 2
    await emptied(sender)
    assert receiver.types("order-1") == LIFE + LIFE + LIFE[:2]
    await sender.close()


async def test_secrets_are_rotated_without_a_gap(still: Market, receiver: Receiver) -> None:
    merchant = still.merchant()
    old = add_endpoint(merchant.store, VAULT, "shop", receiver.url)
    new = rotate_secret(merchant.store, VAULT, "shop")
    await still.stored(merchant)
    sender = sender_of(merchant)
    await emptied(sender)
    for headers, body in receiver.got:
        assert verified(old, headers, body)
        assert verified(new, headers, body)
    await sender.close()


LOOPBACK = (
    "127.0.0.1", "localhost", "LOCALHOST", "127.1", "2130706433", "0x7f000001", "0x7f.1",
    "017700000001", "127.0.0.1.", "0", "0.0.0.0", "127.8.9.10", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]", "[fe80::1]", "[fec0::1]", "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
    "\uff11\uff12\uff17.\uff10.\uff10.\uff11", "127\u30020\u30020\u30021", "127.0.0.%31",
    "loc%61lhost",
    "\U0001d7cf\U0001d7d0\U0001d7d5.0.0.1", "user@127.0.0.1", "169.254.169.254",
)  # fmt: skip


async def test_private_addresses_are_not_called(
    still: Market, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    merchant = still.merchant()
    for number, host in enumerate(LOOPBACK):
        url = receiver.url.replace("127.0.0.1", host)
        add_endpoint(merchant.store, VAULT, f"endpoint {number}", url)
    await still.stored(merchant)
    sender = Sender(merchant.store, VAULT, schedule=(60.0,))
    await emptied(sender)
    assert receiver.got == []
    assert "its address is not public; 'fastevm pay run --private'" in caplog.text
    for wrong in ("ftp://host/x", "/hook", "", "http://"):
        with pytest.raises(InvalidTerms):
            add_endpoint(merchant.store, VAULT, "wrong", wrong)
    await sender.close()


async def test_a_secret_that_cannot_be_decrypted_stops_no_other_endpoint(
    still: Market, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    merchant = still.merchant()
    store = merchant.store
    for name in ("bad", "good"):
        add_endpoint(store, VAULT, name, receiver.url)
    elsewhere = Vault([b"\x09" * 32]).seal(b"whsec_AAAA", store.endpoints()[0].seal_context)
    store.change_endpoint("bad", sealed=elsewhere)
    store.change_endpoint("good", previous=elsewhere)
    await still.stored(merchant)
    sender = Sender(store, VAULT, private=True, schedule=(60.0,))
    await emptied(sender)
    assert len(receiver.got) == 3
    assert store.deliveries("good", DeliveryState.WAITING) == []
    first, *_ = store.deliveries("bad", DeliveryState.WAITING)
    assert (first.attempts, first.status) == (1, UNDECRYPTABLE)
    assert "endpoint bad: its secret cannot be decrypted" in caplog.text
    await sender.close()


async def test_each_failed_delivery_is_logged_with_target_reason_and_next_attempt(
    still: Market, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    merchant = still.merchant()
    url = receiver.url.replace("/hook", "/hook?key=secret-path")
    add_endpoint(merchant.store, VAULT, "shop", url)
    await merchant.draft("order-1", still.payer.address, 1)
    sender = Sender(merchant.store, VAULT, private=True, schedule=(60.0,))
    for status, cause in ((401, "--add or --rotate printed"), (500, ""), (302, "final URL")):
        caplog.clear()
        receiver.answers = [status]
        assert merchant.store.hasten("shop") == 1
        assert await sender.once() == 1
        (line,) = [
            record.getMessage() for record in caplog.records if record.levelname == "WARNING"
        ]
        assert f"webhook endpoint shop at {receiver.url.removesuffix('/hook')}: attempt" in line
        assert "evt_1 (payment.drafted) failed: status" in line and cause in line, line
        assert f"status {status}" in line and "next attempt in " in line and "--retry shop" in line
        assert "secret" not in line.replace("have the secret that", "")
    await sender.close()


async def test_an_endpoint_of_which_many_deliveries_fail_is_logged_once_a_pass(
    still: Market, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    merchant = still.merchant()
    add_endpoint(merchant.store, VAULT, "shop", receiver.url)
    for number in range(5):
        await merchant.draft(f"order-{number}", still.payer.address, 1)
    receiver.answers = [500] * 5
    sender = Sender(merchant.store, VAULT, private=True, schedule=(60.0,))
    assert await sender.once() == 5
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert line.endswith("(and 4 more of this pass)")
    await sender.close()


async def test_waiting_messages_are_delivered_when_the_operator_asks(
    still: Market, receiver: Receiver
) -> None:
    merchant = still.merchant()
    add_endpoint(merchant.store, VAULT, "shop", receiver.url)
    await paid(still, merchant, "order-1")
    sender = Sender(merchant.store, VAULT, private=True, schedule=(3_600.0,))
    receiver.answers = [401]
    await emptied(sender)
    assert receiver.got == []
    assert merchant.store.hasten("shop") == len(LIFE)
    await emptied(sender)
    assert receiver.types("order-1") == LIFE
    assert merchant.store.hasten("shop") == 0
    with pytest.raises(UnknownOrder, match="nowhere"):
        merchant.store.hasten("nowhere")
    merchant.store.change_endpoint("shop", disabled=True)
    with pytest.raises(InvalidTerms, match="enable it first"):
        merchant.store.hasten("shop")
    await sender.close()


async def test_a_test_message_is_delivered_immediately(still: Market, receiver: Receiver) -> None:
    merchant = still.merchant()
    secret = add_endpoint(merchant.store, VAULT, "shop", receiver.url)
    sender = Sender(merchant.store, VAULT, private=True)
    for _ in range(2):
        assert (await sender.test("shop")).ok
    receiver.answers = [401]
    failed = await sender.test("shop")
    assert not failed.ok and "--add or --rotate printed" in failed.shown
    assert [json.loads(body)["type"] for _, body in receiver.got] == ["webhook.test"] * 2
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 2
    for headers, body in receiver.got:
        assert verified(secret, headers, body)
    assert merchant.store.deliveries("shop") == []
    with pytest.raises(UnknownOrder, match="nowhere"):
        await sender.test("nowhere")
    await sender.close()


async def test_an_attempt_without_an_answer_says_why(still: Market) -> None:
    merchant = still.merchant()
    add_endpoint(merchant.store, VAULT, "shop", "http://127.0.0.1:1/secret-path")
    await still.stored(merchant)
    for private, why in ((True, "no answer: connection refused"), (False, NOT_PUBLIC_WHY)):
        sender = Sender(merchant.store, VAULT, private=private, schedule=(0.0,))
        await sender.once()
        await sender.close()
        first = merchant.store.deliveries("shop", DeliveryState.WAITING)[0]
        assert first.status == why and "secret" not in first.status


async def test_the_stream_tells_what_any_process_did(still: Market) -> None:
    ours, theirs = still.merchant(), still.merchant()
    listening = stream(theirs.store, 0)
    types: list[str] = []

    async def listen() -> None:
        async for notice in listening:
            types.append(notice.type)

    task = asyncio.create_task(listen())
    await paid(still, ours, "order-1")
    async with asyncio.timeout(MAX_WAIT):
        while len(types) < len(LIFE):
            await asyncio.sleep(0.01)
    assert types == LIFE
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_sender_runs_beside_the_merchant(still: Market, receiver: Receiver) -> None:
    merchant = still.merchant()
    add_endpoint(merchant.store, VAULT, "shop", receiver.url)
    sender = sender_of(merchant)
    task = asyncio.create_task(sender.run())
    await paid(still, merchant, "order-1")
    async with asyncio.timeout(MAX_WAIT):
        while receiver.types("order-1") != LIFE:
            await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_the_specifications_example_is_signed_as_it_says() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    header = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body)
    assert header == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    with pytest.raises(InvalidTerms):
        signature("whsec_!", "x", 1, b"")


def test_the_page_has_every_type_of_message() -> None:
    page = Path(__file__).parents[2] / "docs/payments/webhooks.md"
    text = page.read_text(encoding="utf-8")
    types = {*TYPES.values(), DRAFTED, RECEIVED}
    types |= {f"refund.{suffix}" for suffix in MOVEMENT_TYPES.values()}
    assert [name for name in sorted(types) if f"`{name}`" not in text] == []
    kinds = {kind.value for kind in MovementKind} - {"refund"}
    assert [kind for kind in sorted(kinds) if f"`{kind}.`" not in text] == []
