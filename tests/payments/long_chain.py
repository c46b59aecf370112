"""Measures how long a back end with an empty store takes to start on a very long chain.

    python -m tests.payments.long_chain --node fastevm --blocks 1000000
    python -m tests.payments.long_chain --node anvil --blocks 500 --above 1000000

The blocks are mined with ``anvil_mine``, and the last block deploys the token. anvil needs at least
3 ms for each block, so its chain can begin at block ``--above``. The measured start consists of the
merchant's steps before its first capture: read the chain, and store an order's signature.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess, fastevm_node
from fastevm.payments import NodeClient, State
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.max_wait import MAX_WAIT

from .remote import VALUE, Remote, file_store

# Blocks per call. A busy machine also mines them within the timeout.
PORTION: Final = 1_000
CALL_SECONDS: Final = 600.0


def started(name: str, above: int) -> NodeProcess:
    """Starts a node that mines a block for each transaction, and more blocks on request."""
    if name == "anvil":
        return NodeProcess([str(anvil_binary()), "--silent", "--number", str(above)])
    return fastevm_node("--instant")


def grow(url: str, blocks: int) -> float:
    """Mines empty blocks. Returns the seconds that it took."""
    client = JsonRpcClient(url, timeout=CALL_SECONDS)
    begun = time.monotonic()
    for at in range(0, blocks, PORTION):
        client.call("anvil_mine", hex(min(PORTION, blocks - at)))
    return time.monotonic() - begun


async def measure(url: str, folder: Path, starts: int) -> list[dict[str, Any]]:
    """Starts the back end several times, each time with an empty store.

    Returns the seconds of each step and the number of requests.
    """
    client = NodeClient(url)
    remote = Remote(client)
    await remote.open(10 * VALUE)
    found = []
    for at in range(starts):
        store = file_store(folder, f"{at}.db")
        begun = time.monotonic()
        async with remote.merchant(store) as merchant:
            await merchant.reconcile()
            looked = time.monotonic()
            await remote.stored(merchant, f"order-{at}")
            ready = time.monotonic()
            order = await merchant.capture(f"order-{at}", until=State.CAPTURED, timeout=MAX_WAIT)
            assert order.state in (State.CAPTURED, State.PAID), order
            paid = time.monotonic()
        store.close()
        found.append({"first pass": looked - begun, "ready": ready - begun, "paid": paid - begun})
    await client.close()
    return [{what: round(seconds, 3) for what, seconds in item.items()} for item in found]


def main() -> None:
    """Mines a long chain and measures starts on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", choices=("anvil", "fastevm"), default="anvil")
    parser.add_argument("--blocks", type=int, default=1_000_000)
    parser.add_argument("--above", type=int, default=0, help="anvil's first number")
    parser.add_argument("--starts", type=int, default=5)
    arguments = parser.parse_args()
    with started(arguments.node, arguments.above) as node, tempfile.TemporaryDirectory() as folder:
        seconds = grow(node.url, arguments.blocks)
        head = int(node.ask("eth_blockNumber"), 16)
        megabytes = node.memory() // 10**6
        starts = asyncio.run(measure(node.url, Path(folder), arguments.starts))
    figures = {"node": arguments.node, "head": head, "mined in": round(seconds, 1)}
    print(json.dumps({**figures, "memory, MB": megabytes, "starts": starts}))


if __name__ == "__main__":
    main()
