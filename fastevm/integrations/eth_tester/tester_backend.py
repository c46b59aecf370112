"""The backend of eth-tester."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from eth_keys.datatypes import PrivateKey
from eth_tester.backends.base import BaseChainBackend
from eth_tester.exceptions import (
    BlockNotFound,
    TransactionFailed,
    TransactionNotFound,
    ValidationError,
)
from eth_utils.exceptions import ValidationError as UtilsValidationError

from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.transaction.sidecar import decode_pooled
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_fields import Authorization
from fastevm.core.execution.types import ZERO_ADDRESS, Withdrawal
from fastevm.core.simulation.values import CallRequest, CallResult, SimulationError, StateView
from fastevm.errors import FastevmError, InvalidTransaction
from fastevm.integrations.eth_tester.tester_chain import CHAIN_ID, Mined, TesterChain
from fastevm.integrations.eth_tester.tester_values import (
    block_values,
    receipt_values,
    transaction_values,
)
from fastevm.simulate.calls import call as simulated_call
from fastevm.simulate.estimate import estimate_gas as estimated_gas

DEFAULT_BALANCE = 10**24  # wei per account
DEFAULT_FEE = 10**9
MOST_FEE_BLOCKS = 1024
FEES = ("max_fee_per_gas", "max_priority_fee_per_gas")
ERROR_STRING = bytes.fromhex("08c379a0")  # the selector of Error(string)
SETTLED = ("latest", "safe", "finalized")


class RefusedTransactionError(ValidationError, UtilsValidationError):  # type: ignore[misc]
    """An invalid transaction. Subclass of the exceptions of both eth-tester and py-evm."""


class UnknownTypeError(ValidationError):  # type: ignore[misc]
    """A raw transaction of an unknown type."""


def keys_of_numbers(count: int | None) -> tuple[bytes, ...]:
    """Returns the private keys 1, 2, 3 ..., which eth-tester uses by default."""
    return tuple(number.to_bytes(32, "big") for number in range(1, (count or 10) + 1))


def error_of(name: str, fallback: type[Exception]) -> type[Exception]:
    """Returns an exception class of an optional library, or ``fallback`` if it is not installed."""
    module, _, member = name.rpartition(".")
    try:
        return getattr(import_module(module), member)  # type: ignore[no-any-return]
    except ImportError:
        return fallback


class Backend(BaseChainBackend):  # type: ignore[misc]
    """A backend of ``EthereumTester``: a chain in memory that mines blocks on demand.

    ``genesis_parameters``: fields of the genesis header, with the names of `Header`;
    ``genesis_state``: accounts by 20-byte address (balance, nonce, code, storage), one for each
    key; ``mnemonic``, ``hd_path``: derive the keys; ``fork``: the rules.
    """

    def __init__(
        self,
        genesis_parameters: Mapping[str, Any] | None = None,
        genesis_state: Mapping[bytes, Mapping[str, Any]] | None = None,
        mnemonic: str | None = None,
        hd_path: str | None = None,
        fork: str = "prague",
    ) -> None:
        self.fork = fork
        self.reset_to_genesis(genesis_parameters, genesis_state, mnemonic, hd_path)

    def reset_to_genesis(
        self,
        genesis_parameters: Mapping[str, Any] | None = None,
        genesis_state: Mapping[bytes, Mapping[str, Any]] | None = None,
        mnemonic: str | None = None,
        hd_path: str | None = None,
    ) -> None:
        """Starts a new chain and forgets the accounts that were added."""
        count = len(genesis_state) if genesis_state else None
        keys = keys_of_numbers(count) if mnemonic is None else keys_of(mnemonic, count, hd_path)
        self.keys = {public_key_address(key): key for key in keys}
        state = genesis_state or {address: {"balance": DEFAULT_BALANCE} for address in self.keys}
        self.chain = TesterChain(dict(state), self.fork, **(genesis_parameters or {}))

    # --- snapshots and mining ---

    def take_snapshot(self) -> bytes:
        """Returns the hash of the newest block, which identifies the snapshot."""
        return self.chain.blocks[-1].block.hash

    def revert_to_snapshot(self, snapshot: bytes) -> None:
        """Removes all blocks after the snapshot."""
        self.chain.go_back(snapshot)

    def time_travel(self, to_timestamp: int) -> int:
        """Mines a block one second before the timestamp, so that the next block has this timestamp.

        The timestamp is in seconds.
        """
        self.chain.mine(timestamp=to_timestamp - 1)
        return to_timestamp

    def mine_blocks(self, num_blocks: int = 1, coinbase: bytes = ZERO_ADDRESS) -> tuple[bytes, ...]:
        """Mines blocks. The first contains the pending transactions.

        Returns the hashes of the blocks.
        """
        return tuple(self.chain.mine(coinbase) for _ in range(num_blocks))

    def apply_withdrawals(self, withdrawals_list: Iterable[Mapping[str, Any]]) -> None:
        """Mines a block with these withdrawals (amounts in gwei)."""
        if not self.chain.schedule.parameters["has_withdrawals"]:
            raise ValidationError("Withdrawals are only supported after the Shanghai fork")
        self.chain.mine(withdrawals=[
            Withdrawal(
                each["index"], each["validator_index"], bytes_of(each["address"]), each["amount"]
            )
            for each in withdrawals_list
        ])  # fmt: skip

    # --- accounts ---

    def get_accounts(self) -> tuple[bytes, ...]:
        """Returns the accounts with known keys."""
        return tuple(self.keys)

    @property
    def account_keys(self) -> tuple[PrivateKey, ...]:
        """The private keys of the accounts, as eth-keys objects."""
        return tuple(PrivateKey(key) for key in self.keys.values())

    def add_account(self, private_key: bytes) -> None:
        """Adds an account that may send transactions."""
        key = bytes(private_key)
        self.keys[public_key_address(key)] = key

    def get_nonce(self, account: bytes, block_number: Any = "latest") -> int:
        """Returns the nonce after a block."""
        return self._block(block_number).layer.nonce(account)

    def get_balance(self, account: bytes, block_number: Any = "latest") -> int:
        """Returns the balance after a block in wei."""
        return self._block(block_number).layer.balance(account)

    def get_code(self, account: bytes, block_number: Any = "latest") -> bytes:
        """Returns the code after a block."""
        return self._block(block_number).layer.code(account)

    def get_storage(self, account: bytes, slot: int, block_number: Any = "latest") -> int:
        """Returns a storage slot after a block."""
        return self._block(block_number).layer.storage(account, slot)

    def get_base_fee(self, block_number: Any = "latest") -> int | None:
        """Returns the base fee of a block in wei."""
        return self._block(block_number).header.base_fee_per_gas

    # --- blocks and transactions ---

    def _block(self, number: Any) -> Mined:
        blocks = self.chain.blocks
        if number in SETTLED:
            return blocks[-1]
        if number == "pending":
            return self.chain.pending
        if number == "earliest":
            return blocks[0]
        if isinstance(number, int) and 0 <= number < len(blocks):
            return blocks[number]
        raise BlockNotFound(f"No block found for block number: {number}")

    def get_block_by_number(
        self, block_number: Any, full_transaction: bool = True
    ) -> dict[str, Any]:
        """Returns a block by number or tag. Raises BlockNotFound."""
        return block_values(self._block(block_number), full_transaction)

    def get_block_by_hash(self, block_hash: bytes, full_transaction: bool = True) -> dict[str, Any]:
        """Returns a block by hash. Raises BlockNotFound."""
        number = self.chain.numbers.get(block_hash)
        if number is None:
            raise BlockNotFound(f"No block found for block hash: {block_hash!r}")
        return block_values(self.chain.blocks[number], full_transaction)

    def _located(self, transaction_hash: bytes) -> tuple[Mined, int]:
        found = self.chain.locate(transaction_hash)
        if found is None:
            shown = "0x" + transaction_hash.hex()
            raise TransactionNotFound(f"No transaction found for transaction hash: {shown}")
        return found

    def get_transaction_by_hash(self, transaction_hash: bytes) -> dict[str, Any]:
        """Returns a mined or pending transaction. Raises TransactionNotFound."""
        return transaction_values(*self._located(transaction_hash))

    def get_transaction_receipt(self, transaction_hash: bytes) -> dict[str, Any]:
        """Returns a receipt, also of a pending transaction. Raises TransactionNotFound."""
        return receipt_values(*self._located(transaction_hash))

    def get_fee_history(
        self,
        block_count: int = 1,
        newest_block: Any = "latest",
        reward_percentiles: Sequence[int] = (),
    ) -> dict[str, Any]:
        """Returns the base fees and gas used of preceding blocks, newest first, without rewards."""
        if isinstance(block_count, int) and not 1 <= block_count <= MOST_FEE_BLOCKS:
            raise ValidationError("block_count must be between 1 and 1024")
        newest = self._block("latest" if newest_block == "pending" else newest_block).header.number
        before = [
            mined.header for mined in self.chain.blocks[max(0, newest - block_count) : newest]
        ]
        before.reverse()
        return {
            "oldest_block": 1,
            "base_fee_per_gas": [header.base_fee_per_gas for header in before],
            "gas_used_ratio": [header.gas_used / header.gas_limit for header in before],
            "reward": [],
        }

    # --- sending ---

    def _built(self, transaction: Mapping[str, Any], block_number: Any = "latest") -> Transaction:
        """Converts a transaction of eth-tester and fills in defaults."""
        fees = [name for name in FEES if name in transaction]
        fields = {
            name: transaction[name]
            for name in (*fees, "gas_price", "access_list", "authorization_list", "v", "r", "s")
            if name in transaction
        }
        if not fees and "gas_price" not in transaction:
            fields |= dict.fromkeys(FEES, DEFAULT_FEE)
        elif fees == ["max_priority_fee_per_gas"]:
            base_fee = self.get_base_fee(block_number) or 0
            fields["max_fee_per_gas"] = transaction[fees[0]] + 2 * base_fee
        if "authorization_list" in fields:
            fields["authorization_list"] = authorizations_of(transaction)
        is_typed = "gas_price" not in fields or "access_list" in fields
        chain_id = transaction.get("chain_id", CHAIN_ID if is_typed else None)
        nonce = transaction.get("nonce")
        return Transaction.build(
            chain_id=chain_id,
            nonce=self.get_nonce(transaction["from"], block_number) if nonce is None else nonce,
            gas_limit=transaction.get("gas", 0),
            to=transaction.get("to") or None,
            value=transaction.get("value", 0),
            data=transaction.get("data", b""),
            **fields,
        )

    def _add(self, transaction: Transaction) -> bytes:
        with refused_transactions():
            return self.chain.add(transaction)

    def send_transaction(self, transaction: Mapping[str, Any]) -> bytes:
        """Signs and executes a transaction of a known account. Returns its hash."""
        key = self.keys.get(transaction["from"])
        if key is None:
            raise ValidationError("the transaction's `from` is not an account with a known key")
        built = self._built(transaction)
        return self._add(built.sign(key, chain_id=built.chain_id))

    def send_signed_transaction(
        self, transaction: Mapping[str, Any], block_number: Any = "latest"
    ) -> bytes:
        """Executes a signed transaction. Returns its hash. Raises ValidationError."""
        return self._add(Transaction.decode(self._built(transaction, block_number).raw))

    def send_raw_transaction(self, raw_transaction: bytes) -> bytes:
        """Executes a raw signed transaction. Returns its hash. Raises ValidationError."""
        raw = bytes(raw_transaction)
        try:
            transaction, _ = decode_pooled(raw)
        except FastevmError as error:
            name, kind = "rlp.exceptions.DecodingError", "no transaction"
            if raw[:1] and raw[0] < 0xC0:
                name, kind = "eth.exceptions.UnrecognizedTransactionType", "unknown type"
            failure = error_of(name, UnknownTypeError)
            arguments = (raw[0], kind) if "eth." in name else (str(error), raw)
            raise failure(*arguments) from error
        return self._add(transaction)

    # --- calls ---

    def _offered(self, transaction: Mapping[str, Any], block_number: Any) -> dict[str, Any]:
        """Returns the fees that a call offers. As in py-evm, they may be below the base fee."""
        fields = {name: transaction[name] for name in ("gas_price", *FEES) if name in transaction}
        if FEES[1] in fields and FEES[0] not in fields:
            return {}
        price = fields.get("gas_price", fields.get(FEES[0], 0))
        return fields if price >= (self.get_base_fee(block_number) or 0) else {}

    def _request(self, transaction: Mapping[str, Any], block_number: Any) -> CallRequest:
        return CallRequest(
            sender=transaction["from"],
            to=transaction.get("to") or None,
            gas=transaction.get("gas"),
            value=transaction.get("value", 0),
            data=transaction.get("data", b""),
            access_list=transaction.get("access_list"),
            authorization_list=authorizations_of(transaction),
            **self._offered(transaction, block_number),
        )

    def _view(self, block_number: Any) -> StateView:
        return self.chain.view(self._block(block_number))

    def call(self, transaction: Mapping[str, Any], block_number: Any = "latest") -> bytes:
        """Returns the output of a call after a block. Raises TransactionFailed with the reason.

        Raises ValidationError if the call breaks a rule, for example if the sender cannot pay.
        """
        request = self._request(transaction, block_number)
        with refused_transactions():
            result = simulated_call(self._view(block_number), request)
        if not result.success:
            raise failure_of(result)
        return result.output

    def estimate_gas(self, transaction: Mapping[str, Any], block_number: Any = "latest") -> int:
        """Returns a sufficient gas limit, after a block. Raises the errors of `call`."""
        request = self._request(transaction, block_number)
        with refused_transactions():
            found = estimated_gas(self._view(block_number), request)
        if isinstance(found, CallResult):
            raise failure_of(found)
        return found


@contextmanager
def refused_transactions() -> Iterator[None]:
    """A context that converts exceptions of refused transactions and calls to those of
    eth-tester.
    """
    try:
        yield
    except (InvalidTransaction, SimulationError) as error:
        raise RefusedTransactionError(str(error)) from error


def authorizations_of(transaction: Mapping[str, Any]) -> tuple[Authorization, ...] | None:
    """Returns the authorizations of a transaction of eth-tester, or None if it has no list."""
    listed = transaction.get("authorization_list")
    if listed is None:
        return None
    return tuple(Authorization(*(each[name] for name in Authorization._fields)) for each in listed)


def failure_of(result: CallResult) -> TransactionFailed:
    """Returns the exception for a failed call.

    Its text is the text of ``Error(string)``, or the output.
    """
    words = str(result.error)
    if result.output.startswith(ERROR_STRING):
        words = words.removeprefix("execution reverted: ")
    elif result.reverted:
        words = str(result.output)
    return TransactionFailed(words)


def keys_of(mnemonic: str, count: int | None, hd_path: str | None) -> tuple[bytes, ...]:
    """Returns the private keys that eth-tester derives from a mnemonic."""
    wallet = import_module("eth_account.hdaccount")
    seed = wallet.seed_from_mnemonic(mnemonic, "")
    path = hd_path or "m/44'/60'/0'"
    return tuple(wallet.HDPath(f"{path}/{index}").derive(seed) for index in range(count or 10))


def bytes_of(address: str | bytes) -> bytes:
    """Converts an address to 20 bytes."""
    return address if isinstance(address, bytes) else bytes.fromhex(address.removeprefix("0x"))
