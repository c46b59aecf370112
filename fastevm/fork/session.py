"""State shared by the sources of one endpoint: identity, capabilities, cache, known codes."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fastevm.chain.config import ChainConfig
from fastevm.core.state.source import Found
from fastevm.fork.account_reads import MIN_KNOWN_CODE
from fastevm.fork.capabilities import Capabilities
from fastevm.fork.counters import ForkCounters
from fastevm.fork.disk_cache import CachedBlock, DiskCache
from fastevm.fork.endpoint import is_loopback
from fastevm.fork.endpoints import Endpoints
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.rpc_client.messages import Answer

log = logging.getLogger(__name__)

MAX_KNOWN_CODES: Final = 4_096  # accounts whose code is kept in memory
MAX_CHECKS: Final = 4  # slots from traces or anvil's cache that are compared with reads
DEVELOPMENT_CHAINS: Final = (1337, 31337)
DEVELOPMENT_CLIENTS: Final = ("anvil", "hardhat", "ganache", "edr")


class Check(Struct, frozen=True):
    """A slot with a value from ``origin``, which a read has not confirmed yet."""

    block: PinnedBlock
    address: bytes
    slot: int
    value: int
    origin: str


class Session:
    """One endpoint (with one or several URLs) and the facts known about it.

    ``chain_id`` and ``client``: reported by the endpoint. ``identity``: the cache key of the
    endpoint's chain, made of the chain id and, for a local endpoint, the genesis hash; None: no
    caching. ``keeps_newest``: also cache the newest state of a development chain, although it can
    change. ``kept``: the cache belongs to one fork, and its values are never replaced. ``head``:
    the number of a block that the endpoint has. ``node_answers``: answers to `opening.RULES_CALLS`,
    empty if they were not in the first request. ``rules``: the chain's rules, if they do not depend
    on the block.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        cache: DiskCache | None,
        *,
        offline: bool,
        keeps_newest: bool = False,
        kept: bool = False,
    ) -> None:
        self.endpoints, self.cache, self.offline = endpoints, cache, offline
        self.keeps_newest, self.kept = keeps_newest, kept
        endpoints.offline = offline
        self.capabilities = Capabilities()
        self.chain_id = 0
        self.client = ""
        self.identity: str | None = None
        self.head = 0
        self.node_answers: Sequence[Answer] = ()
        self.rules: ChainConfig | None = None
        self.loopback = any(map(is_loopback, endpoints.urls))
        self.checks: list[Check] = []
        self._codes: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    @property
    def counters(self) -> ForkCounters:
        """The request counters of all sources of this session."""
        return self.endpoints.counters

    @property
    def is_development(self) -> bool:
        """Whether the chain is a development chain, whose state can change without a block."""
        known = self.client.lower().startswith(DEVELOPMENT_CLIENTS)
        return known or self.chain_id in DEVELOPMENT_CHAINS

    @property
    def newest_is_volatile(self) -> bool:
        """Whether the state of the newest block is excluded from the cache, because it can
        change.
        """
        return self.is_development and not (self.keeps_newest or self.kept)

    @property
    def reads_cache(self) -> bool:
        """Whether cached values may be used.

        False on a development chain, because its states change.
        """
        return self.offline or self.kept or not self.is_development

    @property
    def key(self) -> str:
        """The cache key of the endpoint, which does not reveal its URL."""
        return hashlib.sha256("\n".join(sorted(self.endpoints.urls)).encode()).hexdigest()[:32]

    def recall(self) -> tuple[str, Mapping[str, Any]] | None:
        """Returns the cached chain and capabilities of this endpoint."""
        return None if self.cache is None else self.cache.endpoint(self.key)

    def identify(self, chain_id: int, client: str, genesis: bytes | None) -> None:
        """Stores the endpoint's identity, and loads its cached capabilities."""
        self.chain_id, self.client = chain_id, client
        if not self.loopback or self.kept:
            self.identity = f"{chain_id}"
        elif genesis is not None:
            self.identity = f"{chain_id}:{genesis.hex()}"
        last = self.recall()
        if last is not None and last[1].get("client") == client:
            self.capabilities = Capabilities(last[1])
            limit = last[1].get("batch_limit")
            if isinstance(limit, int):
                self.endpoints.batch_limit = limit
        self.capabilities.changed = last is None or last[0] != self.identity

    def remember(self) -> None:
        """Writes the endpoint's capabilities to the disk cache."""
        limit = self.endpoints.batch_limit
        learned = self.capabilities.changed or limit < self.endpoints.options.batch_size
        if self.cache is not None and self.identity is not None and learned:
            self.capabilities.changed = False
            known = {**self.capabilities.as_dict(), "client": self.client, "batch_limit": limit}
            self.cache.put_endpoint(self.key, self.identity, known)

    def cached_block(self, pinned: PinnedBlock) -> CachedBlock | None:
        """Returns the block's cache key, adding it with its header if necessary."""
        if self.cache is None or self.identity is None:
            return None
        return self.cache.block(self.identity, pinned)

    def write(self, block: CachedBlock | None, found: Found) -> None:
        """Writes values to the cache. Values of a development chain replace older ones."""
        if self.cache is not None and block is not None:
            self.cache.put(block, found, replaces=not self.reads_cache)

    def known_codes(
        self, block: CachedBlock | None, addresses: Iterable[bytes]
    ) -> dict[bytes, bytes]:
        """Returns the known codes of these accounts, which they had at any block."""
        wanted = set(addresses)
        with self._lock:
            found = {item: self._codes[item] for item in wanted if item in self._codes}
        if self.cache is not None and block is not None and wanted - found.keys():
            found.update(self.cache.codes(block, wanted - found.keys()))
        return found

    def learn_codes(self, found: Found) -> None:
        """Stores the codes of these accounts."""
        with self._lock:
            for address, account in found.accounts.items():
                if len(account.code) >= MIN_KNOWN_CODE:
                    self._codes.pop(address, None)
                    self._codes[address] = account.code
            while len(self._codes) > MAX_KNOWN_CODES:
                del self._codes[next(iter(self._codes))]

    def add_checks(self, checks: Iterable[Check]) -> None:
        """Schedules comparisons of these values with reads in the next round trip."""
        with self._lock:
            self.checks += checks

    def take_checks(self) -> list[Check]:
        """Removes and returns the scheduled checks."""
        with self._lock:
            checks, self.checks = self.checks, []
        return checks
