"""pyrevm's ``EVM``: messages that keep what they change, over ``fastevm.EVM``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fastevm.compat.pyrevm.environments import (
    HIGHEST_GAS,
    BlockEnv,
    Env,
    TxEnv,
    address_bytes,
    unsigned,
)
from fastevm.compat.pyrevm.message_rules import Rules, rules_of
from fastevm.compat.pyrevm.outcomes import (
    EMPTY_CODE_HASH,
    AccountInfo,
    ExecutionResult,
    JournalCheckpoint,
    Log,
    halt_reason,
)
from fastevm.evm import EVM as Machine
from fastevm.evm import ExecutionResult as Outcome
from fastevm.fork import RemoteSource
from fastevm.primitives.keccak import keccak256
from fastevm.state.layer import Layer
from fastevm.tracing.runner import halt_opcode, message_traced
from fastevm.tracing.step_loggers import Eip3155Logger
from fastevm.wire.text.hex import checksum_address

HIGHEST_FRAME_GAS = 2**63 - 1
ANCESTORS = 256  # whose hashes code sees
SENT = ("caller", "to", "data", "value", "gas_limit", "gas_price")  # what a message says of a TxEnv
TO, GAS_LIMIT = SENT.index("to"), SENT.index("gas_limit")


class Ended:
    """The last message: as it was sent, what it gave, and its gas as a transaction counts it."""

    __slots__ = ("_rules", "_sent", "before", "opcode", "outcome")

    def __init__(
        self, rules: Rules, sent: tuple[Any, ...], before: int, outcome: Outcome, opcode: int
    ) -> None:
        self._rules, self._sent = rules, sent
        self.before = before  # gas that went before the message
        self.outcome = outcome
        self.opcode = opcode  # the byte that halted

    @property
    def tx(self) -> dict[str, Any]:
        """The fields of a ``TxEnv``."""
        return dict(zip(SENT, self._sent, strict=True))

    @property
    def gas_refunded(self) -> int:
        return self._rules.refund(self.outcome, self._spent)

    @property
    def gas_used(self) -> int:
        return self._spent - self.gas_refunded

    @property
    def _spent(self) -> int:
        gas_limit: int = self._sent[GAS_LIMIT]
        given = min(gas_limit - self.before, HIGHEST_FRAME_GAS)
        used = self.outcome.gas_used
        return self.before + used if used < given else gas_limit

    def result(self) -> ExecutionResult:
        outcome = self.outcome
        used, refunded = self.gas_used, self.gas_refunded
        if outcome.success:
            reason = "Return" if outcome.output or self._sent[TO] is None else "Stop"
            logs = [Log(log) for log in outcome.logs]
            return ExecutionResult(True, False, reason, used, refunded, logs)
        halts = self.is_halt
        reason = halt_reason(str(outcome.error), self.opcode) if halts else "Revert"
        return ExecutionResult(False, halts, reason, used, 0, [])

    @property
    def is_halt(self) -> bool:
        return not str(self.outcome.error).startswith("execution reverted")

    def failure(self) -> RuntimeError:
        """The exception for a message that failed."""
        if self.is_halt:
            reason = halt_reason(str(self.outcome.error), self.opcode)
            return RuntimeError(f"Halt {{ reason: {reason}, gas_used: {self.gas_used} }}")
        output = self.outcome.output.hex()
        return RuntimeError(f"Revert {{ gas_used: {self.gas_used}, output: 0x{output} }}")


@lru_cache(maxsize=4096)
def block_hash_of(number: int) -> bytes:
    """The hash of a block of which nothing is known, as pyrevm makes it up."""
    return keccak256(str(number).encode())


class EVM:
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
        self._rules: Rules = rules_of(spec_id, self._cfg.limit_contract_code_size)
        self._source: RemoteSource | None = None
        if fork_url is not None:
            self._source = RemoteSource.open(fork_url, block_of(fork_block))
        state = None if self._source is None else Layer.remote(self._source)
        self._evm = Machine(self._rules.schedule, state=state, chain_id=self._cfg.chain_id or 0)
        self._evm.transient_storage = {}
        self._keys: dict[str, bytes] = {}  # accounts that were asked for or changed
        self._checkpoints: dict[JournalCheckpoint, tuple[Layer, object]] = {}
        self._made = 0
        self._last: Ended | None = None
        self.tracing = tracing
        self.set_block_env(self._block)

    # --- environment ---

    @property
    def env(self) -> Env:
        """Chain, block and transaction, as a copy."""
        tx = self._tx if self._last is None else replace(self._tx, **self._last.tx)
        return Env(self._cfg, self._block, tx)

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
        self._block = block

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

    def _touch(self, address: str) -> bytes:
        key = self._keys.get(address)
        if key is None:
            key = self._keys[address] = address_bytes(address)
        return key

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

    def message_call(
        self,
        caller: str,
        to: str,
        calldata: bytes | None = None,
        value: int | None = None,
        gas: int | None = None,
        gas_price: int | None = None,
        is_static: bool = False,
    ) -> bytes:
        """Call ``to`` and keep what it changes; its output. RuntimeError if it fails.

        Gas pays for a transaction too, and must be affordable, but is not taken; the nonce stays.
        """
        data = b"" if calldata is None else bytes_of(calldata)
        sender, target = self._touch(caller), self._touch(to)
        sent = (
            caller, to, data, value or 0, self._gas_limit if gas is None else gas, gas_price or 0
        )  # fmt: skip
        outcome = self._send(sender, target, sent, static=is_static).outcome
        if not outcome.success:
            assert self._last is not None
            raise self._last.failure()
        return outcome.output

    def deploy(
        self,
        deployer: str,
        code: bytes,
        value: int | None = None,
        gas: int | None = None,
        gas_price: int | None = None,
        is_static: bool = False,
        _abi: object = None,
    ) -> str:
        """Run init code and keep the contract; its address. RuntimeError if it fails.

        Gas is paid for at ``gas_price``, and the nonce moves.
        """
        sender = self._touch(deployer)
        data = bytes_of(code)
        gas_limit = self._gas_limit if gas is None else gas
        tx = (deployer, None, data, value or 0, gas_limit, gas_price or 0)
        nonce = self._evm.nonce(sender)
        ended = self._send(sender, None, tx)
        if not ended.outcome.success:
            self._evm.set_nonce(sender, nonce + 1)
        self._pay(sender, ended)
        address = ended.outcome.created_address
        if address is None:
            raise ended.failure()
        return checksum_address(address).lower()

    def _pay(self, sender: bytes, ended: Ended) -> None:
        price = ended.tx["gas_price"]
        if price:
            evm, cost = self._evm, price * ended.gas_used
            evm.set_balance(sender, evm.balance(sender) - cost)
            coinbase = evm.block.coinbase
            evm.set_balance(coinbase, evm.balance(coinbase) + cost)

    def _send(
        self, sender: bytes, to: bytes | None, sent: tuple[Any, ...], static: bool = False
    ) -> Ended:
        """Run a message after the checks of a transaction."""
        evm, rules = self._evm, self._rules
        self._last = None
        _, _, data, value, gas_limit, price = sent
        if self._is_bare and to is not None and not self.tracing:
            before = rules.admit_bare(evm, sent, sender, self._gas_limit)
            outcome = evm.call(
                to, data, sender=sender, value=value, static=static, commit=not static,
                gas=min(gas_limit - before, HIGHEST_FRAME_GAS), gas_price=price,
            )  # fmt: skip
        else:
            tx = dict(zip(SENT, sent, strict=True))
            before = rules.admit(evm, self._tx, tx, sender, self._gas_limit)
            outcome = self._run(to, data, self._options(sender, tx, before, static), static)
        opcode = 0 if outcome.success else halt_opcode(evm)
        ended = self._last = Ended(rules, sent, before, outcome, opcode)
        block = self._block
        block.basefee, block.gas_limit = 0, self._gas_limit
        if self.tracing:
            self._summarise()
        return ended

    def _options(
        self, sender: bytes, tx: dict[str, Any], before: int, static: bool
    ) -> dict[str, Any]:
        """What a message of the machine says besides its target and its data."""
        options: dict[str, Any] = {
            "sender": sender,
            "value": tx["value"],
            "gas": min(tx["gas_limit"] - before, HIGHEST_FRAME_GAS),
            "gas_price": tx["gas_price"],
            "commit": not static,
        }
        if self._tx.blob_hashes:
            options["blob_hashes"] = self._tx.blob_hashes
        if self._tx.access_list and self._rules.has_access_lists:
            listed = self._tx.access_list
            options["access_list"] = [(address_bytes(each), slots) for each, slots in listed]
        return options

    def _run(self, to: bytes | None, data: bytes, options: dict[str, Any], static: bool) -> Outcome:
        run: Callable[..., Outcome] = self._evm.create
        args: tuple[bytes, ...] = (data,)
        if to is not None:
            run, args = self._evm.call, (to, data)
            options["static"] = static
        return self._traced(run, args, options) if self.tracing else run(*args, **options)

    def _traced(self, run: Callable[..., Outcome], args: Any, options: dict[str, Any]) -> Outcome:
        observer = Eip3155Logger(sys.stdout, standard=True, return_data=True)
        try:
            return message_traced(self._evm, observer, run, *args, **options)
        finally:
            observer.flush()

    def _summarise(self) -> None:
        assert self._last is not None
        summary = {
            "stateRoot": "0x" + "00" * 32,
            "output": "0x" + self._last.outcome.output.hex(),
            "gasUsed": hex(self._last.gas_used),
            "pass": self._last.outcome.success,
            "fork": self._rules.shown_name,
        }
        print(json.dumps(summary))

    def __repr__(self) -> str:
        return f"<pyrevm {self._evm!r}>"


def tx_is_bare(tx: TxEnv) -> bool:
    """Whether a transaction says nothing besides what its message does."""
    terms = (tx.chain_id, tx.nonce, tx.max_fee_per_blob_gas)
    return not (
        tx.access_list or tx.blob_hashes or tx.gas_priority_fee
        or any(term is not None for term in terms)
    )  # fmt: skip


def bytes_of(data: object) -> bytes:
    """Bytes, or numbers below 256."""
    if type(data) is bytes:
        return data
    if isinstance(data, str):
        raise TypeError("data are bytes, not str")
    return bytes(data)  # type: ignore[call-overload, no-any-return]


def block_of(fork_block: str | None) -> str | int | bytes:
    """A block as ``EVM.fork`` takes it."""
    if fork_block is None:
        return "latest"
    if fork_block.startswith("0x"):
        digits = fork_block[2:]
        return bytes.fromhex(digits) if len(digits) == 64 else int(digits, 16)
    return int(fork_block) if fork_block.isdigit() else fork_block.lower()
