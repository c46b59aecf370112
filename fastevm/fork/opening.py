"""The first request to an endpoint: identifies its chain and the block to read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from fastevm.core.primitives.hex import quantity
from fastevm.errors import ForkError
from fastevm.fork.block_choice import BlockChoice, split_block
from fastevm.fork.call_list import RpcCall
from fastevm.fork.collector import BadValue, bytes_of, word_of
from fastevm.fork.endpoints import Endpoints
from fastevm.fork.newest_block import NewestBlock, may_be_passed
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.fork.session import Session
from fastevm.rpc_client.messages import RpcRefusal

log = logging.getLogger(__name__)

# Calls that identify the rules of a development node; `rules_of` reads the answers.
RULES_CALLS: Final = (
    RpcCall("anvil_nodeInfo", optional=True),
    RpcCall("eth_config", optional=True),
)


class Opened(Struct, frozen=True):
    """A block, and whether its state may still change (newest block of a development chain).

    ``newest`` is set if the endpoint may return values of the next block.
    """

    block: PinnedBlock
    volatile: bool = False
    newest: NewestBlock | None = None


def addresses_and_block(
    urls: str | Sequence[str], block: BlockChoice
) -> tuple[list[str], BlockChoice]:
    """Removes ``@BLOCK`` from the URLs. Returns the URLs and the block.

    The block is the first ``@BLOCK``, or ``block`` if no URL contains ``@BLOCK``.
    """
    split = [split_block(url) for url in ([urls] if isinstance(urls, str) else urls)]
    named = [item for _, item in split if item is not None]
    return [url for url, _ in split], named[0] if named else block


def open_session(session: Session, chosen: BlockChoice, chain_id: int | None) -> Opened:
    """Identifies the endpoint and finds the block, in one round trip (two for ``below``).

    No round trip is needed for a cached block that is given by hash, if the endpoint is not on this
    machine. Raises ForkError.
    """
    if session.offline:
        return Opened(_open_offline(session, chosen, chain_id))
    last = None if session.loopback else session.recall()
    if last is not None and chosen.hash is not None and session.cache is not None:
        pinned = session.cache.find_block(last[0], digest=chosen.hash)
        if pinned is not None and chain_id in (None, _id_in(last[0])):
            session.identify(_id_in(last[0]), str(last[1].get("client", "")), None)
            return Opened(pinned)
    return _open_online(session, chosen, chain_id)


def resume_session(session: Session, pinned: PinnedBlock, chain_id: int) -> Opened:
    """Identifies the endpoint of a fork that begins at ``pinned``, in one round trip.

    If the endpoint does not answer, logs a warning. Raises ForkError if the endpoint has another
    chain id or another block at that number.
    """
    session.identify(chain_id, "", None)
    if session.offline:
        return Opened(pinned)
    endpoints = session.endpoints
    calls = [
        RpcCall("eth_chainId"),
        RpcCall("eth_getBlockByNumber", (pinned.by_number, False)),
        RpcCall("web3_clientVersion", optional=True),
    ]
    try:
        id_answer, block_answer, client = endpoints.ask(calls)
    except ForkError as error:
        log.warning("only cached state is available: %s", error)
        return Opened(pinned)
    _check_chain(session, id_answer, chain_id)
    found = _hash_in(block_answer)
    if found != pinned.hash:
        other = "no such block" if found is None else f"the block 0x{found.hex()} there"
        raise ForkError(
            f"{endpoints.name}: the fork begins at {pinned}, but the endpoint has {other}: it is on"
            " another chain, or this block was reorganised away"
        )
    session.identify(chain_id, client if isinstance(client, str) else "", None)
    return Opened(pinned)


def find_block(session: Session, chosen: BlockChoice) -> Opened:
    """Returns a block of the chain, by hash from the cache if possible. Raises ForkError."""
    if session.cache is not None and session.identity is not None:
        by_hash = chosen.hash is not None
        if by_hash or session.offline:
            pinned = _in_cache(session, chosen)
            if pinned is not None:
                return Opened(pinned)
    if session.offline:
        raise ForkError(f"offline: block {chosen} is not in the cache")
    calls = [chosen.call]
    if session.loopback and session.is_development:
        calls.append(RpcCall("eth_blockNumber", optional=True))
    block_answer, *head = session.endpoints.ask(calls)
    if head:
        session.head = _number_in(head[0])
    pinned = _block_in(session.endpoints, block_answer, chosen)
    if chosen.below:
        pinned = _below(session.endpoints, pinned, chosen)
    return Opened(pinned, _is_volatile(session, chosen), _watched(session, pinned))


def _watched(session: Session, pinned: PinnedBlock) -> NewestBlock | None:
    if pinned.number < session.head or not may_be_passed(session.client):
        return None
    return NewestBlock(session.endpoints, pinned.number)


def _is_volatile(session: Session, chosen: BlockChoice) -> bool:
    newest = chosen.tag == "latest" or chosen.below == 0
    return newest and session.newest_is_volatile


def _open_online(session: Session, chosen: BlockChoice, chain_id: int | None) -> Opened:
    endpoints = session.endpoints
    calls = [
        RpcCall("eth_chainId"),
        chosen.call,
        RpcCall("web3_clientVersion", optional=True),
    ]
    if session.loopback:  # development nodes are local
        calls += [
            RpcCall("eth_getBlockByNumber", ("0x0", False), optional=True),
            RpcCall("eth_blockNumber", optional=True),
            *RULES_CALLS,
        ]
    id_answer, block_answer, client, *more = endpoints.ask(calls)
    found_id = _check_chain(session, id_answer, chain_id)
    first = _hash_in(more[0]) if more else None
    session.identify(found_id, client if isinstance(client, str) else "", first)
    if more:
        session.head = _number_in(more[1])
        session.node_answers = more[2:]
    pinned = _block_in(endpoints, block_answer, chosen)
    if chosen.below:
        pinned = _below(endpoints, pinned, chosen)
    return Opened(pinned, _is_volatile(session, chosen), _watched(session, pinned))


def _check_chain(session: Session, answer: Any, chain_id: int | None) -> int:
    """Returns the chain id in an answer. Raises ForkError if it is not the expected one."""
    name = session.endpoints.name
    if isinstance(answer, RpcRefusal):
        raise ForkError(f"{name}: {answer.message} ({answer.code})")
    try:
        found = word_of(answer, "eth_chainId")
    except BadValue as error:
        raise ForkError(f"{name}: {error}") from None
    if chain_id is not None and found != chain_id:
        raise ForkError(f"{name}: expected chain {chain_id}, found {found}")
    return found


def _open_offline(session: Session, chosen: BlockChoice, chain_id: int | None) -> PinnedBlock:
    """Returns the block from the cache, for the endpoint's known chain or for ``chain_id``."""
    if session.cache is None:
        raise ForkError("offline needs a cache")
    last = session.recall()
    known = [item for item, *_ in session.cache.chains()]
    fits = [item for item in known if chain_id is None or _id_in(item) == chain_id]
    if last is not None and chain_id in (None, _id_in(last[0])):
        fits = [last[0]]
    for identity in fits:
        session.identity, session.chain_id = identity, _id_in(identity)
        pinned = _in_cache(session, chosen)
        if pinned is not None:
            return pinned
    chain = "" if chain_id is None else f" of chain {chain_id}"
    raise ForkError(
        f"offline: block {chosen}{chain} is not in the cache {session.cache.path}:"
        " fork once with the network"
    )


