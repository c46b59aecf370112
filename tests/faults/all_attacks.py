"""Runs all kinds of attack on a node at the same time: ``python -m tests.faults.all_attacks``.

``--target node`` attacks a node with the default options. ``--target op`` attacks a follower of an
OP-stack chain whose feed also sends false slices. The attacks:

- Greedy clients repeat calls that never end.
- Senders fill each slice with one long precompile call.
- Senders try to push honest transactions out of the pool.
- Connections send fragments, garbage and incomplete messages.

All attackers have the address 127.0.0.1. Meanwhile a client at 127.0.0.2 sends short requests, and
a client at 127.0.0.3 sends transfers and waits until they are visible in a slice. Both clients do
the same on a quiet node, which nobody attacks. A timer in a separate process measures how late the
operating system wakes a process. If the quiet node or the timer also misses an aim, the machine was
too busy, and the aim says nothing about the attacked node.

At the end every block is executed again from its bytes. Every transaction that the node accepted
must be in a block, still wait in the pool, or have a reason for its removal. Otherwise the exit
status is 1. The report lists missed aims, which do not change the exit status.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any, Final

import aiohttp
from aiohttp import web

from fastevm.bench.cadence import CHAIN_ID, percentile, spread
from fastevm.bench.node.fairness import attack, greedy_bodies
from fastevm.bench.node.launch import (
    HOST,
    LoopThread,
    NodeProcess,
    fastevm_node,
    free_port,
    wait_for,
)
from fastevm.bench.node.load import Connection, LoadError, cpu_seconds, http
from fastevm.bench.report.figures import aim
from fastevm.core.execution.transaction.sidecar import BlobSidecar, encode_pooled
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import FastevmError
from fastevm.node import Mining, dev_node
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.op_stack import DEFAULT_OP_FORK
from fastevm.rpc_client.messages import RpcRefusal, request_body
from tests.faults.hostile_clients import UPGRADE, HostileClients, frame

GWEI: Final = 10**9
READER_HOST: Final = "127.0.0.2"
SENDER_HOST: Final = "127.0.0.3"
ACCOUNTS: Final = 32
LONG_SENDERS: Final = range(8)
LOW_BIDDERS: Final = range(8, 13)
DRAINERS: Final = range(13, 19)
BLOB_SENDERS: Final = range(19, 23)
HONEST: Final = range(24, 28)
HONEST_CAP: Final = 1_000 * GWEI  # the attackers pay base fees up to their own cap of 50 gwei
HONEST_EVERY: Final = 0.12  # seconds between two transfers
ASK_EVERY: Final = 0.05  # seconds between two requests of the same method
TIMER_SECONDS: Final = 0.01
RETRY_SECONDS: Final = 0.2
SAMPLE_SECONDS: Final = 0.5
START_SECONDS: Final = 3.0  # seconds until all attackers are running
DRAIN_SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 60.0
LIE_EVERY: Final = 20.0  # seconds between two false slices of the feed
LIE_LASTS: Final = 6.0  # seconds that a false slice can affect what the follower serves
EARLY_EVERY: Final = 0.5
HOSTILE_RATE: Final = 5.0  # attacks per second
FLOOD_FRAMES: Final = 200_000
FLOODS: Final = 4  # connections that send fragments
IDLE: Final = 300  # connections that send nothing
KINDS: Final = ("calls", "long", "pool", "sockets")
MEGABYTE: Final = 1 << 20

BLAKE2F: Final = bytes(19) + b"\x09"
# BLAKE2F rounds that take about 0.2 s, as long as a slice.
ROUNDS: Final = 16_400_000
LONG_GAS: Final = 16_700_000
# For a blob of zeros this is both the KZG commitment and the proof.
POINT_AT_INFINITY: Final = b"\xc0" + bytes(47)
EMPTY_CALL: Final = {"to": "0x" + "00" * 19 + "ee"}

# Description, group and figure in the report, and limit in milliseconds or MiB.
AIMS: Final = (
    ("eth_blockNumber of another client, p99", "eth_blockNumber", "p99", 20.0),
    ("eth_call of another client, p99", "eth_call", "p99", 100.0),
    ("eth_feeHistory of another client, p99", "eth_feeHistory", "p99", 200.0),
    ("an honest transfer visible, p99", "visible", "p99", 450.0),
    ("lateness of slices, largest", "lateness", "max", 50.0),
    ("memory, MiB", "memory", "max", 600.0),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings that all processes of a run share.

    ``begin``, ``until``: ``time.monotonic`` times.
    """

    port: int
    quiet_port: int
    begin: float
    until: float
    kinds: frozenset[str] = frozenset(KINDS)


