"""Tests ``fastevm_watch`` subscribers under kills, cut links, slow readers and reorganisations.

``python -m tests.faults.watch_soak --seconds 1800 --subscribers 50 --questions 1000`` runs a node
with slices and a data directory in another process. Most subscribers run in this process, some in
separate processes. The faults: the node is killed and restarted, and the queue of a subscriber is
full for a while. Subscribers close their connections, read nothing for seconds, or are killed. A
proxy resets connections or holds their data back, and blocks are replaced.

Each subscriber keeps a copy of all answers and checks every message:

- Sequence numbers have no gaps, except before a full set of answers, which counts the missed
  messages.
- A message contains only answers that differ from the copy.
- Every transaction stores a larger number than earlier ones. So a slot's value falls only after a
  reorganisation, even if the node was killed.
- Copies for ``latest`` equal the results of eth_call at the block of the message.

At intervals no transactions are sent until all copies equal the state of the node.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
from msgspec import Struct, field

from fastevm.bench.node.launch import HOST, LoopThread, NodeProcess, fastevm_node, free_port
from tests.faults.cut_link import CutLink

# With one argument, returns the slot of that number. With two, stores the second in that slot.
TABLE_CODE: Final = "602036116010575f35545f5260205ff35b6020355f355500"
CLOCK_CODE: Final = "435f5260205ff3"  # returns NUMBER
INIT: Final = "60{size:02x}600a5f3960{size:02x}5ff3"  # init code that returns the code after it
LARGEST_MESSAGE: Final = 2**26
RECEIPT_SECONDS: Final = 30.0
# Two blocks. A later reorganisation does not remove the contracts.
SAFE_SECONDS: Final = 1.5
CALLS_AT_ONCE: Final = 500  # calls per batch request
# Without new transactions, all copies must equal the state within this many seconds.
CALM_SECONDS: Final = 30.0
# For this many seconds after a reorganisation, messages may still contain older values.
REORG_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 0.2
# Minimum and maximum seconds until a subscriber in a separate process is killed.
CHILD_SECONDS: Final = (8.0, 40.0)
CONNECTION_SECONDS: Final = (2.0, 40.0)
LINKED: Final = 5  # one of this many subscribers connects through the proxy
CHILDREN: Final = 2
TAGS: Final = ("pending", "latest")


class Fault(AssertionError):
    """Raised if a subscriber got a wrong message or did not get a message."""


class Copy(Struct):
    """The answers that a subscriber has over its current connection."""

    slots: list[int]  # question -> slot it reads; one more question reads the block number
    answers: dict[int, str] = field(default_factory=dict)
    sequence: int = 0
    number: int = 0
    hash: str | None = None
    wholes: int = 0
    missed: int = 0
    messages: int = 0
    changes: int = 0

    def apply(self, message: dict[str, Any]) -> dict[int, str]:
        """Checks a message and updates the copy. Returns the new answers."""
        self.messages += 1
        is_whole = message.get("snapshot", False)
        reported = {answer["question"]: answer for answer in message["answers"]}
        if len(reported) != len(message["answers"]):
            raise Fault("a question is answered twice in a message")
        missed = message["missed"] if is_whole else 0
        if is_whole:
            self.wholes += 1
            self.missed += missed
            if sorted(reported) != list(range(len(self.slots) + 1)):
                raise Fault("a whole picture lacks answers")
        elif message["sequence"] == 1:
            raise Fault("the first message is no whole picture")
        if message["sequence"] != self.sequence + missed + 1:
            raise Fault(f"message {message['sequence']} follows {self.sequence}, missed: {missed}")
        fresh: dict[int, str] = {}
        for question, answer in reported.items():
            if answer.get("stale"):
                continue
            value = fresh[question] = answer["returnData"]
            if not is_whole and self.answers.get(question) == value:
                raise Fault(f"the answer of question {question} came again: {value}")
        self.changes += 0 if is_whole else len(fresh)
        self.answers |= fresh
        self.sequence = message["sequence"]
        self.number, self.hash = int(message["blockNumber"], 16), message["blockHash"]
        return fresh


class Harness:
    """Runs a node with slices in another process, and records what happened to it."""

    def __init__(self, node: NodeProcess, http: aiohttp.ClientSession) -> None:
        self.node, self.http = node, http
        self.random = random.Random(7)
        self.written = 0  # the number that the last transaction stored
        self.reorganised = 0.0  # monotonic time when the last reorganisation ended
        self.is_calm = False  # if true, no transactions are sent and no faults injected
        self.table = self.clock = self.sender = ""
        self.done: Counter[str] = Counter()

    async def send(self, body: Any) -> Any:
        """Sends a JSON-RPC body over HTTP. Returns the answer."""
        async with self.http.post(self.node.url, json=body) as response:
            return await response.json()

    async def request(self, method: str, *params: Any) -> Any:
        """Returns the result of a JSON-RPC request. Raises Fault if the answer is an error."""
        answer = await self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        if "error" in answer:
            raise Fault(f"{method}: {answer['error']}")
        return answer["result"]

    async def deploy(self) -> None:
        """Deploys the contracts with ordinary transactions, which survive a kill of the node."""
        self.sender = (await self.request("eth_accounts"))[0]
        found = []
        for code in (TABLE_CODE, CLOCK_CODE):
            init = INIT.format(size=len(code) // 2)
            call = {"from": self.sender, "data": f"0x{init}{code}", "gas": "0x100000"}
            sent = await self.request("eth_sendTransaction", call)
            end = time.monotonic() + RECEIPT_SECONDS
            while (receipt := await self.request("eth_getTransactionReceipt", sent)) is None:
                if time.monotonic() > end:
                    raise Fault("a contract was not created")
                await asyncio.sleep(0.05)
            found.append(receipt["contractAddress"])
        self.table, self.clock = found
        await asyncio.sleep(SAFE_SECONDS)

    async def store(self, slots: int, count: int) -> None:
        """Submits transactions that set random slots."""
        for _ in range(count):
            self.written += 1
            data = f"0x{self.random.randrange(slots):064x}{self.written:064x}"
            call = {"from": self.sender, "to": self.table, "data": data, "gas": "0x30000"}
            await self.request("eth_sendTransaction", call)
            self.done["transactions"] += 1

    async def values(self, slots: list[int], block: Any) -> dict[int, str] | None:
        """Reads slots with eth_call. Returns slot -> value, or None if a call fails."""
        found = {}
        for first in range(0, len(slots), CALLS_AT_ONCE):
            some = slots[first : first + CALLS_AT_ONCE]
            calls = [
                {
                    "jsonrpc": "2.0",
                    "id": slot,
                    "method": "eth_call",
                    "params": [{"to": self.table, "data": f"0x{slot:064x}"}, block],
                }
                for slot in some
            ]
            answers = await self.send(calls)
            if any("result" not in answer for answer in answers):
                return None
            found |= {answer["id"]: answer["result"] for answer in answers}
        return found

    async def kill(self) -> None:
        """Kills the node and restarts it with its data directory."""
        self.node.kill()
        seconds = await asyncio.to_thread(self.node.start)
        self.done["kills of the node"] += 1
        self.done["longest start, ms"] = max(self.done["longest start, ms"], int(seconds * 1000))


@contextmanager
def started(directory: Path) -> Iterator[tuple[NodeProcess, int]]:
    """Provides a node with 600 ms blocks and 100 ms slices, and the port of its second listener."""
    second = free_port()
    options = ["--block-time", "600ms", "--slice-interval", "100ms", "--threads", "1"]
    options += ["--datadir", str(directory / "chain"), "--listen", f"geth@{HOST}:{second}"]
    node = fastevm_node(*options, module=("tests.faults.watched_node",), log=directory / "log")
    try:
        node.start()
        yield node, second
    finally:
        node.stop()


class Subscriber:
    """A ``fastevm_watch`` client that checks messages and sometimes stops reading or leaves."""

    def __init__(
        self, number: int, table: str, clock: str, ports: tuple[int, ...], wanted: tuple[int, int]
    ) -> None:
        questions, slots = wanted
        self.number, self.table, self.clock = number, table, clock
        self.port = ports[number % len(ports)]
        self.random = random.Random(number)
        self.slots = self.random.sample(range(slots), min(questions - 1, slots))
        self.tag = TAGS[number % 5 == 0]
        self.copy = Copy(self.slots)
        # slot -> last value, and when it was received
        self.newest: dict[int, tuple[int, float]] = {}
        self.totals: Counter[str] = Counter()
        self.ends = False

    def request(self) -> dict[str, Any]:
        """Returns the parameter object of the subscription."""
        calls = [{"to": self.table, "data": f"0x{slot:064x}"} for slot in self.slots]
        return {"calls": [*calls, {"to": self.clock}], "block": self.tag}

    @property
    def source(self) -> str:
        """Returns the subscriber's own source address, because limits apply per address."""
        return f"127.0.1.{self.number + 1}"

    async def run(self, harness: Harness) -> None:
        """Watches until the end of the soak. Reconnects after each cut."""
        connector = aiohttp.TCPConnector(local_addr=(self.source, 0))
        async with aiohttp.ClientSession(connector=connector) as http:
            while not self.ends:
                try:
                    await self.watch(http, harness)
                except (aiohttp.ClientError, OSError):
                    self.totals["failed connections"] += 1
                    await asyncio.sleep(RETRY_SECONDS)

    async def watch(self, http: aiohttp.ClientSession, harness: Harness) -> None:
        """Watches over one connection until it ends."""
        self.copy = Copy(self.slots)
        cut = time.monotonic() + self.random.uniform(*CONNECTION_SECONDS)
        try:
            async with http.ws_connect(
                f"ws://{HOST}:{self.port}", max_msg_size=LARGEST_MESSAGE
            ) as socket:
                params = ["fastevm_watch", self.request()]
                call = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params}
                await socket.send_str(json.dumps(call))
                while not self.ends and (harness.is_calm or time.monotonic() < cut):
                    with suppress(TimeoutError):
                        message = await socket.receive(timeout=RETRY_SECONDS)
                        if message.type is not aiohttp.WSMsgType.TEXT:
                            self.totals["closed"] += 1
                            return
                        await self.take(json.loads(message.data), harness)
                        await self.disturb(socket, harness)
                if self.random.random() < 0.5:  # disconnects without a close frame
                    transport = socket._conn.transport if socket._conn else None
                    if transport is not None:
                        transport.abort()
                        self.totals["cut connections"] += 1
        finally:
            self.totals.update(
                connections=1,
                messages=self.copy.messages,
                changes=self.copy.changes,
                wholes=self.copy.wholes,
                missed=self.copy.missed,
            )
            self.copy = Copy(self.slots)

    async def disturb(self, socket: aiohttp.ClientWebSocketResponse, harness: Harness) -> None:
        """Sometimes stops reading for a while."""
        if harness.is_calm or self.random.random() >= 0.005:
            return
        self.totals["pauses"] += 1
        transport = socket._conn.transport if socket._conn else None
        if transport is not None:
            transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(self.random.uniform(0.5, 3))
        if transport is not None and not transport.is_closing():
            transport.resume_reading()  # type: ignore[attr-defined]

    async def take(self, reported: dict[str, Any], harness: Harness) -> None:
        """Checks a message from the server."""
        if "id" in reported:
            if "error" in reported:
                raise Fault(f"no subscription: {reported['error']}")
            return
        params = reported["params"]
        if "error" in params:
            raise Fault(f"the subscription ended: {params['error']}")
        fresh = self.copy.apply(params["result"])
        self.check_order(fresh, harness)
        if self.copy.hash is not None and self.random.random() < 0.02:
            await self.check_block(harness)

    def check_order(self, fresh: dict[int, str], harness: Harness) -> None:
        """Checks that no slot returns to an older value, unless a reorganisation explains it."""
        now = time.monotonic()
        for question, text in fresh.items():
            if question == len(self.slots):
                continue
            slot, value = self.slots[question], int(text, 16)
            before, when = self.newest.get(slot, (0, now))
            if value < before and harness.reorganised < when - REORG_SECONDS:
                raise Fault(f"slot {slot} fell from {before} to {value}")
            self.newest[slot] = value, now

    async def check_block(self, harness: Harness) -> None:
        """Checks that the copy equals the results of eth_call at the last message's block."""
        answers, block = dict(self.copy.answers), {"blockHash": self.copy.hash}
        try:
            found = await harness.values(self.slots, block)
        except (aiohttp.ClientError, OSError):
            found = None  # the node was killed
        if found is None:
            self.totals["blocks that were gone"] += 1
            return
        for question, slot in enumerate(self.slots):
            if answers.get(question) != found[slot]:
                raise Fault(f"slot {slot} at {block}: {answers.get(question)}, not {found[slot]}")
        self.totals["compared at a block"] += len(found)

    def differs(self, values: dict[int, str]) -> str | None:
        """Returns a text about the first difference between copy and state, or None if equal."""
        if not self.copy.messages:
            return "it is not connected"
        for question, slot in enumerate(self.slots):
            if self.copy.answers.get(question) != values[slot]:
                return f"slot {slot} is {self.copy.answers.get(question)}, not {values[slot]}"
        return None


