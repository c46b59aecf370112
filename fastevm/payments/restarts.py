"""Recognises a node whose chain is not the chain that filled the store."""

from asyncio import to_thread
from typing import NamedTuple

from fastevm.payments.chain import Head, head_of
from fastevm.payments.errors import NodeRefusal, OtherChain
from fastevm.payments.events import Checkpoint
from fastevm.payments.merchant import Merchant
from fastevm.payments.node import NodeClient
from fastevm.payments.scanner import RESTARTED
from fastevm.payments.store import every_order


class Lost(NamedTuple):
    """Explains why the node's chain is not the store's.

    ``certain`` is false if the node may only lag.
    """

    text: str
    certain: bool


async def other_chain(node: NodeClient, head: Head, points: list[Checkpoint]) -> Lost | None:
    """Returns why the store was filled from another chain than the node's, or None.

    ``points`` are the blocks up to which the store was filled, newest first. Returns None if the
    node has one of these blocks, or if it lacks a block up to its head.
    """
    oldest, newest = points[-1], points[0]
    if head.number < oldest.number:
        return Lost(
            f"the node's chain ends at block {head.number}, before block {oldest.number}, the"
            f" oldest that this store remembers: the node is not synchronised yet, or {RESTARTED}",
            certain=False,
        )
    asked = [point for point in points if point.number <= head.number]
    blocks = await node.batch(
        [("eth_getBlockByNumber", [hex(point.number), False]) for point in asked]
    )
    hashes = [found.hash for block in blocks if (found := head_of(block)) is not None]
    if len(hashes) < len(asked) or {point.block_hash for point in asked} & set(hashes):
        return None
    return Lost(
        f"block {asked[0].number} has another hash than when it was scanned, and so has every block"
        f" down to {oldest.number} (last scan: block {newest.number}): {RESTARTED}",
        certain=True,
    )


async def lost_chain(merchant: Merchant) -> Lost | None:
    """Returns why the node no longer has the chain of the merchant's orders; None if it has.

    Compares the genesis block, then blocks as `other_chain` does. Before the first scan, only a
    missing token shows that the chain is another one.
    """
    points = await to_thread(merchant.store.checkpoints, merchant.scanner.scope)
    try:
        await merchant.scanner.check_chain()
    except OtherChain as error:
        return Lost(str(error), certain=True)
    token = merchant.token.token
    latest, code = await merchant.node.batch(
        [("eth_getBlockByNumber", ["latest", False]), ("eth_getCode", [token, "latest"])]
    )
    head = None if isinstance(latest, NodeRefusal) else head_of(latest)
    if points and head is not None and (lost := await other_chain(merchant.node, head, points)):
        return lost
    if code != "0x" or await to_thread(lambda: next(every_order(merchant.store), None)) is None:
        return None
    text = f"the node has no token at {token}: it is not synchronised yet, or {RESTARTED}"
    return Lost(text, certain=False)
