"""The upstream of a forked chain: the state at the fork block, and the blocks up to this block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import fastevm.fork as fork
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import Found, Wanted
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_client.messages import RpcRefusal

Prepare = Callable[[RemoteState, ForkSchedule], Layer]
"""Creates the first state of a chain from known values. See `start.prepared`."""


def open_source(options: ForkOptions) -> fork.RemoteSource:
    """Returns a source of the state at the block that the options name.

    Raises ForkError, or ValueError for an invalid address.
    """
    return fork.RemoteSource.open(options.urls, options.block, **options.of_source())


class ForkHistory:
    """The upstream of a forked chain, at the fork block.

    Implements `StateSource` for that block, so that another endpoint can replace the first.
    ``newest`` fetches the values, either from ``source`` or at a later block that this node has
    executed. A value that this node does not know has not changed between the two blocks.
    """

    def __init__(self, source: fork.RemoteSource, options: ForkOptions, prepared: Prepare) -> None:
        """Creates the history.

        ``prepared`` creates the first state of a chain that starts at another block.
        """
        self.source, self.options, self.prepared = source, options, prepared
        self.newest = source
        self.chain_id, self.block_number = source.chain_id, source.block_number
        self.block_hash = source.block_hash

    @property
    def number(self) -> int:
        """The number of the fork block."""
        return self.block_number

    @property
    def name(self) -> str:
        return self.source.endpoint

    def fetch(self, wanted: Wanted) -> Found:
        """Returns values of the state at the fork. Raises ForkError."""
        return self.newest.fetch(wanted)

    def move(self, url: str) -> None:
        """Switches to another endpoint.

        Raises ForkError if that endpoint does not have the fork block.
        """
        options = self.options.for_request(url)
        options = replace(options, block=self.block_hash, transaction=None, resumed=None)
        old, self.source = self.source, open_source(options)
        self.options, self.newest = options, self.source
        old.close()

    def request(self, method: str, params: Sequence[Any]) -> Any:
        """Returns the result of a call to the upstream. Raises RpcRefusal or ForkError."""
        return self.source.request(method, params)

    def has_block(self, block_hash: bytes) -> bool:
        """Returns whether this is a block of the upstream up to the fork. Raises ForkError."""
        return self._is_held("eth_getBlockByHash", ["0x" + block_hash.hex(), False], "number")

    def has_transaction(self, tx_hash: bytes) -> bool:
        """Returns whether a block up to the fork has this transaction. Raises ForkError."""
        return self._is_held("eth_getTransactionByHash", ["0x" + tx_hash.hex()], "blockNumber")

    def close(self) -> None:
        """Closes the connections."""
        self.source.close()

    def summary(self) -> list[tuple[str, Any]]:
        """Returns names and values for the startup banner."""
        return [
            ("Endpoint", self.name),
            ("Block number", self.number),
            ("Block hash", "0x" + self.block_hash.hex()),
            ("Chain ID", self.chain_id),
        ]

    def metrics(self) -> dict[str, float]:
        """Returns the counters of the source, and the number of the fork block."""
        counters = {f"fork_{name}": value for name, value in self.source.counters.as_dict().items()}
        return counters | {"fork_block_number": self.number}

    def _is_held(self, method: str, params: Sequence[Any], member: str) -> bool:
        try:
            found = self.source.request(method, params)
        except RpcRefusal:
            return False
        number = found.get(member) if isinstance(found, dict) else None
        return isinstance(number, str) and int(number, 16) <= self.number