# --- clients that are measured --------------------------------------------------------------------


def ask_for(port: int, body: bytes, until: float, latencies: list[float]) -> int:
    """Sends the same request at a steady rate. Returns how many requests had no result.

    Appends the latency of each, counted from the time when the request was due.
    """
    connection, request, failures = None, http(body), 0
    due = time.monotonic()
    while (now := time.monotonic()) < until:
        if now < due:
            time.sleep(due - now)
        try:
            if connection is None:
                connection = Connection(port, READER_HOST)
            connection.send(request)
            while (answer := connection.receive()) is None:
                pass
            failures += b'"result"' not in answer
        except (LoadError, OSError):
            connection, failures = None, failures + 1
        latencies.append(time.monotonic() - due)
        due += ASK_EVERY
    return failures


def read(plan: Plan) -> dict[str, Any]:
    """Sends the honest client's requests to both nodes.

    Returns latencies in seconds by node and method, and how many requests to the target failed.
    """
    bodies = {
        "eth_blockNumber": request_body("eth_blockNumber"),
        "eth_call": request_body("eth_call", [EMPTY_CALL, "latest"]),
        "eth_feeHistory": request_body("eth_feeHistory", ["0x5", "latest", [10, 50, 90]]),
    }
    time.sleep(max(0.0, plan.begin - time.monotonic()))
    found: dict[str, Any] = {"failures": 0}

    def run(name: str, port: int, method: str) -> None:
        latencies = found.setdefault(name, {}).setdefault(method, [])
        failures = ask_for(port, bodies[method], plan.until, latencies)
        found["failures"] += failures if name == "target" else 0

    threads = [
        Thread(target=run, args=(name, port, method))
        for name, port in (("target", plan.port), ("quiet", plan.quiet_port))
        for method in bodies
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@dataclass(slots=True)
class Transfers:
    """The transfers of an honest client, with the times when they were sent and visible.

    Times are seconds of ``time.monotonic``.
    """

    sent: dict[str, float] = field(default_factory=dict)
    visible: dict[str, float] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)


class Client:
    """An HTTP client. Its session determines the source address."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self.session, self.url = session, f"http://{HOST}:{port}"

    async def call(self, method: str, *params: Any) -> Any:
        """Returns the result. Raises RpcRefusal, OSError or TimeoutError."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            async with self.session.post(self.url, json=body) as response:
                answer = await response.json(content_type=None)
        except (aiohttp.ClientError, ValueError) as error:
            raise OSError(str(error)) from None
        if "error" in answer:
            raise RpcRefusal(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]


