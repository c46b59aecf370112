"""A ``StateSource`` over JSON-RPC: the state of a block of another node's chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

from fastevm.core.primitives.hex import quantity
from fastevm.core.state.source import Found, Wanted
from fastevm.errors import ForkError
from fastevm.fork.account_proof import ProvenAccount
from fastevm.fork.anvil_storage import AnvilValues, anvil_values
from fastevm.fork.block_choice import BlockLike, read_block
from fastevm.fork.capabilities import Capability
from fastevm.fork.counters import ForkCounters
from fastevm.fork.disk_cache import UNLIMITED, DiskCache, cache_folder
from fastevm.fork.endpoints import DEFAULT_BATCH_SIZE, EndpointOptions, Endpoints
from fastevm.fork.fetching import Fetching, named
from fastevm.fork.opening import (
    Opened,
    addresses_and_block,
    find_block,
    open_session,
    resume_session,
)
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.fork.rate_limit import DEFAULT_UNITS_PER_SECOND
from fastevm.fork.refusals import is_unsupported
from fastevm.fork.request_defaults import DEFAULT_BACKOFF, DEFAULT_RETRIES, DEFAULT_TIMEOUT
from fastevm.fork.session import MAX_CHECKS, Check, Session
from fastevm.fork.upstream_history import History
from fastevm.rpc_client.messages import result_of

ANVIL: Final = "anvil's storage.json in ~/.foundry/cache"
OFFLINE: Final = "offline: {} of {} is not in the cache: fork once with the network"


class RemoteSource:
    """Reads the state of ``block_hash`` from an endpoint. Thread-safe.

    Create it with ``open``. Sources returned by ``at`` share its ``counters``.
    """

    def __init__(self, session: Session, opened: Opened) -> None:
        self.session, self._block = session, opened.block
        self._newest = opened.newest
        self._volatile = opened.volatile
        self._written = None if opened.volatile else session.cached_block(opened.block)
        self._cached = self._written if session.reads_cache else None
        self._history = History(session, opened.block, self._cached)
        self._given: set[bytes] = set()  # accounts whose cached slots were all returned
        self._head = session.head
        self.proven: dict[bytes, ProvenAccount] = {}
        self._kept = Found()
        self._anvil = None
        if self._cached is not None and not session.kept:
            self._anvil = self._of_anvil()

    @classmethod
    def open(
        cls,
        urls: str | Sequence[str],
        block: BlockLike = "latest",
        *,
        headers: Mapping[str, str] | None = None,
        cache: bool | Path = True,
        offline: bool = False,
        chain_id: int | None = None,
        retries: int = DEFAULT_RETRIES,
        timeout: float = DEFAULT_TIMEOUT,
        backoff: float = DEFAULT_BACKOFF,
        compute_units_per_second: float = DEFAULT_UNITS_PER_SECOND,
        rate_limit: bool = True,
        batch_size: int = DEFAULT_BATCH_SIZE,
        progress: bool = True,
        guarded: bool = False,
        kept: bool = False,
        resumed: PinnedBlock | None = None,
    ) -> Self:
        """Opens the state of ``block`` at an endpoint with one or several URLs.

        ``block``: "latest", "safe", "finalized", "earliest", a number (negative: below the newest),
        or a hash; ``URL@BLOCK`` has precedence. Takes one round trip, two for a negative number.
        ``cache``: a folder, or whether to use the default folder. The state of a development chain
        can change under the same block hash: it is read from the cache only with ``offline``, and
        its newest state is only written to an explicit folder. ``offline``: use only the cache.
        ``chain_id``: the expected chain id. ``kept``: the folder ``cache`` belongs to this fork
        only, and a value in it is never fetched again. ``resumed``: reopen a fork with such a
        folder at this block of the chain ``chain_id``. If the endpoint is unreachable, a warning is
        logged and only cached values are available. For other options see ``EndpointOptions``.
        Raises ForkError, and ValueError for an invalid URL or block.
        """
        addresses, chosen = addresses_and_block(urls, read_block(block))
        options = EndpointOptions(
            headers=dict(headers or {}),
            retries=retries,
            timeout=timeout,
            backoff=backoff,
            compute_units_per_second=compute_units_per_second,
            rate_limit=rate_limit,
            batch_size=batch_size,
            progress=progress,
            guarded=guarded,
        )
        session = _session(addresses, options, cache, offline=offline, kept=kept)
        if resumed is None:
            opened = open_session(session, chosen, chain_id)
        else:
            assert chain_id is not None
            opened = resume_session(session, resumed, chain_id)
        return cls(session, opened)

    @property
    def chain_id(self) -> int:
        """The chain id (EIP-155)."""
        return self.session.chain_id

    @property
    def block_number(self) -> int:
        """The number of the block."""
        return self._block.number

    @property
    def block_hash(self) -> bytes:
        """The hash of the block, 32 bytes."""
        return self._block.hash

    @property
    def header(self) -> Mapping[str, Any]:
        """The block's JSON object, with the hashes of its transactions."""
        return self._block.header

    @property
    def pinned(self) -> PinnedBlock:
        """The block whose state this source reads."""
        return self._block

    @property
    def may_change(self) -> bool:
        """Whether values may change after a read, as at the newest block of a development chain."""
        newest = self.session.is_development and self.block_number >= self._head
        return self._volatile or newest

    @property
    def endpoint(self) -> str:
        """The URLs without their keys."""
        return self.session.endpoints.name

    @property
    def counters(self) -> ForkCounters:
        """The request counters of this fork and of sources for other blocks that `at` returned."""
        return self.session.counters

    def at(self, block: BlockLike | Mapping[str, Any]) -> RemoteSource:
        """Returns a source for another block, with the same endpoint, cache and counters.

        Takes one round trip, or none if ``block`` is a block's JSON object.
        """
        if isinstance(block, Mapping):
            volatile = self.session.newest_is_volatile  # the block may be the newest
            return RemoteSource(self.session, Opened(PinnedBlock.read(block), volatile))
        return RemoteSource(self.session, find_block(self.session, read_block(block)))

    def fetch(self, wanted: Wanted) -> Found:
        """Returns all wanted values, and other values that the calls read.

        Takes one round trip if the endpoint supports prestate traces, otherwise two, and none if
        the cache has all values. At anvil's newest block, takes two more round trips, and a third
        if anvil mined a block in the meantime. Raises ForkError. Its text names the endpoint
        without its key or, if offline, the missing value.
        """
        known = self.cached(wanted)
        missing = Wanted(
            wanted.accounts - known.accounts.keys(),
            wanted.slots - known.slots.keys(),
            wanted.block_hashes - known.block_hashes.keys(),
            wanted.calls,
        )
        if not missing:
            return known
        if self.session.offline:
            raise ForkError(OFFLINE.format(next(iter(named(missing))), self._block))
        found = self._fetched(missing, known)
        self.session.remember()
        known.accounts.update(found.accounts)
        known.slots.update(found.slots)
        known.block_hashes.update(found.block_hashes)
        return known

    def _fetched(self, missing: Wanted, known: Found) -> Found:
        """Fetches the values. At the newest block, drops values that belong to the next block."""
        newest = self._newest
        known = Found(known.accounts | self._kept.accounts, known.slots | self._kept.slots)
        if newest is None or newest.is_passed:
            return Fetching(self.session, self._block, self._written, missing, known).run()
        found = Fetching(self.session, self._block, None, missing, known).run()
        if newest.was_passed():
            again = Wanted({*found.accounts}, {*found.slots}, {*found.block_hashes})
            return Fetching(self.session, self._block, self._written, again, Found()).run()
        self.session.write(self._written, found)
        return found

    def request(self, method: str, params: Sequence[Any] = ()) -> Any:
        """Returns the result of any JSON-RPC call. Raises RpcRefusal or ForkError."""
        return result_of(self.batch([(method, params)])[0])

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Returns a result or RpcRefusal for each call, in one round trip. Raises ForkError.

        Answers that depend only on the chain up to this block are cached: blocks, transactions,
        receipts, logs, traces of blocks.
        """
        return self._history.batch(calls)

    def block_with_transactions(self, block: int | bytes) -> Mapping[str, Any] | None:
        """Returns a block object with full transactions, or None. Raises ForkError."""
        if isinstance(block, int):
            found = self.request("eth_getBlockByNumber", (quantity(block), True))
        else:
            found = self.request("eth_getBlockByHash", ("0x" + block.hex(), True))
        return found if isinstance(found, Mapping) else None

    def receipts(self, block: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Returns the receipts of a block, given as JSON object. Raises ForkError.

        Takes one round trip; two if eth_getBlockReceipts is not supported.
        """
        capabilities = self.session.capabilities
        if capabilities.get(Capability.BLOCK_RECEIPTS) is not False:
            found = self.batch([("eth_getBlockReceipts", (block["number"],))])[0]
            if isinstance(found, list) and all(
                item.get("blockHash") == block["hash"] for item in found
            ):
                capabilities.set(Capability.BLOCK_RECEIPTS, True)
                return found
            if is_unsupported(found):
                capabilities.set(Capability.BLOCK_RECEIPTS, False)
        hashes = [
            item["hash"] if isinstance(item, Mapping) else item for item in block["transactions"]
        ]
        answers = self.batch([("eth_getTransactionReceipt", (item,)) for item in hashes])
        for answer in answers:
            if not isinstance(answer, Mapping) or answer.get("blockHash") != block["hash"]:
                raise ForkError(f"{self.endpoint}: no receipts of block {block['number']}")
        return answers

    def close(self) -> None:
        """Closes the connections and the cache, also for all sources that `at` returned."""
        self.session.remember()
        self.session.endpoints.close()
        if self.session.cache is not None:
            self.session.cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f"{self.endpoint} chain {self.chain_id}"
        return f"<RemoteSource {where} block {self.block_number} 0x{self.block_hash.hex()[:8]}>"

    def _of_anvil(self) -> AnvilValues | None:
        """Returns anvil's cached values of this block.

        Schedules the verification of some of them.
        """
        found = anvil_values(self.chain_id, self._block)
        if found is not None:
            self.session.add_checks(
                Check(self._block, address, slot, value, ANVIL)
                for address, slot, value in islice(found.all_slots(), MAX_CHECKS)
            )
        return found

    def keep(self, found: Found) -> None:
        """Stores values of this block that did not come from `fetch`. Later fetches omit them."""
        self._kept = found
        self.session.learn_codes(found)
        self.session.write(self._written, found)

    def cached(self, wanted: Wanted) -> Found:
        """Returns values that need no request: the parent hash and cached values."""
        known = Found()
        if self._cached is not None and self.session.cache is not None:
            known = self.session.cache.get(
                self._cached,
                wanted.accounts,
                wanted.slots,
                wanted.block_hashes,
                given=self._given,
            )
            self._given.update(wanted.accounts, (address for address, _ in wanted.slots))
            hits = len(wanted.accounts & known.accounts.keys())
            hits += len(wanted.slots & known.slots.keys())
            self.session.counters.add(hits=hits)
        if self._anvil is not None:
            self._anvil.add_to(known, wanted)
        for number, digest in (
            (self.block_number, self.block_hash),
            (self.block_number - 1, self._block.parent_hash),
        ):
            if number in wanted.block_hashes:
                known.block_hashes[number] = digest
        return known


def _session(
    addresses: Sequence[str],
    options: EndpointOptions,
    cache: bool | Path,
    *,
    offline: bool,
    kept: bool,
) -> Session:
    folder = cache_folder() if cache is True else cache
    disk = DiskCache(Path(folder), UNLIMITED if kept else None) if folder else None
    endpoints = Endpoints(addresses, options, ForkCounters())
    return Session(endpoints, disk, offline=offline, keeps_newest=cache is not True, kept=kept)
