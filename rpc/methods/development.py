"""Controls a chain that builds its own blocks: mining, time, account changes, snapshots.

Names and answers are those of development tools (`evm_`, `anvil_`, `hardhat_`).
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final

from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.node import DevelopmentControls, check_name
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, DATA, HASH, decode_text
from fastevm.rpc.dispatch.registry import Handler, Needs, Param, RunOn, method
from fastevm.rpc.dispatch.workers import (
    LOOP_OBJECTS,
    long_running,
    require_worker,
    require_worker_above_limit,
)
from fastevm.rpc.errors import RpcError
from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_storage_slot,
    decode_uint64,
    decode_uint256,
)
from fastevm.rpc_types.transactions import Json

U64: Final = 2**64
U64_DIGITS: Final = 20  # decimal digits of 2^64 - 1
U256_DIGITS: Final = 78
LARGEST_NONCE: Final = U64 - 1
U256: Final = 2**256

SILENT: Final = ("anvil_", "tenderly_")  # prefixes of setters that return null


def decode_number(value: Any) -> int:
    """Decode a number of 64 bits: a JSON number, a quantity, or decimal digits."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < U64:
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= U64_DIGITS:
        return decode_uint64(quantity(int(value)))
    return decode_uint64(value)


def decode_balance(value: Any) -> int:
    """Decode an amount in wei: a JSON number, a quantity of at most 256 bits, or decimal digits."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < U256:
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= U256_DIGITS:
        return decode_uint256(quantity(int(value)))
    return decode_uint256(value)


NUMBER: Final = Param(decode_number)
OPTIONAL_NUMBER: Final = Param(decode_number, optional=True)
WEI: Final = Param(decode_balance)
WORD: Final = Param(lambda value: decode_storage_slot(value)[0])


def methods(names: Sequence[str], *params: Param) -> Callable[[Handler], Handler]:
    """Register a handler under several names, in the lane of long jobs.

    Each call waits for the builder's lock, and a request for many blocks holds the lock for
    seconds.
    """

    def register(handler: Handler) -> Handler:
        for name in names:
            method(name, *params, run_on=RunOn.WORKER, needs=Needs.CONTROLS)(long_running(handler))
        return handler

    return register


def short_methods(names: Sequence[str], *params: Param) -> Callable[[Handler], Handler]:
    """Register a quick handler, which runs on the loop if the builder's lock is free."""

    def register(handler: Handler) -> Handler:
        for name in names:
            register_name = method(name, *params, run_on=RunOn.SMALL, needs=Needs.CONTROLS)
            register_name(at_once(long_running(handler)))
        return handler

    return register


def setters(
    names: Sequence[str], *params: Param, registers: Any = methods
) -> Callable[[Handler], Handler]:
    """Register a handler without a result; ``registers`` is `methods` or `short_methods`.

    The answer is null for anvil's names and true for the names of Hardhat and Ganache.
    """

    def register(handler: Handler) -> Handler:
        for name in names:
            answer = None if name.startswith(SILENT) else True
            registers([name], *params)(_answering(handler, answer))
        return handler

    return register


def short_setters(names: Sequence[str], *params: Param) -> Callable[[Handler], Handler]:
    """Register a setter that takes microseconds with `short_methods`. See `setters`."""
    return setters(names, *params, registers=short_methods)