def session_of(address: str) -> aiohttp.ClientSession:
    """Returns a session that connects from ``address``, because limits apply per address."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0), limit=0)
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    return aiohttp.ClientSession(connector=connector, timeout=timeout)


def signed(who: int, nonce: int, **fields: Any) -> Transaction:
    """Returns a signed transaction of a development account."""
    values = {"to": b"\xb0" * 20, "value": 1, "gas_limit": 21_000, "chain_id": CHAIN_ID}
    prices = {"max_fee_per_gas": 50 * GWEI, "max_priority_fee_per_gas": GWEI}
    made = Transaction.build(**{**values, **prices, "nonce": nonce, **fields})
    return made.sign(dev_accounts(ACCOUNTS)[who].private_key)


async def watch_slices(client: Client, transfers: Transfers) -> None:
    """Records when each transfer first appears in a slice."""
    subscribe = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe"}
    while True:
        with suppress(aiohttp.ClientError, OSError):
            async with client.session.ws_connect(client.url) as socket:
                await socket.send_json({**subscribe, "params": ["newFlashblockTransactions"]})
                async for message in socket:
                    now, note = time.monotonic(), json.loads(message.data)
                    result = note.get("params", {}).get("result")
                    if isinstance(result, str):
                        transfers.visible.setdefault(result, now)
        await asyncio.sleep(RETRY_SECONDS)


async def transfer(client: Client, plan: Plan) -> Transfers:
    """Sends transfers from the honest accounts in rotation, and waits until they are visible."""
    transfers, number = Transfers(), 0
    watching = asyncio.create_task(watch_slices(client, transfers))
    await asyncio.sleep(max(0.0, plan.begin - time.monotonic()))
    nonces = dict.fromkeys(HONEST, 0)
    due = time.monotonic()
    while due < plan.until:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        who = HONEST[number % len(HONEST)]
        made = signed(who, nonces[who], max_fee_per_gas=HONEST_CAP)
        name = "0x" + made.hash.hex()
        transfers.sent[name] = due
        try:
            await client.call("eth_sendRawTransaction", "0x" + made.raw.hex())
        except (RpcRefusal, OSError, TimeoutError) as error:
            transfers.refused[name] = 1
            _count(transfers.refused, str(error)[:80])
            del transfers.sent[name]
        else:
            nonces[who] += 1
        number, due = number + 1, due + HONEST_EVERY
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while not transfers.sent.keys() <= transfers.visible.keys():
                await asyncio.sleep(RETRY_SECONDS)
    watching.cancel()
    return transfers


def transfer_to_both(plan: Plan) -> tuple[Transfers, Transfers]:
    """Runs the honest client against both nodes.

    Returns the transfers to the target and the quiet node.
    """

    async def both() -> tuple[Transfers, Transfers]:
        async with session_of(SENDER_HOST) as session:
            ports = (plan.port, plan.quiet_port)
            target, quiet = await asyncio.gather(
                *(transfer(Client(session, port), plan) for port in ports)
            )
            return target, quiet

    return asyncio.run(both())


def watch_timer(plan: Plan) -> list[float]:
    """Returns by how many seconds a timer fires late in a process that does nothing else.

    Lateness there is due to the machine, not to the node.
    """

    async def tick() -> list[float]:
        late: list[float] = []
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, plan.begin - time.monotonic()))
        while (due := loop.time() + TIMER_SECONDS) < plan.until:
            await asyncio.sleep(TIMER_SECONDS)
            late.append(loop.time() - due)
        return late

    return asyncio.run(tick())


# --- attackers ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Offers:
    """The attackers' transactions: hashes of accepted ones, and error texts of rejected ones."""

    accepted: list[str] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)

    async def make(self, client: Client, raw: bytes, tx_hash: bytes) -> bool:
        """Submits a transaction. Returns whether the node accepted it."""
        try:
            await client.call("eth_sendRawTransaction", "0x" + raw.hex())
        except (RpcRefusal, OSError, TimeoutError) as error:
            _count(self.refused, str(error)[:80])
            return False
        self.accepted.append("0x" + tx_hash.hex())
        return True


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


async def next_nonce(client: Client, who: int) -> int:
    """Returns the next nonce of an account. Repeats the request if the node does not answer."""
    address = "0x" + dev_accounts(ACCOUNTS)[who].address.hex()
    while True:
        with suppress(RpcRefusal, OSError, TimeoutError):
            return int(await client.call("eth_getTransactionCount", address, "pending"), 16)
        await asyncio.sleep(RETRY_SECONDS)


