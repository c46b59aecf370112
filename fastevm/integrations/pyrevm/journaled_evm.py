"""pyrevm's ``EVM`` on ``fastevm.EVM``: messages keep their changes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from fastevm.core.primitives.hex import checksum_address
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.core.state.layer import Layer
from fastevm.evm.machine import EVM as Machine
from fastevm.fork import RemoteSource
from fastevm.integrations.pyrevm.environments import (
    HIGHEST_GAS,
    BlockEnv,
    Env,
    TxEnv,
    address_bytes,
    unsigned,
)
from fastevm.integrations.pyrevm.message_rules import rules_of
from fastevm.integrations.pyrevm.messages import Messages
from fastevm.integrations.pyrevm.outcomes import (
    EMPTY_CODE_HASH,
    AccountInfo,
    ExecutionResult,
    JournalCheckpoint,
)

ANCESTORS = 256  # number of available ancestor hashes


@lru_cache(maxsize=4096)
def block_hash_of(number: int) -> bytes:
    """Returns the placeholder hash that pyrevm uses for an unknown block."""
    return keccak256(str(number).encode())


class EVM(Messages):
    """pyrevm's ``EVM`` on ``fastevm.EVM``: messages keep their changes."""

    def __init__(
        self,
        env: Env | None = None,
        fork_url: str | None = None,
        fork_block: str | None = None,
        gas_limit: int = HIGHEST_GAS,
        tracing: bool = False,
        spec_id: str = "LATEST",
    ) -> None:
        given = Env() if env is None else env
        self._cfg, self._block, self._tx = given.cfg, given.block, given.tx
        self._is_bare = tx_is_bare(self._tx)
        self._gas_limit = unsigned(gas_limit, 64)
        self._rules = rules_of(spec_id, self._cfg.limit_contract_code_size)
        self._source: RemoteSource | None = None
        if fork_url is not None:
            self._source = RemoteSource.open(fork_url, block_of(fork_block))
        state = None if self._source is None else Layer.remote(self._source)
        self._evm = Machine(self._rules.schedule, state=state, chain_id=self._cfg.chain_id or 0)
        self._evm.transient_storage = {}
        self._keys = {}
        self._checkpoints: dict[JournalCheckpoint, tuple[Layer, object]] = {}
        self._made = 0
        self.tracing = tracing
        self.set_block_env(self._block)

    # --- environment ---

    @property
    def env(self) -> Env:
        """A copy of the chain, block and transaction environment."""
        tx = self._tx if self._last is None else replace(self._tx, **self._last.tx)
        block = self._block
        if self._has_run:
            block = replace(block, basefee=0, gas_limit=self._gas_limit)
        return Env(self._cfg, block, tx)

    def set_block_env(self, block: BlockEnv) -> None:
        """Sets the block environment."""
        evm, block = self._evm, replace(block)
        number = block.number or 0
        fields: dict[str, Any] = {
            "number": number,
            "timestamp": block.timestamp,
            "coinbase": block.coinbase,
            "difficulty": block.difficulty,
            "prev_randao": int.from_bytes(block.prevrandao or b"", "big"),
            "blob_base_fee": block.blob_gasprice or 0,
            "base_fee": 0,
            "gas_limit": self._gas_limit,
        }
        if self._source is None and (
            number != self._evm.block.number or not self._evm.block_hashes
        ):
            before = range(number - 1, max(number - 1 - ANCESTORS, -1), -1)
            fields["block_hashes"] = [block_hash_of(each) for each in before]
        evm.set_block(**fields)
        self._block, self._has_run = block, False

    def set_tx_env(self, tx: TxEnv) -> None:
        """Sets the transaction environment. A message overrides its own fields."""
        self._tx = replace(tx)
        self._is_bare = tx_is_bare(self._tx)

    def block_hash(self, number: int) -> bytes:
        """Returns the hash of a block, or a placeholder if there is no remote node."""
        if self._source is None:
            return block_hash_of(unsigned(number))
        block = self._source.request("eth_getBlockByNumber", [hex(unsigned(number)), False])
        return bytes.fromhex(block["hash"][2:]) if block else bytes(32)

    # --- accounts ---

    def basic(self, address: str) -> AccountInfo:
        """Returns the account's balance, nonce and code."""
        key = self._touch(address)
        state = self._evm.state
        code = state.code(key)
        code_hash = None if code else EMPTY_CODE_HASH
        return AccountInfo(state.balance(key), state.nonce(key), code_hash, code or b"\0")

    def get_code(self, address: str) -> bytes | None:
        """Returns the code, or None if there is none."""
        return self._evm.state.code(self._touch(address)) or None

    def get_balance(self, address: str) -> int:
        """Returns the balance in wei."""
        return self._evm.state.balance(self._touch(address))

    def set_balance(self, address: str, balance: int) -> None:
        """Sets the balance of an account in wei."""
        self._evm.set_balance(self._touch(address), unsigned(balance))

    def storage(self, address: str, index: int) -> int:
        """Returns the value of a slot."""
        return self._evm.storage(self._touch(address), unsigned(index))

    def insert_account_info(self, address: str, info: AccountInfo) -> None:
        """Sets balance, nonce and code of an account. Does not change its storage."""
        fields = {"balance": info.balance, "nonce": info.nonce, "code": info.code or b""}
        self._evm.state = self._evm.state.with_accounts({address_bytes(address): fields})

    def insert_account_storage(self, address: str, index: int, value: int) -> int:
        """Sets a slot. Returns its old value, or 0 if the account has not been used yet."""
        is_known = address_bytes(address) in self._keys.values()
        before = self.storage(address, index) if is_known else 0
        self._evm.set_storage(self._touch(address), unsigned(index), unsigned(value))
        return before

    def reset_transient_storage(self) -> None:
        """Clears transient storage."""
        self._evm.transient_storage = {}

    def _infos(self, keys: Iterable[bytes]) -> dict[str, AccountInfo]:
        return {checksum_address(key): self.basic("0x" + key.hex()) for key in list(keys)}

    @property
    def db_accounts(self) -> dict[str, AccountInfo]:
        """All accounts of the state, by address."""
        return self._infos(self._evm.state.addresses())

    @property
    def journal_state(self) -> dict[str, AccountInfo]:
        """All accounts that were read or changed, by address."""
        return self._infos(dict.fromkeys(self._keys.values()))

    # --- checkpoints ---

    def snapshot(self) -> JournalCheckpoint:
        """Creates a checkpoint of state and transient storage."""
        logs = 0 if self._last is None else len(self._last.outcome.logs)
        self._made += 1
        checkpoint = JournalCheckpoint(logs, self._made)
        self._checkpoints[checkpoint] = self._evm.state, self._evm.transient_storage
        return checkpoint

    def revert(self, checkpoint: JournalCheckpoint) -> None:
        """Reverts to a checkpoint. Deletes that checkpoint and all later ones.

        Raises OverflowError if there are no checkpoints, and KeyError if this checkpoint was
        deleted.
        """
        if not self._checkpoints:
            raise OverflowError("No checkpoint to revert to")
        if checkpoint not in self._checkpoints:
            raise KeyError("Invalid checkpoint")
        state, transient = self._checkpoints[checkpoint]
        self._evm.state = state
        self._evm.transient_storage = transient  # type: ignore[assignment]
        for later in [each for each in self._checkpoints if each >= checkpoint]:
            del self._checkpoints[later]

    def commit(self) -> None:
        """Deletes the newest checkpoint and keeps the changes after it."""
        if self._checkpoints:
            self._checkpoints.popitem()

    @property
    def checkpoint_ids(self) -> set[JournalCheckpoint]:
        """Returns the existing checkpoints."""
        return set(self._checkpoints)

    @property
    def journal_depth(self) -> int:
        """The number of checkpoints."""
        return len(self._checkpoints)

    @property
    def journal_len(self) -> int:
        """The number of journal parts."""
        return len(self._checkpoints) + 1

    @property
    def journal_str(self) -> str:
        """A text description of the state."""
        return f"{self._evm!r}, {len(self._checkpoints)} checkpoints"

    # --- messages ---

    @property
    def result(self) -> ExecutionResult | None:
        """The outcome of the last message. None before the first and after a rejected message."""
        return None if self._last is None else self._last.result()

    def __repr__(self) -> str:
        return f"<pyrevm {self._evm!r}>"


def tx_is_bare(tx: TxEnv) -> bool:
    """Returns whether a transaction sets only the fields of its message."""
    terms = (tx.chain_id, tx.nonce, tx.max_fee_per_blob_gas)
    return not (
        tx.access_list or tx.blob_hashes or tx.gas_priority_fee
        or any(term is not None for term in terms)
    )  # fmt: skip


def block_of(fork_block: str | None) -> str | int | bytes:
    """Converts a block for ``EVM.fork``."""
    if fork_block is None:
        return "latest"
    if fork_block.startswith("0x"):
        digits = fork_block[2:]
        return bytes.fromhex(digits) if len(digits) == 64 else int(digits, 16)
    return int(fork_block) if fork_block.isdigit() else fork_block.lower()
