"""Captures orders in several processes on PostgreSQL, and kills the processes, node and database.

    python -m tests.payments.chaos --orders 1000

At the end every order must be paid by exactly one transfer, and its webhooks must have arrived at
least once, in order. `test_chaos` runs a small sample.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from fastevm.bench.node.launch import NodeProcess
from fastevm.payments import NodeClient, State, open_store
from fastevm.payments.webhooks import add_endpoint

from .databases import Server
from .remote import VALUE, Remote

WORKERS: Final = 4

WORKER: Final = """
import asyncio, json, os, random, sys
from fastevm.payments import *
from fastevm.payments.webhooks import Sender

async def forever(what):
    while True:
        try:
            await what()
        except PaymentError:
            await asyncio.sleep(0.2)

async def main():
    parameters = json.loads(os.environ["CHAOS"])
    store = None
    while store is None:
        try:
            store = open_store(parameters["store"])
        except PaymentError:
            await asyncio.sleep(0.2)
    vault = Vault([b"\\x07" * 32])
    node = NodeClient(parameters["node"])
    merchant = Merchant(
        node, store, vault, Domain("USD Coin", "2", parameters["chain"], parameters["token"]),
        KeySigner(parameters["key"]), policy=Policy(poll=0.1, scan_every=0.5),
    )
    sender = Sender(merchant.store, vault, private=True, schedule=(0.2,))

    async def capture():
        stored = await merchant.orders([State.STORED], limit=200)
        some = random.sample(stored, min(8, len(stored)))
        if not some:
            await asyncio.sleep(0.5)
        await merchant.capture_many([one.id for one in some], until=State.CAPTURING, timeout=0)

    await asyncio.gather(forever(merchant.run), forever(sender.run), forever(capture))