async def send_long(client: Client, who: int, offers: Offers) -> None:
    """Repeatedly sends a long precompile call, with a higher tip than honest transactions."""
    for number in range(10**6):
        data = (ROUNDS - number).to_bytes(4, "big") + bytes(range(208)) + b"\x01"
        nonce = await next_nonce(client, who)
        made = signed(
            who, nonce, to=BLAKE2F, value=0, data=data, gas_limit=LONG_GAS,
            max_priority_fee_per_gas=2 * GWEI,
        )  # fmt: skip
        if not await offers.make(client, made.raw, made.hash):
            await asyncio.sleep(RETRY_SECONDS)
            continue
        while await next_nonce(client, who) <= nonce:
            await asyncio.sleep(RETRY_SECONDS)
        await asyncio.sleep(RETRY_SECONDS)


async def bid_low(client: Client, who: int, offers: Offers) -> None:
    """Offers transactions with nonce gaps or below the base fee, repeatedly."""
    for round_number in range(10**6):
        first = await next_nonce(client, who)
        for nonce in range(first, first + 64):
            cap = 100 + round_number  # wei per gas, below every base fee
            made = signed(who, nonce, max_fee_per_gas=cap, max_priority_fee_per_gas=cap)
            await offers.make(client, made.raw, made.hash)
        for nonce in range(first + 2, first + 40):  # nonces behind a gap
            made = signed(who, nonce, max_priority_fee_per_gas=(2 + round_number) * GWEI)
            await offers.make(client, made.raw, made.hash)
        await asyncio.sleep(RETRY_SECONDS)


async def drain(client: Client, who: int, offers: Offers) -> None:
    """Queues transactions behind a nonce gap, then spends the balance in the missing transaction.

    The queued transactions can then no longer be paid.
    """
    address = dev_accounts(ACCOUNTS)[who].address
    for _ in range(10**6):
        first = await next_nonce(client, who)
        for nonce in range(first + 1, first + 24):
            made = signed(who, nonce, max_priority_fee_per_gas=9 * GWEI)
            await offers.make(client, made.raw, made.hash)
        with suppress(RpcRefusal, OSError, TimeoutError):
            balance = int(await client.call("eth_getBalance", "0x" + address.hex(), "pending"), 16)
            cost = 21_000 * 50 * GWEI
            value = balance - 2 * cost
            made = signed(who, first, to=address, value=value, max_priority_fee_per_gas=9 * GWEI)
            await offers.make(client, made.raw, made.hash)
        await asyncio.sleep(RETRY_SECONDS)


async def send_blobs(client: Client, who: int, offers: Offers) -> None:
    """Offers blob transactions with a blob fee of 2 wei."""
    hashes = [b"\x01" + sha256(POINT_AT_INFINITY).digest()[1:]]
    sidecar = BlobSidecar(1, (bytes(131_072),), (POINT_AT_INFINITY,), (POINT_AT_INFINITY,) * 128)
    for number in range(10**6):
        nonce = await next_nonce(client, who)
        for position in range(16):
            made = signed(
                who, nonce + position, max_fee_per_blob_gas=2, blob_versioned_hashes=hashes,
                max_priority_fee_per_gas=(3 + number) * GWEI,
            )  # fmt: skip
            await offers.make(client, encode_pooled(made, sidecar), made.hash)
        await asyncio.sleep(RETRY_SECONDS)


def send_hostile(plan: Plan) -> Offers:
    """Runs the attacks on slices and pool. Returns the transactions offered."""
    offers = Offers()

    async def run() -> None:
        async with session_of(HOST) as session:
            client = Client(session, plan.port)
            tasks = [
                asyncio.create_task(send(client, who, offers))
                for kind, send, senders in (
                    ("long", send_long, LONG_SENDERS),
                    ("pool", bid_low, LOW_BIDDERS),
                    ("pool", drain, DRAINERS),
                    ("pool", send_blobs, BLOB_SENDERS),
                )
                if kind in plan.kinds
                for who in senders
            ]
            await _until(plan, tasks)

    asyncio.run(run())
    return offers