def _in_cache(session: Session, chosen: BlockChoice) -> PinnedBlock | None:
    assert session.cache is not None
    assert session.identity is not None
    number = 0 if chosen.tag == "earliest" else chosen.number
    if chosen.below:
        newest = session.cache.find_block(session.identity)
        number = None if newest is None else max(0, newest.number - chosen.below)
    return session.cache.find_block(session.identity, digest=chosen.hash, number=number)


def _below(endpoints: Endpoints, newest: PinnedBlock, chosen: BlockChoice) -> PinnedBlock:
    number = max(0, newest.number - (chosen.below or 0))
    call = RpcCall("eth_getBlockByNumber", (quantity(number), False))
    return _block_in(endpoints, endpoints.ask([call])[0], BlockChoice(number=number))


def _block_in(endpoints: Endpoints, answer: Any, chosen: BlockChoice) -> PinnedBlock:
    if isinstance(answer, RpcRefusal):
        raise ForkError(f"{endpoints.name}: block {chosen}: {answer.message} ({answer.code})")
    if answer is None:
        raise ForkError(f"{endpoints.name}: there is no block {chosen}")
    try:
        pinned = PinnedBlock.read(answer)
    except ForkError as error:
        raise ForkError(f"{endpoints.name}: {error}") from None
    if chosen.hash not in (None, pinned.hash) or chosen.number not in (None, pinned.number):
        raise ForkError(f"{endpoints.name}: the answer is not block {chosen}")
    return pinned


def _hash_in(answer: Any) -> bytes | None:
    try:
        return bytes_of(answer.get("hash"), "hash", 32)
    except (AttributeError, BadValue):
        return None


def _number_in(answer: Any) -> int:
    try:
        return word_of(answer, "eth_blockNumber")
    except BadValue:
        return 0


def _id_in(identity: str) -> int:
    """Returns the chain id in a chain's cache key."""
    return int(identity.partition(":")[0])
