"""One round trip for values of a state: which calls, and what becomes of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fastevm.core.primitives.hex import quantity
from fastevm.errors import ForkError
from fastevm.fork.call_list import RpcCall
from fastevm.fork.capabilities import Abilities, Ability
from fastevm.fork.collector import BadValue, Collector, bytes_of
from fastevm.fork.endpoints import Endpoints
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.fork.refusals import means_bad_block_parameter, means_no_block, means_no_state
from fastevm.rpc_client.messages import Answer, RpcRefusal

Handler = Callable[[Any], None]
ARCHIVE_HINT: Final = "ask an archive node, or fork from a newer block"


class BlockFormRefused(Exception):
    """The endpoint does not take a block by its hash."""


class StateTrip:
    """Calls that go together, each with what takes its answer.

    ``send`` is called once. Values go to ``collector``; every answer of ``optional`` calls, also a
    refusal, to their handler. ``tried``: abilities that this trip tries; ``changed_codes``:
    accounts whose code is another one than at the block before.
    """

    def __init__(
        self, endpoints: Endpoints, block: PinnedBlock, abilities: Abilities, collector: Collector
    ) -> None:
        self.endpoints, self.block = endpoints, block
        self.abilities, self.collector = abilities, collector
        self.calls: list[RpcCall] = []
        self.tried: set[str] = set()
        self.changed_codes: set[bytes] = set()
        self._handlers: list[Handler] = []
        self._after_part: Callable[[], None] | None = None
        self._comparisons: list[Callable[[], None]] = []
        self._checks_canonical = False

    @property
    def block_parameter(self) -> Any:
        """The block by its hash, or by number where the endpoint takes only that."""
        by_number = self.abilities.get(Ability.BLOCK_HASH) is False
        return self.block.by_number if by_number else self.block.by_hash

    def add(
        self,
        method: str,
        params: Sequence[Any],
        handler: Handler,
        *,
        optional: bool = False,
        exists: bool = False,
    ) -> None:
        """Add a call; ``handler`` is given its result, or the refusal too if ``optional``."""
        self.calls.append(RpcCall(method, params, optional, exists))
        self._handlers.append(handler)

    def read_block_hash(self, number: int) -> None:
        """The hash of a block below the pinned one, by its number."""

        def take(answer: Any) -> None:
            if not isinstance(answer, Mapping):
                raise BadValue(f"no block {number}")
            self.collector.block_hash(number, bytes_of(answer.get("hash"), "hash", 32))

        self.add("eth_getBlockByNumber", (quantity(number), False), take, exists=True)

    def compare(self, comparison: Callable[[], None]) -> None:
        """Do this when all answers are there."""
        self._comparisons.append(comparison)

    def check_canonical(self) -> None:
        """Make sure that the block's number still means this block: answers depend on it."""
        if self._checks_canonical:
            return
        self._checks_canonical = True

        def take(answer: Any) -> None:
            if answer is None:
                raise ForkError(
                    f"{self.endpoints.name}: it does not know {self.block}, of which it told:"
                    " ask again later, or fork from a finalized block"
                )
            found = answer.get("hash") if isinstance(answer, Mapping) else None
            if found != "0x" + self.block.hash.hex():
                raise ForkError(
                    f"{self.endpoints.name}: {self.block} was reorganised away: "
                    "fork from the newest block again, or from a finalized one"
                )

        params = (self.block.by_number, False)
        self.add("eth_getBlockByNumber", params, take, exists=True)

    def send(self, after_part: Callable[[], None] | None = None) -> None:
        """Ask, and give every answer to its handler; ``after_part`` is called in between.

        ForkError; BlockFormRefused if the block was named by hash and that is not understood.
        """
        self._after_part = after_part
        if self.abilities.get(Ability.BLOCK_HASH) is False and self.calls:
            self.check_canonical()
        self.endpoints.ask(self.calls, self._take)
        if self.abilities.get(Ability.BLOCK_HASH) is None and self.calls:
            self.abilities.set(Ability.BLOCK_HASH, True)
        for comparison in self._comparisons:
            comparison()

    def _take(self, answers: Mapping[int, Answer]) -> None:
        for place, answer in answers.items():
            call = self.calls[place]
            if isinstance(answer, RpcRefusal) and not call.optional:
                self._refused(call, answer)
            try:
                self._handlers[place](answer)
            except BadValue as error:
                if call.optional:
                    self._handlers[place](RpcRefusal(0, str(error)))
                    continue
                raise ForkError(
                    f"{self.endpoints.name}: {call.method} at {self.block}: {error}"
                ) from None
        if self._after_part is not None:
            self._after_part()

    def _refused(self, call: RpcCall, refusal: RpcRefusal) -> None:
        """Raise what the refusal of a read means."""
        by_hash = isinstance(call.params[-1], Mapping)
        untried = self.abilities.get(Ability.BLOCK_HASH) is None
        if by_hash and untried and means_bad_block_parameter(refusal):
            self.abilities.set(Ability.BLOCK_HASH, False)
            raise BlockFormRefused
        raise state_error(self.endpoints.name, call, self.block, refusal)


def state_error(endpoint: str, call: RpcCall, block: PinnedBlock, refusal: RpcRefusal) -> ForkError:
    """What to tell about a refused read: who refused, what, why, and what to do."""
    text = f"{endpoint}: {call.method} at {block}: {refusal.message} ({refusal.code})"
    if means_no_state(refusal):
        return ForkError(f"{text}: the endpoint does not keep this state: {ARCHIVE_HINT}")
    if means_no_block(refusal):
        return ForkError(f"{text}: the endpoint does not know this block: {ARCHIVE_HINT}")
    return ForkError(text)
