"""Tests many paid requests while facilitators are killed: each is paid once, without reverts.

Two facilitators run as separate programs with the same key and the same store. Payers present a
payment several times concurrently, and again until they get an answer. FASTEVM_X402_REQUESTS sets
the number of requests.
"""

import asyncio
import os
import random
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from fastevm.payments.vault import KEY_VARIABLE, new_key
from fastevm.payments.x402 import (
    Payment,
    Paywall,
    RemoteFacilitator,
    Requirements,
    Sale,
    payment_middleware,
)
from fastevm.payments.x402.program import SIGNER_VARIABLE

from .street import PRICE, Served, Street, street, usdc

REQUESTS = int(os.environ.get("FASTEVM_X402_REQUESTS", "24"))
AT_ONCE = 24
KILLS_EVERY = (2.0, 6.0)  # minimum and maximum seconds between two kills
USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5"


class Program:
    """A facilitator process that is killed and restarted on the same port."""

    def __init__(self, town: Street, key: str) -> None:
        self.town, self.key, self.port, self.starts = town, key, 0, 0
        self.process: Process | None = None

    async def start(self) -> None:
        environment = {
            **os.environ,
            KEY_VARIABLE: self.key,
            SIGNER_VARIABLE: "0x" + bytes(self.town.accounts[2].key).hex(),
        }
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fastevm", "pay", "facilitator",
            "--node", self.town.server.urls[0], "--asset", "USDC",
            "--store", f"sqlite:///{self.town.folder / 'shared.db'}",
            "--port", str(self.port), "--settle-for", "5",
            env=environment, stdout=PIPE, stderr=(self.town.folder / "facilitator.log").open("a"),
        )  # fmt: skip
        assert self.process.stdout is not None
        while b"Listening" not in (line := await self.process.stdout.readline()):
            assert line, (self.town.folder / "facilitator.log").read_text()
        self.port = int(line.split(b":")[2].split()[0])
        self.starts += 1

    async def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def die_often(self) -> None:
        while True:
            await asyncio.sleep(random.uniform(*KILLS_EVERY))
            await self.kill()
            await self.start()


class Either:
    """An engine that sends each call to a random facilitator."""

    def __init__(self, programs: list[Program]) -> None:
        self.remotes = [
            RemoteFacilitator(f"http://127.0.0.1:{program.port}") for program in programs
        ]

    async def verify(self, payment: Payment, offer: Requirements) -> Any:
        return await random.choice(self.remotes).verify(payment, offer)

    async def settle(self, payment: Payment, offer: Requirements, claim: str = "") -> Any:
        return await random.choice(self.remotes).settle(payment, offer, claim)

    async def close(self) -> None:
        for remote in self.remotes:
            await remote.close()


async def buy(town: Street, session: aiohttp.ClientSession, url: str, index: int) -> float:
    """Presents one payment until it is answered. Returns the seconds since it was signed."""
    buyer = town.buyer(4 + index % 6)
    async with session.get(url) as asked:
        headers = dict([buyer.pay(asked.headers, await asked.read())])
    started = time.monotonic()

    async def present() -> str:
        while True:
            async with session.get(url, headers=headers) as answer:
                body = await answer.text()
                if answer.status != 503:
                    assert answer.status == 200, (answer.status, body)
                    return body
            await asyncio.sleep(0.2)

    bodies = await asyncio.gather(*(present() for _ in range(random.choice((1, 1, 2, 3)))))
    assert set(bodies) == {f'{{"item": {index}}}'}
    return time.monotonic() - started


async def sell(town: Street, programs: list[Program]) -> list[float]:
    """Pays for all answers while facilitators are killed. Returns the seconds of each."""
    wall = Paywall(Either(programs), {"GET /item/*": Sale([town.offer(max_timeout=3_600)])})

    async def item(request: web.Request) -> web.Response:
        return web.json_response({"item": int(request.match_info["index"])})

    app = web.Application(middlewares=[payment_middleware(wall)])
    app.router.add_get("/item/{index}", item)
    gate = asyncio.Semaphore(AT_ONCE)
    async with Served(app) as served, aiohttp.ClientSession() as session:

        async def one(index: int) -> float:
            async with gate:
                return await buy(town, session, f"{served.url}/item/{index}", index)

        return list(await asyncio.gather(*(one(index) for index in range(REQUESTS))))


async def test_every_request_is_paid_once_though_facilitators_are_killed(tmp_path: Path) -> None:
    random.seed(17)
    town = await street(tmp_path, block_ms=1_000, slice_ms=100)
    key = new_key()
    programs = [Program(town, key) for _ in range(2)]
    before = await town.balance(town.shop.address)
    for program in programs:
        await program.start()
    deaths = [asyncio.create_task(program.die_often()) for program in programs]
    try:
        started = time.monotonic()
        times = sorted(await sell(town, programs))
        whole = time.monotonic() - started
    finally:
        for death in deaths:
            death.cancel()
        await asyncio.gather(*deaths, return_exceptions=True)
        for program in programs:
            await program.kill()
    await town.client.call("evm_mine")
    statuses: Counter[int] = Counter()
    for number in range(town.node.chain.head.number + 1):
        block = town.node.chain.block_by_number(number)
        assert block is not None
        statuses.update(receipt.status for receipt in town.node.chain.receipts_of(block.hash))
    used = await town.client.call(
        "eth_getLogs", {"address": usdc(), "topics": [USED], "fromBlock": "0x0"}
    )
    paid = Counter(tuple(item["topics"]) for item in used)
    kills = sum(program.starts - 1 for program in programs)
    print(
        f"{REQUESTS} requests in {whole:.1f} s, {kills} kills, median {times[len(times) // 2]:.2f}"
        f" s, p95 {times[len(times) * 95 // 100]:.2f} s, receipts {dict(statuses)}"
    )
    assert statuses[0] == 0
    assert len(paid) == REQUESTS and set(paid.values()) == {1}
    assert await town.balance(town.shop.address) == before + REQUESTS * PRICE
    await town.close()
