"""Times fastevm's x402 facilitator and the one from PyPI on one chain, from signature to answer.

``python -m tests.ecosystem.x402.measure [PAYMENTS]`` after ``make ecosystem``. Payments to the two
facilitators alternate. The chain has blocks of 2 s and slices of 200 ms.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import aiohttp

from fastevm.payments.vault import KEY_VARIABLE, new_key
from fastevm.payments.x402.messages import Json
from fastevm.payments.x402.program import SIGNER_VARIABLE
from tests.payments.x402.street import Street, street

HERE = Path(__file__).parent
PEER = str(HERE.parents[2] / ".venv-x402/bin/python")
OURS_PORT, PEER_PORT, PEER_SHOP = 4121, 4122, 4123


async def start(*command: str, **variables: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*command, env={**os.environ, **variables})


async def ready(session: aiohttp.ClientSession, url: str) -> None:
    for _ in range(300):
        try:
            async with session.get(url) as answer:
                await answer.read()
                return
        except aiohttp.ClientError:
            await asyncio.sleep(0.2)
    raise TimeoutError(url)


def body_of(town: Street, index: int) -> Json:
    offer = town.offer()
    payload = town.buyer(4 + index % 6).payload(offer)
    payment = {"x402Version": 2, "payload": payload, "accepted": offer.show()}
    return {"x402Version": 2, "paymentPayload": payment, "paymentRequirements": offer.show()}


async def once(session: aiohttp.ClientSession, url: str, body: Json) -> tuple[float, float]:
    """Sends a payment to /verify, then to /settle. Returns the seconds of both requests."""
    started = time.perf_counter()
    async with session.post(url + "/verify", json=body) as answer:
        reported = await answer.json()
        assert reported["isValid"], reported
    verified = time.perf_counter()
    async with session.post(url + "/settle", json=body) as answer:
        reported = await answer.json()
        assert reported["success"], reported
    return verified - started, time.perf_counter() - verified


async def measure(town: Street, count: int) -> None:
    urls = {"ours": f"http://127.0.0.1:{OURS_PORT}", "peer": f"http://127.0.0.1:{PEER_PORT}"}
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    async with aiohttp.ClientSession() as session:
        for url in urls.values():
            await ready(session, url + "/supported")
        for index in range(count):
            for name, url in urls.items():
                found[name].append(await once(session, url, body_of(town, index)))
        body = body_of(town, 0)
        for name, url in urls.items():
            await once(session, url, body := body_of(town, 0))
            async with session.post(url + "/verify", json=body) as answer:
                verified = await answer.json()
            async with session.post(url + "/settle", json=body) as answer:
                print(name, "again:", verified, await answer.json())
    for name, times in found.items():
        columns = {
            "verify": [item for item, _ in times],
            "settle": [item for _, item in times],
            "both": [sum(item) for item in times],
        }
        for what, seconds in columns.items():
            ordered = sorted(seconds)
            print(
                f"{name:5} {what:7} median {1000 * statistics.median(ordered):6.0f} ms,"
                f" p95 {1000 * ordered[len(ordered) * 95 // 100]:6.0f} ms, of {len(ordered)}"
            )


async def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as folder:
        town = await street(Path(folder), block_ms=2_000, slice_ms=200)
        node = town.server.urls[0]
        programs = [
            await start(
                sys.executable, "-m", "fastevm", "pay", "facilitator", "--node", node,
                "--asset", "USDC", "--store", f"sqlite:///{folder}/ours.db", "--port",
                str(OURS_PORT),
                **{KEY_VARIABLE: new_key(),
                   SIGNER_VARIABLE: "0x" + bytes(town.accounts[2].key).hex()},
            ),
            await start(
                PEER, str(HERE / "peer_facilitator.py"), node, str(PEER_PORT),
                FACILITATOR_KEY="0x" + bytes(town.accounts[3].key).hex(),
            ),
        ]  # fmt: skip
        try:
            await measure(town, count)
        finally:
            for program in programs:
                program.kill()
                await program.wait()
            await town.close()


if __name__ == "__main__":
    asyncio.run(main())
