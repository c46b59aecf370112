"""A generation of known values: what runs read since its block, the rest one generation before."""

from __future__ import annotations

from functools import partial

from fastevm.core.state.layer import Layer
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.fork import RemoteSource


class Generation:
    """The `StateSource` of a remote state that begins where another one was left.

    ``before``: the state of the source's block, above the older remote state. What is known there
    costs no request; so a value stays known while it is read once in a generation. ``newest``:
    where the rest is asked for, the newest block executed above this state; a value that is not
    known has not changed until there.
    """

    def __init__(self, source: RemoteSource, before: Layer) -> None:
        self.newest = source
        self.before: Layer | None = before
        self.chain_id, self.block_number = source.chain_id, source.block_number
        self.block_hash = source.block_hash
        self.carried = 0  # values that came from the generation before

    def fetch(self, wanted: Wanted) -> Found:
        """All wanted values, of the generation before where it knows them. ForkError."""
        before = self.before
        found = Found() if before is None else known_of(before, wanted)
        self.carried += len(found.accounts) + len(found.slots)
        missing = Wanted(
            wanted.accounts - found.accounts.keys(),
            wanted.slots - found.slots.keys(),
            wanted.block_hashes,
            wanted.calls,
        )
        if not missing:
            return found
        fetched = self.newest.fetch(missing)
        fetched.accounts.update(found.accounts)
        fetched.slots.update(found.slots)
        return fetched


def known_of(layer: Layer, wanted: Wanted) -> Found:
    """What of the wanted accounts and slots a state above a remote one knows; nothing is asked."""
    remote, found = layer.remote_state, Found()
    assert remote is not None
    for address in wanted.accounts:
        account, guessed = remote.attempt(partial(_account, layer, address))
        if not guessed:
            found.accounts[address] = account
    for address, slot in wanted.slots:
        value, guessed = remote.attempt(partial(layer.storage, address, slot))
        if not guessed:
            found.slots[address, slot] = value
    remote.take_missing()
    return found


def _account(layer: Layer, address: bytes) -> RemoteAccount:
    return RemoteAccount(layer.balance(address), layer.nonce(address), layer.code(address))
