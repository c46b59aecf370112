"""A generation of known values: the values read since its first block.

If a value is missing, the values of the previous generation are used.
"""

from __future__ import annotations

from functools import partial

from fastevm.core.state.layer import Layer
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.fork import RemoteSource


class Generation:
    """The `StateSource` of a remote state that continues where an older remote state ended.

    ``before``: the state of the source's block, above the older remote state. Values that
    ``before`` knows need no request, so a value stays known if it is read once per generation.
    ``newest``: fetches other values at the newest block executed above this state. A value that
    this node does not know has not changed between the source's block and that block.
    """

    def __init__(self, source: RemoteSource, before: Layer) -> None:
        self.newest = source
        self.before: Layer | None = before
        self.chain_id, self.block_number = source.chain_id, source.block_number
        self.block_hash = source.block_hash
        self.carried = 0  # values taken from the previous generation

    def fetch(self, wanted: Wanted) -> Found:
        """Returns all wanted values, from the previous generation if known. Raises ForkError."""
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
    """Returns the wanted values that a state above a remote state knows, without a request."""
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
