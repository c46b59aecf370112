"""A source of remote state for tests. It serves the values of a layer and records requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastevm.core.state.layer import Layer
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.errors import ForkError


class LayerSource:
    """Serves the state of ``layer`` as block ``block_number`` of a chain."""

    chain_id = 1
    block_number = 100
    block_hash = b"\x01" * 32

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.asked: list[Wanted] = []
        self.broken = False

    def fetch(self, wanted: Wanted) -> Found:
        """Returns all values from the layer. Raises ForkError while ``broken``."""
        self.asked.append(wanted)
        if self.broken:
            raise ForkError("the source is broken")
        found = Found()
        for address in wanted.accounts:
            layer = self.layer
            found.accounts[address] = RemoteAccount(
                layer.balance(address), layer.nonce(address), layer.code(address)
            )
        for address, slot in wanted.slots:
            found.slots[address, slot] = self.layer.storage(address, slot)
        for number in wanted.block_hashes:
            found.block_hashes[number] = number.to_bytes(32, "big")
        return found


def forked(accounts: Mapping[bytes, Mapping[str, Any]]) -> tuple[Layer, LayerSource]:
    """Returns a layer above a remote state with these accounts, and the source."""
    source = LayerSource(Layer.of(accounts))
    return Layer.remote(source), source
