"""One round trip for state values: the calls and the handlers of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fastevm.core.primitives.hex import quantity
from fastevm.errors import ForkError
from fastevm.fork.call_list import RpcCall
from fastevm.fork.capabilities import Capabilities, Capability
from fastevm.fork.collector import BadValue, Collector, bytes_of
from fastevm.fork.endpoints import Endpoints
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.fork.refusals import means_bad_block_parameter, means_no_block, means_no_state
from fastevm.rpc_client.messages import Answer, RpcRefusal

Handler = Callable[[Any], None]
ARCHIVE_HINT: Final = "ask an archive node, or fork from a newer block"


class BlockFormRefused(Exception):
    """The endpoint does not accept a block by hash."""


class StateBatch:
    """A batch of calls, each with a handler for its answer.

    ``send`` is called once. Values are added to ``collector``; handlers of ``optional`` calls
    receive every answer, including refusals. ``tried``: capabilities that this batch tries.
    ``changed_codes``: accounts whose code differs from their code at the previous block.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        block: PinnedBlock,
        capabilities: Capabilities,
        collector: Collector,
    ) -> None:
        self.endpoints, self.block = endpoints, block
        self.capabilities, self.collector = capabilities, collector
        self.calls: list[RpcCall] = []
        self.tried: set[str] = set()
        self.changed_codes: set[bytes] = set()
        self._handlers: list[Handler] = []
        self._after_part: Callable[[], None] | None = None
        self._comparisons: list[Callable[[], None]] = []
        self._checks_canonical = False

    @property
    def block_parameter(self) -> Any:
        """The block parameter: by hash, or by number if the endpoint accepts only numbers."""
        by_number = self.capabilities.get(Capability.BLOCK_HASH) is False
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
        """Adds a call. ``handler`` receives the result and, if ``optional``, also a refusal."""
        self.calls.append(RpcCall(method, params, optional, exists))
        self._handlers.append(handler)

    def read_block_hash(self, number: int) -> None:
        """Reads the hash of a block before the pinned block, by number."""

        def take(answer: Any) -> None:
            if not isinstance(answer, Mapping):
                raise BadValue(f"no block {number}")
            self.collector.block_hash(number, bytes_of(answer.get("hash"), "hash", 32))

        self.add("eth_getBlockByNumber", (quantity(number), False), take, exists=True)

    def compare(self, comparison: Callable[[], None]) -> None:
        """Calls ``comparison`` after all answers have arrived."""
        self._comparisons.append(comparison)

    def check_canonical(self) -> None:
        """Verifies that the block number still refers to this block, because reads by number depend
        on that.
        """
        if self._checks_canonical:
            return
        self._checks_canonical = True

        def take(answer: Any) -> None:
            if answer is None:
                raise ForkError(
                    f"{self.endpoints.name}: it no longer knows {self.block}:"
                    " retry later, or fork from a finalized block"
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
        """Sends the calls and passes each answer to its handler.

        Calls ``after_part`` after each part.

        Raises ForkError, or BlockFormRefused if the endpoint does not accept blocks by hash.
        """
        self._after_part = after_part
        if self.capabilities.get(Capability.BLOCK_HASH) is False and self.calls:
            self.check_canonical()
        self.endpoints.ask(self.calls, self._take)
        if self.capabilities.get(Capability.BLOCK_HASH) is None and self.calls:
            self.capabilities.set(Capability.BLOCK_HASH, True)
        for comparison in self._comparisons:
            comparison()

    def _take(self, answers: Mapping[int, Answer]) -> None:
        for index, answer in answers.items():
            call = self.calls[index]
            if isinstance(answer, RpcRefusal) and not call.optional:
                self._refused(call, answer)
            try:
                self._handlers[index](answer)
            except BadValue as error:
                if call.optional:
                    self._handlers[index](RpcRefusal(0, str(error)))
                    continue
                raise ForkError(
                    f"{self.endpoints.name}: {call.method} at {self.block}: {error}"
                ) from None
        if self._after_part is not None:
            self._after_part()

    def _refused(self, call: RpcCall, refusal: RpcRefusal) -> None:
        """Raises the exception for a refused read."""
        by_hash = isinstance(call.params[-1], Mapping)
        untried = self.capabilities.get(Capability.BLOCK_HASH) is None
        if by_hash and untried and means_bad_block_parameter(refusal):
            self.capabilities.set(Capability.BLOCK_HASH, False)
            raise BlockFormRefused
        raise state_error(self.endpoints.name, call, self.block, refusal)


def state_error(endpoint: str, call: RpcCall, block: PinnedBlock, refusal: RpcRefusal) -> ForkError:
    """Returns the error for a refused read.

    Its text has endpoint, method, block, reason and remedy.
    """
    text = f"{endpoint}: {call.method} at {block}: {refusal.message} ({refusal.code})"
    if means_no_state(refusal):
        return ForkError(f"{text}: the endpoint does not keep this state: {ARCHIVE_HINT}")
    if means_no_block(refusal):
        return ForkError(f"{text}: the endpoint does not know this block: {ARCHIVE_HINT}")
    return ForkError(text)
