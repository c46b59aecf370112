"""Control over a chain that builds its own blocks: mine, turn the clock, change accounts, go back.

Names and answers are those that development tools know (`evm_`, `anvil_`, `hardhat_`).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, DATA, HASH
from fastevm.rpc.dispatch.registry import Handler, Param, Place, method
from fastevm.rpc.dispatch.workers import is_stopped, long_running
from fastevm.rpc.errors import RpcError
from fastevm.wire.quantity import decode_storage_slot, decode_uint64, decode_uint256
from fastevm.wire.text.hex import hex_bytes, quantity

U64: Final = 2**64
LARGEST_NONCE: Final = U64 - 1
U256: Final = 2**256

CONTROLS: Final[set[str]] = set()  # methods that only a development chain has


def decode_number(value: Any) -> int:
    """Decode a count, a time or a number of seconds: a JSON number, or a quantity."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < U64:
        return value
    return decode_uint64(value)


def decode_balance(value: Any) -> int:
    """Decode wei: a JSON number, or a quantity of at most 256 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < U256:
        return value
    return decode_uint256(value)


def decode_mine(value: Any) -> dict[str, int]:
    """Decode what evm_mine takes: a timestamp, or an object of ``timestamp`` and ``blocks``."""
    if not isinstance(value, dict):
        return {"timestamp": decode_number(value)}
    members = {name: value[name] for name in ("timestamp", "blocks") if value.get(name) is not None}
    return {name: decode_number(member) for name, member in members.items()}


NUMBER: Final = Param(decode_number)
OPTIONAL_NUMBER: Final = Param(decode_number, optional=True)
WORD: Final = Param(lambda value: decode_storage_slot(value)[0])


def methods(names: Sequence[str], *params: Param) -> Callable[[Handler], Handler]:
    """Register one handler under several names, in the lane of long jobs.

    Each waits for the lock of the builder, which a request for many blocks holds for seconds.
    """

    def register(handler: Handler) -> Handler:
        for name in names:
            method(name, *params, place=Place.WORKER)(long_running(handler))
        CONTROLS.update(names)
        return handler

    return register


def control(context: Context) -> Any:
    """Return the control of the node's chain; an error where others make the blocks."""
    found = context.node.development
    if found is None:
        raise RpcError("server_error", "this node does not build its own blocks")
    return found


def attempt(action: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return what an action gives; what it refuses is the caller's mistake."""
    try:
        return action(*arguments, **options)
    except ValueError as error:
        raise RpcError("invalid_params", str(error)) from error


@methods(["evm_mine"], Param(decode_mine, optional=True))
def evm_mine(context: Context, wanted: dict[str, int] | None) -> str:
    """Make a block now, or several, the first with the given timestamp; return 0x0."""
    found = wanted or {}
    timestamp = found.get("timestamp")
    count = found.get("blocks", 1)
    attempt(control(context).mine, count, timestamp=timestamp, is_stopped=is_stopped)
    return quantity(0)


@methods(["anvil_mine", "hardhat_mine"], OPTIONAL_NUMBER, OPTIONAL_NUMBER)
def mine(context: Context, count: int | None, interval: int | None) -> bool:
    """Make ``count`` blocks now (1), ``interval`` seconds apart; return true."""
    wanted = 1 if count is None else count
    attempt(control(context).mine, wanted, interval=interval, is_stopped=is_stopped)
    return True


@methods(["evm_increaseTime", "anvil_increaseTime"], NUMBER)
def increase_time(context: Context, seconds: int) -> int:
    """Turn the clock on; return how many seconds it is ahead of the system's."""
    ahead: int = attempt(control(context).increase_time, seconds)
    return ahead


@methods(["evm_setNextBlockTimestamp", "anvil_setNextBlockTimestamp"], NUMBER)
def set_next_block_timestamp(context: Context, timestamp: int) -> None:
    """Stamp the next block with this, and go on from there."""
    attempt(control(context).set_next_timestamp, timestamp)


@methods(["evm_snapshot", "anvil_snapshot"])
def snapshot(context: Context) -> str:
    """Remember where the chain is; return the number to go back with."""
    return quantity(control(context).snapshot())


@methods(["evm_revert", "anvil_revert"], NUMBER)
def revert(context: Context, number: int) -> bool:
    """Go back to a snapshot, which is gone then as are all later ones; false if there is none."""
    found: bool = control(context).revert(number)
    return found


@methods(["anvil_setBalance", "hardhat_setBalance"], ADDRESS, Param(decode_balance))
def set_balance(context: Context, address: bytes, balance: int) -> bool:
    """Give an account a balance in wei; return true."""
    return _amend(context, address, balance=quantity(balance))


@methods(["anvil_setNonce", "hardhat_setNonce"], ADDRESS, NUMBER)
def set_nonce(context: Context, address: bytes, nonce: int) -> bool:
    """Give an account a nonce below 2^64-1, which no account has (EIP-2681); return true."""
    if nonce >= LARGEST_NONCE:
        raise RpcError("invalid_params", f"nonce {nonce} is not below {LARGEST_NONCE}")
    return _amend(context, address, nonce=quantity(nonce))


@methods(["anvil_setCode", "hardhat_setCode"], ADDRESS, DATA)
def set_code(context: Context, address: bytes, code: bytes) -> bool:
    """Give an account a code; return true."""
    return _amend(context, address, code=hex_bytes(code))


@methods(["anvil_setStorageAt", "hardhat_setStorageAt"], ADDRESS, WORD, WORD)
def set_storage_at(context: Context, address: bytes, slot: int, value: int) -> bool:
    """Give an account's slot a value; return true."""
    return _amend(context, address, storage={quantity(slot): quantity(value)})


@methods(["anvil_dropTransaction", "hardhat_dropTransaction"], HASH)
def drop_transaction(context: Context, tx_hash: bytes) -> str | None:
    """Take a waiting transaction out of the pool; return its hash, null if it did not wait."""
    return hex_bytes(tx_hash) if control(context).drop(tx_hash) else None


def _amend(context: Context, address: bytes, **members: Any) -> bool:
    attempt(control(context).amend, {hex_bytes(address): members})
    return True