asyncio.run(main())
"""


class Receiver:
    """The shop's webhook endpoint. Records the sequence numbers of each order's webhooks."""

    def __init__(self) -> None:
        self.got: dict[str, list[int]] = {}
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/hook", self.take)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook"

    async def take(self, request: web.Request) -> web.Response:
        data = json.loads(await request.read())["data"]
        if random.random() < 0.02:
            return web.Response(status=503)
        self.got.setdefault(data["order"], []).append(data["sequence"])
        return web.Response()

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()


class Chaos:
    """Starts node, database and workers, and kills them at random."""

    def __init__(self, folder: Path, orders: int, seed: int) -> None:
        self.folder, self.count, self.random = folder, orders, random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.workers: list[asyncio.subprocess.Process] = []
        self.database = Server(safe=True)
        command = [
            sys.executable, "-m", "fastevm", "node", "-q", "--datadir", str(folder / "node"),
            "--block-time", "500ms", "--slice-interval", "100",
        ]  # fmt: skip
        self.node = NodeProcess(command, log=folder / "node.log")
        self.receiver = Receiver()
        self.environment: dict[str, str] = {}

    # --- setup ------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Starts node and database, and signs the orders."""
        self.database.start()
        self.node.start()
        await self.receiver.start()
        self.client = NodeClient(self.node.url)
        remote = Remote(self.client)
        await remote.open(VALUE * self.count)
        self.store = open_store(self.database.create())
        self.merchant = remote.merchant(self.store, poll=0.1)
        add_endpoint(self.merchant.store, self.merchant.vault, "shop", self.receiver.url)
        for number in range(self.count):
            await remote.stored(self.merchant, f"order-{number:04}")
        report = {
            "store": self.database.url("payments_1"), "node": self.node.url,
            "chain": remote.chain_id, "token": remote.token.token,
            "key": "0x" + remote.keys[1].hex(),
        }  # fmt: skip
        self.environment = {**os.environ, "CHAOS": json.dumps(report)}

    # --- the run ----------------------------------------------------------------------------------

    async def start_worker(self) -> None:
        self.workers.append(
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", WORKER, env=self.environment,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=(self.folder / "workers.log").open("ab"),
            )
        )  # fmt: skip

    async def kill_worker(self) -> None:
        worker = self.workers.pop(self.random.randrange(len(self.workers)))
        worker.send_signal(signal.SIGKILL)
        await worker.wait()
        await self.start_worker()

    async def kill_node(self) -> None:
        self.node.kill()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(self.node.start)

    async def kill_database(self) -> None:
        await asyncio.to_thread(self.database.kill)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(self.database.start)

    async def run(self, limit: float, every: float) -> None:
        """Kills a process at intervals until every order is paid and every webhook delivered.

        The first kill waits for a worker that is sending a transaction, so that it hits one on any
        machine.
        """
        for _ in range(WORKERS):
            await self.start_worker()
        acts = [self.kill_worker] * 4 + [self.kill_node, self.kill_database]
        deadline = time.monotonic() + limit
        turn = 0
        while not await self.done():
            assert time.monotonic() < deadline, f"not done: {await self.left()}"
            if turn == 0:
                await self.first_submission(deadline)
            else:
                await asyncio.sleep(every * (0.5 + self.random.random()))
            if turn == 0 or not await self.paid():
                act = acts[turn % len(acts)] if turn < len(acts) else self.random.choice(acts)
                turn += 1
                await act()
                self.kills[act.__name__] += 1

    async def first_submission(self, deadline: float) -> None:
        while not await asyncio.to_thread(self.merchant.store.submissions):
            assert time.monotonic() < deadline, "no order was submitted"
            await asyncio.sleep(0.02)

    async def counts(self) -> dict[State, tuple[int, int, float]]:
        for _ in range(50):
            try:
                return await asyncio.to_thread(self.merchant.store.counts)
            except Exception:
                await asyncio.sleep(0.2)
        raise AssertionError("the store does not come back")

    async def paid(self) -> bool:
        return (await self.counts()).get(State.PAID, (0, 0, 0.0))[0] == self.count

    async def left(self) -> str:
        found = {state.value: item[0] for state, item in (await self.counts()).items()}
        return f"{found}, kills {dict(self.kills)}, outbox {self.merchant.store.backlog()}"

    async def done(self) -> bool:
        return await self.paid() and self.merchant.store.backlog()[0] == 0

    # --- checks -----------------------------------------------------------------------------------

    async def check(self) -> dict[str, Any]:
        """Compares the store with the chain, and the received webhooks with the sent ones.

        Returns the counts of the run.
        """
        logs = await self.client.call(
            "eth_getLogs", {"address": self.merchant.token.token, "fromBlock": "0x0"}
        )
        transfer = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
        shop = "0x" + self.merchant.recipient[2:].lower().rjust(64, "0")
        paid = [
            chain_log
            for chain_log in logs
            if chain_log["topics"][0] == transfer and chain_log["topics"][2] == shop
        ]
        assert len(paid) == self.count, f"{len(paid)} transfers for {self.count} orders"
        assert all(int(item["data"], 16) == VALUE for item in paid)
        hashes = Counter(item["transactionHash"] for item in paid)
        orders = {order.id: order for order in self.merchant.store.orders(limit=self.count + 1)}
        assert len(orders) == self.count
        for order in orders.values():
            assert order.paid and order.settlement is not None
            assert hashes.pop(order.settlement.transaction_hash) == 1
        assert not hashes
        reverted, sent = 0, 0
        for submission in self.merchant.store.submissions():
            sent += 1
            reverted += submission.progress.value == "reverted"
        repeated = 0
        for name, order in orders.items():
            got = self.receiver.got.get(name, [])
            first = list(dict.fromkeys(got))
            report = len(self.merchant.store.notices(order_id=order.id))
            assert first == list(range(1, report + 1)), f"{name}: {got} of {report}"
            repeated += len(got) - len(first)
        return {
            "orders": self.count, "transfers": len(paid), "transactions": sent,
            "reverted": reverted, "webhooks repeated": repeated, "kills": dict(self.kills),
        }  # fmt: skip

    async def close(self) -> None:
        """Stops all processes that this class started."""
        for worker in self.workers:
            worker.kill()
            await worker.wait()
        await self.client.close()
        self.store.close()
        await self.receiver.stop()
        self.node.kill()
        await asyncio.to_thread(self.database.stop)


async def run(orders: int, *, seed: int, limit: float, every: float) -> dict[str, Any]:
    """Makes one run. Returns its counts. Raises AssertionError if a check fails."""
    with tempfile.TemporaryDirectory(prefix="payments-chaos-") as folder:
        chaos = Chaos(Path(folder), orders, seed)
        begun = time.monotonic()
        try:
            await chaos.open()
            opened = time.monotonic()
            await chaos.run(limit, every)
            found = await chaos.check()
        except BaseException:
            for name in ("workers.log", "node.log"):
                log = Path(folder) / name
                if log.exists():
                    print(log.read_text()[-3_000:], file=sys.stderr)
            raise
        finally:
            await chaos.close()
        seconds = {"opening": round(opened - begun, 1)}
        return {**found, "seconds": round(time.monotonic() - opened, 1), **seconds}


def main() -> None:
    """Makes a full run and prints its counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1_800.0, help="seconds")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between kills")
    arguments = parser.parse_args()
    found = asyncio.run(
        run(arguments.orders, seed=arguments.seed, limit=arguments.limit, every=arguments.every)
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