def at_once(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a handler so that it runs on the event loop only if it need not wait.

    The handler runs in a worker if the builder's lock is taken, if its changes need files or
    another node, or if a worker has a job in progress, such as an earlier transaction.
    """

    @wraps(handler)
    def run(context: Context, *arguments: Any) -> Any:
        node = context.node
        is_first = not context.workers.in_flight and node.development.changes_at_once
        lock = node.producer.lock if is_first else None
        if lock is None or not lock.acquire(blocking=False):
            require_worker(is_long=True)
            return handler(context, *arguments)
        try:
            return handler(context, *arguments)
        finally:
            lock.release()

    return run


def _answering(handler: Callable[..., Any], answer: bool | None) -> Callable[..., bool | None]:
    @wraps(handler)
    def answering(*arguments: Any) -> bool | None:
        handler(*arguments)
        return answer

    return answering


def control(context: Context) -> DevelopmentControls:
    """Return the development controls. The registry refuses the method on nodes without them."""
    return context.node.development.required()


def attempt(action: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call ``action(*arguments)``. Raises RpcError (invalid params) for its ValueError."""
    try:
        return action(*arguments, **options)
    except ValueError as error:
        raise RpcError("invalid_params", str(error)) from error


@short_methods(["evm_snapshot", "anvil_snapshot"])
def snapshot(context: Context) -> str:
    """Take a snapshot of the chain. Returns its number for evm_revert."""
    require_worker_above_limit(context.node.pool.executable_count)
    return quantity(control(context).snapshot())


@short_methods(["evm_revert", "anvil_revert"], NUMBER)
def revert(context: Context, number: int) -> bool:
    """Revert to a snapshot, and delete it and all later snapshots. Returns whether it existed."""
    chosen = control(context)
    require_worker_above_limit(chosen.weight_since(number, LOOP_OBJECTS + 1))
    if chosen.has_snapshot(number) and chosen.defer(lambda: chosen.revert(number)):
        return True
    return chosen.revert(number)


def decode_name(value: Any) -> str:
    """Decode the name of a snapshot."""
    try:
        return check_name(decode_text(value))
    except ValueError as error:
        raise DecodeError(str(error)) from error


NAME: Final = Param(decode_name)


@methods(["fastevm_saveSnapshot"], NAME)
def save_snapshot(context: Context, name: str) -> Json:
    """Take a named snapshot, or replace the snapshot of this name. Returns the block.

    A data directory stores named snapshots. A revert does not delete a named snapshot.
    """
    attempt(control(context).save_snapshot, name)
    return _snapshot_json(control(context).named_snapshots()[name])


@methods(["fastevm_restoreSnapshot"], NAME)
def restore_snapshot(context: Context, name: str) -> bool:
    """Revert to a named snapshot. Deletes numbered snapshots. Returns false for an unknown name."""
    return control(context).restore_snapshot(name)


@methods(["fastevm_deleteSnapshot"], NAME)
def delete_snapshot(context: Context, name: str) -> bool:
    """Delete a named snapshot. Returns whether it existed."""
    return control(context).delete_snapshot(name)


@methods(["fastevm_snapshots"])
def named_snapshots(context: Context) -> dict[str, Json]:
    """Return the block of each named snapshot."""
    return {
        name: _snapshot_json(found) for name, found in control(context).named_snapshots().items()
    }


def _snapshot_json(found: tuple[int, bytes]) -> Json:
    number, block_hash = found
    return {"blockNumber": quantity(number), "blockHash": hex_bytes(block_hash)}


@short_setters(
    ["anvil_setBalance", "hardhat_setBalance", "tenderly_setBalance", "evm_setAccountBalance"],
    ADDRESS,
    WEI,
)
def set_balance(context: Context, address: bytes, balance: int) -> None:
    """Set the balance of an account in wei."""
    amend(context, address, balance=quantity(balance))


@setters(["anvil_addBalance", "hardhat_addBalance", "tenderly_addBalance"], ADDRESS, WEI)
def add_balance(context: Context, address: bytes, more: int) -> None:
    """Add wei to the balance of an account, at most to 2^256-1."""
    attempt(control(context).add_balance, address, more)


@short_setters(["anvil_setNonce", "hardhat_setNonce", "evm_setAccountNonce"], ADDRESS, NUMBER)
def set_nonce(context: Context, address: bytes, nonce: int) -> None:
    """Set the nonce of an account, below 2^64-1, the limit of EIP-2681."""
    if nonce >= LARGEST_NONCE:
        raise RpcError("invalid_params", f"nonce {nonce} is not below {LARGEST_NONCE}")
    amend(context, address, nonce=quantity(nonce))


@short_setters(["anvil_setCode", "hardhat_setCode", "evm_setAccountCode"], ADDRESS, DATA)
def set_code(context: Context, address: bytes, code: bytes) -> None:
    """Set the code of an account."""
    amend(context, address, code=hex_bytes(code))


@short_methods(
    ["anvil_setStorageAt", "hardhat_setStorageAt", "evm_setAccountStorageAt"], ADDRESS, WORD, WORD
)
def set_storage_at(context: Context, address: bytes, slot: int, value: int) -> bool:
    """Set a storage slot of an account. Returns true."""
    amend(context, address, storage={quantity(slot): quantity(value)})
    return True


@methods(["anvil_dropTransaction"], HASH)
def drop_transaction(context: Context, tx_hash: bytes) -> str | None:
    """Remove a transaction from the pool. Returns its hash; null if it was not in the pool."""
    return hex_bytes(tx_hash) if control(context).drop(tx_hash) else None


@methods(["hardhat_dropTransaction"], HASH)
def drop_transaction_of_hardhat(context: Context, tx_hash: bytes) -> bool:
    """Remove a transaction from the pool. Returns whether it was in the pool, as Hardhat does."""
    return control(context).drop(tx_hash)


@methods(["anvil_dropAllTransactions", "hardhat_dropAllTransactions"])
def drop_all_transactions(context: Context) -> None:
    """Remove all transactions from the pool."""
    control(context).drop_all()


@methods(["anvil_removePoolTransactions"], ADDRESS)
def remove_pool_transactions(context: Context, sender: bytes) -> None:
    """Remove all transactions of a sender from the pool."""
    control(context).drop_all(sender)


def amend(context: Context, address: bytes, **members: Any) -> None:
    """Change members of an account, in the format of a genesis file. Other members stay."""
    attempt(control(context).amend, {hex_bytes(address): members})
