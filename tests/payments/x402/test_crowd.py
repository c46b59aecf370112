"""Tests many honest clients at the paywall, while strangers try to use each payment.

Every payment must be answered exactly once, again only to its payer, and with the right amount.
FASTEVM_X402_PAID and FASTEVM_X402_HOSTILE set the number of requests per server family.
"""

import asyncio
import json
import os
import random
import secrets
import time
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import pytest

from fastevm.payments.x402 import Facilitator, MemoryGrants, Paywall, Sale
from fastevm.payments.x402.messages import Json, encode_header

from .honest import command
from .servers import SERVERS, Shop, exchange, raw
from .street import PRICE, Street

PAID = int(os.environ.get("FASTEVM_X402_PAID", "6"))
HOSTILE = int(os.environ.get("FASTEVM_X402_HOSTILE", "90"))
AT_ONCE = 8
GREEDY = 5  # how often a greedy payer presents one payment
CLIENTS = ("payer", "pypi", "npm")
FAMILIES = ("aiohttp", "uvicorn", "werkzeug")


class Market(Shop):
    """A shop whose answers are all different."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, list[str]] = {}

    def answer(self, method: str, path: str, body: bytes) -> bytes:
        answer = f"secret {method} {path} {secrets.token_hex(8)}"
        self.made.setdefault(path, []).append(answer)
        return answer.encode()


class Tap:
    """An engine that tells the strangers each payment with its URL when its settlement starts.

    In reality they would see the payment on the chain, but not the URL.
    """

    def __init__(self, engine: Any) -> None:
        self.engine, self.seen = engine, list[tuple[Json, str]]()

    async def verify(self, *arguments: Any) -> Any:
        return await self.engine.verify(*arguments)

    async def settle(self, payment: Any, offer: Any, claim: str) -> Any:
        url = payment.resource.get("url", "http://shop/item/greedy")
        self.seen.append((dict(payment.payload), "/" + url.split("/", 3)[-1]))
        return await self.engine.settle(payment, offer, claim)


class Strangers:
    """Attackers that know all public data of every payment, but neither a key nor a payment id."""

    def __init__(self, town: Street, port: int, tap: Tap, wanted: int) -> None:
        self.town, self.port, self.tap, self.wanted = town, port, tap, wanted
        self.offer, self.random = town.offer(), random.Random(39)
        self.statuses: Counter[int] = Counter()
        self.stolen: list[bytes] = []
        self.sent = 0

    async def run(self) -> None:
        gate, work = asyncio.Semaphore(2 * AT_ONCE), set[asyncio.Task[None]]()
        while self.sent < self.wanted:
            if not self.tap.seen:
                await asyncio.sleep(0.01)
                continue
            self.sent += 1
            await gate.acquire()
            task = asyncio.create_task(self._attack())
            work.add(task)
            task.add_done_callback(lambda done: (gate.release(), work.discard(done)))
        await asyncio.gather(*work)

    async def _attack(self) -> None:
        payload, path = self.random.choice(self.tap.seen[-200:])
        method, path, headers, body = self.random.choice(ATTACKS)(self, payload, path)
        headers = {"Host": f"127.0.0.1:{self.port}", **headers}
        status, answer = await exchange(self.port, raw(method, headers, body, path))
        self.statuses[status] += 1
        if b"secret" in answer:
            self.stolen.append(answer)

    def header(self, payload: Json, secret: str | None = None, version: int = 2) -> dict[str, str]:
        message: Json = {"x402Version": version, "payload": payload}
        if version == 1:
            message |= {"scheme": "exact", "network": "base-sepolia"}
            return {"X-PAYMENT": encode_header(message)}
        message["accepted"] = self.offer.show()
        if secret is not None:
            message["extensions"] = {"payment-identifier": {"info": {"id": secret}}}
        return {"PAYMENT-SIGNATURE": encode_header(message)}

    def changed(self, payload: Json, **members: Any) -> Json:
        return {**payload, "authorization": {**payload["authorization"], **members}}


Attack = Callable[[Strangers, Json, str], tuple[str, str, dict[str, str], bytes]]


def _spelled(crowd: Strangers, payload: Json) -> Json:
    nonce = payload["authorization"]["nonce"]
    spelled = crowd.random.choice(
        [nonce.upper(), nonce[2:], " " + nonce, nonce + " ", "0x" + nonce[2:].upper(), nonce + "\n"]
    )
    return crowd.changed(payload, nonce=spelled)


ATTACKS: tuple[Attack, ...] = (
    lambda crowd, payload, path: ("GET", path, crowd.header(payload), b""),
    lambda crowd, payload, path: ("GET", path, crowd.header(payload, "pay_" + "0" * 32), b""),
    lambda crowd, payload, path: ("GET", path, crowd.header(payload, version=1), b""),
    lambda crowd, payload, path: (
        "GET", path, crowd.header({**payload, "signature": "0x" + "11" * 65}), b"",
    ),
    lambda crowd, payload, path: ("GET", path, crowd.header(_spelled(crowd, payload)), b""),
    lambda crowd, payload, path: ("GET", path + "?x", crowd.header(payload), b""),
    lambda crowd, payload, path: (
        "GET", f"/item/{crowd.random.randrange(10**6)}", crowd.header(payload), b"",
    ),
    lambda crowd, payload, path: ("get", path, crowd.header(payload), b""),
    lambda crowd, payload, path: ("get", path, {}, b""),
    lambda crowd, payload, path: ("GET", path, {}, b""),
    lambda crowd, payload, path: ("HEAD", path, crowd.header(payload), b""),
    lambda crowd, payload, path: (
        "OPTIONS", path, {"Origin": "https://a.example", "Access-Control-Request-Method": "GET"},
        b"",
    ),
    lambda crowd, payload, path: (
        "GET", path, {**crowd.header(payload), "SIGN-IN-WITH-X": encode_header(
            {"nonce": "0" * 44, "signature": "0x" + "11" * 65})}, b"",
    ),
    lambda crowd, payload, path: (
        "POST", path, {**crowd.header(payload), "Content-Length": "4"}, b"body",
    ),
    lambda crowd, payload, path: (
        "GET", path, crowd.header(crowd.changed(payload, value="1", validBefore="1")), b"",
    ),
    lambda crowd, payload, path: ("GET", "//" + path, crowd.header(payload), b""),
    lambda crowd, payload, path: ("GET", path, {"PAYMENT-SIGNATURE": "e30="}, b""),
)  # fmt: skip


async def pay_ourselves(town: Street, urls: list[str]) -> dict[str, list[str]]:
    """Pays for URLs with fastevm's payer. Requests each answer again with the same payment."""
    buyer, bought = town.buyer(4), dict[str, list[str]]()
    gate = asyncio.Semaphore(AT_ONCE)
    async with aiohttp.ClientSession() as session:

        async def buy(url: str) -> None:
            async with gate, session.get(url) as asked:
                headers = dict([buyer.pay(asked.headers, await asked.read())])
            for _ in range(2):
                status = 503
                while status == 503:
                    async with gate, session.get(url, headers=headers) as answer:
                        status, body = answer.status, await answer.text()
                assert status == 200, body
                bought.setdefault(url, []).append(body)

        await asyncio.gather(*map(buy, urls))
    return bought


