"""The state of one block of another node's chain: a ``StateSource`` over JSON-RPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from fastevm.errors import ForkError
from fastevm.fork.abilities import Abilities
from fastevm.fork.block_choice import BlockChoice, BlockLike, read_block, split_block
from fastevm.fork.call_list import RpcCall
from fastevm.fork.collector import Collector, word_of
from fastevm.fork.counters import ForkCounters
from fastevm.fork.endpoints import (
    DEFAULT_BACKOFF,
    DEFAULT_BATCH_SIZE,
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT,
    EndpointOptions,
    Endpoints,
)
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.fork.rate_limit import DEFAULT_UNITS_PER_SECOND
from fastevm.fork.state_trip import BlockFormRefused, StateTrip
from fastevm.state.source import Found, Wanted
from fastevm.wire.client.messages import RpcRefusal, result_of


class RemoteSource:
    """Reads the state of ``block_hash`` from an endpoint. Safe to use from several threads.

    ``header``: the block's JSON object. ``counters`` are shared with the siblings of ``at``.
    """

    def __init__(
        self, endpoints: Endpoints, chain_id: int, block: PinnedBlock, abilities: Abilities
    ) -> None:
        self.endpoints, self.chain_id, self._block = endpoints, chain_id, block
        self._abilities = abilities

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
    ) -> Self:
        """The state of ``block`` at one endpoint with one or several addresses.

        ``block``: "latest", "safe", "finalized", "earliest", a number (negative: so many below the
        newest), or a hash; ``ADDRESS@BLOCK`` has precedence. One round trip, two for a negative
        number. ForkError; ValueError for an address or a block that is none.
        """
        addresses, chosen = _addresses(urls, read_block(block))
        options = EndpointOptions(
            headers=dict(headers or {}),
            retries=retries,
            timeout=timeout,
            backoff=backoff,
            compute_units_per_second=compute_units_per_second,
            rate_limit=rate_limit,
            batch_size=batch_size,
            progress=progress,
        )
        endpoints = Endpoints(addresses, options, ForkCounters())
        found_id, pinned = _pinned(endpoints, chosen, chain_id)
        return cls(endpoints, found_id, pinned, Abilities())

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
        """The block's JSON object."""
        return self._block.header

    @property
    def counters(self) -> ForkCounters:
        """What this fork has cost so far."""
        return self.endpoints.counters

    def at(self, block: BlockLike) -> RemoteSource:
        """A source of another block of the same chain: same endpoint, cache and counters."""
        _, pinned = _pinned(self.endpoints, read_block(block), self.chain_id)
        return RemoteSource(self.endpoints, self.chain_id, pinned, self._abilities)

    def fetch(self, wanted: Wanted) -> Found:
        """All wanted values and what else the calls touch, in one or two round trips.

        ForkError, which names the endpoint without its key.
        """
        if not wanted:
            return Found()
        for _ in range(2):
            collector = Collector()
            trip = StateTrip(self.endpoints, self._block, self._abilities, collector)
            for address in wanted.accounts:
                trip.read_account(address)
            for address, slot in wanted.slots:
                trip.read_slot(address, slot)
            for number in wanted.block_hashes:
                trip.read_block_hash(number)
            try:
                trip.send()
            except BlockFormRefused:
                continue
            return collector.found
        raise ForkError(f"{self.endpoints.name}: no form of a block is understood")

    def request(self, method: str, params: Sequence[Any] = ()) -> Any:
        """The result of any call. RpcRefusal, ForkError."""
        return result_of(self.batch([(method, params)])[0])

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """A result or RpcRefusal for each call in their order, in one round trip. ForkError."""
        return self.endpoints.ask([RpcCall(method, params) for method, params in calls])

    def close(self) -> None:
        """Close the connections, for all siblings."""
        self.endpoints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f"{self.endpoints.name} chain {self.chain_id}"
        return f"<RemoteSource {where} block {self.block_number} 0x{self.block_hash.hex()[:8]}>"


def _addresses(urls: str | Sequence[str], block: BlockChoice) -> tuple[list[str], BlockChoice]:
    """The addresses without their blocks, and the block of the first that has one."""
    split = [split_block(url) for url in ([urls] if isinstance(urls, str) else urls)]
    named = [one for _, one in split if one is not None]
    return [url for url, _ in split], named[0] if named else block


def _pinned(
    endpoints: Endpoints, chosen: BlockChoice, chain_id: int | None
) -> tuple[int, PinnedBlock]:
    """The chain id and the block, in one round trip."""
    id_answer, block_answer = endpoints.ask([RpcCall("eth_chainId"), chosen.call])
    for answer in (id_answer, block_answer):
        if isinstance(answer, RpcRefusal):
            raise ForkError(f"{endpoints.name}: {answer.message} ({answer.code})")
    found_id = word_of(id_answer, "eth_chainId")
    if chain_id is not None and found_id != chain_id:
        raise ForkError(f"{endpoints.name}: expected chain {chain_id}, found {found_id}")
    pinned = _block_in(endpoints, block_answer, chosen)
    if chosen.below is not None:
        chosen = BlockChoice(number=max(0, pinned.number - chosen.below))
        pinned = _block_in(endpoints, endpoints.ask([chosen.call])[0], chosen)
    return found_id, pinned


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
        raise ForkError(f"{endpoints.name}: another block than {chosen} was answered")
    return pinned
