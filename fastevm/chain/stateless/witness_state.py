"""The state before a block, read from the block's witness, and the state root after the block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fastevm.chain.stateless.partial_trie import DIGEST_SIZE, BadNode, MissingNode, PartialTrie
from fastevm.chain.stateless.witness import WitnessError
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.layer import Layer
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.core.trie.proof import EMPTY_ROOT

EMPTY_CODE_HASH: Final = keccak256(b"")
WORD_SIZE: Final = 32
NONCE_SIZE: Final = 8


class StoredAccount(NamedTuple):
    """An account as the trie stores it: nonce, balance in wei, two hashes of 32 bytes."""

    nonce: int
    balance: int
    storage_root: bytes
    code_hash: bytes


class TrieError(WitnessError):
    """A change needs an unknown trie node.

    ``address`` is the owner of a storage trie, else None.
    """

    def __init__(self, text: str, error: MissingNode | BadNode, address: bytes | None) -> None:
        super().__init__(text)
        self.error, self.address = error, address


class WitnessState:
    """The values that trie nodes and codes prove for the state with this ``root``.

    A remote state requests each value from this object (see `ResolvingSource` in
    `fastevm.core.state.source`). Raises WitnessError for a value without proof. ``read_nodes`` and
    ``read_codes`` have the hashes of the required nodes and codes.
    """

    chain_id = 0

    def __init__(
        self,
        root: bytes,
        nodes: Iterable[bytes],
        codes: Iterable[bytes],
        *,
        block_number: int,
        block_hash: bytes,
    ) -> None:
        self.root, self.block_number, self.block_hash = root, block_number, block_hash
        self.nodes = {keccak256(node): node for node in nodes}
        self.codes = {keccak256(code): code for code in codes}
        self.read_nodes: set[bytes] = set()
        self.read_codes: set[bytes] = set()
        self._accounts = self._trie(root)
        self._storages: dict[bytes, PartialTrie] = {}  # by address

    # --- values -----------------------------------------------------------------------------------

    def stored(self, address: bytes) -> StoredAccount | None:
        """Returns an account, or None if the witness proves its absence. Raises WitnessError."""
        try:
            leaf = self._accounts.get(keccak256(address))
            return None if leaf is None else _account(leaf)
        except (MissingNode, BadNode) as error:
            raise WitnessError(f"account 0x{address.hex()}: {error}") from None

    def slot(self, address: bytes, slot: int) -> int:
        """Returns the value of a slot. Raises WitnessError."""
        try:
            leaf = self._storage(address).get(keccak256(slot.to_bytes(WORD_SIZE, "big")))
            return 0 if leaf is None else _number(_decoded(leaf), WORD_SIZE, "value", least=1)
        except (MissingNode, BadNode) as error:
            raise WitnessError(f"slot {slot:#x} of 0x{address.hex()}: {error}") from None

    def fetch(self, wanted: Wanted) -> Found:
        """Returns all wanted values. Raises WitnessError for the first value without proof."""
        found = Found()
        for address in wanted.accounts:
            found.accounts[address] = self._remote_account(address)
        for address, slot in wanted.slots:
            found.slots[address, slot] = self.slot(address, slot)
        for number in wanted.block_hashes:
            raise WitnessError(f"headers: the hash of block {number} is missing")
        return found

    def read_code(self, address: bytes, code_hash: bytes) -> None:
        """Raises WitnessError if the code is not in the witness."""
        if code_hash not in self.codes:
            raise WitnessError(
                f"account 0x{address.hex()}: its code 0x{code_hash.hex()} is missing"
            )
        self.read_codes.add(code_hash)

    def _remote_account(self, address: bytes) -> RemoteAccount:
        account = self.stored(address)
        if account is None:
            return RemoteAccount(0, 0)
        code = b"" if account.code_hash == EMPTY_CODE_HASH else self.codes.get(account.code_hash)
        return RemoteAccount(
            account.balance,
            account.nonce,
            code or b"",
            empty=not (account.balance or account.nonce),
            unknown_code=account.code_hash if code is None else None,
            has_storage=account.storage_root != EMPTY_ROOT,
        )

    def _trie(self, root: bytes) -> PartialTrie:
        return PartialTrie(root, self.nodes, self.read_nodes)

    def _storage(self, address: bytes) -> PartialTrie:
        trie = self._storages.get(address)
        if trie is None:
            account = self.stored(address)
            trie = self._trie(EMPTY_ROOT if account is None else account.storage_root)
            self._storages[address] = trie
        return trie

    # --- the state after the block ----------------------------------------------------------------

    def root_after(self, layer: Layer) -> bytes:
        """Returns the root of ``layer``, which is above this state. Raises WitnessError.

        Writes are applied to the tries before deletions, so that a deletion finds siblings that the
        block wrote. Afterwards this object has the values of ``layer``. The method may be called
        again for a later layer.
        """
        hidden = layer.hidden()
        leaves: dict[bytes, bytes] = {}
        for address in {*layer.addresses(), *hidden}:
            try:
                leaves[keccak256(address)] = self._leaf_after(layer, address, hidden)
            except (MissingNode, BadNode) as error:
                where = f"storage of 0x{address.hex()}"
                raise TrieError(f"{where}: {error}", error, address) from None
        try:
            _write(self._accounts, leaves)
        except (MissingNode, BadNode) as error:
            raise TrieError(f"state: {error}", error, None) from None
        return self._accounts.root()

    def storage_root(self, address: bytes) -> bytes:
        """Returns the storage root of an account; after `root_after`, the new root.

        Raises WitnessError.
        """
        return self._storage(address).root()

    def _leaf_after(
        self, layer: Layer, address: bytes, hidden: Mapping[bytes, set[int] | None]
    ) -> bytes:
        """Returns the leaf of a changed account, or empty bytes if the account was deleted."""
        account, zeroed = layer.account(address), hidden.get(address, set())
        if zeroed is None:
            self._storages[address] = self._trie(EMPTY_ROOT)
        if account is None:
            return b""
        slots = dict.fromkeys(zeroed or (), 0) | layer.storage_items(address)
        trie = self._storage(address)
        _write(
            trie,
            {
                keccak256(slot.to_bytes(WORD_SIZE, "big")): rlp.encode(value) if value else b""
                for slot, value in slots.items()
            },
        )
        return rlp.encode((account.nonce, account.balance, trie.root(), account.code_hash))


def _write(trie: PartialTrie, values: Mapping[bytes, bytes]) -> None:
    for key, value in sorted(values.items(), key=lambda item: not item[1]):
        trie.put(key, value)


def _account(leaf: bytes) -> StoredAccount:
    """Raises BadNode if the value is not an account."""
    items = _decoded(leaf)
    if not isinstance(items, list) or len(items) != len(StoredAccount._fields):
        raise BadNode("the value of a leaf is not an account")
    nonce, balance, storage_root, code_hash = items
    for name, value in (("storage root", storage_root), ("code hash", code_hash)):
        if not isinstance(value, bytes) or len(value) != DIGEST_SIZE:
            raise BadNode(f"the {name} of an account does not have {DIGEST_SIZE} bytes")
    return StoredAccount(
        _number(nonce, NONCE_SIZE, "nonce"),
        _number(balance, WORD_SIZE, "balance"),
        storage_root,
        code_hash,
    )


def _number(item: Any, most: int, name: str, *, least: int = 0) -> int:
    if not isinstance(item, bytes) or not least <= len(item) <= most or item[:1] == b"\0":
        raise BadNode(f"a {name} is no number of {least} to {most} bytes")
    return int.from_bytes(item, "big")


def _decoded(leaf: bytes) -> Any:
    try:
        return rlp.decode(leaf)
    except ValueError as error:
        raise BadNode(f"the value of a leaf: {error}") from None