def send_frames(plan: Plan) -> dict[str, int]:
    """Runs the attacks on event loop and memory. Returns how often each attack was tried."""
    if "sockets" not in plan.kinds:
        return {}
    thread = LoopThread()
    hostile = HostileClients(thread, [plan.port], rate=HOSTILE_RATE)
    hostile.start()

    async def run() -> None:
        tasks = [asyncio.create_task(flood(plan.port)) for _ in range(FLOODS)]
        await _until(plan, [*tasks, asyncio.create_task(idle(plan.port))])

    asyncio.run(run())
    hostile.stop()
    thread.close()
    return dict(hostile.tried)


async def _until(plan: Plan, tasks: Sequence[asyncio.Task[None]]) -> None:
    await asyncio.sleep(max(0.0, plan.until - time.monotonic()))
    for task in tasks:
        task.cancel()
    for failed in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(failed, asyncio.CancelledError) and failed is not None:
            raise failed


async def flood(port: int) -> None:
    """Opens WebSockets and sends one message in empty and one-byte fragments, repeatedly.

    Every second time it sends them before the handshake is answered.
    """
    fragments = (frame(b"", opcode=0, is_last=False) + frame(b"x", opcode=0, is_last=False)) * 512
    for number in range(10**9):
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(UPGRADE)
                if number % 2:
                    await reader.readuntil(b"\r\n\r\n")
                writer.write(frame(b"[", is_last=False))
                for _ in range(FLOOD_FRAMES // 1024):
                    writer.write(fragments)
                    await writer.drain()
            finally:
                writer.transport.abort()
        await asyncio.sleep(RETRY_SECONDS)


async def idle(port: int) -> None:
    """Keeps idle connections open."""
    writers: list[asyncio.StreamWriter] = []
    try:
        while True:
            writers = [writer for writer in writers if not writer.transport.is_closing()]
            while len(writers) < IDLE:
                with suppress(OSError):
                    writers.append((await asyncio.open_connection(HOST, port))[1])
                await asyncio.sleep(0.01)
            await asyncio.sleep(RETRY_SECONDS)
    finally:
        for writer in writers:
            writer.transport.abort()


class LyingFeed:
    """Forwards a builder's feed, and adds what an attacker who controls the feed could send.

    It constantly adds slices of blocks far ahead, and megabytes of garbage. Every `LIE_EVERY`
    seconds it adds a slice with a deposit of 2^62 gas, after which the follower must discard the
    block.
    """

    def __init__(self, thread: LoopThread, url: str) -> None:
        self.thread, self.source = thread, url
        self.port = free_port()
        self.lies: list[float] = []
        self.lying = False
        self._runner = web.AppRunner(self._application())
        thread.run(self._start())

    def close(self) -> None:
        """Ends the feed."""
        self.thread.run(self._runner.cleanup())

    def _application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/feed", self._pass_on)
        return application

    async def _start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, self.port, shutdown_timeout=1.0).start()

    async def _pass_on(self, request: web.Request) -> web.WebSocketResponse:
        target = web.WebSocketResponse()
        await target.prepare(request)
        async with aiohttp.ClientSession() as session, session.ws_connect(self.source) as source:
            lied = early = time.monotonic()
            async for message in source:
                await target.send_str(message.data)
                now = time.monotonic()
                if self.lying and now - early > EARLY_EVERY:
                    early = now
                    await target.send_str(_early(message.data))
                    await target.send_str("[" * MEGABYTE)
                if self.lying and now - lied > LIE_EVERY:
                    lied = now
                    self.lies.append(now)
                    await target.send_str(_false(message.data))
        return target


