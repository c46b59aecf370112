"""Records the witness of a block by executing it again on its parent's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fastevm.chain.config import ChainConfig
from fastevm.chain.stateless.partial_trie import MissingNode
from fastevm.chain.stateless.verification import executed
from fastevm.chain.stateless.witness import Witness, WitnessError
from fastevm.chain.stateless.witness_state import WORD_SIZE, TrieError, WitnessState
from fastevm.core.execution.types import Block, Header
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.layer import Layer
from fastevm.core.state.source import Found, Wanted


def witness_of(
    block: Block, layer: Layer, chain: ChainConfig, header_of: Callable[[bytes], Header]
) -> Witness:
    """Returns the smallest witness with which `verify` accepts a block.

    ``layer``: the parent's state. ``header_of``: returns an ancestor by hash. Raises WitnessError
    if the state is partial or its root is not that of the parent's header, and InvalidBlock if the
    block cannot be executed.
    """
    parent = header_of(block.header.parent_hash)
    if layer.remote_state is not None:
        raise WitnessError("the state is known in part only, so it has no witness")
    if layer.state_root() != parent.state_root:
        raise WitnessError(f"the state after block {parent.number} was changed without a block")
    state = RecordingState(layer, parent, header_of)
    executed(block, parent, state, chain, (parent.hash,))
    return state.witness()


class RecordingState(WitnessState):
    """A complete state that records what a block reads into its witness."""

    def __init__(self, layer: Layer, parent: Header, header_of: Callable[[bytes], Header]) -> None:
        super().__init__(
            parent.state_root, (), (), block_number=parent.number, block_hash=parent.hash
        )
        self._layer, self._header_of = layer, header_of
        self._headers = [parent]
        self._keys: dict[bytes, set[int]] = {}  # address -> slots that were read

    def fetch(self, wanted: Wanted) -> Found:
        """Returns all wanted values and adds their trie nodes to the pool."""
        for address in wanted.accounts | {address for address, _ in wanted.slots}:
            if address not in self._keys:
                self._keys[address] = set()
                self._pool(self._layer.account_path(keccak256(address)))
        for address, slot in wanted.slots:
            self._keys[address].add(slot)
            path = keccak256(slot.to_bytes(WORD_SIZE, "big"))
            self._pool(self._layer.storage_path(address, path))
        for address in wanted.accounts:
            code = self._layer.code(address)
            if code:
                self.codes[keccak256(code)] = code
        found = super().fetch(Wanted(wanted.accounts, wanted.slots))
        for number in wanted.block_hashes:
            found.block_hashes[number] = self._hash_of(number)
        return found

    def root_after(self, layer: Layer) -> bytes:
        """Returns the root of ``layer``. Adds the nodes that deletions need to the pool."""
        while True:
            try:
                return super().root_after(layer)
            except TrieError as error:
                self._find(error)

    def storage_root(self, address: bytes) -> bytes:
        """Returns the storage root of an account, even if the block did not read the account."""
        self.fetch(Wanted({address}, set()))
        return super().storage_root(address)

    def witness(self) -> Witness:
        """Returns the recorded witness: nodes and codes by hash, the parent's header first."""
        keys = {*self._keys}
        for slots in self._keys.values():
            keys |= {slot.to_bytes(WORD_SIZE, "big") for slot in slots}
        return Witness(
            state=tuple(self.nodes[node] for node in sorted(self.read_nodes)),
            codes=tuple(self.codes[code] for code in sorted(self.read_codes)),
            keys=tuple(sorted(keys)),
            headers=tuple(header.rlp() for header in self._headers),
        )

    def _hash_of(self, number: int) -> bytes:
        """Returns the hash of an ancestor and records the headers down to it."""
        while self._headers[-1].number > number + 1:
            self._headers.append(self._header_of(self._headers[-1].parent_hash))
        return self._headers[-1].parent_hash

    def _find(self, error: TrieError) -> None:
        """Adds the missing node to the pool."""
        missing = error.error
        if not isinstance(missing, MissingNode):
            raise error
        nibbles = (*missing.path, *(0,) * (2 * WORD_SIZE - len(missing.path)))
        path = bytes(high << 4 | low for high, low in zip(nibbles[::2], nibbles[1::2], strict=True))
        if error.address is None:
            self._pool(self._layer.account_path(path))
        else:
            self._pool(self._layer.storage_path(error.address, path))
        if missing.digest not in self.nodes:
            raise error

    def _pool(self, nodes: Iterable[bytes]) -> None:
        self.nodes.update((keccak256(node), node) for node in nodes)
