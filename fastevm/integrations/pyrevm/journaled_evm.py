"""pyrevm's ``EVM``: messages that keep what they change, over ``fastevm.EVM``."""

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

ANCESTORS = 256  # whose hashes code sees


@lru_cache(maxsize=4096)
def block_hash_of(number: int) -> bytes:
    """The hash of a block of which nothing is known, as pyrevm makes it up."""
    return keccak256(str(number).encode())


class EVM(Messages):
    """A machine whose messages keep what they change. Addresses are strings.

    ``fork_url``, ``fork_block``: an endpoint whose state it stands on, and a block's number or
    hash. ``gas_limit``: of a message without one, and of the block. ``tracing``: print every step.
    ``spec_id``: a fork's name, or LATEST.
    """

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
        """Chain, block and transaction, as a copy."""
        tx = self._tx if self._last is None else replace(self._tx, **self._last.tx)
        block = self._block
        if self._has_run:
            block = replace(block, basefee=0, gas_limit=self._gas_limit)
        return Env(self._cfg, block, tx)

    def set_block_env(self, block: BlockEnv) -> None:
        """The block that code sees from now on."""
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
        """The transaction that code sees from now on, but for what a message says."""
        self._tx = replace(tx)
        self._is_bare = tx_is_bare(self._tx)

    def block_hash(self, number: int) -> bytes:
        """The hash of a block; made up where there is no other node to ask."""
        if self._source is None:
            return block_hash_of(unsigned(number))
        block = self._source.request("eth_getBlockByNumber", [hex(unsigned(number)), False])
        return bytes.fromhex(block["hash"][2:]) if block else bytes(32)

    # --- accounts ---

    def basic(self, address: str) -> AccountInfo:
        """Balance, nonce and code."""
        key = self._touch(address)
        state = self._evm.state
        code = state.code(key)
        code_hash = None if code else EMPTY_CODE_HASH
        return AccountInfo(state.balance(key), state.nonce(key), code_hash, code or b"\0")

    def get_code(self, address: str) -> bytes | None:
        """The code; None where there is none."""
        return self._evm.state.code(self._touch(address)) or None

    def get_balance(self, address: str) -> int:
        """The balance in wei."""
        return self._evm.state.balance(self._touch(address))

    def set_balance(self, address: str, balance: int) -> None:
        """Give an account this balance in wei."""
        self._evm.set_balance(self._touch(address), unsigned(balance))

    def storage(self, address: str, index: int) -> int:
        """The value of a slot."""
        return self._evm.storage(self._touch(address), unsigned(index))

    def insert_account_info(self, address: str, info: AccountInfo) -> None:
        """Put balance, nonce and code in an account; its storage stays."""
        fields = {"balance": info.balance, "nonce": info.nonce, "code": info.code or b""}
        self._evm.state = self._evm.state.with_accounts({address_bytes(address): fields})

    def insert_account_storage(self, address: str, index: int, value: int) -> int:
        """Write a slot. Its value before; 0 for an account that nothing has used yet."""
        is_known = address_bytes(address) in self._keys.values()
        before = self.storage(address, index) if is_known else 0
        self._evm.set_storage(self._touch(address), unsigned(index), unsigned(value))
        return before

    def reset_transient_storage(self) -> None:
        """Forget what messages left in transient storage."""
        self._evm.transient_storage = {}

    def _infos(self, keys: Iterable[bytes]) -> dict[str, AccountInfo]:
        return {checksum_address(key): self.basic("0x" + key.hex()) for key in list(keys)}

    @property
    def db_accounts(self) -> dict[str, AccountInfo]:
        """Every account of the state, by address."""
        return self._infos(self._evm.state.addresses())

    @property
    def journal_state(self) -> dict[str, AccountInfo]:
        """Every account that was asked for or changed, by address."""
        return self._infos(dict.fromkeys(self._keys.values()))

    # --- checkpoints ---

    def snapshot(self) -> JournalCheckpoint:
        """Remember state and transient storage."""
        logs = 0 if self._last is None else len(self._last.outcome.logs)
        self._made += 1
        checkpoint = JournalCheckpoint(logs, self._made)
        self._checkpoints[checkpoint] = self._evm.state, self._evm.transient_storage
        return checkpoint

    def revert(self, checkpoint: JournalCheckpoint) -> None:
        """Go back to a checkpoint; it and all later ones are used up.

        OverflowError where there is none, KeyError for one that is no more.
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
        """Forget the newest checkpoint and keep what has changed since."""
        if self._checkpoints:
            self._checkpoints.popitem()

    @property
    def checkpoint_ids(self) -> set[JournalCheckpoint]:
        """The checkpoints that there are."""
        return set(self._checkpoints)

    @property
    def journal_depth(self) -> int:
        """How many checkpoints there are."""
        return len(self._checkpoints)

    @property
    def journal_len(self) -> int:
        """How many parts changes would be taken back in."""
        return len(self._checkpoints) + 1

    @property
    def journal_str(self) -> str:
        """The state as text."""
        return f"{self._evm!r}, {len(self._checkpoints)} checkpoints"

    # --- messages ---

    @property
    def result(self) -> ExecutionResult | None:
        """How the last message ended; None before the first, and after one that was refused."""
        return None if self._last is None else self._last.result()

    def __repr__(self) -> str:
        return f"<pyrevm {self._evm!r}>"


def tx_is_bare(tx: TxEnv) -> bool:
    """Whether a transaction says nothing besides what its message does."""
    terms = (tx.chain_id, tx.nonce, tx.max_fee_per_blob_gas)
    return not (
        tx.access_list or tx.blob_hashes or tx.gas_priority_fee
        or any(term is not None for term in terms)
    )  # fmt: skip


def block_of(fork_block: str | None) -> str | int | bytes:
    """A block as ``EVM.fork`` takes it."""
    if fork_block is None:
        return "latest"
    if fork_block.startswith("0x"):
        digits = fork_block[2:]
        return bytes.fromhex(digits) if len(digits) == 64 else int(digits, 16)
    return int(fork_block) if fork_block.isdigit() else fork_block.lower()