def _early(data: str) -> str:
    """Returns a large slice that claims to belong to a block far ahead."""
    found = json.loads(data)
    found["index"] = 1
    found["metadata"]["block_number"] += 1 + int(time.monotonic()) % 5
    found["diff"]["transactions"] = ["0x" + "02" * 1_000] * 1_000
    return json.dumps(found)


def _false(data: str) -> str:
    """Returns the next slice of the block, with a deposit that exceeds the gas of any block."""
    found = json.loads(data)
    deposit = Transaction.build(
        sender=b"\x11" * 20, to=BLAKE2F, gas_limit=2**62, source_hash=b"\x22" * 32, data=b""
    )
    found["index"] += 1
    found["diff"]["transactions"] = ["0x" + deposit.raw.hex()]
    return json.dumps(found)


# --- the run --------------------------------------------------------------------------------------


class AllAttacks:
    """The nodes of a run: the target, the builder that it follows if any, and a quiet node."""

    def __init__(self, target: str) -> None:
        self.is_op = target == "op"
        self.stack = ExitStack()
        own = ["--accounts", str(ACCOUNTS), *["--op"] * self.is_op]
        self.target = self.builder = self._started(*own)
        self.feed: LyingFeed | None = None
        if self.is_op:
            thread = LoopThread()
            self.stack.callback(thread.close)
            self.feed = LyingFeed(thread, self.builder.feed)
            self.stack.callback(self.feed.close)
            source = ("--upstream-url", self.builder.url)
            slices = ("--preconf-url", f"ws://{HOST}:{self.feed.port}/feed")
            self.target = self._started(*own, *source, *slices)
        self.quiet = self._started(*own)

    def _started(self, *options: str) -> NodeProcess:
        node = self.stack.enter_context(fastevm_node(*options))
        wait_for(lambda: node.ask("eth_blockNumber") != "0x0", ANSWER_SECONDS, "no block comes")
        return node

    def close(self) -> None:
        """Ends all nodes and the feed."""
        self.stack.close()

    def run(self, seconds: float, connections: int, kinds: frozenset[str]) -> dict[str, Any]:
        """Attacks for ``seconds``, then verifies. Returns the report."""
        bodies = greedy_bodies(connections) if "calls" in kinds else []
        context = multiprocessing.get_context("spawn")
        greedy = context.Process(target=attack, args=(self.target.port, bodies), daemon=True)
        before = self.target.metrics()
        if self.feed is not None:
            self.feed.lying = True
        with ProcessPoolExecutor(5, mp_context=context) as processes:
            jobs: tuple[Callable[[Plan], Any], ...] = (
                read, transfer_to_both, watch_timer, send_hostile, send_frames,
            )  # fmt: skip
            # Starts all worker processes before the attacks, because imports take seconds on a busy
            # machine.
            list(processes.map(imported, jobs))
            begin = time.monotonic() + START_SECONDS
            plan = Plan(self.target.port, self.quiet.port, begin, begin + seconds, kinds)
            results = [processes.submit(job, plan) for job in jobs]
            if bodies:
                greedy.start()
            try:
                use = self._watch(plan, results)
            finally:
                if bodies:
                    greedy.kill()
                    greedy.join()
                if self.feed is not None:
                    self.feed.lying = False
            reads, transfers, timer, offers, tried = [result.result() for result in results]
        after = self.target.metrics()
        found = self._figures(plan, reads, transfers, timer, before, after)
        found |= {"attacks": tried, "accepted": len(offers.accepted), "refused": offers.refused}
        return found | use | self._verify(transfers[0], offers)

    def _watch(self, plan: Plan, results: Sequence[Future[Any]]) -> dict[str, Any]:
        """Samples the node's memory and the machine's load until the attacks end."""
        memory, loads = [], []
        time.sleep(max(0.0, plan.begin - time.monotonic()))
        used, ticks = cpu_seconds(self.target.pid), _machine_ticks()
        while (now := time.monotonic()) < plan.until:
            for result in results:
                if result.done() and result.exception() is not None:
                    result.result()
            memory.append(self.target.memory() / MEGABYTE)
            loads.append(os.getloadavg()[0])
            time.sleep(min(SAMPLE_SECONDS, plan.until - now))
        seconds = plan.until - plan.begin
        passed = [after - before for before, after in zip(ticks, _machine_ticks(), strict=True)]
        return {
            "memory": {"max": round(max(memory)), "p50": round(percentile(memory, 0.5))},
            "machine": {
                "load": round(percentile(loads, 0.5), 1),
                "cores": os.cpu_count(),
                "busy": round(1 - passed[1] / max(1, passed[0]), 2),
                "stolen": round(passed[2] / max(1, passed[0]), 3),
                "cores_of_target": round((cpu_seconds(self.target.pid) - used) / seconds, 2),
            },
        }

    def _figures(
        self,
        plan: Plan,
        reads: dict[str, Any],
        transfers: tuple[Transfers, Transfers],
        timer: list[float],
        before: dict[str, float],
        after: dict[str, float],
    ) -> dict[str, Any]:
        """Returns the figures of the report: latencies and lateness in milliseconds, and counts.

        Latencies of the quiet node are in the member ``quiet``.
        """
        lies = [] if self.feed is None else self.feed.lies
        quiet = self.quiet.metrics()
        late = ("p50", "p99", "max")
        counts = ("slices_missed_total", "slices_total", "long_transactions_total")
        return {
            "seconds": plan.until - plan.begin,
            **{method: spread(times) for method, times in reads["target"].items()},
            "visible": spread(_waits(transfers[0], lies)),
            "lateness": {name: self._slices()[f"slice_lateness_ms_{name}"] for name in late},
            "timer": spread(timer),
            "quiet": {
                **{method: spread(times) for method, times in reads["quiet"].items()},
                "visible": spread(_waits(transfers[1], [])),
                "lateness": {name: quiet[f"slice_lateness_ms_{name}"] for name in late},
            },
            "unanswered": reads["failures"],
            "transfers": len(transfers[0].sent),
            "transfers_refused": {
                text: count for text, count in transfers[0].refused.items() if text[:2] != "0x"
            },
            "lies": len(lies),
            "counters": {
                name: after[name] - before.get(name, 0) for name in counts if name in after
            },
        }

    def _slices(self) -> dict[str, float]:
        """Returns the metrics of the node that builds the slices."""
        return self.builder.metrics()

    def _verify(self, transfers: Transfers, offers: Offers) -> dict[str, Any]:
        """Executes all blocks again, and looks up the outcome of every accepted transaction."""
        lost = list(transfers.sent)

        def all_sealed() -> bool:
            lost[:] = [name for name in lost if not self._is_sealed(name)]
            return not lost

        with suppress(TimeoutError):
            wait_for(all_sealed, DRAIN_SECONDS, "a transfer is in no block")
        outcomes: dict[str, int] = {}
        without: list[str] = []
        for name in offers.accepted:
            outcome = self._outcome(name)
            if outcome == "Unknown":
                without.append(name)
            else:
                _count(outcomes, outcome)

        def all_found() -> bool:
            without[:] = [name for name in without if self._outcome(name) == "Unknown"]
            return not without

        # A pre-confirmed transaction has no outcome until its block is sealed, a few seconds later.
        with suppress(TimeoutError):
            wait_for(all_found, LIE_LASTS, "a transaction has no outcome")
        return {
            "never_in_a_block": len(lost),
            "without_outcome": len(without),
            "outcomes": outcomes,
            "wrong_blocks": self._replay(),
            "blocks": int(self.target.ask("eth_blockNumber"), 16),
        }

    def _is_sealed(self, tx_hash: str) -> bool:
        receipt = self.target.ask("eth_getTransactionReceipt", tx_hash)
        return bool(receipt) and int(receipt["blockHash"], 16) != 0

    def _outcome(self, tx_hash: str) -> str:
        if self._is_sealed(tx_hash):
            return "sealed"
        status = self.builder.ask("base_transactionStatus", tx_hash)
        if self._is_sealed(tx_hash):  # sealed between the two requests
            return "sealed"
        return str(status.get("reason", status["status"]))[:60]

    def _replay(self) -> list[str]:
        """Executes every block of the target from its bytes, beginning with the genesis block.

        Returns the errors.
        """
        genesis = self.target.ask("eth_getBlockByNumber", "0x0", False)
        start = int(genesis["timestamp"], 16)
        op_fork = {"op_fork": DEFAULT_OP_FORK} if self.is_op else {}
        chain = dev_node(
            accounts=ACCOUNTS, mining=Mining.MANUAL, timestamp=start, **op_fork
        ).chain  # fmt: skip
        wrong = [] if shown_hash(chain.head.hash) == genesis["hash"] else ["the genesis differs"]
        for number in range(1, int(self.target.ask("eth_blockNumber"), 16) + 1):
            try:
                chain.add(bytes.fromhex(self.target.ask("debug_getRawBlock", hex(number))[2:]))
            except FastevmError as error:
                return [*wrong, f"block {number}: {error}"]
            block = self.target.ask("eth_getBlockByNumber", hex(number), False)
            if block["hash"] != shown_hash(chain.head.hash):
                wrong.append(f"block {number}: another hash")
        return wrong


