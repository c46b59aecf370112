"""What the sources of one endpoint share: its identity and abilities, the cache, known codes."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fastevm.core.state.source import Found
from fastevm.fork.account_reads import MIN_KNOWN_CODE
from fastevm.fork.capabilities import Abilities
from fastevm.fork.counters import ForkCounters
from fastevm.fork.disk_cache import CachedBlock, DiskCache
from fastevm.fork.endpoint import is_loopback
from fastevm.fork.endpoints import Endpoints
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.rpc_client.messages import Answer

log = logging.getLogger(__name__)

MAX_KNOWN_CODES: Final = 4_096  # accounts whose code is remembered in memory
MAX_CHECKS: Final = 4  # values of another origin that are held against reads
DEVELOPMENT_CHAINS: Final = (1337, 31337)
DEVELOPMENT_CLIENTS: Final = ("anvil", "hardhat", "ganache", "edr")


class Check(Struct, frozen=True):
    """A slot whose value came from ``origin``, and has not been held against a read yet."""

    block: PinnedBlock
    address: bytes
    slot: int
    value: int
    origin: str


class Session:
    """One endpoint (of one or several addresses) and what is known of it.

    ``chain_id`` and ``client``: as it says. ``identity``: the key of its chain in the cache: the
    chain id, on this machine also the hash of the first block; None = nothing is kept.
    ``keeps_newest``: the newest state of a development chain is kept as well, though it can change.
    ``head``: the number of a block that it has. ``told``: answers to `opening.RULES_CALLS`, none
    where they were not asked with the first call.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        cache: DiskCache | None,
        *,
        offline: bool,
        keeps_newest: bool = False,
    ) -> None:
        self.endpoints, self.cache, self.offline = endpoints, cache, offline
        self.keeps_newest = keeps_newest
        endpoints.offline = offline
        self.abilities = Abilities()
        self.chain_id = 0
        self.client = ""
        self.identity: str | None = None
        self.head = 0
        self.told: Sequence[Answer] = ()
        self.loopback = any(map(is_loopback, endpoints.urls))
        self.checks: list[Check] = []
        self._codes: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    @property
    def counters(self) -> ForkCounters:
        """What all sources of this session have cost."""
        return self.endpoints.counters

    @property
    def is_development(self) -> bool:
        """Whether the chain is one whose state can change without a block."""
        known = self.client.lower().startswith(DEVELOPMENT_CLIENTS)
        return known or self.chain_id in DEVELOPMENT_CHAINS

    @property
    def newest_is_volatile(self) -> bool:
        """Whether the state of the newest block is not kept, since it can change."""
        return self.is_development and not self.keeps_newest

    @property
    def key(self) -> str:
        """The endpoint's name in the cache, from which nobody learns its address."""
        return hashlib.sha256("\n".join(sorted(self.endpoints.urls)).encode()).hexdigest()[:32]

    def recall(self) -> tuple[str, Mapping[str, Any]] | None:
        """The chain and the abilities that this endpoint had the last time."""
        return None if self.cache is None else self.cache.endpoint(self.key)

    def identify(self, chain_id: int, client: str, genesis: bytes | None) -> None:
        """Take what the endpoint says of itself, and what is known of it from the last time."""
        self.chain_id, self.client = chain_id, client
        if not self.loopback:
            self.identity = f"{chain_id}"
        elif genesis is not None:
            self.identity = f"{chain_id}:{genesis.hex()}"
        last = self.recall()
        if last is not None and last[1].get("client") == client:
            self.abilities = Abilities(last[1])
            limit = last[1].get("batch_limit")
            if isinstance(limit, int):
                self.endpoints.batch_limit = limit
        self.abilities.changed = last is None or last[0] != self.identity

    def remember(self) -> None:
        """Write what was learned about the endpoint."""
        limit = self.endpoints.batch_limit
        learned = self.abilities.changed or limit < self.endpoints.options.batch_size
        if self.cache is not None and self.identity is not None and learned:
            self.abilities.changed = False
            known = {**self.abilities.as_dict(), "client": self.client, "batch_limit": limit}
            self.cache.put_endpoint(self.key, self.identity, known)

    def cached_block(self, pinned: PinnedBlock) -> CachedBlock | None:
        """The block's key in the cache, which is written with its header."""
        if self.cache is None or self.identity is None:
            return None
        return self.cache.block(self.identity, pinned)

    def known_codes(
        self, block: CachedBlock | None, addresses: Iterable[bytes]
    ) -> dict[bytes, bytes]:
        """Codes that these accounts had at any block."""
        wanted = set(addresses)
        with self._lock:
            found = {one: self._codes[one] for one in wanted if one in self._codes}
        if self.cache is not None and block is not None and wanted - found.keys():
            found.update(self.cache.codes(block, wanted - found.keys()))
        return found

    def learn_codes(self, found: Found) -> None:
        """Remember the codes of these accounts."""
        with self._lock:
            for address, account in found.accounts.items():
                if len(account.code) >= MIN_KNOWN_CODE:
                    self._codes.pop(address, None)
                    self._codes[address] = account.code
            while len(self._codes) > MAX_KNOWN_CODES:
                del self._codes[next(iter(self._codes))]

    def add_checks(self, checks: Iterable[Check]) -> None:
        """Hold these values against reads in the next round trip."""
        with self._lock:
            self.checks += checks

    def take_checks(self) -> list[Check]:
        """The checks that are due."""
        with self._lock:
            checks, self.checks = self.checks, []
        return checks
