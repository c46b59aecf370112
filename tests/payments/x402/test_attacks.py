"""Tests attacks on the paywall with raw HTTP requests, on every server family."""

import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from fastevm.payments.x402 import (
    Facilitator,
    Payer,
    PaymentMiddleware,
    Paywall,
    RemoteFacilitator,
    Requirements,
    Sale,
    application,
    payment_middleware,
)
from fastevm.payments.x402.messages import Json, encode_header

from .servers import SERVERS, Shop, Till, exchange, raw
from .street import CHAIN_ID, FUNDS, PRICE, Served, Street, usdc

OFFER = Requirements(
    scheme="exact",
    chain_id=CHAIN_ID,
    asset=usdc(),
    pay_to="0x" + "33" * 20,
    amount=10_000,
    extra={"name": "USDC", "version": "2"},
)
PREFLIGHT = {"Origin": "https://a.example", "Access-Control-Request-Method": "GET"}
every_server = pytest.mark.parametrize("server", SERVERS)


def wall(*routes: str, engine: Any = None) -> Paywall:
    return Paywall(engine or Till(), dict.fromkeys(routes, Sale([OFFER])))


# --- methods --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["get", "Get", "gEt", "head", "WEATHER", "PROPFIND", "G'T"])
@pytest.mark.parametrize("route", ["GET /weather", "/weather"])
@every_server
async def test_an_unknown_method_of_a_sold_path_is_refused(
    server: str, route: str, method: str
) -> None:
    shop = Shop()
    async with SERVERS[server](shop, wall(route)) as port:
        status, answer = await exchange(port, raw(method, {}))
        assert status in (400, 405), answer  # 400 comes from the server's own parser.
        assert b"secret" not in answer
        assert (await exchange(port, raw("GET", {})))[0] == 402
        assert (await exchange(port, raw("GET", {}, path="/free")))[0] == 200
    assert len(shop.bodies) == 1