def imported(job: object) -> None:
    """Does nothing. Running it makes a worker process import this module."""


def shown_hash(data: bytes) -> str:
    """Returns hex with 0x."""
    return "0x" + data.hex()


def _waits(transfers: Transfers, lies: Sequence[float]) -> list[float]:
    """Returns the seconds from sending a transfer to the slice that contains it.

    Omits transfers during a false slice of the feed. A transfer that was never visible counts as
    `DRAIN_SECONDS`.
    """
    return [
        transfers.visible.get(name, sent + DRAIN_SECONDS) - sent
        for name, sent in transfers.sent.items()
        if not any(lie - LIE_LASTS / 6 < sent < lie + LIE_LASTS for lie in lies)
    ]


def _machine_ticks() -> tuple[int, int, int]:
    """Returns processor ticks since boot: total, idle, and stolen by other virtual machines."""
    with Path("/proc/stat").open() as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4], ticks[7]


def failures(found: dict[str, Any]) -> list[str]:
    """Returns the failures in a report, as sentences. A missed aim is not a failure."""
    wrong = [f"wrong: {text}" for text in found["wrong_blocks"]]
    if found["never_in_a_block"]:
        wrong.append(f"{found['never_in_a_block']} honest transfers are in no block")
    if found["without_outcome"]:
        wrong.append(f"{found['without_outcome']} accepted transactions vanished without a reason")
    if found["unanswered"]:
        wrong.append(f"{found['unanswered']} short questions had no result")
    return wrong


def aims(found: dict[str, Any]) -> list[dict[str, object]]:
    """Returns each aim with the measured figure, and whether the figure meets the aim."""
    return [aim(name, "ms", limit, found[group][figure]) for name, group, figure, limit in AIMS]


def main() -> int:
    """Runs the attacks and prints the report as JSON. Returns 1 if there was a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.all_attacks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of attacks (%(default)s)")
    parser.add_argument("--target", choices=("node", "op"), default="node")
    parser.add_argument(
        "--connections", type=int, default=64, help="with endless calls (%(default)s)"
    )
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=KINDS, help="of attacks (all of them)"
    )
    options = parser.parse_args()
    attacks = AllAttacks(options.target)
    try:
        found = attacks.run(options.seconds, options.connections, frozenset(options.kinds))
    finally:
        attacks.close()
    wrong = failures(found)
    print(json.dumps(found | {"aims": aims(found), "wrong": wrong}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