async def pay_with(client: str, town: Street, urls: list[str]) -> dict[str, list[str]]:
    """Pays for URLs with a published client."""
    if client == "payer":
        return await pay_ourselves(town, urls)
    words, environment = command(client)
    process = await asyncio.create_subprocess_exec(
        *words, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    key = "0x" + bytes(town.accounts[5 if client == "pypi" else 6].key).hex()
    asked = json.dumps({"key": key, "urls": urls, "at_once": AT_ONCE})
    output, errors = await process.communicate(asked.encode())
    assert process.returncode == 0, errors.decode()
    answers = [json.loads(line) for line in output.splitlines()]
    assert {answer["status"] for answer in answers} == {200}, answers
    return {answer["url"]: [answer["body"]] for answer in answers}


async def be_greedy(town: Street, port: int, tap: Tap, times: int) -> int:
    """Presents one payment for several items concurrently. Returns how many answers were paid."""
    offer, found = town.offer(), 0
    for number in range(times):
        crowd = Strangers(town, port, tap, 0)
        headers = crowd.header(town.buyer(7).payload(offer), "pay_" + secrets.token_hex(16))
        paths = [f"/item/greedy/{number}/{at}" for at in range(GREEDY)]
        answers = await asyncio.gather(
            *(exchange(port, raw("GET", headers, path=path)) for path in paths)
        )
        given = [answer for _, answer in answers if b"secret" in answer]
        assert len(given) == 1, answers
        found += 1
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("client", CLIENTS)
async def test_each_payment_is_answered_to_its_payer_once(
    town: Street, family: str, client: str
) -> None:
    if client != "payer":
        command(client)  # skips the test if the client is missing
    market, begun = Market(), time.monotonic()
    before = await town.balance(town.shop.address)
    async with Facilitator([town.settler()]) as facilitator:
        tap = Tap(facilitator)
        wall = Paywall(tap, {"/item/*": Sale([town.offer()])}, grants=MemoryGrants())
        async with SERVERS[family](market, wall) as port:
            urls = [f"http://127.0.0.1:{port}/item/{number}" for number in range(PAID)]
            crowd = Strangers(town, port, tap, HOSTILE)
            greedy = max(1, HOSTILE // 100)
            work: list[Coroutine[Any, Any, Any]] = [
                pay_with(client, town, urls), crowd.run(), be_greedy(town, port, tap, greedy),
            ]  # fmt: skip
            bought, _, eaten = await asyncio.gather(*work)
    seconds = time.monotonic() - begun
    print(
        f"{family}, {client}: {PAID} paid, {crowd.sent + greedy * (GREEDY - 1)} hostile requests"
        f" in {seconds:.0f} s; statuses of strangers {dict(crowd.statuses)}"
    )
    assert crowd.stolen == []
    for url in urls:
        path = "/" + url.split("/", 3)[-1]
        (made,) = market.made.pop(path)
        assert set(bought[url]) == {made}
    assert all(path.startswith("/item/greedy/") for path in market.made)
    assert sum(len(made) for made in market.made.values()) == eaten
    assert await town.balance(town.shop.address) == before + (PAID + eaten) * PRICE