@pytest.mark.parametrize("method", ["get", "Get", "PROPFIND"])
async def test_an_asgi_server_that_passes_any_method_gets_405(method: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("the application was called")

    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": "/weather", "headers": []}
    await PaymentMiddleware(app, wall("GET /weather"))(scope, receive, send)
    assert sent[0]["status"] == 405
    assert dict(sent[0]["headers"])[b"allow"] == b"GET, HEAD, OPTIONS"
    assert b"case-sensitive" in sent[1]["body"]


@pytest.mark.parametrize("route", ["GET /weather", "/weather", "OPTIONS /weather"])
@every_server
async def test_a_preflight_is_free_and_gives_nothing_away(server: str, route: str) -> None:
    shop = Shop()
    async with SERVERS[server](shop, wall(route)) as port:
        status, answer = await exchange(port, raw("OPTIONS", PREFLIGHT))
        assert b"secret" not in answer
        # OPTIONS has no price there, so the handler answers it for free.
        if route == "GET /weather":
            assert status == 200 and b"access-control-allow-origin: *" in answer.lower()
            assert len(shop.bodies) == 1
        else:
            assert status == 200 and b"access-control-allow-" not in answer.lower()
            assert not shop.bodies, "a sold handler ran unpaid"
        lower, answer = await exchange(port, raw("options", PREFLIGHT))
        assert lower in (400, 405) and b"secret" not in answer
        if route != "GET /weather":
            assert (await exchange(port, raw("OPTIONS", {})))[0] == 402


def test_a_route_names_a_method() -> None:
    for route in ("GET  /weather", "GET, POST /weather", "weather", "G\u00c9T /weather"):
        with pytest.raises(ValueError, match="route"):
            wall(route)


# --- spellings of a payment -----------------------------------------------------------------------


def signed(**changes: Callable[[str], Any]) -> Callable[[Json], Json]:
    """Returns a function that writes members of the authorization in another spelling."""

    def respell(payload: Json) -> Json:
        members = dict(payload["authorization"])
        for name, change in changes.items():
            member = name.rstrip("_")
            members[member] = change(members[member])
        return {**payload, "authorization": members}

    return respell


SAME: Mapping[str, Callable[[Json], Json]] = {
    "upper case nonce": signed(nonce=lambda text: "0x" + text[2:].upper()),
    "mixed case nonce": signed(nonce=lambda text: text[:20] + text[20:].upper()),
    "lower case payer": signed(from_=str.lower),
    "number for a text": signed(value=int),
    "leading zeros": signed(value=lambda text: "000" + text),
    "unknown member": lambda payload: {**payload, "more": 1},
    "unknown member of the authorization": lambda payload: {
        **payload, "authorization": {**payload["authorization"], "more": 1},
    },
    "second authorization": lambda payload: {
        **payload, "permit2Authorization": {"from": "0x" + "11" * 20, "nonce": "1"},
    },
}  # fmt: skip
INVALID: Mapping[str, Callable[[Json], Json]] = {
    "no 0x": signed(nonce=lambda text: text[2:]),
    "0X": signed(nonce=lambda text: "0X" + text[2:]),
    "0x twice": signed(nonce=lambda text: "0x" + text),
    "blank before": signed(nonce=lambda text: " " + text),
    "blank after": signed(nonce=lambda text: text + " "),
    "blank inside": signed(nonce=lambda text: text[:10] + " " + text[10:]),
    "blank after 0x": signed(nonce=lambda text: "0x " + text[2:]),
    "line feed after": signed(nonce=lambda text: text + "\n"),
    "tab inside": signed(nonce=lambda text: text[:4] + "\t" + text[4:]),
    "no-break space": signed(nonce=lambda text: text + "\u00a0"),
    "full-width digit": signed(nonce=lambda text: text[:-1] + "\uff11"),
    "short": signed(nonce=lambda text: text[:-2]),
    "long": signed(nonce=lambda text: text + "00"),
    "number": signed(nonce=lambda text: int(text, 16)),
    "list": signed(nonce=lambda text: [text]),
    "payer without 0x": signed(from_=lambda text: text[2:]),
    "payer with a blank": signed(from_=lambda text: text + " "),
    "payer with a wrong checksum": signed(from_=str.swapcase),
    "signature with a blank": lambda payload: {**payload, "signature": payload["signature"] + " "},
    "no authorization": lambda payload: {"signature": payload["signature"], "more": 1},
    "null": lambda payload: {**payload, "authorization": None},
    "other means": lambda payload: {
        "signature": payload["signature"],
        "permit2Authorization": {"from": "0x" + "11" * 20, "nonce": "1"},
    },
}


SECRET = "pay_5ecre7" + "0" * 26


def header_of(payload: Json, offer: Requirements, secret: str | None = SECRET) -> dict[str, str]:
    message = {"x402Version": 2, "payload": payload, "accepted": offer.show()}
    if secret is not None:
        message["extensions"] = {"payment-identifier": {"info": {"id": secret}}}
    return {"PAYMENT-SIGNATURE": encode_header(message)}


def header_v1(payload: Json) -> dict[str, str]:
    message = {"x402Version": 1, "payload": payload, "scheme": "exact", "network": "base-sepolia"}
    return {"X-PAYMENT": encode_header(message)}


async def spell(port: int, payload: Json, offer: Requirements, shop: Shop) -> None:
    """Presents the payment in every spelling: the invalid ones first, the payer's own last."""
    for name, change in INVALID.items():
        spelled = change(payload)
        for headers in (header_of(spelled, offer), header_v1(spelled)):
            status, answer = await exchange(port, raw("GET", headers))
            assert status in (400, 402) and b"secret" not in answer, (name, answer)
            assert b"expected" in answer or b"checksum" in answer, (name, answer)
    assert not shop.bodies
    for name, change in SAME.items():
        status, answer = await exchange(port, raw("GET", header_of(change(payload), offer)))
        assert status == 200, (name, answer)
    for name, change in INVALID.items():
        status, answer = await exchange(port, raw("GET", header_of(change(payload), offer)))
        assert status in (400, 402) and b"secret" not in answer, (name, answer)
    assert len(shop.bodies) == 1


@every_server
async def test_one_payment_has_one_answer_however_it_is_spelled(server: str) -> None:
    shop, till = Shop(), Till()
    payload = Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(OFFER)
    async with SERVERS[server](shop, wall("GET /weather", engine=till)) as port:
        await spell(port, payload, OFFER, shop)
    assert till.nonces == [payload["authorization"]["nonce"]]


@asynccontextmanager
async def engine_of(kind: str, town: Street) -> AsyncIterator[Any]:
    facilitator = Facilitator([town.settler()])
    if kind == "local":
        async with facilitator:
            yield facilitator
        return
    async with Served(application(facilitator, "secret")) as served:
        remote = RemoteFacilitator(served.url, {"Authorization": "Bearer secret"})
        yield remote
        await remote.close()


@pytest.mark.parametrize("kind", ["local", "remote"])
@every_server
async def test_one_payment_is_settled_once_however_it_is_spelled(
    town: Street, server: str, kind: str
) -> None:
    shop, offer = Shop(), town.offer()
    before = await town.balance(town.shop.address)
    async with engine_of(kind, town) as engine:
        paywall = Paywall(engine, {"GET /weather": Sale([offer])})
        async with SERVERS[server](shop, paywall) as port:
            await spell(port, town.buyer().payload(offer), offer, shop)
    assert await town.balance(town.shop.address) == before + PRICE


# --- bodies ---------------------------------------------------------------------------------------

MIB = 1 << 20


def chunked(body: bytes, size: int = MIB) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))