class Soak:
    """Runs a node, subscribers, and the faults."""

    def __init__(
        self, harness: Harness, ports: tuple[int, ...], subscribers: int, wanted: tuple[int, int]
    ) -> None:
        self.harness, self.wanted, self.ports = harness, wanted, ports
        self.thread = LoopThread()
        self.link = CutLink(self.thread, harness.node.port)
        self.clients = [
            Subscriber(number, harness.table, harness.clock, self.ports_of(number), wanted)
            for number in range(subscribers)
        ]
        self.is_over = False

    def ports_of(self, number: int) -> tuple[int, ...]:
        """Returns the ports that a subscriber may connect to: of the node or of the proxy."""
        return (self.link.port,) if number % LINKED == LINKED - 1 else self.ports

    async def run(self, end: float, *, kill_every: float, calm_every: float) -> None:
        """Runs all subscribers and faults until a time.

        Raises Fault if a subscriber found an error.
        """
        async with asyncio.TaskGroup() as group:
            for client in self.clients:
                group.create_task(client.run(self.harness))
            for number in range(CHILDREN):
                group.create_task(self.children(len(self.clients) + number))
            try:
                await self.disturb(end, kill_every, calm_every)
                await self.calm()
            finally:
                self.is_over = True
                for client in self.clients:
                    client.ends = True

    async def disturb(self, end: float, kill_every: float, calm_every: float) -> None:
        """Sends transactions, kills the node, cuts links and reorganises until a time."""
        harness, random = self.harness, self.harness.random
        next_kill = time.monotonic() + kill_every
        next_calm = time.monotonic() + calm_every
        while (now := time.monotonic()) < end:
            await harness.store(self.wanted[1], 4)
            await asyncio.sleep(0.1)
            if random.random() < 0.02:
                seconds = random.uniform(0.2, 1.5)
                harness.node.standard_input.write(f"{seconds}\n".encode())
                harness.node.standard_input.flush()
                harness.done["full queues"] += 1
            if random.random() < 0.01:
                await self.hold_link()
            if random.random() < 0.01:
                harness.reorganised = float("inf")
                await harness.request("anvil_reorg", 1, [])
                harness.reorganised = time.monotonic()
                harness.done["reorganisations"] += 1
            if now > next_kill:
                await harness.kill()
                next_kill = time.monotonic() + kill_every
            elif now > next_calm:
                await self.calm()
                next_calm = time.monotonic() + calm_every

    async def hold_link(self) -> None:
        """Makes the proxy reset its connections, or hold their data back for a while."""
        if self.harness.random.random() < 0.5:
            await asyncio.to_thread(self.link.cut)
        else:
            self.link.silence()
        await asyncio.sleep(self.harness.random.uniform(0.2, 1.0))
        self.link.mend()
        self.harness.done["held links"] += 1

    async def calm(self) -> None:
        """Sends no transactions until all copies equal the state.

        Raises Fault after `CALM_SECONDS`.
        """
        harness = self.harness
        harness.is_calm = True
        try:
            await asyncio.sleep(1.5)  # until a block contains every transaction
            values = {tag: await harness.values(list(range(self.wanted[1])), tag) for tag in TAGS}
            end = time.monotonic() + CALM_SECONDS
            while True:
                found = [client.differs(values[client.tag] or {}) for client in self.clients]
                if not any(found):
                    break
                if time.monotonic() > end:
                    at = next(at for at, text in enumerate(found) if text)
                    raise Fault(f"the copy of subscriber {at}: {found[at]}")
                await asyncio.sleep(RETRY_SECONDS)
            harness.done["compared in calm"] += sum(len(client.slots) for client in self.clients)
        finally:
            harness.is_calm = False

    async def children(self, number: int) -> None:
        """Repeatedly starts a subscriber in a separate process and kills it after a while."""
        harness = self.harness
        values = (number, harness.table, harness.clock, harness.node.port, *self.wanted)
        arguments = ["-m", "tests.faults.watch_soak", "--child", *map(str, values)]
        while not self.is_over:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, stderr=asyncio.subprocess.PIPE
            )
            end = time.monotonic() + harness.random.uniform(*CHILD_SECONDS)
            try:
                while not self.is_over and time.monotonic() < end:
                    await asyncio.sleep(RETRY_SECONDS)
                if process.returncode is not None:
                    error = b"" if process.stderr is None else await process.stderr.read()
                    raise Fault(f"a subscriber ended: {error.decode()[-2000:]}")
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            harness.done["kills of subscribers"] += 1


