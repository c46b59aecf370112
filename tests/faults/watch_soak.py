"""Many ``fastevm_watch`` subscribers under kills, cut links, slow readers and reorganisations.

``python -m tests.faults.watch_soak --seconds 1800 --subscribers 50 --questions 1000`` runs a node
with slices in another process and subscribers here. Each subscriber keeps a copy of its answers and
checks every message: sequence numbers without gaps (or a whole picture that says how many messages
it missed), positions in order, and only answers that differ from the copy. At the end, and from
time to time, each copy must equal fresh eth_calls at the block of the last message.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from typing import Any, Final

import aiohttp
from msgspec import Struct, field

from fastevm.bench.node.launch import server_of
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Node, dev_node
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.server import Server

# Returns the slot of its first argument; with two arguments it stores the second there.
TABLE_CODE: Final = "0x602036116010575f35545f5260205ff35b6020355f355500"
TABLE: Final = "0x" + "7a" * 20
CLOCK: Final = "0x" + "7b" * 20
CLOCK_CODE: Final = "0x435f5260205ff3"  # returns NUMBER
LARGEST_MESSAGE: Final = 2**26
QUIET_SECONDS: Final = 20.0  # in which a subscriber must get its first message


class Fault(AssertionError):
    """A subscriber got what it must not get, or did not get what it must."""


class Copy(Struct):
    """The answers as a subscriber knows them."""

    slots: list[int]  # question -> slot of the table; the last question is about the block
    answers: dict[int, str] = field(default_factory=dict)
    sequence: int = 0
    number: int = 0
    wholes: int = 0
    missed: int = 0
    messages: int = 0
    changes: int = 0

    def apply(self, message: dict[str, Any]) -> None:
        """Check a message and apply it."""
        self.messages += 1
        is_whole = message.get("snapshot", False)
        told = {answer["question"]: answer for answer in message["answers"]}
        if len(told) != len(message["answers"]):
            raise Fault("a question is answered twice in a message")
        if is_whole:
            self.wholes += 1
            self.missed += message["missed"]
            if sorted(told) != list(range(len(self.slots) + 1)):
                raise Fault("a whole picture lacks answers")
        elif message["sequence"] != self.sequence + 1:
            raise Fault(f"message {message['sequence']} follows {self.sequence}")
        elif message["sequence"] == 1:
            raise Fault("the first message is no whole picture")
        for question, answer in told.items():
            value = answer["returnData"]
            if not is_whole and not answer.get("stale") and self.answers.get(question) == value:
                raise Fault(f"the answer of question {question} came again: {value}")
            if answer.get("stale"):
                continue
            self.changes += not is_whole and question < len(self.slots)
            self.answers[question] = value
        self.sequence = message["sequence"]
        self.number = int(message["blockNumber"], 16)


class Stand:
    """A node with slices and a server, both in this process."""

    def __init__(self, node: Node, server: Server, http: aiohttp.ClientSession) -> None:
        self.node = node
        self.server = server
        self.http = http
        self.random = random.Random(7)
        self.values: dict[int, int] = {}

    @property
    def url(self) -> str:
        """The address of the listener."""
        return self.server.urls[0]

    async def request(self, method: str, *params: Any) -> Any:
        """Return the result of a request over HTTP."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self.http.post(self.url, json=body) as response:
            answer = await response.json()
        if "error" in answer:
            raise Fault(f"{method}: {answer['error']}")
        return answer["result"]

    async def store(self, slots: int, count: int) -> None:
        """Submit transactions that set random slots."""
        sender = hex_bytes(self.node.accounts[0].address)
        for _ in range(count):
            slot, value = self.random.randrange(slots), self.random.randrange(1 << 32)
            data = f"0x{slot:064x}{value:064x}"
            call = {"from": sender, "to": TABLE, "data": data, "gas": "0x30000"}
            await self.request("eth_sendTransaction", call)


async def stand_of(**limits: Any) -> Stand:
    """Start a node of 600 ms blocks and 100 ms slices with the contracts of this test."""
    node = dev_node(block_time_ms=600, slice_interval_ms=100)
    server = server_of(node, "preconf", "geth", limits=Limits(**limits), threads=1)
    await server.start()
    stand = Stand(node, server, aiohttp.ClientSession())
    await stand.request("anvil_setCode", TABLE, TABLE_CODE)
    await stand.request("anvil_setCode", CLOCK, CLOCK_CODE)
    await stand.request("evm_mine")
    return stand