def post(headers: dict[str, str], body: bytes = b"") -> bytes:
    payload = Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(OFFER)
    return raw("POST", {**header_of(payload, OFFER), **headers}, body)


async def sent(server: str, request: bytes, *, end: bool = False) -> tuple[int, Shop, Till]:
    """Sends a paid request to a server. Returns the status, the shop and its engine."""
    shop, till = Shop(), Till()
    async with SERVERS[server](shop, wall("POST /weather", engine=till)) as port:
        status, answer = await exchange(port, request, end=end)
        assert status == 200 or b"secret" not in answer
    return status, shop, till


@pytest.mark.parametrize("size", [0, 1, 2 * MIB + 1, 16 * MIB])
@pytest.mark.parametrize("form", ["length", "chunked"])
@every_server
async def test_a_paid_body_arrives_as_it_was_sent(server: str, form: str, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    if form == "chunked":
        request = post({"Transfer-Encoding": "chunked"}, chunked(body))
    else:
        request = post({"Content-Length": str(size)}, body)
    status, shop, till = await sent(server, request)
    if server == "wsgiref" and form == "chunked":  # wsgiref does not decode chunked bodies
        assert (status, shop.bodies, till.nonces) == (411, [], [])
    else:
        assert status == 200 and shop.bodies == [body] and len(till.nonces) == 1


@pytest.mark.parametrize("form", ["length", "chunked"])
@every_server
async def test_a_body_above_the_limit_is_refused_and_not_charged(server: str, form: str) -> None:
    body = bytes(17 * MIB)
    if form == "chunked":
        request = post({"Transfer-Encoding": "chunked"}, chunked(body))
    else:
        request = post({"Content-Length": str(len(body))}, body)
    status, shop, till = await sent(server, request)
    assert status == (411 if server == "wsgiref" and form == "chunked" else 413)
    assert not shop.bodies and not till.nonces


@pytest.mark.parametrize("length", ["100", "-1", "+4", "4x", "0x4", "99999999999999999999"])
@every_server
async def test_a_body_of_another_length_is_refused_and_not_charged(
    server: str, length: str
) -> None:
    status, shop, till = await sent(server, post({"Content-Length": length}, b"body"), end=True)
    assert status in (0, 400, 413) and not shop.bodies and not till.nonces


def compressed(encoding: str, body: bytes) -> bytes:
    if encoding == "gzip":
        return gzip.compress(body)
    return zlib.compress(body, wbits=-15 if encoding == "raw deflate" else 15)


def encoded(encoding: str, body: bytes) -> bytes:
    name = encoding.split()[-1]
    return post({"Content-Length": str(len(body)), "Content-Encoding": name}, body)


ENCODINGS = ["gzip", "deflate", "raw deflate"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@every_server
async def test_a_compressed_body_arrives_or_is_refused(server: str, encoding: str) -> None:
    body = bytes(range(256)) * 4096
    packed = compressed(encoding, body)
    status, shop, till = await sent(server, encoded(encoding, packed))
    # aiohttp decompresses the body itself and does not notice that it is truncated
    if server == "aiohttp":
        assert (status, shop.bodies, till.nonces) == (415, [], [])
    else:  # the application has to decompress the body
        assert status == 200 and shop.bodies == [packed] and len(till.nonces) == 1


@pytest.mark.parametrize("cut", ["end mark", "half", "all but the start", "garbage at the end"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@every_server
async def test_a_truncated_compressed_body_is_refused_and_not_charged(
    server: str, encoding: str, cut: str
) -> None:
    packed = compressed(encoding, bytes(range(256)) * 4096)
    packed = {
        "end mark": packed[:-1],
        "half": packed[: len(packed) // 2],
        "all but the start": packed[:12],
        "garbage at the end": packed + b"rest",
    }[cut]
    status, shop, till = await sent(server, encoded(encoding, packed))
    assert status == 400 or (status == 415 and server == "aiohttp")
    assert not shop.bodies and not till.nonces


@pytest.mark.parametrize("encoding", ["deflate", "gzip"])
@every_server
async def test_what_decompresses_above_the_limit_is_refused(server: str, encoding: str) -> None:
    packed = compressed(encoding, bytes(17 * MIB))
    status, shop, till = await sent(server, encoded(encoding, packed))
    assert status == (415 if server == "aiohttp" else 413)
    assert not shop.bodies and not till.nonces


async def test_an_aiohttp_server_may_leave_bodies_compressed() -> None:
    shop, till = Shop(), Till()

    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=shop.serve(await request.read()))

    sold = wall("POST /weather", engine=till)
    app = web.Application(middlewares=[payment_middleware(sold)])
    app.router.add_post("/weather", handler)
    runner = web.AppRunner(app, auto_decompress=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    packed = compressed("gzip", b"one two three")
    try:
        status, _ = await exchange(port, encoded("gzip", packed[:-1]))
        assert (status, shop.bodies, till.nonces) == (400, [], [])
        status, _ = await exchange(port, encoded("gzip", packed))
        assert (status, shop.bodies) == (200, [packed]) and len(till.nonces) == 1
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("server", ["uvicorn", "werkzeug"])
async def test_many_parts_of_a_gzip_body_are_refused(server: str) -> None:
    status, shop, till = await sent(server, encoded("gzip", gzip.compress(b"") * 100_000))
    assert (status, shop.bodies, till.nonces) == (400, [], [])
    two = gzip.compress(b"one") + gzip.compress(b"two") + bytes(512)
    status, shop, till = await sent(server, encoded("gzip", two))
    assert status == 200 and shop.bodies == [two]


@pytest.mark.parametrize(
    "encodings",
    [["br"], ["zstd"], ["compress"], ["gzip, identity"], ["identity,gzip"], ["gzip", ""],
     ["gzip", "identity"], ["identity", "gzip"], ["gzip", "gzip"], ["deflate", ""], ["gzip;q=1"]],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("cut", [0, 500])
@every_server
async def test_an_encoding_that_is_not_one_known_coding_is_refused_and_not_charged(
    server: str, encodings: list[str], cut: int
) -> None:
    packed = gzip.compress(bytes(range(256)) * 4096)
    packed = packed[: len(packed) - cut]
    request = post({"Content-Length": str(len(packed))}, packed)
    headers = [("Content-Encoding", encoding) for encoding in encodings]
    status, shop, till = await sent(server, with_headers(request, headers))
    # With 400, aiohttp has tried to decompress the body.
    assert status == 415 or (status == 400 and server == "aiohttp"), status
    assert not shop.bodies and not till.nonces


@every_server
async def test_the_encoding_identity_changes_nothing(server: str) -> None:
    status, shop, till = await sent(server, encoded("identity", b"body"))
    assert status == 200 or (status == 415 and server == "aiohttp")
    assert shop.bodies == ([b"body"] if status == 200 else [])
    assert len(till.nonces) == len(shop.bodies)


CHUNKED = ("Transfer-Encoding", "chunked")
TWO_FRAMES: Mapping[str, list[tuple[str, str]]] = {
    "length and chunked": [("Content-Length", "3"), CHUNKED],
    "chunked and length": [CHUNKED, ("Content-Length", "3")],
    "list of lengths": [("Content-Length", "14, 3")],
    "gzip, chunked": [("Transfer-Encoding", "gzip, chunked")],
    "chunked, identity": [("Transfer-Encoding", "chunked, identity")],
    "chunked twice": [CHUNKED, CHUNKED],
    "chunked and identity": [CHUNKED, ("Transfer-Encoding", "identity")],
    "identity": [("Transfer-Encoding", "identity"), ("Content-Length", "3")],
    "underscore": [("Transfer_Encoding", "chunked"), ("Content-Length", "3")],
    "two lengths": [("Content-Length", "14"), ("Content-Length", "3")],
}


@pytest.mark.parametrize("frame", TWO_FRAMES)
@every_server
async def test_a_body_that_is_framed_in_two_ways_is_refused_and_not_charged(
    server: str, frame: str
) -> None:
    request = with_headers(post({}, chunked(b"body")), TWO_FRAMES[frame])
    status, shop, till = await sent(server, request)
    if frame == "two lengths" and server in ("werkzeug", "wsgiref"):
        # These servers use only one of the two lengths. See the limits in SECURITY.md.
        assert len(shop.bodies) == len(till.nonces) == 1
    # to these servers, a header with an underscore is a different header
    elif frame == "underscore" and server != "wsgiref":
        assert status in (200, 400) and shop.bodies in ([], [chunked(b"body")[:3]])
    else:
        # With 0, the server closed the connection without reading the body.
        assert status in (0, 400, 411, 501), status
        assert not shop.bodies and not till.nonces


async def test_a_length_with_an_underscore_is_no_length_in_wsgi() -> None:
    request = with_headers(post({}, b"body"), [("Content_Length", "4")])
    status, shop, _ = await sent("wsgiref", request, end=True)
    assert (status, shop.bodies) == (200, [b""])


# --- repeated headers and upgrades ----------------------------------------------------------------


def with_headers(request: bytes, headers: list[tuple[str, str]]) -> bytes:
    """Returns a request with more headers. The same header may occur twice."""
    start, _, rest = request.partition(b"\r\n")
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return start + b"\r\n" + lines.encode() + rest


@pytest.mark.parametrize(
    "kinds",
    [["websocket"], ["WebSocket"], ["websocket", "x"], ["x", "websocket"], ["websocket", ""],
     ["", "websocket"], ["h2c, websocket"], ["h2c", "websocket"], ["h2c", ""], ["x"], [""]],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("paid", [False, True])
@every_server
async def test_every_upgrade_of_a_sold_path_is_refused_and_not_charged(
    server: str, paid: bool, kinds: list[str]
) -> None:
    shop, till = Shop(), Till()
    handshake = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
                 "Connection": "Upgrade"}  # fmt: skip
    if paid:
        handshake |= header_of(Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(OFFER), OFFER)
    request = with_headers(raw("GET", handshake), [("Upgrade", kind) for kind in kinds])
    async with SERVERS[server](shop, wall("GET /weather", engine=till)) as port:
        status, answer = await exchange(port, request)
    assert status in (400, 403, 426), (status, answer)
    assert not shop.bodies and not till.nonces


@pytest.mark.parametrize("offered", ["h2c", "H2C", "h2c, h2c"])
@every_server
async def test_an_offer_of_http2_is_an_ordinary_request(server: str, offered: str) -> None:
    # An offer to upgrade to HTTP/2, as Java's HttpClient and curl --http2 send it.
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": offered,
             "HTTP2-Settings": "AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA"}  # fmt: skip
    shop, till = Shop(), Till()
    payment = header_of(Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(OFFER), OFFER)
    async with SERVERS[server](shop, wall("GET /weather", engine=till)) as port:
        status, answer = await exchange(port, raw("GET", offer))
        assert status == 402 and not shop.bodies, answer
        status, answer = await exchange(port, raw("GET", {**offer, **payment}))
        assert status == 200 and answer.endswith(b"secret weather, 0 bytes"), answer
    assert len(till.nonces) == 1


@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize("kinds", [["websocket"], ["websocket", "x"], ["websocket", ""]], ids=str)
async def test_a_websocket_handler_of_aiohttp_sends_nothing_below_a_sold_path(
    kinds: list[str], paid: bool
) -> None:
    async def feed(request: web.Request) -> web.WebSocketResponse:
        made = web.WebSocketResponse()
        await made.prepare(request)
        await made.send_str("secret")
        await made.close()
        return made

    till = Till()
    app = web.Application(middlewares=[payment_middleware(wall("/weather", engine=till))])
    app.router.add_get("/weather", feed)
    headers = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
               "Connection": "Upgrade"}  # fmt: skip
    if paid:
        headers |= header_of(Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(OFFER), OFFER)
    request = with_headers(raw("GET", headers), [("Upgrade", kind) for kind in kinds])
    async with Served(app) as served:
        status, answer = await exchange(int(served.url.rsplit(":", 1)[1]), request)
    assert status == 403 and b"secret" not in answer and not till.nonces


REPEATED = {
    "Host": ["evil.example"], "PAYMENT-SIGNATURE": ["e30=", ""], "X-PAYMENT": ["e30=", "e30="],
    "SIGN-IN-WITH-X": ["e30=", "e30="], "Access-Control-Request-Method": ["GET", "POST"],
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
@every_server
async def test_a_repeated_header_of_one_value_is_refused_and_not_charged(
    server: str, name: str
) -> None:
    shop, till = Shop(), Till()
    payload = Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(OFFER)
    headers = [(name, value) for value in REPEATED[name]]
    request = with_headers(raw("GET", header_of(payload, OFFER)), headers)
    async with SERVERS[server](shop, wall("GET /weather", engine=till)) as port:
        status, _ = await exchange(port, request)
        assert status == 400 and not shop.bodies and not till.nonces
        free = with_headers(raw("GET", {}, path="/free"), headers)
        assert name == "Host" or (await exchange(port, free))[0] == 200


@pytest.mark.parametrize(
    "host",
    [b"shop\xff.example", b"\xc3\xa9.example", b"x:99999999", b"[::1", b"a b", b"x:y"],
    ids=repr,
)
@every_server
async def test_a_host_that_is_no_address_gets_an_answer(server: str, host: bytes) -> None:
    shop, till = Shop(), Till()
    payment = header_of(Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(OFFER), OFFER)
    async with SERVERS[server](shop, wall("GET /weather", engine=till)) as port:
        for headers in ({}, payment, payment, {**payment, "SIGN-IN-WITH-X": "e30="}):
            request = raw("GET", headers).replace(b"Host: shop.example", b"Host: " + host)
            status, answer = await exchange(port, request)
            assert 200 <= status < 500, answer
            assert (status == 200) <= (headers != {})
    assert len(shop.bodies) == len(till.nonces) <= 1


# --- more bodies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
@every_server
async def test_a_body_of_another_encoding_is_refused_and_not_charged(
    server: str, encoding: str
) -> None:
    body = b"neither gzip nor deflate nor brotli"
    status, shop, till = await sent(server, encoded(encoding, body))
    assert status in (400, 415) and not shop.bodies and not till.nonces


@every_server
async def test_another_body_is_another_request(server: str) -> None:
    shop, till = Shop(), Till()
    payload = Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(OFFER)
    async with SERVERS[server](shop, wall("POST /weather", engine=till)) as port:
        for body, expected in ((b"one", 200), (b"two", 409), (b"", 409), (b"one", 200)):
            headers = {**header_of(payload, OFFER), "Content-Length": str(len(body))}
            status, answer = await exchange(port, raw("POST", headers, body))
            assert status == expected, answer
    assert shop.bodies == [b"one"] and len(till.nonces) == 1
