"""Finds out whether a node made its next block while the state of its newest one was read.

anvil resolves the block of a read before it waits for the block that it mines, and then reads the
state behind that: the values are those of the next block, whether the block was named by number or
by hash. The number of its head tells too late. What is in its database at once is the hash of the
block that it mined, which code sees as soon as a later block is simulated.
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

CLIENTS: Final = ("anvil",)  # in lower case, the beginnings of names of nodes that do this
OURS: Final = "fastevm"  # has that name in front of its own, and a state for every block
READER: Final = "0x" + "ee" * 20  # an address without meaning
WAIT_SECONDS: Final = 5.0  # for the block that is being mined
PAUSE_SECONDS: Final = 0.01


class NewestBlock:
    """Block ``number``, which was the newest when it was chosen.

    ``is_passed``: there is a newer one, so that reads which begin now give its own state.
    """

    def __init__(self, endpoints: Endpoints, number: int) -> None:
        self.number, self.is_passed = number, False
        self._endpoints = endpoints

    def was_passed(self) -> bool:
        """Whether values that came until now may be those of the next block.

        Then it returns only when that is the newest one. ForkError.
        """
        if not self._next_is_known():
            return False
        ends = monotonic() + WAIT_SECONDS
        while self._head() <= self.number:
            if monotonic() > ends:
                log.warning("%s: nobody knows whether it makes a block", self._endpoints.name)
                return False
            sleep(PAUSE_SECONDS)
        self.is_passed = True
        return True

    def _next_is_known(self) -> bool:
        """Whether the hash of the next block is in the node's newest state."""
        following = self.number + 1
        code = f"0x67{following:016x}4060005260206000f3"  # BLOCKHASH, to be returned
        params = (
            {"to": READER}, "latest", {READER: {"code": code}}, {"number": quantity(following + 1)},
        )  # fmt: skip
        answer = self._endpoints.ask([RpcCall("eth_call", params, optional=True)])[0]
        unknown = "0x" + keccak256(str(following).encode()).hex()  # what anvil says in place of it
        return isinstance(answer, str) and answer != unknown

    def _head(self) -> int:
        answer: Any = self._endpoints.ask([RpcCall("eth_blockNumber")])[0]
        return read_number(answer, "eth_blockNumber") if isinstance(answer, str) else 0


def may_be_passed(client: str) -> bool:
    """Whether a node that calls itself so gives values of its next block."""
    name = client.lower()
    return name.startswith(CLIENTS) and OURS not in name