class Subscriber:
    """One client: it watches, checks messages, sometimes reads slowly or cuts the link."""

    def __init__(self, stand: Stand, number: int, questions: int, slots: int) -> None:
        self.stand = stand
        self.random = random.Random(number)
        self.slots = [self.random.randrange(slots) for _ in range(questions - 1)]
        self.tag = "latest" if number % 5 == 0 else "pending"
        self.dialect = number % 2
        self.copy = Copy(self.slots)
        self.totals: Counter[str] = Counter()

    def request(self) -> dict[str, Any]:
        """The object of the subscription."""
        calls = [{"to": TABLE, "data": f"0x{slot:064x}"} for slot in self.slots]
        return {"calls": [*calls, {"to": CLOCK}], "block": self.tag}

    async def run(self, end: float, faults: bool) -> None:
        """Watch until the end, with another connection after each cut."""
        while time.monotonic() < end:
            await self.watch(end, faults)

    async def watch(self, end: float, faults: bool) -> None:
        """Watch over one connection."""
        self.copy = Copy(self.slots)
        cut = end
        if faults:
            cut = min(end, time.monotonic() + self.random.uniform(2, 20))
        url = self.stand.server.urls[self.dialect]
        async with self.stand.http.ws_connect(url, max_msg_size=LARGEST_MESSAGE) as socket:
            params = ["fastevm_watch", self.request()]
            call = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params}
            await socket.send_str(json.dumps(call))
            while (left := cut - time.monotonic()) > 0:
                try:
                    message = await socket.receive(timeout=left)
                except TimeoutError:
                    break
                if message.type is not aiohttp.WSMsgType.TEXT:
                    self.totals["closed"] += 1
                    break
                self.take(json.loads(message.data))
                if faults and self.random.random() < 0.02:
                    await self.sleep(socket, self.random.uniform(0.5, 3))
            if faults and self.random.random() < 0.5:  # without a word
                transport = socket._conn.transport if socket._conn else None
                if transport is not None:
                    transport.abort()
        self.totals["connections"] += 1
        self.totals.update(
            messages=self.copy.messages,
            changes=self.copy.changes,
            wholes=self.copy.wholes,
            missed=self.copy.missed,
        )

    async def sleep(self, socket: aiohttp.ClientWebSocketResponse, seconds: float) -> None:
        """Read nothing for a while."""
        transport = socket._conn.transport if socket._conn else None
        if transport is not None:
            transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(seconds)
        if transport is not None and not transport.is_closing():
            transport.resume_reading()  # type: ignore[attr-defined]

    def take(self, told: dict[str, Any]) -> None:
        """Check a message of the server."""
        if "id" in told:
            if "error" in told:
                raise Fault(f"no subscription: {told['error']}")
            return
        params = told["params"]
        if "error" in params:
            raise Fault(f"the subscription ended: {params['error']}")
        self.copy.apply(params["result"])


async def disturb(stand: Stand, end: float, slots: int, reorgs: bool) -> Counter[str]:
    """Send transactions and reorganise the chain until the end."""
    done: Counter[str] = Counter()
    blocked_tasks: set[asyncio.Task[None]] = set()
    while time.monotonic() < end:
        await stand.store(slots, 4)
        done["transactions"] += 4
        await asyncio.sleep(0.1)
        if reorgs and stand.random.random() < 0.1:
            blocked = asyncio.create_task(block_queue(stand))
            blocked_tasks.add(blocked)
            done["blocked"] += 1
        if reorgs and stand.random.random() < 0.02:
            await stand.request("anvil_reorg", 1, [])
            done["reorganisations"] += 1
    await asyncio.gather(*blocked_tasks)
    return done


async def block_queue(stand: Stand) -> None:
    """Let the queue of one subscriber be full for a while, as if its client read nothing."""
    subscribers = list(stand.server.hub.watching._standing)
    if not subscribers:
        return
    outbox = stand.random.choice(subscribers).session.outbox  # type: ignore[attr-defined]
    messages = stand.server.limits.outbound_messages
    outbox.messages = 0
    await asyncio.sleep(stand.random.uniform(0.2, 1.5))
    outbox.messages = messages


async def check_copies(stand: Stand, subscribers: list[Subscriber]) -> int:
    """Compare each copy with fresh calls once the chain stands still. Returns how many agree."""
    compared = 0
    for subscriber in subscribers:
        for question, slot in enumerate(subscriber.slots):
            call = {"to": TABLE, "data": f"0x{slot:064x}"}
            found = await stand.request("eth_call", call, subscriber.tag)
            if subscriber.copy.answers.get(question) != found:
                known = subscriber.copy.answers.get(question)
                raise Fault(f"question {question} of a copy is {known}, the node has {found}")
            compared += 1
    return compared


async def soak(
    seconds: float, subscribers: int, questions: int, *, slots: int, faults: bool, **limits: Any
) -> Counter[str]:
    """Run everything and return what happened. Raises Fault."""
    stand = await stand_of(
        client_watch_questions=2 * subscribers * questions,
        watch_questions=2 * subscribers * questions,
        client_watch_gas=10**12,
        address_watch_size=2**30,
        watch_size=2**30,
        **limits,
    )
    try:
        end = time.monotonic() + seconds
        clients = [Subscriber(stand, n, questions, slots) for n in range(subscribers)]
        still = end + 4.0  # nothing is sent in the last seconds, so that the copies catch up
        tasks = [asyncio.create_task(client.run(end, faults)) for client in clients]
        done = await disturb(stand, end, slots, faults)
        await asyncio.gather(*tasks)
        calm = [Subscriber(stand, n, min(questions, 50), slots) for n in range(subscribers)]
        await asyncio.gather(
            *(client.watch(still, False) for client in calm),
            _some_more(stand, slots, still - 3.0),
        )
        done["compared"] = await check_copies(stand, calm)
        for client in (*clients, *calm):
            done.update(client.totals)
        gauges = stand.server.hub.watching.gauges()
        done.update({name: round(value, 3) for name, value in gauges.items()})  # type: ignore[arg-type]
        return done
    finally:
        await stand.http.close()
        await stand.server.stop()


async def _some_more(stand: Stand, slots: int, end: float) -> None:
    while time.monotonic() < end:
        await stand.store(slots, 2)
        await asyncio.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--subscribers", type=int, default=50)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=5000)
    options = parser.parse_args()
    done = asyncio.run(
        soak(
            options.seconds,
            options.subscribers,
            options.questions,
            slots=options.slots,
            faults=True,
            outbound_size=2**20,
        )
    )
    for name, count in sorted(done.items()):
        print(f"{name:40} {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