async def child(values: list[str]) -> None:
    """Runs one subscriber until this process is killed."""
    number, (table, clock) = int(values[0]), values[1:3]
    port, questions, slots = map(int, values[3:])
    client = Subscriber(number, table, clock, (port,), (questions, slots))
    http = aiohttp.ClientSession()
    node = fastevm_node()
    node.url = f"http://{HOST}:{port}"
    harness = Harness(node, http)
    # A subscriber process does not learn of reorganisations, so any value may fall.
    harness.reorganised = float("inf")
    await client.run(harness)


async def soak(
    seconds: float,
    subscribers: int,
    questions: int,
    *,
    slots: int,
    kill_every: float = 60.0,
    calm_every: float = 45.0,
) -> Counter[str]:
    """Runs all subscribers and faults. Returns a report. Raises Fault if a check fails."""
    with (
        tempfile.TemporaryDirectory(prefix="fastevm-watch-soak-") as name,
        started(Path(name)) as (node, second),
    ):
        async with aiohttp.ClientSession() as http:
            harness = Harness(node, http)
            await harness.deploy()
            made = Soak(harness, (node.port, second), subscribers, (questions, slots))
            try:
                end = time.monotonic() + seconds
                await made.run(end, kill_every=kill_every, calm_every=calm_every)
            finally:
                made.link.close()
                made.thread.close()
            await asyncio.sleep(1.0)  # gives the node time to notice that all clients left
            done = harness.done
            for client in made.clients:
                done.update(client.totals)
            gauges = await asyncio.to_thread(node.metrics)
            for name, value in gauges.items():
                if name.startswith("watch_"):
                    done[name] = int(value)
            done["memory of the node, MB"] = node.memory() >> 20
            return done


def main() -> int:
    """Runs the soak, or one of its subscribers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--subscribers", type=int, default=50)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=5000)
    parser.add_argument("--child", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        asyncio.run(child(options.child))
        return 0
    done = asyncio.run(
        soak(options.seconds, options.subscribers, options.questions, slots=options.slots)
    )
    for name, count in sorted(done.items()):
        print(f"{name:40} {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
