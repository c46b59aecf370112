"""Recognises a node whose chain is not the one from which the store was filled."""

from asyncio import to_thread
from typing import Final

from fastevm.payments.chain import Head, head_of
from fastevm.payments.errors import NodeRefusal
from fastevm.payments.events import Checkpoint
from fastevm.payments.merchant import Merchant
from fastevm.payments.node import NodeClient
from fastevm.payments.store import every_order

RESTARTED: Final = (
    "the chain was restarted, and the payments of this store are gone with the old one: pass a new"
    " --store for the new chain, or --node of the old chain"
)


async def other_chain(node: NodeClient, head: Head, points: list[Checkpoint]) -> str:
    """Returns an error text if the store was filled from another chain than the node's, else "".

    ``points``: the blocks up to which the store was filled, newest first.
    """
    oldest, newest = points[-1], points[0]
    if head.number < oldest.number:
        return (
            f"the node's chain ends at block {head.number}, before block {oldest.number}, the"
            f" oldest that this store remembers: the node is not synchronised yet, or {RESTARTED}"
        )
    asked = [point for point in points if point.number <= head.number]
    blocks = await node.batch(
        [("eth_getBlockByNumber", [hex(point.number), False]) for point in asked]
    )
    hashes = [found.hash for block in blocks if (found := head_of(block)) is not None]
    if len(hashes) < len(asked) or {point.block_hash for point in asked} & set(hashes):
        return ""
    return (
        f"block {asked[0].number} has another hash than when it was scanned, and so has every block"
        f" down to {oldest.number} (last scan: block {newest.number}): {RESTARTED}"
    )


async def lost_chain(merchant: Merchant) -> str:
    """Returns an error text if the chain of the merchant's orders is gone, else "".

    Compares blocks as `other_chain` does. Before the first scan, only a missing token shows it.
    """
    points = await to_thread(merchant.store.checkpoints, merchant.scanner.scope)
    token = merchant.token.token
    latest, code = await merchant.node.batch(
        [("eth_getBlockByNumber", ["latest", False]), ("eth_getCode", [token, "latest"])]
    )
    head = None if isinstance(latest, NodeRefusal) else head_of(latest)
    if points and head is not None and (text := await other_chain(merchant.node, head, points)):
        return text
    if code != "0x" or await to_thread(lambda: next(every_order(merchant.store), None)) is None:
        return ""
    return f"the node has no token at {token}: it is not synchronised yet, or {RESTARTED}"
