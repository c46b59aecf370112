"""Detects whether a node mined its next block while the state of its newest block was read.

While anvil mines a block, a read of its newest block waits and then returns values of the mined
block, even if the read names the old block by number or hash. The head number changes too late to
show this. But anvil's database has the hash of the mined block immediately, and a call in a
simulated later block can read that hash. This call has the opposite race: if the head changes after
anvil resolved the call's block, the call runs on the old state. So the head number is read after
the call.
"""

from __future__ import annotations

import logging
from time import monotonic, sleep
from typing import Any, Final

from fastevm.core.primitives.config_values import read_number
from fastevm.core.primitives.hex import quantity
from fastevm.core.primitives.keccak import keccak256
from fastevm.fork.call_list import RpcCall
from fastevm.fork.endpoints import Endpoints

log = logging.getLogger(__name__)

CLIENTS: Final = ("anvil",)  # client name prefixes in lower case
# fastevm's client name also contains anvil's name, but fastevm has a state for every block
OURS: Final = "fastevm"
READER: Final = "0x" + "ee" * 20  # an arbitrary address
WAIT_SECONDS: Final = 5.0  # seconds to wait for the block that is being mined
PAUSE_SECONDS: Final = 0.01


class NewestBlock:
    """The block ``number``, which was the newest block when it was selected.

    ``is_passed``: a newer block exists, so new reads return the state of block ``number``.
    """

    def __init__(self, endpoints: Endpoints, number: int) -> None:
        self.number, self.is_passed = number, False
        self._endpoints = endpoints

    def was_passed(self) -> bool:
        """Returns whether values read so far may belong to the next block.

        If so, first waits until the next block is the newest. Raises ForkError.
        """
        if not self._next_is_known() and self._head() <= self.number:
            return False
        ends = monotonic() + WAIT_SECONDS
        while self._head() <= self.number:
            if monotonic() > ends:
                log.warning("%s: cannot tell whether it is mining a block", self._endpoints.name)
                return False
            sleep(PAUSE_SECONDS)
        self.is_passed = True
        return True

    def _next_is_known(self) -> bool:
        """Returns whether the hash of the next block is in the node's newest state."""
        following = self.number + 1
        code = f"0x67{following:016x}4060005260206000f3"  # returns BLOCKHASH
        params = (
            {"to": READER}, "latest", {READER: {"code": code}}, {"number": quantity(following + 1)},
        )  # fmt: skip
        answer = self._endpoints.ask([RpcCall("eth_call", params, optional=True)])[0]
        # the hash that anvil returns for an unknown block
        unknown = "0x" + keccak256(str(following).encode()).hex()
        return isinstance(answer, str) and answer != unknown

    def _head(self) -> int:
        answer: Any = self._endpoints.ask([RpcCall("eth_blockNumber")])[0]
        return read_number(answer, "eth_blockNumber") if isinstance(answer, str) else 0


def may_be_passed(client: str) -> bool:
    """Returns whether a node with this client name may return values of its next block."""
    name = client.lower()
    return name.startswith(CLIENTS) and OURS not in name
