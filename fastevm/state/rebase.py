"""A state above an older block of a remote chain as the state of a newer block of it."""

from __future__ import annotations

from collections.abc import Collection

from fastevm.state.layer import Layer
from fastevm.state.remote import KNOWN_LIMIT, RemoteState
from fastevm.state.source import Found, RemoteAccount, StateSource


def rebased(
    layer: Layer, source: StateSource, accounts: Collection[bytes], *, limit: int = KNOWN_LIMIT
) -> Layer:
    """The same state on a remote one that begins at ``source``: all else is forgotten.

    ``layer`` must have the state of the source's block, by execution of the blocks between. Of
    ``accounts`` (20-byte addresses) what is known here stays known; any other value is fetched
    again when it is read. ValueError for a layer above no remote state.
    """
    if layer.remote_state is None:
        raise ValueError("the layer stands on no remote state")
    known, hidden = layer.remote_state.known_values(), layer.hidden()
    here = set(layer.addresses())
    kept = set(accounts)
    found = Found(block_hashes=known.block_hashes)
    for (address, slot), value in known.slots.items():
        zeroed = hidden.get(address, ())
        if address in kept and zeroed is not None and slot not in zeroed:
            found.slots[address, slot] = value
    for address in kept:
        if address in here:
            found.accounts[address] = RemoteAccount(
                layer.balance(address), layer.nonce(address), layer.code(address)
            )
            zeroes = dict.fromkeys(hidden.get(address) or (), 0)
            for slot, value in (zeroes | layer.storage_items(address)).items():
                found.slots[address, slot] = value
        elif address in hidden:
            found.accounts[address] = RemoteAccount(0, 0)
        elif address in known.accounts:
            found.accounts[address] = known.accounts[address]
    remote = RemoteState(source, limit=limit)
    remote.put(found)
    return Layer.remote(remote)
